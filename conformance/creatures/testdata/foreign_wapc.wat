;; A guest in the shape of waPC.
(module
  (import "wapc" "__guest_request" (func $guest_request (param i32 i32)))
  (import "wapc" "__guest_response" (func $guest_response (param i32 i32)))
  (import "wapc" "__guest_error" (func $guest_error (param i32 i32)))
  (import "wapc" "__host_call" (func $host_call (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wapc" "__console_log" (func $console_log (param i32 i32)))
  (memory (export "memory") 1)
  (func (export "wapc_init"))
  (func (export "__guest_call") (param $operation i32) (param $payload i32) (result i32)
    (call $guest_request (i32.const 0) (i32.const 64))
    (call $guest_response (i32.const 64) (local.get $payload))
    (i32.const 1)))
