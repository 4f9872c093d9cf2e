;; A type that nothing uses, an import, and functions with types of their own.
(module (type (func (param f32))) (import "wasi_snapshot_preview1" "sched_yield" (func (result i32)))
  (func (export "swap") (param i32 f64) (result f64 i32) unreachable)
  (func (export "v") (param anyref)))
