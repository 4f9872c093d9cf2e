;; What the suite does not ask of atomic accesses.

(module
  (memory 1 1 shared)
  (func (export "put") (param i32 i64) (i64.store (local.get 0) (local.get 1)))
  (func (export "get") (param i32) (result i64) (i64.load (local.get 0)))
  (func (export "add8") (param i32 i32) (result i32) (i32.atomic.rmw8.add_u offset=3 (local.get 0) (local.get 1)))
  (func (export "swap16") (param i32 i64 i64) (result i64)
    (i64.atomic.rmw16.cmpxchg_u offset=2 (local.get 0) (local.get 1) (local.get 2)))
  (func (export "load") (param i32) (result i64) (i64.atomic.load offset=65528 (local.get 0)))
  (func (export "far") (param i32) (result i64) (i64.atomic.load offset=0xfffffff8 (local.get 0)))
  (func (export "wait32") (param i32 i32 i64) (result i32) (memory.atomic.wait32 (local.get 0) (local.get 1) (local.get 2)))
  (func (export "wait64") (param i32 i64 i64) (result i32) (memory.atomic.wait64 (local.get 0) (local.get 1) (local.get 2)))
  (func (export "notify") (param i32 i32) (result i32) (memory.atomic.notify (local.get 0) (local.get 1))))

;; A narrow access leaves the bytes around it.
(assert_return (invoke "put" (i32.const 0) (i64.const 0x1122334455667788)))
(assert_return (invoke "add8" (i32.const 0) (i32.const 0xffffff01)) (i32.const 0x55))
(assert_return (invoke "add8" (i32.const 1) (i32.const 0xff)) (i32.const 0x44))
(assert_return (invoke "get" (i32.const 0)) (i64.const 0x1122334356667788))
(assert_return (invoke "swap16" (i32.const 4) (i64.const 0x1122) (i64.const 0xabcdef)) (i64.const 0x1122))
(assert_return (invoke "swap16" (i32.const 4) (i64.const 0x1122) (i64.const 0)) (i64.const 0xcdef))
(assert_return (invoke "get" (i32.const 0)) (i64.const 0xcdef334356667788))

;; Alignment first, then bounds.
(assert_return (invoke "load" (i32.const 0)) (i64.const 0))
(assert_trap (invoke "load" (i32.const 8)) "out of bounds memory access")
(assert_trap (invoke "load" (i32.const 9)) "unaligned atomic")
(assert_trap (invoke "far" (i32.const 8)) "out of bounds memory access")
(assert_trap (invoke "far" (i32.const -1)) "unaligned atomic")

;; A wait that nobody ends is over when its time is.
(assert_return (invoke "wait32" (i32.const 64) (i32.const 0) (i64.const 2000000)) (i32.const 2))
(assert_return (invoke "wait64" (i32.const 64) (i64.const 0) (i64.const 0)) (i32.const 2))
(assert_return (invoke "wait32" (i32.const 64) (i32.const 1) (i64.const -1)) (i32.const 1))
(assert_trap (invoke "wait32" (i32.const 65) (i32.const 0) (i64.const 0)) "unaligned atomic")
(assert_trap (invoke "wait64" (i32.const 65536) (i64.const 0) (i64.const 0)) "out of bounds memory access")
(assert_return (invoke "notify" (i32.const 64) (i32.const -1)) (i32.const 0))
(assert_trap (invoke "notify" (i32.const 65536) (i32.const 0)) "out of bounds memory access")
(assert_trap (invoke "notify" (i32.const 66) (i32.const 0)) "unaligned atomic")

(module
  (memory 1 1)
  (func (export "wait") (param i32) (result i32) (memory.atomic.wait32 (local.get 0) (i32.const 1) (i64.const 0)))
  (func (export "notify") (param i32) (result i32) (memory.atomic.notify (local.get 0) (i32.const 1)))
  (func (export "add") (param i32 i64) (result i64) (i64.atomic.rmw.add (local.get 0) (local.get 1))))
(assert_trap (invoke "wait" (i32.const 0)) "expected shared memory")
(assert_trap (invoke "wait" (i32.const 65536)) "out of bounds memory access")
(assert_return (invoke "notify" (i32.const 0)) (i32.const 0))
(assert_trap (invoke "notify" (i32.const 65536)) "out of bounds memory access")
(assert_return (invoke "add" (i32.const 65528) (i64.const -1)) (i64.const 0))
(assert_return (invoke "add" (i32.const 65528) (i64.const 0)) (i64.const -1))

;; Alignment first, however far a 64-bit address reaches.
(module
  (memory i64 1 1)
  (func (export "far") (param i64) (result i64) (i64.atomic.load offset=2483259960793016099 (local.get 0)))
  (func (export "near") (param i64) (result i32) (i32.atomic.load offset=3 (local.get 0))))
(assert_trap (invoke "far" (i64.const 0)) "unaligned atomic")
(assert_trap (invoke "far" (i64.const 5)) "out of bounds memory access")
(assert_trap (invoke "near" (i64.const 0x100000000)) "unaligned atomic")
(assert_trap (invoke "near" (i64.const 0x100000001)) "out of bounds memory access")
(assert_return (invoke "near" (i64.const 1)) (i32.const 0))

;; Of an address that is none at all and misaligned, wait and notify say the former, as other engines do.
(module
  (memory 1 1 shared)
  (func (export "wait") (param i32) (result i32)
    (memory.atomic.wait32 offset=56020 (local.get 0) (i32.const 1) (i64.const 0)))
  (func (export "notify") (param i32) (result i32) (memory.atomic.notify offset=56020 (local.get 0) (i32.const 1))))
(assert_trap (invoke "wait" (i32.const -1)) "out of bounds memory access")
(assert_trap (invoke "notify" (i32.const -1)) "out of bounds memory access")
(assert_trap (invoke "notify" (i32.const 1)) "unaligned atomic")
(assert_return (invoke "notify" (i32.const 0)) (i32.const 0))
