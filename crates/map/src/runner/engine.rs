//! The engine of the runner: a loaded program and its slots.

use super::{Engine, Finish, Gangs};
use crate::batch::{Mapper, Pending, Results, Slow, Tuning};
use crate::function::arguments::Calls;
use crate::function::grouped::Grouped;
use crate::options::usual_batch;
use gpu_run_compiler::{Error, Program};
use gpu_run_run::{Allowance, Common, Extent, Job, RunStats, Watch, Watchdog};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How batches run.
#[derive(Clone, Copy, Debug)]
pub struct Batches {
    /// Records of the largest batch.
    pub max_records: u32,
    /// How many lanes of a warp run an instance, if not all do.
    pub lanes: Option<u32>,
    /// The allowance that records were found to need earlier.
    pub learned: Option<Allowance>,
    /// What the instances have in common.
    pub common: Common,
    /// Another build is tried after a launch that is this slow.
    pub slow: Option<Slow>,
    /// Set for a program with threads.
    pub gangs: Option<Gangs>,
}

/// What holds for every launch.
#[derive(Clone, Debug)]
pub(crate) struct RunLimits {
    pub(crate) max_memory: Option<u64>,
    pub(crate) timeout: Option<Duration>,
    /// Launches are stopped when it becomes true.
    pub(crate) interrupt: Option<Arc<AtomicBool>>,
}

/// Called when a launch does not end, not even after it was stopped.
pub(crate) type OnHang = Arc<dyn Fn() + Send + Sync>;

pub(crate) struct OnDevice {
    program: Arc<Program>,
    batches: Batches,
    limits: RunLimits,
    on_hang: OnHang,
    mapper: Option<Mapper>,
    /// How many instances the mapper was asked to run at once.
    capacity: usize,
    /// How many of the next batches run alone: if one of them loses the device, no other batch is lost with it.
    alone: u32,
}

impl RunLimits {
    /// Has the launches of a new mapper stopped by the interrupt.
    fn stop(&self, mapper: &Mapper) {
        self.interrupt.iter().for_each(|interrupt| mapper.stop_when(interrupt.clone()));
    }
}

impl OnDevice {
    pub(crate) fn new(program: Arc<Program>, batches: Batches, limits: RunLimits, alone: u32, on_hang: OnHang) -> Self {
        Self { program, batches, limits, on_hang, mapper: None, capacity: 0, alone }
    }

    /// Returns an engine whose jobs are calls of a function, in groups.
    pub(crate) fn grouped(mut self, calls: Arc<Calls>) -> Grouped<Self> {
        let at_once = self.batches.max_records.min(usual_batch(self.program.device()));
        self.batches.max_records = at_once;
        let (program, limits, watch) = (self.program.clone(), self.limits.clone(), self.watch());
        let (timeout, Batches { lanes, common, .. }) = (limits.timeout, self.batches);
        let alone = move |capacity| {
            let (capacity, max_memory) = (capacity as usize, limits.max_memory);
            let extent = Extent { capacity, max_memory, lanes, common, ..Extent::default() };
            let mapper = Mapper::new(program.clone(), extent, watch.clone())?;
            limits.stop(&mapper);
            Ok(mapper)
        };
        Grouped::new(self, calls, at_once as usize, timeout, Box::new(alone))
    }

    /// Returns a mapper with slots for `jobs` instances. A short input gets only the slots it needs; a long one gets
    /// all of them at its second batch at the latest.
    fn mapper(&mut self, jobs: usize) -> Result<&Mapper, Error> {
        // More jobs than that take several launches.
        let jobs = jobs.min(self.batches.max_records as usize);
        if let Some(mapper) = self.mapper.take_if(|_| self.capacity < jobs) {
            // The new mapper needs its memory, and what it has learned.
            mapper.settle();
            self.batches.learned = mapper.tuning().and_then(|tuning| tuning.learned).or(self.batches.learned);
        }
        let mapper = match self.mapper.take() {
            Some(mapper) => mapper,
            None => {
                self.capacity = if self.capacity == 0 { jobs } else { self.batches.max_records as usize };
                let Self { capacity, batches: Batches { lanes, learned, slow, common, .. }, .. } = *self;
                let max_memory = self.limits.max_memory;
                let extent = Extent { capacity, max_memory, lanes, learned, common, ..Extent::default() };
                let mapper = Mapper::trying(self.program.clone(), extent, self.watch(), slow)?;
                self.limits.stop(&mapper);
                mapper
            }
        };
        Ok(self.mapper.insert(mapper))
    }

    /// Returns the function that starts a watchdog before each launch, in case the launch outlives its timeout by far.
    fn watch(&self) -> Option<Watch> {
        let (timeout, on_hang) = (self.limits.timeout?, self.on_hang.clone());
        Some(Arc::new(move || {
            let on_hang = on_hang.clone();
            Box::new(Watchdog::start(timeout, move || on_hang()))
        }))
    }
}

impl Engine for OnDevice {
    type Pending = Pending;

    fn begin(&mut self, jobs: Arc<Vec<Job>>) -> Result<Pending, Error> {
        let (timeout, is_alone) = (self.limits.timeout, self.alone > 0);
        self.alone = self.alone.saturating_sub(1);
        let mapper = self.mapper(jobs.len())?;
        if is_alone {
            mapper.settle();
        }
        mapper.begin(jobs, timeout)
    }

    fn tuning(&self) -> Option<Tuning> {
        self.mapper.as_ref().and_then(Mapper::tuning)
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
