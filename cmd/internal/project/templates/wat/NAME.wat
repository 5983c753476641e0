;; NAME repeats messages in capital letters.
(module
  ;; read(source, offset, ptr, cap) copies a source into memory
  (import "terrarium_v1" "read"
    (func $read (param i32 i32 i32 i32) (result i32)))
  ;; send(channel, ptr, len, headers, headers_len) collects a message
  (import "terrarium_v1" "send"
    (func $send (param i32 i32 i32 i32 i32) (result i32)))

  (memory (export "memory") 17)      ;; a little over 1 MiB: the largest message fits
  (func (export "terrarium_abi_v1")) ;; the version of the contract

  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (local $n i32) (local $i i32) (local $c i32)
    (if (i32.ne (local.get $kind) (i32.const 1))   ;; 1: a message
      (then (return (i32.const 0))))               ;; ignore everything else
    (local.set $n
      (call $read (i32.const 0) (i32.const 0) (i32.const 0) (local.get $size)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_s (local.get $i) (local.get $n)))
        (local.set $c (i32.load8_u (local.get $i)))
        (if (i32.and (i32.ge_u (local.get $c) (i32.const 97)) (i32.le_u (local.get $c) (i32.const 122)))
          (then (i32.store8 (local.get $i) (i32.sub (local.get $c) (i32.const 32)))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    ;; -1: on every channel that it may send on. send returns a negative number
    ;; if it fails, so its result can be returned as it is.
    (call $send (i32.const -1) (i32.const 0) (local.get $n) (i32.const 0) (i32.const 0)))
)
