//! The bar at the bottom of the desktop: the button of the menu of apps, and an entry for each window, in the order in which they were
//! made. There is a bar if widget 0 has a text: the names of apps, one a line.
//!
//! Windows that wait in the bar are minimised ([`tree::APART`]). An entry's transitions are its window's, the button's those of widget 0.

use crate::dispatch::{pointer, window_of};
use crate::event::{icons::GRID, keys, kinds, style::HIDDEN};
use crate::item::{Brush, grown};
use crate::math::{ease, round};
use crate::memory::*;
use crate::theme::{self, Colour::*, TITLE_BAR, colour, faded, mix};
use crate::{font, icons, menu, paint, text, tooltip, tree};
use gpu_run_kernel::gpu::{load, store};

pub const HEIGHT: f32 = 44.0;
/// The space at the bar's ends, above and below entries, and between them.
pub const PAD: f32 = 6.0;
const GAP: f32 = 4.0;
/// The space beside an entry's title, and the entry's greatest width.
const INSET: f32 = 12.0;
const WIDEST: f32 = 200.0;
/// An entry that is narrower has less space beside its title.
const CROWDED: f32 = 64.0;
const APPS_WIDTH: f32 = 80.0;
/// The space on both sides of the line behind the button.
const BESIDE_LINE: f32 = 8.0;
/// The bar, but nothing in it.
const GROUND: u32 = NONE - 1;

/// How far apart windows without a place are placed.
const CASCADE: f32 = 28.0;
const CASCADE_FROM: f32 = 24.0;

pub fn exists() -> bool {
    get(W_TEXT_LENGTH, 0) != 0
}

/// Where the bar begins, or the desktop ends.
pub fn top() -> f32 {
    getf(W_H, 0) - if exists() { HEIGHT } else { 0.0 }
}

pub fn is_minimised(window: u32) -> bool {
    get(W_STYLE, window) & tree::APART != 0
}

// --- Windows in the bar ----------------------------------------------------------------------------------------------------

/// Takes a new window into the bar, and gives it a place.
pub fn add(window: u32) {
    let mut word = D_WINDOWS;
    while load(word) != NONE {
        word = W_LINK + load(word) * 4;
    }
    store(word, window);
    if exists() {
        cascade(window);
    }
}

pub fn remove(window: u32) {
    if get(W_KIND, window) != kinds::WINDOW {
        return;
    }
    let mut word = D_WINDOWS;
    while load(word) != window {
        word = W_LINK + load(word) * 4;
    }
    store(word, get(W_LINK, window));
}

/// Places a window so that it covers no other exactly, and begins above the bar.
fn cascade(window: u32) {
    let scale = load(D_SCALE) as f32 / 256.0;
    let (width, height) = (load(D_WIDTH) as f32 / scale, load(D_HEIGHT) as f32 / scale);
    let rows = (((height - HEIGHT - 2.0 * CASCADE_FROM - theme::LEAST_WINDOW_H) / CASCADE) as u32).max(1);
    let columns = (((width - CASCADE_FROM - theme::LEAST_WINDOW_W) / CASCADE) as u32).max(1);
    let mut number = 0;
    while number < rows * columns {
        // Each time the bottom is reached, the next goes on a little further to the right.
        let (row, column) = (number % rows, (number % rows + number / rows) % columns);
        let x = CASCADE_FROM + CASCADE * column as f32;
        let y = (CASCADE_FROM + CASCADE * row as f32).min((height - HEIGHT - TITLE_BAR).max(0.0));
        setf(W_LEFT, window, x);
        setf(W_TOP, window, y);
        if !is_covered(window, x, y) {
            return;
        }
        number += 1;
    }
}

fn is_covered(window: u32, x: f32, y: f32) -> bool {
    let mut other = load(D_WINDOWS);
    while other != NONE {
        if other != window && getf(W_LEFT, other) == x && getf(W_TOP, other) == y {
            return true;
        }
        other = get(W_LINK, other);
    }
    false
}

