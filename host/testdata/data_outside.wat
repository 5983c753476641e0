;; Its static data does not fit into its memory.
(module
  (memory (export "memory") 1)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param i32 i32) (result i32) (i32.const 0))
  (data (i32.const 65536) "x"))
