//! Draws a tile: a warp a tile, a lane a column of it. A lane goes through the items that touch its column, and lays each over [`ROWS`]
//! pixels at once, so that an item is read once for all of them.
//!
//! Lanes exchange nothing for each item or row: on `cpu`, an exchange makes 32 threads take turns, which takes longer than a pixel.

use crate::item::{self, BORDER, GLYPH, GRADIENT, KIND, LINE, RECTANGLE, SHADOW};
use crate::memory::*;
use crate::raster::{Items, Tile, lies};
use crate::shapes::{self, ROWS, rows};
use crate::theme::mix;
use crate::{canvas, glyphs};
use gpu_run_kernel::gpu::{
    WARP, ballot, barrier, lane, load, load_all, local_load, local_store, store, thread, threads,
};

/// Channels of the pixels that a lane draws at once.
type Light = [[f32; 3]; ROWS as usize];

/// The value of a colour's channel for each of 4096 steps of brightness.
static VALUES: &[u8; STEPS as usize] = include_bytes!("srgb.bin");
const STEPS: u32 = 4096;
/// Where the workgroup's shared memory has [`VALUES`], and the brightness of each value, a word each: reading them there takes a third of
/// the instructions. A compiler sees of both addresses that they are within that memory.
const LOCAL_VALUES: u32 = 0x4000;
const LOCAL_LINEAR: u32 = 0x1000;

/// Fills these tables: all threads call it.
pub fn prepare() {
    let mut step = thread();
    while step < STEPS {
        local_store(LOCAL_VALUES | (step * 4), VALUES[step as usize] as u32);
        if step < 256 {
            local_store(LOCAL_LINEAR | (step * 4), item::brightness(step).to_bits());
        }
        step += threads();
    }
    barrier();
}

/// Draws a tile; `hides`: its first item covers all of it.
#[inline(always)]
pub fn draw(items: Items, hides: bool, tile: &Tile) {
    // Numbers, and nothing by reference: what threads keep on their stacks lies far apart.
    let how = items.listed as u32 | (hides as u32) << 1;
    draw_tile(items.from, items.to, how, items.shown, items.narrow, tile.left, tile.top);
}

#[inline(never)]
fn draw_tile(from: u32, to: u32, how: u32, shown: u32, narrow: u32, left: u32, top: u32) {
    let items = Items { from, to, listed: how & 1 != 0, shown, narrow };
    let tile = &Tile { left, top, width: load(D_WIDTH), height: load(D_HEIGHT) };
    let (x, bottom) = (tile.left + lane(), (tile.top + TILE_HEIGHT).min(tile.height));
    let mut y = tile.top;
    let mut ground = [0.0; 3];
    let mut shown = items.shown;
    if how & 2 != 0 {
        let item = items.address(items.from);
        if item::is_even(load(item + KIND)) {
            (ground, shown) = (item::light(item), shown & !1);
        }
    }
    let mut at = PIXELS + (y * tile.width + x) * 4;
    if shown == 0 && items.from + WARP >= items.to {
        let word = packed(ground);
        while x < tile.width && y < bottom {
            store(at, word);
            (at, y) = (at + tile.width * 4, y + 1);
        }
        return;
    }
    let first = shown & !items.narrow | in_column(items, items.from, x, shown & items.narrow);
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
        let words = pixels.map(packed);
        if x < tile.width && y + ROWS <= bottom {
            rows!(|row| store(at + row * tile.width * 4, words[row as usize]));
        } else if x < tile.width {
            rows!(|row| {
                if y + row < bottom {
                    store(at + row * tile.width * 4, words[row as usize]);
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
    // All of the item's words, with one check of the address.
    let [from, to, kind, a, b, c, d, size, more, first, second, _, red, green, blue, opacity] = load_all(at);
    let own = from >> 16..to >> 16;
    if own.start >= top + ROWS || own.end <= top {
        return pixels;
    }
    let ([edges @ .., size, opacity], light) =
        ([a, b, c, d, size, opacity].map(f32::from_bits), [red, green, blue].map(f32::from_bits));
    let column = [x as f32, top as f32, (x + 1) as f32, (top + ROWS) as f32];
    let across = x as f32 + 0.5;
    let down = |row: u32| (top + row) as f32 + 0.5;
    let whole = own.start <= top && own.end >= top + ROWS;
    let coverage = match kind {
        RECTANGLE | GRADIENT if shapes::holds(edges, size, column) => {
            if kind == RECTANGLE && whole && opacity >= 1.0 {
                return [light; ROWS as usize];
            }
            [1.0; ROWS as usize]
        }
        RECTANGLE | GRADIENT => rows!(|row| shapes::rectangle(across, down(row), edges, size)),
        BORDER => {
            let (inner, radius) = shapes::inside(edges, size, f32::from_bits(more));
            if shapes::holds(inner, radius, column) {
                return pixels;
            }
            rows!(|row| shapes::border(across, down(row), edges, size, f32::from_bits(more)))
        }
        SHADOW => {
            let (fade, inverse) = (f32::from_bits(more), f32::from_bits(second));
            rows!(|row| shapes::shadow(across, down(row), edges, size, fade, inverse))
        }
        GLYPH => glyphs::coverage(at, x, top),
        _ => {
            let mut covered = pixels;
            cover_rarely(at, x, top, &mut covered);
            return covered;
        }
    };
    // All lanes take the same way for all rows: what is not covered has no opacity.
    let coverage = rows!(|row| if whole || own.contains(&(top + row)) { coverage[row as usize] } else { 0.0 });
    if kind != GRADIENT {
        return rows!(|row| over(pixels[row as usize], light, coverage[row as usize] * opacity));
    }
    rows!(|row| {
        let colour = mix(first, second, ((down(row) - edges[1]) * light[0]).clamp(0.0, 1.0));
        let light = [0, 8, 16].map(|shift| {
            let value = colour >> shift & 255;
            f32::from_bits(local_load(LOCAL_LINEAR | (value * 4)))
        });
        over(pixels[row as usize], light, coverage[row as usize] * ((colour >> 24) as f32 / 255.0))
    })
}

/// [`cover`] for lines and for pixels of a canvas, apart from it so that the code for all other items stays short.
#[inline(never)]
fn cover_rarely(at: u32, x: u32, top: u32, pixels: &mut Light) {
    let [_, _, kind, a, b, c, d, size] = load_all(at);
    let (_, own) = item::touched(at);
    let [edges @ .., size] = [a, b, c, d, size].map(f32::from_bits);
    let mut row = 0;
    while row < ROWS {
        let (across, down) = (x as f32 + 0.5, (top + row) as f32 + 0.5);
        if own.contains(&(top + row)) {
            let pixel = &mut pixels[row as usize];
            *pixel = match kind {
                LINE => over(*pixel, item::light(at), shapes::line(across, down, edges, size) * item::opacity(at)),
                _ => over(*pixel, canvas::light(at, x, top + row), shapes::rectangle(across, down, edges, size)),
            };
        }
        row += 1;
    }
}

/// Lays light over a pixel.
#[inline(always)]
fn over(pixel: [f32; 3], light: [f32; 3], opacity: f32) -> [f32; 3] {
    [0, 1, 2].map(|i| blended(pixel[i], light[i], opacity))
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
    local_load(LOCAL_VALUES | ((step & (STEPS - 1)) * 4))
}
