//! Which functions are compiled before they are called, on cores that have nothing else to do.
//!
//! A guest's thread compiles what it calls and nothing else, on the core it runs on. Meanwhile *helpers*, one for each core but that, take what it will probably call next: what the functions it has waited for call, then what
//! those call, and so on, [`DISTANCES`] calls away at most; the newest first, since that is where the guest is. Last come functions whose addresses are in tables.
//!
//! No guest ever waits for a helper, but for one that is compiling the very function it needs. A helper takes a function that nobody has begun ([`HelperQueue::begin`]), and only one helper at a time a large one, since those take gigabytes.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many calls away from what was called a function may be, to be compiled ahead.
pub(super) const DISTANCES: usize = 4;
/// How many functions wait at one distance at most; the oldest are forgotten first.
const WAITING: usize = 1 << 12;

#[derive(Default)]
pub(super) struct HelperQueue {
    /// By function.
    begun: Vec<AtomicBool>,
    waiting: Mutex<Waiting>,
    more: Condvar,
    /// Taken by the helper that compiles a large function.
    large: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    /// By distance, the next one last.
    near: [Vec<u32>; DISTANCES],
    /// Functions in tables, the next one last.
    last: Vec<u32>,
    helped: bool,
    over: bool,
}

impl Waiting {
    /// The nearest, and how far away it is.
    fn pop(&mut self) -> Option<(u32, usize)> {
        let mut lists = self.near.iter_mut().chain([&mut self.last]).enumerate();
        lists.find_map(|(distance, list)| Some((list.pop()?, distance)))
    }
}

impl fmt::Debug for HelperQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.waiting();
        write!(f, "HelperQueue({} + {} waiting)", waiting.near.iter().map(Vec::len).sum::<usize>(), waiting.last.len())
    }
}

impl HelperQueue {
    pub(super) fn new(functions: usize) -> Self {
        Self { begun: (0..functions).map(|_| AtomicBool::new(false)).collect(), ..Self::default() }
    }

    /// Whether nobody has begun to compile this function, which is begun now.
    pub(super) fn begin(&self, function: u32) -> bool {
        self.begun.get(function as usize).is_some_and(|begun| !begun.swap(true, Ordering::Relaxed))
    }

    /// True once: helpers are to be started, and to begin with these.
    pub(super) fn start(&self, last: impl FnOnce() -> Vec<u32>) -> bool {
        let mut waiting = self.waiting();
        if waiting.helped || waiting.over {
            return false;
        }
        waiting.helped = true;
        waiting.last = last();
        waiting.last.reverse();
        true
    }

    /// What a function calls that is so far away; what it calls first, first.
    pub(super) fn add(&self, calls: impl DoubleEndedIterator<Item = u32>, distance: usize) {
        let mut waiting = self.waiting();
        let Some(near) = waiting.near.get_mut(distance) else { return };
        near.extend(calls.rev().filter(|f| self.begun.get(*f as usize).is_some_and(|b| !b.load(Ordering::Relaxed))));
        let old = near.len().saturating_sub(WAITING);
        near.drain(..old);
        self.more.notify_all();
    }

    /// What a helper does next, and how far away it is, begun; it waits for it. `None` when all is over.
    pub(super) fn next(&self) -> Option<(u32, usize)> {
        let mut waiting = self.waiting();
        loop {
            if waiting.over {
                return None;
            }
            match waiting.pop() {
                Some((function, distance)) if self.begin(function) => return Some((function, distance)),
                Some(_) => {}
                None => self.more.wait(&mut waiting),
            }
        }
    }

    /// Whether a helper may compile a large function now. It says when it has.
    pub(super) fn begin_large(&self) -> bool {
        !self.large.swap(true, Ordering::Acquire)
    }

    pub(super) fn end_large(&self) {
        self.large.store(false, Ordering::Release);
    }

    /// Helpers leave as soon as they have finished what they are at.
    pub(super) fn end(&self) {
        self.waiting().over = true;
        self.more.notify_all();
    }

    /// Lists of numbers are whole whenever a thread can have panicked.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }
}

#[cfg(test)]
#[path = "helpers_tests.rs"]
mod tests;
