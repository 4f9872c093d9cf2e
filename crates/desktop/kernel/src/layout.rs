//! Layout: lists the visible widgets by level, measures texts that changed, and places what changed, level by level.

use crate::memory::*;
use crate::tree::GONE;
use crate::{bar, flex, lines, scroll, text, window};
use gpu_run_kernel::gpu::{load, store};
use gpu_run_kernel::team::Team;

pub fn layout(team: &Team) {
    list(team);
    let listed = load(S_LISTED);
    team.for_each(listed, |i| {
        let widget = get(T_BY_LEVEL, i);
        if has(widget, F_MEASURE) {
            text::measure(widget);
            unmark(widget, F_MEASURE);
        }
    });
    if team.leads() {
        size_desktop();
        bar::place();
        window::fit();
    }
    team.meet();
    let levels = load(S_LEVELS);
    let mut level = 0;
    while level < levels {
        let (from, to) = (load(LEVELS + level * 4), load(LEVELS + level * 4 + 4));
        team.for_each(to - from, |i| {
            let widget = get(T_BY_LEVEL, from + i);
            if has(widget, F_DIRTY | F_RESIZED) {
                unmark(widget, F_DIRTY | F_RESIZED);
                set(T_CONTENT, widget, 0);
                if flex::is_container(widget) {
                    flex::place(widget, flex::pair(W_W, W_H, widget), get(W_DEFINITE, widget));
                }
            }
        });
        level += 1;
    }
    lines::find(team);
    if team.leads() {
        scroll::reveal();
    }
    team.meet();
}

/// Lists the visible widgets, one level after the other.
pub fn list(team: &Team) {
    if team.leads() {
        set(T_BY_LEVEL, 0, 0);
        store(LEVELS, 0);
        store(LEVELS + 4, 1);
    }
    team.meet();
    let (mut level, mut from, mut to) = (1, 0, 1);
    while to > from && level < MAX_LEVELS {
        let more = team.scan(
            to - from,
            |i| children(get(T_BY_LEVEL, from + i), |_, _| {}),
            |i, before| {
                children(get(T_BY_LEVEL, from + i), |rank, child| set(T_BY_LEVEL, to + before + rank, child));
            },
        );
        (from, to) = (to, to + more);
        if team.leads() {
            store(LEVELS + level * 4 + 4, to);
        }
        level += 1;
    }
    if team.leads() {
        store(S_LISTED, to);
        store(S_LEVELS, level);
    }
    team.meet();
}

/// Calls `body` with the rank and number of each visible child, and returns how many there are.
#[inline(always)]
pub fn children(widget: u32, mut body: impl FnMut(u32, u32)) -> u32 {
    let (mut count, mut child) = (0, get(W_FIRST, widget));
    while child != NONE {
        if get(W_STYLE, child) & GONE == 0 {
            body(count, child);
            count += 1;
        }
        child = get(W_NEXT, child);
    }
    count
}

/// The desktop is as large as the frame.
fn size_desktop() {
    let scale = load(D_SCALE) as f32 / 256.0;
    let (w, h) = (load(D_WIDTH) as f32 / scale, load(D_HEIGHT) as f32 / scale);
    if getf(W_W, 0) != w || getf(W_H, 0) != h {
        setf(W_W, 0, w);
        setf(W_H, 0, h);
        set(W_DEFINITE, 0, flex::BOTH);
        mark(0, F_RESIZED);
    }
}
