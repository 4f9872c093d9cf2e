//! What the threads of a program do, and where, after it was stopped or while it runs: from what they note on the device
//! about themselves (`gpu_run_abi::threads::Waiter`), the places where they were stopped, and the calls that led there, if
//! these are noted.

use crate::remains::{self, ThreadRemains};
use crate::slots::{Endings, SlotReader};
use crate::thread_name::{self, Guest};
use gpu_run_abi::TrapRecord;
use gpu_run_abi::hostcall::Call;
use gpu_run_abi::layout::field;
use gpu_run_abi::threads::{Waiter, doing};
use gpu_run_compiler::{Compiled, Error, NotedCalls, Place, printable};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How many groups of threads are described.
const MAX_GROUPS: usize = 16;
/// Of how many threads of a running program the calls are read: each takes a copy from the device.
const MAX_CALLS_READ: usize = 1024;

/// Of how many threads a core dump has the stacks.
const MAX_REMAINS: usize = 1024;

/// Somebody who looks at a program's threads while it runs.
pub trait Onlooker: fmt::Debug + Send + Sync {
    /// Returns whether they want to see the threads now.
    fn is_looking(&self) -> bool;
    fn sees(&self, threads: &SeenThreads);
}

/// A thread of a program: the number that starting it returned, 0 for the first thread, and the name it has in Rust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadLabel {
    pub number: u64,
    pub name: Option<String>,
}

impl fmt::Display for ThreadLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "thread {} `{}`", self.number, printable::name(name)),
            None => write!(f, "thread {}", self.number),
        }
    }
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadState {
    Runs,
    /// It waits until another thread notifies it at a guest address, at most so long.
    Waits {
        at: u32,
        time: Option<Duration>,
    },
    Sleeps(Option<Duration>),
    /// It waits for the host's answer to this call.
    Calls(&'static str),
}

impl ThreadState {
    fn of(waiter: &Waiter) -> Self {
        let time = u64::try_from(waiter.time).ok().map(Duration::from_nanos);
        match waiter.doing >> u32::BITS {
            doing::WAITS => Self::Waits { at: waiter.waits_at as u32, time },
            doing::SLEEPS => Self::Sleeps(time),
            what => match what.checked_sub(doing::CALLS).and_then(|number| Call::from_number(number as u32)) {
                Some(call) => Self::Calls(call.function().name),
                None => Self::Runs,
            },
        }
    }
}

/// Threads that do the same at the same place.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadGroup {
    /// The one with the lowest number.
    pub first: ThreadLabel,
    pub count: u64,
    pub state: ThreadState,
    /// Whether others of them wait at other addresses.
    pub has_other_addresses: bool,
    pub place: Option<Place>,
    /// How many threads share the first one's warp, itself included.
    pub in_warp: u32,
}

/// All threads of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenThreads {
    pub count: u64,
    /// Some of them.
    pub groups: Vec<ThreadGroup>,
}

/// The threads of a program, as its device has them.
pub(crate) struct Threads<'a> {
    pub(crate) compiled: &'a Arc<Compiled>,
    pub(crate) slots: &'a SlotReader,
    /// By slot.
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) guest: Guest<'a>,
    /// Returns how many threads share the warp at a device address.
    pub(crate) in_warp: &'a dyn Fn(u64) -> u32,
}

