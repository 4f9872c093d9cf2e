//! Runs any number of instances, each with its own context. They pass through the same slots, one launch after the
//! other.
//!
//! What an instance does reaches its context at once. An instance that is rerun because it lacked something gets the
//! answers in its transcript first, so that nothing happens twice.

use crate::allowance::{Denied, Lack, Limits};
use crate::bus::BatchHost;
use crate::launcher::{LaunchError, LaunchOrder};
use crate::outcome::{self, End, Outcome, RunOptions, RunStats};
use crate::remains::{self, Examiner, Remains, ThreadRemains, Whose};
use crate::slots::Slots;
use crate::stage::Extent;
use crate::stage::{EntryCall, Plan, Stage, Stages};
use crate::transcript::{Answered, Transcript};
use gpu_run_abi::hostcall::Call;
use gpu_run_abi::launch::{Ending, answers};
use gpu_run_abi::{Launch, Status, TrapCode};
use gpu_run_compiler::Value;
use gpu_run_compiler::{Error, NotedCalls, Program, Trap};
use gpu_run_device::Patience;
use gpu_run_wasi::{Context, Out, Reply};
use gpu_run_wasm::words;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

/// Instances in one launch, at most. More instances take several launches.
const MAX_AT_ONCE: usize = 4096;

/// Runs one instance for each context (arguments, environment, descriptors): instantiates it, runs the start function,
/// and calls `function` with `args`. Returns how each instance ended, in order.
pub fn run(
    program: &Arc<Program>,
    function: &str,
    args: &[Value],
    contexts: Vec<Context>,
    options: &RunOptions,
) -> Result<(Vec<Outcome>, RunStats), Error> {
    let (selector, words) = program.compiled().arguments(function, args)?;
    if let Some(code) = program.compiled().initial.trap {
        if let Some(examiner) = options.examiner.as_deref() {
            let nothing = Error::Limit("its segments do not fit, so it had no memory yet".into());
            (0..contexts.len()).for_each(|instance| examiner.examines(Whose::Instance(instance), Err(&nothing)));
        }
        let stats = RunStats { instances: contexts.len() as u64, ..RunStats::default() };
        let outcome = Outcome { end: End::trapped(code), results: Vec::new(), denied: None, threads: None };
        return Ok((vec![outcome; contexts.len()], stats));
    }
    let extent = Extent {
        capacity: contexts.len().min(MAX_AT_ONCE),
        max_memory: options.max_memory,
        // Output goes to the contexts, not to outboxes.
        limits: Limits { outbox_bytes: 0, ..options.limits },
        ..Extent::default()
    };
    let stages = Stages::new(program.clone(), extent, EntryCall { selector, words }, options.common_of(program)?)?;
    options.interrupt.iter().for_each(|flag| stages.stop_when(flag.clone()));
    let mut run = Run {
        outcomes: vec![None; contexts.len()],
        stages,
        options,
        patience: Patience::default(),
        stats: RunStats { instances: contexts.len() as u64, ..RunStats::default() },
    };
    let first = run.stages.settled(run.stages.first());
    let mut waiting: Waiting = vec![(first, contexts.into_iter().map(Guest::new).enumerate().collect())];
    while let Some((plan, guests)) = waiting.pop() {
        waiting.extend(run.launch_all(plan, guests)?);
    }
    let missing = || Error::Internal("an instance without an ending".into());
    let outcomes = run.outcomes.into_iter().map(|outcome| outcome.ok_or_else(missing)).collect::<Result<_, _>>()?;
    Ok((outcomes, run.stats))
}

struct Run<'a> {
    stages: Stages,
    options: &'a RunOptions,
    outcomes: Vec<Option<Outcome>>,
    patience: Patience,
    stats: RunStats,
}

type Waiting = Vec<(Plan, Vec<(usize, Guest)>)>;

