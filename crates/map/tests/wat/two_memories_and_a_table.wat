;; Grows two memories and a table; bit n says that the n-th could not grow.
(module (memory $a 1) (memory $b 1) (table $t 8 100000 funcref)
  (func (export "f") (param i32 i32 i32) (result i32)
    (i32.or (i32.or (i32.lt_s (memory.grow $a (local.get 0)) (i32.const 0))
      (i32.shl (i32.lt_s (memory.grow $b (local.get 1)) (i32.const 0)) (i32.const 1)))
      (i32.shl (i32.lt_s (table.grow $t (ref.null func) (local.get 2)) (i32.const 0)) (i32.const 2)))))
