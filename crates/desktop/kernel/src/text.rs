//! Texts: characters of 16 bits, one after the other, with a gap where the last change was. A change next to the gap moves nothing.

use crate::event::kinds;
use crate::math::round;
use crate::memory::*;
use crate::{font, icons, lines, tabs, text_heap};
use gpu_run_kernel::gpu::{load, store};

/// Separates lines.
pub const NEW_LINE: u32 = 10;

/// Reads a text, which must not change meanwhile.
#[derive(Clone, Copy)]
pub struct Reader {
    from: u32,
    gap: u32,
    gap_length: u32,
    pub length: u32,
}

impl Reader {
    pub fn of(widget: u32) -> Self {
        let length = get(W_TEXT_LENGTH, widget);
        Self { from: from(widget), gap: get(W_TEXT_GAP, widget), gap_length: room(widget) - length, length }
    }

    #[inline(always)]
    pub fn at(&self, i: u32) -> u32 {
        stored(self.from, i + if i < self.gap { 0 } else { self.gap_length })
    }
}

/// The address of a text's first character.
fn from(widget: u32) -> u32 {
    TEXT_ARENA.wrapping_add(get(W_TEXT, widget).wrapping_mul(UNIT_BYTES))
}

/// How many characters there is memory for, the gap included.
pub fn room(widget: u32) -> u32 {
    if get(W_TEXT, widget) == NONE { 0 } else { UNIT_TEXT << get(W_TEXT_ORDER, widget) }
}

#[inline(always)]
fn stored(from: u32, place: u32) -> u32 {
    load(from + place / 2 * 4) >> (place % 2 * 16) & 0xFFFF
}

#[inline(always)]
fn put(from: u32, place: u32, code: u32) {
    let (at, shift) = (from + place / 2 * 4, place % 2 * 16);
    store(at, load(at) & !(0xFFFF << shift) | code << shift);
}

/// What was derived from the text does not hold any more.
fn changed(widget: u32) {
    set(T_LINES, widget, 0);
    set(T_COLUMNS, widget, 0);
}

/// Gives a widget's text back.
pub fn clear(widget: u32) {
    if get(W_TEXT, widget) != NONE {
        text_heap::give(get(W_TEXT, widget), get(W_TEXT_ORDER, widget));
    }
    set(W_TEXT, widget, NONE);
    [W_TEXT_ORDER, W_TEXT_GAP, W_TEXT_LENGTH].iter().for_each(|field| set(*field, widget, 0));
    changed(widget);
}

/// Two characters as a word.
#[inline(always)]
fn pair(from: u32, place: u32) -> u32 {
    let at = from + place / 2 * 4;
    if place.is_multiple_of(2) { load(at) } else { load(at) >> 16 | load(at + 4) << 16 }
}

/// Moves characters to a lower place, two at a time where they fill a word.
fn copy_down(from: u32, to: u32, source: u32, count: u32) {
    let mut i = 0;
    while i < count {
        if (to + i).is_multiple_of(2) && i + 2 <= count {
            store(from + (to + i) * 2, pair(from, source + i));
            i += 2;
        } else {
            put(from, to + i, stored(from, source + i));
            i += 1;
        }
    }
}

/// Moves characters to a higher place, from the last to the first.
fn copy_up(from: u32, to: u32, source: u32, count: u32) {
    let mut i = count;
    while i > 0 {
        if (to + i).is_multiple_of(2) && i >= 2 {
            i -= 2;
            store(from + (to + i) * 2, pair(from, source + i));
        } else {
            i -= 1;
            put(from, to + i, stored(from, source + i));
        }
    }
}

/// Moves the gap, so that `to` characters are before it.
fn move_gap(widget: u32, to: u32) {
    let (from, gap) = (from(widget), get(W_TEXT_GAP, widget));
    let length = room(widget) - get(W_TEXT_LENGTH, widget);
    if gap < to {
        copy_down(from, gap, gap + length, to - gap);
    } else if to < gap {
        copy_up(from, to + length, to, gap - to);
    }
    set(W_TEXT_GAP, widget, to);
}

/// Gives a text twice the memory, or its first. Returns false if there is none.
fn grow(widget: u32) -> bool {
    let first = get(W_TEXT, widget) == NONE;
    set_memory(widget, if first { 0 } else { get(W_TEXT_ORDER, widget) + 1 })
}

/// Gives a text memory of another size, which has space for it. Returns false if there is none.
fn set_memory(widget: u32, order: u32) -> bool {
    let first = get(W_TEXT, widget) == NONE;
    let unit = text_heap::take(order);
    if unit == NONE {
        return false;
    }
    if !first {
        move_gap(widget, get(W_TEXT_LENGTH, widget));
        let (old, new) = (from(widget), TEXT_ARENA + unit * UNIT_BYTES);
        (0..get(W_TEXT_LENGTH, widget).div_ceil(2)).for_each(|pair| store(new + pair * 4, load(old + pair * 4)));
        text_heap::give(get(W_TEXT, widget), get(W_TEXT_ORDER, widget));
    }
    set(W_TEXT, widget, unit);
    set(W_TEXT_ORDER, widget, order);
    true
}

