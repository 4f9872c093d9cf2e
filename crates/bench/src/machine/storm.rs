//! The machine's heap under a storm of allocations.

use anyhow::Result;
use gpu_run_compiler::Compiler;
use gpu_run_device::Device;
use gpu_run_machine::layout::{PING_WORD, PONG_WORD};
use gpu_run_machine::{Kernel, boot};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The result of a storm of allocations.
#[derive(Clone, Copy, Debug)]
pub struct Storm {
    /// Allocations served, and refused for lack of memory.
    pub allocations: u64,
    pub refused: u64,
    /// Blocks that did not contain what their owner had written.
    pub wrong: u64,
    /// The sum of all pages' use codes after all blocks were freed; 0 if every page is free again.
    pub left: u64,
    pub time: Duration,
    pub threads: u32,
}

/// Runs a storm: every thread of a workgroup allocates, writes, checks and frees at random. `threads` is the size of
/// the workgroup; `None` means the default for the device.
pub fn heap(
    compiler: &Compiler,
    device: &Arc<dyn Device>,
    threads: Option<u32>,
    rounds: u32,
    seed: u32,
) -> Result<Storm> {
    let threads = boot::threads(&**device, threads);
    let mut gang = boot::gang(compiler, device, &Kernel::measuring(), 1, threads)?;
    let bus = gang.bus().clone();
    bus.store_u64(PING_WORD as u64, rounds as u64);
    bus.store_u64(PING_WORD as u64 + 8, seed as u64);
    boot::run_once(&mut gang, "boot")?;
    let began = Instant::now();
    boot::run_once(&mut gang, "heap_storm")?;
    let time = began.elapsed();
    let [wrong, allocations, refused, left] = [0, 8, 16, 24].map(|word| bus.load_u64(PONG_WORD as u64 + word));
    Ok(Storm { allocations, refused, wrong, left, time, threads })
}
