;; A function is imported from terrarium_v1 that does not exist.
(module
  (import "terrarium_v1" "open_file" (func (param i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param i32 i32) (result i32) (i32.const 0)))
