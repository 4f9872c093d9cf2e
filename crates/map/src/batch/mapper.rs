//! Many records through one program: bytes in, bytes out.
//!
//! A [`Mapper`] keeps a loaded program's slots between batches, so that the next batch costs a launch and nothing
//! else. A [`Job`] is one instance: what it is given, and its stdin. What became of it, and what it wrote, is a [`Done`](super::Done).
//!
//! ```text
//! begin    inputs to the device, launch ordered          inputs, launcher
//! (runs)   the launcher's thread launches and serves         launcher, slots, bus
//! next     endings and outputs to the host               outputs, results
//!          who could not finish runs again, otherwise    stage, allowance
//!          if launches take long, another build is tried    probation
//! ```
//!
//! Two batches can be under way: while one runs, the host makes the next ready and reads the results of the last.

use crate::batch::outputs::{BatchTerms, Collected, EarlierRun, MappedBatch, chunk_of};
use crate::batch::probation::{Probation, Slow};
use crate::batch::results::{Piece, Recycled, Results};
use crate::batch::tune::{Tuning, Variant};
use gpu_run_abi::Layout;
use gpu_run_abi::launch::local;
use gpu_run_abi::layout::WARP;
use gpu_run_compiler::{Error, Program};
use gpu_run_device::Patience;
use gpu_run_run::allowance::Lack;
use gpu_run_run::inputs::Inputs;
use gpu_run_run::launcher::{LaunchError, LaunchOrder, LaunchReport, LaunchSlot, PendingLaunch};
use gpu_run_run::stage::{EntryCall, Plan, Stage, Stages, fewer};
use gpu_run_run::{Allowance, End, Extent, Job, Limits, RunStats, Watch};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// If more than one of so many instances outgrows what it was given, all that follow begin with more.
const MANY_OUTGROWN: usize = 16;
/// If more than one of so many is ended by quick checks, all that follow begin with exact ones: those take longer, so that to run some twice is less.
const MANY_INEXACT: usize = 2;
/// Bytes that the instances of a launch print through the bus before they are run again with more room for it.
const CROWDED: usize = 64 << 20;
/// What is learned of an instance's output is so much of it more: not all print the same, and every write has a head.
const OUTPUT_MARGIN: u64 = 8;
/// What runs again has the rest of its time; if all went by, so much of it once more: some may have ended long before the others were asked to.
const LAST_CHANCE: u32 = 8;

/// A loaded program, and room for a number of instances of it.
///
/// Dropped, it waits for what runs.
pub struct Mapper {
    inner: Arc<Inner>,
}

struct Inner {
    program: Arc<Program>,
    /// `None`: the module's segments do not fit, and no instance ever begins.
    stages: Option<Stages>,
    watch: Option<Watch>,
    /// As it was asked for.
    extent: Extent,
    /// How new batches run.
    plan: Mutex<Option<Plan>>,
    /// What instances were found to need, if it is more than they begin with.
    learned: Mutex<Option<Allowance>>,
    /// Whether another build is faster.
    probation: Probation,
    recycled: Arc<Recycled>,
}

impl std::fmt::Debug for Mapper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapper").field("program", &self.inner.program).field("extent", &self.inner.extent).finish()
    }
}

impl Mapper {
    /// A mapper whose instances each call `_start`. `watch` is called before every launch; what it gives is dropped after it.
    pub fn new(program: Arc<Program>, extent: Extent, watch: Option<Watch>) -> Result<Self, Error> {
        Self::trying(program, extent, watch, None)
    }

    /// The same, which tries another build after a launch as slow as this: see [`super::SLOW`].
    pub fn trying(
        program: Arc<Program>,
        extent: Extent,
        watch: Option<Watch>,
        slow: Option<Slow>,
    ) -> Result<Self, Error> {
        let (selector, words) = program.compiled().arguments("_start", &[])?;
        let stages = match program.compiled().initial.trap {
            Some(_) => None,
            None => Some(Stages::new(program.clone(), extent, EntryCall { selector, words })?),
        };
        // The other build is one without these.
        let is_usual = program.compiled().layout == Layout::Interleaved && extent.lanes.is_none();
        let probation = Probation::new(slow.filter(|_| is_usual));
        let plan = Mutex::new(stages.as_ref().map(Stages::first));
        let (learned, recycled) = (Mutex::default(), Arc::default());
        Ok(Self { inner: Arc::new(Inner { program, stages, watch, extent, plan, learned, probation, recycled }) })
    }

