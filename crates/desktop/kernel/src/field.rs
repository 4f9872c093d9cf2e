//! Text fields: one line of text that scrolls to the side.

use crate::caret;
use crate::dispatch::{pointer, tell};
use crate::event::{ENTERED, keys::*, modifiers};
use crate::memory::*;
use crate::text;

/// The place between characters that is nearest to the pointer.
pub fn under_pointer(field: u32) -> u32 {
    let from = getf(W_AT_X, field) + getf(W_PAD_LEFT, field) - getf(W_SCROLL, field);
    text::place_at(field, pointer().0 - from)
}

pub fn key(field: u32, key: u32, with: u32) {
    let selects = with & modifiers::SHIFT != 0;
    match key {
        HOME => caret::move_to(field, 0, selects),
        END => caret::move_to(field, get(W_TEXT_LENGTH, field), selects),
        ENTER => tell(ENTERED, field, 0),
        _ => {
            caret::key(field, key, with);
        }
    }
}

/// Scrolls the text so that the caret shows.
pub fn show_caret(field: u32) {
    let x = text::width(field, get(W_CARET, field));
    let room = (getf(W_W, field) - getf(W_PAD_LEFT, field) - getf(W_PAD_RIGHT, field)).max(1.0);
    let scroll = getf(W_SCROLL, field).min(x).max(x - room).max(0.0);
    setf(W_SCROLL, field, scroll);
}
