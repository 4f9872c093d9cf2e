//! Frame end: tells owners, counts, and moves the animation's clock. The damage list is `DAMAGE`: which tiles this frame drew.

use crate::animation::period;
use crate::memory::*;
use gpu_run_kernel::event::Event;
use gpu_run_kernel::frame::send;
use gpu_run_kernel::gpu::{bump64, load, store, store64};
use gpu_run_kernel::layout::*;
use gpu_run_kernel::team::Team;

/// What ends: the tick's number, its events, and how many messages the host has taken from the ring of answers.
pub struct Ends {
    pub number: u64,
    pub events: u32,
    pub taken: u32,
}

pub fn frame_end(team: &Team, it: &Ends) {
    tell_owners(team, it);
    if team.leads() {
        if load(S_DRAWN) != 0 {
            store(S_FRAMES, load(S_FRAMES).wrapping_add(1));
            store(S_TILES, load(S_TILES).wrapping_add(load(S_DRAWN)));
        }
        store(D_CLOCK, load(D_CLOCK).wrapping_add(period()));
        store(S_INPUTS, 0);
        store(S_MESSAGES, 0);
        store(S_WRITES, 0);
        store64(H_TICK, it.number + 1);
        bump64(H_EVENTS, it.events as u64);
    }
    team.meet();
}

/// Sends the messages of this tick to the host. Those that do not fit into the ring are dropped and counted, as the machine's answers.
fn tell_owners(team: &Team, it: &Ends) {
    let (count, head) = (load(S_MESSAGES), load(S_OUT_HEAD));
    let room = (OUT_CAPACITY - head.wrapping_sub(it.taken)).min(count);
    team.for_each(room, |rank| {
        let at = MESSAGES + rank * MESSAGE_BYTES;
        let told = Event {
            kind: load(at) as u16,
            flags: (load(at) >> 16) as u16,
            key: load(at + 4),
            a: load(at + 8),
            b: load(at + 12),
            id: load(at + 16),
            wait: it.number as u32,
        };
        send(OUT_RING, OUT_CAPACITY, head.wrapping_add(rank), &told);
    });
    if team.leads() && count != 0 {
        store(S_OUT_HEAD, head.wrapping_add(room));
        store(S_LOST, load(S_LOST) + count - room);
    }
    team.meet();
}
