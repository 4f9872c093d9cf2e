;; What rustc makes for wasm32-unknown-unknown: `main` with `argc` and `argv`, and no `_start`. Exits with 7, or traps if
;; it is given an argument.
(module
  (memory (export "memory") 1)
  (func (export "main") (param $argc i32) (param $argv i32) (result i32)
    (if (i32.or (local.get $argc) (local.get $argv)) (then unreachable))
    (i32.const 7)))
