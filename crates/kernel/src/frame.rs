//! The last phase of a tick, the frame end: sends answers, and counts the tick as done.

use crate::event::{self, Event};
use crate::gpu::*;
use crate::input::get;
use crate::layout::*;
use crate::tick::Tick;

pub fn end(tick: &Tick<'_>) {
    if tick.events != 0 {
        answers(tick);
    }
    if tick.team.leads() {
        store64(H_TICK, tick.number + 1);
        bump64(H_EVENTS, tick.events as u64);
    }
    tick.team.meet();
}

/// Sends an answer to each event that asks for one, in the order of the queue. Answers that do not fit into the ring are
/// dropped and counted: a host that does not read must not block the machine.
fn answers(tick: &Tick<'_>) {
    let team = tick.team;
    let head = load(S_OUT_HEAD);
    let asks = |i: u32| get(i).flags & event::ANSWER != 0;
    let wanted = team.compact(tick.events, asks, |i, rank| store(X_LIST + rank * 4, i));
    if wanted == 0 {
        return;
    }
    let room = (OUT_CAPACITY - head.wrapping_sub(tick.taken)).min(wanted);
    team.for_each(room, |rank| {
        let i = load(X_LIST + rank * 4);
        let event = get(i);
        let reply = Event {
            kind: event.kind | event::REPLY,
            flags: event.flags,
            key: event.key,
            a: load(X_RESULT + i * 4),
            b: load(X_VALUE + i * 4),
            id: event.id,
            wait: tick.number as u32,
        };
        send(OUT_RING, OUT_CAPACITY, head.wrapping_add(rank), &reply);
    });
    if team.leads() {
        store(S_OUT_HEAD, head.wrapping_add(room));
        store(S_LOST, load(S_LOST) + wanted - room);
    }
    team.meet();
}

/// Writes the `index`th message of a ring. The order of the stores does not matter, because every word has a tag.
#[inline(always)]
pub fn send(ring: u32, capacity: u32, index: u32, event: &Event) {
    let at = ring + index % capacity * RING_LINE;
    let tag = crate::tagged::lap_tag(index, capacity);
    let words = event.pack();
    bus_put(at, words[0] | tag);
    bus_put(at + 8, words[1] | tag);
    bus_put(at + 16, words[2] | tag);
    bus_put(at + 24, words[3] | tag);
}