/// Hides a window. The next one is in front.
pub fn minimise(window: u32) {
    if is_minimised(window) {
        return;
    }
    tree::set_apart(window, true);
    for word in [D_HOVER, D_PRESS, D_FOCUS, D_MENU] {
        if load(word) != NONE && load(word) != 0 && window_of(load(word)) == window {
            store(word, NONE);
        }
    }
    if load(D_FRONT) == window {
        store(D_FRONT, frontmost());
    }
    tooltip::hide();
}

/// Shows a window again that was minimised.
pub fn restore(window: u32) {
    if is_minimised(window) {
        tree::set_apart(window, false);
    }
}

/// The window in front of all that are not minimised.
pub fn frontmost() -> u32 {
    let mut at = get(W_LAST, 0);
    while at != NONE && is_minimised(at) {
        at = get(W_PREVIOUS, at);
    }
    at
}

// --- Places ----------------------------------------------------------------------------------------------------------------

/// The width that an entry would like to have.
fn liked(window: u32) -> f32 {
    let title = text::width_at(window, theme::BODY);
    (title + 2.0 * INSET).clamp(64.0, WIDEST)
}

/// Places the entries: if there is no room for all, the wide ones are made narrower, all to the same width.
pub fn place() {
    if !exists() {
        return;
    }
    let mut count = 0;
    each_window(|window| {
        setf(W_ENTRY_W, window, liked(window));
        count += 1;
    });
    let from = PAD + APPS_WIDTH + 2.0 * BESIDE_LINE;
    let room = getf(W_W, 0) - PAD - from - GAP * count as f32;
    let mut widest = (room / count.max(1) as f32).clamp(0.0, WIDEST);
    let mut round = 0;
    while round < 4 {
        let (mut narrow, mut wide) = (0.0, 0);
        // Those that need less than their share leave more to the others.
        each_window(|window| {
            let width = getf(W_ENTRY_W, window);
            if width < widest { narrow += width } else { wide += 1 }
        });
        if wide != 0 {
            widest = ((room - narrow) / wide as f32).clamp(0.0, WIDEST);
        }
        round += 1;
    }
    let mut x = from;
    each_window(|window| {
        let width = getf(W_ENTRY_W, window).min(widest);
        setf(W_ENTRY_X, window, x);
        setf(W_ENTRY_W, window, width);
        x += width + GAP;
    });
}

/// Calls `body` with each window that its owner does not hide.
fn each_window(mut body: impl FnMut(u32)) {
    let mut window = load(D_WINDOWS);
    while window != NONE {
        if get(W_STYLE, window) >> HIDDEN & 1 == 0 {
            body(window);
        }
        window = get(W_LINK, window);
    }
}

/// What the pointer is on: a window's entry, widget 0 for the button, [`GROUND`], or [`NONE`] outside of the bar.
pub fn part_under_pointer() -> u32 {
    let (x, y) = pointer();
    if !exists() || y < top() {
        return NONE;
    }
    // The entries reach down to the desktop's edge, where a pointer is quickly.
    if x < PAD + APPS_WIDTH {
        return 0;
    }
    let mut found = GROUND;
    each_window(|window| {
        if x >= getf(W_ENTRY_X, window) && x < getf(W_ENTRY_X, window) + getf(W_ENTRY_W, window) {
            found = window;
        }
    });
    found
}

// --- Input -----------------------------------------------------------------------------------------------------------------

/// The pointer moved. Returns whether it is on the bar.
pub fn point(uncovered: bool) -> bool {
    let part = if uncovered { part_under_pointer() } else { NONE };
    let hot = if load(D_PRESS) == NONE { part } else { NONE };
    if load(D_BAR_HOT) != hot {
        store(D_BAR_HOT, hot);
        store(D_CHANGED, 1);
    }
    part != NONE
}

pub fn press() -> bool {
    let part = part_under_pointer();
    store(D_BAR_DOWN, part);
    store(D_CHANGED, 1);
    part != NONE
}

pub fn release() -> bool {
    let (down, part) = (load(D_BAR_DOWN), part_under_pointer());
    store(D_BAR_DOWN, NONE);
    if down == NONE {
        return false;
    }
    store(D_CHANGED, 1);
    match down {
        _ if down != part || down == GROUND => {}
        0 => menu::toggle(menu::APPS),
        window if window == load(D_FRONT) => minimise(window),
        window => tree::raise(window),
    }
    true
}

