//! The events of owners and of the pointer.

use super::{Event, e};

pub fn create(widget: u32, kind: u32, parent: u32) -> Event {
    Event { kind: e::CREATE, key: widget, a: kind, b: parent, id: 1000 + widget, ..Event::default() }
}

pub fn destroy(widget: u32) -> Event {
    Event { kind: e::DESTROY, key: widget, ..Event::default() }
}

pub fn set(widget: u32, property: u32, value: f32) -> Event {
    set_word(widget, property, value.to_bits())
}

pub fn set_word(widget: u32, property: u32, value: u32) -> Event {
    Event { kind: e::SET, key: widget, a: property, b: value, ..Event::default() }
}

pub fn text(widget: u32, text: &str) -> Vec<Event> {
    pieces(e::TEXT, widget, text)
}

/// A text in pieces of six characters, in events of this kind.
pub fn pieces(kind: u16, key: u32, text: &str) -> Vec<Event> {
    let codes: Vec<u32> = text.chars().map(|c| c as u32).collect();
    let pieces: Vec<&[u32]> = if codes.is_empty() { vec![&[]] } else { codes.chunks(6).collect() };
    let event = |(i, piece): (usize, &&[u32])| {
        let at = |i: usize| piece.get(i).copied().unwrap_or(0);
        let flags = piece.len() as u16 | if i == 0 { e::TEXT_BEGINS } else { 0 };
        let [a, b, id] = [0, 2, 4].map(|i| at(i) | at(i + 1) << 16);
        Event { kind, flags, key, a, b, id, ..Event::default() }
    };
    pieces.iter().enumerate().map(event).collect()
}

pub fn resize(width: u32, height: u32, scale: f32) -> Event {
    Event { kind: e::RESIZE, key: (scale * 256.0) as u32, a: width, b: height, ..Event::default() }
}

/// The pointer at a place in pixels.
pub fn pointer(kind: u16, x: f32, y: f32) -> Event {
    let at = |v: f32| (v * 256.0) as i32 as u32;
    Event { kind, a: at(x), b: at(y), ..Event::default() }
}
