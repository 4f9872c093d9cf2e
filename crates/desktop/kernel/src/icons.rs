//! Icons: short lists of strokes on a square of 16 units.

use crate::item::Brush;
use crate::math::round;
use crate::memory::*;

pub const SIZE: f32 = 16.0;
const STROKE: f32 = 1.5;
/// The space between an icon and the text.
const GAP: f32 = 8.0;

enum Stroke {
    /// A line between two points, in quarters of a unit.
    Line(u8, u8, u8, u8),
    /// A circle: its centre and radius.
    Ring(u8, u8, u8),
    /// A rectangle with round corners: left, top, right, bottom.
    Frame(u8, u8, u8, u8),
}
use Stroke::*;

/// The strokes of each icon, in the order of their numbers (`event::icons`).
static ICONS: [&[Stroke]; 18] = [
    // Folder.
    &[
        Line(8, 14, 8, 50),
        Line(8, 50, 56, 50),
        Line(56, 50, 56, 20),
        Line(56, 20, 32, 20),
        Line(32, 20, 26, 14),
        Line(26, 14, 8, 14),
    ],
    // File.
    &[
        Line(14, 8, 14, 56),
        Line(14, 56, 50, 56),
        Line(50, 56, 50, 20),
        Line(50, 20, 38, 8),
        Line(38, 8, 14, 8),
        Line(38, 8, 38, 20),
        Line(38, 20, 50, 20),
    ],
    // Terminal.
    &[Frame(6, 10, 58, 54), Line(16, 24, 25, 32), Line(25, 32, 16, 40), Line(32, 42, 46, 42)],
    // Chart.
    &[Line(10, 8, 10, 54), Line(10, 54, 56, 54), Line(19, 42, 28, 30), Line(28, 30, 38, 37), Line(38, 37, 52, 17)],
    // Text.
    &[Line(8, 16, 56, 16), Line(8, 27, 56, 27), Line(8, 38, 56, 38), Line(8, 49, 36, 49)],
    // Pen.
    &[
        Line(12, 42, 42, 12),
        Line(42, 12, 52, 22),
        Line(52, 22, 22, 52),
        Line(22, 52, 9, 55),
        Line(9, 55, 12, 42),
        Line(35, 19, 45, 29),
    ],
    // Gear.
    &[
        Ring(32, 32, 18),
        Ring(32, 32, 7),
        Line(32, 7, 32, 14),
        Line(32, 50, 32, 57),
        Line(7, 32, 14, 32),
        Line(50, 32, 57, 32),
        Line(14, 14, 19, 19),
        Line(45, 45, 50, 50),
        Line(14, 50, 19, 45),
        Line(45, 19, 50, 14),
    ],
    // Sparkle.
    &[
        Line(27, 10, 31, 29),
        Line(31, 29, 50, 33),
        Line(50, 33, 31, 37),
        Line(31, 37, 27, 56),
        Line(27, 56, 23, 37),
        Line(23, 37, 4, 33),
        Line(4, 33, 23, 29),
        Line(23, 29, 27, 10),
        Line(50, 7, 50, 19),
        Line(44, 13, 56, 13),
    ],
    // Grid.
    &[Frame(8, 8, 28, 28), Frame(36, 8, 56, 28), Frame(8, 36, 28, 56), Frame(36, 36, 56, 56)],
    // Plus.
    &[Line(32, 12, 32, 52), Line(12, 32, 52, 32)],
    // Close.
    &[Line(16, 16, 48, 48), Line(16, 48, 48, 16)],
    // Refresh: three quarters of a circle, and an arrow's head.
    &[
        Line(52, 32, 50, 41),
        Line(50, 41, 43, 48),
        Line(43, 48, 33, 52),
        Line(33, 52, 23, 49),
        Line(23, 49, 15, 42),
        Line(15, 42, 12, 32),
        Line(12, 32, 15, 22),
        Line(15, 22, 23, 15),
        Line(23, 15, 33, 12),
        Line(33, 12, 43, 16),
        Line(43, 16, 51, 24),
        Line(51, 24, 51, 11),
        Line(51, 24, 38, 24),
    ],
    // Save: an arrow down into a tray.
    &[
        Line(32, 8, 32, 38),
        Line(32, 38, 21, 27),
        Line(32, 38, 43, 27),
        Line(9, 40, 9, 54),
        Line(9, 54, 55, 54),
        Line(55, 54, 55, 40),
    ],
    // Play.
    &[Line(18, 10, 18, 54), Line(18, 54, 53, 32), Line(53, 32, 18, 10)],
    // Stop.
    &[Frame(14, 14, 50, 50)],
    // Up.
    &[Line(32, 11, 32, 54), Line(32, 11, 15, 28), Line(32, 11, 49, 28)],
    // Home.
    &[
        Line(6, 32, 32, 9),
        Line(32, 9, 58, 32),
        Line(14, 26, 14, 55),
        Line(14, 55, 50, 55),
        Line(50, 55, 50, 26),
        Line(26, 55, 26, 39),
        Line(26, 39, 38, 39),
        Line(38, 39, 38, 55),
    ],
    // Pause.
    &[Line(22, 12, 22, 52), Line(42, 12, 42, 52)],
];

/// Draws an icon with its corner at a place in units.
pub fn paint(icon: u32, x: f32, y: f32, colour: u32, brush: &mut Brush) {
    let scale = brush.scale;
    let Some(strokes) = ICONS.get((icon as usize).wrapping_sub(1)) else { return };
    // The corner is at a whole pixel, so that an icon looks the same everywhere.
    let (x, y) = (round(x * scale) as f32, round(y * scale) as f32);
    let at = |along: u8| along as f32 / 4.0 * scale;
    let width = STROKE * scale;
    for stroke in strokes.iter() {
        match *stroke {
            Line(x0, y0, x1, y1) => brush.line([x + at(x0), y + at(y0)], [x + at(x1), y + at(y1)], width, colour),
            Ring(cx, cy, radius) => {
                let (cx, cy, r) = (x + at(cx), y + at(cy), at(radius) + width / 2.0);
                brush.border([cx - r, cy - r, cx + r, cy + r], r, width, colour);
            }
            Frame(left, top, right, bottom) => {
                let half = width / 2.0;
                let edges = [x + at(left) - half, y + at(top) - half, x + at(right) + half, y + at(bottom) + half];
                brush.border(edges, 2.5 * scale, width, colour);
            }
        }
    }
}

/// Adds a button's icon to the size of its content. A button without a text is a square.
pub fn measure(button: u32) {
    let width = if get(W_TEXT_LENGTH, button) == 0 {
        let pad = |one: u32, other: u32| getf(one, button) + getf(other, button);
        (getf(W_CONTENT_HEIGHT, button) + pad(W_PAD_TOP, W_PAD_BOTTOM) - pad(W_PAD_LEFT, W_PAD_RIGHT)).max(0.0)
    } else {
        getf(W_CONTENT_WIDTH, button) + space(button)
    };
    setf(W_CONTENT_WIDTH, button, width);
}

/// What a button's icon takes of the width, before a text.
pub fn space(button: u32) -> f32 {
    if get(W_ICON, button) == 0 {
        0.0
    } else if get(W_TEXT_LENGTH, button) == 0 {
        SIZE
    } else {
        SIZE + GAP
    }
}
