//! Coverage: how much of a pixel a shape covers, 0 to 1. A pixel is given by its centre.

use crate::item::Edges;
use crate::math::{ease, least, most, sqrt};
use crate::memory::LINES;
use gpu_run_kernel::gpu::load_all;

/// How many pixels of a column are drawn at once.
pub const ROWS: u32 = 4;

/// A value for each of these pixels. A macro, since a function would be called for each of them with what it needs in memory.
macro_rules! rows {
    (|$row:ident| $value:expr) => {{
        macro_rules! of {
            ($number:literal) => {{
                let $row: u32 = $number;
                $value
            }};
        }
        [of!(0), of!(1), of!(2), of!(3)]
    }};
}
pub(crate) use rows;

/// How much of the pixel's length lies between two edges.
#[inline(always)]
fn overlap(centre: f32, from: f32, to: f32) -> f32 {
    most(least(centre + 0.5, to) - most(centre - 0.5, from), 0.0)
}

/// A rounded rectangle: exact along its edges, and to a few hundredths of a pixel in its corners.
#[inline(always)]
pub fn rectangle(x: f32, y: f32, edges: Edges, radius: f32) -> f32 {
    let [left, top, right, bottom] = edges;
    let straight = overlap(x, left, right) * overlap(y, top, bottom);
    let radius = least(least(radius, (right - left) / 2.0), (bottom - top) / 2.0);
    let (dx, dy) = beside(x, y, edges, radius);
    if radius <= 0.0 || dx == 0.0 || dy == 0.0 {
        return straight;
    }
    least(straight, most(0.5 + radius - sqrt(dx * dx + dy * dy), 0.0))
}

/// How far a point lies beside the rectangle that the corners' centres form.
#[inline(always)]
fn beside(x: f32, y: f32, edges: Edges, radius: f32) -> (f32, f32) {
    let [left, top, right, bottom] = edges;
    let dx = most(most(left + radius - x, x - right + radius), 0.0);
    let dy = most(most(top + radius - y, y - bottom + radius), 0.0);
    (dx, dy)
}

/// The border of a width inside a rounded rectangle.
#[inline(always)]
pub fn border(x: f32, y: f32, edges: Edges, radius: f32, width: f32) -> f32 {
    let [left, top, right, bottom] = edges;
    let inner = [left + width, top + width, right - width, bottom - width];
    most(rectangle(x, y, edges, radius) - rectangle(x, y, inner, most(radius - width, 0.0)), 0.0)
}

/// A shadow that fades from all of it to nothing, from `fade` inside the edge to `fade` outside; `inverse` is 1 / (2 * fade).
#[inline(always)]
pub fn shadow(x: f32, y: f32, edges: Edges, radius: f32, fade: f32, inverse: f32) -> f32 {
    let (dx, dy) = beside(x, y, edges, radius + fade);
    let outside = length(dx, dy) - (radius + fade);
    ease(((fade - outside) * inverse).clamp(0.0, 1.0))
}

/// The length of a vector whose parts are not negative.
#[inline(always)]
fn length(x: f32, y: f32) -> f32 {
    // Beside a straight edge, all pixels take the short way.
    if x == 0.0 || y == 0.0 { x + y } else { sqrt(x * x + y * y) }
}

/// A line with round ends.
#[inline(always)]
pub fn line(x: f32, y: f32, ends: Edges, half: f32) -> f32 {
    let [ax, ay, bx, by] = ends;
    let (dx, dy, px, py) = (bx - ax, by - ay, x - ax, y - ay);
    let length = dx * dx + dy * dy;
    let along = if length > 0.0 { ((px * dx + py * dy) / length).clamp(0.0, 1.0) } else { 0.0 };
    let (qx, qy) = (px - along * dx, py - along * dy);
    (half + 0.5 - sqrt(qx * qx + qy * qy)).clamp(0.0, 1.0)
}

/// A glyph: the area that its outline encloses within each pixel, exactly. `x` and `y` are pixels from its origin, and y goes down; one
/// row lies below the other.
#[inline(always)]
pub fn glyph(x: f32, y: [f32; ROWS as usize], scale: f32, first: u32, lines: u32) -> [f32; ROWS as usize] {
    let (left, tops) = (x - 0.5, y.map(|y| y - 0.5));
    let [top, .., last] = tops;
    let mut areas = [0.0; ROWS as usize];
    let mut at = LINES + first * 16;
    let end = at + lines * 16;
    while at < end {
        let [x0, y0, x1, y1] = load_all(at).map(|word| f32::from_bits(word) * scale);
        let (y0, y1) = (-y0, -y1);
        let (low, high) = (least(y0, y1), most(y0, y1));
        let (x0, x1) = (x0 - left, x1 - left);
        if high > top && low < last + 1.0 && low < high && least(x0, x1) < 1.0 {
            let slope = (x1 - x0) / (y1 - y0);
            let covered = rows!(|row| {
                // The part of the line in the pixel's row.
                let (y0, y1) = (y0 - tops[row as usize], y1 - tops[row as usize]);
                let (from, to) = (y0.clamp(0.0, 1.0), y1.clamp(0.0, 1.0));
                let (xa, xb) = (x0 + (from - y0) * slope, x0 + (to - y0) * slope);
                if from == to { 0.0 } else { (to - from) * right_of(xa, xb) }
            });
            areas = rows!(|row| areas[row as usize] + covered[row as usize]);
        }
        at += 16;
    }
    areas.map(|area| least(area.abs(), 1.0))
}

/// How much of the pixel's row is right of a line that crosses it from `a` to `b`, within the pixel from 0 to 1.
#[inline(always)]
fn right_of(a: f32, b: f32) -> f32 {
    let (low, high) = (least(a, b), most(a, b));
    if low >= 1.0 {
        0.0
    } else if high <= 0.0 {
        1.0
    } else if high - low < 1e-4 {
        1.0 - ((a + b) / 2.0).clamp(0.0, 1.0)
    } else {
        // The integral of the part left of the line.
        let left = |x: f32| {
            let within = x.clamp(0.0, 1.0);
            within * within / 2.0 + most(x - 1.0, 0.0)
        };
        1.0 - (left(high) - left(low)) / (high - low)
    }
}
