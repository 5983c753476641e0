;; The memory is imported.
(module
  (import "env" "memory" (memory 1))
  (export "memory" (memory 0))
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param i32 i32) (result i32) (i32.const 0)))