    /// How many instances run at once. A batch may have more: they go one launch after the other.
    pub fn capacity(&self) -> Result<usize, Error> {
        match self.inner.begin(self.inner.extent.capacity)? {
            Some(stage) => Ok(stage.capacity()),
            None => Ok(usize::MAX),
        }
    }

    /// Runs one instance for each job and says what became of each, in order. Those that run at once have `timeout`; what
    /// still runs then is ended. After an error nothing is known of any of them.
    pub fn run(&self, jobs: Vec<Job>, timeout: Option<Duration>) -> Result<(Results, RunStats), Error> {
        self.begin(jobs, timeout)?.finish()
    }

    /// Begins a batch. If two are under way that nobody has finished, it waits for one of them: a thread that begins
    /// has to finish, or leave that to another one.
    pub fn begin(&self, jobs: Vec<Job>, timeout: Option<Duration>) -> Result<Pending, Error> {
        let inner = &self.inner;
        let stage = inner.begin(jobs.len())?;
        let capacity = stage.as_ref().map_or(0, |stage| stage.capacity());
        let tried = inner.probation.part_of(jobs.len().min(capacity));
        let usual = jobs.len() - tried;
        let stats = RunStats { instances: jobs.len() as u64, ..RunStats::default() };
        let mut pending = Pending {
            mapper: inner.clone(),
            stage,
            left: 0..usual,
            tried: (tried > 0).then_some(usual..jobs.len()),
            jobs: Arc::new(jobs),
            timeout,
            under_way: VecDeque::new(),
            unfinished: None,
            stats,
        };
        if let Some(stage) = pending.stage.clone()
            && !pending.left.is_empty()
        {
            let make = || stage.launch_slot();
            let mut is_launched = match stage.launch_slots.take(make) {
                Ok(launch_slot) => pending.launch_next(&stage, launch_slot)?,
                Err(error) if error.is_shortage() => false,
                Err(error) => return Err(error),
            };
            // Of a large batch, two launches can be under way; to wait for a launch slot here could be for ever.
            while is_launched
                && !pending.left.is_empty()
                && let Some(Ok(launch_slot)) = stage.launch_slots.take_now(make)
            {
                is_launched = pending.launch_next(&stage, launch_slot)?;
            }
        }
        Ok(pending)
    }

    /// Whether a part of the next batch is to try another build.
    pub fn tries_another(&self) -> bool {
        self.inner.probation.is_due()
    }

    /// What was found out: about the builds, if another one was tried, and about what instances need.
    pub fn tuning(&self) -> Option<Tuning> {
        let own_memory = self.inner.program.compiled().slots.own > 0;
        let (registers, batch) = (self.inner.program.compiled().options.registers, self.inner.extent.capacity as u32);
        let usual = Variant { interleaved: true, own_memory, lanes: None, registers, batch };
        let (trials, learned) = (self.inner.probation.trials(usual), *self.inner.learned.lock());
        (trials.is_some() || learned.is_some())
            .then(|| Tuning { trials: trials.unwrap_or_default(), learned: learned.or(self.inner.extent.learned) })
    }

    /// Waits until all that was begun is finished, by whoever does it.
    pub fn settle(&self) {
        if let Some(stages) = &self.inner.stages {
            stages.settle();
        }
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        // A batch that is still pending may keep the rest, but not the slots.
        if let Some(stages) = &self.inner.stages {
            stages.close();
        }
    }
}

impl Inner {
    /// Where so many new instances run.
    fn begin(&self, count: usize) -> Result<Option<Arc<Stage>>, Error> {
        let (Some(stages), Some(plan)) = (&self.stages, *self.plan.lock()) else { return Ok(None) };
        stages.get(plan, count).map(Some)
    }
}

