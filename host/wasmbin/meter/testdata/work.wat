;; Work of different kinds, some of it without end.
(module
  (import "env" "tick" (func $tick (param i32)))
  (import "env" "again" (func $again (param i32)))
  (memory (export "memory") 64 100)
  (table $t 4 funcref)
  (elem (table $t) (i32.const 0) func $bounce)
  (type $unary (func (param i32) (result i32)))

  (func (export "count") (param $n i32) (result i32) (local $i i32) (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (local.get $i)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (local.get $n))))
    (local.get $sum))

  (func (export "memory_traffic") (param $n i32) (result i32) (local $i i32)
    (loop $again
      (i32.store (i32.and (local.get $i) (i32.const 0xfffc))
        (i32.add (i32.load offset=4 (i32.and (local.get $i) (i32.const 0xfffc))) (local.get $i)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (local.get $n))))
    (i32.load (i32.const 0)))

  (func $fib (export "fib") (type $unary)
    (if (result i32) (i32.lt_u (local.get 0) (i32.const 2))
      (then (local.get 0))
      (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
                     (call $fib (i32.sub (local.get 0) (i32.const 2)))))))

  ;; Shell sort of numbers from a generator.
  (func (export "sort") (param $n i32) (result i32)
      (local $gap i32) (local $i i32) (local $j i32) (local $t i32) (local $u i32)
    (local.set $t (i32.const 12345))
    (loop $fill
      (local.set $t (i32.add (i32.mul (local.get $t) (i32.const 1103515245)) (i32.const 12345)))
      (i32.store (i32.shl (local.get $i) (i32.const 2)) (i32.shr_u (local.get $t) (i32.const 8)))
      (br_if $fill (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.set $gap (i32.shr_u (local.get $n) (i32.const 1)))
    (loop $gaps
      (local.set $i (local.get $gap))
      (loop $each
        (local.set $t (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $j (local.get $i))
        (block $found
          (loop $down
            (br_if $found (i32.lt_u (local.get $j) (local.get $gap)))
            (local.set $u (i32.load (i32.shl (i32.sub (local.get $j) (local.get $gap)) (i32.const 2))))
            (br_if $found (i32.le_u (local.get $u) (local.get $t)))
            (i32.store (i32.shl (local.get $j) (i32.const 2)) (local.get $u))
            (local.set $j (i32.sub (local.get $j) (local.get $gap)))
            (br $down)))
        (i32.store (i32.shl (local.get $j) (i32.const 2)) (local.get $t))
        (br_if $each (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
      (br_if $gaps (local.tee $gap (i32.shr_u (local.get $gap) (i32.const 1)))))
    (i32.load (i32.const 400)))

  ;; A loop that ends with a trap.
  (func (export "trap_late") (param $n i32) (result i32)
    (loop $again (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (i32.load (i32.const -1)))

  (func (export "spin") (loop $again (br $again)))

  (func $deep (export "deep") (param i32) (result i32)
    (if (i32.eqz (local.get 0)) (then (return (i32.const 0))))
    (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1)))))

  ;; The same with more locals.
  (func $deep_wide (export "deep_wide") (param i32) (result i32) (local i64 i64 i64 i64 i64 i64 i64 i64 v128 v128)
    (if (i32.eqz (local.get 0)) (then (return (i32.const 0))))
    (i32.add (i32.const 1) (call $deep_wide (i32.sub (local.get 0) (i32.const 1)))))

  (func $bounce (export "bounce") (type $unary)
    (call_indirect $t (type $unary) (i32.add (local.get 0) (i32.const 1)) (i32.const 0)))

  ;; Twice as many calls at every level, and no loop.
  (func $bomb (export "bomb") (param i32)
    (if (local.get 0) (then
      (call $bomb (i32.sub (local.get 0) (i32.const 1)))
      (call $bomb (i32.sub (local.get 0) (i32.const 1))))))

  (func (export "host_loop") (loop $again (call $tick (i32.const 1)) (br $again)))
  (func (export "tick") (param i32) (call $tick (local.get 0)) (call $tick (local.get 0)))
  (func (export "nest") (param i32) (call $again (local.get 0)))

  (func (export "fill_loop")
    (loop $again (memory.fill (i32.const 0) (i32.const 1) (i32.const 4000000)) (br $again)))
  (func (export "copy_once") (param i32) (memory.copy (i32.const 0) (i32.const 8) (local.get 0)))
  (func (export "grow_loop")
    (loop $again (drop (memory.grow (i32.const 0))) (br $again)))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
)
