//! Runs batches of jobs through one program.
//!
//! A [`Mapper`] keeps a loaded program's slots between batches, so that the next batch costs a launch and nothing else.
//! A [`Job`] describes one instance: its context and its stdin. A [`Done`](super::Done) says how the instance ended and
//! what it printed.
//!
//! ```text
//! begin    inputs to the device, the launch is ordered         inputs, launcher
//! (runs)   the launcher's thread launches and answers calls    launcher, slots, bus
//! next     endings and outputs to the host                     outputs, results
//!          instances that could not finish are rerun           stage, allowance
//!          if launches take long, another build is tried       probation
//! ```
//!
//! Two batches can be under way: while one runs, the host prepares the next and reads the results of the previous one.

use super::pending::Pending;
use super::probation::{Probation, Slow};
use super::results::{Recycled, Results};
use super::tune::{MemoryKind, Tuning, Variant};
use gpu_run_abi::Layout;
use gpu_run_compiler::{Error, Program};
use gpu_run_run::stage::{EntryCall, Plan, Stage, Stages};
use gpu_run_run::{Allowance, CommonMemory, Extent, Job, RunStats, Watch};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A loaded program, and slots for a number of its instances.
///
/// Dropping it waits for launches that still run.
pub struct Mapper {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) program: Arc<Program>,
    /// `None` if the module's segments do not fit: then no instance ever begins.
    pub(super) stages: Option<Stages>,
    pub(super) watch: Option<Watch>,
    /// The extent that the caller asked for.
    pub(super) extent: Extent,
    /// The plan of new batches.
    pub(super) plan: Mutex<Option<Plan>>,
    /// The allowance that instances were found to need, if it is more than they begin with.
    pub(super) learned: Mutex<Option<Allowance>>,
    /// Finds out whether another build is faster.
    pub(super) probation: Probation,
    pub(super) recycled: Arc<Recycled>,
}

impl std::fmt::Debug for Mapper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapper").field("program", &self.inner.program).field("extent", &self.inner.extent).finish()
    }
}

impl Mapper {
    /// Makes a mapper whose instances each call `_start`. `watch` is called before every launch; the value it returns
    /// is dropped after the launch.
    pub fn new(program: Arc<Program>, extent: Extent, watch: Option<Watch>) -> Result<Self, Error> {
        Self::trying(program, extent, watch, None)
    }

    /// Like [`Mapper::new`], but tries another build after a launch as slow as `slow`: see [`super::SLOW`].
    pub fn trying(
        program: Arc<Program>,
        extent: Extent,
        watch: Option<Watch>,
        slow: Option<Slow>,
    ) -> Result<Self, Error> {
        let (selector, words) = program.compiled().arguments("_start", &[])?;
        let stages = match program.compiled().initial.trap {
            Some(_) => None,
            None => {
                let common = Arc::new(CommonMemory::new(&program, extent.common)?);
                Some(Stages::new(program.clone(), extent, EntryCall { selector, words }, common)?)
            }
        };
        // The other build, `Sibling::Apart`, differs in the layout and the lanes.
        let is_usual = program.compiled().layout() == Layout::Interleaved && extent.lanes.is_none();
        let probation = Probation::new(slow.filter(|_| is_usual));
        let plan = Mutex::new(stages.as_ref().map(Stages::first));
        let (learned, recycled) = (Mutex::default(), Arc::default());
        Ok(Self { inner: Arc::new(Inner { program, stages, watch, extent, plan, learned, probation, recycled }) })
    }

    /// Launches are stopped when the flag becomes true. To be called before the first batch, and once.
    pub fn stop_when(&self, flag: Arc<AtomicBool>) {
        self.inner.stages.iter().for_each(|stages| stages.stop_when(flag.clone()));
    }

    /// Returns how many instances run at once. A batch may have more: it then takes several launches.
    pub fn capacity(&self) -> Result<usize, Error> {
        match self.inner.begin(self.inner.extent.capacity)? {
            Some(stage) => Ok(stage.capacity()),
            None => Ok(usize::MAX),
        }
    }

