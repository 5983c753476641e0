;; Memory, marker and creature_handle are all missing.
(module
  (func (export "run")))
