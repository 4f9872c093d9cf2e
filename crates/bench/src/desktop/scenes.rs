//! What desktops are measured with.

use gpu_run_desktop::event::{self as e, icons, kinds, properties as p, style};
use gpu_run_desktop::text;
use gpu_run_machine::Event;
use std::f32::consts::TAU;
use std::time::Duration;

/// A desktop, and what happens in each frame of it.
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) size: (u32, u32),
    /// What a frame may take, of a hundred 99.
    pub(super) budget: Duration,
    pub(super) begins: fn() -> Vec<Event>,
    pub(super) frame: fn(u32) -> Vec<Event>,
}

/// 120 frames a second.
const FRAME: Duration = Duration::from_nanos(8_333_333);
const FULL_HD: (u32, u32) = (1920, 1080);

pub(super) const SCENES: [Scene; 5] = [
    Scene {
        name: "moving",
        what: "256 widgets in 16 windows, all of which move, at 3840 x 2160",
        size: (3840, 2160),
        budget: FRAME,
        begins: moving,
        frame: move_all,
    },
    Scene {
        name: "scrolling",
        what: "10,000 widgets in a panel that scrolls, at 1920 x 1080",
        size: FULL_HD,
        budget: FRAME,
        begins: scrolling,
        frame: scroll,
    },
    Scene {
        name: "glyphs",
        what: "4,000 glyphs that change in each frame, at 1920 x 1080",
        size: FULL_HD,
        budget: FRAME,
        begins: glyphs,
        frame: change_glyphs,
    },
    Scene {
        name: "dragging",
        what: "a window with 64 widgets that the pointer drags, at 1920 x 1080",
        size: FULL_HD,
        // On two cores, 30 frames a second are asked for.
        budget: FRAME,
        begins: dragging,
        frame: drag,
    },
    Scene {
        name: "hovering",
        what: "the pointer goes over the buttons of this window, at 1920 x 1080",
        size: FULL_HD,
        budget: FRAME,
        begins: dragging,
        frame: hover,
    },
];

fn create(widget: u32, kind: u32, parent: u32) -> Event {
    Event { kind: e::CREATE, key: widget, a: kind, b: parent, ..Event::default() }
}

fn set(widget: u32, property: u32, value: f32) -> Event {
    word(widget, property, value.to_bits())
}

fn word(widget: u32, property: u32, value: u32) -> Event {
    Event { kind: e::SET, key: widget, a: property, b: value, ..Event::default() }
}

fn pointer(kind: u16, x: f32, y: f32) -> Event {
    let at = |at: f32| (at * 256.0) as i32 as u32;
    Event { kind, a: at(x), b: at(y), ..Event::default() }
}

fn window(widget: u32, [left, top, width, height]: [f32; 4]) -> Vec<Event> {
    let mut events = vec![create(widget, kinds::WINDOW, 0)];
    events.extend(text(widget, "Window"));
    let places = [(p::LEFT, left), (p::TOP, top), (p::WIDTH, width), (p::HEIGHT, height)];
    events.extend(places.map(|(property, value)| set(widget, property, value)));
    events
}

const WINDOWS: u32 = 16;
const IN_EACH: u32 = 15;

fn place(window: u32, frame: u32) -> (f32, f32) {
    let (column, row) = ((window % 4) as f32, (window / 4) as f32);
    let angle = frame as f32 / 120.0 * TAU + window as f32;
    (200.0 + column * 880.0 + angle.cos() * 120.0, 60.0 + row * 500.0 + angle.sin() * 60.0)
}

fn moving() -> Vec<Event> {
    const KINDS: [u32; 5] = [kinds::LABEL, kinds::SLIDER, kinds::PROGRESS, kinds::BUTTON, kinds::CHECKBOX];
    let mut events = Vec::new();
    for number in 0..WINDOWS {
        let (first, (left, top)) = (1 + number * (IN_EACH + 1), place(number, 0));
        events.extend(window(first, [left, top, 760.0, 540.0]));
        for child in 0..IN_EACH {
            let widget = first + 1 + child;
            events.push(create(widget, KINDS[(child % 5) as usize], first));
            events.extend(text(widget, "Everything moves"));
        }
    }
    events
}

