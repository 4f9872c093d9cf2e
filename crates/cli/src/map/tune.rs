//! `gpu-run tune` and `map --tune`: find the fastest build of a program on this device, for the user's own records.

use super::{failure, input, options, surface};
use crate::args::LayoutChoice;
use crate::args::MapArgs;
use crate::devices;
use crate::program;
use crate::program_cache;
use crate::source;
use crate::surface::Surface;
use anyhow::Result;
use gpu_run_compiler::{CompileOptions, Compiler, Entry};
use gpu_run_console::failure::{Failure, exit};
use gpu_run_console::progress::Progress as Spinner;
use gpu_run_console::terminal::Escaping;
use gpu_run_console::units::{show_count, show_duration};
use gpu_run_device::Device;
use gpu_run_map::{
    Function, Map, Sample, Trial, Tuning, Variant, measure, recall, remember, usual_batch, usual_batch_of_calls,
    variants,
};
use gpu_run_run::Source;
use gpu_run_run::{Allowance, Job};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

/// With fewer records than this at once, local memory is not worth its cost.
const FEW_RECORDS: u32 = 8192;
/// Records of a program with threads that are read together.
const THREADS_BATCH: u32 = 256;
/// An input of at least this many bytes is taken to have more records than that.
const SMALL_INPUT: u64 = 1 << 20;

/// `gpu-run tune`: measures all builds, prints the results on stdout, and keeps them in the cache.
pub(crate) fn tune(args: &MapArgs) -> Result<u8> {
    args.check()?;
    let source = source::load(&args.file, args.launch.codegen.bin.as_deref(), &args.launch.cache)?;
    let told = |error| failure::told(&source.name, error);
    surface(args, &source)?;
    let sample = Sample::open(input(args)?, &options(args, &source, &args.launch.given.env)?).map_err(told)?;
    let device = devices::open(&args.launch.device)?;
    let jobs = sample.jobs(batch(args, &*device)).map_err(told)?;
    let best = try_all(&device, &source, args, &jobs, &mut Escaping(io::stdout()))?;
    Ok(if best.is_some() { 0 } else { exit::FAILURE })
}

/// `bench --input`: returns the jobs of the first batch, and how many records run at once.
#[cfg(feature = "bench")]
pub(crate) fn sample(args: &MapArgs, source: &Source, device: &dyn Device) -> Result<(Vec<Job>, u32)> {
    let told = |error| failure::told(&source.name, error);
    surface(args, source)?;
    let sample = Sample::open(input(args)?, &options(args, source, &args.launch.given.env)?).map_err(told)?;
    let max_records = batch(args, device);
    let jobs = sample.jobs(max_records).map_err(told)?;
    if jobs.is_empty() {
        return Err(Failure::usage("bench: no record of the input can be run")
            .hint("pass typical records with --input")
            .into());
    }
    Ok((jobs, max_records))
}

/// `map --tune`: reads the first batch and finds the fastest build for it, on the first device of each kind. Returns how
/// many records the batch has, and the build for each device.
pub(super) fn first_batch(
    devices: &[Arc<dyn Device>],
    source: &Source,
    args: &MapArgs,
    map: &mut Map,
) -> Result<(usize, Vec<Option<Variant>>)> {
    let records = map.read_first(batch(args, &*devices[0]));
    let records = records.map_err(|error| failure::told(&source.name, error))?;
    let jobs = map.first_jobs();
    let kinds = devices.iter().map(|device| device.code_target()).collect::<Result<Vec<_>, _>>()?;
    let mut best = Vec::new();
    for (at, device) in devices.iter().enumerate() {
        best.push(match kinds[..at].iter().position(|kind| *kind == kinds[at]) {
            Some(same) => best[same],
            None => try_all(device, source, args, &jobs, &mut Escaping(io::stderr()))?,
        });
    }
    Ok((records, best))
}

/// Returns how many records the first batch has, if the input is small: their number is known only after reading them.
pub(super) fn small_batch(
    device: &dyn Device,
    source: &Source,
    args: &MapArgs,
    map: &mut Map,
) -> Result<Option<usize>> {
    let first = is_small(map.input_bytes()).then(|| map.read_first(batch(args, device)));
    first.transpose().map_err(|error| failure::told(&source.name, error))
}

/// Whether the input has few records, judged by the size of the first batch if it was read, else by the input's bytes.
pub(super) fn is_few(first: Option<usize>, input_bytes: Option<u64>) -> bool {
    first.map_or(is_small(input_bytes), |records| records < FEW_RECORDS as usize)
}

fn is_small(input_bytes: Option<u64>) -> bool {
    input_bytes.is_some_and(|bytes| bytes < SMALL_INPUT)
}

/// How to compile, how many records run at once, and on how many lanes of a warp.
pub(super) struct Choice {
    pub(super) options: CompileOptions,
    pub(super) max_records: u32,
    pub(super) lanes: Option<u32>,
    /// What records were found to need.
    pub(super) learned: Option<Allowance>,
    /// Whether the build is a guess: neither the user nor a measurement has chosen it.
    pub(super) is_guess: bool,
}

