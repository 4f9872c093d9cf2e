//! The keyboard reaches everything: Tab and Shift+Tab move the focus within the front window, Ctrl+Tab and Alt+Tab bring the
//! rearmost window to the front, Enter and Space click, arrows move a slider or choose among radio buttons and tabs, Alt with arrows moves
//! the window, Alt+Escape minimises it, Alt+F4 closes it.

use crate::dispatch::*;
use crate::event::{KEYED_CHARACTER, keys::*, kinds, modifiers};
use crate::memory::*;
use crate::{area, bar, canvas, caret, field, list, menu, overlay, scroll, tabs, tree, window};
use gpu_run_kernel::gpu::{load, store};

/// How far an arrow moves a slider, and a window in units.
const SLIDE: f32 = 0.05;
const STEP: f32 = 16.0;

pub fn key(key: u32, with: u32) {
    if overlay::key(key) {
        return;
    }
    let focus_on = load(D_FOCUS);
    if key == TAB && with & (modifiers::CONTROL | modifiers::ALT) != 0 {
        if get(W_FIRST, 0) != NONE {
            tree::raise(get(W_FIRST, 0));
            focus(NONE);
        }
        return;
    }
    if with & modifiers::ALT != 0 {
        return window_key(load(D_FRONT), key);
    }
    match key {
        TAB => next(focus_on, with & modifiers::SHIFT != 0),
        _ if is_canvas(focus_on) => canvas::key(focus_on, key),
        ESCAPE => focus(NONE),
        PAGE_UP | PAGE_DOWN if !is_active(focus_on) => scroll::page(NONE, key == PAGE_DOWN),
        _ if !is_active(focus_on) => {}
        _ => widget_key(focus_on, key, with),
    }
}

/// A character was typed.
pub fn character(code: u32) {
    let focus_on = load(D_FOCUS);
    if menu::is_open() {
        return;
    }
    if is_canvas(focus_on) {
        canvas::key(focus_on, code | KEYED_CHARACTER);
    } else {
        caret::type_character(focus_on, code);
    }
}

fn is_canvas(widget: u32) -> bool {
    is_active(widget) && get(W_KIND, widget) == kinds::CANVAS
}

fn widget_key(widget: u32, key: u32, with: u32) {
    match (get(W_KIND, widget), key) {
        (kinds::TABS, _) if !matches!(key, PAGE_UP | PAGE_DOWN) => tabs::key(widget, key),
        (kinds::FIELD, _) if !matches!(key, PAGE_UP | PAGE_DOWN) => field::key(widget, key, with),
        (kinds::AREA, _) => area::key(widget, key, with),
        (kinds::LIST | kinds::TABLE, _) if list::key(widget, key) => {}
        (_, PAGE_UP | PAGE_DOWN) => scroll::page(widget, key == PAGE_DOWN),
        (_, ENTER | SPACE) => {
            setf(W_DOWN, widget, 1.0);
            store(D_CHANGED, 1);
            activate(widget);
        }
        (kinds::SLIDER, LEFT | DOWN) => set_value(widget, (getf(W_VALUE, widget) - SLIDE).max(0.0)),
        (kinds::SLIDER, RIGHT | UP) => set_value(widget, (getf(W_VALUE, widget) + SLIDE).min(1.0)),
        (kinds::SLIDER, HOME) => set_value(widget, 0.0),
        (kinds::SLIDER, END) => set_value(widget, 1.0),
        (kinds::RADIO, LEFT | UP) => choose_beside(widget, W_PREVIOUS),
        (kinds::RADIO, RIGHT | DOWN) => choose_beside(widget, W_NEXT),
        _ => {}
    }
}

fn choose_beside(widget: u32, link: u32) {
    let mut at = get(link, widget);
    while at != NONE && !(get(W_KIND, at) == kinds::RADIO && is_active(at)) {
        at = get(link, at);
    }
    if at != NONE {
        choose(at);
        focus(at);
    }
}

fn window_key(front: u32, key: u32) {
    if !tree::exists(front) {
        return;
    }
    match key {
        F4 => window::close(front),
        LEFT => window::shift(front, -STEP, 0.0),
        RIGHT => window::shift(front, STEP, 0.0),
        UP => window::shift(front, 0.0, -STEP),
        DOWN => window::shift(front, 0.0, STEP),
        ENTER => window::maximise(front),
        ESCAPE if bar::exists() => bar::minimise(front),
        _ => {}
    }
}

/// Moves the focus to the next active widget of the front window, or the one before.
fn next(from: u32, backwards: bool) {
    let window = load(D_FRONT);
    if !tree::exists(window) {
        return;
    }
    let start = if is_active(from) && window_of(from) == window { from } else { window };
    let mut at = start;
    loop {
        at = if backwards { before(at, window) } else { after(at, window) };
        if is_active(at) && get(W_ORDER, at) != 0 {
            return focus(at);
        }
        if at == start {
            return;
        }
    }
}

/// The widget after this one in the order of the tree, within `window`; after the last comes the window.
pub fn after(widget: u32, window: u32) -> u32 {
    if get(W_FIRST, widget) != NONE {
        return get(W_FIRST, widget);
    }
    let mut at = widget;
    while at != window && get(W_NEXT, at) == NONE {
        at = get(W_PARENT, at);
    }
    if at == window { window } else { get(W_NEXT, at) }
}

/// The widget before this one; before the window comes the last one.
fn before(widget: u32, window: u32) -> u32 {
    let mut at = if widget == window {
        widget
    } else if get(W_PREVIOUS, widget) == NONE {
        return get(W_PARENT, widget);
    } else {
        get(W_PREVIOUS, widget)
    };
    while get(W_LAST, at) != NONE {
        at = get(W_LAST, at);
    }
    at
}
