//! Finds the fastest build of a program on a device, by running the candidates.
//!
//! A program has several builds: they differ in where memory lies and how many registers a thread has, and so in how
//! many instances run at once. Which one is best depends on what the program does with its input, so the measurement
//! uses that input; the cache keeps the result.

use crate::batch::mapper::Mapper;
use gpu_run_compiler::{
    APART_LANES, APART_REGISTERS, Build, CompileOptions, Compiler, Error, Layout, Placement, Program,
};
use gpu_run_device::Device;
use gpu_run_run::{Allowance, End, Extent, Job};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Registers of a thread: with this few, twice as many threads fit as usual.
const THRIFTY_REGISTERS: u32 = APART_REGISTERS;

/// One way to build and run a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    pub memory: MemoryKind,
    /// How many lanes of a warp run an instance, if not all do.
    pub lanes: Option<u32>,
    /// Registers of a thread at most, if the device does not choose.
    pub registers: Option<u32>,
    /// Instances that run at once.
    pub batch: u32,
}

/// Where a variant keeps the memory of an instance: a [`gpu_run_compiler::Placement`] without a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryKind {
    Linear,
    Interleaved,
    Local,
}

/// The form that `gpu-run tune` prints: `interleaved, 64 registers, local memory, 131072 at once`.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (layout, local) = match self.memory {
            MemoryKind::Linear => (Layout::Linear, ""),
            MemoryKind::Interleaved => (Layout::Interleaved, ""),
            MemoryKind::Local => (Layout::Interleaved, ", local memory"),
        };
        write!(f, "{layout}")?;
        if let Some(registers) = self.registers {
            write!(f, ", {registers} registers")?;
        }
        f.write_str(local)?;
        if let Some(lanes) = self.lanes {
            write!(f, ", {lanes} lanes of a warp")?;
        }
        write!(f, ", {} at once", self.batch)
    }
}

impl Variant {
    /// For programs whose lanes diverge and stay apart: linear slots, and few instances in each of many warps.
    pub fn apart(batch: u32) -> Self {
        Self { memory: MemoryKind::Linear, lanes: Some(APART_LANES), registers: Some(THRIFTY_REGISTERS), batch }
    }

    /// Returns the compile options of this variant; all other options are as usual.
    pub fn options(&self, usual: &CompileOptions) -> CompileOptions {
        let build = match (self.memory, usual.build) {
            (MemoryKind::Linear, build) => build.linear(),
            (MemoryKind::Local, build @ Build::Speculative(Placement::Local { .. })) => build,
            (_, Build::Exact(_)) => Build::Exact(Layout::Interleaved),
            (_, Build::Speculative(_)) => Build::Speculative(Placement::Interleaved),
            (_, gang) => gang,
        };
        CompileOptions { build, registers: self.registers, ..usual.clone() }
    }
}

/// Returns the variants that are worth trying on a device; the first one is the default. `batch` is the usual number of
/// instances at once.
pub fn variants(device: &dyn Device, batch: u32) -> Vec<Variant> {
    let usual = |memory| Variant { memory, lanes: None, registers: None, batch };
    let (linear, interleaved) = (usual(MemoryKind::Linear), usual(MemoryKind::Interleaved));
    let best = usual(if device.properties().local_bytes > 0 { MemoryKind::Local } else { MemoryKind::Interleaved });
    match device.properties().overcommits {
        true => vec![linear, best],
        // A GPU. Fewer instances at once, in the same build, each have more of the caches. With half of the usual
        // registers, twice as many threads can wait for memory at once; with all 255 registers, no values are spilled
        // to memory. If lanes diverge and stay apart, fewer of them in each of more warps are faster, and fastest with
        // linear slots; that is one build, whatever the number of lanes.
        false => {
            let (apart, thrifty) = (Variant::apart(batch), Variant { registers: Some(THRIFTY_REGISTERS), ..best });
            let mut all = vec![
                best,
                Variant { batch: batch.div_ceil(2), ..best },
                Variant { batch: batch.div_ceil(4), ..best },
                interleaved,
                Variant { batch: batch.saturating_mul(2), ..thrifty },
                Variant { lanes: Some(16), ..thrifty },
                Variant { lanes: Some(8), ..thrifty },
                Variant { registers: Some(255), ..best },
                Variant { lanes: None, ..apart },
                apart,
                Variant { lanes: Some(4), ..apart },
            ];
            all.dedup();
            all
        }
    }
}

