//! Dispatch: what the inputs of the tick do, one after the other: hover, press, drag, focus. Owners are told.

use crate::event::{keys, kinds, *};
use crate::memory::*;
use crate::{canvas, caret, keyboard, list, menu, overlay, scroll, tabs, tooltip, touch, tree, window};
use gpu_run_kernel::event::Event;
use gpu_run_kernel::gpu::{load, store};
use gpu_run_kernel::input::get as event;
use gpu_run_kernel::team::Team;

pub fn dispatch(team: &Team) {
    if team.leads() {
        let inputs = load(S_INPUTS);
        let mut i = 0;
        while i < inputs {
            let hit = load(INPUTS + i * 8 + 4);
            act(&event(load(INPUTS + i * 8)), if tree::exists(hit) { hit } else { NONE });
            i += 1;
        }
    }
    team.meet();
}

fn act(it: &Event, hit: u32) {
    match it.kind {
        MOVE => {
            point_at(it, hit);
        }
        PRESS if it.key == 0 => {
            let hit = point_at(it, hit);
            press(hit);
        }
        RELEASE if it.key == 0 => {
            point_at(it, hit);
            release();
        }
        KEY => keyboard::key(it.key, it.a),
        TYPE if it.key >= 32 && it.key != 127 => keyboard::character(it.key),
        PASTE if !menu::is_open() => caret::paste(load(D_FOCUS), it),
        WHEEL if overlay::is_under_pointer() => {}
        WHEEL if is_active(hit) && get(W_KIND, hit) == kinds::CANVAS => {
            canvas::wheel(hit, it.b as i32 as f32 / load(D_SCALE) as f32);
        }
        WHEEL => scroll::wheel(hit, it.b as i32),
        TOUCH => touch::touch(it, hit),
        _ => {}
    }
}

/// Whether a widget takes the pointer and the keys.
pub fn is_active(widget: u32) -> bool {
    tree::exists(widget) && takes_input(get(W_KIND, widget)) && !has(widget, F_DISABLED)
}

/// Whether widgets of a kind take the pointer and the keys, if they are not disabled.
pub fn takes_input(kind: u32) -> bool {
    matches!(kind, kinds::BUTTON..=kinds::FIELD | kinds::AREA..=kinds::TABLE | kinds::TABS | kinds::CANVAS)
}

/// The window that a widget is in, or [`NONE`].
pub fn window_of(mut widget: u32) -> u32 {
    while widget != NONE && get(W_KIND, widget) != kinds::WINDOW {
        widget = get(W_PARENT, widget);
    }
    widget
}

/// The pointer's place in units.
pub fn pointer() -> (f32, f32) {
    (load(D_POINTER_X) as i32 as f32 / 256.0, load(D_POINTER_Y) as i32 as f32 / 256.0)
}

/// An event's place in 256ths of a unit.
pub fn in_units(place: u32) -> i32 {
    (place as i32 as i64 * 256 / load(D_SCALE) as i64) as i32
}

fn point_at(it: &Event, hit: u32) -> u32 {
    point(in_units(it.a), in_units(it.b), hit)
}

/// Moves the pointer to a place in 256ths of a unit. Returns the widget that it is on: none, if something lies above.
pub fn point(x: i32, y: i32, hit: u32) -> u32 {
    let before = scroll::spot(load(D_HOVER));
    store(D_POINTER_X, x as u32);
    store(D_POINTER_Y, y as u32);
    let hit = if overlay::point(hit) { NONE } else { hit };
    let bar = scroll::bar_at(hit);
    let target = match () {
        _ if bar != NONE => bar,
        _ if is_active(hit) || hit != NONE && get(W_KIND, hit) == kinds::WINDOW => hit,
        _ => NONE,
    };
    if load(D_HOVER) != target || scroll::spot(target) != before {
        store(D_HOVER, target);
        store(D_CHANGED, 1);
    }
    tooltip::point(target);
    if target != NONE && matches!(get(W_KIND, target), kinds::WINDOW | kinds::TABS) {
        // Tabs and the buttons of a title bar are no widgets: which one is under the pointer shows by itself.
        store(D_CHANGED, 1);
    }
    let pressed = load(D_PRESS);
    if pressed == NONE {
        return hit;
    }
    match get(W_KIND, pressed) {
        _ if scroll::is_held(pressed) => scroll::drag(pressed),
        kinds::SLIDER => slide(pressed),
        kinds::FIELD | kinds::AREA => caret::drag(pressed),
        kinds::WINDOW => window::drag(pressed),
        kinds::CANVAS => canvas::drag(pressed),
        _ => {}
    }
    hit
}

pub fn press(hit: u32) {
    store(D_CHANGED, 1);
    store(D_RING, 0);
    if overlay::press(hit) {
        return;
    }
    let window = window_of(hit);
    if window != NONE {
        tree::raise(window);
    }
    let target = load(D_HOVER);
    store(D_PRESS, target);
    store(D_PART, 0);
    let is_double = is_second(target);
    if target != NONE && scroll::scrolls(target) && scroll::is_on_bar(target) {
        // A scroll bar leaves the focus where it is.
        return scroll::press(target);
    }
    store(D_FOCUS, if is_active(target) { target } else { NONE });
    if target == NONE {
        return;
    }
    match get(W_KIND, target) {
        kinds::SLIDER => slide(target),
        kinds::FIELD | kinds::AREA => caret::press(target, is_double),
        kinds::LIST | kinds::TABLE => list::press(target, is_double),
        kinds::WINDOW => window::press(target),
        kinds::TABS => tabs::press(target),
        kinds::CANVAS => canvas::press(target),
        _ => {}
    }
}

