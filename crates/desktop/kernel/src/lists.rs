//! The lists of the visible widgets: level by level, and in the order of drawing: a widget before its children, and after its earlier
//! siblings and everything in them. They follow from the tree and from what is hidden in it, and are made anew only when that changed.
//!
//! The children of a widget follow each other in the list by level, so sums over them are differences of sums over the level.

use crate::memory::*;
use crate::tree::{self, GONE};
use gpu_run_kernel::gpu::{add, load, store};
use gpu_run_kernel::team::Team;

/// A widget is or is not in its place any more, or not visible any more: the lists must be made anew.
pub fn forget() {
    store(S_LISTED, 0);
    store(S_ORDERED, 0);
}

/// Makes the list by level, if it is not known.
pub fn by_level(team: &Team) {
    if load(S_LISTED) == 0 {
        count_children(team);
        list_levels(team);
    }
}

/// Makes the list in the order of drawing, if it is not known. The list by level is.
pub fn in_order(team: &Team) {
    if load(S_ORDERED) != 0 {
        return;
    }
    let levels = load(S_LEVELS);
    sum_sizes(team, levels);
    number(team, levels);
    if team.leads() {
        store(S_ORDERED, 1);
    }
    team.meet();
}

/// Calls `body` with each widget of a level and its place in the list by level.
#[inline(always)]
pub fn each_of(team: &Team, level: u32, body: impl Fn(u32, u32)) {
    let (from, to) = range(level);
    team.for_each(to - from, |i| body(get(T_BY_LEVEL, from + i), from + i));
}

/// Calls `body` with the rank and number of each visible child.
#[inline(always)]
pub fn children(widget: u32, mut body: impl FnMut(u32, u32)) {
    let (mut count, mut child) = (0, get(W_FIRST, widget));
    while child != NONE {
        if get(W_STYLE, child) & GONE == 0 {
            body(count, child);
            count += 1;
        }
        child = get(W_NEXT, child);
    }
}

fn range(level: u32) -> (u32, u32) {
    (load(LEVELS + level * 4), load(LEVELS + level * 4 + 4))
}

fn count_children(team: &Team) {
    let used = load(D_USED);
    team.for_each(used, |widget| set(T_CHILDREN, widget, 0));
    team.for_each(used, |widget| {
        if widget != 0 && tree::exists(widget) && get(W_STYLE, widget) & GONE == 0 {
            add(T_CHILDREN + get(W_PARENT, widget) * 4, 1);
        }
    });
}

fn list_levels(team: &Team) {
    if team.leads() {
        set(T_BY_LEVEL, 0, 0);
        store(LEVELS, 0);
        store(LEVELS + 4, 1);
    }
    team.meet();
    let (mut levels, mut from, mut to) = (1, 0, 1);
    while levels < MAX_LEVELS {
        let more = team.scan(
            to - from,
            |i| get(T_CHILDREN, get(T_BY_LEVEL, from + i)),
            |i, before| {
                let widget = get(T_BY_LEVEL, from + i);
                set(T_FIRST, widget, to + before);
                children(widget, |rank, child| set(T_BY_LEVEL, to + before + rank, child));
            },
        );
        if more == 0 {
            break;
        }
        (from, to) = (to, to + more);
        levels += 1;
        if team.leads() {
            store(LEVELS + levels * 4, to);
        }
    }
    if team.leads() {
        store(S_LISTED, to);
        store(S_LEVELS, levels);
    }
    team.meet();
}

/// Finds how many widgets are at and below each one, and at and below those before it in its level, from the innermost level outwards.
fn sum_sizes(team: &Team, levels: u32) {
    let mut level = levels;
    while level > 0 {
        level -= 1;
        let (from, to) = range(level);
        team.scan(
            to - from,
            |i| size(get(T_BY_LEVEL, from + i)),
            |i, before| {
                set(T_BEFORE, from + i, before);
                set(T_SIZE, from + i, size(get(T_BY_LEVEL, from + i)));
            },
        );
    }
}

/// How many widgets are at and below a widget, when this is known of the level below.
fn size(widget: u32) -> u32 {
    let (first, count) = (get(T_FIRST, widget), get(T_CHILDREN, widget));
    if count == 0 {
        return 1;
    }
    let last = first + count - 1;
    1 + get(T_BEFORE, last) + get(T_SIZE, last) - get(T_BEFORE, first)
}

/// Gives the widgets their places in the order of drawing, from the outermost level inwards.
fn number(team: &Team, levels: u32) {
    team.for_each(load(D_USED), |widget| set(W_ORDER, widget, 0));
    let mut level = 0;
    while level < levels {
        each_of(team, level, |widget, place| {
            let mut order = 1;
            if widget != 0 {
                let parent = get(W_PARENT, widget);
                let siblings = get(T_BEFORE, place) - get(T_BEFORE, get(T_FIRST, parent));
                order = get(W_ORDER, parent) + 1 + siblings;
            }
            set(W_ORDER, widget, order);
            set(T_BY_ORDER, order - 1, widget);
        });
        level += 1;
    }
}
