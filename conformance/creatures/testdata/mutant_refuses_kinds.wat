;; Fails for kinds that it does not know. Caught by creature/unknown-kinds.
(module
  (memory (export "memory") 2)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (if (i32.gt_u (local.get $kind) (i32.const 7)) (then (return (i32.const -1))))
    (i32.const 0)))
