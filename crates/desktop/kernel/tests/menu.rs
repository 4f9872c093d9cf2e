//! Menus, tabs and tooltips.

mod support;

use gpu_run_desktop_kernel::event::{self as e, keys, kinds::*, properties as p};
use gpu_run_desktop_kernel::memory::*;
use support::Desk;

const BUTTON_A: u32 = 3;
const BUTTON_B: u32 = 4;
const MENU_A: u32 = 5;
const MENU_B: u32 = 6;
const TAB_BAR: u32 = 7;
const TIP: u32 = 8;

/// Two buttons with menus in a row, of which the first has a tooltip; tabs below.
fn desk() -> Desk {
    let mut desk = Desk::boot();
    desk.resize(500, 400, 1.0);
    desk.create(1, WINDOW, 0);
    [(p::LEFT, 20.0), (p::TOP, 10.0), (p::WIDTH, 300.0)].iter().for_each(|(what, value)| desk.set(1, *what, *value));
    desk.create(2, PANEL, 1);
    desk.set_word(2, p::STYLE, 0);
    let kinds = [(BUTTON_A, BUTTON, 2), (BUTTON_B, BUTTON, 2), (MENU_A, MENU, BUTTON_A), (MENU_B, MENU, BUTTON_B)];
    for (widget, kind, parent) in kinds.into_iter().chain([(TAB_BAR, TABS, 1), (TIP, TOOLTIP, BUTTON_A)]) {
        desk.create(widget, kind, parent);
    }
    desk.text(BUTTON_A, "File");
    desk.text(BUTTON_B, "Edit");
    desk.text(MENU_A, "New\n-\nQuit");
    desk.text(MENU_B, "Cut\nCopy");
    desk.text(TAB_BAR, "One\nTwo\nThree");
    desk.text(TIP, "What one can do with files");
    desk.tick();
    desk
}

fn click(desk: &mut Desk, widget: u32) {
    let (x, y) = desk.middle(widget);
    desk.click(x, y);
}

/// The place of what is `y` units below the top of a button's menu.
fn in_menu(desk: &Desk, button: u32, y: f32) -> (f32, f32) {
    let bottom = desk.number(W_AT_Y, button) + desk.number(W_H, button);
    (desk.number(W_AT_X, button) + 30.0, bottom + 4.0 + y)
}

#[test]
fn a_button_opens_its_menu_and_a_click_chooses() {
    let mut desk = desk();
    click(&mut desk, BUTTON_A);
    assert_eq!((desk.word(D_MENU), desk.told()), (MENU_A, vec![]));
    // Separators are not chosen, but count.
    let (x, y) = in_menu(&desk, BUTTON_A, 6.0 + 30.0 + 4.0);
    desk.click(x, y);
    assert_eq!((desk.word(D_MENU), desk.told()), (MENU_A, vec![]));
    let (x, y) = in_menu(&desk, BUTTON_A, 6.0 + 30.0 + 9.0 + 10.0);
    desk.click(x, y);
    assert_eq!((desk.word(D_MENU), desk.told()), (NONE, vec![(e::CHOSEN, MENU_A, 2)]));
}

#[test]
fn a_click_elsewhere_and_the_button_itself_close_a_menu() {
    let mut desk = desk();
    click(&mut desk, BUTTON_A);
    desk.click(480.0, 380.0);
    assert_eq!(desk.word(D_MENU), NONE);
    click(&mut desk, BUTTON_A);
    click(&mut desk, BUTTON_A);
    assert_eq!(desk.word(D_MENU), NONE);
    // Only one is open; the pointer on the other button opens the other.
    click(&mut desk, BUTTON_A);
    let (x, y) = desk.middle(BUTTON_B);
    desk.pointer(e::MOVE, x, y);
    desk.tick();
    assert_eq!(desk.word(D_MENU), MENU_B);
    desk.set_word(MENU_B, p::OPEN, 0);
    desk.tick();
    assert_eq!(desk.word(D_MENU), NONE);
    // What is below the menu is not clicked.
    desk.set_word(MENU_A, p::OPEN, 1);
    desk.tick();
    let (x, y) = in_menu(&desk, BUTTON_A, 6.0 + 20.0);
    desk.click(x, y);
    assert_eq!((desk.told(), desk.of_widget(W_SELECTED, TAB_BAR)), (vec![(e::CHOSEN, MENU_A, 0)], 0));
}

#[test]
fn the_keyboard_goes_through_menus() {
    let mut desk = desk();
    desk.key(keys::TAB, 0);
    desk.key(keys::ENTER, 0);
    assert_eq!(desk.word(D_MENU), MENU_A);
    let marked = [keys::DOWN, keys::DOWN, keys::DOWN, keys::UP, keys::HOME, keys::END].map(|key| {
        desk.key(key, 0);
        desk.word(D_MENU_AT)
    });
    assert_eq!(marked, [0, 2, 0, 2, 0, 2]);
    desk.key(keys::RIGHT, 0);
    assert_eq!(desk.word(D_MENU), MENU_B);
    desk.key(keys::LEFT, 0);
    assert_eq!(desk.word(D_MENU), MENU_A);
    desk.key(keys::ESCAPE, 0);
    assert_eq!((desk.word(D_MENU), desk.word(D_FOCUS)), (NONE, BUTTON_A));
    desk.set_word(MENU_B, p::OPEN, 1);
    [keys::DOWN, keys::DOWN, keys::ENTER].iter().for_each(|key| desk.key(*key, 0));
    assert_eq!(desk.told(), [(e::CHOSEN, MENU_B, 1)]);
}

