//! Windows: move, resize, maximise, snap, minimise, close. A window's place is its style: `left` and `top`, `width` and `height`.

use crate::dispatch::{pointer, tell};
use crate::event::CLOSED;
use crate::memory::*;
use crate::theme::{EDGE, TITLE_BAR, TITLE_BUTTON};
use crate::{bar, tree};
use gpu_run_kernel::gpu::{load, store};

// Parts of a window, in `D_PART`. An edge is one or two of the first four bits.
const LEFT: u32 = 1;
const TOP: u32 = 2;
const RIGHT: u32 = 4;
const BOTTOM: u32 = 8;
pub const TITLE: u32 = 16;
pub const MAXIMISE: u32 = 32;
pub const CLOSE: u32 = 64;
pub const MINIMISE: u32 = 128;

/// How near to the desktop's edge a window that is moved snaps to it.
const SNAP: f32 = 6.0;

/// How much of a window is left on the desktop at least when the desktop becomes narrower.
const LEAST_IN_REACH: f32 = 120.0;

/// The part of a window that is at a place, in units from the window's corner; 0: its content.
pub fn part_at(window: u32, x: f32, y: f32) -> u32 {
    let (w, h) = (getf(W_W, window), getf(W_H, window));
    let mut edge = 0;
    if !has(window, F_SNAPPED) {
        edge |= if x < EDGE { LEFT } else { 0 } | if x >= w - EDGE { RIGHT } else { 0 };
        edge |= if y < EDGE { TOP } else { 0 } | if y >= h - EDGE { BOTTOM } else { 0 };
    }
    match () {
        _ if edge != 0 => edge,
        _ if y >= TITLE_BAR => 0,
        _ if x >= w - TITLE_BUTTON => CLOSE,
        _ if x >= w - 2.0 * TITLE_BUTTON => MAXIMISE,
        _ if x >= w - buttons() * TITLE_BUTTON => MINIMISE,
        _ => TITLE,
    }
}

/// How many buttons a title bar has. Windows can be minimised only if there is a bar in which they wait.
pub fn buttons() -> f32 {
    if bar::exists() { 3.0 } else { 2.0 }
}

/// The part of a window that the pointer is on.
pub fn part_under_pointer(window: u32) -> u32 {
    let (x, y) = pointer();
    part_at(window, x - getf(W_AT_X, window), y - getf(W_AT_Y, window))
}

pub fn press(window: u32) {
    let (x, y) = pointer();
    let part = part_under_pointer(window);
    // How far the pointer is from the edge that it holds.
    let held = |from: f32, size: f32, far: u32| from + if part & far != 0 { size } else { 0.0 };
    store(D_PART, part);
    store(D_GRAB_X, (x - held(getf(W_AT_X, window), getf(W_W, window), RIGHT)).to_bits());
    store(D_GRAB_Y, (y - held(getf(W_AT_Y, window), getf(W_H, window), BOTTOM)).to_bits());
}

pub fn drag(window: u32) {
    let (x, y) = pointer();
    let (grab_x, grab_y) = (f32::from_bits(load(D_GRAB_X)), f32::from_bits(load(D_GRAB_Y)));
    let part = load(D_PART);
    if part == TITLE {
        if has(window, F_SNAPPED) {
            // The window gets its old size back, and the pointer stays at the same part of the title.
            let share = grab_x / getf(W_W, window).max(1.0);
            restore(window);
            store(D_GRAB_X, (share * getf(W_WIDTH, window)).to_bits());
            return drag(window);
        }
        setf(W_LEFT, window, x - grab_x);
        setf(W_TOP, window, in_reach(y - grab_y));
        tree::moved(window);
    } else if part & (LEFT | TOP | RIGHT | BOTTOM) != 0 {
        resize(window, part, x - grab_x, y - grab_y);
    }
}

/// The place of a window's top edge that is nearest to `y` and lets the pointer reach the title.
fn in_reach(y: f32) -> f32 {
    (if bar::exists() { y.min(bar::top() - TITLE_BAR) } else { y }).max(0.0)
}

