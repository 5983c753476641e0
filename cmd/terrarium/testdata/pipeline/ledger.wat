;; Ledger keeps the books of a stream of numbered entries, and passes them on.
;; An entry has 32 bytes: the name of its sender (8), 8 unused bytes, its
;; number (i64) and a value (i64), little-endian. The state keeps, under the name
;; of each sender, the last number and the sum of the values. An entry whose
;; number does not follow the last one of its sender fails the turn.
(module
  (import "terrarium_v1" "read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "state_get" (func $state_get (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "state_set" (func $state_set (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "send" (func $send (param i32 i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "log" (func $log (param i32 i32 i32) (result i32)))
  ;; 0: the entry; 32: last number and sum of its sender
  (memory (export "memory") 1 1)
  (data (i32.const 64) "the entry is out of order")
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (local $status i32)
    (if (i32.ne (local.get $kind) (i32.const 1)) (then (return (i32.const 0))))
    (if (i32.ne (local.get $size) (i32.const 32)) (then (return (i32.const -1))))
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 32)))
    (i64.store (i32.const 32) (i64.const 0))
    (i64.store (i32.const 40) (i64.const 0))
    (local.set $status (call $state_get (i32.const 0) (i32.const 8) (i32.const 32) (i32.const 16)))
    (if (i32.and (i32.ne (local.get $status) (i32.const 16)) (i32.ne (local.get $status) (i32.const -2)))
      (then (return (i32.const -1))))
    (if (i64.ne (i64.load (i32.const 16)) (i64.add (i64.load (i32.const 32)) (i64.const 1)))
      (then
        (drop (call $log (i32.const 3) (i32.const 64) (i32.const 25)))
        (return (i32.const -1))))
    (i64.store (i32.const 32) (i64.load (i32.const 16)))
    (i64.store (i32.const 40) (i64.add (i64.load (i32.const 40)) (i64.load (i32.const 24))))
    (local.set $status (call $state_set (i32.const 0) (i32.const 8) (i32.const 32) (i32.const 16)))
    (if (i32.lt_s (local.get $status) (i32.const 0)) (then (return (local.get $status))))
    (call $send (i32.const -1) (i32.const 0) (i32.const 32) (i32.const 0) (i32.const 0))))
