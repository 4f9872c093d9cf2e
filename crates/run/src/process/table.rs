//! The table of processes.

use super::Image;
use gpu_run_wasi::{Child, Ended, Errno};
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many of the processes that ended are still listed.
const MAX_LISTED: usize = 64;
/// How often a flag is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(super) struct Table {
    most: usize,
    state: Arc<(Mutex<State>, Condvar)>,
}

struct State {
    last: u32,
    running: HashMap<u32, Arc<Entry>>,
    ended: VecDeque<ProcessInfo>,
    stats: ProcessStats,
}

/// A process.
pub(super) struct Entry {
    pub(super) id: u32,
    parent: u32,
    pub(super) name: String,
    /// Set to have the process stopped.
    pub(super) kill: Arc<AtomicBool>,
    began: Instant,
    calls: AtomicU64,
    life: Mutex<Life>,
    table: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct Life {
    started: Option<Result<(), Errno>>,
    image: Option<Arc<Image>>,
    ended: Option<Ended>,
}

/// A process, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessInfo {
    pub id: u32,
    pub parent: u32,
    pub name: String,
    pub state: ProcessState,
    /// How long it runs, or ran.
    pub time: Duration,
    /// Host calls that it made; known when it has ended.
    pub calls: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    Starts,
    Runs,
    Ended(Ended),
    /// Its program cannot be run.
    Refused,
}

/// What the processes of a run did, without the one it begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessStats {
    pub started: u64,
    /// How many could not be started, because of their programs.
    pub refused: u64,
    pub most_running: u64,
    /// How many trapped, and how many were killed.
    pub trapped: u64,
    pub killed: u64,
    pub calls: u64,
}

impl Table {
    /// At most so many run at once, besides the first: each has a thread of the host.
    pub(super) fn new(first: u32, most: usize) -> Self {
        let state =
            State { last: first, running: HashMap::new(), ended: VecDeque::new(), stats: ProcessStats::default() };
        Self { most, state: Arc::new((Mutex::new(state), Condvar::new())) }
    }

    /// Adds a process that starts.
    pub(super) fn add(&self, parent: u32, name: &str) -> Result<Arc<Entry>, Errno> {
        let mut state = self.state.0.lock();
        if state.running.len() >= self.most {
            return Err(Errno::Again);
        }
        state.last = state.last.checked_add(1).ok_or(Errno::Again)?;
        let entry = Arc::new(Entry {
            id: state.last,
            parent,
            name: name.to_owned(),
            kill: Arc::default(),
            began: Instant::now(),
            calls: AtomicU64::new(0),
            life: Mutex::default(),
            table: self.state.clone(),
        });
        state.running.insert(entry.id, entry.clone());
        state.stats.started += 1;
        state.stats.most_running = state.stats.most_running.max(state.running.len() as u64);
        Ok(entry)
    }

    /// Returns the program of a process that runs, and what it was started as.
    pub(super) fn program(&self, id: u32) -> Option<(Arc<Image>, String)> {
        let entry = self.state.0.lock().running.get(&id)?.clone();
        let image = entry.life.lock().image.clone()?;
        Some((image, entry.name.clone()))
    }

    /// Waits until no process runs. Those that run at the deadline, or when the flag becomes true, are killed; returns how many.
    pub(super) fn wait_for_all(&self, deadline: Option<Instant>, interrupt: Option<&AtomicBool>) -> usize {
        let (lock, changed) = &*self.state;
        let mut state = lock.lock();
        let mut killed = 0;
        while !state.running.is_empty() {
            let is_interrupted = interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed));
            if killed == 0 && (is_interrupted || deadline.is_some_and(|deadline| deadline <= Instant::now())) {
                killed = state.running.len();
            }
            if killed > 0 {
                // Those, too, that others started meanwhile.
                state.running.values().for_each(|entry| entry.kill());
            }
            let look = (interrupt.is_some() && killed == 0).then(|| Instant::now() + LOOK_EVERY);
            match look.into_iter().chain(deadline.filter(|_| killed == 0)).min() {
                None => changed.wait(&mut state),
                Some(until) => _ = changed.wait_until(&mut state, until),
            }
        }
        killed
    }

    pub(super) fn stats(&self) -> ProcessStats {
        self.state.0.lock().stats
    }

    pub(super) fn list(&self) -> Vec<ProcessInfo> {
        let state = self.state.0.lock();
        let mut all: Vec<_> = state.ended.iter().cloned().collect();
        all.extend(state.running.values().map(|entry| entry.info()));
        all.sort_by_key(|process| process.id);
        all
    }
}

impl Entry {
    pub(super) fn set_started(&self, result: Result<(), Errno>) {
        self.life.lock().started.get_or_insert(result);
    }

