;; The other half of `even.wat`, and a count by tail calls to itself.
(module
  (type $f (func (param i32 i64) (result i32))) (import "a" "t" (table 1 funcref))
  (import "a" "even" (func $even (type $f)))
  (func $odd (type $f) (if (i32.eqz (local.get 0)) (then (return (i32.const 0))))
    (return_call $even (i32.sub (local.get 0) (i32.const 1)) (local.get 1)))
  (elem (i32.const 0) $odd)
  (func (export "even") (param i32) (result i32) (call $even (local.get 0) (i64.const 0)))
  (func (export "count") (param i32) (result i32) (return_call $count (local.get 0) (i32.const 0)))
  (func $count (param i32 i32) (result i32) (local i32)
    (local.set 2 (i32.add (local.get 2) (i32.const 1)))
    (if (i32.eqz (local.get 0)) (then (return (i32.add (local.get 1) (local.get 2)))))
    (return_call $count (i32.sub (local.get 0) (i32.const 1)) (i32.add (local.get 1) (local.get 2)))))
