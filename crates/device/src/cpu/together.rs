//! How the workers run a launch whose threads wait for each other ([`crate::Module::run_together`]).
//!
//! Every thread can run on every worker. A thread that is ready stands in one queue, which all workers take from; a thread
//! that waits stands nowhere in it, costs nothing, and is put back by what it waits for:
//!
//! - `await_word`: another thread's `wake_word`, or the end of its time;
//! - `nanosleep`: the host, which usually is what such a thread waits for, or the end of its time;
//! - `nanosleep` of 0 is no waiting: the thread goes to the end of the queue.
//!
//! A wake-up is never lost: the worker looks at the word again under the lock that `wake_word` takes, after the change.
//!
//! There are no barriers and no warp operations here.

use super::context::Pause;
use super::fiber::{Fiber, Identity};
use super::launch::Launch;
use super::schedule::MAX_REST;
use super::stack::Stacks;
use crate::{Error, Grid, Result};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long a worker that finds nothing to do looks again at once.
const SPIN_UNTIL: Duration = Duration::from_micros(30);
/// The longest pause of a worker while threads wait for the host, which does not wake it.
const HOST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause otherwise.
const MAX_PAUSE: Duration = Duration::from_millis(100);
/// Every so many turns a worker starts a thread, if one has not started yet, though others are ready.
const START_EVERY: u32 = 4;
/// A thread that sleeps this long, in nanoseconds, has looked in vain many times: it sleeps longer still, since an answer wakes it. It
/// only looks now and then whether the host has stopped it.
const LONG_NAP: u32 = 100_000;
const NAP_FACTOR: u32 = 400;
/// How long a thread runs on that gives way when no other is ready: the time of a thread that sleeps may be over meanwhile.
const MAX_ALONE: Duration = Duration::from_micros(100);
/// Waiting longer than this is waiting for ever: 100 years.
const FOR_EVER: u64 = 100 * 365 * 86_400 * 1_000_000_000;

/// The threads of a launch.
pub(super) struct Together {
    /// How many there are, started or not.
    threads: u32,
    state: Mutex<State>,
    /// How many threads could run now, for workers that look without the lock: those that are ready and those that have not
    /// started.
    ready: AtomicUsize,
    changed: Condvar,
    /// Counts how often the service had something to do when nobody asked it.
    rings: AtomicU32,
    /// The shared memory of each workgroup. Its threads may run at the same time; each uses words of its own, because threads of
    /// this device do not share warps (`print/hot.rs` and `print/step.rs` in the crate `gpu-run-ptx`).
    shared: Vec<AtomicU64>,
    shared_words: usize,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Thread>,
    /// The next thread to start, and how many have not ended, started or not.
    next: u32,
    live: u32,
    /// The threads in `await_word`, by the word.
    awaiting: HashMap<u64, Awaiting>,
    /// When their time is over. An entry may outlive the wait that it belongs to.
    timers: BinaryHeap<Reverse<(Instant, u64, u64)>>,
    waits: u64,
    /// The words that mean the end for a thread that waits.
    ends: HashSet<u64>,
    /// The threads in `nanosleep`.
    sleeping: Vec<(Instant, Thread)>,
    /// The launch's epoch when they last looked.
    seen: u32,
    /// The workers that wait for a thread to become ready.
    idle: u32,
    turns: u32,
}

struct Awaiting {
    thread: Thread,
    /// Tells this wait from others at the same word.
    number: u64,
    end: u64,
}

struct Thread(Fiber);

// SAFETY: a fibre that is suspended is a stack with frames of compiled code and of one of `context`'s functions. Neither
// keeps anything that belongs to the thread of the system it ran on.
unsafe impl Send for Thread {}

impl Together {
    pub(super) fn new(grid: Grid, shared_bytes: usize) -> Self {
        let threads = grid.workgroups * grid.threads;
        let state = State { live: threads, ..State::default() };
        let shared_words = shared_bytes.div_ceil(size_of::<u64>());
        let shared = std::iter::repeat_with(AtomicU64::default).take(shared_words * grid.workgroups as usize).collect();
        let ready = AtomicUsize::new(threads as usize);
        Self {
            threads,
            state: Mutex::new(state),
            ready,
            changed: Condvar::new(),
            rings: AtomicU32::new(0),
            shared,
            shared_words,
        }
    }

