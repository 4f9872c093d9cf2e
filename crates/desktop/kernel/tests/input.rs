//! What users do, and what comes of it.

mod support;

use gpu_run_desktop_kernel::event::{self as e, keys, modifiers, properties as p};
use gpu_run_desktop_kernel::memory::*;
use support::Desk;

// The widgets that `furnish` makes in window 1.
const BUTTON: u32 = 3;
const CHECKBOX: u32 = 4;
const RADIOS: [u32; 2] = [5, 6];
const SLIDER: u32 = 7;
const FIELD: u32 = 8;

/// A desktop with window 1 at 40, 30.
fn furnished() -> Desk {
    let mut desk = Desk::boot();
    desk.resize(700, 500, 1.0);
    desk.furnish(1, 40.0, 30.0);
    desk.tick();
    desk
}

fn click(desk: &mut Desk, widget: u32) {
    let (x, y) = desk.middle(widget);
    desk.click(x, y);
}

fn drag(desk: &mut Desk, from: (f32, f32), to: (f32, f32)) {
    for (kind, (x, y)) in [(e::MOVE, from), (e::PRESS, from), (e::MOVE, to), (e::RELEASE, to)] {
        desk.pointer(kind, x, y);
        desk.tick();
    }
}

fn place(desk: &Desk, widget: u32) -> [f32; 4] {
    [W_AT_X, W_AT_Y, W_W, W_H].map(|field| desk.number(field, widget))
}

#[test]
fn clicks_go_to_their_widgets_and_owners_hear_of_them() {
    let mut desk = furnished();
    click(&mut desk, BUTTON);
    assert_eq!(desk.told(), [(e::CLICKED, BUTTON, 0)]);
    click(&mut desk, CHECKBOX);
    assert_eq!(desk.told(), [(e::CHANGED, CHECKBOX, 1.0f32.to_bits())]);
    click(&mut desk, CHECKBOX);
    assert_eq!(desk.number(W_VALUE, CHECKBOX), 0.0);
    for chosen in RADIOS {
        click(&mut desk, chosen);
        let values = RADIOS.map(|radio| desk.number(W_VALUE, radio));
        assert_eq!(values, RADIOS.map(|radio| if radio == chosen { 1.0 } else { 0.0 }));
    }
    // Released elsewhere: no click.
    desk.told();
    let from = desk.middle(BUTTON);
    drag(&mut desk, from, (600.0, 450.0));
    assert_eq!(desk.told(), []);
    desk.set_word(BUTTON, p::DISABLED, 1);
    click(&mut desk, BUTTON);
    assert_eq!(desk.told(), []);
}

#[test]
fn a_slider_follows_the_pointer_to_its_ends() {
    let mut desk = furnished();
    let from = desk.middle(SLIDER);
    drag(&mut desk, from, (from.0 + 1000.0, from.1));
    assert_eq!(desk.number(W_VALUE, SLIDER), 1.0);
    drag(&mut desk, from, (0.0, from.1));
    assert_eq!(desk.number(W_VALUE, SLIDER), 0.0);
    click(&mut desk, SLIDER);
    assert!((desk.number(W_VALUE, SLIDER) - 0.5).abs() < 0.02);
}

#[test]
fn text_is_typed_selected_and_replaced() {
    let mut desk = furnished();
    desk.text(FIELD, "");
    click(&mut desk, FIELD);
    desk.type_text("Hello wörld");
    assert_eq!(desk.text_of(FIELD), "Hello wörld");
    (0..5).for_each(|_| desk.key(keys::LEFT, modifiers::SHIFT));
    desk.type_text("you");
    assert_eq!(desk.text_of(FIELD), "Hello you");
    desk.key(keys::BACKSPACE, 0);
    desk.key(keys::HOME, 0);
    desk.key(keys::DELETE, 0);
    assert_eq!(desk.text_of(FIELD), "ello yo");
    desk.key(keys::SELECT_ALL, 0);
    desk.type_text("x");
    assert_eq!(desk.text_of(FIELD), "x");
    desk.told();
    desk.key(keys::ENTER, 0);
    assert_eq!(desk.told(), [(e::ENTERED, FIELD, 0)]);
    // The pointer selects, too: from the beginning to the end.
    desk.text(FIELD, "abcdef");
    desk.tick();
    let [x, y, width, height] = place(&desk, FIELD);
    drag(&mut desk, (x + 4.0, y + height / 2.0), (x + width - 4.0, y + height / 2.0));
    desk.key(keys::BACKSPACE, 0);
    assert_eq!(desk.text_of(FIELD), "");
}

#[test]
fn a_long_text_scrolls_so_that_the_caret_shows() {
    let mut desk = furnished();
    click(&mut desk, FIELD);
    desk.type_text(&"wide ".repeat(30));
    let (scroll, room) = (desk.number(W_SCROLL, FIELD), desk.number(W_W, FIELD));
    assert!(scroll > room, "{scroll} {room}");
    desk.key(keys::HOME, 0);
    assert_eq!(desk.number(W_SCROLL, FIELD), 0.0);
}

