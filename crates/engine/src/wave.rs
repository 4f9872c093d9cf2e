//! Instances in waves: however many there are, they go through the same slots, one launch after the other.

use crate::batch::Batch;
use crate::error::Error;
use crate::program::{End, Outcome, Program, RunStats, Trap};
use crate::value::Value;
use gpu_run_abi::TrapCode;
use gpu_run_abi::layout::WORD;
use gpu_run_wasi::Context;
use std::time::Instant;

/// The slots, and what every wave calls in them.
pub(crate) struct Waves {
    batch: Batch,
    capacity: usize,
    selector: u32,
    /// The words of the entry's arguments.
    words: Vec<u64>,
    /// Instances of an earlier wave have left their memory behind.
    used: bool,
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
        Ok(Self { batch, capacity, selector, words, used: false })
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn device_bytes(&self) -> u64 {
        self.batch.device_bytes()
    }

    /// Runs one fresh instance for each context, at most as many as there is room for, and says what became of each.
    pub(crate) fn run(
        &mut self,
        program: &Program,
        contexts: Vec<Context>,
        deadline: Option<Instant>,
        stats: &mut RunStats,
    ) -> Result<Vec<Outcome>, Error> {
        let compiled = program.compiled();
        let count = contexts.len() as u64;
        let began = Instant::now();
        if self.used {
            self.batch.wipe()?;
        }
        self.used = true;
        self.batch.set_up(count)?;
        for slot in 0..count {
            for (i, word) in self.words.iter().enumerate() {
                self.batch.write_word(slot, compiled.slots.arguments + WORD * i as u64, *word)?;
            }
        }
        stats.setup += began.elapsed();
        let began = Instant::now();
        let (_, calls) = self.batch.launch(self.selector, true, contexts, deadline)?;
        stats.run += began.elapsed();
        stats.instances += count;
        stats.launches += 1;
        stats.hostcalls += calls;
        stats.device_bytes = self.device_bytes();
        tracing::debug!(count, stopped = self.batch.stopped(), "wave done");
        (0..count).map(|slot| compiled.outcome(&self.batch, slot, self.selector)).collect()
    }
}

/// What becomes of every instance of a module whose segments do not fit: nothing of it runs.
pub(crate) fn stillborn(code: TrapCode) -> Outcome {
    let end = End::Trapped(Trap { code, function: None, name: None, offset: 0, source: None });
    Outcome { end, results: Vec::new() }
}
