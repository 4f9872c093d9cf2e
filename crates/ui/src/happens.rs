//! What happens to an app's widgets.

use crate::connection::Connection;
use crate::event::{self, KEYED_CHARACTER, keys};
use crate::widget::Widget;
use crate::wire::{self, Record};
use std::rc::Rc;

/// What happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A button was clicked.
    Clicked(Widget),
    /// The user changed a value, or a text: [`Widget::text`] has it. The number is that of a slider, and 0 or 1 of a checkbox and a radio
    /// button.
    Changed(Widget, f32),
    /// Enter was pressed in a text field; or a row was double-clicked, or Enter pressed there: the number is the row's.
    Entered(Widget, usize),
    /// A row, a tab or an entry of a menu was chosen.
    Chosen(Widget, usize),
    /// A window was closed. It is gone with everything in it.
    Closed(Widget),
    /// The pointer did something on a canvas, at this column and row of its pixels.
    Pointed(Widget, Pointer, usize, usize),
    /// A key went down while a canvas had the focus.
    Keyed(Widget, Key),
    /// The wheel was turned on a canvas: how far down, in units.
    Wheeled(Widget, f32),
    /// What [`tick_in`](crate::Ui::tick_in) asked for.
    Tick,
}

/// What the pointer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// It moved, with the button down.
    Moved,
    /// The button went down.
    Pressed,
    /// The button went up.
    Released,
}

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // The names say it.
pub enum Key {
    Character(char),
    Enter,
    Escape,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    PageUp,
    PageDown,
    Backspace,
    Delete,
}

impl Event {
    pub(crate) fn new(connection: &Rc<Connection>, record: &Record) -> Option<Self> {
        let widget = || Widget::new(connection, record.key);
        let number = || record.a as usize;
        Some(match record.kind {
            event::CLICKED => Self::Clicked(widget()),
            event::CHANGED => Self::Changed(widget(), f32::from_bits(record.a)),
            event::ENTERED => Self::Entered(widget(), number()),
            event::CHOSEN => Self::Chosen(widget(), number()),
            event::CLOSED => Self::Closed(widget()),
            event::POINTED => {
                let what = match record.flags {
                    0 => Pointer::Moved,
                    1 => Pointer::Pressed,
                    _ => Pointer::Released,
                };
                Self::Pointed(widget(), what, (record.a & 0xFFFF) as usize, (record.a >> 16) as usize)
            }
            event::KEYED => Self::Keyed(widget(), key(record.a)?),
            event::WHEELED => Self::Wheeled(widget(), f32::from_bits(record.a)),
            wire::TICK => Self::Tick,
            _ => return None,
        })
    }
}

fn key(code: u32) -> Option<Key> {
    if code & KEYED_CHARACTER != 0 {
        return char::from_u32(code & !KEYED_CHARACTER).map(Key::Character);
    }
    Some(match code {
        keys::SPACE => Key::Character(' '),
        keys::ENTER => Key::Enter,
        keys::ESCAPE => Key::Escape,
        keys::LEFT => Key::Left,
        keys::RIGHT => Key::Right,
        keys::UP => Key::Up,
        keys::DOWN => Key::Down,
        keys::HOME => Key::Home,
        keys::END => Key::End,
        keys::PAGE_UP => Key::PageUp,
        keys::PAGE_DOWN => Key::PageDown,
        keys::BACKSPACE => Key::Backspace,
        keys::DELETE => Key::Delete,
        _ => return None,
    })
}