#[test]
fn the_keyboard_alone_reaches_everything() {
    let mut desk = furnished();
    let mut reached = Vec::new();
    for _ in 0..7 {
        desk.key(keys::TAB, 0);
        reached.push(desk.word(D_FOCUS));
    }
    assert_eq!(reached, [BUTTON, CHECKBOX, RADIOS[0], RADIOS[1], SLIDER, FIELD, BUTTON]);
    desk.key(keys::SPACE, 0);
    desk.key(keys::TAB, 0);
    desk.key(keys::ENTER, 0);
    assert_eq!(desk.told(), [(e::CLICKED, BUTTON, 0), (e::CHANGED, CHECKBOX, 1.0f32.to_bits())]);
    desk.key(keys::TAB, modifiers::SHIFT);
    assert_eq!(desk.word(D_FOCUS), BUTTON);
    desk.key(keys::TAB, modifiers::SHIFT);
    assert_eq!(desk.word(D_FOCUS), FIELD);
    (0..3).for_each(|_| desk.key(keys::TAB, modifiers::SHIFT));
    desk.key(keys::DOWN, 0);
    assert_eq!((desk.word(D_FOCUS), desk.number(W_VALUE, RADIOS[1])), (RADIOS[1], 1.0));
    desk.key(keys::TAB, 0);
    desk.key(keys::HOME, 0);
    desk.key(keys::RIGHT, 0);
    assert_eq!(desk.number(W_VALUE, SLIDER), 0.05);
    desk.key(keys::RIGHT, modifiers::ALT);
    assert_eq!(place(&desk, 1)[0], 56.0);
    desk.key(keys::F4, modifiers::ALT);
    assert_eq!((desk.word(D_COUNT), desk.told().last().unwrap().0), (0, e::CLOSED));
}

#[test]
fn windows_move_and_resize_and_stay_in_reach() {
    let mut desk = furnished();
    drag(&mut desk, (100.0, 45.0), (150.0, 65.0));
    assert_eq!(place(&desk, 1), [90.0, 50.0, 320.0, 340.0]);
    drag(&mut desk, (409.0, 389.0), (439.0, 409.0));
    assert_eq!(place(&desk, 1), [90.0, 50.0, 350.0, 360.0]);
    drag(&mut desk, (90.0, 200.0), (60.0, 200.0));
    assert_eq!(place(&desk, 1), [60.0, 50.0, 380.0, 360.0]);
    // No smaller than its least size, and not above the desktop.
    drag(&mut desk, (439.0, 200.0), (0.0, 200.0));
    assert_eq!(place(&desk, 1)[2], 180.0);
    drag(&mut desk, (100.0, 60.0), (100.0, 20.0));
    assert_eq!(place(&desk, 1)[1], 10.0);
    drag(&mut desk, (100.0, 20.0), (100.0, 8.0));
    assert_eq!(place(&desk, 1)[1], 0.0);
}

#[test]
fn windows_maximise_snap_come_back_and_close() {
    let mut desk = furnished();
    let before = place(&desk, 1);
    let button = |desk: &Desk, from_right: f32| {
        let [x, y, width, _] = place(desk, 1);
        (x + width - from_right, y + 18.0)
    };
    let (x, y) = button(&desk, 54.0);
    desk.click(x, y);
    assert_eq!(place(&desk, 1), [0.0, 0.0, 700.0, 500.0]);
    let (x, y) = button(&desk, 54.0);
    desk.click(x, y);
    assert_eq!(place(&desk, 1), before);
    drag(&mut desk, (100.0, 45.0), (2.0, 200.0));
    assert_eq!(place(&desk, 1), [0.0, 0.0, 350.0, 500.0]);
    drag(&mut desk, (175.0, 20.0), (300.0, 120.0));
    assert_eq!(place(&desk, 1), [300.0 - 160.0, 100.0, 320.0, 340.0]);
    let (x, y) = button(&desk, 18.0);
    desk.click(x, y);
    assert_eq!((desk.word(D_COUNT), desk.word(D_TEXT_COUNT)), (0, 0));
    assert_eq!(desk.told(), [(e::CLOSED, 1, 0)]);
}

#[test]
fn the_frontmost_window_takes_the_pointer_and_a_click_raises() {
    let mut desk = furnished();
    desk.furnish(20, 200.0, 60.0);
    desk.tick();
    assert_eq!(desk.word(D_FRONT), 20);
    // Window 20 covers the right part of window 1's button.
    let [x, y, width, height] = place(&desk, BUTTON);
    desk.click(x + width - 10.0, y + height / 2.0);
    assert_eq!((desk.told(), desk.word(D_FRONT)), (vec![], 20));
    desk.click(x + 10.0, y + height / 2.0);
    assert_eq!((desk.told(), desk.word(D_FRONT)), (vec![(e::CLICKED, BUTTON, 0)], 1));
    desk.click(x + width - 10.0, y + height / 2.0);
    assert_eq!(desk.told(), [(e::CLICKED, BUTTON, 0)]);
}

#[test]
fn what_is_not_allowed_is_refused_and_counted() {
    let mut desk = furnished();
    desk.create(1, e::kinds::WINDOW, 0);
    desk.create(90, e::kinds::BUTTON, 0);
    desk.create(90, e::kinds::BUTTON, 91);
    desk.create(90, e::kinds::BUTTON, BUTTON);
    desk.create(90, 77, 1);
    desk.create(WIDGETS, e::kinds::BUTTON, 1);
    desk.destroy(90);
    desk.destroy(0);
    desk.set(1, p::PAD_LEFT, -1.0);
    desk.set(1, p::GROW, f32::NAN);
    desk.set(1, p::ASPECT, 0.0);
    desk.set(SLIDER, p::VALUE, 2.0);
    desk.set(1, 99, 1.0);
    desk.text(WIDGETS, "x");
    desk.resize(0, 10, 1.0);
    desk.resize(4000, 10, 1.0);
    desk.tick();
    assert_eq!((desk.word(D_REFUSED), desk.word(D_COUNT)), (16, 10));
}
