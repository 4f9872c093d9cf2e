//! The lists of visible widgets are those of the tree, whatever happened to it.

mod support;

use fastrand::Rng;
use gpu_run_desktop_kernel::event::{keys, kinds, modifiers, properties as p, style as s};
use gpu_run_desktop_kernel::memory::*;
use gpu_run_desktop_kernel::tree::GONE;
use support::Desk;
use support::random::{self, AT_FIRST, Range, act};

const RANGE: Range = Range { widgets: AT_FIRST, width: 300, height: 220 };

/// The visible widgets in the order of drawing, and the level of each, found by walking through the tree.
fn walked(desk: &Desk, widget: u32, level: u32, found: &mut Vec<(u32, u32)>) {
    found.push((widget, level));
    let mut child = desk.of_widget(W_FIRST, widget);
    while child != NONE {
        if desk.of_widget(W_STYLE, child) & GONE == 0 {
            walked(desk, child, level + 1, found);
        }
        child = desk.of_widget(W_NEXT, child);
    }
}

fn assert_right(desk: &Desk, what: &str) {
    let mut expected = Vec::new();
    walked(desk, 0, 0, &mut expected);
    let listed = |field: u32| -> Vec<u32> { (0..desk.word(S_LISTED)).map(|i| desk.of_widget(field, i)).collect() };
    let order: Vec<u32> = expected.iter().map(|(widget, _)| *widget).collect();
    assert_eq!(listed(T_BY_ORDER), order, "{what}: by order");
    expected.sort_by_key(|(_, level)| *level);
    let by_level: Vec<u32> = expected.iter().map(|(widget, _)| *widget).collect();
    assert_eq!(listed(T_BY_LEVEL), by_level, "{what}: by level");
    for widget in 0..RANGE.widgets {
        let place = order.iter().position(|other| *other == widget).map_or(0, |at| at as u32 + 1);
        assert_eq!(desk.of_widget(W_ORDER, widget), place, "{what}: widget {widget}");
    }
}

/// Window 1 with a panel of two labels, and window 5.
fn begin() -> Desk {
    let mut desk = Desk::boot();
    desk.resize(RANGE.width, RANGE.height, 1.0);
    for (widget, kind, parent) in [(1, kinds::WINDOW, 0), (2, kinds::PANEL, 1), (3, kinds::LABEL, 2)] {
        desk.create(widget, kind, parent);
    }
    desk.create(4, kinds::LABEL, 2);
    desk.create(5, kinds::WINDOW, 0);
    desk.text(0, "Apps");
    desk.tick();
    assert_right(&desk, "at first");
    desk
}

#[test]
fn every_change_of_the_tree_is_seen() {
    let mut desk = begin();
    let hidden = p::STYLE_PART | s::HIDDEN << 8 | 1 << 16;
    type Act = fn(&mut Desk, u32);
    let acts: [(&str, Act); 10] = [
        ("hidden", |desk, hidden| desk.set_word(2, hidden, 1)),
        ("added to what is hidden", |desk, _| desk.create(7, kinds::LABEL, 2)),
        ("shown", |desk, hidden| desk.set_word(2, hidden, 0)),
        ("hidden by the word of style", |desk, _| desk.set_word(3, p::STYLE, 1 << s::HIDDEN)),
        ("shown by the word of style", |desk, _| desk.set_word(3, p::STYLE, 0)),
        ("removed", |desk, _| desk.destroy(4)),
        ("raised", |desk, _| desk.key(keys::TAB, modifiers::CONTROL)),
        ("minimised", |desk, _| desk.set_word(5, p::MINIMISED, 1)),
        ("restored", |desk, _| desk.set_word(5, p::MINIMISED, 0)),
        ("removed with all in it", |desk, _| desk.destroy(1)),
    ];
    for (what, act) in acts {
        act(&mut desk, hidden);
        desk.tick();
        assert_right(&desk, what);
    }
}

#[test]
fn random_changes_are_seen_by_every_team() {
    for (groups, threads) in [(1, 32), (2, 64)] {
        let mut random = Rng::with_seed(17);
        let mut desk = Desk::of(groups, threads);
        desk.post_all(random::begin(RANGE));
        desk.tick();
        for step in 0..40 {
            (0..5).for_each(|_| desk.post_all(act(&mut random, RANGE)));
            desk.tick();
            assert_right(&desk, &format!("step {step} of {groups} workgroups"));
        }
    }
}

#[test]
fn what_changes_no_tree_makes_no_lists() {
    let mut desk = begin();
    let mark = |desk: &Desk| desk.world.look(|| set(T_SIZE, 0, 77));
    mark(&desk);
    desk.set(1, p::LEFT, 50.0);
    desk.set(3, p::HEIGHT, 40.0);
    desk.text(3, "Another text");
    desk.set_word(2, p::STYLE, s::ROW);
    desk.tick();
    assert_eq!(desk.of_widget(T_SIZE, 0), 77);
    desk.create(7, kinds::LABEL, 2);
    desk.tick();
    assert_eq!(desk.of_widget(T_SIZE, 0), 7);
}
