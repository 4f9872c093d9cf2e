//! Text areas: several lines, broken at the area's width.

use crate::dispatch::pointer;
use crate::event::{keys::*, modifiers};
use crate::math::floor;
use crate::memory::*;
use crate::{caret, font, lines, scroll, text};
use gpu_run_kernel::gpu::{load, store};

pub fn line_height(area: u32) -> f32 {
    text::line_height(getf(W_FONT, area))
}

/// The height of all lines and what is around them.
pub fn content(area: u32) -> f32 {
    get(T_LINES, area).max(1) as f32 * line_height(area) + getf(W_PAD_TOP, area) + getf(W_PAD_BOTTOM, area)
}

/// Where the caret's line lies in the content.
pub fn caret_line(area: u32) -> (f32, f32) {
    let line = lines::line_of(area, caret(area));
    let top = getf(W_PAD_TOP, area) + line as f32 * line_height(area);
    (top, top + line_height(area))
}

fn caret(area: u32) -> u32 {
    get(W_CARET, area).min(get(W_TEXT_LENGTH, area))
}

/// The width of a line up to a place in it, in units.
pub fn width_to(area: u32, line: u32, place: u32) -> f32 {
    text::advances(area, lines::start(area, line), place) as f32 * getf(W_FONT, area) / font::EM
}

/// The place in a line that is nearest to `x` units from its beginning.
fn place_in(area: u32, line: u32, x: f32) -> u32 {
    text::place_between(area, lines::start(area, line), lines::last_place(area, line), x)
}

pub fn under_pointer(area: u32) -> u32 {
    lines::know(area);
    let (x, y) = pointer();
    let below = y - getf(W_AT_Y, area) - getf(W_PAD_TOP, area) + scroll::offset(area);
    let line = floor(below / line_height(area)).clamp(0, get(T_LINES, area) as i32 - 1);
    place_in(area, line as u32, x - getf(W_AT_X, area) - getf(W_PAD_LEFT, area))
}

pub fn key(area: u32, key: u32, with: u32) {
    let (selects, all) = (with & modifiers::SHIFT != 0, with & modifiers::CONTROL != 0);
    let length = get(W_TEXT_LENGTH, area);
    match key {
        HOME if all => caret::move_to(area, 0, selects),
        END if all => caret::move_to(area, length, selects),
        HOME | END | UP | DOWN | PAGE_UP | PAGE_DOWN => {
            lines::know(area);
            let line = lines::line_of(area, caret(area));
            let page = ((getf(W_H, area) / line_height(area)) as i32 - 1).max(1);
            match key {
                HOME => caret::move_to(area, lines::start(area, line), selects),
                END => caret::move_to(area, lines::last_place(area, line), selects),
                UP => move_lines(area, line, -1, selects),
                DOWN => move_lines(area, line, 1, selects),
                PAGE_UP => move_lines(area, line, -page, selects),
                _ => move_lines(area, line, page, selects),
            }
        }
        ENTER => caret::type_character(area, '\n' as u32),
        _ => {
            caret::key(area, key, with);
        }
    }
}

/// Moves the caret by some lines. It keeps its distance from the left where lines are long enough.
fn move_lines(area: u32, line: u32, by: i32, selects: bool) {
    let goal = match load(D_GOAL) {
        0 => width_to(area, line, caret(area)) + 1.0,
        goal => f32::from_bits(goal),
    };
    let last = get(T_LINES, area) as i32 - 1;
    let target = line as i32 + by;
    let place = match () {
        // Beyond the first and the last line: their ends.
        _ if target < 0 && line == 0 => 0,
        _ if target > last && line as i32 == last => get(W_TEXT_LENGTH, area),
        _ => place_in(area, target.clamp(0, last) as u32, goal - 1.0),
    };
    caret::move_to(area, place, selects);
    store(D_GOAL, goal.to_bits());
}
