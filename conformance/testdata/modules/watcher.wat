;; watcher outputs the revision of its awareness document when it is notified of one:
;; at start, and by graph_changed. It ignores messages.
(module
  (import "terrarium_v1" "read"
    (func $read (param $source i32) (param $offset i32) (param $ptr i32) (param $cap i32) (result i32)))
  (import "terrarium_v1" "output"
    (func $output (param $ptr i32) (param $len i32) (result i32)))

  (memory (export "memory") 1)

  (func (export "terrarium_abi_v1"))
  (func (export "terrarium_graph_changed"))

  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (local $n i32)
    (if (i32.eq (local.get $kind) (i32.const 1)) ;; kind message
      (then (return (i32.const 0))))
    (local.set $n
      (call $read (i32.const 12) (i32.const 0) (i32.const 0) (i32.const 20))) ;; source awareness_revision
    (if (i32.lt_s (local.get $n) (i32.const 0))
      (then (return (local.get $n))))
    (call $output (i32.const 0) (local.get $n)))
)
