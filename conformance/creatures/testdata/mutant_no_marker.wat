;; Has no marker. Caught by creature/contract.
(module
  (memory (export "memory") 2)
  (func (export "creature_handle") (param $kind i32) (param $size i32) (result i32)
    (i32.const 0)))
