;; Something of everything that is kept of a program.
(module
  (memory 2 9) (memory i64 1) (tag $t (param i32)) (table 5 20 funcref) (global $g (export "g") (mut i64) (i64.const 77))
  (func $f (export "f") (param i32 f64) (result i64) (i64.const 3))
  (func (export "_start") (memory.init 1 (i32.const 0) (i32.const 0) (i32.const 2)))
  (func $h (param i32) (throw $t (local.get 0)))
  (func $k (param i32) (return_call $l (local.get 0))) (func $l (param i32) (return_call $k (local.get 0)))
  (elem (i32.const 1) $f) (elem func $f)
  (data (i32.const 70000) "hello") (data "passive"))
