//! A loaded program and its slots, as the runner needs them.

use super::Hangs;
use super::runner::{Engine, Finish};
use crate::args::LaunchArgs;
use crate::run::{Loaded, Watchdog};
use crate::source::Source;
use gpu_run_compiler::Error;
use gpu_run_map::{Mapper, Pending, Results, Slow};
use gpu_run_run::{Allowance, Extent, Job, RunStats, Watch};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct OnDevice {
    loaded: Loaded,
    mapper: Option<Mapper>,
    /// Room that the mapper was asked to have.
    room: usize,
    /// Records of the largest batch.
    most: usize,
    lanes: Option<u32>,
    /// See [`Extent`].
    slow: Option<Slow>,
    learned: Option<Allowance>,
    max_memory: Option<u64>,
    timeout: Option<Duration>,
    hangs: Hangs,
    /// Batches that run alone: see [`OnDevice::carefully`].
    careful: u32,
}

impl OnDevice {
    pub(crate) fn new(loaded: Loaded, most: usize, lanes: Option<u32>, args: &LaunchArgs) -> Self {
        let (max_memory, timeout) = (args.max_memory, args.timeout);
        Self {
            loaded,
            mapper: None,
            room: 0,
            most,
            lanes,
            slow: None,
            learned: None,
            max_memory,
            timeout,
            hangs: Hangs::default(),
            careful: 0,
        }
    }

    /// Tries another build after such a launch, and begins with what was learned earlier.
    pub(crate) fn adapting(self, slow: Option<Slow>, learned: Option<Allowance>) -> Self {
        Self { slow, learned, ..self }
    }

    /// Has the cache remember what that gave, if it was tried.
    pub(crate) fn remember(&self, source: &Source) {
        if let Some(tuning) = self.mapper.as_ref().and_then(Mapper::tuning) {
            self.loaded.remember(source, &tuning);
        }
    }

    /// Runs so many batches one by one: if one of them loses the device, no other goes with it.
    pub(crate) fn carefully(self, batches: u32) -> Self {
        Self { careful: batches, ..self }
    }

    /// Who is told of a launch that does not end.
    pub(crate) fn hangs(&self) -> &Hangs {
        &self.hangs
    }

    pub(crate) fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// Slots for so many. A short input gets as few as it needs, a long one gets all at its second batch at the latest.
    fn mapper(&mut self, jobs: usize) -> Result<&Mapper, Error> {
        if let Some(mapper) = self.mapper.take_if(|_| self.room < jobs) {
            // Its memory is needed, and what it has learned.
            mapper.settle();
            self.learned = mapper.tuning().and_then(|tuning| tuning.learned).or(self.learned);
        }
        let mapper = match self.mapper.take() {
            Some(mapper) => mapper,
            None => {
                self.room = if self.room == 0 { jobs } else { self.most };
                let Self { room: capacity, max_memory, lanes, slow, learned, .. } = *self;
                let extent = Extent { capacity, max_memory, lanes, learned, ..Extent::default() };
                Mapper::trying(self.loaded.program.clone(), extent, self.watch(), slow)?
            }
        };
        Ok(self.mapper.insert(mapper))
    }

    /// Says so when a launch outlives its time by far.
    fn watch(&self) -> Option<Watch> {
        let (timeout, hangs) = (self.timeout?, self.hangs.clone());
        Some(Arc::new(move || {
            let hangs = hangs.clone();
            Box::new(Watchdog::start(timeout, move || hangs.tell()))
        }))
    }
}

impl Engine for OnDevice {
    type Pending = Pending;

    fn begin(&mut self, jobs: Vec<Job>) -> Result<Pending, Error> {
        let (timeout, careful) = (self.timeout, self.careful > 0);
        self.careful = self.careful.saturating_sub(1);
        let mapper = self.mapper(jobs.len())?;
        if careful {
            mapper.settle();
        }
        mapper.begin(jobs, timeout)
    }
}

impl Finish for Pending {
    fn next_part(&mut self) -> Result<Option<Results>, Error> {
        Pending::next_part(self)
    }
    fn take_stats(&mut self) -> RunStats {
        Pending::take_stats(self)
    }
}
