;; Traps in creature_init if there is a configuration. Caught by creature/bad-configuration.
(module
  (import "terrarium_v1" "size" (func $size (param i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (i32.const 0))
  (func (export "creature_init") (result i32)
    (if (i32.gt_s (call $size (i32.const 6)) (i32.const 2)) (then unreachable))
    (i32.const 0)))
