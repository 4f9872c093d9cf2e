//! What users do to things that scroll and have lines.
#![allow(dead_code)] // Each test uses a part of this.

use crate::support::{Desk, events};
use gpu_run_desktop_kernel::event::{self as e, kinds, properties as p};
use gpu_run_desktop_kernel::memory::*;
use gpu_run_kernel::event::Event;

/// A desktop with window 1 at 20, 10, which has widget 2 of this kind in all its content.
pub fn with(kind: u32, text: &str) -> Desk {
    let mut desk = Desk::boot();
    desk.resize(340, 260, 1.0);
    desk.create(1, kinds::WINDOW, 0);
    for (property, value) in [(p::LEFT, 20.0), (p::TOP, 10.0), (p::WIDTH, 300.0), (p::HEIGHT, 240.0)] {
        desk.set(1, property, value);
    }
    desk.create(2, kind, 1);
    desk.set(2, p::GROW, 1.0);
    desk.text(2, text);
    desk.tick();
    desk
}

/// Turns the wheel over a place, so that the content goes up by some units.
pub fn wheel(desk: &mut Desk, (x, y): (f32, f32), up: f32) {
    desk.pointer(e::MOVE, x, y);
    desk.post(Event { kind: e::WHEEL, b: (up * 256.0) as i32 as u32, ..Event::default() });
    desk.tick();
}

pub fn drag(desk: &mut Desk, from: (f32, f32), to: (f32, f32)) {
    for (kind, (x, y)) in [(e::MOVE, from), (e::PRESS, from), (e::MOVE, to), (e::RELEASE, to)] {
        desk.pointer(kind, x, y);
        desk.tick();
    }
}

pub fn touch(desk: &mut Desk, what: u16, (x, y): (f32, f32)) {
    let at = |v: f32| (v * 256.0) as i32 as u32;
    desk.post(Event { kind: e::TOUCH, flags: what, key: 7, a: at(x), b: at(y), ..Event::default() });
    desk.tick();
}

/// Moves a finger from one place to another in a few steps.
pub fn swipe(desk: &mut Desk, from: (f32, f32), to: (f32, f32)) {
    touch(desk, e::touch::DOWN, from);
    for step in 1..=5 {
        let share = step as f32 / 5.0;
        touch(desk, e::touch::MOVED, (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share));
    }
    touch(desk, e::touch::UP, to);
}

pub fn paste(desk: &mut Desk, text: &str) {
    desk.post_all(events::pieces(e::PASTE, 0, text));
    desk.tick();
}

pub fn edges(desk: &Desk, widget: u32) -> [f32; 4] {
    let [x, y, w, h] = [W_AT_X, W_AT_Y, W_W, W_H].map(|field| desk.number(field, widget));
    [x, y, x + w, y + h]
}

/// How far a widget is scrolled, as it shows.
pub fn scrolled(desk: &Desk, widget: u32) -> f32 {
    desk.world.look(|| gpu_run_desktop_kernel::scroll::offset(widget))
}

/// Makes the desktop draw everything again, from its state alone, and asserts that it comes to the same.
pub fn assert_drawn_as_at_once(desk: &Desk, what: &str) {
    let mut resumed = desk.resumed();
    resumed.tick();
    let (width, _) = desk.size();
    let at = desk.pixels().iter().zip(resumed.pixels()).position(|(a, b)| *a != b);
    assert_eq!(at.map(|at| (at as u32 % width, at as u32 / width)), None, "{what}: a pixel differs");
}
