;; Hop passes a message on until it has made its hops. The payload is the number
;; of hops left, a little-endian i64.
(module
  (import "terrarium_v1" "read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "send" (func $send (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1 1)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (if (i32.ne (local.get $kind) (i32.const 1)) (then (return (i32.const 0))))
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 8)))
    (if (i64.eqz (i64.load (i32.const 0))) (then (return (i32.const 0))))
    (i64.store (i32.const 0) (i64.sub (i64.load (i32.const 0)) (i64.const 1)))
    (call $send (i32.const -1) (i32.const 0) (i32.const 8) (i32.const 0) (i32.const 0))
    (drop)
    (i32.const 0)))
