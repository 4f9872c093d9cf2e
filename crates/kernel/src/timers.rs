//! Timers: events that take effect in a later tick, once or repeatedly.

use crate::event;
use crate::gpu::*;
use crate::input::{answer, get, put, read, write};
use crate::layout::*;
use crate::tick::Tick;

#[inline(always)]
fn deadline(timer: u32) -> u32 {
    TIMERS + timer * TIMER_BYTES + TIMER_DEADLINE
}
#[inline(always)]
fn event_of(timer: u32) -> u32 {
    TIMERS + timer * TIMER_BYTES + TIMER_EVENT
}

/// Appends the events of all timers that are due to the tick's queue; returns how many.
pub fn fire(tick: &Tick<'_>) -> u32 {
    let team = tick.team;
    let due = |timer: u32| load64(deadline(timer)) != 0 && load64(deadline(timer)) <= tick.number;
    let fired = team.compact(TIMERS_MAX, due, |timer, rank| store(X_LIST + rank * 4, timer));
    team.for_each(fired, |i| {
        let timer = load(X_LIST + i * 4);
        let mut event = read(event_of(timer));
        let again = event.flags & event::REPEAT != 0;
        store64(deadline(timer), if again { tick.number + event.wait as u64 } else { 0 });
        if !again {
            add(H_TIMERS, u32::MAX);
        }
        event.wait = 0;
        put(tick.events + i, &event);
    });
    find_next(tick);
    fired
}

/// Stores when the next timer is due. Compares the distances from this tick, because a distance fits in a 32-bit word;
/// the distances are inverted, so that the nearest timer has the maximum and 0 means no timer.
fn find_next(tick: &Tick<'_>) {
    let near = |timer: u32| match load64(deadline(timer)) {
        0 => 0,
        at => !(at.saturating_sub(tick.number).min(0xFFFF_FFFE) as u32),
    };
    let nearest = tick.team.reduce_over(TIMERS_MAX, near, u32::max);
    if tick.team.leads() {
        store64(H_DEADLINE, if nearest == 0 { u64::MAX } else { tick.number + !nearest as u64 });
    }
    tick.team.meet();
}

/// Arms a timer for each event of the tick that has to wait. Events for which no timer is vacant are refused.
pub fn arm(tick: &Tick<'_>) {
    let team = tick.team;
    let waits = |i: u32| get(i).wait != 0;
    let wanted = team.compact(tick.events, waits, |i, rank| store(X_RANK + rank * 4, i));
    if wanted == 0 {
        return;
    }
    let vacant = |timer: u32| load64(deadline(timer)) == 0;
    let there = team.compact(TIMERS_MAX, vacant, |timer, rank| store(X_LIST + rank * 4, timer));
    team.for_each(wanted, |rank| {
        let i = load(X_RANK + rank * 4);
        if rank < there {
            let timer = load(X_LIST + rank * 4);
            let event = get(i);
            store64(deadline(timer), tick.number + event.wait as u64);
            write(event_of(timer), &event);
        } else {
            answer(i, event::NO_ROOM, 0);
        }
    });
    if team.leads() {
        store(H_TIMERS, load(H_TIMERS) + wanted.min(there));
        store(H_REFUSED, load(H_REFUSED) + wanted.saturating_sub(there));
    }
    find_next(tick);
}
