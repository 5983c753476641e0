;; Grows its table by the size of the delivery. Returns 0 if the table has not grown, else a negative number: by how many elements.
(module
  (memory (export "memory") 1)
  (table $t 10 funcref)
  (func (export "terrarium_abi_v1"))
  (func (export "creature_handle") (param i32 i32) (result i32) (drop (table.grow $t (ref.null func) (local.get 1))) (i32.sub (i32.const 10) (table.size $t))))
