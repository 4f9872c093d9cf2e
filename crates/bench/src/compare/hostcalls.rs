//! The cost of host calls: their round trip for one instance and for one warp, their throughput when all lanes call,
//! and the host's CPU use while nobody calls.
//!
//! The guest (`benches/hostcalls.wat`) asks for the time and prints the answers. The host reads the clock when it
//! answers, so the difference between two answers is one round trip as the guest sees it.

use super::on_device::{self, Loaded};
use super::{Options, show_grouped};
use crate::percentile;
use anyhow::{Context as _, Result, bail};
use gpu_run_console::progress::Progress;
use gpu_run_console::units::{show_count, show_duration};
use gpu_run_device::Device;
use gpu_run_map::Results;
use gpu_run_run::Source;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The name of this part among the programs of `gpu-run bench`.
pub const NAME: &str = "hostcalls";
const GUEST: &str = include_str!("../../../../benches/hostcalls.wat");

/// Instances in a warp.
const WARP: u32 = 32;
/// Calls per instance when one instance or one warp calls.
const CALLS_ALONE: u32 = 10_000;
/// Calls per instance when many call.
const CALLS_MANY: u32 = 50;
/// What a warp counts to without making calls: takes about a second.
const COUNTS: u32 = 200_000_000;
const ROUNDS: usize = 3;

#[derive(Clone, Debug)]
pub(super) struct HostCalls {
    /// The median round trip when one instance calls.
    pub(super) one: Duration,
    /// The median and the 99th percentile when one warp calls.
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    /// How many of the warp's calls were measured.
    pub(super) measured: usize,
    /// Calls per second when `instances` call.
    pub(super) per_second: f64,
    pub(super) instances: u32,
    /// The share of a core that the host uses while guests only compute; `None` on `cpu`, where the same cores run the
    /// guests.
    pub(super) idle: Option<f64>,
}

/// What the guest does.
#[derive(Clone, Copy, Debug)]
struct Work {
    counts: u32,
    calls: u32,
}

impl Work {
    fn source(self) -> Result<Source> {
        let pages = (64 + self.calls * 8).div_ceil(65_536);
        let mut text = GUEST.to_owned();
        for (mark, number) in [("pages", pages), ("counts", self.counts), ("calls", self.calls)] {
            text = with_number(&text, mark, number).with_context(|| format!("hostcalls.wat does not mark {mark}"))?;
        }
        let name = "hostcalls.wat".to_owned();
        Ok(Source { argv0: name.clone(), name, wasm: wat::parse_str(text)?.into() })
    }
}

/// Replaces the number before a mark in the text.
fn with_number(text: &str, mark: &str, number: u32) -> Option<String> {
    let (before, after) = text.split_once(&format!(" (; {mark} ;)"))?;
    let before = before.trim_end_matches(|c: char| c.is_ascii_digit());
    Some(format!("{before}{number}{after}"))
}

pub(super) fn measure(device: &Arc<dyn Device>, options: &Options) -> Result<HostCalls> {
    let instances = options.instances;
    let _progress = Progress::start(NAME.into());
    let load =
        |work: Work, instances: u32| -> Result<Loaded> { on_device::load(device, &work.source()?, options, instances) };
    let trips = |instances: u32| -> Result<Vec<u64>> {
        let calling = load(Work { counts: 1, calls: CALLS_ALONE }, instances)?;
        round_trips(&on_device::run(&calling, instances)?.0)
    };
    let (mut one, mut times) = (trips(1)?, trips(WARP)?);

    let many = load(Work { counts: 1, calls: CALLS_MANY }, instances)?;
    let mut per_second = 0f64;
    for _ in 0..ROUNDS {
        let (_, stats) = on_device::run(&many, instances)?;
        per_second = per_second.max(stats.hostcalls as f64 / stats.run.as_secs_f64());
    }
    drop(many);

    let idle = match device.is_gpu() {
        false => None,
        true => {
            let silent = load(Work { counts: COUNTS, calls: 0 }, WARP)?;
            let (_, stats) = on_device::run(&silent, WARP)?;
            Some(stats.service.as_secs_f64() / stats.run.as_secs_f64())
        }
    };
    let at = |times: &mut [u64], part: usize| Duration::from_nanos(percentile(times, part));
    let (one, p50, p99) = (at(&mut one, 50), at(&mut times, 50), at(&mut times, 99));
    Ok(HostCalls { one, p50, p99, measured: times.len(), per_second, instances, idle })
}

/// Returns the nanoseconds between successive answers, of all instances.
fn round_trips(results: &Results) -> Result<Vec<u64>> {
    let mut times = Vec::new();
    for done in results.iter() {
        let (stamps, rest) = done.stdout.as_chunks();
        if stamps.len() < 2 || !rest.is_empty() {
            bail!("hostcalls.wat printed {} bytes", done.stdout.len());
        }
        let stamps: Vec<u64> = stamps.iter().map(|stamp| u64::from_le_bytes(*stamp)).collect();
        times.extend(stamps.windows(2).map(|pair| pair[1].saturating_sub(pair[0])));
    }
    Ok(times)
}

pub(super) fn text(calls: &Result<HostCalls, String>) -> String {
    let calls = match calls {
        Ok(calls) => calls,
        Err(error) => return format!("host calls: failed: {}\n", error.lines().next().unwrap_or("")),
    };
    let idle = calls.idle.map_or(String::new(), |share| {
        format!("\n            {:.1} % of a core while guests only compute", share * 100.0)
    });
    format!(
        "host calls: {} p50 round trip for one instance; {} p50, {} p99 for one warp ({} calls)\n            {} a second from {} instances{idle}\n",
        show_duration(calls.one),
        show_duration(calls.p50),
        show_duration(calls.p99),
        show_grouped(calls.measured as u32),
        show_count(calls.per_second),
        show_grouped(calls.instances),
    )
}

pub(super) fn json(calls: &Result<HostCalls, String>) -> Value {
    let figures = calls.as_ref().ok();
    json!({
        "error": calls.as_ref().err(),
        "round_trip_one_p50_seconds": figures.map(|c| c.one.as_secs_f64()),
        "round_trip_p50_seconds": figures.map(|c| c.p50.as_secs_f64()),
        "round_trip_p99_seconds": figures.map(|c| c.p99.as_secs_f64()),
        "round_trips_measured": figures.map(|c| c.measured),
        "per_second": figures.map(|c| c.per_second),
        "instances": figures.map(|c| c.instances),
        "idle_core_share": figures.and_then(|c| c.idle),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_run_run::End;

    #[test]
    fn every_number_has_its_place_in_the_guest() {
        for work in [Work { counts: 7, calls: 0 }, Work { counts: 1, calls: 16_000 }] {
            let text = wasmparser::Parser::new(0).parse_all(&work.source().unwrap().wasm).count();
            assert!(text > 0);
        }
        assert_eq!(with_number("(a 12 (; x ;)) 3", "x", 456).unwrap(), "(a 456) 3");
        assert_eq!(with_number("(a 12)", "x", 1), None);
    }

    #[test]
    fn round_trips_lie_between_the_answers_of_one_instance() {
        let stamps = |times: &[u64]| times.iter().flat_map(|time| time.to_le_bytes()).collect::<Vec<u8>>();
        let mut results = Results::default();
        results.push(End::Returned, &stamps(&[100, 103, 110]), b"", None);
        results.push(End::Returned, &stamps(&[50, 52]), b"", None);
        assert_eq!(round_trips(&results).unwrap(), [3, 7, 2]);
        results.push(End::Returned, b"", b"", None);
        assert!(round_trips(&results).is_err());
    }
}
