;; Counts its turns in linear memory alone, and tells the count. Caught by creature/warm-is-fresh.
(module
  (import "terrarium_v1" "output" (func $output (param i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
    (call $output (i32.const 0) (i32.const 4))))