    /// Returns the address of a workgroup's shared memory.
    fn shared_address(&self, workgroup: u32) -> u64 {
        self.shared[self.shared_words * workgroup as usize..].as_ptr() as u64
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Puts a thread at the end of the queue, and calls a worker for it.
    fn push(&self, state: &mut State, thread: Thread) {
        self.put_back(state, thread);
        if state.idle != 0 {
            self.changed.notify_one();
        }
    }

    /// Puts a thread at the end of the queue. Calls no worker: the one that had the thread takes the next.
    fn put_back(&self, state: &mut State, thread: Thread) {
        state.ready.push_back(thread);
        self.note_ready(state);
    }

    fn note_ready(&self, state: &State) {
        self.ready.store(state.ready.len() + (self.threads - state.next) as usize, Ordering::Relaxed);
    }

    fn wake(&self, address: u64) {
        let mut state = self.state();
        if let Some(awaiting) = state.awaiting.remove(&address) {
            self.push(&mut state, awaiting.thread);
        } else if state.ends.contains(&address) {
            let ended: Vec<u64> = state.awaiting.iter().filter(|(_, a)| a.end == address).map(|(at, _)| *at).collect();
            for at in ended {
                if let Some(awaiting) = state.awaiting.remove(&at) {
                    self.push(&mut state, awaiting.thread);
                }
            }
        }
    }

    /// The service has something to do, or has done something when no worker asked it.
    pub(super) fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        let state = self.state();
        if state.idle != 0 {
            drop(state);
            self.changed.notify_all();
        }
    }

    /// The host did something: the threads in `nanosleep` look whether it was for them.
    fn wake_sleeping(&self, state: &mut State) {
        for (_, thread) in std::mem::take(&mut state.sleeping) {
            self.push(state, thread);
        }
    }

    /// Makes the threads ready whose time is over. Returns when that is so for the next one.
    fn wake_due(&self, state: &mut State) -> Option<Instant> {
        if state.timers.is_empty() && state.sleeping.is_empty() {
            return None;
        }
        let now = Instant::now();
        while let Some(&Reverse((at, address, number))) = state.timers.peek() {
            let is_current = state.awaiting.get(&address).is_some_and(|awaiting| awaiting.number == number);
            if is_current && at > now {
                break;
            }
            state.timers.pop();
            if is_current && let Some(awaiting) = state.awaiting.remove(&address) {
                self.push(state, awaiting.thread);
            }
        }
        let due: Vec<_> = state.sleeping.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, thread) in due {
            self.push(state, thread);
        }
        let timer = state.timers.peek().map(|Reverse((at, ..))| *at);
        timer.into_iter().chain(state.sleeping.iter().map(|(at, _)| *at)).min()
    }

    /// The thread waits, unless what it waits for has happened already.
    fn wait(&self, thread: Thread) {
        let awaited = thread.0.awaited();
        let mut state = self.state();
        // SAFETY: compiled code gave both addresses, of words in the device's memory that only atomic operations change.
        let [word, end] = [awaited.address, awaited.end].map(|at| unsafe { AtomicU64::from_ptr(at as *mut u64) });
        if word.load(Ordering::SeqCst) != awaited.value || end.load(Ordering::SeqCst) != 0 || awaited.nanoseconds == 0 {
            return self.push(&mut state, thread);
        }
        state.waits += 1;
        let number = state.waits;
        if awaited.nanoseconds < FOR_EVER {
            let at = Instant::now() + Duration::from_nanos(awaited.nanoseconds);
            state.timers.push(Reverse((at, awaited.address, number)));
        }
        state.ends.insert(awaited.end);
        let before = state.awaiting.insert(awaited.address, Awaiting { thread, number, end: awaited.end });
        // Two threads at one word: the first one looks again.
        if let Some(before) = before {
            self.push(&mut state, before.thread);
        }
    }
}

/// Runs threads until all have ended.
pub(super) fn work(launch: &Launch, together: &Together, stacks: &Stacks) {
    if let Err(error) = run(launch, together, stacks) {
        launch.fail(error);
    }
    // All are over, or the launch has failed.
    let mut state = together.state();
    let (ready, awaiting) = (std::mem::take(&mut state.ready), std::mem::take(&mut state.awaiting));
    let sleeping = std::mem::take(&mut state.sleeping).into_iter().map(|(_, thread)| thread);
    let left = ready.into_iter().chain(awaiting.into_values().map(|a| a.thread)).chain(sleeping);
    stacks.give_back(left.filter_map(|thread| thread.0.into_stack()));
    drop(state);
    together.changed.notify_all();
}

fn run(launch: &Launch, together: &Together, stacks: &Stacks) -> Result<()> {
    let mut idle_since = None;
    while !launch.stopped() {
        let mut state = together.state();
        if state.live == 0 {
            break;
        }
        let next_due = together.wake_due(&mut state);
        state.turns = state.turns.wrapping_add(1);
        let starts =
            state.next < together.threads && (state.ready.is_empty() || state.turns.is_multiple_of(START_EVERY));
        let thread = if starts {
            let number = state.next;
            state.next += 1;
            together.note_ready(&state);
            drop(state);
            start(launch, together, number, stacks)?
        } else if let Some(thread) = state.ready.pop_front() {
            together.note_ready(&state);
            drop(state);
            thread
        } else {
            pause(launch, together, state, next_due, idle_since.get_or_insert_with(Instant::now));
            continue;
        };
        if resume(launch, together, stacks, thread)? {
            idle_since = None;
        }
    }
    Ok(())
}

