//! A tick of the desktop: one frame, its phases one after the other.

use crate::event::kinds;
use crate::frame_end::Ends;
use crate::memory::*;
use crate::*;
use gpu_run_kernel::gpu::{load, load64, store};
use gpu_run_kernel::layout::{S_COMMAND_NUMBER, S_COMMAND_STAGED, S_COMMAND_TAKEN};
use gpu_run_kernel::team::Team;
use gpu_run_kernel::tick::Phases;

/// Writes an empty desktop's state. The memory must be zero, and the machine's header written.
pub fn boot() {
    tree::reset(0, kinds::DESKTOP);
    store(D_MAGIC, MAGIC);
    store(D_VERSION, VERSION);
    store(D_WIDTH, 1280);
    store(D_HEIGHT, 800);
    [D_SCALE, D_RATIO, D_ZOOM].iter().for_each(|word| store(*word, 256));
    store(D_RATE, 120);
    store(D_USED, 1);
    [D_HOVER, D_PRESS, D_FOCUS, D_FRONT].iter().for_each(|word| store(*word, NONE));
    overlay::boot();
    mark(0, F_DIRTY);
    store(D_CHANGED, 1);
}

pub fn tick(team: &Team) {
    let ends = Ends { number: load64(S_COMMAND_NUMBER), events: load(S_COMMAND_STAGED), taken: load(S_COMMAND_TAKEN) };
    let mut clock = Phases::begin(team, LAST_PHASE);
    let known = load(S_KNOWN) != 0;
    if !known {
        font::unpack(team);
        geometry::forget(team);
        glyphs::forget(team);
    }
    input::input(team, ends.events);
    clock.end(1);
    hit_test::hit_test(team);
    clock.end(2);
    dispatch::dispatch(team);
    // Which frames are drawn follows from the state alone, and so does everything that drawing leaves in the state.
    let draws = load(D_CHANGED) | load(D_MOVING) != 0;
    if draws {
        animation::animate(team);
    }
    clock.end(3);
    if team.leads() {
        store(S_DRAWN, 0);
        store(S_KNOWN, 1);
        store(D_CHANGED, 0);
    }
    team.meet();
    if draws || !known {
        layout::layout(team);
        clock.end(4);
        order::order(team);
        clock.end(5);
        geometry::geometry(team);
        clock.end(6);
        raster::raster(team);
    }
    frame_end::frame_end(team, &ends);
    clock.end(LAST_PHASE);
}
