;; A loop with stores; `explained.printed` is how its function is shown.
(module
  (memory 1)
  (func (export "_start") (local i32)
    (block (loop (br_if 1 (i32.gt_u (local.get 0) (i32.const 9)))
      (i32.store offset=8 align=2 (local.get 0) (i32.const -1))
      (local.set 0 (i32.add (local.get 0) (i32.const 4)))
      (br 0)))
    (f64.store (i32.const 0) (f64.const 0.5))))
