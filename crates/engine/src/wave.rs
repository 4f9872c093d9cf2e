//! Instances in waves: however many there are, they go through the same slots, one launch after the other.

use crate::batch::{Batch, Run};
use crate::bus::Guests;
use crate::error::Error;
use crate::program::{End, Outcome, Program, RunStats, Trap};
use crate::value::Value;
use gpu_run_abi::{Launch, TrapCode};
use std::time::Instant;

/// The slots, and what every wave calls in them.
pub(crate) struct Waves {
    batch: Batch,
    capacity: usize,
    selector: u32,
}

impl Waves {
    /// Room for `capacity` instances at once, each of which calls `function` with `args`.
    pub(crate) fn new(
        program: &Program,
        capacity: usize,
        max_memory: Option<u64>,
        function: &str,
        args: &[Value],
    ) -> Result<Self, Error> {
        let (selector, words) = program.compiled().arguments(function, args)?;
        let batch = program.batch(capacity as u64, max_memory)?;
        batch.set_arguments(&words)?;
        Ok(Self { batch, capacity, selector })
    }

    /// Bytes an instance's memory may grow to.
    pub(crate) fn memory_limit(&self) -> u64 {
        self.batch.memory_limit()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Runs a fresh instance for each guest, at most as many as there is room for, and says what became of each. `local` is what the
    /// device does by itself.
    pub(crate) fn run(
        &mut self,
        program: &Program,
        guests: Guests,
        local: Launch,
        deadline: Option<Instant>,
        stats: &mut RunStats,
    ) -> Result<Vec<Outcome>, Error> {
        let count = guests.count() as u64;
        let began = Instant::now();
        let run = Run { selector: self.selector, fresh: true, start: true, deadline };
        let (_, calls) = self.batch.launch(run, guests, local)?;
        stats.run += began.elapsed();
        let began = Instant::now();
        let outcomes = program.compiled().outcomes(&self.batch, count, self.selector)?;
        stats.setup += began.elapsed();
        stats.instances += count;
        stats.launches += 1;
        stats.hostcalls += calls;
        stats.device_bytes = self.batch.device_bytes();
        tracing::debug!(count, stopped = self.batch.stopped(), "wave done");
        Ok(outcomes)
    }
}

/// What became of an instance that has no place to name: of every one whose module's segments do not fit, for instance.
pub(crate) fn stillborn(code: TrapCode) -> Outcome {
    let end = End::Trapped(Trap { code, function: None, name: None, offset: 0, source: None });
    Outcome { end, results: Vec::new() }
}
