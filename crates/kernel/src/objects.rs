//! The objects phase: events make, destroy, write and read objects. An object is a block of the heap that has a key.
//!
//! Events for one object take effect in the order in which they came, events for different objects in parallel: the phase
//! sorts the events by key, and one lane walks through each key's run of events, twice. The first walk finds out what the
//! object needs from the heap at the end of the tick; then the heap serves all objects at once; the second walk applies the
//! events and answers them.

use crate::event::{self, Event};
use crate::gpu::*;
use crate::heap;
use crate::input::{answer, get};
use crate::layout::*;
use crate::team::{Team, find_share};
use crate::tick::Tick;

/// Bits of an index into the queue. A word that is sorted has the key above these bits and the event's index in them.
const INDEX_BITS: u32 = QUEUE_MAX.trailing_zeros();
const INDEX: u32 = QUEUE_MAX - 1;
const _: () = assert!(QUEUE_MAX.is_power_of_two() && OBJECTS_MAX.trailing_zeros() + INDEX_BITS < 32);

pub fn objects(tick: &Tick<'_>) {
    let team = tick.team;
    #[cfg(feature = "faults")]
    crate::faults::stall(tick);
    team.for_each(tick.events, |i| answer(i, preliminary(&get(i)), 0));
    let count = team.compact(
        tick.events,
        |i| concerns(&get(i)),
        |i, rank| {
            store(X_SORT + rank * 4, get(i).key << INDEX_BITS | i);
        },
    );
    if count == 0 {
        return;
    }
    team.sort(X_SORT, count);
    let runs = team.compact(count, begins_run, |at, rank| store(X_HEADS + rank * 4, at));
    if team.leads() {
        store(X_HEADS + runs * 4, count);
    }
    team.meet();

    team.for_each_walk(runs, plan);
    heap::allocate(team, runs);
    zero(team, runs);
    team.for_each_walk(runs, commit);
    // Freed last: until here, events used the old blocks of their objects.
    heap::free(team, runs);
}

/// Returns whether the event takes effect on an object in this tick.
#[inline(always)]
fn concerns(event: &Event) -> bool {
    event.wait == 0 && event.kind >= event::CREATE && event.kind <= event::READ && event.key < OBJECTS_MAX
}

/// Returns the result that an event has unless the walks or a later phase set another.
#[inline(always)]
fn preliminary(event: &Event) -> u32 {
    let object = event.kind >= event::CREATE && event.kind <= event::READ;
    match event.kind {
        _ if event.wait != 0 => event::DONE,
        event::PING | event::WORK => event::DONE,
        #[cfg(feature = "faults")]
        event::STALL => event::DONE,
        _ if object && event.key >= OBJECTS_MAX => event::OUTSIDE,
        _ if object => event::DONE,
        _ => event::UNKNOWN,
    }
}

/// Returns whether a run begins at index `at` of the sorted events.
#[inline(always)]
fn begins_run(at: u32) -> bool {
    at == 0 || load(X_SORT + at * 4) >> INDEX_BITS != load(X_SORT + at * 4 - 4) >> INDEX_BITS
}

/// Calls `visit` for each event of a run, in order, with its index among the sorted events and its index in the queue.
/// Returns the number of events.
#[inline(always)]
fn walk(run: u32, mut visit: impl FnMut(u32, u32, &Event)) -> u32 {
    let (from, to) = (load(X_HEADS + run * 4), load(X_HEADS + run * 4 + 4));
    let mut at = from;
    while at < to {
        let i = load(X_SORT + at * 4) & INDEX;
        visit(at, i, &get(i));
        at += 1;
    }
    to - from
}

/// Returns the address of a run's [`Object`].
#[inline(always)]
fn object_of(run: u32) -> u32 {
    OBJECTS + (load(X_SORT + load(X_HEADS + run * 4) * 4) >> INDEX_BITS) * OBJECT_BYTES
}

/// Returns whether an object may have this size.
fn can_be(size: u32) -> bool {
    size != 0 && size <= OBJECT_MAX
}

/// The first walk: finds the block that the object gives up, if any, and the size of the block that the object needs at
/// the end of the run, with the event that makes it. Returns the number of events.
#[inline(always)]
fn plan(run: u32) -> u32 {
    let old = load(object_of(run) + OBJECT_ADDRESS);
    let (mut exists, mut keeps, mut size, mut maker) = (old != 0, old != 0, 0, u32::MAX);
    let steps = walk(run, |_, i, event| {
        if event.kind == event::CREATE && !exists && can_be(event.a) {
            (exists, size, maker) = (true, event.a, i);
        } else if event.kind == event::DESTROY && exists {
            (exists, keeps, size, maker) = (false, false, 0, u32::MAX);
        }
    });
    store(X_FREE + run * 4, if keeps { 0 } else { old });
    store(X_WANT + run * 4, size);
    store(X_GOT + run * 4, 0);
    store(X_MAKER + run * 4, maker);
    steps
}