    pub(super) fn runs(&self, image: Arc<Image>) {
        let mut life = self.life.lock();
        life.image = Some(image);
        life.started.get_or_insert(Ok(()));
    }

    pub(super) fn calls(&self, count: u64) {
        self.calls.store(count, Ordering::Relaxed);
    }

    /// Notes how the process ended, if that is not known yet.
    pub(super) fn set_ended(&self, ended: Ended) {
        {
            let mut life = self.life.lock();
            if life.ended.is_some() {
                return;
            }
            life.image = None;
            life.ended = Some(ended);
            life.started.get_or_insert(Err(Errno::Again));
        }
        let (lock, changed) = &*self.table;
        let mut state = lock.lock();
        state.running.remove(&self.id);
        let calls = self.calls.load(Ordering::Relaxed);
        state.stats.calls += calls;
        let info = self.info();
        match info.state {
            ProcessState::Refused => {
                state.stats.started -= 1;
                state.stats.refused += 1;
            }
            ProcessState::Ended(Ended::Trapped(_)) => state.stats.trapped += 1,
            ProcessState::Ended(Ended::Killed) => state.stats.killed += 1,
            _ => {}
        }
        if state.ended.len() == MAX_LISTED {
            state.ended.pop_front();
        }
        state.ended.push_back(info);
        changed.notify_all();
    }

    fn info(&self) -> ProcessInfo {
        let life = self.life.lock();
        let state = match (life.ended, life.started) {
            (Some(_), Some(Err(_))) => ProcessState::Refused,
            (Some(ended), _) => ProcessState::Ended(ended),
            (None, Some(Ok(()))) => ProcessState::Runs,
            _ => ProcessState::Starts,
        };
        let (time, calls) = (self.began.elapsed(), self.calls.load(Ordering::Relaxed));
        ProcessInfo { id: self.id, parent: self.parent, name: self.name.clone(), state, time, calls }
    }
}

impl Child for Entry {
    fn id(&self) -> u32 {
        self.id
    }

    fn started(&self) -> Option<Result<(), Errno>> {
        self.life.lock().started
    }

    fn ended(&self) -> Option<Ended> {
        self.life.lock().ended
    }

    fn kill(&self) {
        self.kill.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_counted_until_it_ends_and_ends_once() {
        let table = Table::new(1, 8);
        let child = table.add(1, "child").expect("there is room");
        assert_eq!((child.id(), child.ended(), child.started()), (2, None, None));
        child.set_started(Ok(()));
        assert_eq!(table.list()[0].state, ProcessState::Runs);
        child.set_ended(Ended::Exited(3));
        child.set_ended(Ended::Killed);
        assert_eq!((child.ended(), table.stats().killed), (Some(Ended::Exited(3)), 0));
        assert_eq!(table.list()[0].state, ProcessState::Ended(Ended::Exited(3)));
        assert_eq!(table.wait_for_all(None, None), 0);
    }

    #[test]
    fn a_program_that_cannot_be_run_was_not_started() {
        let table = Table::new(1, 8);
        let child = table.add(1, "notes").expect("there is room");
        child.set_started(Err(Errno::Noexec));
        child.set_ended(Ended::Killed);
        let stats = table.stats();
        assert_eq!((stats.started, stats.refused, stats.killed), (0, 1, 0));
        assert_eq!(table.list()[0].state, ProcessState::Refused);
    }

    #[test]
    fn there_are_not_more_processes_than_allowed() {
        let table = Table::new(1, 8);
        let all: Vec<_> = (0..8).map(|_| table.add(1, "child").expect("there is room")).collect();
        assert_eq!(table.add(1, "child").err(), Some(Errno::Again));
        all[7].set_ended(Ended::Killed);
        assert!(table.add(1, "child").is_ok());
    }

    /// Waits for a table with a process that runs until it is killed.
    fn killed(deadline: Option<Instant>, interrupt: Option<&AtomicBool>) -> usize {
        let table = Table::new(1, 8);
        let child = table.add(1, "child").expect("there is room");
        let watched = child.clone();
        let thread = std::thread::spawn(move || {
            while !watched.kill.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            watched.set_ended(Ended::Killed);
        });
        let killed = table.wait_for_all(deadline, interrupt);
        assert_eq!(child.ended(), Some(Ended::Killed));
        thread.join().expect("it does not panic");
        killed
    }

    #[test]
    fn what_runs_at_the_deadline_is_killed() {
        assert_eq!(killed(Some(Instant::now()), None), 1);
    }

    #[test]
    fn what_runs_when_the_user_interrupts_is_killed() {
        let flag = Arc::new(AtomicBool::new(false));
        let sets = flag.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(LOOK_EVERY);
            sets.store(true, Ordering::Relaxed);
        });
        assert_eq!(killed(None, Some(&flag)), 1);
        thread.join().expect("it does not panic");
    }
}
