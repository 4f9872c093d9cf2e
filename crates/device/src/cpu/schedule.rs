//! How a worker runs workgroups on one core.
//!
//! Threads take turns: one runs until it finishes or waits. Ready threads continue first; a new thread starts only when
//! all started ones wait, and a new workgroup only when all threads of the worker's workgroups have started. So a
//! kernel that never waits needs one stack however many threads it has, and a kernel whose threads wait for the host
//! has many in progress.
//!
//! A thread in `nanosleep.u32 0` yields: all others continue first, then the thread itself. If all threads yield and
//! none makes progress, they wait for another worker, which may in turn be waiting for this core: after a few rounds
//! the worker gives up the core, first for a moment, then for longer.
//!
//! A thread that sleeps for a time usually waits for the host or for another worker. When all threads sleep, the worker
//! lets the host answer (`service`) and resumes them as soon as the host did. While no answer comes, the worker's
//! pauses grow to a quarter of the time it has already waited, so that it never sees an answer much too late and an
//! idle kernel costs next to nothing.

use super::context::{Fault, Pause};
use super::fiber::{Fiber, Identity};
use super::launch::Launch;
use super::stack::{Stack, Stacks};
use super::together;
use super::workgroup::Workgroup;
use crate::{Error, Result};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Idle time up to which a worker checks again at once.
const SPIN_UNTIL: Duration = Duration::from_micros(50);
/// Idle time up to which a worker lets other threads of the system run in between.
const YIELD_UNTIL: Duration = Duration::from_micros(200);
/// The longest pause, as long as a check costs little.
const MAX_SLEEP: Duration = Duration::from_millis(1);
/// The longest pause while the service rests.
pub(super) const MAX_REST: Duration = Duration::from_millis(20);
/// The longest pause while the host rings when it changes something ([`crate::Rest`]). A thread looks in every second round.
const MAX_QUIET_REST: Duration = Duration::from_millis(250);
/// Idle time after which a worker no longer leaves workgroups to helpers that have not come.
const LEAVES_WORKGROUPS_UNTIL: Duration = Duration::from_millis(2);

/// What to do in rounds in which all threads here only yield: up to SPIN_ROUNDS they continue at once, up to
/// YIELD_ROUNDS other threads of the system run in between, and from then on the worker sleeps: FIRST_NAP in the first
/// such round, at most MAX_NAPS times that later.
const SPIN_ROUNDS: u32 = 8;
const YIELD_ROUNDS: u32 = 32;
const FIRST_NAP: Duration = Duration::from_micros(20);
const MAX_NAPS: u32 = 10;

/// How many turns ahead a thread's context is prefetched; its stack half as many.
const STACKS_AHEAD: usize = 4;

/// Runs workgroups until there are no more.
pub(super) fn work(launch: &Launch, stacks: &Stacks, resident_threads: u32) {
    launch.worker_begins();
    match &launch.together {
        Some(together) => together::work(launch, together, stacks),
        None => work_apart(launch, stacks, resident_threads),
    }
    launch.worker_ends();
}

fn work_apart(launch: &Launch, stacks: &Stacks, resident_threads: u32) {
    let now = Instant::now();
    let mut worker = Worker {
        launch,
        stacks,
        spare: Vec::new(),
        workgroups: Vec::new(),
        vacant: Vec::new(),
        newest: None,
        ready: VecDeque::new(),
        sleeping: Vec::new(),
        yielded: Vec::new(),
        rounds: 0,
        released: Vec::new(),
        room: resident_threads,
        seen: launch.epoch.load(Ordering::SeqCst),
        idle: Idle { since: None, looked: now, resumed: 0, served: Duration::ZERO },
    };
    if let Err(error) = worker.run() {
        launch.fail(error);
    }
    worker.abandon();
}

struct Worker<'l> {
    launch: &'l Launch,
    stacks: &'l Stacks,
    /// Stacks of threads that have finished.
    spare: Vec<Stack>,
    workgroups: Vec<Option<Workgroup>>,
    /// Free places in `workgroups`.
    vacant: Vec<u32>,
    /// The only workgroup that may have threads not yet started.
    newest: Option<u32>,
    ready: VecDeque<(u32, u32)>,
    sleeping: Vec<Sleeper>,
    /// Threads that yielded, and for how many rounds no thread has done anything else.
    yielded: Vec<(u32, u32)>,
    rounds: u32,
    /// Threads that a barrier or warp operation has just released.
    released: Vec<u32>,
    /// How many threads further workgroups may have.
    room: u32,
    /// The launch's epoch when sleepers were last resumed.
    seen: u32,
    idle: Idle,
}

struct Sleeper {
    workgroup: u32,
    thread: u32,
    nanoseconds: u32,
    /// Set when the worker first finds nothing else to do: reading the clock costs more than switching threads.
    until: Option<Instant>,
}

