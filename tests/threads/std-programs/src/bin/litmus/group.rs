//! A group of threads that runs a test again and again, on a cell for each round.

use crate::{Options, SIDES};
use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Rounds between two meetings of the group, and so cells.
const CELLS: usize = 256;
/// How often a thread looks whether the others have come to the round before it begins anyway: threads that are in step are more
/// likely to meet, and threads that have no core must not be waited for.
const LOOKS: usize = 20;

/// A word that is no atomic: threads order their accesses to it by atomics.
#[derive(Default)]
pub struct Plain(UnsafeCell<u32>);

// SAFETY: the tests read it only after they saw, by an acquiring load, that it was written; and `Member` resets it between two barriers.
unsafe impl Sync for Plain {}

impl Plain {
    pub fn set(&self, value: u32) {
        // SAFETY: see above.
        unsafe { *self.0.get() = value }
    }

    pub fn get(&self) -> u32 {
        // SAFETY: see above.
        unsafe { *self.0.get() }
    }
}

/// The words of one round. They lie in arrays of their own, so that no two of them are in one cache line.
#[derive(Clone, Copy)]
pub struct Cell<'a> {
    pub x: &'a AtomicU32,
    pub y: &'a AtomicU32,
    pub plain: &'a Plain,
}

/// What the threads of a group read, two values for each, and what the two words were in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome {
    pub read: [[u32; 2]; SIDES],
    pub x: u32,
    pub y: u32,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.read.map(|[first, second]| format!("{first} {second}"));
        write!(f, "{a} | {b} | {c} | {d}, x = {}, y = {}", self.x, self.y)
    }
}

pub struct Group {
    sides: usize,
    x: Vec<AtomicU32>,
    y: Vec<AtomicU32>,
    plain: Vec<Plain>,
    read: [Vec<[AtomicU32; 2]>; SIDES],
    /// The round each side has come to.
    progress: [AtomicU32; SIDES],
    meeting: Barrier,
}

impl Group {
    pub fn new(sides: usize) -> Self {
        fn cells<T: Default>() -> Vec<T> {
            (0..CELLS).map(|_| T::default()).collect()
        }
        let read = std::array::from_fn(|_| cells());
        let (progress, meeting) = (Default::default(), Barrier::new(sides));
        Self { sides, x: cells(), y: cells(), plain: cells(), read, progress, meeting }
    }

    fn cell(&self, at: usize) -> Cell<'_> {
        Cell { x: &self.x[at], y: &self.y[at], plain: &self.plain[at] }
    }

    /// Returns the outcome in a cell, and makes the cell as it was before.
    fn take(&self, at: usize) -> Outcome {
        let read = std::array::from_fn(|side| std::array::from_fn(|i| self.read[side][at][i].swap(0, Relaxed)));
        self.plain[at].set(0);
        Outcome { read, x: self.x[at].swap(0, Relaxed), y: self.y[at].swap(0, Relaxed) }
    }
}

/// What was seen of a test.
#[derive(Default)]
pub struct Report {
    /// The test's name, and those of its orders.
    pub name: (&'static str, &'static str),
    pub rounds: u64,
    pub forbidden: u64,
    pub outcomes: BTreeMap<Outcome, u64>,
}

impl Report {
    pub fn add(&mut self, other: Report) {
        self.name = other.name;
        self.rounds += other.rounds;
        self.forbidden += other.forbidden;
        for (outcome, count) in other.outcomes {
            *self.outcomes.entry(outcome).or_default() += count;
        }
    }
}

/// Whether the memory model of Rust forbids an outcome, or only sequential consistency.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    Rust,
    Consistency,
}

/// A thread, and what it saw of each test.
pub struct Member<'a> {
    thread: usize,
    teams: &'a [std::sync::Arc<Vec<Group>>; 2],
    options: Options,
    pub reports: Vec<Report>,
}

impl<'a> Member<'a> {
    pub fn new(thread: usize, teams: &'a [std::sync::Arc<Vec<Group>>; 2], options: Options) -> Self {
        Self { thread, teams, options, reports: Vec::new() }
    }

    /// Runs a test in groups of two or of four: `act` is what a side does in a round, and returns what it read.
    pub fn test(
        &mut self,
        name: (&'static str, &'static str),
        sides: usize,
        by: By,
        act: impl Fn(usize, Cell<'_>) -> [u32; 2],
        is_forbidden: impl Fn(&Outcome) -> bool,
    ) {
        let groups: &[Group] = &self.teams[usize::from(sides > 2)];
        let mut report = Report { name, ..Report::default() };
        let width = groups[0].sides;
        // Side s of a group is s times `distance` threads behind side 0; the groups of so many threads lie between each other.
        let distance = self.options.distance.unwrap_or(usize::MAX).min(self.options.threads / width);
        let (block, place) = (self.thread / (width * distance), self.thread % (width * distance));
        let (number, side) = (block * distance + place % distance, place / distance);
        // The last threads may be too few for a group.
        if (block + 1) * width * distance <= self.options.threads {
            let counted = self.options.threads / (width * distance) * distance;
            let is_judged = by == By::Rust || self.options.strict || cfg!(target_family = "wasm");
            self.rounds(&groups[number], side, counted, &act, |outcome| {
                report.rounds += 1;
                report.forbidden += u64::from(is_judged && is_forbidden(&outcome));
                if self.options.counts {
                    *report.outcomes.entry(outcome).or_default() += 1;
                }
            });
        }
        self.reports.push(report);
    }

    /// Runs this thread's part of all rounds of its group, one of `groups`.
    fn rounds(
        &self,
        group: &Group,
        side: usize,
        groups: usize,
        act: &impl Fn(usize, Cell<'_>) -> [u32; 2],
        mut judge: impl FnMut(Outcome),
    ) {
        let mut left = self.options.rounds.div_ceil(groups);
        while left > 0 {
            let batch = left.min(CELLS);
            for at in 0..batch {
                group.progress[side].store(at as u32 + 1, Relaxed);
                let is_behind = |other: &AtomicU32| other.load(Relaxed) <= at as u32;
                let mut looks = 0;
                while looks < LOOKS && group.progress[..group.sides].iter().any(is_behind) {
                    looks += 1;
                }
                let [first, second] = act(side, group.cell(at));
                group.read[side][at][0].store(first, Relaxed);
                group.read[side][at][1].store(second, Relaxed);
            }
            group.meeting.wait();
            group.progress[side].store(0, Relaxed);
            for at in (side..batch).step_by(group.sides) {
                judge(group.take(at));
            }
            group.meeting.wait();
            left -= batch;
        }
    }
}
