//! Panels that scroll: wheel, bar, keys, fingers, and what is clipped.

#[path = "support/acts.rs"]
mod acts;
mod support;

use acts::*;
use gpu_run_desktop_kernel::event::{self as e, keys, kinds, modifiers, properties as p, touch as t};
use gpu_run_desktop_kernel::memory::*;
use gpu_run_kernel::gpu::store;
use support::Desk;

const PANEL: u32 = 2;
const FIRST: u32 = 10;
const COUNT: u32 = 20;

/// Window 1 with a panel that has more buttons than it can show.
fn panel() -> Desk {
    let mut desk = with(kinds::SCROLL, "");
    for i in 0..COUNT {
        desk.create(FIRST + i, kinds::BUTTON, PANEL);
        desk.text(FIRST + i, &format!("Button {i}"));
    }
    desk.settle();
    desk
}

fn content(desk: &Desk) -> f32 {
    desk.number(W_Y, FIRST + COUNT - 1) + desk.number(W_H, FIRST + COUNT - 1) + 6.0
}

#[test]
fn its_content_is_not_shrunk_and_the_wheel_goes_from_end_to_end() {
    let mut desk = panel();
    let (height, shown) = (desk.number(W_H, FIRST), desk.number(W_H, PANEL));
    assert_eq!((height, shown), (32.0, 240.0 - 36.0 - 32.0));
    let most = content(&desk) - shown;
    assert!(most > 500.0);
    let middle = desk.middle(PANEL);
    wheel(&mut desk, middle, 50.0);
    assert_eq!(scrolled(&desk, PANEL), 50.0);
    let before = desk.number(W_AT_Y, FIRST);
    wheel(&mut desk, middle, 25.0);
    assert_eq!(desk.number(W_AT_Y, FIRST), before - 25.0);
    wheel(&mut desk, middle, 5000.0);
    assert_eq!(scrolled(&desk, PANEL), most);
    wheel(&mut desk, middle, -9000.0);
    assert_eq!(scrolled(&desk, PANEL), 0.0);
    // Elsewhere the wheel does nothing, also over a slider.
    wheel(&mut desk, (5.0, 5.0), 50.0);
    assert_eq!(scrolled(&desk, PANEL), 0.0);
}

#[test]
fn it_fits_into_panels_that_are_smaller_than_its_content() {
    for direction in [e::style::ROW, e::style::COLUMN] {
        let mut desk = with(kinds::PANEL, "");
        desk.set_word(2, p::STYLE, direction);
        desk.create(3, kinds::SCROLL, 2);
        desk.set(3, p::GROW, 1.0);
        (0..COUNT).for_each(|i| desk.create(FIRST + i, kinds::BUTTON, 3));
        desk.tick();
        assert_eq!((desk.number(W_H, 2), desk.number(W_H, 3)), (172.0, 172.0));
        assert_eq!(desk.number(W_H, FIRST), 32.0);
    }
}

#[test]
fn scrolling_lays_nothing_out_and_draws_only_the_panel() {
    let mut desk = panel();
    let middle = desk.middle(PANEL);
    desk.pointer(e::MOVE, middle.0, middle.1);
    desk.settle();
    // Layout would put this right.
    desk.world.look(|| store(W_X + (FIRST + 1) * 4, 55f32.to_bits()));
    let tiles = desk.word(S_TILES);
    wheel(&mut desk, middle, 40.0);
    assert_eq!(desk.number(W_X, FIRST + 1), 55.0);
    let drawn = desk.word(S_TILES) - tiles;
    let most = (268 / 32 + 2) * (172 / 8 + 2);
    assert!((1..=most).contains(&drawn), "{drawn} tiles of {most}");
}

#[test]
fn only_what_shows_can_be_clicked() {
    let mut desk = panel();
    let middle = desk.middle(PANEL);
    wheel(&mut desk, middle, 100.0);
    let [x, top, _, bottom] = edges(&desk, PANEL);
    // Button 2 is cut by the panel's upper edge.
    let [left, upper, _, lower] = edges(&desk, FIRST + 2);
    assert!(upper < top && lower > top);
    desk.click(left + 20.0, lower - 2.0);
    assert_eq!(desk.told(), [(e::CLICKED, FIRST + 2, 0)]);
    desk.click(left + 20.0, top - 2.0);
    desk.click(x + 20.0, bottom + 3.0);
    assert_eq!(desk.told(), []);
}

