;; creature_init logs a warning and fails with denied.
(module
  (import "terrarium_v1" "log" (func $log (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "the key is missing")
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param i32 i32) (result i32) (i32.const 0))
  (func (export "creature_init") (result i32) (drop (call $log (i32.const 2) (i32.const 0) (i32.const 18))) (i32.const -7)))
