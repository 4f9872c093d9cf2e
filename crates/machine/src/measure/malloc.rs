//! CUDA's own `malloc` on the device, beside the machine's heap.

use crate::error::{Error, Result};
use gpu_run_device::{Arg, Device, Grid};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const PTX: &str = include_str!("malloc.ptx");

/// What a storm of allocations by the device's `malloc` came to.
#[derive(Clone, Copy, Debug)]
pub struct MallocStorm {
    /// Allocations served, and refused for want of room.
    pub allocations: u64,
    pub refused: u64,
    pub time: Duration,
    pub threads: u32,
}

/// The same allocations and frees as [`super::heap_storm`], of the same sizes, from one workgroup. Its heap is as large as the driver makes it.
pub fn malloc_storm(device: &Arc<dyn Device>, threads: u32, rounds: u32, seed: u32) -> Result<MallocStorm> {
    let module = device.load(PTX).map_err(gpu_run_compiler::Error::from)?;
    let out = device.allocate(64).map_err(gpu_run_compiler::Error::from)?;
    let grid = Grid { blocks: 1, threads, stack_bytes: device.properties().stack_bytes };
    let storm = |rounds: u32| {
        let args = [Arg::U64(out.address()), Arg::U32(rounds), Arg::U32(seed)];
        module.run("storm", grid, &args, &|| false).map_err(gpu_run_compiler::Error::from)
    };
    // The first one makes the heap.
    storm(1)?;
    out.zero(0, 64).map_err(gpu_run_compiler::Error::from)?;
    let began = Instant::now();
    storm(rounds)?;
    let time = began.elapsed();
    let mut told = [0; 12];
    out.read(0, &mut told).map_err(gpu_run_compiler::Error::from)?;
    let word = |at: usize| u64::from(told[at..at + 4].try_into().map_or(0, u32::from_le_bytes));
    if word(8) != 0 {
        return Err(Error::Usage(format!("{} blocks of the device's malloc did not hold what was written", word(8))));
    }
    Ok(MallocStorm { allocations: word(0), refused: word(4), time, threads })
}
