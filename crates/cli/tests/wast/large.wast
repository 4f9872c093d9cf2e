;; A memory that grows by 800 pages, and calls 300 deep: what the suite asks for.
(module (memory 1)
  (func (export "grow") (result i32) (memory.grow (i32.const 800)))
  (func $down (export "down") (param i64) (result i64)
    (if (result i64) (i64.eqz (local.get 0)) (then (i64.const 7))
      (else (i64.add (i64.const 1) (call $down (i64.sub (local.get 0) (i64.const 1))))))))
(assert_return (invoke "grow") (i32.const 1))
(assert_return (invoke "down" (i64.const 300)) (i64.const 307))
