;; One function for each shape that the rewriter knows.
(module
  (type $binary (func (param i32 i32) (result i32)))
  (type $pair (func (param i32 i32) (result i32 i32)))
  (import "env" "tick" (func $tick (param i32)))
  (memory (export "memory") 1)
  (table $t 4 8 funcref)
  (table $x 2 externref)
  (global $count (mut i32) (i32.const 0))
  (data $small "abc")
  (elem $passive func $recurse $loop)
  (elem (table $t) (i32.const 0) func $recurse)
  (start $begin)

  (func $begin (global.set $count (i32.const 7)))

  (func $leaf (param i32) (result i32) (i32.mul (local.get 0) (local.get 0)))

  ;; Its callers pay for $leaf.
  (func $straight (export "straight") (param i32) (result i32)
    (i32.add (call $leaf (local.get 0)) (i32.const 1)))

  (func $recurse (export "recurse") (type $binary)
    (if (result i32) (i32.eqz (local.get 0))
      (then (local.get 1))
      (else (call $recurse (i32.sub (local.get 0) (i32.const 1)) (i32.add (local.get 1) (i32.const 2))))))

  (func $loop (export "loop") (type $binary)
    (loop $again
      (local.set 1 (i32.add (local.get 1) (local.get 0)))
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1))

  ;; Code after the inner loop is paid with the outer loop.
  (func (export "nested") (param $n i32) (result i32) (local $i i32) (local $sum i32)
    (loop $outer
      (local.set $i (local.get $n))
      (block $done
        (loop $inner
          (br_if $done (i32.eqz (local.get $i)))
          (local.set $sum (i32.add (local.get $sum) (local.get $i)))
          (local.set $i (i32.sub (local.get $i) (i32.const 1)))
          (br $inner)))
      (br_if $outer (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))

  ;; The expensive branch is charged where it begins, the cheap one in advance.
  (func (export "ways") (param $x i32) (result i32)
    (if (i32.and (local.get $x) (i32.const 1))
      (then (local.set $x (i32.add (local.get $x) (i32.const 5)))))
    (if (i32.and (local.get $x) (i32.const 2))
      (then (local.set $x (i32.div_u (i32.div_u (local.get $x) (i32.const 3)) (i32.const 3)))))
    (i32.mul (local.get $x) (i32.const 3)))

  (func (export "switch") (param $x i32) (result i32)
    (block $two (block $one (block $zero
      (br_table $zero $one $two (local.get $x)))
      (return (i32.const 10)))
      (local.set $x (i32.rem_u (i32.rem_u (local.get $x) (i32.const 7)) (i32.const 5))))
    (if (i32.gt_u (local.get $x) (i32.const 100)) (then unreachable))
    (local.get $x))

  ;; There are operands on the stack where the loop begins.
  (func (export "operands") (param i32) (result i32)
    (local.get 0) (i32.const 1)
    (loop $again (type $pair)
      (i32.add (i32.const 1))
      (local.set 0)
      (i32.sub (i32.const 1))
      (local.get 0)
      (br_if $again (i32.lt_u (local.get 0) (i32.const 10))))
    (i32.add))

  (func (export "indirect") (param i32) (result i32)
    (call $tick (i32.const 1))
    (call_indirect $t (type $binary) (local.get 0) (i32.const 3) (i32.const 0)))

  (func (export "reference") (table.set $t (i32.const 1) (ref.func $loop)))

  (func (export "bulk") (param i32)
    (memory.copy (i32.const 0) (i32.const 100) (i32.const 40))
    (memory.copy (i32.const 0) (i32.const 100) (local.get 0))
    (memory.fill (i32.const 0) (i32.const 1) (i32.const 1000000))
    (memory.init $small (i32.const 0) (i32.const 0) (local.get 0))
    (table.copy $t $t (i32.const 0) (i32.const 1) (local.get 0))
    (table.init $t $passive (i32.const 0) (i32.const 1) (local.get 0))
    (table.fill $x (i32.const 0) (ref.null extern) (local.get 0))
    (data.drop $small))

  (func (export "grow") (param i32) (result i32)
    (i32.add (memory.grow (local.get 0)) (table.grow $t (ref.null func) (local.get 0))))

  ;; Code that cannot be reached keeps its form.
  (func (export "dead") (result i32)
    (return (i32.const 1))
    (memory.copy)
    (loop (br 0))
    (call $leaf))

  (func (export "traps") unreachable)
)
