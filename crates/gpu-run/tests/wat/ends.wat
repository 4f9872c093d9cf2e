;; Ends in every way.
(module
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (import "host" "fail" (func $fail))
    (import "host" "panic" (func $panic))
    (global $calls (export "calls") (mut i32) (i32.const 0))
    (memory (export "memory") 1)
    (func $count (global.set $calls (i32.add (global.get $calls) (i32.const 1))))
    (func (export "returns") (call $count))
    (func (export "traps") (call $count) unreachable)
    (func (export "exits") (call $count) (call $exit (i32.const 7)))
    (func (export "never") (loop $again (br $again)))
    (func (export "fails") (call $count) (call $fail) (call $count))
    (func (export "panics") (call $panic)))
