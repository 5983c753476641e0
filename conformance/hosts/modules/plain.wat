;; A module that does nothing, with all optional exports, another export and a manifest with unknown members.
(module
  (memory (export "memory") 1)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param i32 i32) (result i32) (i32.const 0))
  (func (export "creature_init") (result i32) (i32.const 7))
  (func (export "creature_stop"))
  (func (export "_initialize"))
  (func (export "terrarium_graph_changed") (param i64) (result f32) unreachable)
  (func (export "mine") (param f64))
  (global (export "answer") i32 (i32.const 42)))
