//! Whether data that one launch has read is still in the L2 cache when the next launch begins.
//!
//! An array that fits in L2 is read twice in one launch, again in a launch that follows at once, and again in a launch
//! after a pause. Before each round, another array, far larger than any cache, is read to evict it. All reads bypass
//! the multiprocessors' own caches. The time is taken on the device, so it does not include the cost of a launch.

use anyhow::Result;
use gpu_run_device::{Arg, Buffer, Device, Error as DeviceError, Grid, Module};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const PTX: &str = include_str!("l2.ptx");

/// Bytes of the array.
const ARRAY: u64 = 16 << 20;
/// Bytes of the array that evicts it.
const OTHER: u64 = 512 << 20;
const THREADS: u32 = 1024;
/// How many rounds are measured.
const ROUNDS: usize = 20;
/// No round begins after this long.
const LIMIT: Duration = Duration::from_secs(5);
/// About one frame at 120 Hz.
const PAUSE: Duration = Duration::from_millis(8);

/// Gigabytes per second at which the array was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct L2 {
    pub(super) bytes: u64,
    /// The first read, after the other array was read.
    pub(super) cold: f64,
    /// The second read in the same launch.
    pub(super) same_launch: f64,
    /// The read in the next launch: at once, and after a pause.
    pub(super) next_launch: f64,
    pub(super) after_a_pause: f64,
}

pub(super) fn between_launches(device: &Arc<dyn Device>) -> Result<L2> {
    Ok(Sweeper::new(device).and_then(|sweeper| sweeper.measure())?)
}

struct Sweeper {
    module: Arc<dyn Module>,
    array: Buffer,
    other: Buffer,
    out: Buffer,
    grid: Grid,
}

impl Sweeper {
    fn new(device: &Arc<dyn Device>) -> Result<Self, DeviceError> {
        let properties = device.properties();
        // One workgroup per multiprocessor; each reads its own slice of the array.
        let grid = Grid { workgroups: properties.processors, threads: THREADS, stack_bytes: properties.stack_bytes };
        Ok(Self {
            module: device.load(PTX)?,
            array: device.allocate(ARRAY)?,
            other: device.allocate(OTHER)?,
            out: device.allocate(u64::from(grid.workgroups) * 16)?,
            grid,
        })
    }

    /// Returns the mean nanoseconds that a workgroup took for each of up to two passes.
    fn sweep(&self, what: &Buffer, passes: usize) -> Result<[f64; 2], DeviceError> {
        let slice = self.slice(what);
        let args = [Arg::U64(what.address()), Arg::U32(slice), Arg::U32(passes as u32), Arg::U64(self.out.address())];
        self.module.run("sweep", self.grid, &args, &|| false)?;
        let blocks = self.grid.workgroups as usize;
        let mut told = vec![0; blocks * 8 * passes];
        self.out.read(0, &mut told)?;
        let times: Vec<f64> =
            told.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes) as f64).collect();
        let mean = |pass: usize| times.iter().skip(pass * blocks).take(blocks).sum::<f64>() / blocks as f64;
        Ok([mean(0), mean(1)])
    }

    fn slice(&self, what: &Buffer) -> u32 {
        (what.len() / u64::from(self.grid.workgroups) / 16 * 16) as u32
    }

    fn measure(&self) -> Result<L2, DeviceError> {
        let began = Instant::now();
        let mut times = [const { Vec::new() }; 4];
        for _ in 0..ROUNDS {
            self.sweep(&self.other, 1)?;
            let [cold, same] = self.sweep(&self.array, 2)?;
            let [next, _] = self.sweep(&self.array, 1)?;
            std::thread::sleep(PAUSE);
            let [later, _] = self.sweep(&self.array, 1)?;
            for (all, time) in times.iter_mut().zip([cold, same, next, later]) {
                all.push(time);
            }
            if began.elapsed() > LIMIT {
                break;
            }
        }
        let bytes = f64::from(self.slice(&self.array)) * f64::from(self.grid.workgroups);
        let [cold, same_launch, next_launch, after_a_pause] = times.map(|mut all| {
            all.sort_by(f64::total_cmp);
            // Bytes per nanosecond are gigabytes per second.
            bytes / all.get(all.len() / 2).copied().unwrap_or(f64::INFINITY).max(1.0)
        });
        Ok(L2 { bytes: bytes as u64, cold, same_launch, next_launch, after_a_pause })
    }
}