/// A batch that was begun.
pub struct Pending {
    mapper: Arc<Inner>,
    /// Where it began; `None` if no instance ever begins.
    stage: Option<Arc<Stage>>,
    jobs: Arc<Vec<Job>>,
    /// Those that were not launched yet.
    left: Range<usize>,
    /// Those that are to try another build, behind all others.
    tried: Option<Range<usize>>,
    timeout: Option<Duration>,
    /// In order. Each has a launch slot, which goes back.
    under_way: VecDeque<UnderWay>,
    unfinished: Option<Unfinished>,
    stats: RunStats,
}

struct UnderWay {
    stage: Arc<Stage>,
    ordered: PendingLaunch,
    batch: Arc<MappedBatch>,
    /// Which of the batch's jobs these are.
    range: Range<usize>,
    /// Another build is tried.
    is_trial: bool,
}

/// What comes back of a launch that was not ordered.
struct Unordered {
    launch_slot: Option<Box<LaunchSlot>>,
    earlier_runs: HashMap<u32, EarlierRun>,
    error: Error,
}

/// A launch of which some have to run again.
struct Unfinished {
    /// Of so many instances each, but for the last; those that were handed on are gone.
    pieces: VecDeque<Piece>,
    /// The first slot of the first piece.
    first: usize,
    /// The first slot's job.
    job: usize,
    /// Who runs again, by slot.
    reruns: BTreeMap<usize, Rerun>,
    /// The time they have.
    timeout: Option<Duration>,
    patience: Patience,
    /// What was found out about those that had lacked something and then finished.
    needs: Needs,
    instances: usize,
    from: Plan,
}

/// What instances were seen to need.
#[derive(Default)]
struct Needs {
    memory: Vec<u64>,
    stack: Vec<u32>,
    /// What those have printed that their outboxes had no room for.
    output: Vec<u64>,
    /// How many found what all share used up.
    shared: usize,
}

/// An instance that runs again.
struct Rerun {
    plan: Plan,
    earlier_run: Option<EarlierRun>,
    /// All that it lacked until now.
    lacked: Lack,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("jobs", &self.jobs.len()).field("left", &self.left).finish_non_exhaustive()
    }
}

impl Pending {
    /// Waits until the batch has run, and says what became of each job, in order.
    pub fn finish(mut self) -> Result<(Results, RunStats), Error> {
        let mut all = Results::default();
        while let Some(part) = self.next_part()? {
            all.append(part);
        }
        Ok((all, self.take_stats()))
    }

    /// What was spent since it was asked last.
    pub fn take_stats(&mut self) -> RunStats {
        std::mem::take(&mut self.stats)
    }

    /// Waits for the next jobs of the batch, and says what became of them. What many of them wrote need not be in memory at once.
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

    /// What is left runs where more run at once, if there is memory for more again.
    fn widen(&mut self) -> Result<(), Error> {
        if let (Some(stages), Some(stage), false) = (&self.mapper.stages, &self.stage, self.left.is_empty()) {
            self.stage = Some(stages.for_rest(stage, self.left.len())?);
        }
        Ok(())
    }

