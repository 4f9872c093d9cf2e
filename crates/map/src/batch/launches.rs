//! Launches of a batch: which of its jobs come next, and on which stage.

use super::outputs::{BatchTerms, EarlierRun, MappedBatch};
use super::pending::{Pending, UnderWay};
use super::reruns::Unfinished;
use gpu_run_abi::launch::answers;
use gpu_run_abi::layout::WARP;
use gpu_run_compiler::Error;
use gpu_run_device::Patience;
use gpu_run_run::launcher::{LaunchError, LaunchOrder, LaunchSlot, PendingLaunch};
use gpu_run_run::stage::{Plan, Stage, Stages};
use gpu_run_run::{Extent, Job, Limits};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

/// Bytes that the instances of a launch may print through the bus before they are rerun with larger annexes.
const MAX_BUS_OUTPUT: usize = 64 << 20;

/// What is left of a launch that could not be ordered.
pub(super) struct Unordered {
    pub(super) launch_slot: Option<Box<LaunchSlot>>,
    pub(super) earlier_runs: HashMap<u32, EarlierRun>,
    pub(super) error: Error,
}

impl Pending {
    /// Moves the jobs that are left to a stage that runs more at once, if there is memory for more again.
    fn widen(&mut self) -> Result<(), Error> {
        if let (Some(stages), Some(stage), false) = (&self.mapper.stages, &self.stage, self.left.is_empty()) {
            self.stage = Some(stages.for_rest(stage, self.left.len())?);
        }
        Ok(())
    }

    /// Launches jobs that are left when nothing is under way: those that try another build, or those that there was no
    /// memory for. Returns whether there were any.
    pub(super) fn launch_rest(&mut self) -> Result<bool, Error> {
        self.widen()?;
        let Some(stage) = self.stage.clone() else { return Ok(false) };
        if self.left.is_empty() {
            let Some(tried) = self.tried.take() else { return Ok(false) };
            self.left = tried;
            match self.mapper.stages.as_ref().map(|stages| stages.get(stages.apart(stage.plan), self.left.len())) {
                Some(Ok(other)) => {
                    // All at once: otherwise their speed would say nothing.
                    self.launch_on(&other, self.left.clone(), true)?;
                    self.left = 0..0;
                    return Ok(true);
                }
                Some(Err(error)) if !error.is_device_lost() => {
                    tracing::info!(%error, "cannot try another build");
                    self.mapper.probation.judge(None);
                }
                Some(Err(error)) => return Err(error),
                None => {}
            }
        }
        let range = self.left.start..self.left.end.min(self.left.start + stage.capacity());
        self.left.start = range.end;
        self.launch_on(&stage, range, false)?;
        Ok(true)
    }

    fn launch_on(&mut self, stage: &Arc<Stage>, range: Range<usize>, is_trial: bool) -> Result<(), Error> {
        let error = match stage.launch_slot() {
            Ok(launch_slot) => {
                let jobs = self.jobs.clone();
                match self.order(stage, Box::new(launch_slot), jobs, range.clone(), HashMap::new(), self.timeout) {
                    Ok((ordered, batch)) => {
                        self.under_way.push_back(UnderWay { stage: stage.clone(), ordered, batch, range, is_trial });
                        return Ok(());
                    }
                    Err(unordered) => unordered.error,
                }
            }
            Err(error) => error,
        };
        if !error.is_shortage() {
            return Err(error);
        }
        let plan = self.after_shortage(stage, LaunchError::NoSlots, &mut Patience::default())?;
        self.unfinished = Some(Unfinished::nothing(range.start, range.len(), plan, self.timeout));
        Ok(())
    }

    /// Launches as many jobs as there are slots. If there are more jobs, it launches parts of equal size: while one
    /// runs, the host reads the results of another. Returns whether there was memory for the inputs.
    pub(super) fn launch_next(&mut self, stage: &Arc<Stage>, launch_slot: Box<LaunchSlot>) -> Result<bool, Error> {
        let began = Instant::now();
        let (left, capacity) = (self.left.len(), stage.capacity().max(1));
        let parts = left.div_ceil(capacity).max(1);
        let part = left.div_ceil(parts).next_multiple_of(WARP as usize).min(capacity);
        let range = self.left.start..self.left.end.min(self.left.start + part);
        let ordered = self.order(stage, launch_slot, self.jobs.clone(), range.clone(), HashMap::new(), self.timeout);
        self.stats.prepare += began.elapsed();
        match ordered {
            Ok((ordered, batch)) => {
                self.left.start = range.end;
                self.under_way.push_back(UnderWay { stage: stage.clone(), ordered, batch, range, is_trial: false });
                Ok(true)
            }
            Err(unordered) => {
                let Unordered { launch_slot, error, .. } = *unordered;
                stage.launch_slots.put(launch_slot);
                // The jobs are launched later, when others need less memory.
                if error.is_shortage() { Ok(false) } else { Err(error) }
            }
        }
    }

