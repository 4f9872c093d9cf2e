;; Its start function sets the global of another module, then traps.
(module
  (import "a" "g" (global $g (mut i32)))
  (func $start (global.set $g (i32.const 2)) unreachable) (start $start))
