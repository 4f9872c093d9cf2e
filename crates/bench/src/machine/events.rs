//! Events: their round trip, compared with that of a single word, and their throughput.

use super::round_trip::{self, relax};
use super::{Bench, Record, micros, percentile};
use anyhow::{Result, bail};
use gpu_run_console::units::{show_count, show_duration};
use gpu_run_machine::event::{self, Event};
use gpu_run_machine::{Options, Workload};
use serde_json::json;
use std::time::{Duration, Instant};

/// Round trips of each kind, on a GPU.
const TRIPS: u64 = 2000;
/// Round trips of each kind, on `cpu`.
const TRIPS_CPU: u64 = 200;
/// How long events are posted.
const POSTING: Duration = Duration::from_millis(1500);
/// How long a machine may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn round_trips(bench: &Bench, record: &mut Record<'_>) -> Result<()> {
    let count = if bench.device.is_gpu() { TRIPS } else { TRIPS_CPU };
    let mut bare = round_trip::bare(bench.compiler, &bench.device, count)?;
    let mut event = event_round_trips(bench, count)?;
    let mut row = |what: &str, key: &str, times: &mut [Duration], more: &str| {
        let (half, most) = (percentile(times, 50), percentile(times, 99));
        record.line(&format!("{what:<28} {} p50, {} p99{more}", show_duration(half), show_duration(most)))?;
        record.put(&format!("{key}_us"), json!(micros(half)))?;
        record.put(&format!("{key}_p99_us"), json!(micros(most)))
    };
    row("round trip of one word", "bare_round_trip", &mut bare, "")?;
    let ratio = percentile(&mut event, 50).as_secs_f64() / percentile(&mut bare, 50).as_secs_f64();
    row("round trip of one event", "event_round_trip", &mut event, &format!(", {ratio:.2} times that of a word"))?;
    record.put("event_to_bare", json!(ratio))
}

/// Measures a ping and its answer, one at a time, while the machine ticks.
fn event_round_trips(bench: &Bench, count: u64) -> Result<Vec<Duration>> {
    let machine = bench.boot(Options::default())?;
    let mut times = Vec::new();
    for id in 0..count as u32 {
        let began = Instant::now();
        machine.post(Event { kind: event::PING, id, ..Event::default() })?;
        while !machine.take_events().iter().any(|answer| answer.id == id) {
            if began.elapsed() > PATIENCE {
                bail!("a ping was not answered within {} s", PATIENCE.as_secs());
            }
            relax(&*bench.device);
        }
        times.push(began.elapsed());
    }
    machine.shutdown()?;
    Ok(times)
}

pub(super) fn throughput(bench: &Bench, record: &mut Record<'_>) -> Result<()> {
    let (pings, effects) = (per_second(bench, true)?, per_second(bench, false)?);
    let (answered, done) = (show_count(pings), show_count(effects));
    record.line(&format!("events through the rings     {answered}/s answered, {done}/s with an effect"))?;
    record.put("pings_per_second", json!(pings))?;
    record.put("events_per_second", json!(effects))
}

/// Returns the events per second, posted as fast as the ring takes them. Pings are answered at once; other events take
/// effect in ticks, which follow each other as fast as possible.
fn per_second(bench: &Bench, pings: bool) -> Result<f64> {
    let machine = bench.boot(Options { rate: if pings { 120 } else { 0 }, ..Options::default() })?;
    let mut load = Workload::new(7);
    let began = Instant::now();
    let (mut answered, before) = (0u64, machine.status().events);
    while began.elapsed() < POSTING {
        for _ in 0..64 {
            let ping = Event { kind: event::PING, ..Event::default() };
            let event = if pings { Some(ping) } else { load.next().map(|event| Event { wait: 0, ..event }) };
            if event.is_some_and(|event| machine.post(event).is_err()) {
                relax(&*bench.device);
                break;
            }
        }
        answered +=
            machine.take_events().iter().filter(|event| event.kind == event::PING | event::REPLY).count() as u64;
    }
    let done = if pings { answered } else { machine.status().events - before };
    let rate = done as f64 / began.elapsed().as_secs_f64();
    machine.shutdown()?;
    Ok(rate)
}
