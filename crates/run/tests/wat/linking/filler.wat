;; Puts a function that gives a number into the table that another module exports.
(module
  (import "from" "t" (table 8 funcref)) (type (func (param i64))) (type $f (func (result i32)))
  (global $g i32 (i32.const 11 (; value ;))) (func $f (type $f) (global.get $g)) (elem (i32.const 1 (; at ;)) $f)
  (func (export "call") (param i32) (result i32) (call_indirect (type $f) (local.get 0))))
