;; Traps for a payload whose first byte is not ASCII. Caught by creature/any-bytes.
(module
  (import "terrarium_v1" "read" (func $read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1)))
    (if (i32.ge_u (i32.load8_u (i32.const 0)) (i32.const 128)) (then unreachable))
    (i32.store (i32.const 0) (i32.const 0))
    (i32.const 0)))