    /// Launches what is left when nothing is under way: what a build is tried with, or what there was no memory for.
    fn launch_rest(&mut self) -> Result<bool, Error> {
        self.widen()?;
        let Some(stage) = self.stage.clone() else { return Ok(false) };
        if self.left.is_empty() {
            let Some(tried) = self.tried.take() else { return Ok(false) };
            self.left = tried;
            match self.mapper.stages.as_ref().map(|stages| stages.get(stages.apart(stage.plan), self.left.len())) {
                Some(Ok(other)) => {
                    // All at once, or its speed says nothing.
                    self.launch_on(&other, self.left.clone(), true)?;
                    self.left = 0..0;
                    return Ok(true);
                }
                Some(Err(error)) if !error.is_device_lost() => {
                    tracing::info!(%error, "no other build can be tried");
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

    /// Launches as many as there is room for; if there is not for all, parts of one size: while one runs, the results of another are read. Says whether there was memory
    /// for what they are given.
    fn launch_next(&mut self, stage: &Arc<Stage>, launch_slot: Box<LaunchSlot>) -> Result<bool, Error> {
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
                // Later, when others need less.
                if error.is_shortage() { Ok(false) } else { Err(error) }
            }
        }
    }

    /// Puts what some jobs are given on the device, and orders their launch.
    fn order(
        &self,
        stage: &Arc<Stage>,
        mut launch_slot: Box<LaunchSlot>,
        jobs: Arc<Vec<Job>>,
        range: Range<usize>,
        earlier_runs: HashMap<u32, EarlierRun>,
        timeout: Option<Duration>,
    ) -> Result<(PendingLaunch, Arc<MappedBatch>), Box<Unordered>> {
        let written = inputs_of(stage).write(stage.program.device(), &mut launch_slot, &jobs[range.clone()]);
        let mut launch = match written {
            Ok(launch) => launch,
            Err(error) => return Err(Box::new(Unordered { launch_slot: Some(launch_slot), earlier_runs, error })),
        };
        launch.local |= local::CLOCK;
        if !earlier_runs.is_empty() {
            // The host knows which bytes they were given before.
            launch.local &= !local::RANDOM;
        }
        let Plan { is_last, .. } = stage.plan;
        let has_more_stack = self.mapper.stages.as_ref().is_some_and(|stages| stages.has_more_stack(stage.stack()));
        let Extent { max_memory, limits: Limits { output_bytes, answer_bytes, .. }, .. } = self.mapper.extent;
        let (key, first) = (launch.key, launch.first);
        // Soon, while there are larger annexes: those are far faster than the bus.
        let can_have_more = |stages: &Stages| !is_last && stages.has_more_output(stage.plan.allowance);
        let has_more_output = self.mapper.stages.as_ref().is_some_and(can_have_more);
        let pool = if has_more_output { output_bytes.min(CROWDED) } else { output_bytes };
        let terms = BatchTerms { key, first, is_last, has_more_stack, has_more_output, output_bytes, max_memory };
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
        let order = LaunchOrder { launch_slot, count, slots, guests, launch, selector, stack, cleared, timeout, watch };
        match stage.launcher.order(order) {
            Ok(ordered) => Ok((ordered, batch)),
            Err((launch_slot, error)) => {
                Err(Box::new(Unordered { launch_slot: Some(launch_slot), earlier_runs: HashMap::new(), error }))
            }
        }
    }

    /// Waits for a launch, launches the next one, and reads what became of the instances.
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
        // The next part goes first: what runs again can do so beside it.
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

    /// Launches the next part, with what was learned since: a launch slot is free.
    fn go_on(&mut self, stage: &Arc<Stage>, launch_slot: Box<LaunchSlot>) -> Result<(), Error> {
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

    /// Reads what became of the instances of a launch that has ended.
    fn collect(
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

    /// What is left to do of a launch, and how what comes next runs.
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
        unfinished.needs.output.extend(collected.printed.iter().filter(|printed| **printed > batch.room()));
        unfinished.pieces = collected.pieces.into();
        unfinished
    }

    /// Runs some of those again that could not finish, the first of them among them.
    fn run_again(&mut self) -> Result<(), Error> {
        let (mapper, jobs) = (self.mapper.clone(), self.jobs.clone());
        let (Some(stages), Some(mut unfinished)) = (&mapper.stages, self.unfinished.take()) else { return Ok(()) };
        let Some(plan) = unfinished.reruns.values().next().map(|rerun| rerun.plan) else { return Ok(()) };
        let alike = unfinished.reruns.values().filter(|rerun| rerun.plan == plan).count();
        let stage = stages.get(plan, alike)?;
        let is_alike = unfinished.reruns.iter().filter(|(_, rerun)| rerun.plan == plan);
        let slots: Vec<usize> = is_alike.map(|(slot, _)| *slot).take(stage.capacity()).collect();
        tracing::debug!(count = slots.len(), of = unfinished.reruns.len(), ?plan, "run again");
        let again: Vec<Job> = slots.iter().map(|slot| jobs[unfinished.job + slot].clone()).collect();
        let mut earlier_runs = HashMap::new();
        for (at, slot) in slots.iter().enumerate() {
            let earlier_run = unfinished.reruns.get_mut(slot).and_then(|rerun| rerun.earlier_run.take());
            earlier_runs.extend(earlier_run.map(|earlier_run| (at as u32, earlier_run)));
        }
        let count = again.len();
        // A launch slot of its own: those that the stage has may wait for who waits here.
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
                self.stats.again += count as u64;
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

    fn after_shortage(&mut self, stage: &Arc<Stage>, why: LaunchError, patience: &mut Patience) -> Result<Plan, Error> {
        let mapper = self.mapper.clone();
        let Some(stages) = &mapper.stages else { return Ok(stage.plan) };
        let plan = stages.after_shortage(stage, why, patience)?;
        if plan != stage.plan {
            let mut front = mapper.plan.lock();
            if front.is_some_and(|front| front == stage.plan) {
                *front = Some(plan);
            }
            // Those that were not launched yet need not find out for themselves.
            if self.stage.as_ref().is_some_and(|first| Arc::ptr_eq(first, stage)) {
                self.stage = Some(stages.get(plan, self.left.len())?);
            }
        }
        Ok(plan)
    }

    /// Has all that follow begin with what many of a launch were found to need.
    fn learn(&mut self) -> Result<(), Error> {
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
            // What they were given without need is no part of it: with fewer or more at once, that is another amount.
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
            tracing::info!(?next, "what follows begins with more");
            *front = Some(next);
            drop(front);
            if !self.left.is_empty() {
                self.stage = Some(stages.get(next, self.left.len())?);
            }
        }
        Ok(())
    }
}

/// What all but the most demanding need.
fn usual_need<T: Ord + Copy>(needs: &mut [T]) -> Option<T> {
    needs.sort_unstable();
    needs.get(needs.len().saturating_sub(1) - needs.len().saturating_sub(1) / MANY_OUTGROWN).copied()
}

impl Unfinished {
    /// A launch that could not be made: all of it has to run.
    fn nothing(job: usize, instances: usize, plan: Plan, timeout: Option<Duration>) -> Self {
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

    /// The next pieces of which all have finished.
    fn ready(&mut self) -> Vec<Piece> {
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

    /// Those of a launch that have to run again, where `slot` says which they are.
    fn add(
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
        // The others that were to run like this need not find out for themselves.
        if let Some(next) = largest.filter(|_| is_many) {
            self.reruns.values_mut().filter(|rerun| rerun.plan == plan).for_each(|rerun| rerun.plan = next);
        }
    }

    /// What became of those that have finished now.
    fn take(&mut self, collected: &mut Collected, slots: &[usize], plan: Plan) {
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
            // A host's stack says nothing about what is needed here.
            self.needs.stack.extend((lacked.stack && !plan.is_on_host()).then_some(plan.allowance.stack));
            self.needs.output.extend(lacked.output.map(|_| printed));
            let place = slot - self.first;
            self.pieces[place / ours].put(place % ours, done);
        }
    }

    /// Those that could not be launched.
    fn put_back(&mut self, slots: &[usize], plan: Plan, mut earlier_run: impl FnMut(usize) -> Option<EarlierRun>) {
        for (at, slot) in slots.iter().enumerate() {
            self.put(*slot, plan, earlier_run(at), &Lack::default());
        }
    }

    /// An instance that runs again, with what it lacked this time.
    fn put(&mut self, slot: usize, plan: Plan, earlier_run: Option<EarlierRun>, lack: &Lack) {
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

/// The stage's own lock, which may be poisoned: what a panic leaves there is overwritten.
fn inputs_of(stage: &Stage) -> MutexGuard<'_, Inputs> {
    stage.inputs.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "mapper_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "float_tests.rs"]
mod float_tests;

#[cfg(test)]
#[path = "probation_tests.rs"]
mod probation_tests;

#[cfg(test)]
#[path = "ahead_tests.rs"]
mod ahead_tests;

#[cfg(test)]
#[path = "rule_tests.rs"]
mod rule_tests;

#[cfg(test)]
#[path = "shortage_tests.rs"]
mod shortage_tests;