#[test]
fn a_menu_stays_inside_the_desktop_and_goes_with_its_button() {
    let mut desk = desk();
    desk.set(1, p::LEFT, 440.0);
    desk.set(1, p::TOP, 340.0);
    desk.set_word(MENU_A, p::OPEN, 1);
    desk.tick();
    // The menu is above the button: its last entry ends 10 units above it.
    let y = desk.number(W_AT_Y, BUTTON_A) - 20.0;
    desk.click(480.0, y);
    assert_eq!(desk.told(), [(e::CHOSEN, MENU_A, 2)]);
    desk.set_word(MENU_A, p::OPEN, 1);
    desk.destroy(BUTTON_A);
    desk.tick();
    assert_eq!(desk.word(D_MENU), NONE);
}

#[test]
fn menus_and_tooltips_are_only_where_they_belong() {
    let mut desk = desk();
    let refused = desk.word(D_REFUSED);
    for (kind, parent) in [(MENU, 1), (MENU, TAB_BAR), (TOOLTIP, 1), (LABEL, BUTTON_A), (TOOLTIP, MENU_A)] {
        desk.create(90, kind, parent);
    }
    desk.tick();
    assert_eq!(desk.word(D_REFUSED), refused + 5);
    desk.create(90, TOOLTIP, TAB_BAR);
    desk.tick();
    assert_eq!(desk.of_widget(W_KIND, 90), TOOLTIP);
}

#[test]
fn tabs_are_chosen_by_pointer_and_keys() {
    let mut desk = desk();
    desk.settle();
    let (left, y) = (desk.number(W_AT_X, TAB_BAR), desk.middle(TAB_BAR).1);
    desk.click(left + 75.0, y);
    assert_eq!((desk.told(), desk.of_widget(W_SELECTED, TAB_BAR)), (vec![(e::CHOSEN, TAB_BAR, 1)], 1));
    // The line slides there, and arrives.
    assert!(desk.number(W_ON, TAB_BAR) < 1.0);
    desk.settle();
    assert_eq!(desk.number(W_ON, TAB_BAR), 1.0);
    // A click on the chosen tab, and beside all tabs, does nothing.
    desk.click(left + 75.0, y);
    desk.click(left + 260.0, y);
    assert_eq!(desk.told(), []);
    let chosen = [keys::RIGHT, keys::HOME, keys::LEFT, keys::END, keys::LEFT].map(|key| {
        desk.key(key, 0);
        desk.of_widget(W_SELECTED, TAB_BAR)
    });
    assert_eq!(chosen, [2, 0, 0, 2, 1]);
    desk.told();
    // The owner is not told what the owner does.
    desk.set_word(TAB_BAR, p::SELECTED, 0);
    desk.tick();
    assert_eq!((desk.told(), desk.of_widget(W_SELECTED, TAB_BAR)), (vec![], 0));
}

#[test]
fn a_tooltip_waits_for_rest_and_goes_when_the_pointer_does() {
    let mut desk = desk();
    desk.settle();
    let (x, y) = desk.middle(BUTTON_A);
    desk.pointer(e::MOVE, x, y);
    (0..55).for_each(|_| desk.tick());
    assert_eq!((desk.word(D_TIP), desk.word(D_MOVING)), (NONE, 1));
    // The rest begins again with each move.
    desk.pointer(e::MOVE, x + 1.0, y);
    (0..55).for_each(|_| desk.tick());
    assert_eq!(desk.word(D_TIP), NONE);
    let before = desk.pixels();
    desk.settle();
    assert_eq!((desk.word(D_TIP), desk.word(D_MOVING)), (TIP, 0));
    assert!(desk.pixels() != before);
    // A move within the widget leaves it, one away from the widget does not.
    desk.pointer(e::MOVE, x + 3.0, y);
    desk.tick();
    assert_eq!(desk.word(D_TIP), TIP);
    desk.pointer(e::MOVE, 400.0, 300.0);
    desk.settle();
    assert_eq!(desk.word(D_TIP), NONE);
    // A press and a key hide it; the focus by keyboard shows it.
    for hide in [e::PRESS, e::KEY] {
        desk.pointer(e::MOVE, x, y);
        desk.settle();
        assert_eq!(desk.word(D_TIP), TIP);
        match hide {
            e::PRESS => desk.pointer(e::PRESS, x, y),
            _ => desk.key(keys::ESCAPE, 0),
        }
        desk.tick();
        assert_eq!(desk.word(D_TIP), NONE);
        desk.pointer(e::RELEASE, 400.0, 300.0);
        desk.tick();
    }
    desk.key(keys::TAB, 0);
    desk.settle();
    assert_eq!((desk.word(D_FOCUS), desk.word(D_TIP)), (BUTTON_A, TIP));
}
