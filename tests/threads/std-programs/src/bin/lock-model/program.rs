//! A random program of locks: what its threads do, and what they share.

use crate::history::{Action, Event, check};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Barrier, Condvar, Mutex, RwLock};
use std::time::Duration;
use std_programs::Random;

/// A thread that waits longer than this for a token was not woken.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a thread does with one lock.
#[derive(Clone, Copy)]
enum Use {
    Write,
    Read,
}

enum Step {
    /// Takes locks, each while it has the ones before: their numbers rise, so no two threads wait for each other.
    Nest(Vec<(usize, Use)>),
    /// Takes a lock only if nobody has it.
    Try(usize),
    /// Makes a token, and wakes one thread that waits for one, or all.
    Put { wakes_all: bool },
    /// Waits for a token.
    Take,
}

/// Mutexes come first, in the numbers of locks.
enum Lock {
    Exclusive(Mutex<u64>),
    Shared(RwLock<u64>),
}

pub struct Program {
    steps: Vec<Vec<Step>>,
    locks: Vec<Lock>,
    /// How often each lock is taken for writing, by steps that take it for certain.
    writes: Vec<u64>,
    tokens: (Mutex<u64>, Condvar),
    meeting: Barrier,
    ticket: AtomicU64,
    /// Writes by `Step::Try`.
    tried: AtomicU64,
    log: Mutex<Vec<Event>>,
    lost: AtomicU64,
}

impl Program {
    /// Draws a program for up to `most` threads.
    pub fn draw(seed: u64, most: usize) -> Self {
        let mut random = Random::new(seed);
        let mut below = |limit: usize| ((random.draw() >> 20) % limit as u64) as usize;
        let threads = 2 + below(most - 1);
        let (mutexes, shared) = (1 + below(3), 1 + below(2));
        let mut steps: Vec<Vec<Step>> = (0..threads).map(|_| Vec::new()).collect();
        for own in &mut steps {
            for _ in 0..1 + below(5) {
                let nest: Vec<_> = (0..mutexes + shared)
                    .filter_map(|lock| {
                        let used = if lock >= mutexes && below(3) > 0 { Use::Read } else { Use::Write };
                        (below(3) == 0).then_some((lock, used))
                    })
                    .collect();
                own.push(if nest.is_empty() { Step::Try(below(mutexes + shared)) } else { Step::Nest(nest) });
            }
        }
        // The even threads make tokens and the odd ones take as many, so that no thread waits for itself. One that takes has no lock.
        for _ in 0..below(8) {
            let [maker, taker] = [below(threads.div_ceil(2)) * 2, below(threads / 2) * 2 + 1];
            let at = below(steps[maker].len() + 1);
            steps[maker].insert(at, Step::Put { wakes_all: below(4) == 0 });
            let at = below(steps[taker].len() + 1);
            steps[taker].insert(at, Step::Take);
        }
        let mut writes = vec![0; mutexes + shared];
        for step in steps.iter().flatten() {
            if let Step::Nest(nest) = step {
                nest.iter().filter(|(_, used)| matches!(used, Use::Write)).for_each(|(lock, _)| writes[*lock] += 1);
            }
        }
        let lock = |at| if at < mutexes { Lock::Exclusive(Mutex::default()) } else { Lock::Shared(RwLock::default()) };
        Self {
            locks: (0..mutexes + shared).map(lock).collect(),
            writes,
            meeting: Barrier::new(threads),
            steps,
            tokens: Default::default(),
            ticket: AtomicU64::new(0),
            tried: AtomicU64::new(0),
            log: Mutex::default(),
            lost: AtomicU64::new(0),
        }
    }

    /// Does what a member of the team has to do, if the program has so many threads.
    pub fn run(&self, member: usize) {
        let Some(steps) = self.steps.get(member) else { return };
        let mut thread = Thread { program: self, number: member, log: Vec::new() };
        for step in steps {
            match step {
                Step::Nest(nest) => thread.nest(nest),
                Step::Try(lock) => thread.try_lock(*lock),
                Step::Put { wakes_all } => thread.put(*wakes_all),
                Step::Take => thread.take(),
            }
        }
        thread.share_with_all();
        self.log.lock().unwrap().append(&mut thread.log);
    }

