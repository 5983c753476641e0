;; creature_handle is missing, and the start function traps: it must not run.
(module
  (memory (export "memory") 1)
  (func (export "terrarium_abi_v1"))
  (func $s unreachable)
  (start $s))
