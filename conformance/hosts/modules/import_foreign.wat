;; A function of another host is imported.
(module
  (import "wapc" "__host_call" (func (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param i32 i32) (result i32) (i32.const 0)))
