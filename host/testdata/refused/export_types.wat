(module
  (memory (export "memory") 1)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param i32) (result i64) (i64.const 0))
  (func (export "creature_init") (param i32))
  (func (export "creature_stop") (result i32 i64) (i32.const 0) (i64.const 0))
  (global (export "_initialize") i32 (i32.const 0)))
