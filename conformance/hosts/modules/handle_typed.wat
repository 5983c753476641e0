;; creature_handle has another type.
(module
  (memory (export "memory") 1)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param i32) (result i32) (i32.const 0)))
