;; Makes a reference to another exception of the same tag.
(module
  (import "a" "t" (tag $t (param i32)))
  (func (export "other") (drop (block $h (result exnref)
    (try_table (result exnref) (catch_all_ref $h) (throw $t (i32.const 8)))))))
