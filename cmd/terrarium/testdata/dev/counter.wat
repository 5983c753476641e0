;; counter numbers the messages that it passes on, with six digits.
(module
  (import "terrarium_v1" "read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "send" (func $send (param i32 i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "state_get" (func $get (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "state_set" (func $set (param i32 i32 i32 i32) (result i32)))

  (memory (export "memory") 17)
  (data (i32.const 0) "VERSION ")
  (data (i32.const 0x100000) "n")
  (func (export "terrarium_abi_v1"))

  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (local $end i32) (local $i i32) (local $digit i32)
    (if (i32.ne (local.get $kind) (i32.const 1)) (then (return (i32.const 0))))
    ;; FAULT
    (if (i32.lt_s (call $get (i32.const 0x100000) (i32.const 1) (i32.const 0x100010) (i32.const 6)) (i32.const 0))
      (then
        (i32.store (i32.const 0x100010) (i32.const 0x30303030))
        (i32.store16 (i32.const 0x100014) (i32.const 0x3030))))
    (local.set $i (i32.const 0x100015))
    (loop $carry
      (local.set $digit (i32.add (i32.load8_u (local.get $i)) (i32.const 1)))
      (if (i32.gt_u (local.get $digit) (i32.const 57))
        (then
          (i32.store8 (local.get $i) (i32.const 48))
          (local.set $i (i32.sub (local.get $i) (i32.const 1)))
          (br $carry)))
      (i32.store8 (local.get $i) (local.get $digit)))
    (drop (call $set (i32.const 0x100000) (i32.const 1) (i32.const 0x100010) (i32.const 6)))
    (local.set $end (i32.add (i32.const 4) (call $read (i32.const 0) (i32.const 0) (i32.const 4) (local.get $size))))
    (i32.store8 (local.get $end) (i32.const 32))
    (i32.store offset=1 (local.get $end) (i32.load (i32.const 0x100010)))
    (i32.store16 offset=5 (local.get $end) (i32.load16_u (i32.const 0x100014)))
    (call $send (i32.const -1) (i32.const 0) (i32.add (local.get $end) (i32.const 7)) (i32.const 0) (i32.const 0))))
