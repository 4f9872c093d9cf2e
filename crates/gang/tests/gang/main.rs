//! Gangs: threads that share a memory, wait for each other, count together, and end together.
#![allow(clippy::unwrap_used)]

#[path = "../../../compiler/tests/support/mod.rs"]
mod support;

/// A module of `tests/wat`. It is part of the binary: `scripts/gpu-test` runs that where the sources are not.
macro_rules! wat {
    ($name:literal) => {
        include_str!(concat!("../wat/", $name, ".wat"))
    };
}

mod endings;
mod launches;
mod memory;
mod together;

use gpu_run_abi::TrapCode;
use gpu_run_cache::Cache;
use gpu_run_compiler::{Compiler, Error};
use gpu_run_device::Device;
use gpu_run_gang::{Gang, GangOptions, GangProgram};
use std::sync::Arc;

fn wasm(text: &str) -> Arc<Vec<u8>> {
    Arc::new(wat::parse_str(text).unwrap())
}

/// `cpu`, or what `GPU_RUN_TEST_DEVICE` says: `cuda:0`.
fn device() -> Arc<dyn Device> {
    let id = std::env::var("GPU_RUN_TEST_DEVICE");
    gpu_run_device::open(id.as_deref().unwrap_or("cpu")).unwrap()
}

fn compile(text: &str, options: &GangOptions) -> Result<Arc<GangProgram>, Error> {
    let wasm = wasm(text);
    support::assemble(&options.ptx(&wasm)?).unwrap();
    GangProgram::compile(&Compiler::new(Cache::off("a test")), &device(), wasm, options, "test")
}

fn gang(text: &str, options: &GangOptions) -> Gang {
    Gang::new(compile(text, options).unwrap()).unwrap()
}

fn run(gang: &mut Gang, entry: &str) {
    gang.launch(entry).unwrap().wait().unwrap().unwrap();
}

fn words(gang: &Gang, at: u64, count: usize) -> Vec<u32> {
    let mut bytes = vec![0; 4 * count];
    gang.read(at, &mut bytes).unwrap();
    bytes.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

const WIDE: GangOptions =
    GangOptions { threads: 1024, groups: 1, stack_bytes: 1024, image_bytes: 1 << 16, bus_bytes: 4096, relaxed: false };
