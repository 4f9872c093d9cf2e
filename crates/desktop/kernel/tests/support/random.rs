//! Random steps: what users and owners could do, in any order.

use super::events::*;
use super::{Event, e};
use e::{keys, kinds, looks, modifiers, properties as p};
use fastrand::Rng;

/// Whose widgets: their numbers are below `widgets`. The desktop has at most `width` by `height` pixels.
#[derive(Clone, Copy)]
pub struct Range {
    pub widgets: u32,
    pub width: u32,
    pub height: u32,
}

/// How many widgets [`begin`] makes, the desktop among them.
pub const AT_FIRST: u32 = 30;

/// A window with a widget of each kind, and a second window.
pub fn begin(range: Range) -> Vec<Event> {
    let mut events = vec![
        resize(range.width, range.height, 1.0),
        create(1, kinds::WINDOW, 0),
        set(1, p::LEFT, 20.0),
        set(1, p::TOP, 10.0),
    ];
    for (widget, kind) in (2..).zip(kinds::PANEL..=kinds::LAST) {
        events.push(create(widget, kind, 1));
        events.extend(text(widget, "Fox"));
    }
    // The kinds that have pixels have some, and the button a menu and a tooltip.
    for kind in [kinds::CANVAS, kinds::IMAGE] {
        events.push(set_word(2 + kind - kinds::PANEL, p::PIXEL_SIZE, 24 | 16 << 16));
    }
    for (widget, kind, parent) in [(27, kinds::MENU, 4), (28, kinds::TOOLTIP, 4), (29, kinds::WINDOW, 0)] {
        events.push(create(widget, kind, parent));
        events.extend(text(widget, "Cut\nCopy"));
    }
    events.push(set(29, p::LEFT, 200.0));
    events
}

/// Removes every widget, and the names of apps.
pub fn farewell(range: Range) -> Vec<Event> {
    (1..range.widgets).map(destroy).chain(text(0, "")).collect()
}

/// Something that a user or an owner could do.
pub fn act(random: &mut Rng, range: Range) -> Vec<Event> {
    let widget = random.u32(0..range.widgets);
    let (x, y) = (random.f32() * range.width as f32, random.f32() * range.height as f32);
    let one = match random.u32(..40) {
        0 => create(widget, kinds::WINDOW, 0),
        1..=3 => create(widget, random.u32(2..=kinds::LAST), random.u32(0..range.widgets)),
        4 => destroy(widget),
        5 | 6 => return text(widget, &"The quick brown fox jumps"[..random.usize(..25)]),
        7 | 8 => set(widget, random.u32(..=p::LAST_STYLE), random.u32(..200) as f32),
        9 => set(widget, p::VALUE, random.f32()),
        10 => set_word(widget, p::LOOK, random.u32(..=looks::TITLE)),
        11 => set(widget, p::FONT, 8.0 + random.f32() * 20.0),
        12 => set_word(widget, p::STYLE, random.u32(..) & !(1 << e::style::HIDDEN)),
        13 => set_word(widget, p::DISABLED, random.u32(..2)),
        14 => Event { kind: e::THEME, a: random.u32(..2), ..Event::default() },
        15 => {
            let (less, scale) = (random.u32(..40), [1.0, 1.0, 1.5, 2.0][random.usize(..4)]);
            resize(range.width - less, range.height - less, scale)
        }
        16..=18 => pointer(e::MOVE, x, y),
        19 => pointer(e::PRESS, x, y),
        20 => pointer(e::RELEASE, x, y),
        21 | 22 => {
            let with = [0, modifiers::SHIFT, modifiers::CONTROL, modifiers::ALT][random.usize(..4)];
            key(random.u32(1..=keys::F4), with)
        }
        23 => Event { kind: e::TYPE, key: random.u32(32..300), ..Event::default() },
        24 => return text(0, ["", "Files\nPlot", "Files\n-\nA longer name of an app"][random.usize(..3)]),
        25 => return text(widget, ["One\nTwo\n-\nThree", "A\nB"][random.usize(..2)]),
        26 => set_word(widget, p::SELECTED, random.u32(..4)),
        27 => set_word(widget, [p::OPEN, p::MINIMISED][random.usize(..2)], random.u32(..2)),
        28 => set_word(widget, p::PIXEL_SIZE, random.u32(..40) | random.u32(..30) << 16),
        29 | 30 => return pixels(random, widget),
        31 => return (0..random.u32(..20)).map(|_| point(random, widget)).collect(),
        32 => set_word(widget, p::ICON, random.u32(..20)),
        33 => match random.u32(..5) {
            0 => Event { kind: e::ACCENT, a: random.u32(..1 << 24), ..Event::default() },
            1 => key(keys::APPS, 0),
            2 => Event { kind: e::ZOOM, a: [192, 256, 256, 320][random.usize(..4)], ..Event::default() },
            3 => Event { kind: e::EFFECTS, a: random.u32(..4), ..Event::default() },
            _ => set(widget, p::GREATEST, random.f32() * 50.0),
        },
        _ => return act_in_lines(random, range, widget),
    };
    vec![one]
}

fn key(key: u32, with: u32) -> Event {
    Event { kind: e::KEY, key, a: with, ..Event::default() }
}

fn point(random: &mut Rng, widget: u32) -> Event {
    let (flags, value) = (random.u16(..5), random.f32() * 70.0);
    Event { kind: e::POINT, flags, key: widget, a: value.to_bits(), ..Event::default() }
}

/// Sets some pixels of a canvas, many of them more than once.
fn pixels(random: &mut Rng, widget: u32) -> Vec<Event> {
    let some = |random: &mut Rng| {
        let (runs, a) = (random.bool(), random.u32(..300));
        let flags = if runs { e::PIXELS_RUN } else { random.u16(1..=4) };
        let [b, id, wait] = [random.u32(..), if runs { random.u32(1..100) } else { random.u32(..) }, random.u32(..)];
        Event { kind: e::PIXELS, flags, key: widget, a, b, id, wait }
    };
    (0..random.u32(..40)).map(|_| some(random)).collect()
}

/// The same, with what scrolls and has lines.
fn act_in_lines(random: &mut Rng, range: Range, widget: u32) -> Vec<Event> {
    // The numbers of the first ones are those of their kinds.
    let widget = if random.bool() { random.u32(kinds::AREA..=kinds::SCROLL) } else { widget };
    let one = match random.u32(..10) {
        0 | 1 => {
            let texts =
                ["One\ttwo\nA\t1\nB\t20\nC\t3", "A line that is broken\nsomewhere ", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"];
            return text(widget, texts[random.usize(..3)]);
        }
        2 | 3 => {
            let turned = random.i32(-60..60) * 256;
            Event { kind: e::WHEEL, b: turned as u32, ..Event::default() }
        }
        4 => set_word(widget, p::SELECTED, random.u32(..6)),
        5 => set(widget, p::SCROLLED, random.u32(..100) as f32),
        6 => key(random.u32(keys::COPY..=keys::PAGE_DOWN), [0, modifiers::SHIFT][random.usize(..2)]),
        7 => set_word(widget, p::READ_ONLY, random.u32(..2)),
        8 => return pieces(e::PASTE, 0, "A\nB "),
        _ => {
            let (a, b) = (random.u32(..range.width * 256), random.u32(..range.height * 256));
            Event { kind: e::TOUCH, flags: random.u16(..4), a, b, ..Event::default() }
        }
    };
    vec![one]
}
