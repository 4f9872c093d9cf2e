//! The tests. Their names are those of the literature on memory models: MP is message passing, SB store buffering, LB load buffering,
//! IRIW independent reads of independent writes, WRC write-to-read causality, CoRR coherence of two reads.

use crate::group::{By, Cell, Member, Outcome};
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, compiler_fence, fence};

/// The orders of stores and of loads in a test, and what forbids outcomes with them.
#[derive(Clone, Copy)]
struct Orders(&'static str, Ordering, Ordering, By);

pub fn all(member: &mut Member<'_>) {
    for Orders(orders, store, load, by) in [
        Orders("SeqCst", SeqCst, SeqCst, By::Rust),
        Orders("Release Acquire", Release, Acquire, By::Rust),
        Orders("Relaxed", Relaxed, Relaxed, By::Consistency),
    ] {
        message_passing(member, orders, by, move |word| put(word, 1, store), move |word| get(word, load));
    }
    message_passing(
        member,
        "fences",
        By::Rust,
        |word| {
            fence(Release);
            put(word, 1, Relaxed);
        },
        |word| {
            let value = get(word, Relaxed);
            fence(Acquire);
            value
        },
    );
    message_passing(member, "swap", By::Rust, |word| _ = word.swap(1, Release), |word| word.fetch_add(0, Acquire));
    plain_message_passing(member);

    for Orders(orders, store, load, by) in [
        Orders("SeqCst", SeqCst, SeqCst, By::Rust),
        Orders("Release Acquire", Release, Acquire, By::Consistency),
        Orders("Relaxed", Relaxed, Relaxed, By::Consistency),
    ] {
        store_buffering(member, orders, by, move |word| put(word, 1, store), move |word| get(word, load));
    }
    store_buffering(
        member,
        "fences",
        By::Rust,
        |word| {
            put(word, 1, Relaxed);
            fence(SeqCst);
        },
        |word| get(word, Relaxed),
    );
    store_buffering(member, "swap", By::Rust, |word| _ = word.swap(1, SeqCst), |word| word.fetch_add(0, SeqCst));

    for Orders(orders, store, load, by) in [
        Orders("SeqCst", SeqCst, SeqCst, By::Rust),
        Orders("Release Acquire", Release, Acquire, By::Rust),
        Orders("Relaxed", Relaxed, Relaxed, By::Consistency),
    ] {
        load_buffering(member, orders, by, store, load);
        causality(member, orders, by, store, load);
        store_after_load(member, orders, by, store, load);
    }
    for Orders(orders, store, load, by) in [
        Orders("SeqCst", SeqCst, SeqCst, By::Rust),
        Orders("Release Acquire", Release, Acquire, By::Consistency),
        Orders("Relaxed", Relaxed, Relaxed, By::Consistency),
    ] {
        two_writes_each(member, orders, by, store);
        store_then_load(member, orders, by, store, load);
        independent_reads(member, orders, by, store, load, || ());
    }
    independent_reads(member, "fences", By::Rust, Relaxed, Relaxed, || fence(SeqCst));
    coherence(member);
    release_sequence(member);
    chain_of_changes(member);
    tickets(member);
}

/// A store that the compiler does not move: what is left to reorder it is the processor.
#[inline(always)]
fn put(word: &AtomicU32, value: u32, order: Ordering) {
    compiler_fence(SeqCst);
    word.store(value, order);
    compiler_fence(SeqCst);
}

#[inline(always)]
fn get(word: &AtomicU32, order: Ordering) -> u32 {
    compiler_fence(SeqCst);
    let value = word.load(order);
    compiler_fence(SeqCst);
    value
}

/// One side writes a message and then a flag; the other one sees the flag and not the message.
fn message_passing(
    member: &mut Member<'_>,
    orders: &'static str,
    by: By,
    raise: impl Fn(&AtomicU32),
    look: impl Fn(&AtomicU32) -> u32,
) {
    let act = |side, cell: Cell<'_>| match side {
        0 => {
            put(cell.x, 1, Relaxed);
            raise(cell.y);
            [0, 0]
        }
        _ => [look(cell.y), get(cell.x, Relaxed)],
    };
    member.test(("MP", orders), 2, by, act, |outcome| outcome.read[1] == [1, 0]);
}

