//! Draws a tile: a warp a tile, a lane a column of it. A lane goes through the items that touch its column, and lays each over [`ROWS`]
//! pixels at once, so that an item is read once for all of them.
//!
//! Lanes exchange nothing for each item or row: on `cpu`, an exchange makes 32 threads take turns, which takes longer than a pixel.

use crate::item::{self, BORDER, COLOUR, COLOUR_2, GLYPH, LINE, PIXELS_OF, RECTANGLE, SHADOW, Shape, solid};
use crate::memory::*;
use crate::raster::{Items, Tile, lies};
use crate::shapes::{self, ROWS, rows};
use crate::theme::mix;
use crate::{canvas, glyphs};
use gpu_run_kernel::gpu::{WARP, ballot, lane, load, store};

/// Channels of the pixels that a lane draws at once.
type Light = [[f32; 3]; ROWS as usize];

/// The value of a colour's channel for each of 4096 steps of brightness.
static VALUES: &[u8; STEPS as usize] = include_bytes!("srgb.bin");
const STEPS: u32 = 4096;

/// Draws a tile; `hides`: its first item covers all of it.
#[inline(never)]
pub fn draw(items: Items, hides: bool, tile: &Tile) {
    let (x, bottom) = (tile.left + lane(), (tile.top + TILE_HEIGHT).min(tile.height));
    let mut y = tile.top;
    let ground = items.address(items.from);
    let is_even = hides && item::is_even(ground);
    let ground = if is_even { item::light(ground).0 } else { [0.0; 3] };
    let shown = items.shown & !(is_even as u32);
    let mut at = PIXELS + (y * tile.width + x) * 4;
    if is_even && shown == 0 && items.from + WARP >= items.to {
        let word = packed(ground);
        while x < tile.width && y < bottom {
            store(at, word);
            (at, y) = (at + tile.width * 4, y + 1);
        }
        return;
    }
    let first = in_column(items, items.from, x, shown);
    while y < bottom {
        let mut pixels = [ground; ROWS as usize];
        let (mut base, mut mask) = (items.from, first);
        loop {
            while mask != 0 {
                pixels = cover(items.address(base + mask.trailing_zeros()), x, y, pixels);
                mask &= mask - 1;
            }
            base += WARP;
            if base >= items.to {
                break;
            }
            mask = in_column(items, base, x, showing(items, base, tile));
        }
        if x < tile.width {
            rows!(|row| {
                if y + row < bottom {
                    store(at + row * tile.width * 4, packed(pixels[row as usize]));
                }
            });
        }
        (at, y) = (at + ROWS * tile.width * 4, y + ROWS);
    }
}

/// Which of 32 items from a place on show in a tile, as bits.
#[inline(always)]
fn showing(items: Items, base: u32, tile: &Tile) -> u32 {
    let place = base + lane();
    let mut shows = false;
    if place < items.to {
        let item = items.address(place);
        shows = tile.is_touched_by(item) && lies(item, tile).shows();
    }
    ballot(shows as u32)
}

/// Those of the items in a mask that touch a column of pixels.
#[inline(always)]
fn in_column(items: Items, base: u32, x: u32, mut mask: u32) -> u32 {
    let mut own = 0;
    while mask != 0 {
        let place = mask.trailing_zeros();
        let (columns, _) = item::touched(items.address(base + place));
        own |= (columns.contains(&x) as u32) << place;
        mask &= mask - 1;
    }
    own
}

/// Lays an item over some pixels of a column, in linear light.
#[inline(always)]
fn cover(at: u32, x: u32, top: u32, pixels: Light) -> Light {
    let (_, own) = item::touched(at);
    if own.start >= top + ROWS || own.end <= top {
        return pixels;
    }
    let Shape { kind, edges, size, more } = Shape::load(at);
    let column = [x as f32, top as f32, (x + 1) as f32, (top + ROWS) as f32];
    let across = x as f32 + 0.5;
    let down = |row: u32| (top + row) as f32 + 0.5;
    let coverage = match kind {
        RECTANGLE | PIXELS_OF if shapes::holds(edges, size, column) => [1.0; ROWS as usize],
        RECTANGLE | PIXELS_OF => rows!(|row| shapes::rectangle(across, down(row), edges, size)),
        BORDER => {
            let (inner, radius) = shapes::inside(edges, size, f32::from_bits(more));
            if shapes::holds(inner, radius, column) {
                return pixels;
            }
            rows!(|row| shapes::border(across, down(row), edges, size, f32::from_bits(more)))
        }
        SHADOW => {
            let (fade, inverse) = (f32::from_bits(more), f32::from_bits(load(at + COLOUR_2)));
            rows!(|row| shapes::shadow(across, down(row), edges, size, fade, inverse))
        }
        LINE => rows!(|row| shapes::line(across, down(row), edges, size)),
        GLYPH => glyphs::coverage(at, x, top),
        _ => return pixels,
    };
    // All lanes take the same way for all rows: what is not covered has no opacity.
    let coverage = rows!(|row| if own.contains(&(top + row)) { coverage[row as usize] } else { 0.0 });
    let over = |row: u32, light: [f32; 3], opacity: f32| {
        let (pixel, opacity) = (pixels[row as usize], coverage[row as usize] * opacity);
        [0, 1, 2].map(|i| blended(pixel[i], light[i], opacity))
    };
    if kind == PIXELS_OF {
        return rows!(|row| over(row, canvas::light(at, x, top + row), 1.0));
    }
    let (light, opacity) = item::light(at);
    if item::is_even(at) {
        return rows!(|row| over(row, light, opacity));
    }
    // A gradient.
    let (from, to) = (load(at + COLOUR), load(at + COLOUR_2));
    rows!(|row| {
        let colour = mix(from, to, ((down(row) - edges[1]) * light[0]).clamp(0.0, 1.0));
        over(row, solid(colour), (colour >> 24) as f32 / 255.0)
    })
}

/// Lays light over a channel. What is opaque hides everything below: not even rounding may tell what that was.
#[inline(always)]
fn blended(channel: f32, light: f32, opacity: f32) -> f32 {
    if opacity >= 1.0 { light } else { channel + (light - channel) * opacity }
}

/// A pixel as the frame buffer has it.
#[inline(always)]
fn packed(pixel: [f32; 3]) -> u32 {
    let [red, green, blue] = pixel.map(value);
    red | green << 8 | blue << 16 | 0xFF00_0000
}

/// The value of a colour's channel for a brightness.
#[inline(always)]
fn value(brightness: f32) -> u32 {
    let step = (brightness * (STEPS - 1) as f32 + 0.5) as u32;
    VALUES[step.min(STEPS - 1) as usize] as u32
}
