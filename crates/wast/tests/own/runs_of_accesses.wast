;; Accesses that follow each other share one test (crates/ptx/src/analysis/runs.rs): a trap still comes at the access that fails,
;; with everything before it done and nothing behind it, and misaligned accesses among aligned ones are right.

(module
  (memory 1 2)
  (func (export "three") (param $a i32) (param $b i32) (param $c i32)
    (i32.store (local.get $a) (i32.const 1))
    (i32.store (local.get $b) (i32.const 2))
    (i32.store (local.get $c) (i32.const 3)))
  (func (export "sum") (param $a i32) (param $b i32) (result i32)
    (i32.add
      (i32.add (i32.load (local.get $a)) (i32.load offset=4 (local.get $b)))
      (i32.add (i32.load8_u offset=1 (local.get $a)) (i32.load16_u offset=2 (local.get $b)))))
  (func (export "swap") (param $a i32) (param $b i32) (local $t i64)
    (local.set $t (i64.load (local.get $a)))
    (i64.store (local.get $a) (i64.load (local.get $b)))
    (i64.store (local.get $b) (local.get $t)))
  (func (export "divided") (param $a i32) (param $by i32)
    (i32.store (local.get $a) (i32.const 9))
    (i32.store offset=4 (local.get $a) (i32.div_u (i32.const 7) (local.get $by))))
  (func (export "grow_between") (param $a i32) (param $b i32) (result i32)
    (i32.store (local.get $a) (i32.const 5))
    (drop (memory.grow (i32.const 1)))
    (i32.store (local.get $b) (i32.const 6))
    (i32.add (i32.load (local.get $a)) (i32.load (local.get $b))))
  (func (export "at") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "wide") (param i32) (result i64) (i64.load (local.get 0)))
  (func (export "put") (param i32 i64) (i64.store (local.get 0) (local.get 1))))

;; The second of three stores is out of bounds, just beyond the end or far away.
(assert_trap (invoke "three" (i32.const 0) (i32.const 65533) (i32.const 8)) "out of bounds memory access")
(assert_return (invoke "at" (i32.const 0)) (i32.const 1))
(assert_return (invoke "at" (i32.const 8)) (i32.const 0))
(assert_trap (invoke "three" (i32.const 16) (i32.const -1) (i32.const 24)) "out of bounds memory access")
(assert_return (invoke "at" (i32.const 16)) (i32.const 1))
(assert_return (invoke "at" (i32.const 24)) (i32.const 0))

;; The last bytes of the memory, and stores that overlap.
(assert_return (invoke "three" (i32.const 65532) (i32.const 32) (i32.const 36)))
(assert_return (invoke "at" (i32.const 65532)) (i32.const 1))
(assert_return (invoke "at" (i32.const 36)) (i32.const 3))
(assert_return (invoke "three" (i32.const 48) (i32.const 49) (i32.const 50)))
(assert_return (invoke "wide" (i32.const 48)) (i64.const 0x0000000000030201))

(assert_return (invoke "put" (i32.const 64) (i64.const 0x1122334455667788)))
(assert_return (invoke "put" (i32.const 72) (i64.const 0x0102030405060708)))
(assert_return (invoke "sum" (i32.const 64) (i32.const 72)) (i32.const 0x5668_8009))
(assert_return (invoke "sum" (i32.const 65) (i32.const 73)) (i32.const 0x4456_6ce5))
(assert_trap (invoke "sum" (i32.const 64) (i32.const 65530)) "out of bounds memory access")

(assert_return (invoke "swap" (i32.const 64) (i32.const 72)))
(assert_return (invoke "wide" (i32.const 64)) (i64.const 0x0102030405060708))
(assert_return (invoke "wide" (i32.const 72)) (i64.const 0x1122334455667788))
(assert_trap (invoke "swap" (i32.const 64) (i32.const 65529)) "out of bounds memory access")
(assert_return (invoke "wide" (i32.const 64)) (i64.const 0x0102030405060708))

(assert_trap (invoke "divided" (i32.const 80) (i32.const 0)) "integer divide by zero")
(assert_return (invoke "at" (i32.const 80)) (i32.const 9))
(assert_return (invoke "divided" (i32.const 82) (i32.const 2)))
(assert_return (invoke "at" (i32.const 86)) (i32.const 3))
(assert_trap (invoke "divided" (i32.const -8) (i32.const 0)) "out of bounds memory access")
(assert_trap (invoke "divided" (i32.const 65532) (i32.const 0)) "integer divide by zero")
(assert_trap (invoke "divided" (i32.const 65532) (i32.const 1)) "out of bounds memory access")

(assert_return (invoke "grow_between" (i32.const 65532) (i32.const 65536)) (i32.const 11))
