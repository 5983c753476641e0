;; Echo returns its input, as a guest of the waPC protocol does: it asks the host for the
;; operation and the payload, and gives the host the response.
(module
  (import "wapc" "__guest_request" (func $request (param i32 i32)))
  (import "wapc" "__guest_response" (func $response (param i32 i32)))
  (memory (export "memory") 2 2)
  (func (export "__guest_call") (param $operation i32) (param $payload i32) (result i32)
    (call $request (i32.const 0) (i32.const 1024))
    (call $response (i32.const 1024) (local.get $payload))
    (i32.const 1)))
