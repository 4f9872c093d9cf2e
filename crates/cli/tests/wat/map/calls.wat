;; Functions of numbers, for `map --invoke`.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (global $calls (mut i32) (i32.const 0))
  (global $is_set_up (mut i32) (i32.const 0))
  (data (i32.const 64) "odd: ")
  (data (i32.const 80) "it went wrong\n")
  (func (export "_initialize") (global.set $is_set_up (i32.const 1)))
  (func $write (param $fd i32) (param $at i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
  ;; Division traps by zero and on overflow, truncation for NaN and what is too large.
  (func (export "mixed") (param i32 i64 f32 f64) (result f64)
    (f64.add
      (f64.convert_i32_s (i32.div_s (i32.const 1000) (local.get 0)))
      (f64.add
        (f64.convert_i64_s (i64.div_s (local.get 1) (i64.const -1)))
        (f64.add (f64.convert_i32_s (i32.trunc_f32_s (local.get 2))) (f64.sqrt (local.get 3))))))
  (func (export "same") (param i32 i64 f32 f64) (result i32 i64 f32 f64)
    (local.get 0) (local.get 1) (local.get 2) (local.get 3))
  (func (export "halved") (param f32) (result f32) (f32.div (local.get 0) (f32.const 2)))
  (func (export "square") (param i64) (result i64) (i64.mul (local.get 0) (local.get 0)))
  (func (export "three") (result i32) (i32.const 3))
  (func (export "nothing") (param i32))
  (func (export "vector") (param v128) (result v128) (local.get 0))
  ;; The number of the call among those of its instance.
  (func (export "count") (param i32) (result i32)
    (global.set $calls (i32.add (global.get $calls) (global.get $is_set_up)))
    (global.get $calls))
  ;; 10 times the parameter. It traps for multiples of 1000, exits for those plus 1 (with 3) and 2 (with 0).
  (func (export "moody") (param $x i32) (result i32) (local $rest i32)
    (local.set $rest (i32.rem_u (local.get $x) (i32.const 1000)))
    (if (i32.eqz (local.get $rest)) (then
      (call $write (i32.const 2) (i32.const 80) (i32.const 14))
      unreachable))
    (if (i32.eq (local.get $rest) (i32.const 1)) (then (call $proc_exit (i32.const 3))))
    (if (i32.eq (local.get $rest) (i32.const 2)) (then (call $proc_exit (i32.const 0))))
    (i32.mul (local.get $x) (i32.const 10)))
  ;; Says that odd numbers are odd.
  (func (export "chatty") (param i32) (result i32)
    (if (i32.and (local.get 0) (i32.const 1)) (then (call $write (i32.const 1) (i32.const 64) (i32.const 5))))
    (local.get 0))
  ;; Does not end for 77.
  (func (export "slow") (param i32) (result i32)
    (loop $again (br_if $again (i32.eq (local.get 0) (i32.const 77))))
    (local.get 0)))
