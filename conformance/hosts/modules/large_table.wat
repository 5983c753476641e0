;; The table has 1,000 elements.
(module
  (memory (export "memory") 1)
  (table 1000 funcref)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param i32 i32) (result i32) (i32.const 0)))
