//! Texts: chains of blocks, each with the number of the next block and 14 characters of 16 bits.

use crate::event::kinds;
use crate::font;
use crate::math::round;
use crate::memory::*;
use crate::{icons, tabs};
use gpu_run_kernel::gpu::{load, store};

/// Separates lines.
pub const NEW_LINE: u32 = 10;

fn block(number: u32) -> u32 {
    TEXT_ARENA + number * BLOCK_BYTES
}

/// Takes a block; [`NONE`] if all are in use.
fn take() -> u32 {
    let free = load(D_TEXT_FREE);
    let taken = if free != NONE {
        store(D_TEXT_FREE, load(block(free)));
        free
    } else if load(D_TEXT_USED) < TEXT_BLOCKS {
        store(D_TEXT_USED, load(D_TEXT_USED) + 1);
        load(D_TEXT_USED) - 1
    } else {
        return NONE;
    };
    store(D_TEXT_COUNT, load(D_TEXT_COUNT) + 1);
    store(block(taken), NONE);
    taken
}

/// Gives a widget's text back.
pub fn clear(widget: u32) {
    let first = get(W_TEXT, widget);
    if first == NONE {
        return;
    }
    let (mut last, mut count) = (first, 1);
    while load(block(last)) != NONE {
        last = load(block(last));
        count += 1;
    }
    store(block(last), load(D_TEXT_FREE));
    store(D_TEXT_FREE, first);
    store(D_TEXT_COUNT, load(D_TEXT_COUNT) - count);
    set(W_TEXT, widget, NONE);
    set(W_TEXT_LAST, widget, NONE);
    set(W_TEXT_LENGTH, widget, 0);
}

/// Adds a character; returns false if there is no room for it.
pub fn push(widget: u32, code: u32) -> bool {
    let length = get(W_TEXT_LENGTH, widget);
    if length == MAX_TEXT {
        return false;
    }
    let place = length % BLOCK_TEXT;
    if place == 0 {
        let more = take();
        if more == NONE {
            return false;
        }
        let last = get(W_TEXT_LAST, widget);
        if length == 0 {
            set(W_TEXT, widget, more)
        } else {
            store(block(last), more)
        }
        set(W_TEXT_LAST, widget, more);
    }
    let at = block(get(W_TEXT_LAST, widget)) + 4 + place / 2 * 4;
    let half = code.min(0xFFFF) << (place % 2 * 16);
    store(at, if place.is_multiple_of(2) { half } else { load(at) & 0xFFFF | half });
    set(W_TEXT_LENGTH, widget, length + 1);
    true
}

/// Calls `body` with the place of each character and its code.
#[inline(always)]
pub fn each(widget: u32, mut body: impl FnMut(u32, u32)) {
    let (mut at, mut i) = (get(W_TEXT, widget), 0);
    let length = get(W_TEXT_LENGTH, widget);
    while i < length {
        let place = i % BLOCK_TEXT;
        if place == 0 && i != 0 {
            at = load(block(at));
        }
        body(i, load(block(at) + 4 + place / 2 * 4) >> (place % 2 * 16) & 0xFFFF);
        i += 1;
    }
}

/// The width of the first `count` characters, in units of length.
pub fn width(widget: u32, count: u32) -> f32 {
    let mut sum = 0;
    each(widget, |i, code| sum += if i < count { font::advance(code) } else { 0 });
    sum as f32 * getf(W_FONT, widget) / font::EM
}

/// The width of the whole text at another size than its own.
pub fn width_at(widget: u32, size: f32) -> f32 {
    let mut sum = 0;
    each(widget, |_, code| sum += font::advance(code));
    sum as f32 * size / font::EM
}

/// The character at a place.
pub fn character(widget: u32, place: u32) -> u32 {
    let mut found = 0;
    each(widget, |i, code| found = if i == place { code } else { found });
    found
}

/// The place between characters that is nearest to `x` units from the text's beginning.
pub fn place_at(widget: u32, x: f32) -> u32 {
    let scale = getf(W_FONT, widget) / font::EM;
    let (mut sum, mut place) = (0, 0);
    each(widget, |i, code| {
        let advance = font::advance(code);
        if (sum as f32 + advance as f32 / 2.0) * scale <= x {
            place = i + 1;
        }
        sum += advance;
    });
    place
}

/// The height of a line of text of this size.
pub fn line_height(size: f32) -> f32 {
    round(size * 1.4) as f32
}

/// Sets the size of the content to that of the text. A text field keeps the width that it was given.
pub fn measure(widget: u32) {
    let kind = get(W_KIND, widget);
    match kind {
        kinds::TABS => return tabs::measure(widget),
        // Their text does not give them their size.
        kinds::CANVAS | kinds::IMAGE | kinds::PLOT | kinds::MENU | kinds::TOOLTIP => return,
        _ => {}
    }
    if kind != kinds::FIELD {
        setf(W_CONTENT_WIDTH, widget, width(widget, u32::MAX));
    }
    setf(W_CONTENT_HEIGHT, widget, line_height(getf(W_FONT, widget)));
    if kind == kinds::BUTTON && get(W_ICON, widget) != 0 {
        icons::measure(widget);
    }
}

/// Calls `body` with the number of each line, its first character, the one after its last, and its width at size 1000.
#[inline(always)]
pub fn lines(widget: u32, mut body: impl FnMut(u32, u32, u32, u32)) {
    let (mut number, mut from, mut width) = (0, 0, 0);
    each(widget, |i, code| {
        if code == NEW_LINE {
            body(number, from, i, width);
            (number, from, width) = (number + 1, i + 1, 0);
        } else {
            width += font::advance(code);
        }
    });
    // A text that ends with a line break has no empty line behind it.
    let length = get(W_TEXT_LENGTH, widget);
    if from < length {
        body(number, from, length, width);
    }
}

/// Replaces the characters from `from` to `to` by `code`, or removes them. Returns whether the text changed.
pub fn replace(widget: u32, from: u32, to: u32, code: Option<u32>) -> bool {
    let length = get(W_TEXT_LENGTH, widget);
    if from == to && code.is_none() || code.is_some() && length - (to - from) >= MAX_TEXT {
        return false;
    }
    each(widget, |i, code| store(EDIT + i * 4, code));
    clear(widget);
    let mut fits = true;
    (0..from).for_each(|i| fits &= push(widget, load(EDIT + i * 4)));
    if let Some(code) = code {
        fits &= push(widget, code);
    }
    (to..length).for_each(|i| fits &= push(widget, load(EDIT + i * 4)));
    if !fits {
        store(D_REFUSED, load(D_REFUSED) + 1);
    }
    true
}

/// Whether kinds of this number have a text that gives them their size.
pub fn is_measured(kind: u32) -> bool {
    matches!(kind, kinds::LABEL | kinds::BUTTON | kinds::CHECKBOX | kinds::RADIO | kinds::FIELD | kinds::TABS)
}