pub fn key(key: u32) -> bool {
    if key == keys::APPS && exists() {
        menu::toggle(menu::APPS);
        menu::key(keys::HOME);
        return true;
    }
    false
}

/// Whether something in the bar is hovered, pressed and marked; none of it for what is not in the bar.
pub fn states(widget: u32) -> Option<(bool, bool, bool)> {
    if !exists() || widget != 0 && get(W_KIND, widget) != kinds::WINDOW {
        return None;
    }
    let hot = load(D_BAR_HOT) == widget;
    let on = if widget == 0 { load(D_MENU) == 0 } else { load(D_FRONT) == widget };
    Some((hot, hot && load(D_BAR_DOWN) == widget, on))
}

// --- Drawing ---------------------------------------------------------------------------------------------------------------

pub fn paint(brush: &mut Brush) {
    if !exists() {
        return;
    }
    let (scale, hair) = (brush.scale, paint::hair(brush));
    let (width, bottom) = (load(D_WIDTH) as f32, load(D_HEIGHT) as f32);
    let upper = round(top() * scale) as f32;
    brush.rectangle([0.0, upper, width, bottom], 0.0, colour(Bar));
    brush.rectangle([0.0, upper, width, upper + hair], 0.0, colour(WindowEdge));
    let before = brush.limit([0.0, upper, width, bottom]);
    entry(0, PAD, APPS_WIDTH, brush);
    let x = round((PAD + APPS_WIDTH + BESIDE_LINE) * scale) as f32;
    let inset = 14.0 * scale;
    brush.rectangle([x, upper + inset, x + hair, bottom - inset], 0.0, colour(ControlEdge));
    each_window(|window| entry(window, getf(W_ENTRY_X, window), getf(W_ENTRY_W, window), brush));
    brush.clip = before;
}

/// An entry of the bar.
fn entry(widget: u32, x: f32, width: f32, brush: &mut Brush) {
    let scale = brush.scale;
    let y = top() + PAD;
    let edges = [x, y, x + width, y + HEIGHT - 2.0 * PAD].map(|at| round(at * scale) as f32);
    let [left, _, right, bottom] = edges;
    if right <= left {
        return;
    }
    let (hot, down, on) = (ease(getf(W_HOT, widget)), ease(getf(W_DOWN, widget)), ease(getf(W_ON, widget)));
    let under = round(18.0 * hot + 14.0 * down + 22.0 * on).clamp(0, 255) as u32;
    if under != 0 {
        brush.rectangle(edges, theme::CONTROL_RADIUS * scale, faded(colour(Text), under));
    }
    let size = theme::BODY;
    let middle = y + (HEIGHT - 2.0 * PAD - text::line_height(size)) / 2.0;
    let baseline = round((middle + font::baseline() * size) * scale) as f32;
    if widget == 0 {
        let ink = colour(Text);
        icons::paint(GRID, x + 10.0, y + (HEIGHT - 2.0 * PAD - icons::SIZE) / 2.0, ink, brush);
        let mut at = x + 10.0 + icons::SIZE + 8.0;
        for code in *b"Apps" {
            brush.glyph(code as u32, at * scale, baseline, size * scale / font::EM, ink);
            at += font::advance(code as u32) as f32 * size / font::EM;
        }
        return;
    }
    if on > 0.0 {
        let half = 9.0 * scale * on;
        let centre = (left + right) / 2.0;
        let mark = [centre - half, bottom - round(2.0 * scale) as f32, centre + half, bottom];
        brush.rectangle(mark, scale, colour(Accent));
    }
    let rest = if is_minimised(widget) { mix(colour(Quiet), colour(Bar), 0.35) } else { colour(Quiet) };
    let ink = mix(rest, colour(Text), on.max(hot * 0.6));
    let before = brush.limit(grown(edges, -2.0 * scale));
    // Where it is crowded, the titles need the space at their sides.
    let inset = if width < CROWDED { INSET / 2.0 } else { INSET };
    let room = width - 2.0 * inset;
    brush.short_text(widget, (x + inset) * scale, baseline, size * scale, room * scale, ink);
    brush.clip = before;
}
