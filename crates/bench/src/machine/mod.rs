//! `gpu-run bench machine`: how long ticks, events, allocations and loads of new code take on the resident machine.
//!
//! ```text
//! events   the round trip of an event, compared with that of one word; events per second
//! ticks    how long a tick takes under every strategy, idle and under load
//! loads    how long the machine is away when new code is loaded
//! memory   the heap compared with the device's malloc; what the L2 cache keeps between launches
//!
//! round_trip, launch, malloc, l2   the baselines: measured without a machine, most of them by hand-written kernels
//! ```
//!
//! Figures that are compared are measured one after the other in the same run. If a part fails, its error is printed
//! and the other parts continue. Figures are written as they come, so that none is lost.

mod events;
mod l2;
mod launch;
mod loads;
mod malloc;
mod memory;
mod round_trip;
pub mod storm;
mod ticks;

use crate::sheet::Record;
use crate::{Sheet, percentile};
use anyhow::{Result, bail};
use gpu_run_compiler::Compiler;
use gpu_run_device::Device;
use gpu_run_machine::{Machine, Options, Start};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The name of this bench among the programs of `gpu-run bench`.
pub const NAME: &str = "machine";

/// The hand-written kernels to compare with, by name.
pub const BASELINES: [(&str, &str); 3] = [("malloc", malloc::PTX), ("l2", l2::PTX), ("launch", launch::PTX)];

/// A part of the bench.
type Part = fn(&Bench<'_>, &mut Record<'_>) -> Result<()>;
const PARTS: [(&str, Part); 6] = [
    ("events", events::round_trips),
    ("throughput", events::throughput),
    ("loads", loads::loads),
    ("heap", memory::heap),
    ("l2", memory::cache),
    ("strategies", ticks::strategies),
];

/// What all parts need.
struct Bench<'a> {
    device: Arc<dyn Device>,
    compiler: &'a Compiler,
}

impl Bench<'_> {
    fn boot(&self, options: Options) -> Result<Machine> {
        Ok(Machine::boot(self.compiler, &self.device, Start::Empty, options)?)
    }
}

/// Runs all parts. Returns an error if one failed.
pub fn measure(device: Arc<dyn Device>, compiler: &Compiler, sheet: &mut Sheet) -> Result<()> {
    let bench = Bench { device, compiler };
    let mut record = Record::new(sheet);
    record.put("device", json!(bench.device.properties().name))?;
    let mut failed = Vec::new();
    for (name, part) in PARTS {
        if let Err(error) = part(&bench, &mut record) {
            record.line(&format!("{name}: not measured: {error:#}"))?;
            record.put(&format!("{name}_error"), json!(format!("{error:#}")))?;
            failed.push(name);
        }
    }
    record.end()?;
    if !failed.is_empty() {
        bail!("not measured: {}", failed.join(", "));
    }
    Ok(())
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
