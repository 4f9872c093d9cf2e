//! The work phase: work items change whole objects, one round in each tick.
//!
//! An item adds a number to every word of its object; the number is a hash of the item's seed, its rounds left and the
//! word's index. The words of all items of a tick form one long list, which the threads share evenly, whatever the sizes
//! of the objects. Addition commutes, so items for the same object need no order.

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
    let (spawned, doing) = (tick.events != 0, tail != head);
    if !spawned && !doing {
        return;
    }
    // All threads have read head and tail before the leader changes them.
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

/// The numbers of items ever taken from and ever put into the queue.
struct Queue {
    head: u32,
    tail: u32,
}

/// Does one round of the first items in the queue.
fn round(tick: &Tick<'_>, queue: &mut Queue) {
    let team = tick.team;
    let head = queue.head;
    let waiting = queue.tail.wrapping_sub(head).min(WORK_ITEMS);
    let words = |i: u32| object_words(load(item(head.wrapping_add(i)) + WORK_KEY));
    team.scan(waiting, words, |i, before| store(X_RANK + i * 4, before));
    // As many items as have at most `WORK_WORDS` words together, and always the first.
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
    // Items with rounds left go to the end of the queue.
    let goes_on = |i: u32| load(item(head.wrapping_add(i)) + WORK_ROUNDS) > 1 && words(i) != 0;
    let tail = queue.tail;
    let kept = team.compact(items, goes_on, |i, rank| store(X_LIST + rank * 4, i));
    team.for_each(kept, |rank| {
        let from = item(head.wrapping_add(load(X_LIST + rank * 4)));
        // First to memory outside the queue: if the queue is full, its end is the place of an item that is still to be read.
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

/// Appends an item to the queue for each work event of the tick. Events that find the queue full are refused.
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
        // A key that no object can have becomes `OBJECTS_MAX`, for which `object_words` returns 0.
        store(to + WORK_KEY, event.key.min(OBJECTS_MAX));
        store(to + WORK_SEED, event.a);
        store(to + WORK_ROUNDS, event.b);
    });
    if team.leads() {
        store(H_REFUSED, load(H_REFUSED) + wanted.saturating_sub(room));
    }
    queue.tail = tail.wrapping_add(wanted.min(room));
}

/// Returns the number of whole words of an object, 0 if there is no such object.
#[inline(always)]
fn object_words(key: u32) -> u32 {
    if key >= OBJECTS_MAX || load(OBJECTS + key * OBJECT_BYTES + OBJECT_ADDRESS) == 0 {
        return 0;
    }
    load(OBJECTS + key * OBJECT_BYTES + OBJECT_SIZE) / 4
}

/// Hashes a word: the final mix of MurmurHash3.
#[inline(always)]
pub fn mix(seed: u32) -> u32 {
    let mut x = seed;
    x = (x ^ x >> 16).wrapping_mul(0x85EB_CA6B);
    x = (x ^ x >> 13).wrapping_mul(0xC2B2_AE35);
    x ^ x >> 16
}
