;; Traps in the delivery start. Caught by creature/start-reads-only.
(module
  (memory (export "memory") 2)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (if (i32.eq (local.get $kind) (i32.const 2)) (then unreachable))
    (i32.const 0)))
