//! Reruns of a launch's instances, with a larger allowance or another build, and what later launches learn from them.

use super::launches::Unordered;
use super::outputs::{Collected, EarlierRun, MappedBatch, chunk_of};
use super::pending::Pending;
use super::results::Piece;
use gpu_run_compiler::Error;
use gpu_run_device::Patience;
use gpu_run_run::allowance::Lack;
use gpu_run_run::launcher::LaunchError;
use gpu_run_run::stage::{Plan, Stage, Stages, fewer};
use gpu_run_run::{Allowance, End, Job};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// If more than 1/16 of a launch's instances outgrow their allowance, later launches begin with a larger one.
const MANY_OUTGROWN: usize = 16;
/// The learned output is larger by 1/8 than what was printed: not all instances print the same, and every write has a
/// head.
const OUTPUT_MARGIN: u64 = 8;

/// A launch of which some instances must be rerun.
pub(super) struct Unfinished {
    /// [`chunk_of`] results each, but for the last piece. Pieces that were returned are gone.
    pub(super) pieces: VecDeque<Piece>,
    /// The first slot of the first piece.
    pub(super) first: usize,
    /// The index of the first slot's job.
    pub(super) job: usize,
    /// Instances to rerun, by slot.
    pub(super) reruns: BTreeMap<usize, Rerun>,
    /// The time that they have.
    pub(super) timeout: Option<Duration>,
    pub(super) patience: Patience,
    /// What instances that lacked something needed to finish.
    pub(super) needs: Needs,
    pub(super) instances: usize,
    pub(super) from: Plan,
}

/// What instances were seen to need.
#[derive(Default)]
pub(super) struct Needs {
    pub(super) memory: Vec<u64>,
    pub(super) stack: Vec<u32>,
    /// Bytes printed by instances whose outboxes were too small.
    pub(super) output: Vec<u64>,
    /// How many instances found the memory for transcripts used up.
    pub(super) shared: usize,
}

/// An instance to rerun.
pub(super) struct Rerun {
    pub(super) plan: Plan,
    pub(super) earlier_run: Option<EarlierRun>,
    /// All that it has lacked so far.
    pub(super) lacked: Lack,
}

impl Pending {
    /// Reruns the first of the unfinished instances, and others that have the same plan.
    pub(super) fn run_again(&mut self) -> Result<(), Error> {
        let (mapper, jobs) = (self.mapper.clone(), self.jobs.clone());
        let (Some(stages), Some(mut unfinished)) = (&mapper.stages, self.unfinished.take()) else { return Ok(()) };
        let Some(plan) = unfinished.reruns.values().next().map(|rerun| rerun.plan) else { return Ok(()) };
        let alike = unfinished.reruns.values().filter(|rerun| rerun.plan == plan).count();
        let stage = stages.get(plan, alike)?;
        let is_alike = unfinished.reruns.iter().filter(|(_, rerun)| rerun.plan == plan);
        let slots: Vec<usize> = is_alike.map(|(slot, _)| *slot).take(stage.capacity()).collect();
        tracing::debug!(count = slots.len(), of = unfinished.reruns.len(), ?plan, "rerunning");
        let again: Vec<Job> = slots.iter().map(|slot| jobs[unfinished.job + slot].clone()).collect();
        let mut earlier_runs = HashMap::new();
        for (at, slot) in slots.iter().enumerate() {
            let earlier_run = unfinished.reruns.get_mut(slot).and_then(|rerun| rerun.earlier_run.take());
            earlier_runs.extend(earlier_run.map(|earlier_run| (at as u32, earlier_run)));
        }
        let count = again.len();
        // A launch slot of its own: the thread that must give back one of the stage's may be waiting for this thread.
        let ordered = match stage.launch_slot() {
            Ok(launch_slot) => {
                self.order(&stage, Box::new(launch_slot), Arc::new(again), 0..count, earlier_runs, unfinished.timeout)
            }
            Err(error) => Err(Box::new(Unordered { launch_slot: None, earlier_runs, error })),
        };
        let (ordered, batch) = match ordered {
            Ok(ordered) => ordered,
            Err(mut unordered) if unordered.error.is_shortage() => {
                let plan = self.after_shortage(&stage, LaunchError::NoSlots, &mut unfinished.patience)?;
                unfinished.put_back(&slots, plan, |at| unordered.earlier_runs.remove(&(at as u32)));
                self.unfinished = Some(unfinished);
                return Ok(());
            }
            Err(unordered) => return Err(unordered.error),
        };
        let (launch_slot, report) = ordered.wait();
        match report {
            Ok(report) => {
                self.stats.reruns += count as u64;
                self.stats.on_host += if stage.plan.is_on_host() { count as u64 } else { 0 };
                let mut collected = self.collect(&stage, launch_slot.as_deref(), &batch, report)?;
                unfinished.take(&mut collected, &slots, plan);
                unfinished.add(stages, plan, &batch, &collected, |at| slots[at]);
            }
            Err(LaunchError::Failed(error)) => return Err(error),
            Err(short) => {
                let plan = self.after_shortage(&stage, short, &mut unfinished.patience)?;
                unfinished.put_back(&slots, plan, |at| batch.earlier_run(at));
            }
        }
        self.unfinished = Some(unfinished);
        Ok(())
    }

