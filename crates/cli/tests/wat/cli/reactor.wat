;; Its number is 42 once it is initialized.
(module
  (global $n (mut i32) (i32.const 1))
  (func (export "get") (result i32) (global.get $n))
  (func $i (export "_initialize") (global.set $n (i32.add (global.get $n) (i32.const 41)))))
