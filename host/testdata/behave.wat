;; The kind of the delivery selects how the creature behaves, well or badly.
(module
  (import "terrarium_v1" "now" (func $now (result i64)))
  (import "terrarium_v1" "fuel_left" (func $fuel_left (result i64)))
  (import "terrarium_v1" "log" (func $log (param i32 i32 i32) (result i32)))
  (import "terrarium_v1" "state_get" (func $state_get (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "env" "abort" (func $abort (param i32 i32 i32 i32)))
  (memory (export "memory") 1)
  (table $t 1 funcref)
  (data (i32.const 64) "out of cheese")
  (data (i32.const 96) "\08\00\00\00n\00o\00p\00e\00")
  (data (i32.const 112) "\08\00\00\00a\00.\00t\00s\00")
  (func (export "terrarium_abi_v1"))

  (func $innermost (unreachable))
  (func $inner (call $innermost))
  (func $recurse (param i32) (result i32)
    (i32.add (call $recurse (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
  (func $tree (param $n i32)
    (if (local.get $n) (then
      (call $tree (i32.sub (local.get $n) (i32.const 1)))
      (call $tree (i32.sub (local.get $n) (i32.const 1))))))
  (func $spin (loop $again (br $again)))
  (func $call_for_ever (loop $again (drop (call $now)) (br $again)))
  (func $call_many (param $n i32) (result i32)
    (local $refused i32)
    (loop $again
      (local.set $refused (i32.add (local.get $refused) (i64.lt_s (call $now) (i64.const 0))))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n)))
    (local.get $refused))

  ;; 1 well, 2 trap, 3 loop, 4 fails with a logged text, 5 hostcalls without end, 6 memory.grow by size,
  ;; 7 recursion, 8 exit, 9 abort, 10 out of bounds, 11 fails after a failed hostcall, 12 table.grow by size,
  ;; 13 returns how many of size hostcalls were refused, 14 an unknown status, 15 divides by zero,
  ;; 16 a tree of calls of depth size, 17 fills size bytes without end, 18 copies size bytes without end,
  ;; 19 fails unless fuel_left decreases
  (func $creature_handle (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (block $k19 (block $k18 (block $k17 (block $k16
    (block $k15 (block $k14 (block $k13 (block $k12 (block $k11 (block $k10 (block $k9 (block $k8
    (block $k7 (block $k6 (block $k5 (block $k4 (block $k3 (block $k2 (block $k1
      (br_table $k1 $k1 $k2 $k3 $k4 $k5 $k6 $k7 $k8 $k9 $k10 $k11 $k12 $k13 $k14 $k15 $k16 $k17 $k18 $k19 $k1 (local.get $kind)))
      (return (i32.const 0)))
      (call $inner) (return (i32.const 0)))
      (call $spin) (return (i32.const 0)))
      (drop (call $log (i32.const 3) (i32.const 64) (i32.const 13))) (return (i32.const -16)))
      (call $call_for_ever) (return (i32.const 0)))
      (return (i32.eqz (i32.ne (memory.grow (local.get $size)) (i32.const -1)))))
      (return (call $recurse (i32.const 0))))
      (call $exit (i32.const 3)) (return (i32.const 0)))
      (call $abort (i32.const 100) (i32.const 116) (i32.const 12) (i32.const 5)) (return (i32.const 0)))
      (return (i32.load (i32.const -4))))
      (return (call $state_get (i32.const -1) (i32.const 9) (i32.const 0) (i32.const 0))))
      (return (select (i32.const -8) (i32.const 0) (i32.eq (table.grow $t (ref.null func) (local.get $size)) (i32.const -1)))))
      (return (i32.sub (i32.const -1) (call $call_many (local.get $size)))))
      (return (i32.const -1000)))
    (return (i32.div_u (i32.const 1) (i32.const 0))))
      (call $tree (local.get $size)) (return (i32.const 0)))
      (loop $again (memory.fill (i32.const 0) (i32.const 1) (local.get $size)) (br $again)))
      (loop $again (memory.copy (i32.const 8) (i32.const 0) (local.get $size)) (br $again)))
    (select (i32.const 0) (i32.const -8) (i64.gt_s (call $fuel_left) (call $fuel_left)))))
