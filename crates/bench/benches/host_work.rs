//! What the host does for a batch besides the kernel: for many small records, and for a few with long outputs.
//!
//! `cargo bench -p gpu-run-bench --bench host_work`
#![allow(clippy::unwrap_used)] // a measurement that cannot go on says so by panicking

use gpu_run_abi::Layout;
use gpu_run_compiler::{Build, CompileOptions, Compiled, Entry, Program};
use gpu_run_map::Mapper;
use gpu_run_run::{Allowance, Extent, Job};
use gpu_run_wasi::Builder;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SMALL_JOBS: usize = 65_536;
const LONG_JOBS: usize = 256;
/// What each of those prints, and `_start` adds 4 bytes.
const LONG_KIB: usize = 600;

fn main() {
    small_jobs();
    long_outputs();
}

fn mapper(wat: &str, layout: Layout, extent: Extent) -> Mapper {
    let options = CompileOptions::new(Build::Exact(layout), Entry::Start);
    let compiled = Compiled::new(&wat::parse_str(wat).unwrap(), &options).unwrap();
    let program = Program::load(gpu_run_device::cpu::open(), Arc::new(compiled)).unwrap();
    Mapper::new(Arc::new(program), extent, None).unwrap()
}

fn jobs(stdin: impl Iterator<Item = Vec<u8>>) -> Vec<Job> {
    let context = Arc::new(Builder::new());
    (0..).zip(stdin).map(|(number, stdin)| Job { context: context.clone(), number, stdin: stdin.into() }).collect()
}

fn small_jobs() {
    let extent = Extent { capacity: SMALL_JOBS, ..Extent::default() };
    let mapper = mapper(include_str!("../../map/tests/wat/echo.wat"), Layout::Interleaved, extent);
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let jobs = jobs((0..SMALL_JOBS).map(|i| format!("record {i} of so many, forty bytes of text").into()));
        let began = Instant::now();
        let (results, stats) = mapper.run(jobs, None).unwrap();
        let host = began.elapsed() - stats.run;
        assert_eq!(results.len(), SMALL_JOBS);
        best = best.min(host);
        println!(
            "host {host:.2?}: {:.2?} before, {:.2?} after; kernel {:.2?}",
            stats.prepare, stats.collect, stats.run
        );
    }
    println!("{SMALL_JOBS} small jobs: {best:.2?} on the host");
}

fn long_outputs() {
    let learned = Some(Allowance { output: 700 << 10, ..Allowance::default() });
    let extent = Extent { capacity: LONG_JOBS, learned, ..Extent::default() };
    let mapper = mapper(include_str!("../../map/tests/wat/worker.wat"), Layout::Linear, extent);
    let print = |_| [b'p', 200].repeat(LONG_KIB / 200);
    let mut best = 0.0f64;
    // As where a map writes: the last results are still there while the next ones come.
    let mut last = None;
    for _ in 0..6 {
        let (results, stats) = mapper.run(jobs((0..LONG_JOBS).map(print)), None).unwrap();
        let bytes: usize = results.iter().map(|done| done.stdout.len()).sum();
        assert_eq!(bytes, LONG_JOBS * ((LONG_KIB << 10) + 4));
        let rate = bytes as f64 / stats.collect.as_secs_f64() / 1e9;
        best = best.max(rate);
        println!("{rate:.2} GB/s of {} MiB", bytes >> 20);
        last = Some(results);
    }
    drop(last);
    println!("{LONG_JOBS} long outputs: {best:.2} GB/s to the host");
}
