//! Scrolling: how far the content of a widget is scrolled, its scroll bar, the wheel, and bringing things into view.
//!
//! `W_SCROLL` may be beyond the end: then the end shows, also when the content grows. Scrolling changes no layout: the places on the
//! desktop take it into account (`order`), and so does painting.

use crate::dispatch::pointer;
use crate::event::kinds;
use crate::math::round;
use crate::memory::*;
use crate::theme::{BAR_LEAST, BAR_MARGIN, BAR_ZONE, NEAR};
use crate::{area, keyboard, lines, list, lists, tree};
use gpu_run_kernel::gpu::{load, store};

/// `D_PART` while the pointer holds a scroll bar's thumb.
pub const BAR: u32 = 128;
/// Areas, lists and tables that have too little space are made this small.
pub const LEAST: f32 = 48.0;
/// Beyond every end.
const END: f32 = f32::INFINITY;

pub fn scrolls(widget: u32) -> bool {
    get(W_KIND, widget) == kinds::SCROLL || lines::has_lines(get(W_KIND, widget))
}

/// The height of what scrolls.
fn content(widget: u32) -> f32 {
    match get(W_KIND, widget) {
        kinds::AREA => area::content(widget),
        kinds::LIST | kinds::TABLE => list::content(widget),
        _ => panel_content(widget),
    }
}

/// The height of what is in a panel. It is found once between two layouts of the panel: everything that could change it makes the panel
/// dirty. Lanes that find it at the same time find the same.
fn panel_content(panel: u32) -> f32 {
    let (known, is_dirty) = (get(T_CONTENT, panel), has(panel, F_DIRTY));
    if known != 0 && !is_dirty {
        return f32::from_bits(known - 1);
    }
    let mut bottom = 0.0f32;
    lists::children(panel, |_, child| {
        bottom = bottom.max(getf(W_Y, child) + getf(W_H, child) + getf(W_MARGIN_BOTTOM, child));
    });
    let height = bottom + getf(W_PAD_BOTTOM, panel);
    if !is_dirty {
        set(T_CONTENT, panel, height.to_bits() + 1);
    }
    height
}

/// Where the part that scrolls begins, below the widget's top.
pub fn view_top(widget: u32) -> f32 {
    if get(W_KIND, widget) == kinds::TABLE { list::row_height(widget) } else { 0.0 }
}

fn view_height(widget: u32) -> f32 {
    (getf(W_H, widget) - view_top(widget)).max(0.0)
}

/// How far the content can be scrolled.
fn most(widget: u32) -> f32 {
    (content(widget) - view_height(widget)).max(0.0)
}

fn exact(widget: u32) -> f32 {
    getf(W_SCROLL, widget).min(most(widget)).max(0.0)
}

/// How far the content is scrolled, in whole pixels: its parts must not move against each other.
pub fn offset(widget: u32) -> f32 {
    let scale = load(D_SCALE) as f32 / 256.0;
    round(exact(widget) * scale) as f32 / scale
}

fn scroll_to(widget: u32, to: f32) {
    setf(W_SCROLL, widget, to);
    store(D_CHANGED, 1);
    // What is under the pointer now is found when it moves.
    let hover = load(D_HOVER);
    if tree::exists(hover) && hover != widget && ancestors(hover, |at| at == widget) != NONE {
        store(D_HOVER, NONE);
    }
}

/// Scrolls by some units; returns whether the widget could.
pub fn by(widget: u32, distance: f32) -> bool {
    lines_known(widget);
    let (from, most) = (exact(widget), most(widget));
    let to = (from + distance).min(most).max(0.0);
    if to == from {
        return false;
    }
    // An area that shows what is written to it follows its end again.
    let follows = to == most && get(W_KIND, widget) == kinds::AREA && has(widget, F_READ_ONLY);
    scroll_to(widget, if follows { END } else { to });
    true
}

fn lines_known(widget: u32) {
    if lines::has_lines(get(W_KIND, widget)) {
        lines::know(widget);
    }
}

/// Returns the first of the widget and those that it is in for which `body` is true, or [`NONE`].
fn ancestors(mut widget: u32, mut body: impl FnMut(u32) -> bool) -> u32 {
    while widget != NONE && !body(widget) {
        widget = get(W_PARENT, widget);
    }
    widget
}

/// Scrolls the innermost widget that can be scrolled in this direction; returns it, or [`NONE`].
pub fn innermost(hit: u32, distance: f32) -> u32 {
    ancestors(hit, |at| scrolls(at) && !has(at, F_DISABLED) && by(at, distance))
}

/// What a finger scrolls that moves over this widget: if nothing goes in its direction, what could go back.
pub fn under_finger(hit: u32, distance: f32) -> u32 {
    match innermost(hit, distance) {
        NONE => ancestors(hit, |at| scrolls(at) && !has(at, F_DISABLED) && most(at) > 0.0),
        found => found,
    }
}

/// Page Up and Page Down, for what the focus is in; without a focus, for the first in the front window.
pub fn page(focus: u32, down: bool) {
    let front = load(D_FRONT);
    let mut first = focus;
    if focus == NONE && tree::exists(front) {
        first = keyboard::after(front, front);
        while first != front && !(scrolls(first) && get(W_ORDER, first) != 0) {
            first = keyboard::after(first, front);
        }
    }
    ancestors(first, |at| {
        let page = (view_height(at) - 2.0 * NEAR).max(NEAR);
        scrolls(at) && by(at, if down { page } else { -page })
    });
}

