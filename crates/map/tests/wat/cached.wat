;; A function with a table, data, a loop and a trap: everything that is kept of a program.
(module
  (memory 1) (data (i32.const 8) "\05\00\00\00") (global $g (mut i32) (i32.const 1000))
  (table 2 funcref) (elem (i32.const 1) $double) (type $t (func (param i32) (result i32)))
  (func $double (type $t) (i32.add (local.get 0) (local.get 0)))
  (func (export "f") (param i32) (result i32)
    (if (i32.eqz (local.get 0)) (then unreachable))
    (i32.add (global.get $g)
      (i32.add (i32.load (i32.const 8)) (call_indirect (type $t) (local.get 0) (i32.const 1))))))
