;; Functions of all kinds of arguments and results.
(module
  (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "swap") (param i64 f64) (result f64 i64) (local.get 1) (local.get 0))
  (func (export "half") (param f32) (result f32) (f32.div (local.get 0) (f32.const 2)))
  (func (export "null") (result externref) (ref.null extern))
  (func (export "vector") (param i32 v128) (result v128 i32) (local.get 1) (local.get 0)))
