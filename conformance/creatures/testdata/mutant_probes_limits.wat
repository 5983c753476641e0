;; Sends until it is refused. Caught by creature/other-limits.
(module
  (import "terrarium_v1" "send" (func $send (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (loop $again (br_if $again (i32.gt_s (call $send (i32.const -1) (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 0)) (i32.const 0))))
    (i32.const 0)))
