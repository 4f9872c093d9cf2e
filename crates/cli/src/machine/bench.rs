//! `gpu-run bench machine`: what ticks, events and allocations of the resident machine take.
//!
//! The round trip of an event and the bare one-word ping-pong are measured one after the other in the same run, and so is the cost of a tick under every strategy.

use super::failure;
use crate::args::BenchArgs;
use crate::cache::{self, CacheArgs};
use crate::devices;
use crate::output::Standard;
use crate::run::is_gpu;
use crate::units::{show_count, show_duration};
use anyhow::{Context as _, Result, bail};
use gpu_run_device::Device;
use gpu_run_engine::Compiler;
use gpu_run_machine::event::{self, Event};
use gpu_run_machine::{GridSize, Load, Machine, Options, Start, Strategy, bare_round_trips, heap_storm};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What this part is called among the programs.
pub(crate) const NAME: &str = "machine";

/// Round trips of each kind.
const TRIPS: u64 = 2000;
const TRIPS_CPU: u64 = 200;
/// How long a strategy ticks, and how long events are posted.
const TICKING: Duration = Duration::from_millis(1500);
/// Rounds of the heap's storm.
const ROUNDS: u32 = 1000;
/// How long a machine may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn bench(args: &BenchArgs) -> Result<u8> {
    let device = devices::open(args.device)?;
    let compiler = Compiler::new(cache::open(&CacheArgs::default())?);
    let trips = if is_gpu(&*device) { TRIPS } else { TRIPS_CPU };
    let mut out = Standard::stdout()?;
    let mut table = vec![("device", json!(device.properties().name))];

    let bare = percentiles(bare_round_trips(&compiler, &device, trips).map_err(failure)?);
    let event = percentiles(event_round_trips(&compiler, &device, trips)?);
    writeln!(out, "one word there and back      {} p50, {} p99", show_duration(bare.0), show_duration(bare.1))?;
    let ratio = event.0.as_secs_f64() / bare.0.as_secs_f64();
    writeln!(
        out,
        "one event there and back     {} p50, {} p99: {ratio:.2} times the word",
        show_duration(event.0),
        show_duration(event.1)
    )?;
    table.push(("bare_round_trip_us", json!(micros(bare.0))));
    table.push(("event_round_trip_us", json!(micros(event.0))));

    let (pings, effects) = (throughput(&compiler, &device, true)?, throughput(&compiler, &device, false)?);
    writeln!(
        out,
        "events through the rings     {}/s answered, {}/s with an effect",
        show_count(pings),
        show_count(effects)
    )?;
    table.push(("pings_per_second", json!(pings)));
    table.push(("events_per_second", json!(effects)));

    writeln!(out, "\nSTRATEGY          IDLE TICK   LOADED TICK   LAUNCHES/TICK   LANES   HEARTBEAT GAP")?;
    let mut strategies = Vec::new();
    for strategy in strategies_to_measure() {
        for grid in [GridSize::One, GridSize::Auto] {
            let row = ticks(&compiler, &device, strategy, grid)?;
            let name = format!("{strategy}{}", if grid == GridSize::Auto { " auto" } else { "" });
            writeln!(
                out,
                "{name:<17} {:>9}   {:>11}   {:>13.3}   {:>5}   {:>10.2} ms",
                show_duration(row.idle),
                show_duration(row.loaded),
                row.launches,
                row.lanes.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0)),
                super::milliseconds(row.gap)
            )?;
            strategies.push(row.json(&name));
        }
    }
    table.push(("strategies", Value::Array(strategies)));

    let storm = heap_storm(&compiler, &device, None, ROUNDS, 1).map_err(failure)?;
    if (storm.wrong, storm.left) != (0, 0) {
        bail!("the heap lost its way: {storm:?}");
    }
    let allocations = storm.allocations as f64 / storm.time.as_secs_f64();
    writeln!(out, "\nheap: {}/s allocations, each freed, from {} threads", show_count(allocations), storm.threads)?;
    table.push(("allocations_per_second", json!(allocations)));

    if let Some(path) = &args.json {
        let object: serde_json::Map<String, Value> =
            table.into_iter().map(|(key, value)| (key.into(), value)).collect();
        let bytes = serde_json::to_vec_pretty(&object)?;
        std::fs::write(path, bytes).with_context(|| path.display().to_string())?;
    }
    Ok(0)
}