struct Idle {
    /// When all threads first slept since something happened.
    since: Option<Instant>,
    /// When the worker last waited, how many threads it has resumed since, and how long the service took meanwhile.
    looked: Instant,
    resumed: u32,
    served: Duration,
}

impl Worker<'_> {
    fn run(&mut self) -> Result<()> {
        while !self.launch.stopped() {
            if let Some((workgroup, thread)) = self.ready.pop_front() {
                self.idle.resumed += 1;
                self.look_ahead();
                self.resume(workgroup, thread)?;
            } else if self.answered() {
                self.wake_all();
            } else if self.start_another()? {
            } else if !self.yielded.is_empty() {
                self.go_on();
            } else if !self.wait() {
                break;
            }
        }
        Ok(())
    }

    /// Prefetches the stacks of the next threads: of a thousand threads that wait for each other, each one's stack has
    /// left the cache before its turn comes.
    #[inline]
    fn look_ahead(&self) {
        let fiber = |at: usize| {
            let (workgroup, thread) = *self.ready.get(at)?;
            self.workgroups[workgroup as usize].as_ref()?.fibers[thread as usize].as_ref()
        };
        if let Some(far) = fiber(STACKS_AHEAD) {
            far.announce();
        }
        if let Some(near) = fiber(STACKS_AHEAD / 2) {
            near.approach();
        }
    }

    /// Whether something happened that the sleepers may have waited for.
    fn answered(&mut self) -> bool {
        if self.sleeping.is_empty() {
            return false;
        }
        // While there was something to do, nobody wants to know.
        let began = self.idle.since.map(|_| Instant::now());
        let served = self.launch.serve();
        self.idle.served += began.map_or(Duration::ZERO, |began| began.elapsed());
        let epoch = self.launch.epoch.load(Ordering::SeqCst);
        let happened = served || epoch != self.seen;
        self.seen = epoch;
        happened
    }

    fn wake_all(&mut self) {
        self.idle.since = None;
        // A thread looks for its answer once before it sleeps: that is no waiting for another worker.
        self.rounds = 0;
        self.ready.extend(self.sleeping.drain(..).map(|s| (s.workgroup, s.thread)));
    }

    /// All others had their turn: threads that yielded continue, and sleepers whose time is over.
    fn go_on(&mut self) {
        self.idle.since = None;
        self.rounds += 1;
        if self.rounds > YIELD_ROUNDS {
            self.launch.park(self.seen, FIRST_NAP * (self.rounds - YIELD_ROUNDS).min(MAX_NAPS));
        } else if self.rounds > SPIN_ROUNDS {
            std::thread::yield_now();
        }
        self.ready.extend(self.yielded.drain(..));
        if !self.sleeping.is_empty() {
            self.wake_due(Instant::now());
        }
    }

    fn wake_due(&mut self, now: Instant) {
        let ready = &mut self.ready;
        self.sleeping.retain_mut(|s| {
            let until = *s.until.get_or_insert_with(|| now + Duration::from_nanos(s.nanoseconds as u64));
            if until <= now {
                ready.push_back((s.workgroup, s.thread));
            }
            until > now
        });
    }

    /// Starts a thread of the newest workgroup, or takes another workgroup. Returns whether there was one.
    fn start_another(&mut self) -> Result<bool> {
        if let Some(newest) = self.newest {
            self.start(newest)?;
            return Ok(true);
        }
        let threads = self.launch.grid.threads;
        let own = (self.workgroups.len() - self.vacant.len()) as u32;
        let first = own == 0;
        if !first && threads > self.room && self.launch.whole.is_none() {
            return Ok(false);
        }
        let any = first || self.idle.since.is_some_and(|since| since.elapsed() > LEAVES_WORKGROUPS_UNTIL);
        let Some(number) = self.launch.take_workgroup(any, own) else { return Ok(false) };
        self.room = self.room.saturating_sub(threads);
        let workgroup = Some(Workgroup::new(number, threads, self.launch.shared_bytes));
        let place = match self.vacant.pop() {
            Some(place) => {
                self.workgroups[place as usize] = workgroup;
                place
            }
            None => {
                self.workgroups.push(workgroup);
                self.workgroups.len() as u32 - 1
            }
        };
        self.newest = Some(place);
        Ok(true)
    }

    fn start(&mut self, place: u32) -> Result<()> {
        let stack = match self.spare.pop() {
            Some(stack) => stack,
            None => self.stacks.take(self.launch.grid.stack_bytes as usize)?,
        };
        let Some(workgroup) = &mut self.workgroups[place as usize] else { return Ok(()) };
        let thread = workgroup.next;
        workgroup.next += 1;
        if !workgroup.has_more() {
            self.newest = None;
        }
        let grid = self.launch.grid;
        let identity = Identity {
            thread,
            threads: grid.threads,
            workgroup: workgroup.number,
            workgroups: grid.workgroups,
            shared: workgroup.shared_address(),
        };
        // SAFETY: by the contract of `Launch::new`, entry and parameters belong together, and the launch keeps the
        // program.
        let fiber = unsafe { Fiber::new(stack, identity, self.launch.entry, self.launch.parameters.as_ptr().cast()) };
        workgroup.fibers[thread as usize] = Some(fiber);
        self.idle.since = None;
        self.resume(place, thread)
    }

    fn resume(&mut self, place: u32, thread: u32) -> Result<()> {
        let Some(workgroup) = &mut self.workgroups[place as usize] else { return Ok(()) };
        let Some(fiber) = &mut workgroup.fibers[thread as usize] else { return Ok(()) };
        match fiber.resume() {
            Some(Pause::Sleep(0)) => {
                self.yielded.push((place, thread));
                return Ok(());
            }
            Some(Pause::Sleep(nanoseconds)) => {
                self.sleeping.push(Sleeper { workgroup: place, thread, nanoseconds, until: None });
                return Ok(());
            }
            Some(Pause::Await | Pause::Wake(_)) => {
                let message = "a thread waits for another one, in a launch whose threads do not run together";
                return Err(Error::Fault(message.into()));
            }
            Some(Pause::Barrier) => {
                self.rounds = 0;
                workgroup.arrived(thread, &mut self.released);
            }
            Some(Pause::Warp) => {
                let joined = workgroup.joined(thread, &mut self.released);
                let line = workgroup.fibers[thread as usize].as_ref().map_or(0, Fiber::line);
                joined.map_err(|message| Error::Fault(format!("PTX line {line}: {message}")))?;
                if !self.released.is_empty() {
                    self.rounds = 0;
                }
            }
            Some(Pause::Late) => {
                let function = fiber.line();
                self.launch.program.make(function)?;
                self.idle.since = None;
                self.ready.push_front((place, thread));
                return Ok(());
            }
            Some(Pause::Fault(kind)) => return Err(fault(kind, fiber)),
            Some(Pause::Exit) | None => {
                self.idle.since = None;
                self.rounds = 0;
                self.spare.extend(workgroup.fibers[thread as usize].take().and_then(Fiber::into_stack));
                workgroup.ended(thread, &mut self.released);
            }
        }
        self.ready.extend(self.released.drain(..).map(|t| (place, t)));
        if let Some(deadlock) = workgroup.deadlock() {
            return Err(Error::Fault(deadlock));
        }
        if workgroup.is_over() {
            self.workgroups[place as usize] = None;
            self.vacant.push(place);
            self.room += self.launch.grid.threads;
        }
        Ok(())
    }

    /// Waits, as all started threads sleep and there is nothing to start. Returns `false` if no thread is left.
    fn wait(&mut self) -> bool {
        if self.sleeping.is_empty() {
            return false;
        }
        let mut now = Instant::now();
        // How long the service took to find out that there is nothing to do says nothing about the threads.
        let round = (now - self.idle.looked).saturating_sub(self.idle.served);
        let quiet = self.launch.may_rest();
        // Threads that only check for their answer take far less time than this, so these did something. What they do while the host
        // rings, such as a heartbeat, is not worth waiting for more of it.
        if !quiet && round > Duration::from_micros(20 + self.idle.resumed as u64) {
            self.idle.since = None;
        }
        let idle = now - *self.idle.since.get_or_insert(now);
        if idle > YIELD_UNTIL {
            // Threads of a `whole` launch also wait for each other across workers: pauses that grow with the other
            // workers' pauses would add up.
            let longest = match self.launch.whole {
                Some(_) if quiet => MAX_QUIET_REST,
                Some(_) => MAX_SLEEP,
                None => MAX_SLEEP.max(round * 20),
            };
            let rest = self.launch.rests_until();
            let longest = rest.map_or(longest, |at| at.saturating_duration_since(now).min(MAX_REST));
            self.launch.rest(rest.is_some(), || self.launch.park(self.seen, (idle / 4).min(longest)));
            now = Instant::now();
        } else if idle > SPIN_UNTIL {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
        self.idle.looked = now;
        self.idle.resumed = 0;
        self.idle.served = Duration::ZERO;
        self.wake_due(now);
        true
    }

    /// Stops the threads that have not finished, and returns all stacks.
    fn abandon(&mut self) {
        let workgroups = self.workgroups.drain(..).flatten();
        let fibers = workgroups.flat_map(|b| b.fibers).flatten();
        self.stacks.give_back(fibers.filter_map(Fiber::into_stack).chain(self.spare.drain(..)));
    }
}

pub(super) fn fault(kind: Fault, fiber: &Fiber) -> Error {
    let (line, thread, workgroup) = (fiber.line(), fiber.thread(), fiber.workgroup());
    let what = match kind {
        Fault::Trap => "`trap`",
        Fault::Misaligned => "misaligned address",
        Fault::BadIndex => "an index outside its `.branchtargets`",
    };
    Error::Fault(format!("{what} at PTX line {line}, thread {thread} of workgroup {workgroup}"))
}
