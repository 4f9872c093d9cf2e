;; Throws a tag that it exports, or another one.
(module
  (tag $t (export "t") (param i32 f64)) (tag $other)
  (func (export "throw") (param i32) (if (local.get 0) (then (throw $t (local.get 0) (f64.const 0.5))))
    (throw $other)))
