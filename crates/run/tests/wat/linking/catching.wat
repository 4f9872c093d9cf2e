;; Catches what `throwing.wat` throws, also after it was thrown again.
(module
  (import "a" "t" (tag $t (param i32 f64))) (import "a" "throw" (func $throw (param i32)))
  (func (export "catch") (param i32) (result i32)
    (block $h (result i32 f64) (try_table (catch $t $h) (call $throw (local.get 0))) (unreachable))
    (i32.trunc_f64_s (f64.mul (f64.const 2))) (i32.add))
  (func $again (param i32) (local $e exnref)
    (local.set $e (block $h (result exnref) (try_table (catch_all_ref $h) (call $throw (local.get 0))) (return)))
    (throw_ref (local.get $e)))
  (func (export "twice") (param i32) (result i32)
    (block $h (result i32 f64) (try_table (catch $t $h) (call $again (local.get 0))) (unreachable)) (drop)))
