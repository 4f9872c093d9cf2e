//! Order: each widget's place in the order of drawing, if that changed (`lists`), its place on the desktop, and what it may draw on. The
//! last two follow from its parent's, one level after the other.

use crate::event::{kinds, looks};
use crate::lists;
use crate::math::round;
use crate::memory::*;
use crate::scroll;
use crate::theme::{BAR_ZONE, TITLE_BAR};
use gpu_run_kernel::gpu::load;
use gpu_run_kernel::team::Team;

pub fn order(team: &Team) {
    lists::in_order(team);
    let (levels, mut level) = (load(S_LEVELS), 0);
    while level < levels {
        lists::each_of(team, level, |widget, _| place(widget));
        level += 1;
    }
}

/// Places a widget, and notes what its children need to know.
fn place(widget: u32) {
    let (mut x, mut y, mut clip) = (0.0, 0.0, [0, load(D_WIDTH) | load(D_HEIGHT) << 16]);
    if widget != 0 {
        let parent = get(W_PARENT, widget);
        x = getf(W_AT_X, parent) + getf(W_X, widget);
        y = getf(W_AT_Y, parent) + getf(W_Y, widget) - getf(T_UP, parent);
        clip = [get(T_INSIDE_FROM, parent), get(T_INSIDE_TO, parent)];
    }
    setf(W_AT_X, widget, x);
    setf(W_AT_Y, widget, y);
    set(W_CLIP_FROM, widget, clip[0]);
    set(W_CLIP_TO, widget, clip[1]);
    let [from, to] = content_clip(widget, x, y, clip);
    set(T_INSIDE_FROM, widget, from);
    set(T_INSIDE_TO, widget, to);
    setf(T_UP, widget, if get(W_KIND, widget) == kinds::SCROLL { scroll::offset(widget) } else { 0.0 });
}

/// What a widget's children may draw on: in a window, its content; in a panel that scrolls, what is beside its bar.
fn content_clip(widget: u32, x: f32, y: f32, [from, to]: [u32; 2]) -> [u32; 2] {
    let insets = match get(W_KIND, widget) {
        kinds::WINDOW => [0.0, TITLE_BAR, 0.0, 0.0],
        kinds::SCROLL => {
            // A surface of its own has an edge.
            let edge = if get(W_LOOK, widget) == looks::STRONG { 1.0 } else { 0.0 };
            [edge, edge, if scroll::bar(widget).is_some() { BAR_ZONE } else { edge }, edge]
        }
        _ => return [from, to],
    };
    let scale = load(D_SCALE) as f32 / 256.0;
    let (width, height) = (load(D_WIDTH) as i32, load(D_HEIGHT) as i32);
    let pixel = |at: f32, most: i32| round(at * scale).clamp(0, most) as u32;
    let (left, top) = (pixel(x + insets[0], width), pixel(y + insets[1], height));
    let (right, bottom) = (x + getf(W_W, widget) - insets[2], y + getf(W_H, widget) - insets[3]);
    let (right, bottom) = (pixel(right, width), pixel(bottom, height));
    let from = (from & 0xFFFF).max(left) | (from >> 16).max(top) << 16;
    let to = (to & 0xFFFF).min(right) | (to >> 16).min(bottom) << 16;
    [from, to]
}
