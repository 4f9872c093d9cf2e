;; Copies an element from the table of `b` to that of `a`.
(module
  (import "a" "t" (table $a 8 funcref)) (import "b" "t" (table $b 8 funcref))
  (func (export "copy") (table.copy $a $b (i32.const 2) (i32.const 2) (i32.const 1))))
