//! One finger: a tap clicks, and moving scrolls what is under the finger or drags as the pointer does. Other fingers are ignored.

use crate::dispatch::{in_units, is_active, point, press, release};
use crate::event::{kinds, touch::*};
use crate::memory::*;
use crate::{overlay, scroll, tree};
use gpu_run_kernel::event::Event;
use gpu_run_kernel::gpu::{load, store};

/// How far a finger moves before it is no tap any more, in 256ths of a unit.
const THRESHOLD: i32 = 8 * 256;

// What the finger does (`D_FINGER_DOES`).
const WAITS: u32 = 0;
const SCROLLS: u32 = 1;
const DRAGS: u32 = 2;
/// There is nothing to scroll or to drag.
const NOTHING: u32 = 3;

pub fn touch(it: &Event, hit: u32) {
    let (x, y) = (in_units(it.a), in_units(it.b));
    if it.flags == DOWN && (load(D_FINGER) == 0 || load(D_FINGER) == it.key.wrapping_add(1)) {
        store(D_FINGER, it.key.wrapping_add(1));
        store(D_FINGER_DOES, WAITS);
        // What lies above takes the finger: nothing beneath it is scrolled.
        store(D_FINGER_ON, if overlay::is_at(x, y) { NONE } else { hit });
        [(D_FINGER_FROM_X, x), (D_FINGER_FROM_Y, y), (D_FINGER_X, x), (D_FINGER_Y, y)]
            .iter()
            .for_each(|(word, value)| store(*word, *value as u32));
        return;
    }
    if load(D_FINGER) != it.key.wrapping_add(1) {
        return;
    }
    if it.flags == MOVED || it.flags == UP {
        moved(x, y, hit);
    }
    if it.flags == UP || it.flags == CANCELLED {
        lifted(it.flags == UP, x, y, hit);
    }
}

fn moved(x: i32, y: i32, hit: u32) {
    let from = [D_FINGER_FROM_X, D_FINGER_FROM_Y].map(|word| load(word) as i32);
    let (across, along) = (x.wrapping_sub(from[0]), y.wrapping_sub(from[1]));
    let mut on = load(D_FINGER_ON);
    if !tree::exists(on) {
        on = NONE;
    }
    let distance = (load(D_FINGER_Y) as i32).wrapping_sub(y) as f32 / 256.0;
    match load(D_FINGER_DOES) {
        WAITS if across.unsigned_abs().max(along.unsigned_abs()) > THRESHOLD as u32 => {
            let is_across = across.unsigned_abs() > along.unsigned_abs();
            let slides = on != NONE && get(W_KIND, on) == kinds::SLIDER && is_across;
            store(D_FINGER_DOES, NOTHING);
            let bar = on != NONE && at_beginning(|| scroll::bar_at(on)) != NONE;
            let scrolled = if bar || slides { NONE } else { scroll::under_finger(on, distance) };
            if scrolled != NONE {
                store(D_FINGER_DOES, SCROLLS);
                store(D_FINGER_ON, scrolled);
            } else if on != NONE {
                store(D_FINGER_DOES, DRAGS);
                press(point(from[0], from[1], on));
                point(x, y, hit);
            }
        }
        SCROLLS if on != NONE => {
            scroll::by(on, distance);
        }
        DRAGS => {
            point(x, y, hit);
        }
        // Until the finger has moved far enough, its place is that where it went down: nothing of the way is lost.
        WAITS => return,
        _ => {}
    }
    store(D_FINGER_X, x as u32);
    store(D_FINGER_Y, y as u32);
}

/// Asks something as if the pointer was where the finger went down.
fn at_beginning(ask: impl Fn() -> u32) -> u32 {
    let before = (load(D_POINTER_X), load(D_POINTER_Y));
    store(D_POINTER_X, load(D_FINGER_FROM_X));
    store(D_POINTER_Y, load(D_FINGER_FROM_Y));
    let answer = ask();
    store(D_POINTER_X, before.0);
    store(D_POINTER_Y, before.1);
    answer
}

fn lifted(up: bool, x: i32, y: i32, hit: u32) {
    let (does, on) = (load(D_FINGER_DOES), load(D_FINGER_ON));
    store(D_FINGER, 0);
    match does {
        WAITS if up => {
            let on = if tree::exists(on) { on } else { NONE };
            press(point(load(D_FINGER_FROM_X) as i32, load(D_FINGER_FROM_Y) as i32, on));
            let pressed = load(D_PRESS);
            if is_active(pressed) {
                // The press shows, although it ends in the same frame.
                setf(W_DOWN, pressed, 1.0);
            }
            release();
        }
        DRAGS if up => {
            point(x, y, hit);
            release();
        }
        DRAGS => store(D_PRESS, NONE),
        _ => {}
    }
    // A finger that was lifted is on nothing.
    store(D_HOVER, NONE);
    store(D_CHANGED, 1);
}