/// A variant that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub variant: Variant,
    /// Instances per second.
    pub per_second: f64,
}

/// What is known of a program's variants on one kind of device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    pub trials: Vec<Trial>,
    /// The allowance that instances were found to need, if it is more than they begin with.
    #[serde(default)]
    pub learned: Option<Allowance>,
}

impl Tuning {
    /// Fills in what was known before, where this tuning says nothing.
    fn after(self, before: Tuning) -> Self {
        let trials = if self.trials.is_empty() { before.trials } else { self.trials };
        Self { trials, learned: self.learned.or(before.learned) }
    }

    /// Returns the fastest variant.
    pub fn best(&self) -> Option<Variant> {
        let fastest = self.trials.iter().max_by(|a, b| a.per_second.total_cmp(&b.per_second));
        fastest.map(|trial| trial.variant)
    }
}

/// Returns what earlier runs found out about a program's variants on such a device. `options` are those that all
/// variants have in common.
pub fn recall(
    compiler: &Compiler,
    device: &dyn Device,
    wasm: &Arc<Vec<u8>>,
    options: &CompileOptions,
) -> Option<Tuning> {
    serde_json::from_slice(&compiler.note(device, wasm, options)?).ok()
}

/// Keeps a tuning for later runs, together with what was known before and is not replaced. Returns whether that worked.
pub fn remember(
    compiler: &Compiler,
    device: &dyn Device,
    wasm: &Arc<Vec<u8>>,
    options: &CompileOptions,
    name: &str,
    tuning: &Tuning,
) -> Result<bool, Error> {
    let tuning = tuning.clone().after(recall(compiler, device, wasm, options).unwrap_or_default());
    let bytes = serde_json::to_vec(&tuning).map_err(|e| Error::Internal(e.to_string()))?;
    compiler.keep_note(device, wasm, options, &format!("{name}, tuning"), &bytes)
}

/// A variant is run until one second has passed, but at most 17 times: over such a time, one-time costs do not matter.
const MIN_MEASURED: Duration = Duration::from_secs(1);
const MAX_RUNS: u32 = 17;

/// Returns how many instances per second a loaded program runs, and the allowance they need. `jobs` are repeated to
/// fill a batch. An instance that traps is an error: then there is no speed to speak of.
pub fn measure(
    program: Arc<Program>,
    variant: Variant,
    jobs: &[Job],
    max_memory: Option<u64>,
    timeout: Option<Duration>,
) -> Result<(f64, Option<Allowance>), Error> {
    if jobs.is_empty() {
        return Ok((0.0, None));
    }
    let capacity = variant.batch as usize;
    let mapper =
        Mapper::new(program, Extent { capacity, max_memory, lanes: variant.lanes, ..Extent::default() }, None)?;
    let all = || jobs.iter().cycle().take(capacity).cloned().collect::<Vec<_>>();
    let (mut best, began) = (0.0f64, Instant::now());
    for run in 0..MAX_RUNS {
        if best > 0.0 && began.elapsed() > MIN_MEASURED {
            break;
        }
        let jobs = all();
        let started = Instant::now();
        let (results, stats) = mapper.begin(jobs, timeout)?.finish()?;
        let took = started.elapsed();
        if let Some(End::Trapped(trap)) = results.iter().map(|done| done.end).find(|end| matches!(end, End::Trapped(_)))
        {
            return Err(Error::Limit(format!("an instance did not finish: {trap}")));
        }
        // If instances are rerun in the first run, it includes compiling another build, so it does not count.
        if run > 0 || stats.reruns == 0 {
            best = best.max(results.len() as f64 / took.as_secs_f64());
        }
    }
    Ok((best, mapper.tuning().and_then(|tuning| tuning.learned)))
}
