;; Its _initialize traps.
(module
  (memory (export "memory") 1)
  (func (export "terrarium_abi_v1"))
  (func $creature_handle (export "creature_handle") (param i32 i32) (result i32) (i32.const 0))
  (func $_initialize (export "_initialize") (unreachable)))
