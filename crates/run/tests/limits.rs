//! What bounds a guest: compiling is linear in the size of the module, and everything that runs can be stopped.
#![allow(clippy::unwrap_used)]

use gpu_run_abi::{Layout, TrapCode};
use gpu_run_compiler::{Build, CompileOptions, Compiled, Entry, Error, Program, Value};
use gpu_run_run::{End, RunOptions};
use gpu_run_wasi::{Builder, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn options(layout: Layout) -> CompileOptions {
    CompileOptions::new(Build::Exact(layout), Entry::Function("f".into()))
}

fn run(text: &str, layout: Layout, deadline: Option<Duration>) -> (End, Vec<Value>) {
    let wasm = wat::parse_str(text).unwrap();
    let compiled = Compiled::new(&wasm, &options(layout)).unwrap();
    let program = Arc::new(Program::load(gpu_run_device::cpu::open(), Arc::new(compiled)).unwrap());
    let deadline = deadline.map(|after| Instant::now() + after);
    let options = RunOptions { deadline, ..RunOptions::default() };
    let (mut outcomes, _) =
        gpu_run_run::run(&program, "f", &[], vec![Builder::new().build(Stdio::null())], &options).unwrap();
    let outcome = outcomes.remove(0);
    (outcome.end, outcome.results)
}

/// It would run for years, and ends soon. Nothing here looks at the clock: what does not stop hangs.
#[track_caller]
fn stops(text: &str) {
    for layout in [Layout::Linear, Layout::Interleaved] {
        let (end, _) = run(text, layout, Some(Duration::from_millis(50)));
        assert!(matches!(&end, End::Trapped(trap) if trap.code == TrapCode::Interrupted), "{layout:?}: {end:?}");
    }
}

/// Functions 0 to `depth`, each of which does `twice` with the next one's number.
fn tree(depth: u32, leaf: &str, twice: impl Fn(u32) -> String) -> String {
    let functions: String = (0..depth).map(|n| format!("(func $f{n} {})", twice(n + 1))).collect();
    format!("(global $g (mut i32) (i32.const 0)) {functions} (func $f{depth} {leaf}) (func (export \"f\") (call $f0))")
}

const COUNT: &str = "(global.set $g (i32.add (global.get $g) (i32.const 1)))";

#[test]
fn a_tree_of_calls_without_a_loop_stops() {
    stops(&format!("(module {})", tree(64, COUNT, |n| format!("(call $f{n}) (call $f{n})"))));
}

/// A GPU takes half a microsecond for a call: what a processor does in no time takes it seconds.
#[test]
fn a_million_calls_are_not_made_without_a_look_at_the_stop_word() {
    let looks = |depth| {
        let text = format!("(module {})", tree(depth, COUNT, |n| format!("(call $f{n}) (call $f{n})")));
        let compiled = Compiled::new(&wat::parse_str(text).unwrap(), &options(Layout::Interleaved)).unwrap();
        compiled.ptx().matches("L1::no_allocate").count()
    };
    assert!(looks(20) > looks(10), "{} looks", looks(20));
}

#[test]
fn a_tree_of_calls_in_branches_not_taken_together_stops() {
    let calls = |n| {
        let call = format!("(if (i32.eqz (global.get $never)) (then (call $f{n})))");
        format!("(if (global.get $never) (then (call $f{n}) (call $f{n}) (call $f{n}))) {call} {call}")
    };
    stops(&format!("(module (global $never (mut i32) (i32.const 0)) {})", tree(64, COUNT, calls)));
}

#[test]
fn a_tree_of_calls_through_a_table_stops() {
    let tree = tree(64, COUNT, |n| format!("(call_indirect (i32.const {n})) (call_indirect (i32.const {n}))"));
    let names: String = (0..=64).map(|n| format!("$f{n} ")).collect();
    stops(&format!("(module (table funcref (elem {names})) {tree})"));
}

#[test]
fn short_loops_in_functions_that_short_loops_call_stop() {
    let rounds = |n| {
        format!(
            "(local $i i32) (loop $again (call $f{n})
               (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 4000))))"
        )
    };
    stops(&format!("(module {})", tree(12, COUNT, rounds)));
}