    pub(super) fn after_shortage(
        &mut self,
        stage: &Arc<Stage>,
        why: LaunchError,
        patience: &mut Patience,
    ) -> Result<Plan, Error> {
        let mapper = self.mapper.clone();
        let Some(stages) = &mapper.stages else { return Ok(stage.plan) };
        let plan = stages.after_shortage(stage, why, patience)?;
        if plan != stage.plan {
            let mut front = mapper.plan.lock();
            if front.is_some_and(|front| front == stage.plan) {
                *front = Some(plan);
            }
            // Jobs that were not launched yet need not run into the same shortage.
            if self.stage.as_ref().is_some_and(|first| Arc::ptr_eq(first, stage)) {
                self.stage = Some(stages.get(plan, self.left.len())?);
            }
        }
        Ok(plan)
    }

    /// Makes later launches begin with what many instances of this one were found to need.
    pub(super) fn learn(&mut self) -> Result<(), Error> {
        let mapper = self.mapper.clone();
        let (Some(stages), Some(unfinished)) = (&mapper.stages, &mut self.unfinished) else { return Ok(()) };
        let Unfinished { needs, instances, from, .. } = unfinished;
        let many = *instances / MANY_OUTGROWN;
        let mut front = mapper.plan.lock();
        let Some(plan) = front.filter(|plan| plan.build == from.build && plan.allowance == from.allowance) else {
            return Ok(());
        };
        let usual_memory = usual_need(&mut needs.memory).filter(|_| needs.memory.len() > many);
        let usual_stack = usual_need(&mut needs.stack).filter(|_| needs.stack.len() > many);
        let usual_output = usual_need(&mut needs.output).filter(|_| needs.output.len() > many);
        let output = usual_output.map(|printed| stages.annex(printed + printed / OUTPUT_MARGIN));
        let had = plan.allowance;
        let allowance = Allowance {
            memory: usual_memory.map_or(had.memory, |memory| memory.max(had.memory)),
            stack: usual_stack.map_or(had.stack, |stack| stack.max(had.stack)),
            output: output.map_or(had.output, |output| output.max(had.output)),
        };
        let outgrow_threads = usual_memory.is_some() || usual_stack.is_some();
        let mut next = stages.with(plan, allowance, outgrow_threads);
        if outgrow_threads || output.is_some() {
            // Memory that instances had without needing it is not learned: its amount depends on how many run at once.
            let mut learned = mapper.learned.lock();
            let known = learned.or(mapper.extent.learned).unwrap_or_default();
            *learned = Some(Allowance {
                memory: usual_memory.unwrap_or(known.memory),
                stack: usual_stack.unwrap_or(known.stack),
                output: output.unwrap_or(known.output),
            });
        }
        if needs.shared > many || output.is_some() && allowance.output == had.output {
            next.at_once = fewer(next.at_once.min(*instances));
        }
        if next != plan {
            tracing::info!(?next, "the next records begin with a larger allowance");
            *front = Some(next);
            drop(front);
            if !self.left.is_empty() {
                self.stage = Some(stages.get(next, self.left.len())?);
            }
        }
        Ok(())
    }
}

/// Returns what 15/16 of the instances can do with: all but the most demanding ones.
fn usual_need<T: Ord + Copy>(needs: &mut [T]) -> Option<T> {
    needs.sort_unstable();
    needs.get(needs.len().saturating_sub(1) - needs.len().saturating_sub(1) / MANY_OUTGROWN).copied()
}

