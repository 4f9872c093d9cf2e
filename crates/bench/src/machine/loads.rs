//! Loading new code into a running machine: for how long it does not tick.
//!
//! First, ticks follow each other as fast as possible, so that the time from the old code's last tick to the new code's
//! first tick is the whole cost of loading. Then the machine runs at 120 Hz, where a late tick would show. The same
//! code is loaded every time, but treated as new: no code that is already on the device is reused.

use super::{Bench, Record, micros, percentile};
use anyhow::{Result, bail};
use gpu_run_console::units::milliseconds;
use gpu_run_machine::{GridSize, Kernel, Options, Workload};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const LOADS: usize = 20;
/// The loads of one row stop after this long.
const LIMIT: Duration = Duration::from_secs(8);
/// One frame at 120 Hz.
const FRAME: Duration = Duration::from_micros(8333);

pub(super) fn loads(bench: &Bench, record: &mut Record<'_>) -> Result<()> {
    let mut rows = Vec::new();
    for (name, grid, rate) in
        [("", GridSize::One, 0), (", all multiprocessors", GridSize::Auto, 0), (", at 120 Hz", GridSize::One, 120)]
    {
        let row = measure(bench, grid, rate)?;
        record.line(&format!(
            "{:<28} {:.3} ms p50, {:.3} ms at most between two ticks, {:.3} ms p50 paused; a frame has {:.2} ms; {} loads{}",
            format!("new code{name}"),
            milliseconds(row.between.0),
            milliseconds(row.between.1),
            milliseconds(row.away.0),
            milliseconds(FRAME),
            row.loads,
            if rate == 0 { String::new() } else { format!(", {} ticks late", row.late) }
        ))?;
        rows.push(row.json(&format!("new code{name}")));
        record.put("loads", Value::Array(rows.clone()))?;
    }
    Ok(())
}

struct Row {
    loads: usize,
    /// The median and the maximum.
    between: (Duration, Duration),
    away: (Duration, Duration),
    preparation: Duration,
    late: u64,
}

impl Row {
    fn json(&self, name: &str) -> Value {
        json!({
            "what": name,
            "loads": self.loads,
            "between_ticks_p50_us": micros(self.between.0),
            "between_ticks_max_us": micros(self.between.1),
            "away_p50_us": micros(self.away.0),
            "away_max_us": micros(self.away.1),
            "preparation_p50_us": micros(self.preparation),
            "frame_us": micros(FRAME),
            "ticks_late": self.late,
        })
    }
}

fn measure(bench: &Bench, grid: GridSize, rate: u32) -> Result<Row> {
    let machine = bench.boot(Options { grid, rate, ..Options::default() })?;
    let (mut load, late) = (Workload::new(5), machine.status().late);
    let (mut between, mut away, mut preparation) = (Vec::new(), Vec::new(), Vec::new());
    let began = Instant::now();
    while away.len() < LOADS && began.elapsed() < LIMIT {
        for event in load.by_ref().take(200) {
            let _ = machine.post(event); // Ring full: enough to do.
        }
        let loaded = machine.load(bench.compiler, &Kernel::built_in())?;
        between.extend(loaded.between_ticks);
        away.push(loaded.gap);
        preparation.push(loaded.preparation);
        machine.take_events();
        // Lets the machine run for a while between two loads.
        std::thread::sleep(Duration::from_millis(20));
    }
    let late = machine.status().late - late;
    machine.shutdown()?;
    if between.is_empty() {
        bail!("no tick was seen after a load");
    }
    let both = |times: &mut Vec<Duration>| (percentile(times, 50), percentile(times, 100));
    Ok(Row {
        loads: away.len(),
        between: both(&mut between),
        away: both(&mut away),
        preparation: percentile(&mut preparation, 50),
        late,
    })
}
