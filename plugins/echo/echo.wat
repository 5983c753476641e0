;; echo answers every message with its payload, on every channel that it may send on.
(module
  (import "terrarium_v1" "read"
    (func $read (param $source i32) (param $offset i32) (param $ptr i32) (param $cap i32) (result i32)))
  (import "terrarium_v1" "send"
    (func $send (param $channel i32) (param $ptr i32) (param $len i32) (param $headers i32) (param $headers_len i32) (result i32)))

  (memory (export "memory") 1)

  (func (export "terrarium_abi_v1"))

  ;; Makes room for n bytes from address 0 on; returns 0 if the memory limit forbids it.
  (func $room (param $n i32) (result i32)
    (local $missing i32)
    (local.set $missing
      (i32.sub
        (i32.add (i32.shr_u (local.get $n) (i32.const 16)) (i32.const 1))
        (memory.size)))
    (if (i32.le_s (local.get $missing) (i32.const 0))
      (then (return (i32.const 1))))
    (i32.ne (memory.grow (local.get $missing)) (i32.const -1)))

  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (local $n i32)
    (if (i32.ne (local.get $kind) (i32.const 1)) ;; kind message
      (then (return (i32.const 0))))
    (if (i32.eqz (call $room (local.get $size)))
      (then (return (i32.const -8)))) ;; limit
    (local.set $n
      (call $read (i32.const 0) (i32.const 0) (i32.const 0) (local.get $size))) ;; source payload
    (if (i32.lt_s (local.get $n) (i32.const 0))
      (then (return (local.get $n))))
    (call $send (i32.const -1) (i32.const 0) (local.get $n) (i32.const 0) (i32.const 0)))
)
