//! Measures what a gang's operations cost on a device: barriers, votes, shuffles, atomics, calls, launches.
//!
//! `cargo run --release --example gang-cost -- [cpu|cuda:0|ptx] [threads] [groups] [operation]`
#![allow(clippy::unwrap_used)]

use gpu_run_cache::Cache;
use gpu_run_compiler::Compiler;
use gpu_run_gang::{Gang, GangOptions, GangProgram};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Each entry makes its operation this many times in a row.
const ROUNDS: u32 = 1000;

fn module() -> String {
    let cases = [
        ("nothing", ""),
        ("barrier", "(call $barrier)"),
        ("ballot", "(local.set $x (call $ballot (local.get $x)))"),
        ("shuffle", "(local.set $x (call $shuffle_xor (local.get $x) (i32.const 5)))"),
        ("load", "(local.set $x (i32.load (i32.and (local.get $x) (i32.const 4092))))"),
        ("store", "(i32.store (local.get $own) (local.get $x))"),
        ("atomic_add", "(local.set $x (i32.atomic.rmw.add (local.get $own) (i32.const 1)))"),
        ("contended", "(local.set $x (i32.atomic.rmw.add (i32.const 0) (i32.const 1)))"),
        ("local_add", "(local.set $x (call $local_add (i32.const 64) (i32.const 1)))"),
        ("fence", "(call $fence)"),
        ("frame", "(local.set $x (call $framed (local.get $x)))"),
        ("bus_load", "(local.set $x (i32.wrap_i64 (call $bus_load (i32.const 0))))"),
        ("sleep", "(call $sleep (i32.const 100))"),
    ];
    let mut text = String::from(
        r#"(module
  (import "gpu" "thread" (func $thread (result i32)))
  (import "gpu" "barrier" (func $barrier))
  (import "gpu" "ballot" (func $ballot (param i32) (result i32)))
  (import "gpu" "shuffle_xor" (func $shuffle_xor (param i32 i32) (result i32)))
  (import "gpu" "local_add" (func $local_add (param i32 i32) (result i32)))
  (import "gpu" "bus_load" (func $bus_load (param i32) (result i64)))
  (import "gpu" "sleep" (func $sleep (param i32)))
  (import "gpu" "fence" (func $fence))
  (global $sp (mut i32) (i32.const 0))
  (memory 2)
  (func $leaf (param i32) (i32.store (local.get 0) (i32.const 3)))
  (func $framed (param i32) (result i32) (local $f i32)
    (global.set $sp (local.tee $f (i32.sub (global.get $sp) (i32.const 16))))
    (call $leaf (local.get $f))
    (i32.store offset=4 (local.get $f) (local.get 0))
    (local.set 0 (i32.add (i32.load (local.get $f)) (i32.load offset=4 (local.get $f))))
    (global.set $sp (i32.add (local.get $f) (i32.const 16)))
    (local.get 0))
  (func (export "empty"))"#,
    );
    for (name, operation) in cases {
        text += &format!(
            r#"(func (export "{name}") (local $i i32) (local $x i32) (local $own i32)
  (local.set $own (i32.add (i32.const 65536) (i32.mul (i32.const 4) (call $thread))))
  (loop $again {operation} (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $again (i32.lt_u (local.get $i) (i32.const {ROUNDS}))))
  (i32.store (i32.const 128) (local.get $x)))"#
        );
    }
    text + ")"
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, usual| args.get(i).map_or(usual, |text| text.parse().unwrap());
    if args.first().is_some_and(|first| first == "ptx") {
        let options = GangOptions { relaxed: true, image_bytes: 2 << 16, ..GangOptions::default() };
        println!("{}", options.ptx(&wat::parse_str(module()).unwrap()).unwrap());
        return;
    }
    let device = gpu_run_device::open(args.first().map_or("cpu", String::as_str)).unwrap();
    let wasm = Arc::new(wat::parse_str(module()).unwrap());
    let (threads, groups) = (number(1, 1024), number(2, 1));
    println!("{}, {groups} x {threads} threads", device.properties().name);
    let only = args.get(3);
    for relaxed in [true, false] {
        let options =
            GangOptions { threads, groups, stack_bytes: 1024, image_bytes: 2 << 16, bus_bytes: 4096, relaxed };
        let compiler = Compiler::new(Cache::off("figures"));
        let program = GangProgram::compile(&compiler, &device, wasm.clone(), &options, "cost").unwrap();
        let mut gang = Gang::new(program.clone()).unwrap();
        let mut time = |entry: &str| {
            let mut best = Duration::MAX;
            for _ in 0..5 {
                let began = Instant::now();
                gang.launch(entry).unwrap().wait().unwrap().unwrap();
                best = best.min(began.elapsed());
            }
            best
        };
        let empty = time("empty");
        println!("relaxed {relaxed}: a launch and its end {empty:?}");
        for entry in program.entries().filter(|entry| *entry != "empty" && only.is_none_or(|only| only == entry)) {
            let took = time(entry).saturating_sub(empty);
            println!("{entry:12} {:10.1} ns a round", took.as_nanos() as f64 / f64::from(ROUNDS));
        }
    }
}
