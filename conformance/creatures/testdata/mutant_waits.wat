;; Waits until the clock has advanced. Caught by creature/still-clock.
(module
  (import "terrarium_v1" "now" (func $now (result i64)))
  (memory (export "memory") 2)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (local $begin i64)
    (local.set $begin (call $now))
    (loop $again (br_if $again (i64.le_s (call $now) (local.get $begin))))
    (i32.const 0)))
