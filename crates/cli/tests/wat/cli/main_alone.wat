;; `main` without parameters, and no `_start`. Exits with 3.
(module
  (memory (export "memory") 1)
  (func (export "main") (result i32) (i32.const 3)))
