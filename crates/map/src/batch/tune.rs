//! Which build of a program is the fastest on a device, found out by running them.
//!
//! A program has several builds: where its memory lies, how many registers a thread has, and with that how many instances run at
//! once. Which one is best depends on what the program does with its input, so it is measured on that; the cache keeps what was found.

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

/// Registers of a thread with which twice as many fit as usual.
const THRIFTY_REGISTERS: u32 = APART_REGISTERS;

/// One way to build a program and to run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    pub memory: MemoryKind,
    /// Lanes of a warp that run an instance, if not all do.
    pub lanes: Option<u32>,
    /// Registers a thread may have, where the device does not choose.
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

/// As `gpu-run tune` shows it: `interleaved, 64 registers, local memory, 131072 at once`.
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
    /// For programs whose lanes part and stay apart: the memory of each instance by itself, few of them in each of many warps.
    pub fn apart(batch: u32) -> Self {
        Self { memory: MemoryKind::Linear, lanes: Some(APART_LANES), registers: Some(THRIFTY_REGISTERS), batch }
    }

    /// How it is compiled, where all else is usual.
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

/// What is worth trying on a device, what it does unasked first. `batch` is the usual number of instances at once.
pub fn variants(device: &dyn Device, batch: u32) -> Vec<Variant> {
    let usual = |memory| Variant { memory, lanes: None, registers: None, batch };
    let (linear, interleaved) = (usual(MemoryKind::Linear), usual(MemoryKind::Interleaved));
    let best = usual(if device.properties().local_bytes > 0 { MemoryKind::Local } else { MemoryKind::Interleaved });
    match device.properties().overcommits {
        true => vec![linear, best],
        // A GPU. Fewer at once have more of the caches each, in the same build. Half of the usual registers let twice as many threads wait for memory at once; with all there are, none are kept in memory. Where
        // lanes part and stay apart, fewer of them in each of more warps do better, and best with the memory of each by itself: one build, however many lanes.
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
    /// Instances a second.
    pub per_second: f64,
}

/// What is known of a program's variants on one kind of device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    pub trials: Vec<Trial>,
    /// What instances were found to need, if it is more than they begin with.
    #[serde(default)]
    pub learned: Option<Allowance>,
}

impl Tuning {
    /// With what was known before, where this says nothing.
    fn after(self, before: Tuning) -> Self {
        let trials = if self.trials.is_empty() { before.trials } else { self.trials };
        Self { trials, learned: self.learned.or(before.learned) }
    }

    /// The fastest.
    pub fn best(&self) -> Option<Variant> {
        let fastest = self.trials.iter().max_by(|a, b| a.per_second.total_cmp(&b.per_second));
        fastest.map(|trial| trial.variant)
    }
}

/// What was found out of a program's variants on such a device, if anything was. `options` are those that all have in common.
pub fn recall(
    compiler: &Compiler,
    device: &dyn Device,
    wasm: &Arc<Vec<u8>>,
    options: &CompileOptions,
) -> Option<Tuning> {
    serde_json::from_slice(&compiler.note(device, wasm, options)?).ok()
}

/// Keeps what was found out, and what was before and is not contradicted, for all runs that come; whether that worked.
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

/// A variant is run until it has taken this, up to so many times: a run so long makes nothing of what happens once.
const MIN_MEASURED: Duration = Duration::from_secs(1);
const MAX_RUNS: u32 = 17;

/// Instances a second of a loaded program with such jobs, which are repeated as often as a batch needs; and what they need. An instance that does not end by itself is an error: there is no
/// speed to speak of.
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
            return Err(Error::Limit(format!("an instance does not end by itself: {trap}")));
        }
        // The first time some run again, what they run in is compiled.
        if run > 0 || stats.again == 0 {
            best = best.max(results.len() as f64 / took.as_secs_f64());
        }
    }
    Ok((best, mapper.tuning().and_then(|tuning| tuning.learned)))
}
