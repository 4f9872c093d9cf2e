//! Our side: runs instances of a program on the device.

use super::Options;
use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use gpu_run_cache::Cache;
use gpu_run_compiler::{CompileOptions, Compiler, Entry, Program};
use gpu_run_console::failure::Failure;
use gpu_run_device::Device;
use gpu_run_map::{Done, Mapper, MemoryKind, Pending, Results, SLOW, Slow, Variant, measure, variants};
use gpu_run_run::{Allowance, End, Extent, Job, RunStats, Source};
use gpu_run_wasi::Builder;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The most that a run may take: far more than any should, so that a program that never returns is reported.
pub(super) const LIMIT: Duration = Duration::from_secs(300);

/// A program on the device.
#[derive(Debug)]
pub(super) struct Built {
    program: Arc<Program>,
    /// The cache folder with this and further builds of the program; must exist as long as the program runs.
    _kept: TempDir,
    extent: Extent,
    slow: Option<Slow>,
    /// What instances are given, in turn, beginning again after the last.
    jobs: Vec<Job>,
    /// Instances per batch.
    pub(super) batch: u32,
    /// The fastest build, if several were measured before.
    variant: Option<Variant>,
    pub(super) to_ptx: Duration,
    pub(super) load: Duration,
    /// How long a second load takes: from the module's bytes, with the program in the cache.
    pub(super) again: Option<Duration>,
}

/// A program that is ready to run.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) built: Built,
    /// Has slots for as many instances as run at once.
    mapper: Mapper,
}

/// How often a program is loaded again; the best time counts.
const SECOND_LOADS: usize = 5;

/// Compiles for `instances` at once, loads, and loads again. The instances are given nothing but their number.
pub(super) fn load(device: &Arc<dyn Device>, source: &Source, options: &Options, instances: u32) -> Result<Loaded> {
    let mut guest = Builder::new();
    guest.arg(&source.argv0)?;
    let job = Job { context: Arc::new(guest), number: 0, stdin: Bytes::new() };
    compile(device, source, options, vec![job], instances, None)?.ready()
}

/// Compiles for instances with these jobs. Allocates no slots yet.
pub(super) fn compile(
    device: &Arc<dyn Device>,
    source: &Source,
    bench: &Options,
    jobs: Vec<Job>,
    instances: u32,
    max_memory: Option<u64>,
) -> Result<Built> {
    let layout = bench.layout(&**device, instances);
    let failed = |error| Failure::compiler(&source.name, error);
    let speculative = gpu_run_compiler::Build::speculative(layout, device.properties().local_bytes);
    let usual = CompileOptions { sm: bench.sm, ..CompileOptions::new(speculative, Entry::Start) };
    let variant = if bench.tunes && instances > 1 { fastest(device, source, &usual, &jobs, instances)? } else { None };
    let options = variant.map_or_else(|| usual.clone(), |variant| variant.options(&usual));
    let kept = TempDir::new()?;
    // A new compiler each time: a compiler does not load a program twice.
    let load = || {
        let compiler = Compiler::new(Cache::open(gpu_run_cache::Options::new(kept.path().to_owned())));
        let request = compiler.request(device, source.wasm.clone(), &options, &source.name).map_err(failed)?;
        let (program, report) = compiler.load(&request).map_err(failed)?;
        anyhow::Ok((program, report.context("the program was loaded before")?))
    };
    let (program, first) = load()?;
    let mut again: Option<Duration> = None;
    for _ in 0..SECOND_LOADS {
        let (_, report) = load()?;
        if report.timings.is_empty() {
            again = Some(again.map_or(report.load, |best| best.min(report.load)));
        }
    }
    let lanes = variant.and_then(|variant| variant.lanes);
    let capacity = variant.map_or(instances, |variant| variant.batch) as usize;
    // As `gpu-run map` does if nobody has said which build is best.
    let is_guess = variant.is_none() && bench.layout.is_none() && device.is_gpu();
    let slow = Some(SLOW).filter(|_| is_guess);
    let extent = Extent { capacity, max_memory, lanes, ..Extent::default() };
    let to_ptx = first.timings.iter().map(|(_, time)| *time).sum();
    Ok(Built {
        program,
        _kept: kept,
        extent,
        slow,
        jobs,
        batch: capacity as u32,
        variant,
        to_ptx,
        load: first.load,
        again,
    })
}

impl Built {
    /// Sets the size of batches, and what instances were found to need.
    pub(super) fn for_batches(mut self, batch: u32, learned: Option<Allowance>) -> Self {
        self.batch = batch;
        (self.extent.capacity, self.extent.learned) = (batch as usize, learned);
        self
    }

    /// Allocates slots for the instances.
    pub(super) fn ready(self) -> Result<Loaded> {
        Ok(Loaded { mapper: Mapper::trying(self.program.clone(), self.extent, None, self.slow)?, built: self })
    }

    /// Does everything that `gpu-run map` does for this many instances once the program is on the device: allocates
    /// slots, runs the instances, collects outcomes. Returns how long that took, and what instances were found to need.
    pub(super) fn session(&self, instances: u32, learned: Option<Allowance>) -> Result<(Duration, Option<Allowance>)> {
        let began = Instant::now();
        let extent = Extent { capacity: instances as usize, learned, ..self.extent };
        let mapper = Mapper::trying(self.program.clone(), extent, None, self.slow)?;
        mapper.run(numbered(&self.jobs, instances), Some(LIMIT))?;
        let took = began.elapsed();
        // The next session needs this one's memory.
        mapper.settle();
        Ok((took, mapper.tuning().and_then(|tuning| tuning.learned)))
    }
}

