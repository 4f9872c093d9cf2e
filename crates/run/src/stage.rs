//! Where instances run: builds of one program, each with slots for instances that have the same [`Allowance`].
//!
//! A [`Plan`] says how instances are to run; a [`Stage`] runs them that way. Instances that a stage cannot finish get
//! another plan ([`Stages::after`]): more memory, a deeper stack, fewer instances beside them, an exact build. The last
//! plan denies an instance only what no plan can give.

use crate::allowance::{Allowance, Bounds, Lack, Limits};
use crate::common::{Common, CommonMemory};
use crate::inputs::Inputs;
use crate::launcher::{LaunchError, LaunchSlot, LaunchSlots, Launcher, SlotSpace};
use crate::outbox::{Outboxes, Trays};
use crate::slots::{LaunchBuffers, Slots};
use gpu_run_abi::Layout;
use gpu_run_abi::layout::{PAGE, WORD};
use gpu_run_compiler::{APART_LANES, Error, Program, Sibling};
use gpu_run_device::{Device, Patience, Properties, cpu, describe_holders};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How much of a device the instances of a program may take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// Instances that run at once, if the device has memory for them.
    pub capacity: usize,
    /// Bytes that an instance's memories and tables may have together.
    pub max_memory: Option<u64>,
    /// How many lanes of a warp run an instance, if not all do.
    pub lanes: Option<u32>,
    /// The allowance that instances were found to need in an earlier run.
    pub learned: Option<Allowance>,
    pub common: Common,
    pub limits: Limits,
}

/// How instances are to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The build; `None` is the program's usual build.
    pub build: Option<Sibling>,
    pub allowance: Allowance,
    /// How many instances run at once, at most.
    pub at_once: usize,
    /// No other plan comes after this one: an instance that lacks something is refused it.
    pub is_last: bool,
}

impl Plan {
    pub fn is_on_host(&self) -> bool {
        self.build == Some(Sibling::OnHost)
    }
}

/// A stage gets at least this many slots, within [`Extent::capacity`]: enough for the few reruns that are expected.
const MIN_RERUN_SLOTS: usize = 1024;
/// If the memory that instances share did not suffice, 1/8 as many of them run at once.
const FEWER_AT_ONCE: usize = 8;
/// Instances with [`Bounds::all`] that run at once.
const LAST_AT_ONCE: usize = 8;
/// The largest memory, in bytes, that is interleaved with those of its warp; a larger one gets a linear slot.
const MAX_INTERLEAVED: u64 = 64 << 20;
/// Instances are few if the device can hold more than this many times as many threads.
const FEW_OF_CAPACITY: u64 = 16;
/// Stages that are kept for later batches.
const MAX_STAGES: usize = 3;
/// How long a stage stays narrow after the device had no memory for more instances: other processes may have left.
const SHORT_FOR: Duration = Duration::from_secs(10);
/// How often the free memory is checked to see whether other processes have left.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// If nothing says how many instances fit, a stage's capacity is divided by this.
const FEWER_SLOTS: usize = 2;
/// If stacks lack memory, a warp's slots may take at most 1/16 of what is free.
const MAX_WARP_SHARE: u64 = 16;
/// Bytes of device memory that should be free before the code of another build is loaded.
const CODE_ROOM: u64 = 128 << 20;
/// Instances that run on `cpu` at once, because the device has no memory for their stacks.
const ON_HOST: usize = 64;

/// One build with its slots, and the thread that launches there.
pub struct Stage {
    pub plan: Plan,
    pub program: Arc<Program>,
    pub launcher: Launcher,
    pub launch_slots: LaunchSlots,
    pub inputs: Mutex<Inputs>,
    selector: u32,
    /// Instances of a launch, at most. Lowered when the device turns out to have no memory for more.
    capacity: AtomicUsize,
    /// When `capacity` was lowered.
    short_since: Mutex<Option<Instant>>,
    /// Whether the device's memory limits `capacity`: no more instances would fit.
    is_full: bool,
    slot_bytes: u64,
    /// Bytes of memory that the instances of the last launch had in the end, on average.
    memory: AtomicU64,
    /// Bytes that all outboxes take together, about.
    outbox_bytes: u64,
    trays: Arc<Trays>,
    common: Arc<CommonMemory>,
}

