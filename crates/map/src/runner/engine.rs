//! A loaded program and its slots, as the runner needs them.

use super::{Engine, Finish};
use crate::batch::{Mapper, Pending, Results, Slow, Tuning};
use gpu_run_compiler::{Error, Program};
use gpu_run_run::{Allowance, Extent, Job, RunStats, Watch, Watchdog};
use std::sync::Arc;
use std::time::Duration;

/// How batches run.
#[derive(Clone, Copy, Debug)]
pub struct Batches {
    /// Records of the largest batch.
    pub max_records: u32,
    /// Lanes of a warp that run an instance, if not all do.
    pub lanes: Option<u32>,
    /// What records were found to need earlier.
    pub learned: Option<Allowance>,
    /// Another build is tried after such a launch.
    pub slow: Option<Slow>,
}

/// What to do about a launch that does not end, nor when it is told to.
pub(crate) type OnHang = Arc<dyn Fn() + Send + Sync>;

pub(crate) struct OnDevice {
    program: Arc<Program>,
    batches: Batches,
    max_memory: Option<u64>,
    timeout: Option<Duration>,
    on_hang: OnHang,
    mapper: Option<Mapper>,
    /// How many instances the mapper was asked to run at once.
    capacity: usize,
    /// Batches that run alone, from now on: if one of them loses the device, no other goes with it.
    alone: u32,
}

impl OnDevice {
    pub(crate) fn new(
        program: Arc<Program>,
        batches: Batches,
        max_memory: Option<u64>,
        timeout: Option<Duration>,
        alone: u32,
        on_hang: OnHang,
    ) -> Self {
        Self { program, batches, max_memory, timeout, on_hang, mapper: None, capacity: 0, alone }
    }

    /// What was found out about the program, if anything was.
    pub(crate) fn tuning(&self) -> Option<Tuning> {
        self.mapper.as_ref().and_then(Mapper::tuning)
    }

    /// Slots for so many. A short input gets as few as it needs, a long one gets all at its second batch at the latest.
    fn mapper(&mut self, jobs: usize) -> Result<&Mapper, Error> {
        if let Some(mapper) = self.mapper.take_if(|_| self.capacity < jobs) {
            // Its memory is needed, and what it has learned.
            mapper.settle();
            self.batches.learned = mapper.tuning().and_then(|tuning| tuning.learned).or(self.batches.learned);
        }
        let mapper = match self.mapper.take() {
            Some(mapper) => mapper,
            None => {
                self.capacity = if self.capacity == 0 { jobs } else { self.batches.max_records as usize };
                let Self { capacity, max_memory, batches: Batches { lanes, learned, slow, .. }, .. } = *self;
                let extent = Extent { capacity, max_memory, lanes, learned, ..Extent::default() };
                Mapper::trying(self.program.clone(), extent, self.watch(), slow)?
            }
        };
        Ok(self.mapper.insert(mapper))
    }

    /// Acts when a launch outlives its time by far.
    fn watch(&self) -> Option<Watch> {
        let (timeout, on_hang) = (self.timeout?, self.on_hang.clone());
        Some(Arc::new(move || {
            let on_hang = on_hang.clone();
            Box::new(Watchdog::start(timeout, move || on_hang()))
        }))
    }
}

impl Engine for OnDevice {
    type Pending = Pending;

    fn begin(&mut self, jobs: Vec<Job>) -> Result<Pending, Error> {
        let (timeout, is_alone) = (self.timeout, self.alone > 0);
        self.alone = self.alone.saturating_sub(1);
        let mapper = self.mapper(jobs.len())?;
        if is_alone {
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
