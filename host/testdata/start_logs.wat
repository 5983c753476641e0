;; Its start function makes a hostcall, and so does _initialize.
(module
  (import "terrarium_v1" "log" (func $log (param i32 i32 i32) (result i32)))
  (import "terrarium_v1" "output" (func $output (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param i32 i32) (result i32) (i32.const 0))
  (data (i32.const 0) "startinit")
  (global $denied (mut i32) (i32.const 0))
  (func $begin
    (global.set $denied (call $output (i32.const 0) (i32.const 5)))
    (drop (call $log (i32.const 1) (i32.const 0) (i32.const 5))))
  (func (export "_initialize") (drop (call $log (i32.const 1) (i32.const 5) (i32.const 4))))
  (func (export "creature_init") (result i32) (i32.sub (i32.eq (global.get $denied) (i32.const -7)) (i32.const 1)))
  (start $begin))
