//! Records of the wire between apps and the desktop (`crates/ui`) as events of the desktop.

use gpu_run_machine::Event;
use gpu_run_ui::wire::{self, Record};

/// Returns the event with the same words.
pub(crate) fn event(it: &Record) -> Event {
    Event { kind: it.kind, flags: it.flags, key: it.key, a: it.a, b: it.b, id: it.id, wait: it.wait }
}

/// Returns the events that set a widget's text.
pub fn text(key: u32, text: &str) -> Vec<Event> {
    wire::text(key, text, true).iter().map(event).collect()
}

/// Returns the events that add to a widget's text.
pub(crate) fn more_text(key: u32, text: &str) -> Vec<Event> {
    wire::text(key, text, false).iter().map(event).collect()
}
