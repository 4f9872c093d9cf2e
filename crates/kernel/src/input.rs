//! The input phase: fills the tick's queue with the staged events, then with the events of timers that are due.

use crate::event::Event;
use crate::gpu::*;
use crate::layout::*;
use crate::tick::Tick;
use crate::timers;

pub fn input(tick: &mut Tick<'_>) {
    if tick.events != 0 {
        let staged = load(S_COMMAND_FROM);
        tick.team.for_each(tick.events, |i| {
            let from = staged + i * RING_LINE;
            let words = [load64(from), load64(from + 8), load64(from + 16), load64(from + 24)];
            put(i, &Event::unpack(words));
        });
    }
    if tick.number >= load64(H_DEADLINE) {
        tick.events += timers::fire(tick);
    }
}

/// Returns the `i`th event of the queue.
#[inline(always)]
pub fn get(i: u32) -> Event {
    read(QUEUE + i * EVENT_BYTES)
}

#[inline(always)]
pub fn put(i: u32, event: &Event) {
    write(QUEUE + i * EVENT_BYTES, event);
}

/// Reads an event of the state.
#[inline(always)]
pub fn read(at: u32) -> Event {
    Event::from_words([load(at), load(at + 4), load(at + 8), load(at + 12), load(at + 16), load(at + 20)])
}

/// Writes an event to the state.
#[inline(always)]
pub fn write(at: u32, event: &Event) {
    let words = event.words();
    store(at, words[0]);
    store(at + 4, words[1]);
    store(at + 8, words[2]);
    store(at + 12, words[3]);
    store(at + 16, words[4]);
    store(at + 20, words[5]);
}

/// Sets the result and the value of the `i`th event of the queue.
#[inline(always)]
pub fn answer(i: u32, result: u32, value: u32) {
    store(X_RESULT + i * 4, result);
    store(X_VALUE + i * 4, value);
}
