//! A batch that was begun: its launches and their results, in order.

use super::mapper::Inner;
use super::outputs::{Collected, MappedBatch};
use super::reruns::{Needs, Unfinished};
use super::results::Results;
use gpu_run_compiler::Error;
use gpu_run_device::Patience;
use gpu_run_run::launcher::{LaunchError, LaunchReport, LaunchSlot, PendingLaunch};
use gpu_run_run::stage::Stage;
use gpu_run_run::{End, Job, RunStats};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// If a speculative build stops more than 1/2 of a launch's instances, later launches begin with an exact build. Below
/// that, rerunning some instances costs less, because an exact build is slower.
const MANY_INEXACT: usize = 2;
/// Reruns have what is left of the timeout, and at least 1/8 of it: some instances may have stopped long before the
/// timeout stopped the others.
const LAST_CHANCE: u32 = 8;

/// A batch that was begun.
pub struct Pending {
    pub(super) mapper: Arc<Inner>,
    /// The stage where the batch began; `None` if no instance ever begins.
    pub(super) stage: Option<Arc<Stage>>,
    pub(super) jobs: Arc<Vec<Job>>,
    /// Jobs that were not launched yet.
    pub(super) left: Range<usize>,
    /// Jobs that are to try another build, after all others.
    pub(super) tried: Option<Range<usize>>,
    pub(super) timeout: Option<Duration>,
    /// In order. Each has a launch slot, which goes back to its stage.
    pub(super) under_way: VecDeque<UnderWay>,
    pub(super) unfinished: Option<Unfinished>,
    pub(super) stats: RunStats,
}

pub(super) struct UnderWay {
    pub(super) stage: Arc<Stage>,
    pub(super) ordered: PendingLaunch,
    pub(super) batch: Arc<MappedBatch>,
    /// The range of the batch's jobs in this launch.
    pub(super) range: Range<usize>,
    /// Whether this launch tries another build.
    pub(super) is_trial: bool,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("jobs", &self.jobs.len()).field("left", &self.left).finish_non_exhaustive()
    }
}

impl Pending {
    /// Waits until the batch has run. Returns how each job ended, in order.
    pub fn finish(mut self) -> Result<(Results, RunStats), Error> {
        let mut all = Results::default();
        while let Some(part) = self.next_part()? {
            all.append(part);
        }
        Ok((all, self.take_stats()))
    }

    /// Returns the statistics since the last call.
    pub fn take_stats(&mut self) -> RunStats {
        std::mem::take(&mut self.stats)
    }

