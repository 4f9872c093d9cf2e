//! What is measured beside a machine: the bare way to the device and back, and the heap under a storm; by hand-written kernels, a launch, CUDA's own heap and the L2 cache.

mod l2;
mod launch;
mod malloc;

pub use l2::{L2, l2_between_launches};
pub use launch::{BareLaunch, bare_launch};
pub use malloc::{MallocStorm, malloc_storm};

use crate::boot::{gang, idle_sleep, is_gpu, run_once, threads};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::layout::*;
use gpu_run_compiler::Compiler;
use gpu_run_device::Device;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The hand-written kernels, by name.
pub const BASELINES: [(&str, &str); 3] = [("malloc", malloc::PTX), ("l2", l2::PTX), ("launch", launch::PTX)];

/// How long one word may take there and back before something is wrong.
const PATIENCE: Duration = Duration::from_secs(5);

/// Times of one word there and one word back, between one thread of the host and one of the device.
pub fn bare_round_trips(compiler: &Compiler, device: &Arc<dyn Device>, count: u64) -> Result<Vec<Duration>> {
    let mut gang = gang(compiler, device, &Image::measuring(), 1, 32)?;
    let bus = gang.bus().clone();
    bus.store_u64((CONTROL + C_SLEEP * 8) as u64, idle_sleep(&**device, None) as u64);
    let running = gang.launch("ping_pong")?;
    let mut times = Vec::with_capacity(count as usize);
    for number in 1..=count {
        let began = Instant::now();
        bus.store_u64(PING_WORD as u64, number);
        while bus.load_u64(PONG_WORD as u64) != number {
            if began.elapsed() > PATIENCE {
                return Err(Error::Slow { what: "answer one word", seconds: PATIENCE.as_secs() });
            }
            relax(&**device);
        }
        times.push(began.elapsed());
    }
    bus.store_u64(PING_WORD as u64, u64::MAX);
    running.wait()?.map_err(|trap| Error::Usage(format!("ping_pong failed: {trap}")))?;
    Ok(times)
}

/// While waiting for an answer: on `cpu` the device needs the core.
pub(crate) fn relax(device: &dyn Device) {
    if is_gpu(device) { std::hint::spin_loop() } else { std::thread::yield_now() }
}

/// What a storm of allocations came to.
#[derive(Clone, Copy, Debug)]
pub struct Storm {
    /// Allocations served, and refused for want of room.
    pub allocations: u64,
    pub refused: u64,
    /// Blocks that did not hold what their owner had written.
    pub wrong: u64,
    /// Pages still held when all was freed: the sum of what they held.
    pub left: u64,
    pub time: Duration,
    pub threads: u32,
}

/// Every thread of a workgroup allocates, writes, checks and frees at random.
pub fn heap_storm(
    compiler: &Compiler,
    device: &Arc<dyn Device>,
    asked: Option<u32>,
    rounds: u32,
    seed: u32,
) -> Result<Storm> {
    let threads = threads(&**device, asked);
    let mut gang = gang(compiler, device, &Image::measuring(), 1, threads)?;
    let bus = gang.bus().clone();
    bus.store_u64(PING_WORD as u64, rounds as u64);
    bus.store_u64(PING_WORD as u64 + 8, seed as u64);
    run_once(&mut gang, "boot")?;
    let began = Instant::now();
    run_once(&mut gang, "heap_storm")?;
    let time = began.elapsed();
    let [wrong, allocations, refused, left] = [0, 8, 16, 24].map(|word| bus.load_u64(PONG_WORD as u64 + word));
    Ok(Storm { allocations, refused, wrong, left, time, threads })
}
