//! How long a tick takes under every strategy, idle and under load, compared with a launch that does nothing.

use super::{Bench, Record, launch, micros};
use anyhow::Result;
use gpu_run_console::units::milliseconds;
use gpu_run_console::units::show_duration;
use gpu_run_machine::{GridSize, Options, Strategy, Workload};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long each machine ticks, once idle and once under load.
const TICKING: Duration = Duration::from_millis(800);

pub(super) fn strategies(bench: &Bench, record: &mut Record<'_>) -> Result<()> {
    let bare = launch::bare(&bench.device)?;
    let (waited, queued) = (show_duration(bare.waited), show_duration(bare.queued));
    record.line(&format!("an empty launch              {waited} p50 until it ends, {queued} in a queue of others"))?;
    record.put("bare_launch_us", json!({ "waited": micros(bare.waited), "queued": micros(bare.queued) }))?;
    record.line("\nSTRATEGY          IDLE TICK   LOADED TICK   LAUNCHES/TICK   LANES   HEARTBEAT GAP")?;
    let mut rows = Vec::new();
    for strategy in strategies_to_measure() {
        for grid in [GridSize::One, GridSize::Auto] {
            let row = ticks(bench, strategy, grid)?;
            let name = format!("{strategy}{}", if grid == GridSize::Auto { " auto" } else { "" });
            record.line(&format!(
                "{name:<17} {:>9}   {:>11}   {:>13.3}   {:>5}   {:>10.2} ms",
                show_duration(row.idle),
                show_duration(row.loaded),
                row.launches,
                row.lanes.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0)),
                milliseconds(row.gap)
            ))?;
            rows.push(row.json(&name));
            record.put("strategies", Value::Array(rows.clone()))?;
        }
    }
    Ok(())
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

/// What ticks cost under one strategy.
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
            "heartbeat_gap_ms": milliseconds(self.gap),
        })
    }
}

/// Measures ticks at the highest possible rate.
fn ticks(bench: &Bench, strategy: Strategy, grid: GridSize) -> Result<Row> {
    let machine = bench.boot(Options { strategy, grid, rate: 0, ..Options::default() })?;
    let (began, before) = (Instant::now(), machine.status());
    std::thread::sleep(TICKING);
    let (idle_time, between) = (began.elapsed(), machine.status());
    let mut load = Workload::new(3);
    let began = Instant::now();
    while began.elapsed() < TICKING {
        // Enough events for each tick to keep all lanes busy, but few enough that they do not pile up.
        while machine.status().waiting < 1024 {
            let Some(event) = load.next() else { break };
            if machine.post(event).is_err() {
                break;
            }
        }
        machine.take_events();
        std::thread::sleep(Duration::from_micros(200));
    }
    let (loaded_time, after) = (began.elapsed(), machine.status());
    machine.shutdown()?;
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
