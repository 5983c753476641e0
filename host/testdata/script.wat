;; Calls every function of the contract with the arguments that a test chooses.
;;
;; The payload is a script. It is read to address 4096:
;;   u32 status, u32 count, then count calls of 56 bytes:
;;   u64 number of the function, six u64 arguments.
;; The rest of the payload is data that the arguments may point to. The results,
;; as i64, are logged at the level debug, and status is returned.
(module
  (import "terrarium_v1" "read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "size" (func $size (param i32) (result i32)))
  (import "terrarium_v1" "feature" (func $feature (param i32) (result i32)))
  (import "terrarium_v1" "config" (func $config (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "channel" (func $channel (param i32 i32) (result i32)))
  (import "terrarium_v1" "send" (func $send (param i32 i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "send_to" (func $send_to (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "request" (func $request (param i32 i32 i32 i32 i64 i64) (result i32)))
  (import "terrarium_v1" "reply" (func $reply (param i32 i32) (result i32)))
  (import "terrarium_v1" "output" (func $output (param i32 i32) (result i32)))
  (import "terrarium_v1" "state_get" (func $state_get (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "state_set" (func $state_set (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "state_delete" (func $state_delete (param i32 i32) (result i32)))
  (import "terrarium_v1" "state_list" (func $state_list (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "timer_set" (func $timer_set (param i32 i32 i64 i64 i32 i32) (result i32)))
  (import "terrarium_v1" "timer_cancel" (func $timer_cancel (param i32 i32) (result i32)))
  (import "terrarium_v1" "tool" (func $tool (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "http" (func $http (param i32 i32 i32 i32 i64) (result i32)))
  (import "terrarium_v1" "log" (func $log (param i32 i32 i32) (result i32)))
  (import "terrarium_v1" "now" (func $now (result i64)))
  (import "terrarium_v1" "random" (func $random (param i32 i32) (result i32)))
  (import "terrarium_v1" "fuel_left" (func $fuel_left (result i64)))
  (memory (export "memory") 2)
  (func (export "terrarium_abi_v1"))

  (func $arg (param $call i32) (param $n i32) (result i64)
    (i64.load offset=8 (i32.add (local.get $call) (i32.shl (local.get $n) (i32.const 3)))))
  (func $arg32 (param $call i32) (param $n i32) (result i32)
    (i32.wrap_i64 (call $arg (local.get $call) (local.get $n))))

  (func $dispatch (param $c i32) (result i64)
    (block $none
    (block $f21
    (block $f20
    (block $f19
    (block $f18
    (block $f17
    (block $f16
    (block $f15
    (block $f14
    (block $f13
    (block $f12
    (block $f11
    (block $f10
    (block $f9
    (block $f8
    (block $f7
    (block $f6
    (block $f5
    (block $f4
    (block $f3
    (block $f2
    (block $f1
    (block $f0
      (br_table $f0 $f1 $f2 $f3 $f4 $f5 $f6 $f7 $f8 $f9 $f10 $f11 $f12 $f13 $f14 $f15 $f16 $f17 $f18 $f19 $f20 $f21 $none (i32.wrap_i64 (i64.load (local.get $c))))
    )
    (return (i64.extend_i32_s (call $read (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)))))
    )
    (return (i64.extend_i32_s (call $size (call $arg32 (local.get $c) (i32.const 0)))))
    )
    (return (i64.extend_i32_s (call $feature (call $arg32 (local.get $c) (i32.const 0)))))
    )
    (return (i64.extend_i32_s (call $config (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)))))
    )
    (return (i64.extend_i32_s (call $channel (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $send (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)) (call $arg32 (local.get $c) (i32.const 4)))))
    )
    (return (i64.extend_i32_s (call $send_to (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)))))
    )
    (return (i64.extend_i32_s (call $request (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)) (call $arg (local.get $c) (i32.const 4)) (call $arg (local.get $c) (i32.const 5)))))
    )
    (return (i64.extend_i32_s (call $reply (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $output (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $state_get (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)))))
    )
    (return (i64.extend_i32_s (call $state_set (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)))))
    )
    (return (i64.extend_i32_s (call $state_delete (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $state_list (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)))))
    )
    (return (i64.extend_i32_s (call $timer_set (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg (local.get $c) (i32.const 2)) (call $arg (local.get $c) (i32.const 3)) (call $arg32 (local.get $c) (i32.const 4)) (call $arg32 (local.get $c) (i32.const 5)))))
    )
    (return (i64.extend_i32_s (call $timer_cancel (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $tool (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)))))
    )
    (return (i64.extend_i32_s (call $http (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)) (call $arg (local.get $c) (i32.const 4)))))
    )
    (return (i64.extend_i32_s (call $log (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)))))
    )
    (return (call $now))
    )
    (return (i64.extend_i32_s (call $random (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (call $fuel_left))
    )
    (i64.const -999))

  (func $run (result i32)
    (local $count i32) (local $i i32)
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 4096) (i32.const 65536)))
    (local.set $count (i32.load (i32.const 4100)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (local.get $count)))
        (i64.store
          (i32.add (i32.const 98304) (i32.shl (local.get $i) (i32.const 3)))
          (call $dispatch (i32.add (i32.const 4104) (i32.mul (local.get $i) (i32.const 56)))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (drop (call $log (i32.const 0) (i32.const 98304) (i32.shl (local.get $count) (i32.const 3))))
    (i32.load (i32.const 4096)))

  (func (export "creature_handle") (param i32 i32) (result i32) (call $run))
  (func (export "creature_init") (result i32) (call $run))
  (func (export "creature_stop") (drop (call $run))))
