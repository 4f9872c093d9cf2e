//! Faults for tests: only a kernel built with the feature `faults` can be stalled, or muted
//! ([`C_MUTE`](crate::layout::C_MUTE)).

use crate::event;
use crate::gpu::*;
use crate::input::get;
use crate::tick::Tick;

/// Stalls all workers for the longest time that a STALL event of this tick asks for.
pub fn stall(tick: &Tick<'_>) {
    let milliseconds = tick.team.reduce_over(tick.events, stalls, u32::max);
    if milliseconds == 0 {
        return;
    }
    let until = clock() + milliseconds as u64 * 1_000_000;
    while clock() < until {
        sleep(1000);
    }
}

/// Returns the milliseconds that event `i` asks for; 0 if the event is not a stall.
#[inline(always)]
fn stalls(i: u32) -> u32 {
    let event = get(i);
    if event.kind == event::STALL && event.wait == 0 { event.a } else { 0 }
}
