//! `gpu-run bench threads`: what starting, locking, waking and sleeping take threads of the device, and threads of the
//! host, which run the same source (`measures.rs`) in the same run.
//!
//! If a part fails, its error is printed and the other parts continue. Figures are written as they come.

mod guest;
mod measures;

use crate::sheet::Record;
use crate::{Sheet, percentile};
use anyhow::{Context as _, Result, bail};
use gpu_run_compiler::Compiler;
use gpu_run_console::units::{count, show_count, show_duration, three_digits};
use gpu_run_device::Device;
use gpu_run_run::ThreadPlacement;
use guest::Guest;
use measures::LOCKS_TOGETHER;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The name of this bench among the programs of `gpu-run bench`.
pub const NAME: &str = "threads";

/// The program that measures on a device (`scripts/build-bench-guest`).
pub const GUEST: &[u8] = include_bytes!("../../threads.wasm");

/// Threads that want one mutex.
const FEW: u32 = 32;
const MANY: u32 = 1024;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many threads the device's side can have at once, the first one included.
    pub threads: Option<u32>,
    pub placement: ThreadPlacement,
    /// How long a measurement of one side may take.
    pub time: Duration,
}

/// A part of the bench.
type Part = fn(&mut Bench<'_>) -> Result<()>;
const PARTS: [(&str, Part); 8] = [
    ("spawn", spawn),
    ("raw", raw),
    ("lock", lock),
    ("contention", contention),
    ("wake", wake),
    ("sleep", sleep),
    ("mandelbrot", mandelbrot),
    ("sha256", sha256),
];

/// What all parts need.
struct Bench<'a> {
    guest: Guest<'a>,
    time: Duration,
    /// The host's cores.
    cores: usize,
    record: Record<'a>,
}

/// Runs all parts. Returns an error if one failed.
pub fn measure(device: Arc<dyn Device>, compiler: &Compiler, options: &Options, sheet: &mut Sheet) -> Result<()> {
    let cores = std::thread::available_parallelism()?.get();
    let name = device.properties().name.clone();
    let guest = Guest::load(device, compiler, options)?;
    let mut bench = Bench { guest, time: options.time, cores, record: Record::new(sheet) };
    bench.record.line(&format!("threads of {name} and of the host with {}", count(cores as u64, "core")))?;
    bench.record.line(&format!("\n{:WHAT$}{:>12}{:>12}{:>10}", "", "device", "host", "ratio"))?;
    bench.record.put("device", json!(name))?;
    bench.record.put("host_cores", json!(cores))?;
    let mut failed = Vec::new();
    for (name, part) in PARTS {
        if let Err(error) = part(&mut bench) {
            bench.record.line(&format!("{name}: not measured: {error:#}"))?;
            bench.record.put(&format!("{name}_error"), json!(format!("{error:#}")))?;
            failed.push(name);
        }
    }
    bench.record.line("\nratio: how many times as fast as the host")?;
    bench.record.end()?;
    if !failed.is_empty() {
        bail!("not measured: {}", failed.join(", "));
    }
    Ok(())
}

/// Width of the table's first column.
const WHAT: usize = 44;

impl Bench<'_> {
    /// Does one task for some time on both sides, one after the other, each with so many threads besides the first.
    fn both(&mut self, task: &str, threads: u32) -> Result<[Vec<u64>; 2]> {
        let nanoseconds = self.time.as_nanos() as u64;
        Ok([self.guest.measure(task, threads, nanoseconds)?, host(task, threads as usize, nanoseconds)?])
    }

    /// Adds a row with a time, where less is better.
    fn times(&mut self, what: &str, key: &str, device: f64, host: Option<f64>) -> Result<()> {
        self.row(what, &format!("{key}_ns"), (device, host), show_time, host.map(|host| host / device))
    }

    /// Adds a row with a rate, where more is better.
    fn rates(&mut self, what: &str, key: &str, device: f64, host: f64) -> Result<()> {
        let show = |rate: f64| format!("{}/s", show_count(rate));
        self.row(what, &format!("{key}_per_second"), (device, Some(host)), show, Some(device / host))
    }

    fn row(
        &mut self,
        what: &str,
        key: &str,
        (device, host): (f64, Option<f64>),
        show: impl Fn(f64) -> String,
        ratio: Option<f64>,
    ) -> Result<()> {
        let (ours, theirs) = (show(device), host.map_or("-".into(), show));
        let times = ratio.map_or("-".into(), |ratio| format!("{}×", three_digits(ratio)));
        self.record.line(&format!("{what:WHAT$}{ours:>12}{theirs:>12}{times:>10}"))?;
        self.record.put(key, json!({ "device": device, "host": host }))
    }

    /// Adds two rows, for half and for 99 of 100 of what was measured.
    fn percentiles(&mut self, what: &str, key: &str, mut device: Vec<u64>, mut host: Option<Vec<u64>>) -> Result<()> {
        for part in [50, 99] {
            let [device, host] = [Some(&mut device), host.as_mut()]
                .map(|times| times.map(|times| percentile(times, part).max(1) as f64));
            self.times(&format!("{what}, p{part}"), &format!("{key}_p{part}"), device.unwrap_or(0.0), host)?;
        }
        Ok(())
    }
}

