;; Logs each phase in which it runs: start, init, handle, stop.
(module
  (import "terrarium_v1" "log" (func $log (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "start1_initialize2init3handle4stop5")
  (func (export "terrarium_abi_v1"))
  (func $s (drop (call $log (i32.const 1) (i32.const 0) (i32.const 6))))
  (start $s)
  (func (export "_initialize") (drop (call $log (i32.const 1) (i32.const 6) (i32.const 12))))
  (func (export "creature_init") (result i32) (drop (call $log (i32.const 1) (i32.const 18) (i32.const 5))) (i32.const 1))
  (func (export "creature_handle") (param i32 i32) (result i32) (drop (call $log (i32.const 1) (i32.const 23) (i32.const 7))) (i32.const 5))
  (func (export "creature_stop") (drop (call $log (i32.const 1) (i32.const 30) (i32.const 5)))))