/// A scroll bar, in units below the widget's top: the bar, and its thumb.
pub struct Bar {
    pub top: f32,
    pub height: f32,
    pub thumb_top: f32,
    pub thumb_height: f32,
}

/// The widget's scroll bar, if it needs one.
pub fn bar(widget: u32) -> Option<Bar> {
    let most = most(widget);
    if most <= 0.0 {
        return None;
    }
    let top = view_top(widget) + BAR_MARGIN;
    let height = (getf(W_H, widget) - top - BAR_MARGIN).max(0.0);
    let view = view_height(widget);
    let thumb_height = (height * view / (view + most)).max(BAR_LEAST).min(height);
    let thumb_top = top + (height - thumb_height) * exact(widget) / most;
    Some(Bar { top, height, thumb_top, thumb_height })
}

/// Whether the pointer is on a widget's scroll bar.
pub fn is_on_bar(widget: u32) -> bool {
    let (x, y) = pointer();
    let right = getf(W_AT_X, widget) + getf(W_W, widget);
    let top = getf(W_AT_Y, widget) + view_top(widget);
    let inside = x >= right - BAR_ZONE && x < right && y >= top && y < getf(W_AT_Y, widget) + getf(W_H, widget);
    if !inside {
        return false;
    }
    lines_known(widget);
    bar(widget).is_some()
}

/// The widget whose scroll bar the pointer is on, among `hit` and those that it is in.
pub fn bar_at(hit: u32) -> u32 {
    ancestors(hit, |at| scrolls(at) && !has(at, F_DISABLED) && is_on_bar(at))
}

/// Takes hold of a scroll bar's thumb. Beside the thumb, its middle goes there first.
pub fn press(widget: u32) {
    let Some(bar) = bar(widget) else { return };
    let y = pointer().1 - getf(W_AT_Y, widget);
    let inside = y >= bar.thumb_top && y < bar.thumb_top + bar.thumb_height;
    store(D_PART, BAR);
    store(D_GRAB_Y, if inside { y - bar.thumb_top } else { bar.thumb_height / 2.0 }.to_bits());
    drag(widget);
}

pub fn is_held(widget: u32) -> bool {
    load(D_PRESS) == widget && load(D_PART) == BAR && scrolls(widget)
}

pub fn drag(widget: u32) {
    lines_known(widget);
    let Some(bar) = bar(widget) else { return };
    let thumb = pointer().1 - getf(W_AT_Y, widget) - f32::from_bits(load(D_GRAB_Y));
    let room = bar.height - bar.thumb_height;
    let share = if room > 0.0 { ((thumb - bar.top) / room).clamp(0.0, 1.0) } else { 0.0 };
    let to = share * most(widget);
    by(widget, to - exact(widget));
}

/// Scrolls so that the content from `top` to `bottom` shows, and something around it. If it is too large, its top shows.
fn show(widget: u32, top: f32, bottom: f32, around: f32) {
    let to = exact(widget).max(bottom + around - view_height(widget)).min(top - around);
    let to = to.min(most(widget)).max(0.0);
    if to != exact(widget) {
        scroll_to(widget, to);
    }
}

/// Brings the widget that asked for it into view: an area's caret, a list's chosen row. Layout has placed everything.
pub fn reveal() {
    let widget = load(D_REVEAL);
    store(D_REVEAL, 0);
    if widget == 0 || !tree::exists(widget) {
        return;
    }
    let (mut top, mut bottom) = (0.0, getf(W_H, widget));
    lines_known(widget);
    let inside = match get(W_KIND, widget) {
        kinds::AREA => Some(area::caret_line(widget)),
        kinds::LIST | kinds::TABLE => list::selected_row(widget),
        _ => None,
    };
    if let Some((from, to)) = inside {
        let around = if get(W_KIND, widget) == kinds::AREA { getf(W_PAD_TOP, widget) } else { list::INSET };
        show(widget, from, to, around);
        let above = view_top(widget) - offset(widget);
        (top, bottom) = (from + above, to + above);
    }
    let mut at = widget;
    while get(W_PARENT, at) != NONE {
        (top, bottom) = (top + getf(W_Y, at), bottom + getf(W_Y, at));
        at = get(W_PARENT, at);
        if get(W_KIND, at) == kinds::SCROLL {
            show(at, top, bottom, NEAR / 2.0);
            (top, bottom) = (top - offset(at), bottom - offset(at));
        }
    }
}

/// What of a scrollable widget is under the pointer: its bar, or which row. What shows there depends on this.
pub fn spot(widget: u32) -> u32 {
    match () {
        _ if widget == NONE || !tree::exists(widget) || !scrolls(widget) => NONE,
        _ if is_on_bar(widget) => NONE - 1,
        _ => list::hot_row(widget),
    }
}

/// The wheel turned over a widget.
pub fn wheel(hit: u32, up: i32) {
    let distance = up as f32 / load(D_SCALE) as f32;
    if hit != NONE {
        let before = spot(load(D_HOVER));
        innermost(hit, distance);
        if before != spot(load(D_HOVER)) {
            store(D_CHANGED, 1);
        }
    }
}
