//! Events: there and back, beside one word that goes the same way, and as many as there is room for.

use super::{Bench, Sheet, failure, micros, percentile};
use crate::run::is_gpu;
use anyhow::{Result, bail};
use gpu_run_console::units::{show_count, show_duration};
use gpu_run_device::Device;
use gpu_run_machine::event::{self, Event};
use gpu_run_machine::{Load, Options, bare_round_trips};
use serde_json::json;
use std::time::{Duration, Instant};

/// Round trips of each kind.
const TRIPS: u64 = 2000;
const TRIPS_CPU: u64 = 200;
/// How long events are posted.
const POSTING: Duration = Duration::from_millis(1500);
/// How long a machine may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn round_trips(bench: &Bench, sheet: &mut Sheet) -> Result<()> {
    let count = if is_gpu(&*bench.device) { TRIPS } else { TRIPS_CPU };
    let mut bare = bare_round_trips(&bench.compiler, &bench.device, count).map_err(failure)?;
    let mut event = event_round_trips(bench, count)?;
    let mut row = |what: &str, key: &str, times: &mut [Duration], more: &str| {
        let (half, most) = (percentile(times, 50), percentile(times, 99));
        sheet.line(&format!("{what:<28} {} p50, {} p99{more}", show_duration(half), show_duration(most)))?;
        sheet.put(&format!("{key}_us"), json!(micros(half)))?;
        sheet.put(&format!("{key}_p99_us"), json!(micros(most)))
    };
    row("one word there and back", "bare_round_trip", &mut bare, "")?;
    let ratio = percentile(&mut event, 50).as_secs_f64() / percentile(&mut bare, 50).as_secs_f64();
    row("one event there and back", "event_round_trip", &mut event, &format!(": {ratio:.2} times the word"))?;
    sheet.put("event_to_bare", json!(ratio))
}

/// A ping and its answer, one at a time, while the machine ticks.
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
            wait_a_little(&*bench.device);
        }
        times.push(began.elapsed());
    }
    machine.shutdown().map_err(failure)?;
    Ok(times)
}

/// On `cpu` the device needs the core.
fn wait_a_little(device: &dyn Device) {
    if is_gpu(device) { std::hint::spin_loop() } else { std::thread::yield_now() }
}

pub(super) fn throughput(bench: &Bench, sheet: &mut Sheet) -> Result<()> {
    let (pings, effects) = (per_second(bench, true)?, per_second(bench, false)?);
    let (answered, done) = (show_count(pings), show_count(effects));
    sheet.line(&format!("events through the rings     {answered}/s answered, {done}/s with an effect"))?;
    sheet.put("pings_per_second", json!(pings))?;
    sheet.put("events_per_second", json!(effects))
}

/// Events a second, posted as fast as there is room: answered at once, or with an effect in ticks that follow each other as fast as they can.
fn per_second(bench: &Bench, pings: bool) -> Result<f64> {
    let machine = bench.boot(Options { rate: if pings { 120 } else { 0 }, ..Options::default() })?;
    let mut load = Load::new(7);
    let began = Instant::now();
    let (mut answered, before) = (0u64, machine.state().events);
    while began.elapsed() < POSTING {
        for _ in 0..64 {
            let ping = Event { kind: event::PING, ..Event::default() };
            let event = if pings { Some(ping) } else { load.next().map(|event| Event { wait: 0, ..event }) };
            if event.is_some_and(|event| machine.post(event).is_err()) {
                wait_a_little(&*bench.device);
                break;
            }
        }
        answered +=
            machine.take_events().iter().filter(|event| event.kind == event::PING | event::REPLY).count() as u64;
    }
    let done = if pings { answered } else { machine.state().events - before };
    let rate = done as f64 / began.elapsed().as_secs_f64();
    machine.shutdown().map_err(failure)?;
    Ok(rate)
}
