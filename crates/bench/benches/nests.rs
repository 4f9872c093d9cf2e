//! How compile time and PTX size grow for many locals in many nested loops, from 16 KB to 4 MB of wasm: both must be
//! proportional to the wasm.
//!
//! `cargo bench -p gpu-run-bench --bench nests`. WebAssembly implementations allow at most 50,000 locals in a function,
//! so the larger modules have several functions, each with at most `MAX_LOCALS`.

use gpu_run_abi::Layout;
use gpu_run_compiler::{Build, CompileOptions, Compiled, Entry};
use std::time::Instant;

const MAX_LOCALS: usize = 20_000;

fn main() {
    let options = CompileOptions::new(Build::Exact(Layout::Linear), Entry::Exports);
    println!("{:>12} {:>14} {:>10} {:>14} {:>10}", "wasm bytes", "PTX bytes", "a byte", "seconds", "µs a byte");
    for kilobytes in [16_usize, 64, 256, 1024, 4096] {
        // A local and a loop take about 14 bytes.
        let all = kilobytes * 1024 / 14;
        let functions = all.div_ceil(MAX_LOCALS);
        let text: String = (0..functions).map(|number| function(number, all / functions)).collect();
        let Ok(wasm) = wat::parse_str(format!("(module {text})")) else { return };
        let began = Instant::now();
        match Compiled::new(&wasm, &options) {
            Ok(compiled) => {
                let (time, ptx, bytes) = (began.elapsed().as_secs_f64(), compiled.ptx().len(), wasm.len());
                let (each, slow) = (ptx as f64 / bytes as f64, 1e6 * time / bytes as f64);
                println!("{bytes:>12} {ptx:>14} {each:>10.1} {time:>14.3} {slow:>10.2}");
            }
            Err(error) => println!("{:>12} {error}", wasm.len()),
        }
    }
}

/// Returns a function with as many locals as loops; the innermost loop changes all locals.
fn function(number: usize, size: usize) -> String {
    let changed: String =
        (0..size).map(|n| format!("(local.set {n} (i32.add (local.get {n}) (i32.const 1)))\n")).collect();
    let (types, open) = ("i32 ".repeat(size), "(loop ".repeat(size));
    let close = "(br_if 0 (local.get 0)))".repeat(size);
    format!("(func (export \"f{number}\") (local {types}) {open}{changed}{close})")
}