impl Run<'_> {
    /// Runs instances, each with its position in the result. Returns those that must be rerun, with their plans.
    fn launch_all(&mut self, plan: Plan, guests: Vec<(usize, Guest)>) -> Result<Waiting, Error> {
        let stage = self.stages.get(plan, guests.len())?;
        let mut again = Waiting::new();
        let mut rest = guests.into_iter().peekable();
        while rest.peek().is_some() {
            let (places, guests): (Vec<usize>, Vec<Guest>) = rest.by_ref().take(stage.capacity()).unzip();
            let room = AtomicUsize::new(self.options.limits.answer_bytes);
            let batch = Arc::new(ContextBatch { guests: guests.into_iter().map(Mutex::new).collect(), room, plan });
            let launched = self.launch(&stage, &batch, &places)?;
            let mut guests = places.into_iter().zip(batch.take_all());
            match launched {
                Ok(lacks) => {
                    // Dropping the finished guests closes what they hold open.
                    for ((place, guest), lack) in guests.zip(lacks).filter_map(|(guest, lack)| Some((guest, lack?))) {
                        self.stats.reruns += 1;
                        let next = self.stages.settled(self.stages.after(plan, &lack));
                        match again.iter_mut().find(|(plan, _)| *plan == next) {
                            Some((_, alike)) => alike.push((place, guest)),
                            None => again.push((next, vec![(place, guest)])),
                        }
                    }
                }
                Err(short) => {
                    let plan = self.stages.after_shortage(&stage, short, &mut self.patience)?;
                    again.push((plan, guests.by_ref().chain(rest).collect()));
                    return Ok(again);
                }
            }
        }
        Ok(again)
    }

    /// Launches a batch. Returns what each instance that could not finish lacked. The inner `Err` means that the device
    /// had no memory for the launch.
    fn launch(
        &mut self,
        stage: &Arc<Stage>,
        batch: &Arc<ContextBatch>,
        places: &[usize],
    ) -> Result<Result<Vec<Option<Lack>>, LaunchError>, Error> {
        let launch_slot = match stage.launch_slots.take(|| stage.launch_slot()) {
            Ok(launch_slot) => launch_slot,
            Err(error) if error.is_shortage() => return Ok(Err(LaunchError::NoSlots)),
            Err(error) => return Err(error),
        };
        // No clock on the device if a rerun may follow: in the rerun it would show another time, and the instance might
        // do something else.
        let launch = Launch { answers: if batch.plan.is_last { answers::CLOCK } else { 0 }, ..Launch::default() };
        let (count, slots, selector, stack) = (places.len(), stage.capacity(), stage.selector(), stage.stack());
        let numbers = match stage.program.compiled().asks_device {
            true => places.iter().map(|place| *place as u64).collect(),
            false => Vec::new(),
        };
        let timeout = self.options.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let guests = batch.clone();
        let order = LaunchOrder {
            launch_slot,
            count,
            slots,
            guests,
            launch,
            numbers,
            selector,
            stack,
            cleared: 0,
            timeout,
            watch: None,
        };
        let (launch_slot, report) = stage.launcher.order(order).map_err(|(_, error)| error)?.wait();
        let (launch_slot, report) = match (launch_slot, report) {
            (Some(launch_slot), Ok(report)) => (launch_slot, report),
            (None, Ok(_)) => return Err(Error::Internal("a launch without its buffers".into())),
            (_, Err(LaunchError::Failed(error))) => return Err(error),
            (launch_slot, Err(short)) => {
                stage.launch_slots.put(launch_slot);
                return Ok(Err(short));
            }
        };
        let began = Instant::now();
        let compiled = stage.program.compiled();
        let types = compiled.results(selector);
        let endings = launch_slot.buffers.endings(count, words(types) as usize)?;
        let has_more_stack = self.stages.has_more_stack(stack);
        let (mut lacks, mut trapped) = (Vec::with_capacity(count), Vec::new());
        for (slot, place) in places.iter().enumerate() {
            let ending = endings.get(slot);
            let outcome = outcome::outcome(compiled, slot, &endings, types)?;
            let lack = batch.lack(slot, &ending, &outcome.end, has_more_stack);
            if lack.is_none() {
                let deviated = batch.guest(slot as u32).transcript.deviated();
                if let End::Trapped(trap) = &outcome.end {
                    trapped.push((*place, slot, trap.clone(), endings.calls(slot)));
                }
                self.outcomes[*place] = Some(match deviated && !report.stopped {
                    true => Outcome {
                        end: End::trapped(TrapCode::Deviated),
                        results: Vec::new(),
                        denied: None,
                        threads: None,
                    },
                    false => Outcome { denied: Denied::growth(compiled, self.options.max_memory, &ending), ..outcome },
                });
            }
            lacks.push(lack);
        }
        if let Some(examiner) = self.options.examiner.as_deref() {
            for (place, slot, trap, calls) in &trapped {
                // No other launch was ordered since: the slots are as this one left them.
                stage.launcher.look(|slots| examine(examiner, *place, (slots, *slot), trap, calls.as_ref()));
            }
        }
        stage.launch_slots.put(Some(launch_slot));
        self.stats.collect += began.elapsed();
        self.stats.run += report.run;
        self.stats.service += report.service;
        self.stats.launches += 1;
        self.stats.on_host += if stage.plan.is_on_host() { count as u64 } else { 0 };
        self.stats.hostcalls += report.hostcalls;
        self.stats.device_bytes = self.stats.device_bytes.max(report.device_bytes);
        Ok(Ok(lacks))
    }
}

