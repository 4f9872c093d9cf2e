//! Work: items that change whole objects, a round each tick.
//!
//! An item adds a number to every word of its object, made from its seed and the word's place. Words of all items of a tick are one long list that the threads
//! share evenly, however large each object is; adding commutes, so items for one object need no order.

use crate::event;
use crate::gpu::*;
use crate::input::{answer, get};
use crate::layout::*;
use crate::team::find_share;
use crate::tick::Tick;

#[inline(always)]
fn item(number: u32) -> u32 {
    WORK + number % WORK_MAX * WORK_BYTES
}

pub fn work(tick: &Tick<'_>) {
    let (head, tail) = (load(H_WORK_HEAD), load(H_WORK_TAIL));
    // Before the leader changes what was just read.
    let (spawned, doing) = (tick.events != 0, tail != head);
    if !spawned && !doing {
        return;
    }
    tick.team.meet();
    let mut queue = Queue { head, tail };
    if doing {
        round(tick, &mut queue);
    }
    if spawned {
        spawn(tick, &mut queue);
    }
    if tick.team.leads() {
        store(H_WORK_HEAD, queue.head);
        store(H_WORK_TAIL, queue.tail);
    }
    tick.team.meet();
}

/// Items taken and put, ever.
struct Queue {
    head: u32,
    tail: u32,
}

/// One round of the items that come first.
fn round(tick: &Tick<'_>, queue: &mut Queue) {
    let team = tick.team;
    let head = queue.head;
    let waiting = queue.tail.wrapping_sub(head).min(WORK_ITEMS);
    let words = |i: u32| object_words(load(item(head.wrapping_add(i)) + WORK_KEY));
    team.scan(waiting, words, |i, before| store(X_RANK + i * 4, before));
    // As many as are not too much together, and one anyway.
    let fits = |i: u32| i == 0 || load(X_RANK + i * 4) + words(i) <= WORK_WORDS;
    let items = team.reduce_over(waiting, |i| if fits(i) { i + 1 } else { 0 }, u32::max);
    let last = items - 1;
    let all = load(X_RANK + last * 4) + words(last);
    team.for_each(all, |word| {
        let i = find_share(X_RANK, items, word);
        let at = item(head.wrapping_add(i));
        let place = word - load(X_RANK + i * 4);
        let object = OBJECTS + load(at + WORK_KEY) * OBJECT_BYTES;
        let number = mix(load(at + WORK_SEED) ^ load(at + WORK_ROUNDS).rotate_left(16) ^ place);
        add(load(object + OBJECT_ADDRESS) + place * 4, number);
    });
    // Those with rounds to go get in line again.
    let goes_on = |i: u32| load(item(head.wrapping_add(i)) + WORK_ROUNDS) > 1 && words(i) != 0;
    let tail = queue.tail;
    let kept = team.compact(items, goes_on, |i, rank| store(X_LIST + rank * 4, i));
    team.for_each(kept, |rank| {
        let from = item(head.wrapping_add(load(X_LIST + rank * 4)));
        // First beside the queue: it may be full, and this its own place.
        store(X_FREE + rank * 4, load(from + WORK_KEY));
        store(X_WANT + rank * 4, load(from + WORK_SEED));
        store(X_GOT + rank * 4, load(from + WORK_ROUNDS) - 1);
    });
    team.for_each(kept, |rank| {
        let to = item(tail.wrapping_add(rank));
        store(to + WORK_KEY, load(X_FREE + rank * 4));
        store(to + WORK_SEED, load(X_WANT + rank * 4));
        store(to + WORK_ROUNDS, load(X_GOT + rank * 4));
    });
    if team.leads() {
        bump64(H_WORKED, all as u64);
    }
    queue.head = head.wrapping_add(items);
    queue.tail = tail.wrapping_add(kept);
}

/// Events that ask for work.
fn spawn(tick: &Tick<'_>, queue: &mut Queue) {
    let team = tick.team;
    let asks = |i: u32| get(i).kind == event::WORK && get(i).wait == 0;
    let wanted = team.compact(tick.events, asks, |i, rank| store(X_LIST + rank * 4, i));
    if wanted == 0 {
        return;
    }
    let room = WORK_MAX - queue.tail.wrapping_sub(queue.head);
    let tail = queue.tail;
    team.for_each(wanted, |rank| {
        let i = load(X_LIST + rank * 4);
        let event = get(i);
        if rank >= room {
            answer(i, event::NO_ROOM, 0);
            return;
        }
        let to = item(tail.wrapping_add(rank));
        // An object that cannot be is one without words.
        store(to + WORK_KEY, event.key.min(OBJECTS_MAX));
        store(to + WORK_SEED, event.a);
        store(to + WORK_ROUNDS, event.b);
    });
    if team.leads() {
        store(H_REFUSED, load(H_REFUSED) + wanted.saturating_sub(room));
    }
    queue.tail = tail.wrapping_add(wanted.min(room));
}

/// Words of an object, none if there is no such object.
#[inline(always)]
fn object_words(key: u32) -> u32 {
    if key >= OBJECTS_MAX || load(OBJECTS + key * OBJECT_BYTES + OBJECT_ADDRESS) == 0 {
        return 0;
    }
    load(OBJECTS + key * OBJECT_BYTES + OBJECT_SIZE) / 4
}

/// A number from a number: the last steps of MurmurHash3.
#[inline(always)]
pub fn mix(seed: u32) -> u32 {
    let mut x = seed;
    x = (x ^ x >> 16).wrapping_mul(0x85EB_CA6B);
    x = (x ^ x >> 13).wrapping_mul(0xC2B2_AE35);
    x ^ x >> 16
}
