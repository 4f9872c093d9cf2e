//! Input: takes all events of the tick. Commands and settings take effect at once, in their order; what the user did is listed for the
//! next two phases.

use crate::event::{PIXELS, *};
use crate::memory::*;
use crate::{canvas, plot, runs, tree};
use gpu_run_kernel::event::Event;
use gpu_run_kernel::gpu::{load, load64, store};
use gpu_run_kernel::input::{get as event, put};
use gpu_run_kernel::layout::{RING_LINE, S_COMMAND_FROM};
use gpu_run_kernel::team::Team;

/// A quarter to four times, in 256ths.
const SCALES: core::ops::RangeInclusive<u32> = 64..=1024;

pub fn input(team: &Team, events: u32) {
    if events == 0 {
        return;
    }
    let staged = load(S_COMMAND_FROM);
    team.for_each(events, |i| {
        let from = staged + i * RING_LINE;
        let words = [load64(from), load64(from + 8), load64(from + 16), load64(from + 24)];
        let it = Event::unpack(words);
        put(i, &it);
        runs::expect(i, &it);
    });
    let left = runs::spread(team, events);
    if team.leads() {
        take(left, events);
    }
    team.meet();
    canvas::apply(team);
}

/// Takes the events that are left for the leader.
fn take(left: u32, events: u32) {
    let (mut inputs, mut refused) = (0, 0);
    let mut place = 0;
    while place < left {
        let i = load(EVENTS_LEFT + place * 4);
        let it = event(i);
        match it.kind {
            MOVE | PRESS | RELEASE | WHEEL | KEY | TYPE | TOUCH | PASTE => {
                // Of several moves in a row, only the last one counts.
                if it.kind == MOVE && inputs > 0 && event(load(INPUTS + (inputs - 1) * 8)).kind == MOVE {
                    inputs -= 1;
                }
                store(INPUTS + inputs * 8, i);
                store(INPUTS + inputs * 8 + 4, NONE);
                inputs += 1;
            }
            _ => refused += !command(i, events, &it) as u32,
        }
        place += 1;
    }
    store(S_INPUTS, inputs);
    store(D_REFUSED, load(D_REFUSED) + refused);
}

/// Does what an event of the tick asks for, if that is allowed.
pub fn command(i: u32, events: u32, it: &Event) -> bool {
    match it.kind {
        CREATE => tree::create(it.key, it.a, it.b, it.id),
        DESTROY => tree::destroy(it.key),
        SET => tree::change(it.key, it.a, it.b),
        PIXELS => canvas::write(it),
        POINT => plot::add(it.key, it.flags as u32, it.a),
        ACCENT if it.a >> 24 == 0 => {
            store(D_ACCENT, it.a | 0xFF00_0000);
            store(D_CHANGED, 1);
            true
        }
        TEXT if tree::exists(it.key) && it.flags & 0xFF <= 6 => {
            if it.flags & TEXT_BEGINS != 0 {
                tree::begin_text(it.key, runs::coming(i, events));
            }
            tree::write(it.key, it.flags as u32 & 0xFF, [it.a, it.b, it.id])
        }
        RESIZE => {
            let allowed = (1..=MAX_WIDTH).contains(&it.a) && (1..=MAX_HEIGHT).contains(&it.b);
            if !allowed || !SCALES.contains(&it.key) {
                return false;
            }
            store(D_WIDTH, it.a);
            store(D_HEIGHT, it.b);
            store(D_RATIO, it.key);
            scale();
            true
        }
        THEME if it.a <= 1 => {
            store(D_THEME, it.a);
            store(D_CHANGED, 1);
            true
        }
        ZOOM if SCALES.contains(&it.a) => {
            store(D_ZOOM, it.a);
            scale();
            true
        }
        EFFECTS if it.a <= effects::NONE => {
            store(D_EFFECTS, it.a);
            store(D_CHANGED, 1);
            true
        }
        RATE if (1..=1000).contains(&it.a) => {
            store(D_RATE, it.a);
            true
        }
        _ => false,
    }
}

/// Everything has the size that the display and the user ask for, within the limits.
fn scale() {
    store(D_SCALE, (load(D_RATIO) * load(D_ZOOM) / 256).clamp(*SCALES.start(), *SCALES.end()));
    store(D_CHANGED, 1);
}
