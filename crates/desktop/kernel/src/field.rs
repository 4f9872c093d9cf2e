//! Text fields: caret, selection, typing.

use crate::dispatch::{pointer, tell};
use crate::event::{CHANGED, ENTERED, keys::*, kinds, modifiers};
use crate::memory::*;
use crate::{text, tree};
use gpu_run_kernel::gpu::store;

/// Puts the caret where the pointer is.
pub fn press(field: u32) {
    let caret = under_pointer(field);
    set(W_ANCHOR, field, caret);
    move_caret(field, caret);
}

/// Selects from where the pointer went down to where it is.
pub fn drag(field: u32) {
    move_caret(field, under_pointer(field));
}

fn under_pointer(field: u32) -> u32 {
    let from = getf(W_AT_X, field) + getf(W_PAD_LEFT, field) - getf(W_SCROLL, field);
    text::place_at(field, pointer().0 - from)
}

pub fn type_character(field: u32, code: u32) {
    if is_field(field) {
        let (from, to) = selection(field);
        edit(field, from, to, Some(if code > 0xFFFF { 0xFFFD } else { code }), from + 1);
    }
}

pub fn key(field: u32, key: u32, with: u32) {
    let (from, to) = selection(field);
    let (caret, length) = (get(W_CARET, field), get(W_TEXT_LENGTH, field));
    let selects = with & modifiers::SHIFT != 0;
    let target = match key {
        LEFT if from != to && !selects => from,
        RIGHT if from != to && !selects => to,
        LEFT => caret.saturating_sub(1),
        RIGHT => (caret + 1).min(length),
        HOME => 0,
        END => length,
        SELECT_ALL => {
            set(W_ANCHOR, field, 0);
            return move_caret(field, length);
        }
        BACKSPACE if from == to => return edit(field, from.saturating_sub(1), to, None, from.saturating_sub(1)),
        DELETE if from == to => return edit(field, from, (to + 1).min(length), None, from),
        BACKSPACE | DELETE => return edit(field, from, to, None, from),
        SPACE => return type_character(field, 32),
        ENTER => return tell(ENTERED, field, 0),
        _ => return,
    };
    if !selects {
        set(W_ANCHOR, field, target);
    }
    move_caret(field, target);
}

fn is_field(widget: u32) -> bool {
    tree::exists(widget) && get(W_KIND, widget) == kinds::FIELD && !has(widget, F_DISABLED)
}

/// The selected range.
pub fn selection(field: u32) -> (u32, u32) {
    let length = get(W_TEXT_LENGTH, field);
    let (a, b) = (get(W_CARET, field).min(length), get(W_ANCHOR, field).min(length));
    (a.min(b), a.max(b))
}

fn edit(field: u32, from: u32, to: u32, code: Option<u32>, caret: u32) {
    if text::replace(field, from, to, code) {
        set(W_ANCHOR, field, caret);
        move_caret(field, caret);
        tell(CHANGED, field, 0);
    }
}

/// Moves the caret, and scrolls the text so that the caret shows.
fn move_caret(field: u32, caret: u32) {
    set(W_CARET, field, caret);
    let x = text::width(field, caret);
    let room = (getf(W_W, field) - getf(W_PAD_LEFT, field) - getf(W_PAD_RIGHT, field)).max(1.0);
    let scroll = getf(W_SCROLL, field).min(x).max(x - room).max(0.0);
    setf(W_SCROLL, field, scroll);
    store(D_CHANGED, 1);
}
