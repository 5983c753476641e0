;; Answer replies to a request with its payload. It sends any other message on, on
;; every channel.
(module
  (import "terrarium_v1" "read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "send" (func $send (param i32 i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "reply" (func $reply (param i32 i32) (result i32)))
  (memory (export "memory") 2 2)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (if (i32.and (i32.ne (local.get $kind) (i32.const 1)) (i32.ne (local.get $kind) (i32.const 7)))
      (then (return (i32.const 0))))
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 0) (local.get $size)))
    (if (i32.eq (local.get $kind) (i32.const 7))
      (then (return (call $reply (i32.const 0) (local.get $size)))))
    (call $send (i32.const -1) (i32.const 0) (local.get $size) (i32.const 0) (i32.const 0))
    (drop)
    (i32.const 0)))