#[test]
fn the_bar_is_dragged_and_jumped_to() {
    let mut desk = panel();
    let [_, top, right, bottom] = edges(&desk, PANEL);
    let most = content(&desk) - (bottom - top);
    let bar = right - 6.0;
    drag(&mut desk, (bar, top + 8.0), (bar, top + 8.0 + 30.0));
    let share = scrolled(&desk, PANEL) / most;
    assert!((0.2..0.3).contains(&share), "{share}");
    drag(&mut desk, (bar, bottom - 2.0), (bar, bottom + 500.0));
    assert_eq!(scrolled(&desk, PANEL), most);
    drag(&mut desk, (bar, bottom - 20.0), (bar - 200.0, top - 100.0));
    assert_eq!(scrolled(&desk, PANEL), 0.0);
    assert_eq!(desk.told(), []);
    // A bar leaves the focus where it was.
    let button = desk.middle(FIRST);
    desk.click(button.0, button.1);
    drag(&mut desk, (bar, top + 8.0), (bar, top + 20.0));
    assert_eq!(desk.word(D_FOCUS), FIRST);
}

#[test]
fn the_bar_shows_that_the_pointer_is_on_it() {
    let mut desk = panel();
    let [_, top, right, _] = edges(&desk, PANEL);
    let before = desk.pixels();
    desk.pointer(e::MOVE, right - 6.0, top + 10.0);
    desk.settle();
    assert_ne!(before, desk.pixels());
    desk.pointer(e::MOVE, 2.0, 2.0);
    desk.settle();
    assert_eq!(before, desk.pixels());
}

#[test]
fn the_focus_scrolls_into_view_and_pages_scroll() {
    let mut desk = panel();
    let shows = |desk: &Desk, widget: u32| {
        let [_, top, _, bottom] = edges(desk, widget);
        let [_, upper, _, lower] = edges(desk, PANEL);
        top >= upper && bottom <= lower
    };
    for i in 0..COUNT {
        desk.key(keys::TAB, 0);
        assert_eq!(desk.word(D_FOCUS), FIRST + i);
        assert!(shows(&desk, FIRST + i), "button {i}");
    }
    assert!(scrolled(&desk, PANEL) > 300.0);
    desk.key(keys::TAB, 0);
    assert!(shows(&desk, FIRST));
    (0..2).for_each(|_| desk.key(keys::TAB, modifiers::SHIFT));
    assert!(shows(&desk, FIRST + COUNT - 2) && !shows(&desk, FIRST));
    (0..9).for_each(|_| desk.key(keys::PAGE_UP, 0));
    assert_eq!(scrolled(&desk, PANEL), 0.0);
    desk.key(keys::PAGE_DOWN, 0);
    assert_eq!(scrolled(&desk, PANEL), 172.0 - 32.0);
    // Without a focus, the front window's panel.
    desk.key(keys::ESCAPE, 0);
    desk.key(keys::PAGE_UP, 0);
    assert_eq!(scrolled(&desk, PANEL), 0.0);
}

#[test]
fn the_innermost_that_still_can_scrolls() {
    let mut desk = panel();
    desk.create(100, kinds::LIST, PANEL);
    desk.text(100, &"row\n".repeat(8));
    desk.set(PANEL, p::SCROLLED, 1e9);
    desk.tick();
    let [outer, list] = [PANEL, 100];
    let at = desk.middle(list);
    let before = scrolled(&desk, outer);
    wheel(&mut desk, at, -30.0);
    // The list is at its beginning: the panel goes.
    assert_eq!((scrolled(&desk, list), scrolled(&desk, outer)), (0.0, before - 30.0));
    let at = desk.middle(list);
    wheel(&mut desk, at, 20.0);
    assert_eq!((scrolled(&desk, list), scrolled(&desk, outer)), (20.0, before - 30.0));
    wheel(&mut desk, at, 1000.0);
    wheel(&mut desk, at, 1000.0);
    assert_eq!((scrolled(&desk, list), scrolled(&desk, outer)), (8.0 * 28.0 + 8.0 - 140.0, before));
}

