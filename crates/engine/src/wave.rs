//! Instances in waves: however many there are, they go through the same slots, one launch after the other.

use crate::batch::{Batch, LaunchBuffers, Run};
use crate::bus::Guests;
use crate::error::Error;
use crate::program::{End, Outcome, Program, RunStats, Trap};
use crate::value::Value;
use gpu_run_abi::{Launch, TrapCode};
use gpu_run_wasi::Context;
use std::time::Instant;

/// The slots, and what every wave calls in them.
pub(crate) struct Waves {
    batch: Batch,
    buffers: LaunchBuffers,
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
        let buffers = LaunchBuffers::new(program.device(), program.compiled(), capacity)?;
        buffers.write(&batch.describe(Launch::default()))?;
        Ok(Self { batch, buffers, selector })
    }

    /// Runs a fresh instance for each context, at most as many as there is room for, and says what became of each.
    pub(crate) fn run(
        &mut self,
        program: &Program,
        contexts: Vec<Context>,
        deadline: Option<Instant>,
        stats: &mut RunStats,
    ) -> Result<Vec<Outcome>, Error> {
        let count = contexts.len();
        let began = Instant::now();
        let run = Run::fresh(self.selector, deadline);
        let (_, calls) = self.batch.launch(run, Guests::Contexts(contexts), &self.buffers)?;
        stats.run += began.elapsed();
        let began = Instant::now();
        let outcomes = program.compiled().outcomes(&self.buffers, count, self.selector)?;
        stats.collect += began.elapsed();
        stats.instances += count as u64;
        stats.launches += 1;
        stats.hostcalls += calls;
        stats.device_bytes = self.batch.device_bytes();
        tracing::debug!(count, stopped = self.batch.stopped(), "wave done");
        Ok(outcomes)
    }
}

/// How an instance ended that has no place to name: every one whose module's segments do not fit, for instance.
pub(crate) fn stillborn(code: TrapCode) -> End {
    End::Trapped(Box::new(Trap { code, function: None, name: None, offset: 0, source: None }))
}
