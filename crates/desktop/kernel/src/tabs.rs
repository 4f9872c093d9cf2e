//! Tab bars. Their tabs are the lines of the text; a line beneath marks the chosen one, and slides to another.

use crate::dispatch::{pointer, tell};
use crate::event::{CHOSEN, keys::*, kinds};
use crate::font::EM;
use crate::item::{Brush, Edges, grown};
use crate::math::{ease, round};
use crate::memory::*;
use crate::theme::{self, Colour::*, colour, faded};
use crate::{font, paint, text};
use gpu_run_kernel::gpu::{load, store};

/// The space beside a tab's text.
const PAD: f32 = 14.0;
const UNDERLINE: f32 = 2.0;

/// The tab from which the line slides, with a fraction if the line had not arrived there.
const FROM: u32 = W_OLD_X;

pub fn measure(tabs: u32) {
    let mut width = 0.0;
    each(tabs, |_, _, _, _, tab| width += tab);
    setf(W_CONTENT_WIDTH, tabs, width);
    setf(W_CONTENT_HEIGHT, tabs, text::line_height(getf(W_FONT, tabs)));
}

/// Calls `body` with each tab's number, its first character and the one after its last, and its left edge and width.
#[inline(always)]
fn each(tabs: u32, mut body: impl FnMut(u32, u32, u32, f32, f32)) {
    let mut x = getf(W_PAD_LEFT, tabs);
    text::lines(tabs, |number, from, to, width| {
        let width = round(width as f32 * getf(W_FONT, tabs) / EM + 2.0 * PAD) as f32;
        body(number, from, to, x, width);
        x += width;
    });
}

fn count(tabs: u32) -> u32 {
    let mut count = 0;
    text::lines(tabs, |_, _, _, _| count += 1);
    count
}

/// The tab under the pointer, or [`NONE`].
fn under_pointer(tabs: u32) -> u32 {
    let at = pointer().0 - getf(W_AT_X, tabs);
    let mut found = NONE;
    each(tabs, |number, _, _, x, width| {
        if at >= x && at < x + width {
            found = number;
        }
    });
    found
}

/// Chooses a tab, without telling the owner. For kinds without tabs, only notes the number.
pub fn set_selected(tabs: u32, tab: u32) {
    if get(W_KIND, tabs) == kinds::TABS && get(W_SELECTED, tabs) != tab {
        setf(FROM, tabs, line_at(tabs));
        setf(W_ON, tabs, 0.0);
    }
    set(W_SELECTED, tabs, tab);
    store(D_CHANGED, 1);
}

fn choose(tabs: u32, tab: u32) {
    if tab < count(tabs) && get(W_SELECTED, tabs) != tab {
        set_selected(tabs, tab);
        tell(CHOSEN, tabs, tab);
    }
}

pub fn press(tabs: u32) {
    choose(tabs, under_pointer(tabs));
}

pub fn key(tabs: u32, key: u32) {
    let (at, last) = (get(W_SELECTED, tabs), count(tabs).saturating_sub(1));
    match key {
        LEFT | UP => choose(tabs, at.min(last + 1).saturating_sub(1)),
        RIGHT | DOWN => choose(tabs, at.wrapping_add(1).min(last)),
        HOME => choose(tabs, 0),
        END => choose(tabs, last),
        _ => {}
    }
}

/// Where the line is: the number of a tab, with a fraction while it slides.
fn line_at(tabs: u32) -> f32 {
    let (from, to) = (getf(FROM, tabs), get(W_SELECTED, tabs).min(count(tabs).saturating_sub(1)) as f32);
    from + (to - from) * ease(getf(W_ON, tabs))
}

pub fn paint(tabs: u32, edges: Edges, brush: &mut Brush) {
    let scale = brush.scale;
    let [left, top, right, bottom] = edges;
    let hair = paint::hair(brush);
    brush.rectangle([left, bottom - hair, right, bottom], 0.0, colour(CardEdge));
    let before = brush.limit(edges);
    let hot = if load(D_HOVER) == tabs { under_pointer(tabs) } else { NONE };
    let line = line_at(tabs);
    let size = getf(W_FONT, tabs);
    let y = getf(W_AT_Y, tabs) + (getf(W_H, tabs) - text::line_height(size)) / 2.0 + font::baseline() * size;
    let baseline = round(y * scale) as f32;
    let (mut from, mut to, mut ring) = (0.0, 0.0, edges);
    each(tabs, |number, first, end, x, width| {
        let (x0, x1) = (left + round(x * scale) as f32, left + round((x + width) * scale) as f32);
        let inset = 3.0 * scale;
        let pill = [x0 + inset, top + inset, x1 - inset, bottom - 2.0 * inset];
        // The part of the line that is beneath this tab is the nearer the line, the larger.
        let share = (1.0 - (line - number as f32).abs()).max(0.0);
        from += x0 * share;
        to += x1 * share;
        let chosen = get(W_SELECTED, tabs) == number;
        if chosen {
            ring = pill;
        }
        if hot == number {
            brush.rectangle(pill, theme::CONTROL_RADIUS * scale, faded(colour(Text), if chosen { 10 } else { 18 }));
        }
        let ink = match () {
            _ if has(tabs, F_DISABLED) => colour(Disabled),
            _ if chosen || hot == number => colour(Text),
            _ => colour(Quiet),
        };
        brush.part_of_text(tabs, first, end, x0 + PAD * scale, baseline, size * scale, ink);
    });
    if to > from && get(W_SELECTED, tabs) != NONE {
        let thick = round(UNDERLINE * scale).max(1) as f32;
        let inset = (PAD - 4.0) * scale;
        let ink = if has(tabs, F_DISABLED) { Disabled } else { Accent };
        brush.rectangle([from + inset, bottom - thick, to - inset, bottom], thick / 2.0, colour(ink));
    }
    brush.clip = before;
    let inward = -3.0 * scale;
    paint::ring(tabs, grown(ring, inward), theme::CONTROL_RADIUS * scale, brush);
}
