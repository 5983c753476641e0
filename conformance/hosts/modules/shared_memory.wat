;; The memory is shared.
;; build with --enable-all
(module
  (memory (export "memory") 1 1 shared)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param i32 i32) (result i32) (i32.const 0)))
