;; Calls functions that take and return text and bytes.
(module
    (import "host" "length" (func $length (param i32 i32) (result i64)))
    (import "host" "reversed" (func $reversed (param i32 i32 i32 i32) (result i32)))
    (import "host" "joined" (func $joined (param i32 i32 i64 i32 i32 f64 i32 i32) (result i32)))
    (memory (export "memory") 40)
    (data (i32.const 16) "gpu")
    (data (i32.const 32) "run")
    ;; The length of `count` bytes at `at`, as the host counts them.
    (func (export "length") (param $at i32) (param $count i32) (result i64)
        (call $length (local.get $at) (local.get $count)))
    ;; Reverses `count` bytes at `at` into `to`, which has room for `room`.
    (func (export "reversed") (param $at i32) (param $count i32) (param $to i32) (param $room i32) (result i32)
        (call $reversed (local.get $at) (local.get $count) (local.get $to) (local.get $room)))
    (func (export "joined") (param $to i32) (result i32)
        (call $joined
            (i32.const 16) (i32.const 3) (i64.const -7) (i32.const 32) (i32.const 3) (f64.const 1.5)
            (local.get $to) (i32.const 100))))
