;; Echo returns its input, which it reads and writes by eight bytes at a time, as the kits
;; of Extism do.
(module
  (import "extism:host/env" "input_length" (func $input_length (result i64)))
  (import "extism:host/env" "input_load_u64" (func $input_load_u64 (param i64) (result i64)))
  (import "extism:host/env" "input_load_u8" (func $input_load_u8 (param i64) (result i32)))
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u64" (func $store_u64 (param i64 i64)))
  (import "extism:host/env" "store_u8" (func $store_u8 (param i64 i32)))
  (import "extism:host/env" "output_set" (func $output_set (param i64 i64)))
  (memory (export "memory") 2 2)
  (func (export "echo") (result i32)
    (local $n i64) (local $at i64) (local $out i64)
    (local.set $n (call $input_length))
    (block $read (loop $next
      (br_if $read (i64.gt_u (i64.add (local.get $at) (i64.const 8)) (local.get $n)))
      (i64.store (i32.wrap_i64 (local.get $at)) (call $input_load_u64 (local.get $at)))
      (local.set $at (i64.add (local.get $at) (i64.const 8)))
      (br $next)))
    (block $read (loop $next
      (br_if $read (i64.ge_u (local.get $at) (local.get $n)))
      (i32.store8 (i32.wrap_i64 (local.get $at)) (call $input_load_u8 (local.get $at)))
      (local.set $at (i64.add (local.get $at) (i64.const 1)))
      (br $next)))
    (local.set $out (call $alloc (local.get $n)))
    (local.set $at (i64.const 0))
    (block $written (loop $next
      (br_if $written (i64.gt_u (i64.add (local.get $at) (i64.const 8)) (local.get $n)))
      (call $store_u64 (i64.add (local.get $out) (local.get $at)) (i64.load (i32.wrap_i64 (local.get $at))))
      (local.set $at (i64.add (local.get $at) (i64.const 8)))
      (br $next)))
    (block $written (loop $next
      (br_if $written (i64.ge_u (local.get $at) (local.get $n)))
      (call $store_u8 (i64.add (local.get $out) (local.get $at)) (i32.load8_u (i32.wrap_i64 (local.get $at))))
      (local.set $at (i64.add (local.get $at) (i64.const 1)))
      (br $next)))
    (call $output_set (local.get $out) (local.get $n))
    (i32.const 0)))