/// Moves the edges that the pointer holds to this place.
fn resize(window: u32, part: u32, x: f32, y: f32) {
    let (at_x, at_y) = (getf(W_AT_X, window), getf(W_AT_Y, window));
    let (right, bottom) = (at_x + getf(W_W, window), at_y + getf(W_H, window));
    let (least_w, least_h) = (getf(W_MIN_WIDTH, window), getf(W_MIN_HEIGHT, window));
    if part & LEFT != 0 {
        let width = (right - x).max(least_w);
        setf(W_LEFT, window, right - width);
        setf(W_WIDTH, window, width);
    }
    if part & RIGHT != 0 {
        setf(W_WIDTH, window, (x - at_x).max(least_w));
    }
    if part & TOP != 0 {
        let height = (bottom - y.max(0.0)).max(least_h);
        setf(W_TOP, window, bottom - height);
        setf(W_HEIGHT, window, height);
    }
    if part & BOTTOM != 0 {
        setf(W_HEIGHT, window, (y - at_y).max(least_h));
    }
    tree::touch(window);
}

pub fn release(window: u32) {
    let part = load(D_PART);
    let (x, y) = pointer();
    let (width, height) = (getf(W_W, 0), bar::top());
    match part {
        MINIMISE if part_under_pointer(window) == MINIMISE => bar::minimise(window),
        CLOSE if part_under_pointer(window) == CLOSE => close(window),
        MAXIMISE if part_under_pointer(window) == MAXIMISE => maximise(window),
        TITLE if y <= SNAP => snap(window, 0.0, width, height),
        TITLE if x <= SNAP => snap(window, 0.0, width / 2.0, height),
        TITLE if x >= width - SNAP => snap(window, width / 2.0, width / 2.0, height),
        _ => {}
    }
}

pub fn close(window: u32) {
    tell(CLOSED, window, 0);
    tree::destroy(window);
}

/// Makes a window as large as the desktop, or gives it its old place back.
pub fn maximise(window: u32) {
    if has(window, F_SNAPPED) { restore(window) } else { snap(window, 0.0, getf(W_W, 0), bar::top()) }
}

const PLACE: [u32; 4] = [W_LEFT, W_TOP, W_WIDTH, W_HEIGHT];
const OLD: [u32; 4] = [W_OLD_X, W_OLD_Y, W_OLD_W, W_OLD_H];

fn snap(window: u32, x: f32, width: f32, height: f32) {
    if !has(window, F_SNAPPED) {
        (0..4).for_each(|i| set(OLD[i], window, get(PLACE[i], window)));
        mark(window, F_SNAPPED);
    }
    let place = [x, 0.0, width, height];
    (0..4).for_each(|i| setf(PLACE[i], window, place[i]));
    tree::touch(window);
}

fn restore(window: u32) {
    (0..4).for_each(|i| set(PLACE[i], window, get(OLD[i], window)));
    unmark(window, F_SNAPPED);
    tree::touch(window);
}

/// Fits windows to a desktop that has another size than before: those that fill it or half of it, and, if there is a bar, those whose title
/// would be out of reach.
pub fn fit() {
    let (width, height) = (getf(W_W, 0), bar::top());
    let before = f32::from_bits(load(D_ROOM_W));
    if before == width && f32::from_bits(load(D_ROOM_H)) == height {
        return;
    }
    store(D_ROOM_W, width.to_bits());
    store(D_ROOM_H, height.to_bits());
    let mut window = load(D_WINDOWS);
    while window != NONE {
        let x = getf(W_LEFT, window);
        if has(window, F_SNAPPED) {
            let half = getf(W_WIDTH, window) < 0.75 * before;
            snap(window, if x > 0.0 { width / 2.0 } else { 0.0 }, if half { width / 2.0 } else { width }, height);
        } else if bar::exists() && !x.is_nan() && !getf(W_TOP, window).is_nan() {
            setf(W_LEFT, window, x.min(width - LEAST_IN_REACH));
            setf(W_TOP, window, in_reach(getf(W_TOP, window)));
            tree::moved(window);
        }
        window = get(W_LINK, window);
    }
}

/// Moves a window.
pub fn shift(window: u32, x: f32, y: f32) {
    if !has(window, F_SNAPPED) {
        setf(W_LEFT, window, getf(W_AT_X, window) + x);
        setf(W_TOP, window, in_reach(getf(W_AT_Y, window) + y));
        tree::moved(window);
    }
}