/// Chooses the build: what the user asked for, or what was just measured, or what was measured earlier, or the default.
pub(super) fn choice(
    compiler: &Compiler,
    device: &Arc<dyn Device>,
    source: &Source,
    args: &MapArgs,
    is_few: bool,
    tuned: Option<Variant>,
    function: Option<&Function>,
) -> Choice {
    let max_records = batch(args, &**device);
    let mut options = usual_options(args, &**device, max_records);
    options.adapter = function.map(|function| function.adapter().clone());
    if (is_few || max_records < FEW_RECORDS) && device.is_gpu() {
        // A GPU reserves local memory for all threads that it can hold.
        options.build = options.build.in_slots();
    }
    if args.launch.codegen.layout != LayoutChoice::Auto {
        return Choice { options, max_records, lanes: None, learned: None, is_guess: false };
    }
    let earlier = recall(compiler, &**device, &source.wasm, &options).unwrap_or_default();
    let learned = earlier.learned;
    match tuned.or_else(|| earlier.best()) {
        Some(variant) => {
            tracing::info!(?variant, "tuned");
            // The variant may have been measured with a few records only. That is no reason to run fewer at once than
            // usual.
            let max_records = args.batch.unwrap_or(variant.batch.max(max_records));
            let options = variant.options(&options);
            Choice { options, max_records, lanes: variant.lanes, learned, is_guess: false }
        }
        None => Choice { options, max_records, lanes: None, learned, is_guess: device.is_gpu() },
    }
}

/// Returns how to run a program with threads.
pub(super) fn only_choice(args: &MapArgs, surface: &Surface, device: &dyn Device) -> Choice {
    let max_records = args.batch.unwrap_or(THREADS_BATCH);
    let options = surface.settle(usual_options(args, device, 1));
    Choice { options, max_records, lanes: None, learned: None, is_guess: false }
}

fn batch(args: &MapArgs, device: &dyn Device) -> u32 {
    let usual = if args.invoke.is_some() { usual_batch_of_calls(device) } else { usual_batch(device) };
    args.batch.unwrap_or(usual)
}

fn usual_options(args: &MapArgs, device: &dyn Device, instances: u32) -> CompileOptions {
    program::options(&args.launch.codegen, device, Entry::Start, instances, args.checks)
}

/// Measures all variants with these jobs, prints each result, and keeps them in the cache. Returns the fastest, if any
/// ran.
fn try_all(
    device: &Arc<dyn Device>,
    source: &Source,
    args: &MapArgs,
    jobs: &[Job],
    out: &mut dyn Write,
) -> Result<Option<Variant>> {
    if jobs.is_empty() {
        let hint = "pass typical records with --input";
        return Err(Failure::usage("tune: no record of the input can be run").hint(hint).into());
    }
    let instances = batch(args, &**device).min(jobs.len() as u32);
    let options = usual_options(args, &**device, instances);
    let all = variants(&**device, instances);
    // A compiler of its own: its loaded programs are dropped with it, which leaves the device's memory to the run.
    let compiler = Compiler::new(program_cache::open(&args.launch.cache)?).limited(args.launch.codegen.compile_timeout);
    writeln!(out, "{} on {}, {} records", source.name, device.properties().name, jobs.len())?;
    let (mut tuning, mut fastest) = (Tuning::default(), 0.0);
    for (at, variant) in all.iter().enumerate() {
        let spinner = Spinner::start(format!("build {} of {}", at + 1, all.len()));
        let trial = trial(&compiler, device, source, args, variant.options(&options), *variant, jobs);
        drop(spinner);
        match trial {
            Ok((trial, learned, compile)) => {
                writeln!(out, "  {}", line(&trial, compile))?;
                if trial.per_second > fastest {
                    (fastest, tuning.learned) = (trial.per_second, learned);
                }
                tuning.trials.push(trial);
            }
            Err(error) => writeln!(out, "  {variant}: {error:#}")?,
        }
    }
    let Some(best) = tuning.best() else { return Ok(None) };
    let kept = remember(&compiler, &**device, &source.wasm, &options, &program_cache::label(&source.name), &tuning)?;
    let what = if kept { "gpu-run map uses it from now on" } else { "not kept: there is no cache" };
    writeln!(out, "fastest: {best}; {what}")?;
    Ok(Some(best))
}

/// Returns how fast a variant is, what its instances need, and how long compiling it took, now or when it was cached.
fn trial(
    compiler: &Compiler,
    device: &Arc<dyn Device>,
    source: &Source,
    args: &MapArgs,
    options: CompileOptions,
    variant: Variant,
    jobs: &[Job],
) -> Result<(Trial, Option<Allowance>, Duration)> {
    let failed = |error| Failure::compiler(&source.name, error);
    let (program, report) = program::load(compiler, device, source, &options)?;
    let compile = report.origin.took();
    let measured = measure(program, variant, jobs, args.launch.max_memory, args.launch.timeout);
    let (per_second, learned) = measured.map_err(failed)?;
    Ok((Trial { variant, per_second }, learned, compile))
}

fn line(trial: &Trial, compile: Duration) -> String {
    let (what, rate) = (trial.variant.to_string(), show_count(trial.per_second));
    format!("{what:<44} {rate:>8} records/s, compiled in {}", show_duration(compile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_short_records_are_many() {
        assert!(!is_few(Some(8192), Some(16384)), "they were counted");
        assert!(is_few(Some(8191), Some(16382)));
        assert!(is_few(None, Some(16384)), "nobody has counted them");
        assert!(!is_few(None, Some(1 << 20)) && !is_few(None, None));
    }
}