fn show_time(nanoseconds: f64) -> String {
    match nanoseconds {
        short if short < 1000.0 => format!("{} ns", three_digits(short)),
        long => show_duration(Duration::from_nanos(long as u64)),
    }
}

/// Does one task on the host.
fn host(task: &str, threads: usize, size: u64) -> Result<Vec<u64>> {
    measures::measure(task, threads, size).with_context(|| format!("there is no task {task}"))
}

fn spawn(bench: &mut Bench<'_>) -> Result<()> {
    let [device, host] = bench.both("spawn", 1)?;
    bench.percentiles("spawn and join, std::thread", "spawn", device, Some(host))
}

/// The host has nothing to compare with: its threads and futexes have no such names.
fn raw(bench: &mut Bench<'_>) -> Result<()> {
    let (spawns, wakes) = bench.guest.raw()?;
    bench.percentiles("spawn and join, wasi.thread-spawn", "raw_spawn", spawns, None)?;
    bench.percentiles("wake-up, memory.atomic.notify", "raw_wake", wakes, None)
}

fn lock(bench: &mut Bench<'_>) -> Result<()> {
    let [device, host] = bench.both("lock", 1)?.map(|mut times| percentile(&mut times, 50) as f64);
    let each = LOCKS_TOGETHER as f64;
    bench.times("lock and unlock of a Mutex, uncontended", "lock", device / each, Some(host / each))
}

fn contention(bench: &mut Bench<'_>) -> Result<()> {
    for threads in [FEW, MANY] {
        let [device, host] = bench.both("contend", threads)?;
        let rate = |figures: &[u64]| -> Result<f64> {
            let [took, total, ..]: [u64; 5] = exactly(figures)?;
            Ok(total as f64 / Duration::from_nanos(took).as_secs_f64())
        };
        let what = format!("locks of one Mutex, {threads} threads");
        bench.rates(&what, &format!("contended_{threads}"), rate(&device)?, rate(&host)?)?;
    }
    let [device, host] = bench.both("fairness", MANY)?;
    let ([_, _, fewest, most, longest], [_, _, host_fewest, host_most, host_longest]) =
        (exactly(&device)?, exactly(&host)?);
    bench.times("  the longest that one was without it", "starved", longest as f64, Some(host_longest as f64))?;
    let mut counts = |what: &str, key: &str, device: u64, host: u64| {
        bench.row(what, key, (device as f64, Some(host as f64)), show_count, None)
    };
    counts("  locks of the thread with the fewest", "fewest_locks", fewest, host_fewest)?;
    counts("  locks of the thread with the most", "most_locks", most, host_most)
}

fn wake(bench: &mut Bench<'_>) -> Result<()> {
    let [device, host] = bench.both("ping-pong", 1)?;
    bench.percentiles("wake-up, Condvar, half a round trip", "wake", device, Some(host))
}

fn sleep(bench: &mut Bench<'_>) -> Result<()> {
    let [device, host] = bench.both("sleep", 0)?;
    bench.percentiles("a sleep of 1 ms takes longer by", "oversleep", device, Some(host))
}

fn mandelbrot(bench: &mut Bench<'_>) -> Result<()> {
    work(bench, "Mandelbrot set", "mandelbrot")
}

fn sha256(bench: &mut Bench<'_>) -> Result<()> {
    work(bench, "search of a SHA-256", "sha256")
}

/// The same work for as many threads as the device holds, and for as many as the host has cores.
fn work(bench: &mut Bench<'_>, what: &str, task: &str) -> Result<()> {
    let (size, host) = enough_work(task, bench.cores, bench.time)?;
    let threads = bench.guest.limit() - 1;
    let device = bench.guest.measure(task, threads, size)?;
    let ([took, started, result], [host_took, host_started, expected]) = (exactly(&device)?, exactly(&host)?);
    if result != expected {
        bail!("the device computed {result}, the host {expected}");
    }
    let counts = format!("{what}, {threads} and {}", count(bench.cores as u64, "thread"));
    bench.times(&counts, task, took as f64, Some(host_took as f64))?;
    let (what, key) = ("  until all threads were started", format!("{task}_started_ns"));
    bench.row(what, &key, (started as f64, Some(host_started as f64)), show_time, None)?;
    bench.record.put(&format!("{task}_threads"), json!(threads))?;
    bench.record.put(&format!("{task}_size"), json!(size))
}

fn exactly<const N: usize>(figures: &[u64]) -> Result<[u64; N]> {
    figures.try_into().with_context(|| format!("got {} figures instead of {N}", figures.len()))
}

/// Doubles the work until the host takes at least half of the time for it. Returns its size and the host's figures.
fn enough_work(task: &str, threads: usize, time: Duration) -> Result<(u64, Vec<u64>)> {
    let mut size = 16;
    loop {
        let began = Instant::now();
        let figures = host(task, threads, size)?;
        if began.elapsed() >= time / 2 {
            return Ok((size, figures));
        }
        size *= 2;
    }
}
