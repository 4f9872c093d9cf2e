//! `gpu-run bench PROGRAM --input RECORDS`: the user's own program with the user's own records, on the device and on
//! Wasmtime.

use super::measure::{ROUNDS, excerpt, median};
use super::on_device::{self, Built, Loaded};
use super::on_wasmtime::{Ending, Given, OnWasmtime, Ran};
use super::verdict::{Comparison, Curve, Different, Side, Verdict};
use super::{Options, Setting, host_threads};
use crate::Sheet;
use anyhow::Result;
use gpu_run_console::progress::Progress;
use gpu_run_device::Device;
use gpu_run_map::{Done, Results};
use gpu_run_run::{Allowance, End, Job, Source};
use gpu_run_wasi::Preopen;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Numbers of records that are each run from an empty device, as far as time and memory allow: the time of a few
/// records cannot be derived from that of many.
const SESSIONS: [u32; 5] = [1, 32, 1024, 8 << 10, 32 << 10];
/// A session is the last one if it takes longer than this many times the budget.
const MAX_SESSION_ROUNDS: u32 = 2;
/// A session is also the last one if its rate is below this percentage of the previous session's rate.
const MIN_GAIN_PERCENT: u32 = 110;
/// Neither rule looks at smaller sessions: their first records find out what they need, and wait for builds.
const MIN_TELLING_RECORDS: u32 = 1024;

/// The user's program and records.
#[derive(Debug)]
pub struct Own {
    pub source: Source,
    /// The jobs that the records become.
    pub jobs: Vec<Job>,
    /// Folders that each instance is given.
    pub folders: Vec<Preopen>,
    pub max_memory: Option<u64>,
    /// How long opening the device took.
    pub opening: Duration,
}

/// Measures at most `options.instances` records at once. Returns whether both sides gave the same.
pub fn measure(device: &Arc<dyn Device>, own: Own, options: &Options, sheet: &mut Sheet) -> Result<bool> {
    let Own { source, jobs, folders, max_memory, opening } = own;
    let count = jobs.len() as u32;
    // Run as many at once as the user has, not as many as the device could take: nobody asked about those.
    let most = options.instances.min(count.max(MIN_TELLING_RECORDS));

    let progress = Progress::start(format!("{}: compiling", source.name));
    let given = jobs.iter().map(Given::like).collect::<Result<Vec<_>>>()?;
    let built = on_device::compile(device, &source, options, jobs, most, max_memory)?;
    let threads = host_threads();
    let began = Instant::now();
    let wasmtime = OnWasmtime::with(&source, threads, given, folders)?;
    let wasmtime_compile = began.elapsed();
    drop(progress);

    // The device first: it stops programs that never return.
    let progress = Progress::start(format!("{}: few records", source.name));
    let (sessions, learned) = sessions(&built, options.budget)?;
    let batch = sessions.last().map_or(1, |(records, _)| *records as u32);
    let loaded = built.for_batches(batch, learned).ready()?;
    let device_latency = median(options.budget, || {
        let began = Instant::now();
        on_device::begin(&loaded, 1)?.finish()?;
        Ok(began.elapsed())
    })?;
    let wasmtime_latency = median(options.budget, || {
        let began = Instant::now();
        wasmtime.run_any(0).map(|_| began.elapsed())
    })?;
    drop(progress);

    let progress = Progress::start(format!("{}: {batch} records at once", source.name));
    let (rates, comparison) = rates(&loaded, &wasmtime, batch, options.budget)?;
    drop(progress);

    let built = &loaded.built;
    let verdict = Verdict {
        program: source.name.clone(),
        setting: Setting::new(&**device, batch),
        is_gpu: device.is_gpu(),
        records: u64::from(count),
        device: Side {
            rate: rates[0],
            latency: device_latency,
            first_start: opening + built.to_ptx + built.load,
            later_start: opening + built.again.unwrap_or(built.load),
            curve: Curve::new(sessions, rates[0]),
        },
        wasmtime: Side {
            rate: rates[1],
            latency: wasmtime_latency,
            first_start: wasmtime_compile,
            later_start: Duration::ZERO,
            curve: Curve::new(vec![(1, wasmtime_latency)], rates[1]),
        },
        comparison,
    };
    sheet.write(&verdict.text())?;
    sheet.end(|| verdict.json())?;
    Ok(verdict.comparison.different.is_empty())
}

/// Numbers of records, and how long each took.
type Sessions = Vec<(u64, Duration)>;

