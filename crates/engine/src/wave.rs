//! Instances with contexts of their own, however many: they go through the same slots, one launch after the other.
//!
//! What an instance does reaches its context at once. If it runs again, because it lacked something, it is answered from its journal as far as that goes, and nothing
//! happens twice.

use crate::allowance::{Denied, Lack, Limits};
use crate::bus::Quiet;
use crate::error::Error;
use crate::journal::{Answered, Journal};
use crate::line::{Order, Unlaunched};
use crate::map::Extent;
use crate::program::{End, Outcome, Program, RunOptions, RunStats, Trap};
use crate::stage::{Called, Plan, Stage, Stages};
use crate::value::Value;
use gpu_run_abi::hostcall::Call;
use gpu_run_abi::launch::{Ending, local};
use gpu_run_abi::{Launch, Status, TrapCode};
use gpu_run_device::Patience;
use gpu_run_wasi::{Context, Out, Reply};
use gpu_run_wasm::words;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Instances in one launch at most; more go one launch after the other through the same slots.
const MAX_AT_ONCE: usize = 4096;

/// Runs one instance for each context, each of which calls `function` with `args`, and says what became of each, in order.
pub(crate) fn run(
    program: &Arc<Program>,
    function: &str,
    args: &[Value],
    contexts: Vec<Context>,
    options: &RunOptions,
) -> Result<(Vec<Outcome>, RunStats), Error> {
    let (selector, words) = program.compiled().arguments(function, args)?;
    let extent = Extent {
        capacity: contexts.len().min(MAX_AT_ONCE),
        max_memory: options.max_memory,
        // What they write goes to their contexts.
        limits: Limits { outbox_bytes: 0, ..options.limits },
        ..Extent::default()
    };
    let stages = Stages::new(program.clone(), extent, Called { selector, words })?;
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
    /// Runs instances, by their places. Gives back those that have to run again, and how.
    fn launch_all(&mut self, plan: Plan, guests: Vec<(usize, Guest)>) -> Result<Waiting, Error> {
        let stage = self.stages.get(plan, guests.len())?;
        let mut again = Waiting::new();
        let mut rest = guests.into_iter().peekable();
        while rest.peek().is_some() {
            let (places, guests): (Vec<usize>, Vec<Guest>) = rest.by_ref().take(stage.capacity()).unzip();
            let room = AtomicUsize::new(self.options.limits.answer_bytes);
            let wave = Arc::new(Wave { guests: guests.into_iter().map(Mutex::new).collect(), room, plan });
            let launched = self.launch(&stage, &wave, &places)?;
            let mut guests = places.into_iter().zip(wave.take_all());
            match launched {
                Ok(lacks) => {
                    // What the others hold open is closed here.
                    for ((place, guest), lack) in guests.zip(lacks).filter_map(|(guest, lack)| Some((guest, lack?))) {
                        self.stats.again += 1;
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

    /// Launches, and says what those that could not finish lacked. An `Err` inside means that there was no memory to launch.
    fn launch(
        &mut self,
        stage: &Arc<Stage>,
        wave: &Arc<Wave>,
        places: &[usize],
    ) -> Result<Result<Vec<Option<Lack>>, Unlaunched>, Error> {
        let desk = match stage.desks.take(|| stage.desk()) {
            Ok(desk) => desk,
            Err(error) if error.is_shortage() => return Ok(Err(Unlaunched::NoSlots)),
            Err(error) => return Err(error),
        };
        // A clock that says something else in a second run would have the instance do something else.
        let launch = Launch { local: if wave.plan.is_last { local::CLOCK } else { 0 }, ..Launch::default() };
        let (count, slots, selector, stack) = (places.len(), stage.capacity(), stage.selector(), stage.stack());
        let timeout = self.options.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let guests = wave.clone();
        let order = Order { desk, count, slots, guests, launch, selector, stack, cleared: 0, timeout, watch: None };
        let (desk, report) = stage.line.order(order).map_err(|(_, error)| error)?.wait();
        let (desk, report) = match (desk, report) {
            (Some(desk), Ok(report)) => (desk, report),
            (None, Ok(_)) => return Err(Error::Internal("a launch without its buffers".into())),
            (_, Err(Unlaunched::Failed(error))) => return Err(error),
            (desk, Err(short)) => {
                stage.desks.put(desk);
                return Ok(Err(short));
            }
        };
        let began = Instant::now();
        let compiled = stage.program.compiled();
        let types = compiled.results(selector);
        let endings = desk.buffers.endings(count, words(types) as usize)?;
        let has_more_stack = self.stages.has_more_stack(stack);
        let mut lacks = Vec::with_capacity(count);
        for (slot, place) in places.iter().enumerate() {
            let ending = endings.get(slot);
            let outcome = compiled.outcome(slot, &endings, types)?;
            let lack = wave.lack(slot, &ending, &outcome.end, has_more_stack);
            if lack.is_none() {
                let deviated = wave.guest(slot as u32).journal.deviated();
                self.outcomes[*place] = Some(match deviated && !report.stopped {
                    true => Outcome { end: stillborn(TrapCode::Deviated), results: Vec::new(), denied: None },
                    false => Outcome { denied: Denied::growth(compiled, self.options.max_memory, &ending), ..outcome },
                });
            }
            lacks.push(lack);
        }
        stage.desks.put(Some(desk));
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

/// An instance as the host sees it.
#[derive(Default)]
struct Guest {
    /// `None` while it runs, and once it has exited.
    context: Option<Context>,
    journal: Journal,
}

impl Guest {
    fn new(context: Context) -> Self {
        Self { context: Some(context), journal: Journal::with_random() }
    }
}

/// The instances of a launch.
struct Wave {
    guests: Vec<Mutex<Guest>>,
    /// Bytes of answers that can still be kept.
    room: AtomicUsize,
    plan: Plan,
}

impl Wave {
    fn guest(&self, slot: u32) -> MutexGuard<'_, Guest> {
        self.guests[slot as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The instances again, for another launch.
    fn take_all(&self) -> Vec<Guest> {
        let mut all: Vec<Guest> =
            (0..self.guests.len()).map(|slot| std::mem::take(&mut *self.guest(slot as u32))).collect();
        all.iter_mut().for_each(|guest| guest.journal.rewind());
        all
    }

    /// What an instance that could not finish would have needed, if it can have that.
    fn lack(&self, slot: usize, ending: &Ending, end: &End, has_more_stack: bool) -> Option<Lack> {
        let none = Lack::default();
        match end {
            _ if self.plan.is_last => None,
            _ if ending.status == Status::Outgrown as u64 => Some(Lack { memory: Some(ending.exit_code), ..none }),
            _ if self.guest(slot as u32).journal.is_full() => Some(Lack { shared: true, ..none }),
            End::Trapped(trap) if trap.code == TrapCode::StackOverflow && has_more_stack => {
                Some(Lack { stack: true, ..none })
            }
            _ => None,
        }
    }
}

impl Quiet for Wave {
    fn heard(&self, _: u32) {}

    fn context(&self, slot: u32) -> Option<Context> {
        self.guest(slot).context.take()
    }

    fn answered(&self, slot: u32, call: Call, words: &[u64], input: &[u8], out: &mut Out) -> Answered {
        let mut guest = self.guest(slot);
        match guest.journal.is_full() && !self.plan.is_last {
            true => Answered::NoRoom,
            // What went to stdout is there already.
            false => guest.journal.again(call, words, input, out).0,
        }
    }

    fn answer(&self, slot: u32, call: Call, words: &[u64], input: &[u8], reply: &Reply, out: &Out) {
        if !self.plan.is_last {
            self.guest(slot).journal.keep(&self.room, (call, words, input), reply, out, [0; 2]);
        }
    }

    fn left(&self, slot: u32, context: Context) {
        self.guest(slot).context = Some(context);
    }
}

/// How an instance ended that has no place to name: every one whose module's segments do not fit, for instance.
pub(crate) fn stillborn(code: TrapCode) -> End {
    End::Trapped(Box::new(Trap { code, function: None, name: None, offset: 0, source: None }))
}
