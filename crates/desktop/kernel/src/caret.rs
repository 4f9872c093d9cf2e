//! What text fields and areas have in common: selection, typing, words, copying and pasting.

use crate::dispatch::tell_once;
use crate::event::{CHANGED, COPIED, keys::*, kinds, modifiers};
use crate::memory::*;
use crate::text::Reader;
use crate::{area, dispatch, field, text, tree};
use gpu_run_kernel::event::Event;
use gpu_run_kernel::gpu::{load, store};

pub fn has_caret(kind: u32) -> bool {
    matches!(kind, kinds::FIELD | kinds::AREA)
}

/// Whether a widget takes typing now.
fn takes_text(widget: u32) -> bool {
    tree::exists(widget) && has_caret(get(W_KIND, widget)) && !has(widget, F_DISABLED | F_READ_ONLY)
}

/// The selected range.
pub fn selection(widget: u32) -> (u32, u32) {
    let length = get(W_TEXT_LENGTH, widget);
    let (a, b) = (get(W_CARET, widget).min(length), get(W_ANCHOR, widget).min(length));
    (a.min(b), a.max(b))
}

/// Moves the caret, and with it the other end of the selection or not. The caret shows afterwards.
pub fn move_to(widget: u32, caret: u32, selects: bool) {
    if !selects {
        set(W_ANCHOR, widget, caret);
    }
    set(W_CARET, widget, caret);
    store(D_GOAL, 0);
    store(D_CHANGED, 1);
    if get(W_KIND, widget) == kinds::FIELD {
        field::show_caret(widget);
    } else {
        store(D_REVEAL, widget);
    }
}

/// Types a character in place of the selection.
pub fn type_character(widget: u32, code: u32) {
    if takes_text(widget) {
        let code = if code > 0xFFFF { 0xFFFD } else { code };
        replace_selection(widget, core::iter::once(code));
    }
}

/// Puts characters in place of the selection.
fn replace_selection(widget: u32, codes: impl Iterator<Item = u32>) {
    let (from, to) = selection(widget);
    if from != to {
        text::remove(widget, from, to);
    }
    let mut asked = 0;
    let inserted = text::insert(widget, from, codes.inspect(|_| asked += 1));
    if asked != inserted {
        store(D_REFUSED, load(D_REFUSED) + 1);
    }
    if inserted != 0 || from != to {
        move_to(widget, from + inserted, false);
        tell_once(CHANGED, widget);
    }
}

fn erase(widget: u32, from: u32, to: u32) {
    if takes_text(widget) && from != to {
        set(W_CARET, widget, to);
        set(W_ANCHOR, widget, from);
        replace_selection(widget, core::iter::empty());
    }
}

/// Inserts a piece from the clipboard. A text field has no lines.
pub fn paste(widget: u32, it: &Event) {
    if !takes_text(widget) {
        return;
    }
    let is_field = get(W_KIND, widget) == kinds::FIELD;
    let codes = text::unpacked(it.flags as u32 & 0xFF, [it.a, it.b, it.id]);
    // A line's end is one character here.
    let codes = codes.filter(|code| *code != RETURN);
    replace_selection(
        widget,
        codes.map(|code| if is_field && code < SPACE_CHARACTER { SPACE_CHARACTER } else { code }),
    );
}

/// Tells the host which characters it is to keep, and leaves them for it.
fn copy(widget: u32) {
    let (from, to) = selection(widget);
    if from != to {
        let text = Reader::of(widget);
        (from..to).for_each(|i| store(COPIED_TEXT + (i - from) * 4, text.at(i)));
        store(S_COPIED, to - from);
        dispatch::tell_range(COPIED, widget, from, to);
    }
}

