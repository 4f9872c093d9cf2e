//! CUDA's own device-side `malloc`, to compare the machine's heap with.

use anyhow::{Result, bail};
use gpu_run_device::{Arg, Device, Grid};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const PTX: &str = include_str!("malloc.ptx");

/// The result of a storm of allocations with the device's `malloc`.
#[derive(Clone, Copy, Debug)]
pub(super) struct MallocStorm {
    /// Allocations served, and refused for lack of memory.
    pub(super) allocations: u64,
    pub(super) refused: u64,
    pub(super) time: Duration,
}

/// Makes the same allocations and frees as [`super::storm::heap`], of the same sizes, from one workgroup. The heap has
/// the driver's default size.
pub(super) fn storm(device: &Arc<dyn Device>, threads: u32, rounds: u32, seed: u32) -> Result<MallocStorm> {
    let module = device.load(PTX)?;
    let out = device.allocate(64)?;
    let grid = Grid { workgroups: 1, threads, stack_bytes: device.properties().stack_bytes };
    let run = |rounds: u32| {
        let args = [Arg::U64(out.address()), Arg::U32(rounds), Arg::U32(seed)];
        module.run("storm", grid, &args, &|| false)
    };
    // The first run sets up the heap.
    run(1)?;
    out.zero(0, 64)?;
    let began = Instant::now();
    run(rounds)?;
    let time = began.elapsed();
    let mut told = [0; 12];
    out.read(0, &mut told)?;
    let word = |at: usize| u64::from(told[at..at + 4].try_into().map_or(0, u32::from_le_bytes));
    if word(8) != 0 {
        bail!("{} blocks of the device's malloc did not hold what was written", word(8));
    }
    Ok(MallocStorm { allocations: word(0), refused: word(4), time })
}
