//! Coverage: how much of a pixel a shape covers, 0 to 1. A pixel is given by its centre.

use crate::item::Edges;
use crate::math::{ease, least, most, sqrt};

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

/// Whether a box lies within a rounded rectangle: between its corners, from left to right or from top to bottom.
#[inline(always)]
pub fn holds(edges: Edges, radius: f32, of: Edges) -> bool {
    let within = |x: f32, y: f32| {
        edges[0] + x <= of[0] && edges[2] - x >= of[2] && edges[1] + y <= of[1] && edges[3] - y >= of[3]
    };
    within(radius, 0.0) || within(0.0, radius)
}

/// What the border of a width leaves of a rounded rectangle: its edges and its radius.
#[inline(always)]
pub fn inside(edges: Edges, radius: f32, width: f32) -> (Edges, f32) {
    let [left, top, right, bottom] = edges;
    ([left + width, top + width, right - width, bottom - width], most(radius - width, 0.0))
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
    let (inner, within) = inside(edges, radius, width);
    most(rectangle(x, y, edges, radius) - rectangle(x, y, inner, within), 0.0)
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
