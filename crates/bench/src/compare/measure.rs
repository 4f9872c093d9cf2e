//! Measures one program. The sides take turns, so that both see the computer in the same state, and the best round of
//! each counts. Outputs are compared before any figure is believed.

use super::Options;
use super::handwritten::Handwritten;
use super::on_device::{self, Loaded, run_device, run_one};
use super::on_wasmtime::OnWasmtime;
use anyhow::{Context as _, Result, bail};
use gpu_run_console::progress::Progress;
use gpu_run_device::Device;
use gpu_run_run::Source;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const ROUNDS: u32 = 3;
/// How many instances' outputs are compared.
const SAMPLE: u32 = 16;
/// How often a single instance is run; the median counts. Long programs are run less often.
const SINGLE_RUNS: usize = 15;

#[derive(Clone, Debug)]
pub(super) struct Figures {
    /// Instances per second.
    pub(super) device_rate: f64,
    pub(super) wasmtime_rate: f64,
    /// The same work as a hand-written CUDA kernel.
    pub(super) handwritten_rate: Option<f64>,
    /// The time of one instance alone.
    pub(super) device_latency: Duration,
    pub(super) wasmtime_latency: Duration,
    /// Time from wasm to PTX.
    pub(super) to_ptx: Duration,
    /// Time from PTX to a program on the device.
    pub(super) load: Duration,
    /// Time from the module's bytes to a program on the device when the program is in the cache.
    pub(super) warm_start: Option<Duration>,
    /// The fastest build, if several were tried.
    pub(super) build: Option<String>,
}

impl Figures {
    pub(super) fn ratio(&self) -> f64 {
        self.device_rate / self.wasmtime_rate
    }
}

/// Measures a program; `place` says in the progress line how far the bench is.
pub(super) fn measure(
    place: &str,
    device: &Arc<dyn Device>,
    source: &Source,
    name: &str,
    options: &Options,
    threads: usize,
    handwritten: Option<&Handwritten>,
) -> Result<Figures> {
    let progress = Progress::start(format!("{place}: compiling"));
    let loaded = on_device::load(device, source, options, options.instances)?;
    // The latency of one instance is that of `gpu-run FILE`, which compiles for one instance.
    let differs = options.layout(&**device, options.instances) != options.layout(&**device, 1);
    let alone = if differs { Some(on_device::load(device, source, options, 1)?) } else { None };
    let wasmtime = OnWasmtime::new(source, threads)?;
    drop(progress);

    let progress = Progress::start(format!("{place}: one instance"));
    // The device first: it stops programs that never return.
    let device_latency = device_latency(alone.as_ref().unwrap_or(&loaded), options.budget)?;
    let wasmtime_latency = median(options.budget, || {
        let began = Instant::now();
        wasmtime.run(0).map(|_| began.elapsed())
    })?;
    drop(progress);

    let progress = Progress::start(format!("{place}: {} instances", options.instances));
    let sample = sample(options.instances);
    let expected = wasmtime.outputs(&sample)?;
    let (device_rate, wasmtime_rate) = rates(&loaded, &wasmtime, options, &sample, &expected)?;
    drop(progress);

    let progress = Progress::start(format!("{place}: hand-written CUDA"));
    let handwritten_rate = match handwritten {
        Some(handwritten) => handwritten.rate(name, options.instances, &expected[0])?,
        None => None,
    };
    drop(progress);
    Ok(Figures {
        device_rate,
        wasmtime_rate,
        handwritten_rate,
        device_latency,
        wasmtime_latency,
        to_ptx: loaded.built.to_ptx,
        load: loaded.built.load,
        warm_start: loaded.built.again,
        build: loaded.faster().map(|variant| variant.to_string()),
    })
}