/// The message is no atomic: what a thread keeps of the words beside it must not be an old copy of it.
fn plain_message_passing(member: &mut Member<'_>) {
    let act = |side, cell: Cell<'_>| match side {
        0 => {
            cell.plain.set(1);
            cell.y.store(1, Release);
            [0, 0]
        }
        _ => match cell.y.load(Acquire) {
            0 => [0, 0],
            flag => [flag, cell.plain.get()],
        },
    };
    member.test(("MP", "plain"), 2, By::Rust, act, |outcome| outcome.read[1] == [1, 0]);
}

/// Each side writes its word and does not see the other's.
fn store_buffering(
    member: &mut Member<'_>,
    orders: &'static str,
    by: By,
    write: impl Fn(&AtomicU32),
    look: impl Fn(&AtomicU32) -> u32,
) {
    let act = |side, cell: Cell<'_>| {
        let (own, other) = if side == 0 { (cell.x, cell.y) } else { (cell.y, cell.x) };
        write(own);
        [look(other), 0]
    };
    member.test(("SB", orders), 2, by, act, |outcome| outcome.read[0][0] == 0 && outcome.read[1][0] == 0);
}

/// Each side sees what the other one writes after it has seen this side's.
fn load_buffering(member: &mut Member<'_>, orders: &'static str, by: By, store: Ordering, load: Ordering) {
    let act = |side, cell: Cell<'_>| {
        let (own, other) = if side == 0 { (cell.x, cell.y) } else { (cell.y, cell.x) };
        let seen = get(other, load);
        put(own, 1, store);
        [seen, 0]
    };
    member.test(("LB", orders), 2, by, act, |outcome| outcome.read[0][0] == 1 && outcome.read[1][0] == 1);
}

/// S: a side sees the flag of the other one and writes, and what it wrote is the older value.
fn store_after_load(member: &mut Member<'_>, orders: &'static str, by: By, store: Ordering, load: Ordering) {
    let act = |side, cell: Cell<'_>| match side {
        0 => {
            put(cell.x, 2, Relaxed);
            put(cell.y, 1, store);
            [0, 0]
        }
        _ => {
            let seen = get(cell.y, load);
            put(cell.x, 1, Relaxed);
            [seen, 0]
        }
    };
    member.test(("S", orders), 2, by, act, |outcome| outcome.read[1][0] == 1 && outcome.x == 2);
}

/// R: a side's write is the newer one, and yet it does not see what the other one wrote before.
fn store_then_load(member: &mut Member<'_>, orders: &'static str, by: By, store: Ordering, load: Ordering) {
    let act = |side, cell: Cell<'_>| match side {
        0 => {
            put(cell.x, 1, store);
            put(cell.y, 1, store);
            [0, 0]
        }
        _ => {
            put(cell.y, 2, store);
            [get(cell.x, load), 0]
        }
    };
    member.test(("R", orders), 2, by, act, |outcome| outcome.y == 2 && outcome.read[1][0] == 0);
}

/// 2+2W: of each word, the older value is the one that was written second.
fn two_writes_each(member: &mut Member<'_>, orders: &'static str, by: By, store: Ordering) {
    let act = |side, cell: Cell<'_>| {
        let (first, second) = if side == 0 { (cell.x, cell.y) } else { (cell.y, cell.x) };
        put(first, 1, store);
        put(second, 2, store);
        [0, 0]
    };
    member.test(("2+2W", orders), 2, by, act, |outcome| outcome.x == 1 && outcome.y == 1);
}

/// The third side sees what the second wrote after the first, but not what the first wrote.
fn causality(member: &mut Member<'_>, orders: &'static str, by: By, store: Ordering, load: Ordering) {
    let act = |side, cell: Cell<'_>| match side {
        0 => {
            put(cell.x, 1, store);
            [0, 0]
        }
        1 => {
            let seen = get(cell.x, load);
            put(cell.y, 1, store);
            [seen, 0]
        }
        2 => [get(cell.y, load), get(cell.x, load)],
        _ => [0, 0],
    };
    let is_forbidden = |outcome: &Outcome| outcome.read[1][0] == 1 && outcome.read[2] == [1, 0];
    member.test(("WRC", orders), 4, by, act, is_forbidden);
}

