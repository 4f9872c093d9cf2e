//! Draws a tile: a warp a tile, a lane a column of it. A lane goes through the items that touch its column, and lays each over [`ROWS`]
//! pixels at once, so that an item is read once for all of them.
//!
//! Lanes exchange nothing for each item or row: on `cpu`, an exchange makes 32 threads take turns, which takes longer than a pixel.

use crate::item::{self, BORDER, GLYPH, Item, LINE, PIXELS_OF, RECTANGLE, SHADOW, solid};
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

/// How many items there are in the lists that are made once for all rows of a tile.
const KNOWN: usize = 4;

/// Draws a tile; `hides`: its first item covers all of it.
#[inline(never)]
pub fn draw(items: Items, hides: bool, tile: &Tile) {
    let x = tile.left + lane();
    let at = items.address(items.from);
    let ground = Item::load(at);
    let is_even = hides && ground.kind == RECTANGLE && ground.colour == ground.colour_2;
    let items = Items { from: items.from + hides as u32, ..items };
    let masks = [0, 1, 2, 3].map(|i| showing(items, items.from + i * WARP, tile));
    let bottom = (tile.top + TILE_HEIGHT).min(tile.height);
    let mut y = tile.top;
    if is_even && masks == [0; KNOWN] && items.from + KNOWN as u32 * WARP >= items.to {
        let word = packed(ground.light);
        while x < tile.width && y < bottom {
            store(PIXELS + (y * tile.width + x) * 4, word);
            y += 1;
        }
        return;
    }
    let [first, second, third, fourth] = masks;
    let own = |i: u32, mask| in_column(items, items.from + i * WARP, x, mask);
    let (first, second, third, fourth) = (own(0, first), own(1, second), own(2, third), own(3, fourth));
    while y < bottom {
        let mut pixels = if hides { grounds(at, x, y) } else { [[0.0; 3]; ROWS as usize] };
        let mut base = items.from;
        while base < items.to {
            let mut mask = match (base - items.from) / WARP {
                0 => first,
                1 => second,
                2 => third,
                3 => fourth,
                _ => in_column(items, base, x, showing(items, base, tile)),
            };
            while mask != 0 {
                pixels = cover(items.address(base + mask.trailing_zeros()), x, y, pixels);
                mask &= mask - 1;
            }
            base += WARP;
        }
        if x < tile.width {
            let at = PIXELS + (y * tile.width + x) * 4;
            rows!(|row| {
                if y + row < bottom {
                    store(at + row * tile.width * 4, packed(pixels[row as usize]));
                }
            });
        }
        y += ROWS;
    }
}

/// Which of 32 items from a place on show in a tile, as bits.
#[inline(always)]
fn showing(items: Items, base: u32, tile: &Tile) -> u32 {
    if base >= items.to {
        return 0;
    }
    let place = base + lane();
    let mut shows = false;
    if place < items.to {
        let item = items.address(place);
        shows = tile.is_touched_by(item) && lies(&Item::load(item), tile).shows();
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

/// What pixels show of an item that covers all of them.
#[inline(always)]
fn grounds(at: u32, x: u32, top: u32) -> Light {
    let item = Item::load(at);
    match item.kind {
        _ if item.is_even() => [item.light; ROWS as usize],
        PIXELS_OF => rows!(|row| canvas::light(at, x, top + row)),
        _ => rows!(|row| solid(shade(&item, top + row))),
    }
}

/// The colour of a gradient in a row of pixels.
#[inline(always)]
fn shade(item: &Item, y: u32) -> u32 {
    let share = (y as f32 + 0.5 - item.edges[1]) * item.light[0];
    mix(item.colour, item.colour_2, share.clamp(0.0, 1.0))
}

/// Lays an item over some pixels of a column, in linear light.
#[inline(always)]
fn cover(at: u32, x: u32, top: u32, pixels: Light) -> Light {
    let item = Item::load(at);
    let own = item.rows.clone();
    if own.start >= top + ROWS || own.end <= top {
        return pixels;
    }
    let (edges, size, more) = (item.edges, item.size, f32::from_bits(item.more));
    let column = [x as f32, top as f32, (x + 1) as f32, (top + ROWS) as f32];
    let across = x as f32 + 0.5;
    let down = |row: u32| (top + row) as f32 + 0.5;
    let coverage = match item.kind {
        RECTANGLE | PIXELS_OF if shapes::holds(edges, size, column) => [1.0; ROWS as usize],
        RECTANGLE | PIXELS_OF => rows!(|row| shapes::rectangle(across, down(row), edges, size)),
        BORDER => {
            let (inner, radius) = shapes::inside(edges, size, more);
            if shapes::holds(inner, radius, column) {
                return pixels;
            }
            rows!(|row| shapes::border(across, down(row), edges, size, more))
        }
        SHADOW => {
            let inverse = f32::from_bits(item.colour_2);
            rows!(|row| shapes::shadow(across, down(row), edges, size, more, inverse))
        }
        LINE => rows!(|row| shapes::line(across, down(row), edges, size)),
        GLYPH => {
            let (image, column) = (load(glyphs::image(at)), x - item.columns.start);
            let (stride, shift) = (glyphs::stride(&item.columns), column % 2 * 16);
            rows!(|row| match (top + row).wrapping_sub(own.start) {
                row if row >= own.end - own.start => 0.0,
                row if image == 0 => glyphs::coverage(at, column, row) / glyphs::ONE,
                row => (load(image + (row * stride + column / 2) * 4) >> shift & 0xFFFF) as f32 / glyphs::ONE,
            })
        }
        _ => return pixels,
    };
    // All lanes take the same way for all rows: what is not covered has no opacity.
    let coverage = rows!(|row| if own.contains(&(top + row)) { coverage[row as usize] } else { 0.0 });
    let over = |row: u32, light: [f32; 3], opacity: f32| {
        let (pixel, opacity) = (pixels[row as usize], coverage[row as usize] * opacity);
        [0, 1, 2].map(|i| blended(pixel[i], light[i], opacity))
    };
    match item.kind {
        _ if item.is_even() => rows!(|row| over(row, item.light, item.opacity)),
        PIXELS_OF => rows!(|row| over(row, canvas::light(at, x, top + row), 1.0)),
        _ => rows!(|row| {
            let colour = shade(&item, top + row);
            over(row, solid(colour), (colour >> 24) as f32 / 255.0)
        }),
    }
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