impl Threads<'_> {
    pub(crate) fn label(&self, slot: usize) -> ThreadLabel {
        match slot {
            0 => ThreadLabel { number: 0, name: Some("main".to_owned()) },
            _ => ThreadLabel { number: self.waiters.get(slot).map_or(0, |w| w.id), name: self.name(slot as u64) },
        }
    }

    fn name(&self, slot: u64) -> Option<String> {
        let global = |index: usize| {
            let at = *self.compiled.slots.globals.get(index)?;
            self.slots.read_word(slot, at).ok().map(|word| word as u32)
        };
        thread_name::find(thread_name::tls(global)?, &self.guest)
    }

    /// Returns what the threads in these slots did when they were stopped, by their numbers.
    pub(crate) fn stopped(&self, slots: Vec<usize>, endings: &Endings<'_>) -> SeenThreads {
        self.seen(slots, |slot| {
            // A thread that ran was stopped at some place in its function; one that waits has noted where.
            let record = TrapRecord::unpack(endings.get(slot).trap);
            let at = record.filter(|record| record.function != TrapRecord::NO_FUNCTION).map(|record| record.offset);
            (at, endings.calls(slot))
        })
    }

    /// Returns what the threads in these slots left behind when the program trapped: first the one that ended it, then
    /// some of the others.
    pub(crate) fn remains(
        &self,
        ended_by: usize,
        mut slots: Vec<usize>,
        endings: &Endings<'_>,
    ) -> Result<Vec<ThreadRemains>, Error> {
        slots.retain(|slot| *slot != ended_by);
        slots.sort_by_key(|slot| (*slot > 0, self.waiters[*slot].id));
        let remains = |slot: usize| {
            let record = TrapRecord::unpack(endings.get(slot).trap);
            let record = record.filter(|record| record.function != TrapRecord::NO_FUNCTION);
            let trapped = record.map(|record| (record.offset, Some(record.function)));
            let noted = Some(self.waiters[slot].doing as u32).filter(|offset| *offset > 0 && slot != ended_by);
            let place = noted.map(|offset| (offset, None)).or(trapped);
            let globals = remains::globals(self.compiled, |at| self.slots.read_word(slot as u64, at))?;
            let frames = self.compiled.stack(place, endings.calls(slot).as_ref());
            Ok(ThreadRemains { name: self.label(slot).to_string(), frames, globals })
        };
        std::iter::once(ended_by).chain(slots).take(MAX_REMAINS).map(remains).collect()
    }

    /// Returns what the threads in these slots do now. The place of one that runs is its last call.
    pub(crate) fn running(&self, slots: Vec<usize>) -> SeenThreads {
        let place = self.compiled.slots.calls;
        self.seen(slots, |slot| {
            let is_read = place.is_noted() && slot < MAX_CALLS_READ;
            let words = is_read.then(|| self.slots.read_words(slot as u64, place.depth, place.words() as usize));
            (None, words.and_then(|words| NotedCalls::of_words(&words.ok()?)))
        })
    }

    /// `stopped` returns where a thread was stopped, if it was, and the calls that led there.
    fn seen(&self, mut slots: Vec<usize>, stopped: impl Fn(usize) -> (Option<u32>, Option<NotedCalls>)) -> SeenThreads {
        slots.sort_by_key(|slot| (*slot > 0, self.waiters[*slot].id));
        let standing = |slot: &usize| {
            let waiter = &self.waiters[*slot];
            let (at, calls) = stopped(*slot);
            let noted = Some(waiter.doing as u32).filter(|offset| *offset > 0);
            (*slot, Standing { state: ThreadState::of(waiter), offset: noted.or(at), calls })
        };
        let all: Vec<_> = slots.iter().map(standing).collect();
        // Threads that wait at different addresses are told apart, unless there are too many of them.
        let mut found = grouped(&all, |standing| standing.clone());
        let has_other_addresses = found.len() > MAX_GROUPS;
        if has_other_addresses {
            found = grouped(&all, Standing::without_address);
        }
        let group = |members: &Vec<usize>| {
            let (slot, Standing { state, offset, calls }) = &all[members[0]];
            ThreadGroup {
                first: self.label(*slot),
                count: members.len() as u64,
                state: *state,
                has_other_addresses: has_other_addresses && matches!(state, ThreadState::Waits { .. }),
                place: self.compiled.place(*offset, calls.clone()),
                in_warp: self.slots.read_word(*slot as u64, field::WARP).map_or(1, self.in_warp),
            }
        };
        SeenThreads { count: slots.len() as u64, groups: found.iter().take(MAX_GROUPS).map(group).collect() }
    }
}

/// Returns which threads have the same key, in the order of the first ones.
fn grouped(all: &[(usize, Standing)], key: impl Fn(&Standing) -> Standing) -> Vec<Vec<usize>> {
    let (mut groups, mut known) = (Vec::new(), HashMap::new());
    for (at, (_, standing)) in all.iter().enumerate() {
        let group = *known.entry(key(standing)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(at);
    }
    groups
}

/// What a thread does, and where.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Standing {
    state: ThreadState,
    offset: Option<u32>,
    calls: Option<NotedCalls>,
}

impl Standing {
    fn without_address(&self) -> Self {
        let state = match self.state {
            ThreadState::Waits { time, .. } => ThreadState::Waits { at: 0, time },
            state => state,
        };
        Self { state, ..self.clone() }
    }
}
