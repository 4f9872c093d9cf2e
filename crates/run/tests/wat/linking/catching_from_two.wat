;; Counts how many of two imported functions throw the tag of `a`.
(module
  (import "b" "throw" (func $b)) (import "c" "throw" (func $c)) (import "a" "t" (tag $t))
  (func (export "count") (result i32)
    (block $h (try_table (catch $t $h) (call $b)) (return (i32.const 0)))
    (block $h (try_table (catch $t $h) (call $c)) (return (i32.const 1))) (i32.const 2)))