fn start(launch: &Launch, together: &Together, number: u32, stacks: &Stacks) -> Result<Thread> {
    let (grid, stack) = (launch.grid, stacks.take(launch.grid.stack_bytes as usize)?);
    let identity = Identity {
        thread: number % grid.threads,
        threads: grid.threads,
        workgroup: number / grid.threads,
        workgroups: grid.workgroups,
        shared: together.shared_address(number / grid.threads),
    };
    // SAFETY: by the contract of `Launch::new`, entry and parameters belong together, and the launch keeps the program.
    Ok(Thread(unsafe { Fiber::new(stack, identity, launch.entry, launch.parameters.as_ptr().cast()) }))
}

/// Runs a thread until it waits, gives way or ends. Returns whether it did more than look for an answer in vain.
fn resume(launch: &Launch, together: &Together, stacks: &Stacks, mut thread: Thread) -> Result<bool> {
    let began = Instant::now();
    loop {
        let seen = launch.epoch.load(Ordering::SeqCst);
        match thread.0.resume() {
            Some(Pause::Wake(address)) => together.wake(address),
            Some(Pause::Await) => {
                together.wait(thread);
                return Ok(true);
            }
            // No time at all: the thread just gives way, if there is another one.
            Some(Pause::Sleep(0 | 1)) => {
                let is_alone = together.ready.load(Ordering::Relaxed) == 0;
                if !is_alone || began.elapsed() >= MAX_ALONE || launch.stopped() {
                    together.put_back(&mut together.state(), thread);
                    return Ok(true);
                }
            }
            Some(Pause::Sleep(nanoseconds)) => {
                let answered = launch.serve();
                let mut state = together.state();
                let epoch = launch.epoch.load(Ordering::SeqCst);
                if answered {
                    state.seen = epoch;
                    together.wake_sleeping(&mut state);
                }
                // Since the thread looked, any worker may have fetched its answer.
                if epoch != seen {
                    together.put_back(&mut state, thread);
                    return Ok(true);
                }
                let is_long = nanoseconds >= LONG_NAP;
                let nap = if is_long { nanoseconds.saturating_mul(NAP_FACTOR) } else { nanoseconds };
                state.sleeping.push((Instant::now() + Duration::from_nanos(nap.into()), thread));
                return Ok(!is_long);
            }
            Some(Pause::Late) => launch.program.make(thread.0.line())?,
            Some(Pause::Exit) | None => {
                stacks.give_back(thread.0.into_stack());
                let mut state = together.state();
                state.live -= 1;
                if state.live == 0 {
                    together.changed.notify_all();
                }
                return Ok(true);
            }
            Some(Pause::Fault(kind)) => return Err(super::schedule::fault(kind, &thread.0)),
            Some(Pause::Barrier | Pause::Warp) => {
                let line = thread.0.line();
                let message = format!("PTX line {line}: threads that wait for each other have no barriers here");
                return Err(Error::Fault(message));
            }
        }
    }
}

/// Waits for a thread to become ready.
fn pause<'t>(
    launch: &Launch,
    together: &'t Together,
    mut state: MutexGuard<'t, State>,
    next_due: Option<Instant>,
    idle_since: &mut Instant,
) {
    let for_host = !state.sleeping.is_empty();
    let rings = together.rings.load(Ordering::SeqCst);
    let mut rest = None;
    if for_host {
        drop(state);
        let answered = launch.serve();
        rest = launch.rests_until();
        state = together.state();
        let epoch = launch.epoch.load(Ordering::SeqCst);
        // Perhaps the watch has answered.
        if answered || epoch != std::mem::replace(&mut state.seen, epoch) {
            return together.wake_sleeping(&mut state);
        }
    }
    let idle = idle_since.elapsed();
    if idle < SPIN_UNTIL {
        drop(state);
        for _ in 0..64 {
            if together.ready.load(Ordering::Relaxed) != 0 {
                return;
            }
            std::hint::spin_loop();
        }
        return;
    }
    if !state.ready.is_empty() || state.live == 0 || launch.stopped() {
        return;
    }
    if together.rings.load(Ordering::SeqCst) != rings {
        return;
    }
    let now = Instant::now();
    let longest = match rest {
        _ if !for_host => MAX_PAUSE,
        Some(at) => (idle / 4).min(at.saturating_duration_since(now)).min(MAX_REST),
        None => (idle / 4).min(HOST_PAUSE),
    };
    let until_due = next_due.map_or(longest, |at| at.saturating_duration_since(now));
    state.idle += 1;
    let wait = || together.changed.wait_timeout(state, until_due.min(longest)).unwrap_or_else(|e| e.into_inner());
    let (mut state, _) = launch.rest(rest.is_some() || !for_host, wait);
    state.idle -= 1;
}