/// Returns the instances per second of each side's best round.
fn rates(
    loaded: &Loaded,
    wasmtime: &OnWasmtime,
    options: &Options,
    sample: &[u32],
    expected: &[Vec<u8>],
) -> Result<(f64, f64)> {
    // Work that happens only once is not counted: building for instances that need another build, allocating device
    // memory.
    on_device::run(loaded, loaded.built.batch)?;
    if loaded.tries_another() {
        on_device::run(loaded, loaded.built.batch)?;
        if loaded.faster().is_some() {
            on_device::run(loaded, loaded.built.batch)?;
        }
    }
    let (mut ours, mut theirs, mut spent) = (0.0f64, 0.0f64, Duration::ZERO);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let (outputs, rate) = run_device(loaded, loaded.built.batch, sample, options.budget)?;
        spent += began.elapsed();
        compare(sample, &outputs, expected)?;
        ours = ours.max(rate);
        theirs = theirs.max(wasmtime.rate(options.instances, options.budget)?);
        // A batch on the device cannot be stopped early.
        if spent > options.budget * ROUNDS * 2 {
            break;
        }
    }
    Ok((ours, theirs))
}

fn device_latency(loaded: &Loaded, budget: Duration) -> Result<Duration> {
    run_one(loaded).context("one instance alone")?; // sets up what later runs reuse
    median(budget, || run_one(loaded))
}

/// Returns the median of several runs, at least one. No further run starts after a quarter of the budget.
pub(super) fn median(budget: Duration, mut run: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let began = Instant::now();
    let mut times = vec![run()?];
    while times.len() < SINGLE_RUNS && began.elapsed() < budget / 4 {
        times.push(run()?);
    }
    times.sort();
    Ok(times[times.len() / 2])
}

/// Returns the first instance, the last and some in between.
pub(super) fn sample(instances: u32) -> Vec<u32> {
    let last = u64::from(instances.max(1) - 1);
    let steps = u64::from(SAMPLE - 1);
    let mut sample: Vec<u32> = (0..=steps).map(|step| (last * step / steps) as u32).collect();
    sample.dedup();
    sample
}

/// Checks that both sides printed the same.
fn compare(sample: &[u32], ours: &[Vec<u8>], theirs: &[Vec<u8>]) -> Result<()> {
    for ((instance, ours), theirs) in sample.iter().zip(ours).zip(theirs) {
        if ours != theirs {
            let [ours, theirs] = [ours, theirs].map(|bytes| excerpt(bytes, ours, theirs));
            bail!(
                "instance {instance} does not print the same as under Wasmtime\n  device:   {ours}\n  Wasmtime: {theirs}"
            );
        }
    }
    Ok(())
}

/// Returns the part of an output where the two differ.
pub(super) fn excerpt(bytes: &[u8], one: &[u8], other: &[u8]) -> String {
    const SHOWN: usize = 60;
    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(SHOWN / 2).min(bytes.len());
    let part = &bytes[from..bytes.len().min(from + SHOWN)];
    let dots = if from > 0 { "…" } else { "" };
    format!("{dots}{:?} ({} bytes)", String::from_utf8_lossy(part), bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_first_and_the_last_and_none_twice() {
        assert_eq!(sample(1), [0]);
        assert_eq!(sample(3), [0, 1, 2]);
        let many = sample(65_536);
        assert_eq!((many.len(), many[0], many[15]), (16, 0, 65_535));
        assert!(many.windows(2).all(|pair| pair[0] < pair[1]), "{many:?}");
        assert_eq!(sample(u32::MAX).last(), Some(&(u32::MAX - 1)));
    }

    #[test]
    fn a_difference_names_the_instance_and_shows_where() {
        let [ours, theirs] = ["x".repeat(100) + "ours", "x".repeat(100) + "theirs"].map(String::into_bytes);
        let same = b"same".to_vec();
        assert!(compare(&[0], std::slice::from_ref(&same), std::slice::from_ref(&same)).is_ok());
        let error = compare(&[0, 7], &[same.clone(), ours], &[same, theirs]).unwrap_err().to_string();
        assert!(error.contains("instance 7") && error.contains("xours\"") && error.contains("xtheirs\""), "{error}");
    }
}
