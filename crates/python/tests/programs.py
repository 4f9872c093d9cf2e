"""Programs that the tests run."""

# Prints what it reads, up to 64 KiB. A record that begins with `x` traps, one with `e` prints itself on stderr and exits with 3, one with
# `l` never ends, one with `b` prints a byte that is no UTF-8.
ECHO = rb"""
(module
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 2)
    (data (i32.const 0) "\40\00\00\00\00\00\01\00")
    (func (export "_start") (local $first i32)
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 4)))
        (local.set $first (i32.load8_u (i32.const 64)))
        (if (i32.eq (local.get $first) (i32.const 120)) (then unreachable))
        (if (i32.eq (local.get $first) (i32.const 108)) (then (loop $again (br $again))))
        (if (i32.eq (local.get $first) (i32.const 98)) (then (i32.store8 (i32.const 64) (i32.const 255))))
        (if (i32.eq (local.get $first) (i32.const 101))
            (then
                (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
                (call $exit (i32.const 3))))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
"""

FUNCTIONS = rb"""
(module
    (memory (export "memory") 1)
    (func (export "divide") (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1)))
    (func (export "both") (param i64) (result i64 f32)
        (i64.sub (i64.const 0) (local.get 0)) (f32.convert_i64_s (local.get 0)))
    (func (export "half") (param f32) (result f64) (f64.promote_f32 (f32.div (local.get 0) (f32.const 2))))
    (func (export "same") (param i64) (result i64) (local.get 0))
    (func (export "is_even") (param i32) (result i32) (i32.eqz (i32.and (local.get 0) (i32.const 1))))
    (func (export "nothing"))
    (func (export "check") (param i32) (if (i32.eqz (local.get 0)) (then unreachable)))
    (func (export "for_ever") (param i32) (result i32) (loop $again (br $again)) unreachable))
"""

RUST = r"""
use std::io::{Read, Write};

fn main() {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).unwrap();
    let args: Vec<String> = std::env::args().collect();
    println!("{args:?} {:?} {:?} {input:?}", std::env::var("COLOUR").ok(), std::env::var("HOME").ok());
    if let Ok(text) = std::fs::read_to_string("/data/in.txt") {
        println!("{}", text.trim());
        let written = std::fs::write("/data/out.txt", "from the guest");
        println!("{}", written.is_ok());
    }
    std::io::stderr().write_all(b"done\n").unwrap();
}
"""
