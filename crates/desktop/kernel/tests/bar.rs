//! The bar: its entries, the menu of apps, and windows that wait in it.

mod support;

use gpu_run_desktop_kernel::bar;
use gpu_run_desktop_kernel::event::{self as e, keys, kinds, modifiers, properties as p};
use gpu_run_desktop_kernel::memory::*;
use support::Desk;

const HEIGHT: f32 = 500.0;
/// In the middle of the bar.
const IN_BAR: f32 = HEIGHT - 20.0;

fn window(desk: &mut Desk, number: u32) {
    desk.create(number, kinds::WINDOW, 0);
    desk.text(number, &format!("Window {number}"));
}

/// A desktop with a bar and three windows that nobody placed.
fn desk() -> Desk {
    let mut desk = Desk::boot();
    desk.resize(700, HEIGHT as u32, 1.0);
    desk.text(0, "Files\n-\nPlot");
    (1..=3).for_each(|number| window(&mut desk, number));
    desk.settle();
    desk
}

/// The middle of a window's entry.
fn entry(desk: &Desk, window: u32) -> f32 {
    desk.number(W_ENTRY_X, window) + desk.number(W_ENTRY_W, window) / 2.0
}

fn place(desk: &Desk, widget: u32) -> [f32; 4] {
    [W_AT_X, W_AT_Y, W_W, W_H].map(|field| desk.number(field, widget))
}

fn is_visible(desk: &Desk, widget: u32) -> bool {
    desk.of_widget(W_ORDER, widget) != 0
}

fn click_entry(desk: &mut Desk, window: u32) {
    let x = entry(desk, window);
    desk.click(x, IN_BAR);
}

#[test]
fn an_entry_raises_minimises_and_restores_its_window() {
    let mut desk = desk();
    assert_eq!(desk.word(D_FRONT), 3);
    click_entry(&mut desk, 1);
    assert_eq!(desk.word(D_FRONT), 1);
    click_entry(&mut desk, 1);
    assert!(!is_visible(&desk, 1));
    assert_eq!(desk.word(D_FRONT), 3);
    click_entry(&mut desk, 3);
    click_entry(&mut desk, 2);
    assert_eq!(desk.word(D_FRONT), NONE);
    click_entry(&mut desk, 1);
    assert!(is_visible(&desk, 1) && !is_visible(&desk, 2));
    assert_eq!(desk.word(D_FRONT), 1);
    // Nothing was told: windows are the desktop's.
    assert_eq!(desk.told(), []);
}

#[test]
fn windows_are_minimised_by_title_button_keyboard_and_owner() {
    let mut desk = desk();
    let [x, y, width, _] = place(&desk, 3);
    desk.click(x + width - 2.5 * 36.0, y + 18.0);
    assert!(!is_visible(&desk, 3));
    desk.key(keys::ESCAPE, modifiers::ALT);
    assert!(!is_visible(&desk, 2));
    desk.set_word(1, p::MINIMISED, 1);
    desk.tick();
    assert!(!is_visible(&desk, 1));
    desk.set_word(1, p::MINIMISED, 0);
    desk.tick();
    assert!(is_visible(&desk, 1));
    assert_eq!(desk.word(D_FRONT), 1);
    // Alt+Tab and Ctrl+Tab go through all windows.
    for with in [modifiers::ALT, modifiers::CONTROL] {
        let mut seen: Vec<u32> = (0..3)
            .map(|_| {
                desk.key(keys::TAB, with);
                desk.word(D_FRONT)
            })
            .collect();
        seen.sort();
        assert_eq!(seen, [1, 2, 3]);
    }
}

#[test]
fn a_minimised_window_has_neither_focus_nor_pointer() {
    let mut desk = desk();
    desk.create(10, kinds::FIELD, 3);
    desk.tick();
    let (x, y) = desk.middle(10);
    desk.click(x, y);
    assert_eq!(desk.word(D_FOCUS), 10);
    desk.key(keys::ESCAPE, modifiers::ALT);
    assert_eq!([D_FOCUS, D_HOVER].map(|word| desk.word(word)), [NONE, NONE]);
    desk.type_text("x");
    assert_eq!(desk.text_of(10), "");
}

#[test]
fn maximised_and_snapped_windows_leave_the_bar_free() {
    let mut desk = desk();
    desk.key(keys::ENTER, modifiers::ALT);
    desk.tick();
    assert_eq!(place(&desk, 3), [0.0, 0.0, 700.0, HEIGHT - bar::HEIGHT]);
    desk.key(keys::ENTER, modifiers::ALT);
    let [x, y, ..] = place(&desk, 3);
    for (kind, x, y) in [(e::MOVE, x + 40.0, y + 18.0), (e::PRESS, x + 40.0, y + 18.0), (e::MOVE, 1.0, 200.0)] {
        desk.pointer(kind, x, y);
        desk.tick();
    }
    desk.pointer(e::RELEASE, 1.0, 200.0);
    desk.tick();
    assert_eq!(place(&desk, 3), [0.0, 0.0, 350.0, HEIGHT - bar::HEIGHT]);
    // A title stays in reach above the bar.
    (0..60).for_each(|_| desk.key(keys::DOWN, modifiers::ALT));
    desk.key(keys::TAB, modifiers::ALT);
    (0..60).for_each(|_| desk.key(keys::DOWN, modifiers::ALT));
    let front = desk.word(D_FRONT);
    assert_eq!(place(&desk, front)[1], HEIGHT - bar::HEIGHT - 36.0);
}