/// Two sides see two writes in opposite orders.
fn independent_reads(
    member: &mut Member<'_>,
    orders: &'static str,
    by: By,
    store: Ordering,
    load: Ordering,
    between: impl Fn(),
) {
    let act = |side, cell: Cell<'_>| {
        let (one, two) = if side % 2 == 0 { (cell.x, cell.y) } else { (cell.y, cell.x) };
        if side < 2 {
            put(one, 1, store);
            return [0, 0];
        }
        let first = get(one, load);
        between();
        [first, get(two, load)]
    };
    let is_forbidden = |outcome: &Outcome| outcome.read[2] == [1, 0] && outcome.read[3] == [1, 0];
    member.test(("IRIW", orders), 4, by, act, is_forbidden);
}

/// All sides agree on the order of the writes of one word, whatever the order of their accesses.
fn coherence(member: &mut Member<'_>) {
    let act = |side, cell: Cell<'_>| match side {
        0 | 1 => {
            put(cell.x, side as u32 + 1, Relaxed);
            [0, 0]
        }
        _ => [get(cell.x, Relaxed), get(cell.x, Relaxed)],
    };
    let is_forbidden = |outcome: &Outcome| {
        let [.., third, fourth] = outcome.read;
        let is_back = |[first, second]: [u32; 2]| first != 0 && second == 0;
        let [first, second] = third;
        let is_opposite = first != 0 && second != 0 && first != second && fourth == [second, first];
        is_back(third) || is_back(fourth) || is_opposite
    };
    member.test(("CoRR", "Relaxed"), 4, By::Rust, act, is_forbidden);
}

/// A change by another thread, of whatever order, continues the release sequence that a store began.
fn release_sequence(member: &mut Member<'_>) {
    let act = |side, cell: Cell<'_>| match side {
        0 => {
            put(cell.x, 1, Relaxed);
            put(cell.y, 10, Release);
            [0, 0]
        }
        1 => [cell.y.fetch_add(1, Relaxed), 0],
        2 => [get(cell.y, Acquire), get(cell.x, Relaxed)],
        _ => [0, 0],
    };
    let is_forbidden = |outcome: &Outcome| outcome.read[2][0] >= 10 && outcome.read[2][1] == 0;
    member.test(("release sequence", "Relaxed"), 4, By::Rust, act, is_forbidden);
}

/// What is written before one of several changes of a word is seen after a later change.
fn chain_of_changes(member: &mut Member<'_>) {
    let act = |side, cell: Cell<'_>| match side {
        0 => {
            put(cell.x, 1, Relaxed);
            [cell.y.fetch_add(1, Release), 0]
        }
        1 | 2 => [cell.y.fetch_add(1, AcqRel), 0],
        _ => [cell.y.fetch_add(1, Acquire), get(cell.x, Relaxed)],
    };
    // All three others changed the word before.
    member.test(("RMW chain", "Release Acquire"), 4, By::Rust, act, |outcome| outcome.read[3] == [3, 0]);
}

/// No change is lost, and no two sides get the same ticket, by any of three ways to change a word.
fn tickets(member: &mut Member<'_>) {
    let act = |side, cell: Cell<'_>| {
        let by_exchange = || {
            let mut seen = get(cell.x, Relaxed);
            while let Err(now) = cell.x.compare_exchange_weak(seen, seen + 1, Relaxed, Relaxed) {
                seen = now;
            }
            seen
        };
        let by_add = || cell.x.fetch_add(1, Relaxed);
        [if side % 2 == 0 { by_add() } else { by_exchange() }, 0]
    };
    let is_forbidden = |outcome: &Outcome| {
        let mut tickets = outcome.read.map(|[ticket, _]| ticket);
        tickets.sort_unstable();
        tickets != [0, 1, 2, 3] || outcome.x != 4
    };
    member.test(("tickets", "Relaxed"), 4, By::Rust, act, is_forbidden);
}
