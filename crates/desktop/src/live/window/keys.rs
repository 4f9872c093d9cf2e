//! What keys mean; as on the page (`page/desktop.js`), where they are not the browser's.

use crate::event::{self as e, keys, modifiers};
use gpu_run_machine::Event;
use winit::keyboard::{Key, KeyCode, ModifiersState, NamedKey, PhysicalKey};

/// What a pressed key means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Events(Vec<Event>),
    Paste,
}

/// Returns what a key means that is pressed while `held` are down, and would type `text` without them.
pub(super) fn meaning(key: &Key, physical: PhysicalKey, text: Option<&str>, held: ModifiersState) -> Option<Meaning> {
    let is_key = |code| Some(Meaning::Events(vec![press(code, bits(held))]));
    let is_alone = |code| Some(Meaning::Events(vec![press(code, 0)]));
    let command = held.control_key() || held.super_key();
    if command && !held.shift_key() && !held.alt_key() {
        match key.to_text().map(str::to_lowercase).as_deref() {
            Some("a") => return is_alone(keys::SELECT_ALL),
            Some("c") => return is_alone(keys::COPY),
            Some("x") => return is_alone(keys::CUT),
            Some("v") => return Some(Meaning::Paste),
            _ => {}
        }
        match physical {
            PhysicalKey::Code(KeyCode::Backquote) => return is_key(keys::TAB),
            PhysicalKey::Code(KeyCode::Space) if held.control_key() => return is_alone(keys::APPS),
            _ => {}
        }
    }
    match key {
        // These are the system's.
        _ if held.super_key() => None,
        Key::Named(NamedKey::F4) if !held.alt_key() => None,
        Key::Named(NamedKey::Copy) => is_alone(keys::COPY),
        Key::Named(NamedKey::Cut) => is_alone(keys::CUT),
        Key::Named(NamedKey::Paste) => Some(Meaning::Paste),
        Key::Named(NamedKey::Insert) if held == ModifiersState::SHIFT => Some(Meaning::Paste),
        Key::Named(NamedKey::Insert) if held == ModifiersState::CONTROL => is_alone(keys::COPY),
        Key::Named(key) => code(*key).and_then(is_key),
        _ if held.control_key() || held.alt_key() => None,
        _ => text.map(|text| Meaning::Events(typed(text))),
    }
}

fn code(key: NamedKey) -> Option<u32> {
    let code = match key {
        NamedKey::Tab => keys::TAB,
        NamedKey::Enter => keys::ENTER,
        NamedKey::Space => keys::SPACE,
        NamedKey::Escape => keys::ESCAPE,
        NamedKey::ArrowLeft => keys::LEFT,
        NamedKey::ArrowRight => keys::RIGHT,
        NamedKey::ArrowUp => keys::UP,
        NamedKey::ArrowDown => keys::DOWN,
        NamedKey::Home => keys::HOME,
        NamedKey::End => keys::END,
        NamedKey::Backspace => keys::BACKSPACE,
        NamedKey::Delete => keys::DELETE,
        NamedKey::F4 => keys::F4,
        NamedKey::PageUp => keys::PAGE_UP,
        NamedKey::PageDown => keys::PAGE_DOWN,
        NamedKey::ContextMenu => keys::APPS,
        _ => return None,
    };
    Some(code)
}

fn bits(held: ModifiersState) -> u32 {
    let bit = |is_held: bool, bit: u32| if is_held { bit } else { 0 };
    bit(held.shift_key(), modifiers::SHIFT)
        | bit(held.control_key(), modifiers::CONTROL)
        | bit(held.alt_key(), modifiers::ALT)
}

fn press(key: u32, modifiers: u32) -> Event {
    Event { kind: e::KEY, key, a: modifiers, ..Event::default() }
}