    /// Returns the number of critical sections that there are in every run, or what is wrong.
    pub fn check(&self) -> Result<u64, String> {
        if self.lost.load(Relaxed) != 0 {
            return Err(format!("{} threads were not woken", self.lost.load(Relaxed)));
        }
        let log = std::mem::take(&mut *self.log.lock().unwrap());
        check(log, self.locks.len() + 1)?;
        let values = self.locks.iter().map(|lock| match lock {
            Lock::Exclusive(mutex) => *mutex.lock().unwrap(),
            Lock::Shared(lock) => *lock.read().unwrap(),
        });
        let (sum, expected) = (values.sum::<u64>(), self.writes.iter().sum::<u64>() + self.tried.load(Relaxed));
        let tokens = *self.tokens.0.lock().unwrap();
        match sum == expected && tokens == 0 {
            true => Ok(self.steps.iter().flatten().filter(|step| !matches!(step, Step::Try(_))).count() as u64),
            false => Err(format!("{sum} writes instead of {expected}, and {tokens} tokens are left")),
        }
    }
}

/// A thread of a program, and what it has logged.
struct Thread<'a> {
    program: &'a Program,
    number: usize,
    log: Vec<Event>,
}

impl Thread<'_> {
    /// Logs what this thread just did or is about to do, while it has the lock.
    fn note(&mut self, lock: usize, action: Action) {
        let ticket = self.program.ticket.fetch_add(1, Relaxed);
        self.log.push(Event { ticket, thread: self.number, lock, action });
    }

    fn nest(&mut self, nest: &[(usize, Use)]) {
        let [(at, used), inner @ ..] = nest else { return };
        let program = self.program;
        match (&program.locks[*at], used) {
            (Lock::Exclusive(mutex), _) => self.write(*at, &mut mutex.lock().unwrap(), inner),
            (Lock::Shared(lock), Use::Write) => self.write(*at, &mut lock.write().unwrap(), inner),
            (Lock::Shared(lock), Use::Read) => {
                let value = lock.read().unwrap();
                self.note(*at, Action::Share);
                let before = *value;
                self.nest(inner);
                assert_eq!(*value, before, "a writer changed what a reader has");
                self.note(*at, Action::Unshare);
            }
        }
    }

    /// A critical section.
    fn write(&mut self, at: usize, value: &mut u64, inner: &[(usize, Use)]) {
        self.note(at, Action::Lock);
        let before = *value;
        self.nest(inner);
        // The value is read before the inner locks and written after: two threads at a time would lose a change.
        *value = before + 1;
        self.note(at, Action::Unlock);
    }

    fn try_lock(&mut self, at: usize) {
        let program = self.program;
        let found = match &program.locks[at] {
            Lock::Exclusive(mutex) => mutex.try_lock().map(|mut value| self.write(at, &mut value, &[])).is_ok(),
            Lock::Shared(lock) => lock.try_write().map(|mut value| self.write(at, &mut value, &[])).is_ok(),
        };
        program.tried.fetch_add(found.into(), Relaxed);
    }

    /// The number of the tokens' lock.
    fn tokens(&self) -> usize {
        self.program.locks.len()
    }

    fn put(&mut self, wakes_all: bool) {
        let (lock, made) = &self.program.tokens;
        let mut tokens = lock.lock().unwrap();
        self.note(self.tokens(), Action::Lock);
        *tokens += 1;
        if wakes_all {
            made.notify_all()
        } else {
            made.notify_one()
        }
        self.note(self.tokens(), Action::Unlock);
    }

    fn take(&mut self) {
        let (lock, made) = &self.program.tokens;
        let mut tokens = lock.lock().unwrap();
        self.note(self.tokens(), Action::Lock);
        while *tokens == 0 {
            // Waiting gives the lock back.
            self.note(self.tokens(), Action::Unlock);
            let (again, waited) = made.wait_timeout(tokens, PATIENCE).unwrap();
            tokens = again;
            self.note(self.tokens(), Action::Lock);
            if waited.timed_out() {
                self.program.lost.fetch_add(1, Relaxed);
                *tokens += 1;
            }
        }
        *tokens -= 1;
        self.note(self.tokens(), Action::Unlock);
    }

    /// All threads have the last lock for reading at the same time.
    fn share_with_all(&mut self) {
        let program = self.program;
        program.meeting.wait();
        let last = program.locks.len() - 1;
        let Lock::Shared(lock) = &program.locks[last] else { unreachable!("there is one at least") };
        let value = lock.read().unwrap();
        self.note(last, Action::Share);
        program.meeting.wait();
        self.note(last, Action::Unshare);
        drop(value);
    }
}
