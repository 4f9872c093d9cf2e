//! Raster: draws the tiles whose items changed. A warp draws a tile, its lanes are the pixels of a row, and all lanes look at the same
//! item at the same time. A tile's items are hashed with their order: a tile with the hash of the last frame stays as it is.

use crate::canvas;
use crate::geometry::{blocks, touches};
use crate::item::{
    self, BORDER, COLOUR, COLOUR_2, GLYPH, HASH, KIND, LINE, MORE, PIXELS_OF, RECTANGLE, SHADOW, SHAPE, SIZE,
};
use crate::memory::*;
use crate::shapes;
use gpu_run_kernel::gpu::{WARP, add, ballot, lane, load, shuffle, store};
use gpu_run_kernel::team::Team;

/// Brightness of each value of a colour's channel, and the value for each of 4096 steps of brightness.
static LINEAR: &[u8; 1024] = include_bytes!("linear.bin");
static VALUES: &[u8; STEPS as usize] = include_bytes!("srgb.bin");
const STEPS: u32 = 4096;

/// Where the items are that may touch a tile.
#[derive(Clone, Copy)]
struct Items {
    from: u32,
    to: u32,
    /// Whether `from` and `to` are places in the list by block, or items themselves.
    listed: bool,
}

impl Items {
    #[inline(always)]
    fn at(&self, place: u32) -> u32 {
        if self.listed { load(BY_BLOCK + place * 4) } else { place }
    }
}

pub fn raster(team: &Team) {
    let (width, height) = (load(D_WIDTH), load(D_HEIGHT));
    let (columns, rows) = (width.div_ceil(TILE_WIDTH), height.div_ceil(TILE_HEIGHT));
    let seed = item::hash(item::hash(VERSION, width), height);
    let mut tile = team.rank / WARP;
    while tile < columns * rows {
        let (left, top) = (tile % columns * TILE_WIDTH, tile / columns * TILE_HEIGHT);
        let items = items_of(left, top);
        let (first, second) = hash(items, left, top, seed);
        let at = TILES + tile * 8;
        let changed = load(at) != first || load(at + 4) != second;
        // The ballot: no lane may store before all have loaded.
        let changed = ballot(changed as u32) != 0;
        if changed {
            draw(items, left, top, width, height);
        }
        if lane() == 0 {
            store(at, first);
            store(at + 4, second);
            store(DAMAGE + tile * 4, changed as u32);
            if changed {
                add(S_DRAWN, 1);
            }
        }
        tile += team.size / WARP;
    }
    team.meet();
}

fn items_of(left: u32, top: u32) -> Items {
    let (columns, _) = blocks();
    let block = top / BLOCK * columns + left / BLOCK;
    if load(S_BY_BLOCK) > MAX_BY_BLOCK {
        Items { from: 0, to: load(S_ITEMS), listed: false }
    } else {
        Items { from: load(BLOCKS + block * 4), to: load(BLOCKS + block * 4 + 4), listed: true }
    }
}

/// A hash of what the tile shows, as two words. All lanes compute it, so that none has to be told.
fn hash(items: Items, left: u32, top: u32, seed: u32) -> (u32, u32) {
    let (mut first, mut second) = (seed, !seed);
    let mut base = items.from;
    while base < items.to {
        let place = base + lane();
        let item = if place < items.to { items.at(place) } else { 0 };
        let inside = place < items.to && touches(item, left, top, left + TILE_WIDTH, top + TILE_HEIGHT);
        // Each lane loads one hash, and all get them by exchange: the loads do not wait for each other.
        let own = if inside { load(ITEMS + item * ITEM_BYTES + HASH) } else { 0 };
        let mut mask = ballot(inside as u32);
        while mask != 0 {
            let word = shuffle(own, mask.trailing_zeros());
            first = item::hash(first, word);
            second = item::hash(second.rotate_left(7), !word);
            mask &= mask - 1;
        }
        base += WARP;
    }
    // Never what fresh scratch has.
    (first | 1, second)
}

/// Draws a tile.
#[inline(never)]
fn draw(items: Items, left: u32, top: u32, width: u32, height: u32) {
    let x = left + lane();
    let mut y = top;
    while y < (top + TILE_HEIGHT).min(height) {
        let mut pixel = [0.0f32; 3];
        let mut base = items.from;
        while base < items.to {
            let place = base + lane();
            let own = if place < items.to { items.at(place) } else { 0 };
            let inside = place < items.to && touches(own, left, y, left + TILE_WIDTH, y + 1);
            let mut mask = ballot(inside as u32);
            while mask != 0 {
                let item = items.at(base + mask.trailing_zeros());
                if touches(item, x, y, x + 1, y + 1) {
                    cover(ITEMS + item * ITEM_BYTES, x as f32 + 0.5, y as f32 + 0.5, &mut pixel);
                }
                mask &= mask - 1;
            }
            base += WARP;
        }
        if x < width {
            let [red, green, blue] = pixel.map(value);
            store(PIXELS + (y * width + x) * 4, red | green << 8 | blue << 16 | 0xFF00_0000);
        }
        y += 1;
    }
}

#[inline(always)]
fn number(at: u32) -> f32 {
    f32::from_bits(load(at))
}

/// Lays an item over a pixel, in linear light.
#[inline(always)]
fn cover(at: u32, x: f32, y: f32, pixel: &mut [f32; 3]) {
    let edges = [number(at + SHAPE), number(at + SHAPE + 4), number(at + SHAPE + 8), number(at + SHAPE + 12)];
    let (size, more) = (number(at + SIZE), number(at + MORE));
    let (mut colour, other) = (load(at + COLOUR), load(at + COLOUR_2));
    let coverage = match load(at + KIND) {
        RECTANGLE | PIXELS_OF => shapes::rectangle(x, y, edges, size),
        BORDER => shapes::border(x, y, edges, size, more),
        SHADOW => shapes::shadow(x, y, edges, size, more),
        LINE => shapes::line(x, y, edges, size),
        GLYPH => shapes::glyph(x - edges[0], y - edges[1], size, more.to_bits(), other),
        _ => 0.0,
    };
    if coverage <= 0.0 {
        return;
    }
    if load(at + KIND) == PIXELS_OF {
        let light = canvas::sample(more.to_bits(), colour, edges, x, y);
        (0..3).for_each(|i| pixel[i] += (light[i] - pixel[i]) * coverage);
        return;
    }
    if load(at + KIND) == RECTANGLE && colour != other {
        let share = ((y - edges[1]) / (edges[3] - edges[1])).clamp(0.0, 1.0);
        colour = crate::theme::mix(colour, other, share);
    }
    let opacity = coverage * (colour >> 24) as f32 / 255.0;
    let mut channel = 0;
    while channel < 3 {
        let light = brightness(colour >> (channel * 8) & 255);
        pixel[channel] += (light - pixel[channel]) * opacity;
        channel += 1;
    }
}

#[inline(always)]
pub fn brightness(value: u32) -> f32 {
    let at = value as usize * 4;
    f32::from_le_bytes([LINEAR[at], LINEAR[at + 1], LINEAR[at + 2], LINEAR[at + 3]])
}

/// The value of a colour's channel for a brightness.
#[inline(always)]
fn value(brightness: f32) -> u32 {
    let step = (brightness * (STEPS - 1) as f32 + 0.5) as u32;
    VALUES[step.min(STEPS - 1) as usize] as u32
}