fn move_all(frame: u32) -> Vec<Event> {
    let mut events = Vec::new();
    for number in 0..WINDOWS {
        let (first, (left, top)) = (1 + number * (IN_EACH + 1), place(number, frame));
        events.extend([set(first, p::LEFT, left), set(first, p::TOP, top)]);
        for child in [1, 2, 6, 7, 11, 12] {
            let value = (frame as f32 / 60.0 + child as f32).sin() / 2.0 + 0.5;
            events.push(set(first + 1 + child, p::VALUE, value));
        }
    }
    events
}

/// Rows of a panel, an icon's button and two labels each.
const ROWS: u32 = 2_500;
const PANEL: u32 = 2;

fn scrolling() -> Vec<Event> {
    let mut events = window(1, [40.0, 20.0, 1800.0, 1000.0]);
    events.extend([create(PANEL, kinds::SCROLL, 1), set(PANEL, p::GROW, 1.0), set(PANEL, p::BASIS, 0.0)]);
    for row in 0..ROWS {
        let first = PANEL + 1 + row * 4;
        events.extend([
            create(first, kinds::PANEL, PANEL),
            word(first, p::STYLE, style::ROW << style::DIRECTION | style::CENTER << style::ALIGN_ITEMS),
            set(first, p::GAP_X, 12.0),
            create(first + 1, kinds::BUTTON, first),
            word(first + 1, p::ICON, 1 + row % icons::LAST),
            create(first + 2, kinds::LABEL, first),
            create(first + 3, kinds::LABEL, first),
        ]);
        events.extend(text(first + 1, "Open"));
        events.extend(text(first + 2, &format!("Row {row}")));
        events.extend(text(first + 3, "scrolls by"));
    }
    events.push(pointer(e::MOVE, 900.0, 500.0));
    events
}

fn scroll(frame: u32) -> Vec<Event> {
    // Up and down, some units a frame.
    let by = if frame % 480 < 240 { 14 } else { -14 };
    vec![Event { kind: e::WHEEL, b: (by * 256) as u32, ..Event::default() }]
}

const LABELS: u32 = 80;
const GLYPHS: u32 = 50;

fn glyphs() -> Vec<Event> {
    let mut events = window(1, [20.0, 10.0, 1860.0, 1040.0]);
    events.push(word(1, p::STYLE, style::COLUMN << style::DIRECTION | 1 << style::WRAP));
    for label in 0..LABELS {
        let widget = 2 + label;
        events.extend([create(widget, kinds::LABEL, 1), set(widget, p::WIDTH, 560.0)]);
    }
    events.extend(change_glyphs(0));
    events
}

fn change_glyphs(frame: u32) -> Vec<Event> {
    let letter = |label: u32, at: u32| (b'A' + ((label * 7 + at * 3 + frame) % 26) as u8) as char;
    let line = |label: u32| (0..GLYPHS).map(|at| letter(label, at)).collect::<String>();
    (0..LABELS).flat_map(|label| text(2 + label, &line(label))).collect()
}

const BUTTONS: u32 = 63;
/// The middle of the first button, and the steps to the next ones.
const BUTTON: (f32, f32) = (150.0, 100.0);
const STEP: (f32, f32) = (110.0, 60.0);

fn dragging() -> Vec<Event> {
    let mut events = window(1, [80.0, 30.0, 1060.0, 520.0]);
    for button in 0..BUTTONS {
        let (widget, (column, row)) = (2 + button, ((button % 9) as f32, (button / 9) as f32));
        events.extend([
            create(widget, kinds::BUTTON, 1),
            word(widget, p::STYLE, 1 << style::ABSOLUTE),
            set(widget, p::LEFT, 20.0 + column * STEP.0),
            set(widget, p::TOP, 20.0 + row * STEP.1),
            set(widget, p::WIDTH, 100.0),
            set(widget, p::HEIGHT, 40.0),
        ]);
        events.extend(text(widget, "Press"));
    }
    events
}

fn drag(frame: u32) -> Vec<Event> {
    let angle = frame as f32 / 120.0 * TAU;
    let at = (400.0 + angle.sin() * 250.0, 48.0 + (1.0 - angle.cos()) * 200.0);
    let mut events = vec![pointer(e::MOVE, at.0, at.1)];
    if frame == 0 {
        events.push(pointer(e::PRESS, at.0, at.1));
    }
    events
}

fn hover(frame: u32) -> Vec<Event> {
    let button = frame / 4;
    let at = (BUTTON.0 + (button % 9) as f32 * STEP.0, BUTTON.1 + (button / 9 % 7) as f32 * STEP.1);
    vec![pointer(e::MOVE, at.0, at.1)]
}