    /// Runs one instance for each job and returns how each ended, in order. The instances of one launch have `timeout`
    /// together; those that still run then are stopped. After an error, nothing is known of any job.
    pub fn run(&self, jobs: Vec<Job>, timeout: Option<Duration>) -> Result<(Results, RunStats), Error> {
        self.begin(jobs, timeout)?.finish()
    }

    /// Begins a batch. If two unfinished batches are under way, it waits for one of them. So a thread that begins
    /// batches must also finish them, or leave that to another thread.
    pub fn begin(&self, jobs: impl Into<Arc<Vec<Job>>>, timeout: Option<Duration>) -> Result<Pending, Error> {
        let mut pending = self.begin_later(jobs, timeout)?;
        if let Some(stage) = pending.stage.clone()
            && !pending.left.is_empty()
        {
            let make = || stage.launch_slot();
            let mut is_launched = match stage.launch_slots.take(make) {
                Ok(launch_slot) => pending.launch_next(&stage, launch_slot)?,
                Err(error) if error.is_shortage() => false,
                Err(error) => return Err(error),
            };
            // Two launches of a large batch can be under way. Waiting here for a launch slot could take for ever.
            while is_launched
                && !pending.left.is_empty()
                && let Some(Ok(launch_slot)) = stage.launch_slots.take_now(make)
            {
                is_launched = pending.launch_next(&stage, launch_slot)?;
            }
        }
        Ok(pending)
    }

    /// Takes a batch, but launches nothing before its results are asked for. So it waits for no other batch.
    pub fn begin_later(&self, jobs: impl Into<Arc<Vec<Job>>>, timeout: Option<Duration>) -> Result<Pending, Error> {
        let (inner, jobs) = (&self.inner, jobs.into());
        let stage = inner.begin(jobs.len())?;
        let capacity = stage.as_ref().map_or(0, |stage| stage.capacity());
        let tried = inner.probation.part_of(jobs.len().min(capacity));
        let usual = jobs.len() - tried;
        let stats = RunStats { instances: jobs.len() as u64, ..RunStats::default() };
        Ok(Pending {
            mapper: inner.clone(),
            stage,
            left: 0..usual,
            tried: (tried > 0).then_some(usual..jobs.len()),
            jobs,
            timeout,
            under_way: VecDeque::new(),
            unfinished: None,
            stats,
        })
    }

    /// Returns whether a part of the next batch is to try another build.
    pub fn tries_another(&self) -> bool {
        self.inner.probation.is_due()
    }

    /// Returns what was learned: about builds, if another one was tried, and about what instances need.
    pub fn tuning(&self) -> Option<Tuning> {
        let is_local = self.inner.program.compiled().slots.is_local();
        let memory = if is_local { MemoryKind::Local } else { MemoryKind::Interleaved };
        let (registers, batch) = (self.inner.program.compiled().options.registers, self.inner.extent.capacity as u32);
        let usual = Variant { memory, lanes: None, registers, batch };
        let (trials, learned) = (self.inner.probation.trials(usual), *self.inner.learned.lock());
        (trials.is_some() || learned.is_some())
            .then(|| Tuning { trials: trials.unwrap_or_default(), learned: learned.or(self.inner.extent.learned) })
    }

    /// Waits until all batches that were begun are finished, by the threads that finish them.
    pub fn settle(&self) {
        if let Some(stages) = &self.inner.stages {
            stages.settle();
        }
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        // A batch that is still pending may keep everything else alive, but not the slots.
        if let Some(stages) = &self.inner.stages {
            stages.close();
        }
    }
}

impl Inner {
    /// Returns the stage for `count` new instances.
    fn begin(&self, count: usize) -> Result<Option<Arc<Stage>>, Error> {
        let (Some(stages), Some(plan)) = (&self.stages, *self.plan.lock()) else { return Ok(None) };
        stages.get(plan, count).map(Some)
    }
}

#[cfg(test)]
#[path = "mapper_tests/mod.rs"]
mod tests;
