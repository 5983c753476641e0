;; creature_handle is missing.
(module
  (memory (export "memory") 1)
  (func (export "terrarium_abi_v1")))
