"""Small programs for trying things out, as WebAssembly text. Real ones are made by a compiler."""

__all__ = ["HELLO", "MEAN", "UPPER"]

#: Prints `hello`.
HELLO = rb"""
(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "\08\00\00\00\06\00\00\00hello\n")
    (func (export "_start") (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))
"""

#: Prints what it reads, up to 64 KiB, with ASCII letters in upper case.
UPPER = rb"""
(module
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 2)
    (data (i32.const 0) "\40\00\00\00\00\00\01\00")
    (func (export "_start") (local $at i32) (local $byte i32)
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 4)))
        (local.set $at (i32.const 64))
        (block $done
            (loop $next
                (br_if $done (i32.ge_u (local.get $at) (i32.add (i32.load (i32.const 4)) (i32.const 64))))
                (local.set $byte (i32.load8_u (local.get $at)))
                (if (i32.lt_u (i32.sub (local.get $byte) (i32.const 97)) (i32.const 26))
                    (then (i32.store8 (local.get $at) (i32.sub (local.get $byte) (i32.const 32)))))
                (local.set $at (i32.add (local.get $at) (i32.const 1)))
                (br $next)))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
"""

#: Exports `mean`, a function of two floats.
MEAN = rb"""
(module (func (export "mean") (param f64 f64) (result f64)
    (f64.div (f64.add (local.get 0) (local.get 1)) (f64.const 2))))
"""
