//! What lies above everything takes the wheel and the finger, too.

#[path = "support/acts.rs"]
mod acts;
mod support;

use acts::{swipe, touch, wheel};
use gpu_run_desktop_kernel::event::{self as e, kinds::*, properties as p};
use gpu_run_desktop_kernel::memory::*;
use support::Desk;

const SCROLLED: u32 = 2;
const BUTTON_OF_MENU: u32 = 3;
const OPENED: u32 = 4;
const DRAWN: u32 = 5;

/// A panel that scrolls, with a button that has a menu, a canvas, and much below.
fn desk() -> Desk {
    let mut desk = Desk::boot();
    desk.resize(400, 300, 1.0);
    desk.text(0, "Files");
    for (widget, kind, parent) in
        [(1, WINDOW, 0), (SCROLLED, SCROLL, 1), (BUTTON_OF_MENU, BUTTON, 2), (OPENED, MENU, 3), (DRAWN, CANVAS, 2)]
    {
        desk.create(widget, kind, parent);
    }
    [(p::LEFT, 10.0), (p::TOP, 0.0), (p::WIDTH, 380.0), (p::HEIGHT, 300.0)]
        .iter()
        .for_each(|(what, value)| desk.set(1, *what, *value));
    desk.set(SCROLLED, p::GROW, 1.0);
    desk.set(SCROLLED, p::BASIS, 0.0);
    desk.text(OPENED, "One\nTwo\nThree\nFour");
    desk.set_word(DRAWN, p::PIXEL_SIZE, 200 | 150 << 16);
    (10..20).for_each(|widget| desk.create(widget, SLIDER, SCROLLED));
    desk.settle();
    desk
}

#[test]
fn the_wheel_is_the_canvas_and_stops_at_overlays() {
    let mut desk = desk();
    let middle = desk.middle(DRAWN);
    wheel(&mut desk, middle, 30.0);
    assert_eq!(desk.told(), [(e::WHEELED, DRAWN, 30.0f32.to_bits())]);
    let scrolled = |desk: &Desk| desk.number(W_SCROLL, SCROLLED);
    wheel(&mut desk, (200.0, 290.0), 30.0);
    assert_eq!((scrolled(&desk), desk.told()), (0.0, vec![]));
    desk.set_word(OPENED, p::OPEN, 1);
    desk.tick();
    let (x, y) = (desk.number(W_AT_X, BUTTON_OF_MENU) + 40.0, desk.middle(BUTTON_OF_MENU).1);
    wheel(&mut desk, (x, y + 40.0), 30.0);
    assert_eq!((scrolled(&desk), desk.told()), (0.0, vec![]));
    wheel(&mut desk, (368.0, 100.0), 30.0);
    assert_eq!(scrolled(&desk), 30.0);
}

#[test]
fn a_finger_taps_menus_and_the_bar() {
    let mut desk = desk();
    let (x, y) = (desk.number(W_AT_X, BUTTON_OF_MENU) + 40.0, desk.middle(BUTTON_OF_MENU).1);
    let tap = |desk: &mut Desk, at: (f32, f32)| {
        touch(desk, e::touch::DOWN, at);
        touch(desk, e::touch::UP, at);
    };
    tap(&mut desk, (x, y));
    assert_eq!(desk.word(D_MENU), OPENED);
    swipe(&mut desk, (x, y + 120.0), (x, y + 60.0));
    assert_eq!(desk.number(W_SCROLL, SCROLLED), 0.0);
    // The first entry begins ten units below the button.
    let below = y + desk.number(W_H, BUTTON_OF_MENU) / 2.0 + 20.0;
    tap(&mut desk, (x, below));
    assert_eq!((desk.word(D_MENU), desk.told()), (NONE, vec![(e::CHOSEN, OPENED, 0)]));
    tap(&mut desk, (30.0, 280.0));
    assert_eq!(desk.word(D_MENU), 0);
}
