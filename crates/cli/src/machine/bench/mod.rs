//! `gpu-run bench machine`: what ticks, events, allocations and new code take of the resident machine.
//!
//! ```text
//! events   the round trip of an event beside that of one word; events a second
//! ticks    what a tick costs under every strategy, idle and under load
//! loads    how long the machine is away when new code is loaded
//! memory   the heap beside the device's malloc; what the L2 cache keeps between launches
//! ```
//!
//! What belongs together is measured one after the other in the same run. A part that fails says so, and the others go on; figures are written as they come, so that none is lost.

mod events;
mod loads;
mod memory;
mod ticks;

use super::failure;
use crate::args::BenchArgs;
use crate::args::CacheArgs;
use crate::devices;
use crate::program_cache;
use anyhow::{Context as _, Result, bail};
use gpu_run_compiler::Compiler;
use gpu_run_console::output::Standard;
use gpu_run_device::Device;
use gpu_run_machine::{Machine, Options, Start};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What this part is called among the programs.
pub(crate) const NAME: &str = "machine";

/// A part of the bench.
type Part = fn(&Bench, &mut Sheet) -> Result<()>;
const PARTS: [(&str, Part); 6] = [
    ("events", events::round_trips),
    ("throughput", events::throughput),
    ("loads", loads::loads),
    ("heap", memory::heap),
    ("l2", memory::l2),
    ("strategies", ticks::strategies),
];

/// What all parts need.
struct Bench {
    device: Arc<dyn Device>,
    compiler: Compiler,
}

impl Bench {
    fn boot(&self, options: Options) -> Result<Machine> {
        Machine::boot(&self.compiler, &self.device, Start::Empty, options).map_err(failure)
    }
}

pub(crate) fn bench(args: &BenchArgs) -> Result<u8> {
    let device = devices::open(args.launch.device)?;
    let bench = Bench { device, compiler: Compiler::new(program_cache::open(&CacheArgs::default())?) };
    let mut sheet = Sheet::new(args.json.clone())?;
    sheet.put("device", json!(bench.device.properties().name))?;
    let mut failed = Vec::new();
    for (name, part) in PARTS {
        if let Err(error) = part(&bench, &mut sheet) {
            sheet.line(&format!("{name}: not measured: {error:#}"))?;
            sheet.put(&format!("{name}_error"), json!(format!("{error:#}")))?;
            failed.push(name);
        }
    }
    sheet.end()?;
    if !failed.is_empty() {
        bail!("not measured: {}", failed.join(", "));
    }
    Ok(0)
}

/// Where figures go: lines for people, and an object for programs.
struct Sheet {
    out: Standard,
    path: Option<PathBuf>,
    figures: Map<String, Value>,
}

impl Sheet {
    fn new(path: Option<PathBuf>) -> Result<Self> {
        let to_stdout = path.as_ref().is_some_and(|path| path.as_os_str() == "-");
        let out = if to_stdout { Standard::stderr()? } else { Standard::stdout()? };
        Ok(Self { out, path, figures: Map::new() })
    }

    fn line(&mut self, text: &str) -> Result<()> {
        writeln!(self.out, "{text}")?;
        Ok(self.out.flush()?)
    }

    /// Keeps a figure, in the file at once.
    fn put(&mut self, key: &str, value: Value) -> Result<()> {
        self.figures.insert(key.to_owned(), value);
        match &self.path {
            Some(path) if path.as_os_str() != "-" => {
                let bytes = serde_json::to_vec_pretty(&self.figures)?;
                std::fs::write(path, bytes).with_context(|| path.display().to_string())
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self) -> Result<()> {
        if self.path.as_ref().is_some_and(|path| path.as_os_str() == "-") {
            writeln!(Standard::stdout()?, "{:#}", Value::Object(self.figures.clone()))?;
        }
        Ok(())
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Half are shorter, and so many of a hundred.
fn percentile(times: &mut [Duration], part: usize) -> Duration {
    times.sort_unstable();
    times.get((times.len().max(1) - 1) * part / 100).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_there_is() {
        let mut times: Vec<_> = (1..=5).rev().map(Duration::from_secs).collect();
        let parts = [0, 50, 99, 100].map(|part| percentile(&mut times, part).as_secs());
        assert_eq!(parts, [1, 3, 4, 5]);
        assert_eq!(percentile(&mut [], 50), Duration::ZERO);
    }
}
