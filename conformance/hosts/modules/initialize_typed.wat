;; _initialize has a parameter.
(module
  (memory (export "memory") 1)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param i32 i32) (result i32) (i32.const 0))
  (func (export "_initialize") (param i32)))
