//! What the tests of the `cpu` device share: a device, launches without a host, and NVIDIA's assembler as a judge where there is one.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

#[path = "../../../compiler/tests/support/mod.rs"]
mod ptxas;

use gpu_run_device::cpu::{Options, open_with};
use gpu_run_device::{Arg, Buffer, Device, Error, Grid, Module};
use std::sync::Arc;

pub const HEADER: &str = ".version 7.8\n.target sm_75\n.address_size 64\n";

/// Two workers, alignment checked.
pub fn strict() -> Arc<dyn Device> {
    open_with(Options { workers: 2, strict: true, ..Options::default() })
}

pub fn grid(workgroups: u32, threads: u32) -> Grid {
    Grid { workgroups, threads, stack_bytes: 16 << 10 }
}

/// Loads PTX without its header.
pub fn load(device: &Arc<dyn Device>, body: &str) -> Arc<dyn Module> {
    let ptx = format!("{HEADER}{body}");
    assemble(&ptx);
    match device.load(&ptx) {
        Ok(module) => module,
        Err(error) => panic!("{error}"),
    }
}

pub fn run(module: &Arc<dyn Module>, kernel: &str, grid: Grid, args: &[Arg]) -> Result<(), Error> {
    module.run(kernel, grid, args, &|| false)
}

pub fn words(buffer: &Buffer, count: usize) -> Vec<u64> {
    let mut bytes = vec![0; count * 8];
    buffer.read(0, &mut bytes).unwrap();
    bytes.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect()
}

pub fn words32(buffer: &Buffer, count: usize) -> Vec<u32> {
    let mut bytes = vec![0; count * 4];
    buffer.read(0, &mut bytes).unwrap();
    bytes.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

pub fn buffer_of(device: &Arc<dyn Device>, words: &[u64]) -> Buffer {
    let buffer = device.allocate(words.len() as u64 * 8).unwrap();
    buffer.write(0, &words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>()).unwrap();
    buffer
}

/// What the tests run has to be PTX to NVIDIA too.
fn assemble(ptx: &str) {
    if let Err(message) = ptxas::assemble(ptx) {
        panic!("{message}\n{ptx}");
    }
}
