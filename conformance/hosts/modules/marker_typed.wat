;; A marker of another type, that traps if it is called.
(module
  (memory (export "memory") 1)
  (func (export "terrarium_abi_v1") (param i64 f32) (result f64) unreachable)
  (func (export "creature_handle") (param i32 i32) (result i32) (i32.const 0)))