/// Measures each number of records from an empty device. Also returns what records were found to need.
fn sessions(built: &Built, budget: Duration) -> Result<(Sessions, Option<Allowance>)> {
    let (mut sessions, mut learned, mut best) = (Vec::new(), None, 0.0);
    for records in SESSIONS.into_iter().filter(|records| *records < built.batch).chain([built.batch]) {
        let (took, found) = built.session(records, learned)?;
        sessions.push((u64::from(records), took));
        learned = found.or(learned);
        let rate = f64::from(records) / took.as_secs_f64();
        let is_telling = records >= MIN_TELLING_RECORDS;
        if is_telling && took > budget * MAX_SESSION_ROUNDS || rate * 100.0 < best * f64::from(MIN_GAIN_PERCENT) {
            break;
        }
        best = if is_telling { rate } else { 0.0 };
    }
    Ok((sessions, learned))
}

/// Returns the records per second of each side's best round, and whether both give the same.
fn rates(loaded: &Loaded, wasmtime: &OnWasmtime, batch: u32, budget: Duration) -> Result<([f64; 2], Comparison)> {
    let (mut ours, mut theirs) = (0.0f64, 0.0f64);
    // The results of Wasmtime's first round, for as many records as it ran.
    let seen: Vec<OnceLock<Outcome>> = (0..batch).map(|_| OnceLock::new()).collect();
    let mut comparison = None;
    for _ in 0..ROUNDS {
        let mut results = Results::default();
        let rate = on_device::batches(loaded, batch, budget, |last, stats| {
            tracing::debug!(?stats, "ran");
            results = last;
            Ok(())
        })?;
        ours = ours.max(rate);
        let look = |instance: u32, ran: Ran| {
            let _ = seen[instance as usize].set(Outcome::of_wasmtime(&ran));
            Ok(())
        };
        theirs = theirs.max(wasmtime.rate_of(batch, budget, look)?);
        if comparison.is_none() {
            comparison = Some(compare(&results, &seen, wasmtime)?);
        }
    }
    Ok(([ours, theirs], comparison.unwrap_or_default()))
}

/// A record's result, short enough to keep for all records.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Exited { code: i32, stdout: blake3::Hash },
    Trapped,
}

impl Outcome {
    fn of_wasmtime(ran: &Ran) -> Self {
        match ran.end {
            Ending::Exited(code) => Self::Exited { code, stdout: blake3::hash(&ran.stdout) },
            Ending::Trapped(_) => Self::Trapped,
        }
    }

    fn of_device(done: &Done<'_>) -> Self {
        let exited = |code| Self::Exited { code, stdout: blake3::hash(done.stdout) };
        match done.end {
            End::Returned => exited(0),
            End::Exited(code) => exited(*code as i32),
            End::Trapped(_) => Self::Trapped,
        }
    }
}

/// Compares the results of each record that both sides have run.
fn compare(results: &Results, seen: &[OnceLock<Outcome>], wasmtime: &OnWasmtime) -> Result<Comparison> {
    let mut comparison = Comparison::default();
    for (record, (done, theirs)) in results.iter().zip(seen).enumerate() {
        let Some(theirs) = theirs.get() else { continue };
        comparison.compared += 1;
        comparison.failed += u64::from(!matches!(done.end, End::Returned | End::Exited(0)));
        if Outcome::of_device(&done) != *theirs {
            let shown = if comparison.different.is_empty() {
                Some(differ(&done, &wasmtime.run_any(record as u32)?))
            } else {
                None
            };
            comparison.different.push(Different { record: record as u64, shown });
        }
    }
    Ok(comparison)
}

/// Describes how the two results differ: the device's first.
fn differ(done: &Done<'_>, ran: &Ran) -> [String; 2] {
    let exited = |code: i32, bytes: &[u8]| {
        let part = excerpt(bytes, done.stdout, &ran.stdout);
        if code == 0 { part } else { format!("exited {code}, {part}") }
    };
    let ours = match done.end {
        End::Returned => exited(0, done.stdout),
        End::Exited(code) => exited(*code as i32, done.stdout),
        End::Trapped(trap) => format!("trapped: {trap}"),
    };
    let theirs = match &ran.end {
        Ending::Exited(code) => exited(*code, &ran.stdout),
        Ending::Trapped(error) => format!("trapped: {}", error.lines().next().unwrap_or("")),
    };
    [ours, theirs]
}