/// The function that instances call.
#[derive(Clone, Debug, Default)]
pub struct EntryCall {
    pub selector: u32,
    /// Its arguments.
    pub words: Vec<u64>,
}

impl Stage {
    pub fn selector(&self) -> u32 {
        self.selector
    }

    pub fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Returns the bytes of stack that a launch asks for.
    pub fn stack(&self) -> u32 {
        self.plan.allowance.stack
    }

    /// Returns whether this stage suits `wanted` instances of `plan`.
    fn is_for(&self, plan: Plan, wanted: usize, bounds: &Bounds) -> bool {
        let Plan { build, allowance, is_last, .. } = self.plan;
        let is_short = self.short_since.lock().is_some();
        let is_wide = match is_short {
            true => !self.is_too_narrow(bounds),
            false => {
                self.capacity() == wanted || self.is_full && self.capacity() < wanted && !self.is_too_narrow(bounds)
            }
        };
        is_wide && (build, allowance, is_last) == (plan.build, plan.allowance, plan.is_last)
    }

    /// Returns whether at least twice as many instances may fit by now, because other processes have left the device,
    /// or because `capacity` was lowered long ago.
    fn is_too_narrow(&self, bounds: &Bounds) -> bool {
        let (compiled, device) = (self.program.compiled(), self.program.device());
        let fits = |free| bounds.at_once_in(compiled, self.plan.allowance, free) >= 2 * self.capacity();
        let short_for = self.short_since.lock().map(|since| since.elapsed());
        match short_for {
            Some(time) => time >= SHORT_FOR || time >= LOOK_AFTER && device.free_bytes().is_ok_and(fits),
            None => self.is_full && !self.plan.is_on_host() && fits(bounds.free),
        }
    }

    /// Lowers `capacity` to the number of instances that seem to fit. Returns whether that was possible.
    fn narrow(&self, fitting: usize) -> bool {
        let capacity = self.capacity();
        let fewer = if fitting < capacity { fitting.max(1) } else { capacity / FEWER_SLOTS };
        if fewer == 0 || fewer == capacity {
            return false;
        }
        tracing::info!(capacity, fewer, "the device has memory for fewer instances at once");
        self.capacity.store(fewer, Ordering::Relaxed);
        *self.short_since.lock() = Some(Instant::now());
        true
    }

    /// Notes how large the instances' memories were when they ended.
    pub fn note_memory(&self, memories: &[u64]) {
        let mean = memories.iter().sum::<u64>() / memories.len().max(1) as u64;
        self.memory.store(mean, Ordering::Relaxed);
    }

    /// Returns the guest address up to which memories are to be cleared before a launch; 0 if they are not. A GPU
    /// clears several times faster than instances that each clear what the previous one left. An instance whose
    /// predecessor left more than the average clears the rest itself.
    pub fn to_clear(&self) -> u64 {
        let slots = &self.program.compiled().slots;
        let end = self.memory.load(Ordering::Relaxed).next_multiple_of(PAGE);
        let is_worth = !slots.is_local() && end.saturating_sub(slots.low) >= PAGE;
        if is_worth && !self.program.device().properties().overcommits { end } else { 0 }
    }

    pub fn launch_slot(&self) -> Result<LaunchSlot, Error> {
        let (device, slots) = (self.program.device(), self.capacity() as u64);
        let annex_bytes = self.plan.allowance.output;
        Ok(LaunchSlot {
            buffers: LaunchBuffers::new(device, self.program.compiled(), self.capacity(), self.common.clone())?,
            inputs: device.allocate(slots * 2 * WORD)?,
            strings: None,
            outboxes: Arc::new(Outboxes::new(device, slots, self.outbox_bytes, annex_bytes, &self.trays)?),
        })
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // When `close` returns, the slots' memory is free.
        self.launcher.close();
    }
}

/// All stages of a program.
pub struct Stages {
    program: Arc<Program>,
    extent: Extent,
    called: EntryCall,
    bounds: Mutex<Bounds>,
    space: Arc<SlotSpace>,
    trays: Arc<Trays>,
    common: Arc<CommonMemory>,
    programs: Mutex<HashMap<Sibling, Arc<Program>>>,
    stages: Mutex<Vec<Arc<Stage>>>,
    /// Whether some instances had to run on the host.
    is_on_host: AtomicBool,
    looked: Mutex<Instant>,
    looked_for_stack: Mutex<Instant>,
    interrupt: OnceLock<Arc<AtomicBool>>,
}

