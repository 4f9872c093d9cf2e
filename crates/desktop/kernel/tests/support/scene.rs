// A scene for tests on the twin and on devices: both include this file, after they have named `Event`, the module of events `e`, and `p`,
// its properties.

pub const WIDTH: u32 = 260;
pub const HEIGHT: u32 = 190;

/// The FNV-1a hash of the picture's bytes after the last frame.
pub const HASH: u64 = 0xd708_7c7f_5326_49dd;

fn make(widget: u32, kind: u32, parent: u32) -> Event {
    Event { kind: e::CREATE, key: widget, a: kind, b: parent, ..Event::default() }
}

fn set(widget: u32, property: u32, value: f32) -> Event {
    Event { kind: e::SET, key: widget, a: property, b: value.to_bits(), ..Event::default() }
}

fn write(widget: u32, text: &str) -> Event {
    let at = |i: usize| text.chars().nth(i).map_or(0, |c| c as u32);
    let [a, b, id] = [0, 2, 4].map(|i| at(i) | at(i + 1) << 16);
    let flags = text.chars().count() as u16 | e::TEXT_BEGINS;
    Event { kind: e::TEXT, flags, key: widget, a, b, id, ..Event::default() }
}

fn pointer(kind: u16, x: u32, y: u32) -> Event {
    Event { kind, a: x * 256, b: y * 256, ..Event::default() }
}

/// The events of each frame.
pub fn frames() -> Vec<Vec<Event>> {
    use e::kinds::*;
    let mut first = vec![Event { kind: e::RESIZE, key: 256, a: WIDTH, b: HEIGHT, ..Event::default() }];
    for (window, x) in [(1, 8.0), (20, 70.0)] {
        first.extend([make(window, WINDOW, 0), write(window, "Window")]);
        first.extend([set(window, p::LEFT, x), set(window, p::TOP, x / 4.0)]);
        for (i, kind) in [LABEL, BUTTON, CHECKBOX, SLIDER, FIELD, PROGRESS].into_iter().enumerate() {
            let widget = window + 1 + i as u32;
            first.extend([make(widget, kind, window), write(widget, "Grüße"), set(widget, p::VALUE, 0.4)]);
        }
    }
    let mut frames = vec![first, vec![], vec![pointer(e::PRESS, 60, 16)], vec![pointer(e::MOVE, 68, 24)]];
    frames.push(vec![pointer(e::RELEASE, 68, 24), pointer(e::MOVE, 60, 106), pointer(e::PRESS, 60, 106)]);
    frames.push(vec![pointer(e::RELEASE, 60, 106)]);
    frames.push(vec![Event { kind: e::KEY, key: e::keys::TAB, ..Event::default() }]);
    frames.push(vec![Event { kind: e::THEME, a: 1, ..Event::default() }]);
    frames.extend([vec![], vec![]]);
    frames
}

pub fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
