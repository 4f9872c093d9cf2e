;; Passes numbers of every type through the host and back.
(module
    (import "host" "i32" (func $i32 (param i32) (result i32)))
    (import "host" "i64" (func $i64 (param i64) (result i64)))
    (import "host" "f32" (func $f32 (param f32) (result f32)))
    (import "host" "f64" (func $f64 (param f64) (result f64)))
    (import "host" "eight" (func $eight (param i32 i64 f32 f64 i32 i64 f32 f64) (result f64)))
    (func (export "i32") (param i32) (result i32) (call $i32 (local.get 0)))
    (func (export "i64") (param i64) (result i64) (call $i64 (local.get 0)))
    (func (export "f32") (param f32) (result f32) (call $f32 (local.get 0)))
    (func (export "f64") (param f64) (result f64) (call $f64 (local.get 0)))
    (func (export "eight") (param i32 i64 f32 f64 i32 i64 f32 f64) (result f64)
        (call $eight (local.get 0) (local.get 1) (local.get 2) (local.get 3)
            (local.get 4) (local.get 5) (local.get 6) (local.get 7))))