#[test]
fn a_recursion_that_does_much_at_each_level_stops() {
    stops(&format!(
        "(module {} (func $deep (param i32)
           (if (local.get 0) (then (call $deep (i32.sub (local.get 0) (i32.const 1)))))
           (call $f0))
         (func (export \"g\") (call $deep (i32.const 1000))))",
        tree(64, COUNT, |n| format!("(call $f{n}) (call $f{n})"))
            .replace("(call $f0))", "(call $deep (i32.const 1000)))")
    ));
}

#[test]
fn a_recursion_that_does_much_when_it_comes_back_stops() {
    let rounds = "(local $i i32) (loop $again (call $leaf)
        (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 4000))))";
    let leaf = COUNT.repeat(1000);
    // Straight code, a call, and a loop: with a stack of 2,000 calls each is hours if nobody looks.
    for work in ["(call $rounds)", "(call $leaf) (call $rounds)", rounds.trim_start_matches("(local $i i32)")] {
        stops(&format!(
            "(module (global $g (mut i32) (i32.const 0)) (func $leaf {leaf}) (func $rounds {rounds})
               (func $deep (param i32) (local $i i32)
                 (if (local.get 0) (then (call $deep (i32.sub (local.get 0) (i32.const 1))))) {work})
               (func (export \"f\") (call $deep (i32.const 2000))))"
        ));
    }
}

#[test]
fn a_tree_of_tail_calls_stops() {
    stops(&format!("(module {})", tree(64, COUNT, |n| format!("(call $f{n}) (return_call $f{n})"))));
    let tree = tree(64, COUNT, |n| format!("(call $f{n}) (return_call_indirect (i32.const {n}))"));
    let names: String = (0..=64).map(|n| format!("$f{n} ")).collect();
    stops(&format!("(module (table funcref (elem {names})) {tree})"));
}

#[test]
fn a_tail_call_to_itself_around_a_tree_stops() {
    let tree = tree(22, COUNT, |n| format!("(call $f{n}) (call $f{n})"));
    stops(&format!(
        "(module {} (func $again (call $f0) (return_call $again)))",
        tree.replace("(export \"f\") (call $f0)", "(export \"f\") (call $again)")
    ));
}

#[test]
fn bulk_operations_on_memories_stop() {
    // 512 MiB each time: no more than that is written to before it stops.
    let bytes = 512 << 20;
    for operation in [
        format!("(memory.fill (i32.const 0) (i32.const 0) (i32.const {bytes}))"),
        format!("(memory.copy (i32.const 0) (i32.const 16) (i32.const {}))", bytes - 16),
        format!("(memory.copy (i32.const 0) (i32.const 5) (i32.const {}))", bytes - 8),
        format!("(memory.copy (i32.const 8) (i32.const 0) (i32.const {}))", bytes - 16),
        format!("(memory.copy (i32.const 3) (i32.const 0) (i32.const {}))", bytes - 16),
        format!("(memory.fill $other (i32.const 0) (i32.const 0) (i32.const {bytes}))"),
        format!("(memory.copy $other 0 (i32.const 0) (i32.const 0) (i32.const {bytes}))"),
    ] {
        let tree = tree(40, &operation, |n| format!("(call $f{n}) (call $f{n})"));
        stops(&format!("(module (memory 8192) (memory $other 8192) {tree})"));
    }
}

#[test]
fn bulk_operations_on_tables_stop() {
    let most = 10_000_000;
    for operation in [
        format!("(table.fill (i32.const 0) (ref.null func) (i32.const {most}))"),
        format!("(table.copy (i32.const 0) (i32.const 1) (i32.const {}))", most - 1),
        format!("(table.copy (i32.const 1) (i32.const 0) (i32.const {}))", most - 1),
    ] {
        let tree = tree(40, &operation, |n| format!("(call $f{n}) (call $f{n})"));
        stops(&format!("(module (table {most} funcref) {tree})"));
    }
}

#[test]
fn waiting_for_ever_stops() {
    stops(include_str!("wat/endless_wait.wat"));
}

/// `locals` locals that the innermost of `loops` loops changes.
fn nest(locals: usize, loops: usize) -> String {
    let changed: String =
        (0..locals).map(|n| format!("(local.set {n} (i32.add (local.get {n}) (i32.const 1)))\n")).collect();
    let types = "i32 ".repeat(locals);
    let (open, close) = ("(loop ".repeat(loops), "(br_if 0 (local.get 0)))".repeat(loops));
    format!("(module (func (export \"f\") (local {types}) {open}{changed}{close}))")
}

#[test]
fn ptx_is_linear_in_locals_and_loops() {
    let bytes_per_byte = |size: usize| {
        let wasm = wat::parse_str(nest(size, size)).unwrap();
        let ptx = Compiled::new(&wasm, &options(Layout::Linear)).unwrap().ptx().len();
        ptx as f64 / wasm.len() as f64
    };
    // It was 4,000 for the larger one.
    let (small, large) = (bytes_per_byte(250), bytes_per_byte(1000));
    assert!(large < 60.0 && large < 1.5 * small, "{small} and {large} bytes of PTX for each byte of wasm");
}

#[test]
fn locals_in_the_frame_are_what_they_would_be_elsewhere() {
    const LOCALS: i64 = 200;
    const LOOPS: u64 = 200;
    /// How often the innermost loop goes round; each loop goes round again when it finds 10.
    fn rounds(depth: u64, count: &mut u64) -> i64 {
        let mut all = 0;
        loop {
            all += if depth == LOOPS { 1 } else { rounds(depth + 1, count) };
            *count += 1;
            if *count != 10 {
                return all;
            }
        }
    }
    let types = ["i32", "i64", "f32", "f64", "v128"];
    let zero = |ty: &str, n: i64| match ty {
        "v128" => format!("(v128.const i64x2 {n} {n})"),
        ty => format!("({ty}.const {n})"),
    };
    let add = |ty: &str| if ty == "v128" { "i64x2.add".to_owned() } else { format!("{ty}.add") };
    let ty = |n: i64| types[n as usize % types.len()];
    let changed: String = (1..=LOCALS)
        .map(|n| format!("(local.set {n} ({} (local.get {n}) {}))\n", add(ty(n)), zero(ty(n), n)))
        .collect();
    let as_i64 = |n: i64| match ty(n) {
        "i32" => format!("(i64.extend_i32_u (local.get {n}))"),
        "i64" => format!("(local.get {n})"),
        "v128" => format!("(i64x2.extract_lane 1 (local.get {n}))"),
        float => format!("(i64.trunc_{float}_u (local.get {n}))"),
    };
    let sum: String = (1..=LOCALS).map(|n| format!("{} i64.add\n", as_i64(n))).collect();
    let declared: String = (1..=LOCALS).map(|n| format!("(local {})", ty(n))).collect();
    let again = "(br_if 0 (i32.eq (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 10))))";
    let (open, close) = ("(loop ".repeat(LOOPS as usize), again.repeat(LOOPS as usize));
    let text = format!(
        "(module (func (export \"f\") (result i64) (local i32) {declared} {open}{changed}{close} (i64.const 0) {sum}))"
    );
    let expected = rounds(1, &mut 0) * (1..=LOCALS).sum::<i64>();
    for layout in [Layout::Linear, Layout::Interleaved] {
        assert_eq!(run(&text, layout, None), (End::Returned, vec![Value::I64(expected)]));
    }
}

#[test]
fn compiling_that_takes_too_long_says_what_of() {
    let functions: String = (0..200).map(|n| format!("(func $f{n} (export \"e{n}\"))")).collect();
    let wasm = Arc::new(wat::parse_str(format!("(module {functions} (func (export \"f\")))")).unwrap());
    let error = Compiled::within("slow.wasm", wasm.clone(), &options(Layout::Linear), Duration::ZERO).unwrap_err();
    let Error::CompileTimeout(message) = error else { panic!("{error}") };
    for part in ["slow.wasm", "was at function"] {
        assert!(message.contains(part), "{message}");
    }
    Compiled::within("slow.wasm", wasm, &options(Layout::Linear), Duration::from_secs(600)).unwrap();
}