    /// Launches the next part on a free launch slot, with the plan that was learned meanwhile.
    pub(super) fn go_on(&mut self, stage: &Arc<Stage>, launch_slot: Box<LaunchSlot>) -> Result<(), Error> {
        self.widen()?;
        match self.stage.clone() {
            Some(now) if !self.left.is_empty() && Arc::ptr_eq(&now, stage) => {
                self.launch_next(stage, launch_slot)?;
            }
            Some(now) if !self.left.is_empty() => {
                stage.launch_slots.put(Some(launch_slot));
                if let Some(Ok(launch_slot)) = now.launch_slots.take_now(|| now.launch_slot()) {
                    self.launch_next(&now, launch_slot)?;
                }
            }
            _ => stage.launch_slots.put(Some(launch_slot)),
        }
        Ok(())
    }

    /// Copies the inputs of some jobs to the device, and orders their launch.
    pub(super) fn order(
        &self,
        stage: &Arc<Stage>,
        mut launch_slot: Box<LaunchSlot>,
        jobs: Arc<Vec<Job>>,
        range: Range<usize>,
        earlier_runs: HashMap<u32, EarlierRun>,
        timeout: Option<Duration>,
    ) -> Result<(PendingLaunch, Arc<MappedBatch>), Box<Unordered>> {
        let written = stage.inputs.lock().write(stage.program.device(), &mut launch_slot, &jobs[range.clone()]);
        let mut launch = match written {
            Ok(launch) => launch,
            Err(error) => return Err(Box::new(Unordered { launch_slot: Some(launch_slot), earlier_runs, error })),
        };
        launch.answers |= answers::CLOCK;
        if !earlier_runs.is_empty() {
            // The host computes the random bytes: it knows which ones these instances got before.
            launch.answers &= !answers::RANDOM;
        }
        let Plan { is_last, .. } = stage.plan;
        let has_more_stack = self.mapper.stages.as_ref().is_some_and(|stages| stages.has_more_stack(stage.stack()));
        let Extent { max_memory, limits: Limits { output_bytes, answer_bytes, .. }, .. } = self.mapper.extent;
        let (key, first) = (launch.key, launch.first);
        // As long as larger annexes are possible, a rerun with one comes soon: annexes are far faster than the bus.
        let can_have_more = |stages: &Stages| !is_last && stages.has_more_output(stage.plan.allowance);
        let has_more_output = self.mapper.stages.as_ref().is_some_and(can_have_more);
        let pool = if has_more_output { output_bytes.min(MAX_BUS_OUTPUT) } else { output_bytes };
        let terms = BatchTerms { key, first, is_last, has_more_stack, has_more_output, output_bytes, max_memory };
        let numbers = match stage.program.compiled().asks_device {
            true => jobs[range.clone()].iter().map(|job| job.number).collect(),
            false => Vec::new(),
        };
        let count = range.len();
        let shared = [pool, answer_bytes].map(|bytes| Arc::new(AtomicUsize::new(bytes)));
        let batch = Arc::new(MappedBatch::new(
            jobs,
            range,
            launch_slot.outboxes.clone(),
            shared,
            terms,
            earlier_runs,
            self.mapper.recycled.clone(),
        ));
        let (selector, stack, watch) = (stage.selector(), stage.stack(), self.mapper.watch.clone());
        let (slots, guests) = (stage.capacity().max(count), batch.clone());
        let cleared = stage.to_clear();
        let order = LaunchOrder {
            launch_slot,
            count,
            slots,
            guests,
            launch,
            numbers,
            selector,
            stack,
            cleared,
            timeout,
            watch,
        };
        match stage.launcher.order(order) {
            Ok(ordered) => Ok((ordered, batch)),
            Err((launch_slot, error)) => {
                Err(Box::new(Unordered { launch_slot: Some(launch_slot), earlier_runs: HashMap::new(), error }))
            }
        }
    }
}
