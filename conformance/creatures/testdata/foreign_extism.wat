;; A plug-in in the shape of Extism: it reads its input and sets its output through extism:host/env.
(module
  (import "extism:host/env" "input_length" (func $input_length (result i64)))
  (import "extism:host/env" "input_load_u8" (func $input_load_u8 (param i64) (result i32)))
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u8" (func $store_u8 (param i64 i32)))
  (import "extism:host/env" "output_set" (func $output_set (param i64 i64)))
  (memory (export "memory") 1)
  (func (export "count_vowels") (result i32)
    (local $at i64)
    (local.set $at (call $alloc (i64.const 1)))
    (call $store_u8 (local.get $at) (call $input_load_u8 (i64.const 0)))
    (call $output_set (local.get $at) (i64.const 1))
    (i32.const 0)))