/// Whether the pointer is where it was last pressed.
pub fn is_near_click() -> bool {
    const FARTHEST: u32 = 4 * 256;
    let near = |from: u32, to: u32| (load(from) as i32).wrapping_sub(load(to) as i32).unsigned_abs() <= FARTHEST;
    near(D_CLICK_X, D_POINTER_X) && near(D_CLICK_Y, D_POINTER_Y)
}

/// Whether this press on a widget follows another one at the same place soon enough to be the second of a double click.
fn is_second(target: u32) -> bool {
    const LATEST: u32 = 400_000;
    let is_late = load(D_CLOCK).wrapping_sub(load(D_CLICK_AT)) > LATEST;
    let is_second = target != NONE && load(D_CLICK_ON) == target && !is_late && is_near_click();
    store(D_CLICK_ON, if is_second { NONE } else { target });
    store(D_CLICK_AT, load(D_CLOCK));
    store(D_CLICK_X, load(D_POINTER_X));
    store(D_CLICK_Y, load(D_POINTER_Y));
    is_second
}

pub fn release() {
    let pressed = load(D_PRESS);
    store(D_PRESS, NONE);
    store(D_CHANGED, 1);
    if overlay::release() || pressed == NONE {
        return;
    }
    if get(W_KIND, pressed) == kinds::WINDOW {
        window::release(pressed);
    } else if get(W_KIND, pressed) == kinds::CANVAS {
        canvas::release(pressed);
    } else if load(D_HOVER) == pressed {
        activate(pressed);
    }
}

/// Does what a click does.
pub fn activate(widget: u32) {
    match get(W_KIND, widget) {
        kinds::BUTTON if menu::of(widget) != NONE => menu::toggle(menu::of(widget)),
        kinds::BUTTON => tell(CLICKED, widget, 0),
        kinds::CHECKBOX => set_value(widget, if getf(W_VALUE, widget) < 0.5 { 1.0 } else { 0.0 }),
        kinds::RADIO => choose(widget),
        _ => {}
    }
}

/// Chooses a radio button; the others of the same parent are not chosen any more.
pub fn choose(widget: u32) {
    let mut other = get(W_FIRST, get(W_PARENT, widget));
    while other != NONE {
        if other != widget && get(W_KIND, other) == kinds::RADIO {
            setf(W_VALUE, other, 0.0);
        }
        other = get(W_NEXT, other);
    }
    set_value(widget, 1.0);
}

/// Sets a value that the user chose, and tells the owner.
pub fn set_value(widget: u32, value: f32) {
    if getf(W_VALUE, widget) != value {
        setf(W_VALUE, widget, value);
        store(D_CHANGED, 1);
        tell(CHANGED, widget, value.to_bits());
    }
}

/// Moves a slider's thumb to the pointer.
fn slide(widget: u32) {
    let room = getf(W_W, widget) - crate::theme::THUMB;
    let at = pointer().0 - getf(W_AT_X, widget) - crate::theme::THUMB / 2.0;
    set_value(widget, if room > 0.0 { (at / room).clamp(0.0, 1.0) } else { 0.0 });
}

/// Tells a widget's owner something at the end of the frame.
pub fn tell(kind: u16, widget: u32, value: u32) {
    tell_all(kind as u32, widget, value, 0);
}

/// Tells something with flags.
pub fn tell_with(kind: u16, flags: u16, widget: u32, value: u32) {
    tell_all(kind as u32 | (flags as u32) << 16, widget, value, 0);
}

/// Tells something of the same kind no second time in a row: a text that changed several times has changed.
pub fn tell_once(kind: u16, widget: u32) {
    let last = MESSAGES + load(S_MESSAGES).saturating_sub(1) * MESSAGE_BYTES;
    if load(S_MESSAGES) == 0 || load(last) != kind as u32 || load(last + 4) != widget {
        tell(kind, widget, 0);
    }
}

/// Tells two values.
pub fn tell_range(kind: u16, widget: u32, value: u32, to: u32) {
    tell_all(kind as u32, widget, value, to);
}

fn tell_all(kind_and_flags: u32, widget: u32, value: u32, to: u32) {
    let count = load(S_MESSAGES);
    if count < MAX_MESSAGES {
        let at = MESSAGES + count * MESSAGE_BYTES;
        store(at, kind_and_flags);
        store(at + 4, widget);
        store(at + 8, value);
        store(at + 12, get(W_OWNER, widget));
        store(at + 16, to);
        store(S_MESSAGES, count + 1);
    }
}

/// Moves the focus, by keyboard.
pub fn focus(widget: u32) {
    store(D_FOCUS, widget);
    store(D_RING, 1);
    store(D_REVEAL, if widget == NONE { 0 } else { widget });
    store(D_CHANGED, 1);
    tooltip::focus(widget);
    if widget != NONE && get(W_KIND, widget) == kinds::FIELD {
        caret::key(widget, keys::SELECT_ALL, 0);
    }
}