/// Returns how many instances run at once after `at_once` of them used up the memory that they share.
pub fn fewer(at_once: usize) -> usize {
    (at_once / FEWER_AT_ONCE).max(1)
}

impl Stages {
    pub fn new(
        program: Arc<Program>,
        extent: Extent,
        called: EntryCall,
        common: Arc<CommonMemory>,
    ) -> Result<Self, Error> {
        let bounds = Bounds::new(program.device(), program.compiled(), extent.max_memory, &extent.limits)?;
        Ok(Self {
            program,
            extent,
            called,
            bounds: Mutex::new(bounds),
            space: Arc::default(),
            trays: Arc::default(),
            common,
            programs: Mutex::default(),
            stages: Mutex::default(),
            is_on_host: AtomicBool::default(),
            looked: Mutex::new(Instant::now()),
            looked_for_stack: Mutex::new(Instant::now()),
            interrupt: OnceLock::new(),
        })
    }

    /// Launches of stages that are made from here on are stopped when the flag becomes true. Only the first flag counts.
    pub fn stop_when(&self, flag: Arc<AtomicBool>) {
        let _ = self.interrupt.set(flag);
    }

    fn bounds(&self) -> MutexGuard<'_, Bounds> {
        self.bounds.lock()
    }

    /// Returns the plan that batches begin with.
    pub fn first(&self) -> Plan {
        let (compiled, count) = (self.program.compiled(), self.extent.capacity.max(1));
        let bounds = self.bounds();
        let allowance = match self.extent.learned {
            Some(learned) => bounds.learned(compiled, count, learned),
            None => bounds.first(compiled, count),
        };
        let has_outgrown = self.extent.learned.is_some_and(|learned| {
            learned.memory > compiled.slots.local_bytes() || learned.stack > bounds.first(compiled, count).stack
        });
        // A GPU sets local memory aside for all threads it can hold: too expensive for a few instances.
        let resident = self.program.device().properties().resident_threads;
        let is_few = (count as u64).saturating_mul(FEW_OF_CAPACITY) < resident;
        let is_narrow = is_few || !bounds.has_room_in_threads(compiled);
        let build = (self.has_own(None) && (has_outgrown || is_narrow)).then_some(Sibling::InSlots);
        self.fitting(&bounds, Plan { build, allowance, at_once: count, is_last: false })
    }

    /// Returns the plan, marked as the last one if no other plan gives an instance more. For instances that share
    /// nothing.
    pub fn settled(&self, plan: Plan) -> Plan {
        let anything = Lack { memory: Some(u64::MAX / 2), stack: true, ..Lack::default() };
        let bounds = self.bounds();
        let is_all = bounds.larger(plan.allowance, &anything).is_none() && !bounds.is_short_of_stack();
        Plan { is_last: plan.is_last || is_all && !self.has_own(plan.build), ..plan }
    }

    /// Returns whether a build keeps guest memory in the thread's local memory.
    fn has_own(&self, build: Option<Sibling>) -> bool {
        build.is_none() && self.program.compiled().slots.is_local()
    }

    /// Returns whether a deeper stack than `stack` bytes is possible.
    pub fn has_more_stack(&self, stack: u32) -> bool {
        let bounds = self.bounds();
        stack < bounds.most_stack || bounds.is_short_of_stack()
    }

    /// See [`Bounds::annex`].
    pub fn annex(&self, bytes: u64) -> u64 {
        self.bounds().annex(bytes)
    }

    /// Returns whether an instance can get a larger annex.
    pub fn has_more_output(&self, allowance: Allowance) -> bool {
        self.bounds().more_output(allowance, 0).is_some()
    }

    /// Returns the plan with another allowance. Instances that outgrow local memory run in slots.
    pub fn with(&self, plan: Plan, allowance: Allowance, outgrows_threads: bool) -> Plan {
        let Plan { build, .. } = if outgrows_threads { self.in_slots(plan) } else { plan };
        self.fitting(&self.bounds(), Plan { build, allowance, ..plan })
    }

    /// Returns the plan for a rerun of instances that lacked something.
    pub fn after(&self, plan: Plan, lack: &Lack) -> Plan {
        if lack.stack {
            self.look_for_stack();
        }
        let bounds = *self.bounds();
        let mut next = plan;
        let more_output = lack.output.and_then(|printed| bounds.more_output(plan.allowance, printed));
        next.allowance.output = more_output.unwrap_or(plan.allowance.output);
        if lack.shared || lack.output.is_some() && more_output.is_none() {
            if plan.at_once == 1 || lack.output.is_some_and(|printed| printed > bounds.printed_at_most()) {
                return self.last(&bounds, plan, lack);
            }
            next.at_once = fewer(plan.at_once);
        }
        if lack.memory.is_none() && !lack.stack {
            return next;
        }
        if self.has_own(plan.build) {
            next.build = Some(Sibling::InSlots);
            let first = bounds.first(self.program.compiled(), plan.at_once);
            let is_enough = lack.memory.is_none_or(|wanted| wanted <= first.memory) && !lack.stack;
            let larger = match is_enough {
                true => first,
                false => bounds.larger(first, lack).unwrap_or(first),
            };
            next.allowance = Allowance { output: next.allowance.output, ..larger };
        } else {
            match bounds.larger(next.allowance, lack) {
                Some(larger) => next.allowance = larger,
                None => return self.last(&bounds, plan, lack),
            }
        }
        self.fitting(&bounds, next)
    }

    /// Returns the plan with a build whose slots are linear, if memories are too large to interleave.
    fn fitting(&self, bounds: &Bounds, plan: Plan) -> Plan {
        let compiled = self.program.compiled();
        let is_small = self.has_own(plan.build)
            || plan.allowance.memory <= MAX_INTERLEAVED && bounds.has_room_for_warp(compiled, plan.allowance);
        match is_small || compiled.layout() == Layout::Linear {
            true => plan,
            false => Plan { build: Some(Sibling::Alone), ..plan },
        }
    }

    /// Returns the plan that gives an instance all it may have. If the device could give a deeper stack but other
    /// processes hold its memory, instances that lack stack run on the host.
    fn last(&self, bounds: &Bounds, plan: Plan, lack: &Lack) -> Plan {
        let allowance = bounds.all();
        let last = Plan { build: Some(Sibling::Alone), allowance, at_once: LAST_AT_ONCE, is_last: true };
        if !bounds.is_short_of_stack() {
            return last;
        }
        match lack.stack && plan.allowance.stack >= bounds.most_stack {
            true => self.on_host(bounds),
            false if (plan.build, plan.allowance) == (last.build, last.allowance) => last,
            false => Plan { is_last: false, ..last },
        }
    }

    /// Checks, from time to time, whether other processes have left memory for deeper stacks.
    fn look_for_stack(&self) {
        let mut looked = self.looked_for_stack.lock();
        if !self.bounds().is_short_of_stack() || looked.elapsed() < SHORT_FOR {
            return;
        }
        *looked = Instant::now();
        if let Ok(free) = self.free_alone(self.program.device()) {
            self.bounds().raise_stack(free);
        }
    }

    /// Returns the bytes that are free on a device when we hold nothing there.
    fn free_alone(&self, device: &dyn Device) -> Result<u64, Error> {
        self.space.vacate_all();
        device.trim();
        Ok(device.free_bytes()?)
    }

    fn on_host(&self, bounds: &Bounds) -> Plan {
        if !self.is_on_host.swap(true, Ordering::Relaxed) {
            let Properties { id, resident_threads, .. } = self.program.device().properties();
            tracing::info!(
                "{id} has free memory for call stacks of {} KiB, one for each of the {resident_threads} threads it can hold; instances that need more run on the cpu",
                bounds.most_stack >> 10
            );
        }
        let allowance = Allowance { stack: cpu::STACK_BYTES, ..bounds.all() };
        Plan { build: Some(Sibling::OnHost), allowance, at_once: ON_HOST, is_last: true }
    }

    /// Returns the plan for a rerun of instances that a speculative build has stopped.
    pub fn exact(&self, plan: Plan) -> Plan {
        Plan { build: Some(Sibling::Exact), ..self.in_slots(plan) }
    }

    /// Returns the plan without local memory.
    fn in_slots(&self, plan: Plan) -> Plan {
        match self.has_own(plan.build) {
            true => Plan { build: Some(Sibling::InSlots), ..plan },
            false => plan,
        }
    }

    /// Returns the plan with the build for lanes that diverge.
    pub fn apart(&self, plan: Plan) -> Plan {
        Plan { build: Some(Sibling::Apart), ..plan }
    }

    /// Returns the plan for instances whose launch the device had no memory for. Each call tries the next way out:
    /// fewer instances at once, linear slots, a smaller stack, waiting until other processes of ours have left. An
    /// error if no way is left.
    pub fn after_shortage(&self, stage: &Stage, why: LaunchError, patience: &mut Patience) -> Result<Plan, Error> {
        let is_stack = match why {
            LaunchError::Failed(error) => return Err(error),
            LaunchError::NoStack if self.has_own(stage.plan.build) => return Ok(self.in_slots(stage.plan)),
            LaunchError::NoStack => true,
            LaunchError::NoSlots => false,
        };
        let (device, compiled) = (stage.program.device(), stage.program.compiled());
        let free = self.free_alone(device)?;
        let fitting = self.bounds().at_once_in(compiled, stage.plan.allowance, free);
        if stage.narrow(fitting) {
            return Ok(stage.plan);
        }
        let warp = stage.slot_bytes * compiled.layout().slots(1);
        if compiled.layout() == Layout::Interleaved && (!is_stack || warp > free / MAX_WARP_SHARE) {
            // In interleaved slots, one instance takes as much memory as a whole warp.
            return Ok(Plan { build: Some(Sibling::Alone), ..stage.plan });
        }
        let mut bounds = self.bounds();
        if is_stack && bounds.lower_stack(stage.stack()) {
            tracing::info!(stack = bounds.most_stack, "the device has memory for smaller stacks only");
            let stack = stage.plan.allowance.stack.min(bounds.most_stack);
            return Ok(Plan { allowance: Allowance { stack, ..stage.plan.allowance }, ..stage.plan });
        }
        drop(bounds);
        if patience.wait(device) {
            // A later batch makes a new stage.
            *stage.short_since.lock() = Instant::now().checked_sub(SHORT_FOR);
            return Ok(stage.plan);
        }
        Err(self.does_not_fit(stage))
    }

    fn does_not_fit(&self, stage: &Stage) -> Error {
        let device = stage.program.device();
        let compiled = stage.program.compiled();
        let bounds = *self.bounds();
        let sizes = bounds.sizes(compiled, stage.plan.allowance, stage.plan.is_last);
        let wanted = sizes.map_or(0, |sizes| sizes.slot_bytes * compiled.layout().slots(1))
            + bounds.stacks(compiled, stage.stack());
        let holders = device.holders();
        let who = match holders.is_empty() {
            true => String::new(),
            false => format!("; its memory is in use by {}", describe_holders(&holders)),
        };
        let (wanted, free) = (wanted.div_ceil(1 << 20), device.free_bytes().unwrap_or(0) >> 20);
        let what = match wanted < free {
            // `cpu` takes its address space for free.
            true if !device.is_gpu() => format!("{wanted} MiB, which the system does not give: see `ulimit -v`"),
            true => format!("{wanted} MiB, which cannot be allocated, although {free} MiB are free"),
            false => format!("{wanted} MiB, but only {free} MiB are free"),
        };
        Error::Limit(format!("one instance does not fit on {}: it takes about {what}{who}", device.properties().id))
    }

    /// Returns the stage for the rest of a batch that began on `stage`: another one, if more instances fit by now.
    pub fn for_rest(&self, stage: &Arc<Stage>, left: usize) -> Result<Arc<Stage>, Error> {
        self.look();
        let bounds = *self.bounds();
        match stage.capacity() < left && stage.is_too_narrow(&bounds) {
            true => self.get(stage.plan, left),
            false => Ok(stage.clone()),
        }
    }

    /// Checks, from time to time, whether other processes have left the device memory.
    fn look(&self) {
        let mut looked = self.looked.lock();
        if looked.elapsed() < LOOK_AFTER {
            return;
        }
        *looked = Instant::now();
        let (device, compiled) = (self.program.device(), self.program.compiled());
        let Ok(free) = device.free_bytes() else { return };
        let mut bounds = self.bounds();
        if let Some(raised) = bounds.raised(device.properties(), free, compiled, &self.extent.limits) {
            tracing::info!(free, "other processes have freed device memory");
            *bounds = raised;
        }
    }

    /// Returns the stage for a plan, with slots for `wanted` instances or as many as fit.
    pub fn get(&self, plan: Plan, wanted: usize) -> Result<Arc<Stage>, Error> {
        let wanted = wanted.max(MIN_RERUN_SLOTS).min(self.extent.capacity.max(1)).min(plan.at_once).max(1);
        self.look();
        let bounds = *self.bounds();
        let mut stages = self.stages.lock();
        if let Some(at) = stages.iter().position(|stage| stage.is_for(plan, wanted, &bounds)) {
            let found = stages.remove(at);
            stages.push(found.clone());
            return Ok(found);
        }
        drop(stages);
        let made = Arc::new(self.make(plan, wanted)?);
        let mut stages = self.stages.lock();
        stages.push(made.clone());
        let surplus = stages.len().saturating_sub(MAX_STAGES);
        let gone: Vec<_> = stages.drain(..surplus).collect();
        drop(stages);
        // A batch that still runs there keeps the stage alive.
        drop(gone);
        Ok(made)
    }

    fn make(&self, plan: Plan, wanted: usize) -> Result<Stage, Error> {
        let program = self.build(plan.build)?;
        let compiled = program.compiled().clone();
        let EntryCall { selector, words } = self.called.clone();
        let (sizes, fitting) = {
            let bounds = self.bounds();
            let fitting = match plan.is_on_host() {
                true => plan.at_once,
                false => bounds.at_once(&compiled, plan.allowance).max(1),
            };
            (bounds.sizes(&compiled, plan.allowance, plan.is_last)?, fitting)
        };
        let lanes = if plan.build == Some(Sibling::Apart) { Some(APART_LANES) } else { self.extent.lanes };
        let stack = plan.allowance.stack;
        let (slots, size, interrupt) = (program.clone(), sizes.clone(), self.interrupt.get().cloned());
        let make = move |capacity: u64| {
            let mut batch = Slots::new(&slots, capacity, size.clone(), stack)?;
            batch.set_lanes(lanes);
            batch.stop_when(interrupt.clone());
            batch.set_arguments(&words)?;
            Ok(batch)
        };
        let launcher = Launcher::new(self.space.clone(), Box::new(make))?;
        let common = match plan.is_on_host() {
            true => Arc::new(self.common.elsewhere(program.device())?),
            false => self.common.clone(),
        };
        tracing::debug!(?plan, wanted, fitting, slot = sizes.slot_bytes, "stage made");
        Ok(Stage {
            common,
            plan,
            program,
            launcher,
            launch_slots: LaunchSlots::default(),
            inputs: Mutex::default(),
            selector,
            capacity: AtomicUsize::new(wanted.min(fitting)),
            short_since: Mutex::default(),
            is_full: fitting <= wanted,
            slot_bytes: sizes.slot_bytes,
            memory: AtomicU64::new(0),
            outbox_bytes: self.extent.limits.outbox_bytes,
            trays: self.trays.clone(),
        })
    }

    fn build(&self, build: Option<Sibling>) -> Result<Arc<Program>, Error> {
        let Some(sibling) = build else { return Ok(self.program.clone()) };
        let mut programs = self.programs.lock();
        if let Some(program) = programs.get(&sibling) {
            return Ok(program.clone());
        }
        if self.program.device().free_bytes()? < CODE_ROOM {
            self.space.vacate_all();
        }
        let program = Arc::new(self.program.rebuilt(sibling)?);
        programs.insert(sibling, program.clone());
        Ok(program)
    }

    /// Waits until all launches are over and their results were read by the threads that ordered them.
    pub fn settle(&self) {
        let stages = self.stages.lock().clone();
        stages.iter().for_each(|stage| stage.launch_slots.wait_for_all());
    }

    /// Frees all slots that are not in use.
    pub fn close(&self) {
        let stages = std::mem::take(&mut *self.stages.lock());
        stages.iter().for_each(|stage| stage.launcher.close());
    }
}
