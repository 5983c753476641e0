;; refused makes calls that the contract refuses and, for comparison, calls that it
;; allows. For each message it outputs one character for each call: the digit of the
;; error's code, or a letter for the result of a successful call: a is 0, b is 1.
(module
  (import "terrarium_v1" "send"
    (func $send (param i32 i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "output" (func $output (param i32 i32) (result i32)))
  (import "terrarium_v1" "state_get" (func $state_get (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "state_set" (func $state_set (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "state_delete" (func $state_delete (param i32 i32) (result i32)))

  (memory (export "memory") 1)
  (data (i32.const 100) "\ff")                         ;; no UTF-8
  (data (i32.const 110) "a\00b")                       ;; with NUL
  (data (i32.const 120) "missing")
  (data (i32.const 130) "name")                        ;; a name without a value
  (data (i32.const 140) "name\00value")                ;; a value without its NUL
  (data (i32.const 160) "\00value\00")                 ;; an empty name
  (data (i32.const 180) "name\001\00name\002\00")      ;; a name twice
  (data (i32.const 200) "terrarium-report\00x\00")     ;; reserved
  (data (i32.const 240) "Terrarium-Anything\00x\00")   ;; the same
  (data (i32.const 280) "terrarium\00x\00")            ;; not reserved

  (global $at (mut i32) (i32.const 0))

  (func (export "terrarium_abi_v1"))

  (func $note (param $answer i32)
    (i32.store8 (global.get $at)
      (if (result i32) (i32.lt_s (local.get $answer) (i32.const 0))
        (then (i32.sub (i32.const 48) (local.get $answer)))
        (else (i32.add (i32.const 97) (local.get $answer)))))
    (global.set $at (i32.add (global.get $at) (i32.const 1))))

  (func $space
    (i32.store8 (global.get $at) (i32.const 32))
    (global.set $at (i32.add (global.get $at) (i32.const 1))))

  ;; get, set and delete one key
  (func $key (param $ptr i32) (param $len i32)
    (call $note (call $state_get (local.get $ptr) (local.get $len) (i32.const 0) (i32.const 0)))
    (call $note (call $state_set (local.get $ptr) (local.get $len) (i32.const 0) (i32.const 0)))
    (call $note (call $state_delete (local.get $ptr) (local.get $len)))
    (call $space))

  ;; send on every channel with these headers
  (func $headers (param $ptr i32) (param $len i32)
    (call $note (call $send (i32.const -1) (i32.const 0) (i32.const 0) (local.get $ptr) (local.get $len))))

  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (if (i32.ne (local.get $kind) (i32.const 1)) ;; only messages
      (then (return (i32.const 0))))
    (global.set $at (i32.const 0))
    (call $key (i32.const 0) (i32.const 0))        ;; an empty key
    (call $key (i32.const 100) (i32.const 1))
    (call $key (i32.const 110) (i32.const 3))
    (call $key (i32.const 120) (i32.const 7))
    (call $headers (i32.const 130) (i32.const 4))
    (call $headers (i32.const 140) (i32.const 10))
    (call $headers (i32.const 160) (i32.const 7))
    (call $space)
    (call $headers (i32.const 180) (i32.const 14))
    (call $space)
    (call $headers (i32.const 200) (i32.const 19))
    (call $headers (i32.const 240) (i32.const 21))
    (call $headers (i32.const 280) (i32.const 12))
    (call $output (i32.const 0) (global.get $at)))
)