fn strategies_to_measure() -> [Strategy; 6] {
    [
        Strategy::Resident,
        Strategy::Mega(64),
        Strategy::Redispatch,
        Strategy::Buffered(2),
        Strategy::Buffered(3),
        Strategy::Checkpointed(Duration::from_millis(500)),
    ]
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn percentiles(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    let at = |part: usize| times.get((times.len().max(1) - 1) * part / 100).copied().unwrap_or_default();
    (at(50), at(99))
}

fn boot(compiler: &Compiler, device: &Arc<dyn Device>, options: Options) -> Result<Machine> {
    Machine::boot(compiler, device, Start::Empty, options).map_err(failure)
}

/// A ping and its answer, one at a time, while the machine ticks.
fn event_round_trips(compiler: &Compiler, device: &Arc<dyn Device>, count: u64) -> Result<Vec<Duration>> {
    let machine = boot(compiler, device, Options::default())?;
    let mut times = Vec::new();
    for id in 0..count as u32 {
        let began = Instant::now();
        machine.post(Event { kind: event::PING, id, ..Event::default() })?;
        loop {
            if machine.take_events().iter().any(|answer| answer.id == id) {
                break;
            }
            if began.elapsed() > PATIENCE {
                bail!("a ping was not answered");
            }
            wait_a_little(&**device);
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

/// Events a second, posted as fast as there is room: answered at once, or with an effect in ticks that follow each other as fast as they can.
fn throughput(compiler: &Compiler, device: &Arc<dyn Device>, pings: bool) -> Result<f64> {
    let machine = boot(compiler, device, Options { rate: if pings { 120 } else { 0 }, ..Options::default() })?;
    let mut load = Load::new(7);
    let began = Instant::now();
    let (mut answered, before) = (0u64, machine.state().events);
    while began.elapsed() < TICKING {
        for _ in 0..64 {
            let ping = Event { kind: event::PING, ..Event::default() };
            let event = if pings { Some(ping) } else { load.next().map(|event| Event { wait: 0, ..event }) };
            if event.is_some_and(|event| machine.post(event).is_err()) {
                wait_a_little(&**device);
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

/// What ticks cost under a strategy.
struct Row {
    idle: Duration,
    loaded: Duration,
    launches: f64,
    lanes: Option<f64>,
    gap: Duration,
}

impl Row {
    fn json(&self, name: &str) -> Value {
        json!({
            "strategy": name,
            "idle_tick_us": micros(self.idle),
            "loaded_tick_us": micros(self.loaded),
            "launches_per_tick": self.launches,
            "lanes_active": self.lanes,
            "heartbeat_gap_ms": super::milliseconds(self.gap),
        })
    }
}

/// Ticks as fast as they go: with nothing to do, then with events all the time.
fn ticks(compiler: &Compiler, device: &Arc<dyn Device>, strategy: Strategy, grid: GridSize) -> Result<Row> {
    let machine = boot(compiler, device, Options { strategy, grid, rate: 0, ..Options::default() })?;
    let (began, before) = (Instant::now(), machine.state());
    std::thread::sleep(TICKING);
    let (idle_time, between) = (began.elapsed(), machine.state());
    let mut load = Load::new(3);
    let began = Instant::now();
    while began.elapsed() < TICKING {
        // So many for each tick that there is work for all lanes, and not so many that they queue up.
        while machine.state().waiting < 1024 {
            let Some(event) = load.next() else { break };
            if machine.post(event).is_err() {
                break;
            }
        }
        machine.take_events();
        std::thread::sleep(Duration::from_micros(200));
    }
    let (loaded_time, after) = (began.elapsed(), machine.state());
    machine.shutdown().map_err(failure)?;
    let per_tick = |time: Duration, ticks: u64| time / u32::try_from(ticks.max(1)).unwrap_or(u32::MAX);
    let all_ticks = after.tick.saturating_sub(before.tick).max(1);
    Ok(Row {
        idle: per_tick(idle_time, between.tick.saturating_sub(before.tick)),
        loaded: per_tick(loaded_time, after.tick.saturating_sub(between.tick)),
        launches: after.launches.saturating_sub(before.launches) as f64 / all_ticks as f64,
        lanes: after.lanes_active(),
        gap: after.heartbeat_gap,
    })
}