/// Keys that fields and areas have in common. Returns whether this was one.
pub fn key(widget: u32, key: u32, with: u32) -> bool {
    let (from, to) = selection(widget);
    let (caret, length) = (get(W_CARET, widget).min(get(W_TEXT_LENGTH, widget)), get(W_TEXT_LENGTH, widget));
    let selects = with & modifiers::SHIFT != 0;
    let words = with & modifiers::CONTROL != 0;
    match key {
        LEFT if words => move_to(widget, word_before(widget, caret), selects),
        RIGHT if words => move_to(widget, word_after(widget, caret), selects),
        LEFT if from != to && !selects => move_to(widget, from, false),
        RIGHT if from != to && !selects => move_to(widget, to, false),
        LEFT => move_to(widget, caret.saturating_sub(1), selects),
        RIGHT => move_to(widget, (caret + 1).min(length), selects),
        SELECT_ALL => {
            set(W_ANCHOR, widget, 0);
            move_to(widget, length, true);
        }
        BACKSPACE if from == to && words => erase(widget, word_before(widget, to), to),
        DELETE if from == to && words => erase(widget, from, word_after(widget, from)),
        BACKSPACE if from == to => erase(widget, from.saturating_sub(1), to),
        DELETE if from == to => erase(widget, from, (to + 1).min(length)),
        BACKSPACE | DELETE => erase(widget, from, to),
        SPACE => type_character(widget, SPACE_CHARACTER),
        COPY => copy(widget),
        CUT => {
            copy(widget);
            erase(widget, from, to);
        }
        _ => return false,
    }
    true
}

/// The caret goes where the pointer is. A second press selects the word there.
pub fn press(widget: u32, is_double: bool) {
    let at = under_pointer(widget);
    move_to(widget, at, false);
    if is_double {
        store(D_PART, WORD);
        let (from, to) = word_around(widget, at);
        set(W_ANCHOR, widget, from);
        move_to(widget, to, true);
    }
}

/// `D_PART` after a double click: the word stays selected until the pointer moves away.
const WORD: u32 = 256;

/// Selects from where the pointer went down to where it is.
pub fn drag(widget: u32) {
    if load(D_PART) == WORD && dispatch::is_near_click() {
        return;
    }
    store(D_PART, 0);
    move_to(widget, under_pointer(widget), true);
}

fn under_pointer(widget: u32) -> u32 {
    if get(W_KIND, widget) == kinds::FIELD { field::under_pointer(widget) } else { area::under_pointer(widget) }
}

const SPACE_CHARACTER: u32 = 32;
const RETURN: u32 = 13;

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Space,
    Word,
    Sign,
}

fn class(code: u32) -> Class {
    let ascii = u8::try_from(code).unwrap_or(b'a');
    match () {
        _ if matches!(code, 0..=32 | 0xA0) => Class::Space,
        _ if ascii >= 128 || ascii.is_ascii_alphanumeric() || ascii == b'_' => Class::Word,
        _ => Class::Sign,
    }
}

/// Where the word before a place begins.
fn word_before(widget: u32, mut at: u32) -> u32 {
    let text = Reader::of(widget);
    while at > 0 && class(text.at(at - 1)) == Class::Space {
        at -= 1;
    }
    if at > 0 { run_before(&text, at) } else { 0 }
}

/// Where the next word begins.
fn word_after(widget: u32, at: u32) -> u32 {
    let text = Reader::of(widget);
    let mut to = if at < text.length && class(text.at(at)) != Class::Space { run_after(&text, at) } else { at };
    while to < text.length && class(text.at(to)) == Class::Space {
        to += 1;
    }
    to
}

/// The characters of one class before a place, and after it.
fn run_before(text: &Reader, mut at: u32) -> u32 {
    let kind = class(text.at(at - 1));
    while at > 0 && class(text.at(at - 1)) == kind && text.at(at - 1) != LINE_END {
        at -= 1;
    }
    at
}
fn run_after(text: &Reader, mut at: u32) -> u32 {
    let kind = class(text.at(at));
    while at < text.length && class(text.at(at)) == kind && text.at(at) != LINE_END {
        at += 1;
    }
    at
}

const LINE_END: u32 = '\n' as u32;

/// The word at a place, for a double click.
fn word_around(widget: u32, at: u32) -> (u32, u32) {
    let text = Reader::of(widget);
    let is_word = |i: u32| i < text.length && class(text.at(i)) == Class::Word;
    match () {
        // Between a word and something else, the word counts.
        _ if at > 0 && is_word(at - 1) && !is_word(at) => (run_before(&text, at), at),
        _ if at == text.length || text.at(at) == LINE_END => (at, at),
        _ => {
            let to = run_after(&text, at);
            (run_before(&text, at + 1), to)
        }
    }
}