    /// Waits for the next jobs of the batch and returns how they ended. So not all outputs of a batch need be in memory
    /// at once.
    pub fn next_part(&mut self) -> Result<Option<Results>, Error> {
        if self.mapper.stages.is_none() {
            let code = self.mapper.program.compiled().initial.trap;
            let mut results = Results::default();
            for _ in std::mem::take(&mut self.left) {
                results.push(code.map_or(End::Returned, End::trapped), b"", b"", None);
            }
            return Ok(Some(results).filter(|results| !results.is_empty()));
        }
        loop {
            if let Some(unfinished) = &mut self.unfinished {
                let ready = unfinished.ready();
                if unfinished.reruns.is_empty() {
                    self.learn()?;
                    self.unfinished = None;
                }
                if !ready.is_empty() {
                    return Ok(Some(ready.into()));
                }
                self.run_again()?;
                continue;
            }
            let Some(next) = self.under_way.pop_front() else {
                match self.launch_rest()? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            self.finish_launch(next)?;
        }
    }

    /// Waits for a launch, launches the next one, and reads how the instances ended.
    fn finish_launch(&mut self, next: UnderWay) -> Result<(), Error> {
        let UnderWay { stage, ordered, batch, range, is_trial } = next;
        let (launch_slot, report) = ordered.wait();
        let collected = match report {
            Ok(report) => {
                self.collect(&stage, launch_slot.as_deref(), &batch, report).map(|collected| Ok((collected, report)))
            }
            Err(LaunchError::Failed(error)) => Err(error),
            Err(short) => Ok(Err(short)),
        };
        // The next part is launched first: reruns can run beside it.
        match launch_slot {
            _ if is_trial => {}
            Some(launch_slot) if matches!(collected, Ok(Ok(_))) => self.go_on(&stage, launch_slot)?,
            launch_slot => stage.launch_slots.put(launch_slot),
        }
        let job = range.start;
        let (collected, report) = match collected? {
            Ok(collected) => collected,
            Err(short) => {
                if is_trial {
                    self.mapper.probation.judge(None);
                }
                let plan = self.after_shortage(&stage, short, &mut Patience::default())?;
                let mut unfinished = Unfinished::nothing(job, range.len(), plan, self.timeout);
                for (slot, rerun) in &mut unfinished.reruns {
                    rerun.earlier_run = batch.earlier_run(*slot);
                }
                self.unfinished = Some(unfinished);
                return Ok(());
            }
        };
        if is_trial && self.mapper.probation.judge(Some((range.len(), report.run))) {
            *self.mapper.plan.lock() = Some(stage.plan);
        } else if !is_trial {
            self.mapper.probation.note(range.len(), report.run, self.timeout);
        }
        let timeout = self.timeout.map(|timeout| timeout.saturating_sub(report.run).max(timeout / LAST_CHANCE));
        self.unfinished = Some(self.unfinished_of(&stage, &batch, job, collected, timeout));
        Ok(())
    }

    /// Reads how the instances of a launch ended.
    pub(super) fn collect(
        &mut self,
        stage: &Stage,
        launch_slot: Option<&LaunchSlot>,
        batch: &MappedBatch,
        report: LaunchReport,
    ) -> Result<Collected, Error> {
        self.stats.launches += 1;
        self.stats.hostcalls += report.hostcalls;
        self.stats.run += report.run;
        self.stats.service += report.service;
        self.stats.device_bytes = self.stats.device_bytes.max(report.device_bytes);
        let Some(launch_slot) = launch_slot else { return Err(Error::Internal("a launch without its buffers".into())) };
        let began = Instant::now();
        let endings = launch_slot.buffers.endings(batch.jobs().len(), 0)?;
        let collected = batch.results(stage.program.compiled(), &endings, report.stopped);
        self.stats.collect += began.elapsed();
        if let Ok(collected) = &collected {
            stage.note_memory(&collected.memory);
        }
        collected
    }

    /// Returns what is left to do of a launch, and may change the plan of later batches.
    fn unfinished_of(
        &self,
        stage: &Stage,
        batch: &MappedBatch,
        job: usize,
        collected: Collected,
        timeout: Option<Duration>,
    ) -> Unfinished {
        let mut unfinished = Unfinished {
            pieces: VecDeque::new(),
            first: 0,
            job,
            reruns: BTreeMap::new(),
            timeout,
            patience: Patience::default(),
            needs: Needs::default(),
            instances: batch.jobs().len(),
            from: stage.plan,
        };
        if let Some(stages) = &self.mapper.stages {
            let is_inexact = collected.exact.len() > batch.jobs().len() / MANY_INEXACT;
            let mut plan = self.mapper.plan.lock();
            if is_inexact && plan.is_some_and(|plan| plan.build == stage.plan.build) {
                *plan = Some(stages.exact(stage.plan));
            }
            drop(plan);
            unfinished.add(stages, stage.plan, batch, &collected, |slot| slot);
        }
        unfinished.needs.output.extend(collected.printed.iter().filter(|printed| **printed > batch.outbox_bytes()));
        unfinished.pieces = collected.pieces.into();
        unfinished
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        for UnderWay { ordered, stage, is_trial, .. } in self.under_way.drain(..) {
            let (launch_slot, _) = ordered.wait();
            if !is_trial {
                stage.launch_slots.put(launch_slot);
            }
        }
    }
}