impl Unfinished {
    /// A launch that could not be made: all of its instances must still run.
    pub(super) fn nothing(job: usize, instances: usize, plan: Plan, timeout: Option<Duration>) -> Self {
        let mut pieces = VecDeque::new();
        let size = chunk_of(instances);
        for first in (0..instances).step_by(size) {
            let mut piece = Piece::default();
            for _ in first..instances.min(first + size) {
                piece.push(End::Returned, [], [], None);
            }
            pieces.push_back(piece);
        }
        let reruns =
            (0..instances).map(|slot| (slot, Rerun { plan, earlier_run: None, lacked: Lack::default() })).collect();
        let (patience, needs) = (Patience::default(), Needs::default());
        Self { pieces, first: 0, job, reruns, timeout, patience, needs, instances, from: plan }
    }

    /// Takes the next pieces whose instances have all finished.
    pub(super) fn ready(&mut self) -> Vec<Piece> {
        let mut ready = Vec::new();
        while let Some(piece) = self.pieces.front() {
            let behind = self.first + piece.len();
            if self.reruns.range(..behind).next().is_some() {
                break;
            }
            self.first = behind;
            ready.extend(self.pieces.pop_front());
        }
        ready
    }

    /// Adds the instances of a launch that must be rerun; `slot` maps a slot of that launch to ours.
    pub(super) fn add(
        &mut self,
        stages: &Stages,
        plan: Plan,
        batch: &MappedBatch,
        collected: &Collected,
        slot: impl Fn(usize) -> usize,
    ) {
        for at in &collected.exact {
            self.put(slot(*at), stages.exact(plan), batch.earlier_run(*at), &Lack::default());
        }
        let is_many = collected.outgrown.len() > batch.jobs().len() / 2;
        let mut largest: Option<Plan> = None;
        let beside = Plan { at_once: plan.at_once.min(batch.jobs().len()), ..plan };
        for (at, lack) in &collected.outgrown {
            let next = stages.after(if lack.shared || lack.output.is_some() { beside } else { plan }, lack);
            self.needs.shared += usize::from(lack.shared);
            let size = |plan: &Plan| (plan.allowance.memory, plan.allowance.output);
            if largest.is_none_or(|largest| size(&next) > size(&largest)) {
                largest = Some(next);
            }
            self.put(slot(*at), next, batch.earlier_run(*at), lack);
        }
        // Others that were to run with this plan need not run into the same lack.
        if let Some(next) = largest.filter(|_| is_many) {
            self.reruns.values_mut().filter(|rerun| rerun.plan == plan).for_each(|rerun| rerun.plan = next);
        }
    }

    /// Takes the results of the instances that have finished now.
    pub(super) fn take(&mut self, collected: &mut Collected, slots: &[usize], plan: Plan) {
        let again: Vec<usize> =
            collected.exact.iter().copied().chain(collected.outgrown.iter().map(|(at, _)| *at)).collect();
        let mut is_again = vec![false; slots.len()];
        again.into_iter().for_each(|at| is_again[at] = true);
        let (ours, theirs) = (chunk_of(self.instances), chunk_of(slots.len()));
        for (at, slot) in slots.iter().enumerate().filter(|(at, _)| !is_again[*at]) {
            let done = collected.pieces[at / theirs].take(at % theirs);
            let printed = done.1.len() as u64;
            let lacked = self.reruns.remove(slot).map_or(Lack::default(), |rerun| rerun.lacked);
            self.needs.memory.extend(lacked.memory.map(|_| collected.memory[at]));
            // A stack on the host says nothing about what is needed on the device.
            self.needs.stack.extend((lacked.stack && !plan.is_on_host()).then_some(plan.allowance.stack));
            self.needs.output.extend(lacked.output.map(|_| printed));
            let place = slot - self.first;
            self.pieces[place / ours].put(place % ours, done);
        }
    }

    /// Puts back instances that could not be launched.
    pub(super) fn put_back(
        &mut self,
        slots: &[usize],
        plan: Plan,
        mut earlier_run: impl FnMut(usize) -> Option<EarlierRun>,
    ) {
        for (at, slot) in slots.iter().enumerate() {
            self.put(*slot, plan, earlier_run(at), &Lack::default());
        }
    }

    /// Adds an instance to rerun, with what it lacked this time.
    pub(super) fn put(&mut self, slot: usize, plan: Plan, earlier_run: Option<EarlierRun>, lack: &Lack) {
        let before = self.reruns.get(&slot).map_or(Lack::default(), |rerun| rerun.lacked);
        let lacked = Lack {
            memory: lack.memory.or(before.memory),
            stack: lack.stack || before.stack,
            output: lack.output.or(before.output),
            shared: lack.shared || before.shared,
        };
        self.reruns.insert(slot, Rerun { plan, earlier_run, lacked });
    }
}
