;; Keeps a reference to an exception, and throws it again.
(module
  (tag $t (export "t") (param i32)) (global $kept (export "kept") (mut exnref) (ref.null exn))
  (func (export "keep") (param i32)
    (global.set $kept (block $h (result exnref)
      (try_table (result exnref) (catch_all_ref $h) (throw $t (local.get 0))))))
  (func (export "again") (result i32) (block $h (result i32)
    (try_table (result i32) (catch $t $h) (throw_ref (global.get $kept))))))