#[test]
fn windows_without_a_place_do_not_cover_each_other() {
    let mut desk = desk();
    (4..60).for_each(|number| window(&mut desk, number));
    desk.tick();
    let places: Vec<[f32; 4]> = (1..60).map(|number| place(&desk, number)).collect();
    for (i, a) in places.iter().enumerate() {
        assert!(a[1] + 36.0 <= HEIGHT - bar::HEIGHT && a[0] < 650.0, "window {}: {a:?}", i + 1);
        assert!(places[..i].iter().all(|b| a[..2] != b[..2]), "window {} covers another", i + 1);
    }
    // A place that is given is kept.
    window(&mut desk, 70);
    desk.set(70, p::LEFT, 5.0);
    desk.set(70, p::TOP, 7.0);
    desk.tick();
    assert_eq!(place(&desk, 70)[..2], [5.0, 7.0]);
    // All entries are in the bar, side by side.
    let mut last = 0.0;
    for number in (1..60).chain([70]) {
        let (x, width) = (desk.number(W_ENTRY_X, number), desk.number(W_ENTRY_W, number));
        assert!(x >= last && x + width <= 700.0, "window {number}: {x} {width}");
        last = x + width;
    }
}

#[test]
fn long_titles_are_shortened_and_short_ones_are_not() {
    let mut desk = desk();
    (4..8).for_each(|number| desk.create(number, kinds::WINDOW, 0));
    (4..8).for_each(|number| desk.text(number, "A title that is much longer than there is room for in the bar"));
    desk.tick();
    let width = |window: u32| desk.number(W_ENTRY_W, window);
    assert!((1..=3).all(|window| width(window) == width(1)));
    assert!(width(4) > 70.0 && (4..8).all(|window| width(window) == width(4)));
}

#[test]
fn apps_opens_a_menu_and_the_desktop_tells_what_was_chosen() {
    let mut desk = desk();
    desk.click(30.0, IN_BAR);
    assert_eq!(desk.word(D_MENU), 0);
    // Files, a separator, Plot: the last entry ends 6 units above the menu's end.
    desk.click(40.0, HEIGHT - bar::HEIGHT - 4.0 - 6.0 - 15.0);
    assert_eq!((desk.told(), desk.word(D_MENU)), (vec![(e::CHOSEN, 0, 2)], NONE));
    desk.key(keys::APPS, 0);
    desk.key(keys::ENTER, 0);
    assert_eq!(desk.told(), [(e::CHOSEN, 0, 0)]);
    // The button closes the menu, too.
    desk.click(30.0, IN_BAR);
    desk.click(30.0, IN_BAR);
    assert_eq!((desk.told(), desk.word(D_MENU)), (vec![], NONE));
}

#[test]
fn the_bar_covers_windows() {
    let mut desk = desk();
    desk.create(10, kinds::BUTTON, 3);
    for (property, value) in [(p::LEFT, 0.0), (p::TOP, 300.0), (p::WIDTH, 700.0), (p::HEIGHT, 300.0)] {
        desk.set(3, property, value);
    }
    desk.set(10, p::GROW, 1.0);
    desk.tick();
    desk.click(650.0, IN_BAR);
    assert_eq!(desk.told(), []);
    desk.click(650.0, IN_BAR - 60.0);
    assert_eq!(desk.told(), [(e::CLICKED, 10, 0)]);
}

#[test]
fn without_names_of_apps_there_is_no_bar() {
    let mut desk = desk();
    desk.text(0, "");
    desk.key(keys::ENTER, modifiers::ALT);
    desk.tick();
    assert_eq!(place(&desk, 3), [0.0, 0.0, 700.0, HEIGHT]);
    desk.key(keys::APPS, 0);
    assert_eq!(desk.word(D_MENU), NONE);
    // The second button from the right maximises; left of it is the title.
    desk.click(700.0 - 2.5 * 36.0, 18.0);
    assert!(is_visible(&desk, 3));
}

#[test]
fn windows_follow_the_size_of_the_desktop() {
    let mut desk = desk();
    desk.key(keys::ENTER, modifiers::ALT);
    desk.set(2, p::LEFT, 600.0);
    desk.set(2, p::TOP, 430.0);
    desk.resize(560, 400, 1.0);
    desk.tick();
    assert_eq!(place(&desk, 3), [0.0, 0.0, 560.0, 400.0 - bar::HEIGHT]);
    assert_eq!(place(&desk, 2)[..2], [440.0, 400.0 - bar::HEIGHT - 36.0]);
    desk.text(0, "");
    desk.tick();
    assert_eq!(place(&desk, 3), [0.0, 0.0, 560.0, 400.0]);
    // The size before is not forgotten.
    desk.key(keys::ENTER, modifiers::ALT);
    desk.tick();
    assert_eq!(place(&desk, 3)[2..], [180.0, 96.0]);
}
