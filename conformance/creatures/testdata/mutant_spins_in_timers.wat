;; Sets a timer of 1 ms and never returns from it. Caught by creature/still-clock.
(module
  (import "terrarium_v1" "timer_set" (func $timer_set (param i32 i32 i64 i64 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "tick")
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (if (i32.eq (local.get $kind) (i32.const 4)) ;; a timer
      (then (loop $again (br $again))))
    (drop (call $timer_set (i32.const 0) (i32.const 4) (i64.const 1) (i64.const 1) (i32.const 0) (i32.const 0)))
    (i32.const 0)))
