//! Chooses functions to compile before they are called, on cores that have nothing else to do.
//!
//! A guest's thread compiles only what it calls, on the core it runs on. Meanwhile *helpers*, one for each other core,
//! compile what it will probably call next: the functions that are called by those it has waited for, then what those
//! call, and so on, at most [`DISTANCES`] calls away. The newest come first, since the guest is there. Functions whose
//! addresses are in tables come last.
//!
//! A guest waits for a helper only if that helper is compiling the very function it needs. A helper takes a function
//! that nobody has begun ([`HelperQueue::begin`]). Only one helper at a time takes a large function, since those take
//! gigabytes.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many calls a function may be away from a called one to be compiled ahead.
pub(super) const DISTANCES: usize = 4;
/// How many functions wait at one distance at most; the oldest are dropped.
const WAITING: usize = 1 << 12;

#[derive(Default)]
pub(super) struct HelperQueue {
    /// Whether somebody has begun to compile a function, by its number.
    begun: Vec<AtomicBool>,
    waiting: Mutex<Waiting>,
    more: Condvar,
    /// Whether a helper is compiling a large function.
    large: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    /// Functions by distance; the next to take is last.
    near: [Vec<u32>; DISTANCES],
    /// Functions in tables; the next to take is last.
    last: Vec<u32>,
    helped: bool,
    over: bool,
}

impl Waiting {
    /// Takes the nearest function, with its distance.
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

    /// Marks a function as begun. Returns whether nobody had begun it before.
    pub(super) fn begin(&self, function: u32) -> bool {
        self.begun.get(function as usize).is_some_and(|begun| !begun.swap(true, Ordering::Relaxed))
    }

    /// Returns true once, when helpers should be started; takes the functions in tables from `last`.
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

    /// Adds what a function calls, at this distance. What it calls first is taken first.
    pub(super) fn add(&self, calls: impl DoubleEndedIterator<Item = u32>, distance: usize) {
        let mut waiting = self.waiting();
        let Some(near) = waiting.near.get_mut(distance) else { return };
        near.extend(calls.rev().filter(|f| self.begun.get(*f as usize).is_some_and(|b| !b.load(Ordering::Relaxed))));
        let old = near.len().saturating_sub(WAITING);
        near.drain(..old);
        self.more.notify_all();
    }

    /// Waits for the next function for a helper, marks it as begun, and returns it with its distance. `None` when
    /// helpers should stop.
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

    /// Whether a helper may compile a large function now; if so, it must call `end_large` afterwards.
    pub(super) fn begin_large(&self) -> bool {
        !self.large.swap(true, Ordering::Acquire)
    }

    pub(super) fn end_large(&self) {
        self.large.store(false, Ordering::Release);
    }

    /// Helpers stop as soon as they have finished their current function.
    pub(super) fn end(&self) {
        self.waiting().over = true;
        self.more.notify_all();
    }

    /// The lock is not poisoned by a panic: the lists are intact at every point where a thread could have panicked.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }
}

#[cfg(test)]
#[path = "helpers_tests.rs"]
mod tests;
