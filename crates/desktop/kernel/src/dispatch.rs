//! Dispatch: what the inputs of the tick do, one after the other: hover, press, drag, focus. Owners are told.

use crate::event::{keys, kinds, *};
use crate::memory::*;
use crate::{canvas, field, keyboard, menu, overlay, tabs, tooltip, tree, window};
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
            point(it, hit);
        }
        PRESS if it.key == 0 => {
            let hit = point(it, hit);
            press(hit);
        }
        RELEASE if it.key == 0 => {
            point(it, hit);
            release();
        }
        KEY => keyboard::key(it.key, it.a),
        TYPE if it.key >= 32 && it.key != 127 => keyboard::character(it.key),
        _ => {}
    }
}

/// Whether a widget takes the pointer and the keys.
pub fn is_active(widget: u32) -> bool {
    tree::exists(widget) && takes_input(get(W_KIND, widget)) && !has(widget, F_DISABLED)
}

/// Whether widgets of a kind take the pointer and the keys, if they are not disabled.
pub fn takes_input(kind: u32) -> bool {
    matches!(kind, kinds::BUTTON..=kinds::FIELD | kinds::TABS | kinds::CANVAS)
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

/// Moves the pointer. Returns the widget that it is on: none, if something lies above.
fn point(it: &Event, hit: u32) -> u32 {
    let scale = load(D_SCALE) as i64;
    store(D_POINTER_X, ((it.a as i32 as i64) * 256 / scale) as u32);
    store(D_POINTER_Y, ((it.b as i32 as i64) * 256 / scale) as u32);
    let hit = if overlay::point(hit) { NONE } else { hit };
    let target = if is_active(hit) || hit != NONE && get(W_KIND, hit) == kinds::WINDOW { hit } else { NONE };
    if load(D_HOVER) != target {
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
        kinds::SLIDER => slide(pressed),
        kinds::FIELD => field::drag(pressed),
        kinds::WINDOW => window::drag(pressed),
        kinds::CANVAS => canvas::drag(pressed),
        _ => {}
    }
    hit
}

fn press(hit: u32) {
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
    store(D_FOCUS, if is_active(target) { target } else { NONE });
    if target == NONE {
        return;
    }
    match get(W_KIND, target) {
        kinds::SLIDER => slide(target),
        kinds::FIELD => field::press(target),
        kinds::WINDOW => window::press(target),
        kinds::TABS => tabs::press(target),
        kinds::CANVAS => canvas::press(target),
        _ => {}
    }
}

fn release() {
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
    tell_with(kind, 0, widget, value);
}

pub fn tell_with(kind: u16, flags: u16, widget: u32, value: u32) {
    let count = load(S_MESSAGES);
    if count < MAX_MESSAGES {
        let at = MESSAGES + count * MESSAGE_BYTES;
        store(at, kind as u32 | (flags as u32) << 16);
        store(at + 4, widget);
        store(at + 8, value);
        store(at + 12, get(W_OWNER, widget));
        store(S_MESSAGES, count + 1);
    }
}

/// Moves the focus, by keyboard.
pub fn focus(widget: u32) {
    store(D_FOCUS, widget);
    store(D_RING, 1);
    store(D_CHANGED, 1);
    tooltip::focus(widget);
    if widget != NONE && get(W_KIND, widget) == kinds::FIELD {
        field::key(widget, keys::SELECT_ALL, 0);
    }
}