/// Has somebody look at what the instance in a slot left behind.
pub(crate) fn examine(
    examiner: &dyn Examiner,
    instance: usize,
    (slots, slot): (&Slots, usize),
    trap: &Trap,
    calls: Option<&NotedCalls>,
) {
    let held = examiner.held();
    let _held = held.as_ref().map(|held| held.lock());
    let (compiled, slot) = (slots.compiled(), slot as u64);
    let read = |index, at, bytes: &mut [u8]| slots.read_memory_part(slot, index, at, bytes);
    let remains = || {
        let place = trap.function.map(|function| (trap.offset, Some(function)));
        let globals = remains::globals(compiled, |at| slots.read_word(slot, at))?;
        let thread = ThreadRemains { name: "main".to_owned(), frames: compiled.stack(place, calls), globals };
        let memories = (0..compiled.memories.len()).map(|i| slots.memory_length(slot, i)).collect::<Result<_, _>>()?;
        Ok(Remains { trap, compiled, threads: vec![thread], memories, read: &read })
    };
    examiner.examines(Whose::Instance(instance), remains().as_ref());
}

/// An instance as the host sees it.
#[derive(Default)]
struct Guest {
    /// `None` while the instance runs, and once it has exited.
    context: Option<Context>,
    transcript: Transcript,
}

impl Guest {
    fn new(context: Context) -> Self {
        Self { context: Some(context), transcript: Transcript::with_random() }
    }
}

/// The instances of one launch.
struct ContextBatch {
    guests: Vec<Mutex<Guest>>,
    /// Bytes that transcripts may still take.
    room: AtomicUsize,
    plan: Plan,
}

impl ContextBatch {
    fn guest(&self, slot: u32) -> MutexGuard<'_, Guest> {
        self.guests[slot as usize].lock()
    }

    /// Takes the instances out, ready for another launch.
    fn take_all(&self) -> Vec<Guest> {
        let mut all: Vec<Guest> =
            (0..self.guests.len()).map(|slot| std::mem::take(&mut *self.guest(slot as u32))).collect();
        all.iter_mut().for_each(|guest| guest.transcript.rewind());
        all
    }

    /// Returns what an instance that could not finish lacked, if a rerun can give it that.
    fn lack(&self, slot: usize, ending: &Ending, end: &End, has_more_stack: bool) -> Option<Lack> {
        let none = Lack::default();
        match end {
            _ if self.plan.is_last => None,
            _ if ending.status == Status::Outgrown as u64 => Some(Lack { memory: Some(ending.exit_code), ..none }),
            _ if self.guest(slot as u32).transcript.is_full() => Some(Lack { shared: true, ..none }),
            End::Trapped(trap) if trap.code == TrapCode::StackOverflow && has_more_stack => {
                Some(Lack { stack: true, ..none })
            }
            _ => None,
        }
    }
}

impl BatchHost for ContextBatch {
    fn heard(&self, _: u32) {}

    fn context(&self, slot: u32) -> Option<Context> {
        self.guest(slot).context.take()
    }

    fn answered(&self, slot: u32, call: Call, words: &[u64], input: &[u8], out: &mut Out) -> Answered {
        let mut guest = self.guest(slot);
        match guest.transcript.is_full() && !self.plan.is_last {
            true => Answered::NoRoom,
            // The output of the earlier run has already gone to stdout.
            false => guest.transcript.recall(call, words, input, out).0,
        }
    }

    fn answer(&self, slot: u32, call: Call, words: &[u64], input: &[u8], reply: &Reply, out: &Out) {
        if !self.plan.is_last {
            self.guest(slot).transcript.keep(&self.room, (call, words, input), reply, out, [0; 2]);
        }
    }

    fn left(&self, slot: u32, context: Context) {
        self.guest(slot).context = Some(context);
    }
}
