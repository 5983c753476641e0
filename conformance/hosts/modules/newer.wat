;; Uses WebAssembly 2.0: sign extension, saturating conversion, several results, bulk memory, reference types.
(module
  (memory (export "memory") 1)
  (table $t 4 funcref)
  (elem declare func $f)
  (data $d "abc")
  (func (export "terrarium_abi_v1"))
  (func $f (result i32 i32) (i32.extend8_s (i32.const 255)) (i32.trunc_sat_f32_s (f32.const 1e20)))
  (func (export "creature_handle") (param i32 i32) (result i32) (table.set $t (i32.const 1) (ref.func $f)) (memory.init $d (i32.const 8) (i32.const 0) (i32.const 3)) (memory.fill (i32.const 16) (i32.const 7) (i32.const 4)) (memory.copy (i32.const 11) (i32.const 8) (i32.const 3)) (call $f) (drop) (drop) (i32.sub (i32.load8_u (i32.const 13)) (i32.const 99))))
