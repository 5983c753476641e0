;; Starts with 100 elements in two tables and a declared maximum.
(module
  (memory (export "memory") 1)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param i32 i32) (result i32) (i32.const 0))
  (table 40 50 funcref)
  (table 60 funcref))
