//! Our side: a program on the device, and so many instances of it.

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

/// What a run may take at most: far more than any should, so that a program without an end is told as one.
pub(super) const LIMIT: Duration = Duration::from_secs(300);

/// A program on the device.
#[derive(Debug)]
pub(super) struct Built {
    program: Arc<Program>,
    /// Where it is kept on disk, and what else is built of it: for as long as it runs.
    _kept: TempDir,
    extent: Extent,
    slow: Option<Slow>,
    /// What instances are given, one after the other, and then from the first on.
    jobs: Vec<Job>,
    /// Instances of a batch.
    pub(super) batch: u32,
    /// The build that was found to be the fastest, if several were tried before.
    variant: Option<Variant>,
    pub(super) to_ptx: Duration,
    pub(super) load: Duration,
    /// A second load, from the module's bytes on, of what the first one left in a cache.
    pub(super) again: Option<Duration>,
}

/// One that is ready to run.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) built: Built,
    /// With room for as many instances as it is to run at once.
    mapper: Mapper,
}

/// How often a program is loaded again; the best time counts.
const SECOND_LOADS: usize = 5;

/// Compiles for `instances` at once and loads, and loads again. The instances are given nothing but their number.
pub(super) fn load(device: &Arc<dyn Device>, source: &Source, options: &Options, instances: u32) -> Result<Loaded> {
    let mut guest = Builder::new();
    guest.arg(&source.argv0)?;
    let job = Job { context: Arc::new(guest), number: 0, stdin: Bytes::new() };
    compile(device, source, options, vec![job], instances, None)?.ready()
}

/// The same for instances that are given something, without room for them yet.
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
    let usual = CompileOptions { build: speculative, sm: bench.sm, entry: Entry::Start, registers: None };
    let variant = if bench.tunes && instances > 1 { fastest(device, source, &usual, &jobs, instances)? } else { None };
    let options = variant.map_or_else(|| usual.clone(), |variant| variant.options(&usual));
    let kept = TempDir::new()?;
    // A compiler of its own each time: what one has loaded it does not load again.
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
    // As `gpu-run map` does where nobody has said what is best.
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
    /// The same for batches of so many instances, which need so much.
    pub(super) fn for_batches(mut self, batch: u32, learned: Option<Allowance>) -> Self {
        self.batch = batch;
        (self.extent.capacity, self.extent.learned) = (batch as usize, learned);
        self
    }

    /// Sets aside room for its instances.
    pub(super) fn ready(self) -> Result<Loaded> {
        Ok(Loaded { mapper: Mapper::trying(self.program.clone(), self.extent, None, self.slow)?, built: self })
    }

    /// All that `gpu-run map` does for so many, its program being on the device: room for them, the run, the outcomes.
    pub(super) fn session(&self, instances: u32, learned: Option<Allowance>) -> Result<(Duration, Option<Allowance>)> {
        let began = Instant::now();
        let extent = Extent { capacity: instances as usize, learned, ..self.extent };
        let mapper = Mapper::trying(self.program.clone(), extent, None, self.slow)?;
        mapper.run(numbered(&self.jobs, instances), Some(LIMIT))?;
        let took = began.elapsed();
        // The next one needs its memory.
        mapper.settle();
        Ok((took, mapper.tuning().and_then(|tuning| tuning.learned)))
    }
}

impl Loaded {
    /// The build that was found to be faster than the usual one, before or while it ran.
    pub(super) fn faster(&self) -> Option<Variant> {
        let found = || self.mapper.tuning()?.best().filter(|best| best.memory == MemoryKind::Linear);
        self.built.variant.or_else(found)
    }

    /// The next batch finds out about another build.
    pub(super) fn tries_another(&self) -> bool {
        self.mapper.tries_another()
    }
}

/// So many, numbered; where there are fewer, they come again.
fn numbered(jobs: &[Job], instances: u32) -> Vec<Job> {
    let numbers = 0..u64::from(instances);
    jobs.iter().cycle().zip(numbers).map(|(job, number)| Job { number, ..job.clone() }).collect()
}

/// The fastest of a program's builds, as `gpu-run tune` finds it. One that cannot be made or run is none.
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

/// Batches of so many instances until the budget is spent, the next begun while one runs, as in `gpu-run map`: what `each` is told of every one, and how many instances a second there were, from
/// the first job to the last outcome.
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
        // To begin may wait for another batch to be finished: that is another thread's.
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

/// The same, with what the instances of `sample` wrote in the last batch.
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

/// One instance alone: how long it takes.
pub(super) fn run_one(loaded: &Loaded) -> Result<Duration> {
    let began = Instant::now();
    let (results, stats) = begin(loaded, 1)?.finish()?;
    let took = began.elapsed();
    tracing::debug!(?stats, ?took, "ran one");
    check_all(&results)?;
    Ok(took)
}

/// One batch: what its instances printed, and what it took.
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

/// A program that is to be measured ends well.
fn check_end(done: &Done<'_>) -> Result<()> {
    match done.end {
        End::Returned | End::Exited(0) => Ok(()),
        End::Exited(code) => bail!("exited {code}: {}", String::from_utf8_lossy(done.stderr)),
        End::Trapped(trap) => bail!("{trap}"),
    }
}
