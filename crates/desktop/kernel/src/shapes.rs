//! Coverage: how much of a pixel a shape covers, 0 to 1. A pixel is given by its centre.

use crate::item::Edges;
use crate::math::{ease, least, most, sqrt};
use crate::memory::LINES;
use gpu_run_kernel::gpu::load;

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

/// A shadow that fades from all of it to nothing, from `fade` inside the edge to `fade` outside.
#[inline(always)]
pub fn shadow(x: f32, y: f32, edges: Edges, radius: f32, fade: f32) -> f32 {
    let (dx, dy) = beside(x, y, edges, radius + fade);
    let outside = sqrt(dx * dx + dy * dy) - (radius + fade);
    ease(((fade - outside) / (2.0 * fade)).clamp(0.0, 1.0))
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

/// A glyph: the area that its outline encloses within the pixel, exactly. `x` and `y` are pixels from its origin, and y goes down.
#[inline(always)]
pub fn glyph(x: f32, y: f32, scale: f32, first: u32, lines: u32) -> f32 {
    let (left, top) = (x - 0.5, y - 0.5);
    let mut area = 0.0;
    let mut at = LINES + first * 16;
    let end = at + lines * 16;
    while at < end {
        let y0 = -f32::from_bits(load(at + 4)) * scale - top;
        let y1 = -f32::from_bits(load(at + 12)) * scale - top;
        let (low, high) = (least(y0, y1), most(y0, y1));
        if high > 0.0 && low < 1.0 && low < high {
            let x0 = f32::from_bits(load(at)) * scale - left;
            let x1 = f32::from_bits(load(at + 8)) * scale - left;
            // The part of the line in the pixel's row.
            let (from, to) = (y0.clamp(0.0, 1.0), y1.clamp(0.0, 1.0));
            let slope = (x1 - x0) / (y1 - y0);
            let (xa, xb) = (x0 + (from - y0) * slope, x0 + (to - y0) * slope);
            area += (to - from) * right_of(xa, xb);
        }
        at += 16;
    }
    least(area.abs(), 1.0)
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
            if x <= 0.0 {
                0.0
            } else if x <= 1.0 {
                x * x / 2.0
            } else {
                x - 0.5
            }
        };
        1.0 - (left(high) - left(low)) / (high - low)
    }
}
