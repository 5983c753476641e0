;; The marker is missing.
(module
  (memory (export "memory") 1)
  (func (export "creature_handle") (param i32 i32) (result i32) (i32.const 0)))