impl Loaded {
    /// Returns the build that was found to be faster than the default, before or during the run.
    pub(super) fn faster(&self) -> Option<Variant> {
        let found = || self.mapper.tuning()?.best().filter(|best| best.memory == MemoryKind::Linear);
        self.built.variant.or_else(found)
    }

    /// Whether a part of the next batch tries another build.
    pub(super) fn tries_another(&self) -> bool {
        self.mapper.tries_another()
    }
}

/// Returns this many jobs, numbered; repeats them if there are fewer.
fn numbered(jobs: &[Job], instances: u32) -> Vec<Job> {
    let numbers = 0..u64::from(instances);
    jobs.iter().cycle().zip(numbers).map(|(job, number)| Job { number, ..job.clone() }).collect()
}

/// Returns the fastest of a program's builds, as `gpu-run tune` finds it. Builds that cannot be made or run are
/// skipped.
fn fastest(
    device: &Arc<dyn Device>,
    source: &Source,
    usual: &CompileOptions,
    jobs: &[Job],
    instances: u32,
) -> Result<Option<Variant>> {
    let (jobs, compiler) = (numbered(jobs, instances), Compiler::new(Cache::off("what is tried is not kept")));
    let rate = |variant: Variant| {
        let request = compiler.request(device, source.wasm.clone(), &variant.options(usual), &source.name)?;
        measure(compiler.load(&request)?.0, variant, &jobs, None, Some(LIMIT))
    };
    let mut best: Option<(Variant, f64)> = None;
    for variant in variants(&**device, instances) {
        match rate(variant) {
            Ok((rate, _)) if best.is_none_or(|(_, most)| rate > most) => best = Some((variant, rate)),
            Ok(_) => {}
            Err(error) => tracing::warn!(program = source.name, %error, ?variant, "cannot be measured"),
        }
    }
    Ok(best.map(|(variant, _)| variant))
}

/// Runs batches until the budget is spent, beginning the next while one runs, as in `gpu-run map`. Passes the results
/// of every batch to `each`. Returns the instances per second, from the first job to the last outcome.
pub(super) fn batches(
    loaded: &Loaded,
    instances: u32,
    budget: Duration,
    mut each: impl FnMut(Results, RunStats) -> Result<()>,
) -> Result<f64> {
    let began = Instant::now();
    let mut done = 0;
    let (begun, pending) = mpsc::sync_channel(0);
    thread::scope(|scope| {
        // Beginning a batch may wait until another is finished, so a thread of its own does it.
        let beginning = scope.spawn(move || -> Result<()> {
            while begun.send(begin(loaded, instances)?).is_ok() && began.elapsed() < budget {}
            Ok(())
        });
        let finished = pending.into_iter().try_for_each(|pending: Pending| {
            let (results, stats) = pending.finish()?;
            done += results.len();
            each(results, stats)
        });
        let begun = beginning.join().map_err(|_| anyhow!("the thread that begins batches panicked"))?;
        finished.and(begun)
    })?;
    Ok(done as f64 / began.elapsed().as_secs_f64())
}

/// Like [`batches`], but checks that all instances succeeded and returns the last batch's output of the instances in
/// `sample`.
pub(super) fn run_device(
    loaded: &Loaded,
    instances: u32,
    sample: &[u32],
    budget: Duration,
) -> Result<(Vec<Vec<u8>>, f64)> {
    let (mut all, mut last) = (RunStats::default(), Results::default());
    let rate = batches(loaded, instances, budget, |results, stats| {
        all.add(&stats);
        check_all(&results)?;
        last = results;
        Ok(())
    })?;
    tracing::debug!(stats = ?all, rate, "ran");
    let stdout = |instance: &u32| last.get(*instance as usize).map(|done| done.stdout.to_vec());
    Ok((sample.iter().filter_map(stdout).collect(), rate))
}

/// Runs one instance alone and returns how long it took.
pub(super) fn run_one(loaded: &Loaded) -> Result<Duration> {
    let began = Instant::now();
    let (results, stats) = begin(loaded, 1)?.finish()?;
    let took = began.elapsed();
    tracing::debug!(?stats, ?took, "ran one");
    check_all(&results)?;
    Ok(took)
}

/// Runs one batch. Returns its results and statistics.
pub(super) fn run(loaded: &Loaded, instances: u32) -> Result<(Results, RunStats)> {
    let (results, stats) = begin(loaded, instances)?.finish()?;
    check_all(&results)?;
    Ok((results, stats))
}

pub(super) fn begin(loaded: &Loaded, instances: u32) -> Result<Pending> {
    Ok(loaded.mapper.begin(numbered(&loaded.built.jobs, instances), Some(LIMIT))?)
}

fn check_all(results: &Results) -> Result<()> {
    for (instance, done) in results.iter().enumerate() {
        check_end(&done).map_err(|what| what.context(format!("on the device, instance {instance}")))?;
    }
    Ok(())
}

/// Checks that an instance succeeded, as a program to be measured must.
fn check_end(done: &Done<'_>) -> Result<()> {
    match done.end {
        End::Returned | End::Exited(0) => Ok(()),
        End::Exited(code) => bail!("exited {code}: {}", String::from_utf8_lossy(done.stderr)),
        End::Trapped(trap) => bail!("{trap}"),
    }
}
