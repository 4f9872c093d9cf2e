//! Visibility and order: each widget's place on the desktop, what it may draw on, and its place in the order of drawing: before its
//! children, and after its earlier siblings and everything in them. Two passes over the levels give every widget the number of those
//! before it, so nothing needs to be compared.

use crate::event::{kinds, looks};
use crate::layout::children;
use crate::math::round;
use crate::memory::*;
use crate::scroll;
use crate::theme::{BAR_ZONE, TITLE_BAR};
use gpu_run_kernel::gpu::load;
use gpu_run_kernel::team::Team;

pub fn order(team: &Team) {
    team.for_each(load(D_USED), |widget| set(W_ORDER, widget, 0));
    let levels = load(S_LEVELS);
    let mut level = levels;
    while level > 0 {
        level -= 1;
        each_of(team, level, |widget| {
            let mut size = 1;
            children(widget, |_, child| size += get(T_SIZE, child));
            set(T_SIZE, widget, size);
        });
    }
    if team.leads() {
        set(W_ORDER, 0, 1);
        set(T_BY_ORDER, 0, 0);
        setf(W_AT_X, 0, 0.0);
        setf(W_AT_Y, 0, 0.0);
        set(W_CLIP_FROM, 0, 0);
        set(W_CLIP_TO, 0, load(D_WIDTH) | load(D_HEIGHT) << 16);
    }
    team.meet();
    while level < levels {
        each_of(team, level, place_children);
        level += 1;
    }
}

fn each_of(team: &Team, level: u32, body: impl Fn(u32)) {
    let (from, to) = (load(LEVELS + level * 4), load(LEVELS + level * 4 + 4));
    team.for_each(to - from, |i| body(get(T_BY_LEVEL, from + i)));
}

fn place_children(widget: u32) {
    let mut order = get(W_ORDER, widget) + 1;
    let (x, y) = (getf(W_AT_X, widget), getf(W_AT_Y, widget));
    let (from, to) = content_clip(widget, x, y);
    let up = if get(W_KIND, widget) == kinds::SCROLL { scroll::offset(widget) } else { 0.0 };
    children(widget, |_, child| {
        set(W_ORDER, child, order);
        set(T_BY_ORDER, order - 1, child);
        order += get(T_SIZE, child);
        setf(W_AT_X, child, x + getf(W_X, child));
        setf(W_AT_Y, child, y + getf(W_Y, child) - up);
        set(W_CLIP_FROM, child, from);
        set(W_CLIP_TO, child, to);
    });
}

/// What a widget's children may draw on: in a window, its content; in a panel that scrolls, what is beside its bar.
fn content_clip(widget: u32, x: f32, y: f32) -> (u32, u32) {
    let (from, to) = (get(W_CLIP_FROM, widget), get(W_CLIP_TO, widget));
    let insets = match get(W_KIND, widget) {
        kinds::WINDOW => [0.0, TITLE_BAR, 0.0, 0.0],
        kinds::SCROLL => {
            // A surface of its own has an edge.
            let edge = if get(W_LOOK, widget) == looks::STRONG { 1.0 } else { 0.0 };
            [edge, edge, if scroll::bar(widget).is_some() { BAR_ZONE } else { edge }, edge]
        }
        _ => return (from, to),
    };
    let scale = load(D_SCALE) as f32 / 256.0;
    let (width, height) = (load(D_WIDTH) as i32, load(D_HEIGHT) as i32);
    let pixel = |at: f32, most: i32| round(at * scale).clamp(0, most) as u32;
    let (left, top) = (pixel(x + insets[0], width), pixel(y + insets[1], height));
    let (right, bottom) = (x + getf(W_W, widget) - insets[2], y + getf(W_H, widget) - insets[3]);
    let (right, bottom) = (pixel(right, width), pixel(bottom, height));
    let from = (from & 0xFFFF).max(left) | (from >> 16).max(top) << 16;
    let to = (to & 0xFFFF).min(right) | (to >> 16).min(bottom) << 16;
    (from, to)
}