#[test]
fn a_finger_clicks_scrolls_and_drags() {
    let mut desk = panel();
    desk.create(100, kinds::SLIDER, PANEL);
    desk.tick();
    let button = desk.middle(FIRST + 1);
    touch(&mut desk, t::DOWN, button);
    touch(&mut desk, t::MOVED, (button.0 + 3.0, button.1 - 4.0));
    assert_eq!(desk.told(), []);
    touch(&mut desk, t::UP, (button.0 + 3.0, button.1 - 4.0));
    assert_eq!(desk.told(), [(e::CLICKED, FIRST + 1, 0)]);
    assert_eq!(desk.word(D_HOVER), NONE);
    // Moving scrolls by as much, and clicks nothing.
    swipe(&mut desk, button, (button.0, button.1 - 60.0));
    assert_eq!((scrolled(&desk, PANEL), desk.told()), (60.0, vec![]));
    swipe(&mut desk, button, (button.0, button.1 + 500.0));
    assert_eq!((scrolled(&desk, PANEL), desk.told()), (0.0, vec![]));
    // At the beginning already: nothing happens, and nothing is clicked.
    swipe(&mut desk, button, (button.0, button.1 + 50.0));
    assert_eq!((scrolled(&desk, PANEL), desk.told()), (0.0, vec![]));
    // A slider is dragged to the side, and scrolls up and down.
    desk.set(PANEL, p::SCROLLED, 1e9);
    desk.tick();
    let end = scrolled(&desk, PANEL);
    let slider = desk.middle(100);
    swipe(&mut desk, slider, (slider.0 + 300.0, slider.1));
    assert_eq!((desk.number(W_VALUE, 100), scrolled(&desk, PANEL)), (1.0, end));
    swipe(&mut desk, slider, (slider.0, slider.1 + 40.0));
    assert_eq!((desk.number(W_VALUE, 100), scrolled(&desk, PANEL)), (1.0, end - 40.0));
    // A window is dragged by its title. A second finger does nothing.
    swipe(&mut desk, (80.0, 25.0), (90.0, 45.0));
    assert_eq!(edges(&desk, 1)[..2], [30.0, 30.0]);
    // What is cancelled was no click.
    let button = desk.middle(FIRST + COUNT - 1);
    touch(&mut desk, t::DOWN, button);
    touch(&mut desk, t::CANCELLED, button);
    assert!(desk.told().iter().all(|told| told.0 != e::CLICKED));
}

#[test]
fn every_step_of_scrolling_is_drawn_as_at_once() {
    let mut desk = panel();
    let middle = desk.middle(PANEL);
    for (i, up) in [3.0, 17.5, 0.25, 40.0, -12.0, 900.0, -33.3].into_iter().enumerate() {
        wheel(&mut desk, middle, up);
        desk.settle();
        assert_drawn_as_at_once(&desk, &format!("step {i}"));
    }
}

#[test]
fn what_happens_to_rows_changes_at_once_how_far_a_panel_scrolls() {
    let mut desk = panel();
    desk.set(PANEL, p::SCROLLED, 1e9);
    desk.settle();
    let (last, gap) = (FIRST + COUNT - 1, 12.0);
    let hide = p::STYLE_PART | e::style::HIDDEN << 8 | 1 << 16;
    let mut end = scrolled(&desk, PANEL);
    let mut goes = |desk: &mut Desk, by: f32, what: &str| {
        // The wheel asks before anything is laid out, and the frame afterwards.
        wheel(desk, (100.0, 150.0), 1.0);
        desk.set(PANEL, p::SCROLLED, 1e9);
        desk.settle();
        end += by;
        assert_eq!(scrolled(desk, PANEL), end, "{what}");
        assert_drawn_as_at_once(desk, what);
    };
    desk.set_word(last, hide, 1);
    goes(&mut desk, -32.0 - gap, "the last row is hidden");
    desk.set_word(last, hide, 0);
    goes(&mut desk, 32.0 + gap, "the last row is shown");
    desk.set(FIRST, p::HEIGHT, 52.0);
    goes(&mut desk, 20.0, "the first row grows");
    desk.set(last, p::MARGIN_BOTTOM, 7.0);
    goes(&mut desk, 7.0, "the last row has a margin");
    desk.set(last, p::MARGIN_TOP, 5.0);
    goes(&mut desk, 5.0, "the last row moves");
    desk.set(PANEL, p::PAD_BOTTOM, 16.0);
    goes(&mut desk, 10.0, "the panel has more space around its rows");
    desk.destroy(FIRST);
    goes(&mut desk, -52.0 - gap, "the first row is removed");
    desk.create(FIRST, kinds::BUTTON, PANEL);
    goes(&mut desk, 32.0 + gap, "a row is added");
    desk.set(1, p::HEIGHT, 250.0);
    goes(&mut desk, -10.0, "the window grows");
    (FIRST..FIRST + COUNT).for_each(|row| desk.destroy(row));
    desk.settle();
    assert_eq!(scrolled(&desk, PANEL), 0.0, "all rows are removed");
    assert_drawn_as_at_once(&desk, "all rows are removed");
}
