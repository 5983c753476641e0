;; Traps in creature_stop. Caught by creature/start-reads-only.
(module
  (memory (export "memory") 2)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (i32.const 0))
  (func (export "creature_stop") unreachable))