/// The events of a text that was typed, or composed by an input method.
pub(super) fn typed(text: &str) -> Vec<Event> {
    let event = |character: char| match character {
        '\n' => Some(press(keys::ENTER, 0)),
        control if control.is_control() => None,
        // A character of the desktop has 16 bits.
        character => {
            let key = u16::try_from(u32::from(character)).unwrap_or(0xFFFD);
            Some(Event { kind: e::TYPE, key: key.into(), ..Event::default() })
        }
    };
    text.chars().filter_map(event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: ModifiersState = ModifiersState::empty();
    const CONTROL: ModifiersState = ModifiersState::CONTROL;
    const SHIFT: ModifiersState = ModifiersState::SHIFT;
    const ALT: ModifiersState = ModifiersState::ALT;

    fn character(text: &str, code: KeyCode, held: ModifiersState) -> Option<Meaning> {
        meaning(&Key::Character(text.into()), PhysicalKey::Code(code), Some(text), held)
    }

    fn named(key: NamedKey, code: KeyCode, held: ModifiersState) -> Option<Meaning> {
        meaning(&Key::Named(key), PhysicalKey::Code(code), key.to_text(), held)
    }

    fn key(code: u32, modifiers: u32) -> Option<Meaning> {
        Some(Meaning::Events(vec![press(code, modifiers)]))
    }

    #[test]
    fn named_keys_bring_their_modifiers() {
        assert_eq!(named(NamedKey::Tab, KeyCode::Tab, SHIFT), key(keys::TAB, modifiers::SHIFT));
        assert_eq!(named(NamedKey::Enter, KeyCode::Enter, NONE), key(keys::ENTER, 0));
        assert_eq!(named(NamedKey::Space, KeyCode::Space, NONE), key(keys::SPACE, 0));
        let both = modifiers::SHIFT | modifiers::CONTROL;
        assert_eq!(named(NamedKey::ArrowLeft, KeyCode::ArrowLeft, SHIFT | CONTROL), key(keys::LEFT, both));
        assert_eq!(named(NamedKey::F4, KeyCode::F4, ALT), key(keys::F4, modifiers::ALT));
        assert_eq!(named(NamedKey::F4, KeyCode::F4, NONE), None);
        assert_eq!(named(NamedKey::F5, KeyCode::F5, NONE), None);
        assert_eq!(named(NamedKey::Tab, KeyCode::Tab, ModifiersState::SUPER), None);
    }

    #[test]
    fn commands_are_keys_of_their_own() {
        assert_eq!(character("c", KeyCode::KeyC, CONTROL), key(keys::COPY, 0));
        assert_eq!(character("X", KeyCode::KeyX, CONTROL), key(keys::CUT, 0));
        assert_eq!(character("a", KeyCode::KeyA, CONTROL), key(keys::SELECT_ALL, 0));
        assert_eq!(character("v", KeyCode::KeyV, CONTROL), Some(Meaning::Paste));
        assert_eq!(named(NamedKey::Insert, KeyCode::Insert, SHIFT), Some(Meaning::Paste));
        assert_eq!(character("`", KeyCode::Backquote, CONTROL), key(keys::TAB, modifiers::CONTROL));
        assert_eq!(named(NamedKey::Space, KeyCode::Space, CONTROL), key(keys::APPS, 0));
        assert_eq!(character("c", KeyCode::KeyC, CONTROL | SHIFT), None);
        assert_eq!(character("t", KeyCode::KeyT, CONTROL), None);
        assert_eq!(character("f", KeyCode::KeyF, ALT), None);
    }

    #[test]
    fn everything_else_is_typed() {
        let typed = |characters: &str| {
            let event = |c| Event { kind: e::TYPE, key: u32::from(c), ..Event::default() };
            Some(Meaning::Events(characters.chars().map(event).collect()))
        };
        assert_eq!(character("É", KeyCode::KeyE, SHIFT), typed("É"));
        assert_eq!(character("😀", KeyCode::KeyE, NONE), typed("\u{FFFD}"));
        assert_eq!(character("\u{1b}", KeyCode::KeyE, NONE), typed(""));
        assert_eq!(super::typed("a\n").last(), Some(&press(keys::ENTER, 0)));
    }
}
