;; Conforms: it sets a timer of 5 ms, so that an advance of a minute would fire 12,000 times.
(module
  (import "terrarium_v1" "timer_set" (func $timer_set (param i32 i32 i64 i64 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "tick")
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (if (i32.eq (local.get $kind) (i32.const 2)) ;; start
      (then (drop (call $timer_set (i32.const 0) (i32.const 4) (i64.const 5) (i64.const 5) (i32.const 0) (i32.const 0)))))
    (i32.const 0)))
