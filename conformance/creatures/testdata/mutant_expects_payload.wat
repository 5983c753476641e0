;; Traps for an empty payload. Caught by creature/any-bytes.
(module
  (memory (export "memory") 2)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (if (i32.and (i32.eq (local.get $kind) (i32.const 1)) (i32.eqz (local.get $size))) (then unreachable))
    (i32.const 0)))
