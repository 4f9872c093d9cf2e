//! Tooltips: what is said about a widget, after the pointer has rested on it for a while, or when the keyboard brought the focus to it.

use crate::dispatch::pointer;
use crate::event::kinds;
use crate::item::Brush;
use crate::math::round;
use crate::memory::*;
use crate::theme::{self, Colour::*, colour};
use crate::{font, paint, text, tree};
use gpu_run_kernel::gpu::{load, store};

/// Microseconds of rest before a tooltip is shown.
const REST: u32 = 500_000;
const PAD_X: f32 = 8.0;
const PAD_Y: f32 = 4.0;
/// How far below the pointer's tip, and below a widget.
const BELOW_POINTER: f32 = 20.0;
const BELOW_WIDGET: f32 = 6.0;

fn of(widget: u32) -> u32 {
    if !tree::exists(widget) {
        return NONE;
    }
    let mut child = get(W_FIRST, widget);
    while child != NONE && get(W_KIND, child) != kinds::TOOLTIP {
        child = get(W_NEXT, child);
    }
    child
}

/// The pointer moved, and is on `widget` now.
pub fn point(widget: u32) {
    let tip = if load(D_PRESS) == NONE { of(widget) } else { NONE };
    if tip == NONE || tip != load(D_TIP) {
        let (x, y) = pointer();
        wait(tip, x, y + BELOW_POINTER);
    }
}

/// The keyboard brought the focus to `widget`.
pub fn focus(widget: u32) {
    let tip = of(widget);
    if tip != NONE {
        wait(tip, getf(W_AT_X, widget), getf(W_AT_Y, widget) + getf(W_H, widget) + BELOW_WIDGET);
    }
}

fn wait(tip: u32, x: f32, y: f32) {
    hide();
    if tip != NONE {
        store(D_TIP_NEXT, tip);
        store(D_TIP_SINCE, load(D_CLOCK));
        store(D_TIP_X, round(x * 256.0) as u32);
        store(D_TIP_Y, round(y * 256.0) as u32);
        store(D_CHANGED, 1);
    }
}

pub fn hide() {
    if load(D_TIP) != NONE {
        store(D_CHANGED, 1);
    }
    store(D_TIP, NONE);
    store(D_TIP_NEXT, NONE);
}

/// Shows the tooltip that waits, if its time has come. Returns whether one still waits.
pub fn animate() -> bool {
    if load(D_TIP_NEXT) == NONE {
        return false;
    }
    if load(D_CLOCK).wrapping_sub(load(D_TIP_SINCE)) < REST {
        return true;
    }
    store(D_TIP, load(D_TIP_NEXT));
    store(D_TIP_NEXT, NONE);
    false
}

pub fn paint(brush: &mut Brush) {
    let tip = load(D_TIP);
    if tip == NONE || get(W_ORDER, get(W_PARENT, tip)) == 0 {
        return;
    }
    let size = theme::SMALL;
    let (mut widest, mut count) = (0, 0);
    text::lines(tip, |_, _, _, width| {
        widest = widest.max(width);
        count += 1;
    });
    if count == 0 {
        return;
    }
    let line = text::line_height(size);
    let (w, h) = (widest as f32 * size / font::EM + 2.0 * PAD_X, line * count as f32 + 2.0 * PAD_Y);
    let at = |word: u32| load(word) as i32 as f32 / 256.0;
    let x = at(D_TIP_X).min(getf(W_W, 0) - w - 4.0).max(4.0);
    // Above the pointer if there is no room below.
    let (below, above) = (at(D_TIP_Y), at(D_TIP_Y) - BELOW_POINTER - 8.0 - h);
    let y = if below + h > getf(W_H, 0) - 4.0 { above.max(4.0) } else { below };
    let scale = brush.scale;
    let edges = [x, y, x + w, y + h].map(|at| round(at * scale) as f32);
    let radius = 5.0 * scale;
    let [left, top, right, bottom] = edges;
    brush.shadow([left, top + 3.0 * scale, right, bottom + 3.0 * scale], radius, 8.0 * scale, colour(Shadow));
    brush.rectangle(edges, radius, colour(Tip));
    brush.border(edges, radius, paint::hair(brush), colour(WindowEdge));
    text::lines(tip, |number, from, to, _| {
        let baseline = round((y + PAD_Y + line * number as f32 + font::baseline() * size) * scale) as f32;
        brush.part_of_text(tip, from, to, (x + PAD_X) * scale, baseline, size * scale, colour(OnTip));
    });
}
