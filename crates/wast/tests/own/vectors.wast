;; What the suite does not ask of vectors.

(module
  (memory (export "memory") 1 1)
  (global $g (mut v128) (v128.const i64x2 1 2))
  (func (export "store") (param i32 v128) (v128.store align=1 (local.get 0) (local.get 1)))
  (func (export "store_far") (param i32 v128) (v128.store offset=0x7ffffff8 (local.get 0) (local.get 1)))
  (func (export "load_far") (param i32) (result v128) (v128.load offset=0x7ffffff8 (local.get 0)))
  (func (export "last") (result i64) (i64.load (i32.const 65528)))

  ;; Words of a vector change places around a loop.
  (func (export "turn") (param v128 i32) (result v128)
    (loop $again (result v128)
      (local.set 0 (i8x16.shuffle 4 5 6 7 8 9 10 11 12 13 14 15 0 1 2 3 (local.get 0) (local.get 0)))
      (local.set 0 (i32x4.replace_lane 0 (local.get 0) (i32x4.extract_lane 0 (local.get 0))))
      (local.set 1 (i32.sub (local.get 1) (i32.const 1)))
      (br_if $again (local.get 1))
      (local.get 0)))
  ;; Two vectors change places, and so do their halves.
  (func (export "swap") (param $a v128) (param $b v128) (param $n i32) (result v128 v128)
    (local $t v128)
    (loop $again
      (local.set $t (i64x2.replace_lane 0 (local.get $a) (i64x2.extract_lane 1 (local.get $a))))
      (local.set $t (i64x2.replace_lane 1 (local.get $t) (i64x2.extract_lane 0 (local.get $a))))
      (local.set $a (local.get $b))
      (local.set $b (local.get $t))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $a) (local.get $b))

  ;; A NaN that was computed in 64 bits, as two numbers of 32.
  (func (export "other_type") (param v128) (result v128)
    (f32x4.add (f64x2.mul (local.get 0) (local.get 0)) (v128.const f32x4 0 0 0 0)))

  (func $many (param i32 v128 f64 v128 i64) (result v128 i32 v128)
    (i64x2.add (local.get 1) (local.get 3)) (local.get 0) (i64x2.splat (local.get 4)))
  (table funcref (elem $many))
  (func (export "call") (param v128) (result v128 i32 v128)
    (call_indirect (param i32 v128 f64 v128 i64) (result v128 i32 v128)
      (i32.const 7) (local.get 0) (f64.const 1) (global.get $g) (i64.const -1) (i32.const 0)))
  (func (export "select") (param v128 i32) (result v128)
    (global.set $g (select (local.get 0) (global.get $g) (local.get 1))) (global.get $g)))

;; A store that reaches beyond the end writes nothing.
(assert_return (invoke "store" (i32.const 65520) (v128.const i64x2 5 6)))
(assert_trap (invoke "store" (i32.const 65521) (v128.const i64x2 7 8)) "out of bounds memory access")
(assert_trap (invoke "store" (i32.const 65527) (v128.const i64x2 7 8)) "out of bounds memory access")
(assert_trap (invoke "store" (i32.const 65535) (v128.const i64x2 7 8)) "out of bounds memory access")
(assert_trap (invoke "store" (i32.const -8) (v128.const i64x2 7 8)) "out of bounds memory access")
(assert_return (invoke "last") (i64.const 6))
(assert_trap (invoke "store_far" (i32.const 0) (v128.const i64x2 7 8)) "out of bounds memory access")
(assert_trap (invoke "store_far" (i32.const 0x7ffffff8) (v128.const i64x2 7 8)) "out of bounds memory access")
(assert_trap (invoke "load_far" (i32.const 0x80000008)) "out of bounds memory access")

(assert_return (invoke "turn" (v128.const i32x4 1 2 3 4) (i32.const 1)) (v128.const i32x4 2 3 4 1))
(assert_return (invoke "turn" (v128.const i32x4 1 2 3 4) (i32.const 3)) (v128.const i32x4 4 1 2 3))
(assert_return (invoke "swap" (v128.const i64x2 1 2) (v128.const i64x2 3 4) (i32.const 1))
  (v128.const i64x2 3 4) (v128.const i64x2 2 1))
(assert_return (invoke "swap" (v128.const i64x2 1 2) (v128.const i64x2 3 4) (i32.const 2))
  (v128.const i64x2 2 1) (v128.const i64x2 4 3))
(assert_return (invoke "other_type" (v128.const i64x2 0x7ff0000000000001 0xfff8000000000123))
  (v128.const i32x4 0 0x7fc00000 0 0x7fc00000))
(assert_return (invoke "call" (v128.const i64x2 10 20)) (v128.const i64x2 11 22) (i32.const 7) (v128.const i64x2 -1 -1))
(assert_return (invoke "select" (v128.const i64x2 8 9) (i32.const 0)) (v128.const i64x2 1 2))
(assert_return (invoke "select" (v128.const i64x2 8 9) (i32.const 1)) (v128.const i64x2 8 9))