/// Inserts characters; returns how many of them there was room for.
pub fn insert(widget: u32, at: u32, codes: impl Iterator<Item = u32>) -> u32 {
    let (mut length, mut to) = (get(W_TEXT_LENGTH, widget), at);
    let (mut space, mut start) = (room(widget), from(widget));
    move_gap(widget, at);
    for code in codes {
        // One place always stays free: a text has at most one line more than characters.
        if length + 1 >= space {
            set(W_TEXT_GAP, widget, to);
            set(W_TEXT_LENGTH, widget, length);
            if length == MAX_TEXT || !grow(widget) {
                break;
            }
            move_gap(widget, to);
            (space, start) = (room(widget), from(widget));
        }
        put(start, to, code.min(0xFFFF));
        (length, to) = (length + 1, to + 1);
    }
    set(W_TEXT_GAP, widget, to);
    set(W_TEXT_LENGTH, widget, length);
    changed(widget);
    to - at
}

/// Removes the characters from `from` to the one before `to`.
pub fn remove(widget: u32, from: u32, to: u32) {
    let left = get(W_TEXT_LENGTH, widget) - (to - from);
    if left == 0 {
        return clear(widget);
    }
    move_gap(widget, from);
    set(W_TEXT_LENGTH, widget, left);
    changed(widget);
}

/// The size of the smallest piece of memory for so many characters.
fn order_for(length: u32) -> u32 {
    ((length + 1).div_ceil(UNIT_TEXT).next_power_of_two().trailing_zeros()).min(TEXT_ORDERS - 1)
}

/// Whether a text that begins anew, and will have so many characters, keeps its memory.
pub fn is_kept(widget: u32, length: u32) -> bool {
    length != 0 && get(W_TEXT, widget) != NONE && get(W_TEXT_ORDER, widget) == order_for(length)
}

/// Begins a text anew that will have so many characters, with memory for all of them if there is as much.
pub fn begin(widget: u32, length: u32) {
    if is_kept(widget, length) {
        set(W_TEXT_GAP, widget, 0);
        set(W_TEXT_LENGTH, widget, 0);
        return changed(widget);
    }
    clear(widget);
    if length != 0 {
        set_memory(widget, order_for(length));
    }
}

/// How many characters an event adds, by its flags.
pub fn count(flags: u16) -> u32 {
    let count = flags as u32 & 0xFF;
    if count <= 6 { count } else { 0 }
}

/// Adds characters of an event at the end; returns how many of them there was room for.
pub fn append(widget: u32, count: u32, words: [u32; 3]) -> u32 {
    let length = get(W_TEXT_LENGTH, widget);
    let is_even = length.is_multiple_of(2) && get(W_TEXT_GAP, widget) == length;
    if !is_even || length + count >= room(widget) {
        return push(widget, unpacked(count, words));
    }
    // Whole words: what is behind the last character is in the gap.
    let to = from(widget) + length * 2;
    (0..count.div_ceil(2)).for_each(|i| store(to + i * 4, words[i as usize]));
    set(W_TEXT_GAP, widget, length + count);
    set(W_TEXT_LENGTH, widget, length + count);
    changed(widget);
    count
}

/// Adds characters at the end; returns how many of them there was room for.
pub fn push(widget: u32, codes: impl Iterator<Item = u32>) -> u32 {
    insert(widget, get(W_TEXT_LENGTH, widget), codes)
}

/// The characters of an event: 16 bits each, in three words.
pub fn unpacked(count: u32, words: [u32; 3]) -> impl Iterator<Item = u32> {
    (0..count.min(6)).map(move |i| words[i as usize / 2] >> (i % 2 * 16) & 0xFFFF)
}

/// Calls `body` with the place of each character and its code.
#[inline(always)]
pub fn each(widget: u32, mut body: impl FnMut(u32, u32)) {
    let text = Reader::of(widget);
    let mut i = 0;
    while i < text.length {
        body(i, text.at(i));
        i += 1;
    }
}

/// The sum of the advances of some characters, in units of the font.
pub fn advances(widget: u32, from: u32, to: u32) -> u32 {
    let text = Reader::of(widget);
    let (mut sum, mut i, end) = (0, from, to.min(text.length));
    // Four at a time: their loads need not wait for each other.
    while i + 4 <= end {
        let codes = [text.at(i), text.at(i + 1), text.at(i + 2), text.at(i + 3)];
        sum += codes.map(font::advance).iter().sum::<u32>();
        i += 4;
    }
    while i < end {
        sum += font::advance(text.at(i));
        i += 1;
    }
    sum
}

/// The width of the first `count` characters, in units of length.
pub fn width(widget: u32, count: u32) -> f32 {
    advances(widget, 0, count) as f32 * getf(W_FONT, widget) / font::EM
}

/// The width of the whole text at another size than its own.
pub fn width_at(widget: u32, size: f32) -> f32 {
    advances(widget, 0, u32::MAX) as f32 * size / font::EM
}

/// The place between characters that is nearest to `x` units from the text's beginning.
pub fn place_at(widget: u32, x: f32) -> u32 {
    place_between(widget, 0, get(W_TEXT_LENGTH, widget), x)
}

/// The same, in a line with these characters.
pub fn place_between(widget: u32, from: u32, to: u32, x: f32) -> u32 {
    let scale = getf(W_FONT, widget) / font::EM;
    let text = Reader::of(widget);
    let (mut sum, mut place) = (0, from);
    while place < to {
        let advance = font::advance(text.at(place));
        if (sum as f32 + advance as f32 / 2.0) * scale > x {
            break;
        }
        sum += advance;
        place += 1;
    }
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
        _ if lines::has_lines(kind) => return,
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

/// Whether kinds of this number have a text that gives them their size.
pub fn is_measured(kind: u32) -> bool {
    matches!(kind, kinds::LABEL | kinds::BUTTON | kinds::CHECKBOX | kinds::RADIO | kinds::FIELD | kinds::TABS)
}
