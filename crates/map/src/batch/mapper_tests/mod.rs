//! Batches through a mapper: what records give, in whichever build and wherever memory is.

use super::*;
use crate::batch::results::Done;
use bytes::Bytes;
use gpu_run_abi::TrapCode;
use gpu_run_compiler::{Build, CompileOptions, Compiled, Entry, Placement, Sibling};
use gpu_run_run::allowance::SHARE;
use gpu_run_run::{Denied, End, Limits};
use gpu_run_wasi::Builder;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

/// A module of `tests/wat`. It is part of the binary: `scripts/gpu-test` runs that where the sources are not.
macro_rules! wat {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wat/", $name, ".wat"))
    };
}

mod accesses;
mod ahead;
mod batches;
mod contexts;
mod endings;
mod float;
mod fresh;
mod learned;
mod local;
mod probation;
mod reruns;
mod rule;
mod shortage;

fn mapper(wat: &str, capacity: usize, layout: Layout) -> Mapper {
    checked_mapper(wat, capacity, Build::Exact(layout))
}

fn checked_mapper(wat: &str, capacity: usize, build: Build) -> Mapper {
    Mapper::new(program(wat, build), Extent { capacity, ..Extent::default() }, None).unwrap()
}

/// Guest memory is the thread's own, so many bytes.
fn local_mapper(wat: &str, capacity: usize, local_bytes: u32) -> Mapper {
    let program = program(wat, Build::speculative(Layout::Interleaved, local_bytes));
    assert!(program.compiled().slots.is_local(), "it does not fit");
    let mapper = Mapper::new(program, Extent { capacity, ..Extent::default() }, None).unwrap();
    // However few they are: a GPU sets no memory of threads' own aside for a few.
    mapper.inner.plan.lock().as_mut().unwrap().build = None;
    mapper
}

fn program(wat: &str, build: Build) -> Arc<Program> {
    loaded(compiled(wat, build))
}

fn loaded(compiled: Compiled) -> Arc<Program> {
    Arc::new(Program::load(device(), Arc::new(compiled)).unwrap())
}

fn compiled(wat: &str, build: Build) -> Compiled {
    let options = CompileOptions::new(build, Entry::Start);
    Compiled::new(&wat::parse_str(wat).unwrap(), &options).unwrap()
}

/// `cpu`, or what `GPU_RUN_TEST_DEVICE` says, as `scripts/gpu-test` does.
/// One for all tests: each context of a GPU keeps the stacks of its own.
fn device() -> Arc<dyn gpu_run_device::Device> {
    static DEVICE: OnceLock<Arc<dyn gpu_run_device::Device>> = OnceLock::new();
    let id = || std::env::var("GPU_RUN_TEST_DEVICE").unwrap_or_else(|_| "cpu".into());
    DEVICE.get_or_init(|| gpu_run_device::open(&id()).unwrap()).clone()
}

/// What became of jobs, to compare.
fn run(mapper: &Mapper, stdin: &[&str]) -> (Vec<Owned>, RunStats) {
    let (results, stats) = mapper.run(jobs(stdin), None).unwrap();
    (results.iter().map(Owned::from).collect(), stats)
}

#[derive(Clone, Debug, PartialEq)]
struct Owned {
    end: End,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    denied: Option<Denied>,
}

impl From<Done<'_>> for Owned {
    fn from(done: Done<'_>) -> Self {
        let Done { end, stdout, stderr, denied } = done;
        Self { end: end.clone(), stdout: stdout.into(), stderr: stderr.into(), denied }
    }
}

fn jobs<T: AsRef<[u8]>>(stdin: &[T]) -> Vec<Job> {
    let context = Arc::new(Builder::new());
    let job = |(number, bytes): (u64, &T)| Job {
        context: context.clone(),
        number,
        stdin: Bytes::copy_from_slice(bytes.as_ref()),
    };
    (0..).zip(stdin).map(job).collect()
}