/// Zeroes the new blocks. The threads share the pieces of 64 bytes of all blocks evenly.
fn zero(team: &Team, runs: u32) {
    let lines = |run: u32| match load(X_GOT + run * 4) {
        0 => 0,
        _ => load(X_WANT + run * 4).div_ceil(SMALLEST),
    };
    let all = team.scan(runs, lines, |run, before| store(X_RANK + run * 4, before));
    team.for_each(all, |line| {
        let run = find_share(X_RANK, runs, line);
        let at = load(X_GOT + run * 4) + (line - load(X_RANK + run * 4)) * SMALLEST;
        let mut word = 0;
        while word < SMALLEST {
            store64(at + word, 0);
            word += 8;
        }
    });
}

/// An object during the second walk, after some of its events.
struct Now {
    exists: bool,
    size: u32,
    writes: u32,
    /// The address of the object's bytes; 0 for an object that this tick makes and destroys again: it gets no block.
    at: u32,
}

/// The second walk: applies and answers the events of a run. Returns their number.
#[inline(always)]
fn commit(run: u32) -> u32 {
    let object = object_of(run);
    let (old, got, maker) = (load(object + OBJECT_ADDRESS), load(X_GOT + run * 4), load(X_MAKER + run * 4));
    let mut now =
        Now { exists: old != 0, size: load(object + OBJECT_SIZE), writes: load(object + OBJECT_WRITES), at: old };
    let (mut refused, mut block) = (0, None);
    let steps = walk(run, |at, i, event| {
        if i == maker {
            block = Some(got);
        }
        let (result, value) = apply(&mut now, event, at, block);
        refused += (result != event::DONE) as u32;
        answer(i, result, value);
    });
    store(object + OBJECT_ADDRESS, if now.exists { now.at } else { 0 });
    store(object + OBJECT_SIZE, if now.exists { now.size } else { 0 });
    store(object + OBJECT_WRITES, if now.exists { now.writes } else { 0 });
    add(H_OBJECTS, (now.exists as u32).wrapping_sub((old != 0) as u32));
    if refused != 0 {
        add(H_REFUSED, refused);
    }
    steps
}

/// Applies one event, at index `at` of the sorted events, and returns its result and a value. From the event on that makes
/// the object that is there at the end of the run, `block` is the address of its block (0: the heap had no space, so that no
/// later event can make the object either).
#[inline(always)]
fn apply(now: &mut Now, event: &Event, at: u32, block: Option<u32>) -> (u32, u32) {
    match event.kind {
        event::CREATE if now.exists => (event::EXISTS, 0),
        event::CREATE if !can_be(event.a) => (event::OUTSIDE, 0),
        event::CREATE if block == Some(0) => (event::NO_ROOM, 0),
        event::CREATE => {
            *now = Now { exists: true, size: event.a, writes: 0, at: block.unwrap_or(0) };
            (event::DONE, now.at)
        }
        _ if !now.exists => (event::MISSING, 0),
        event::DESTROY => {
            *now = Now { exists: false, size: 0, writes: 0, at: 0 };
            (event::DONE, 0)
        }
        _ if event.a >= now.size || !event.a.is_multiple_of(4) => (event::OUTSIDE, 0),
        event::WRITE => {
            now.writes += 1;
            if now.at != 0 {
                store(now.at + event.a, event.b);
            }
            (event::DONE, event.b)
        }
        _ if now.at != 0 => (event::DONE, load(now.at + event.a)),
        _ => (event::DONE, written_before(at, event.a)),
    }
}

/// Returns a word of an object that has no block, because one tick makes and destroys it: the value that was written last
/// at `offset` by the events before the one at index `at`.
#[inline(never)]
fn written_before(at: u32, offset: u32) -> u32 {
    let mut before = at;
    loop {
        before -= 1;
        let event = get(load(X_SORT + before * 4) & INDEX);
        match event.kind {
            event::WRITE if event.a == offset => return event.b,
            // This event made the object, with all words 0. A refused CREATE changed nothing: the search continues.
            event::CREATE if load(X_RESULT + (load(X_SORT + before * 4) & INDEX) * 4) == event::DONE => return 0,
            _ if before == 0 => return 0,
            _ => {}
        }
    }
}
