;; numbers sends every message on with its number, which is in the state: 00001, 00002, …
(module
  (import "terrarium_v1" "read"
    (func $read (param $source i32) (param $offset i32) (param $ptr i32) (param $cap i32) (result i32)))
  (import "terrarium_v1" "state_get"
    (func $state_get (param $key i32) (param $key_len i32) (param $ptr i32) (param $cap i32) (result i32)))
  (import "terrarium_v1" "state_set"
    (func $state_set (param $key i32) (param $key_len i32) (param $ptr i32) (param $len i32) (result i32)))
  (import "terrarium_v1" "send"
    (func $send (param $channel i32) (param $ptr i32) (param $len i32) (param $headers i32) (param $headers_len i32) (result i32)))

  (memory (export "memory") 1)
  (data (i32.const 0) "number")       ;; the key in the state
  (data (i32.const 16) "00000 ")      ;; the number, and behind it the message

  (func (export "terrarium_abi_v1"))

  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (local $n i32) (local $at i32)
    (if (i32.ne (local.get $kind) (i32.const 1)) ;; kind message
      (then (return (i32.const 0))))
    (if (i32.gt_u (local.get $size) (i32.const 60000)) ;; more does not fit into the memory
      (then (return (i32.const -14)))) ;; too_large
    (local.set $n (call $read (i32.const 0) (i32.const 0) (i32.const 22) (local.get $size))) ;; source payload
    (if (i32.lt_s (local.get $n) (i32.const 0))
      (then (return (local.get $n))))
    (drop (call $state_get (i32.const 0) (i32.const 6) (i32.const 16) (i32.const 5))) ;; not there at first
    (local.set $at (i32.const 20)) ;; the last digit
    (block $added
      (loop $carry
        (br_if $added (i32.lt_u (local.get $at) (i32.const 16)))
        (i32.store8 (local.get $at) (i32.add (i32.load8_u (local.get $at)) (i32.const 1)))
        (br_if $added (i32.le_u (i32.load8_u (local.get $at)) (i32.const 57))) ;; 9
        (i32.store8 (local.get $at) (i32.const 48)) ;; 0
        (local.set $at (i32.sub (local.get $at) (i32.const 1)))
        (br $carry)))
    (drop (call $state_set (i32.const 0) (i32.const 6) (i32.const 16) (i32.const 5)))
    (call $send (i32.const -1) (i32.const 16) (i32.add (local.get $n) (i32.const 6)) (i32.const 0) (i32.const 0)))
)
