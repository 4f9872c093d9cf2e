//! Raster: draws the tiles whose items changed. First a warp looks at a block and its lanes at the block's tiles: each hashes what its tile
//! shows, with the order. A block with the items of the last frame is not looked at, and a tile with the hash of the last frame stays as it
//! is. Then a warp draws a tile, its lanes are the pixels of a row, and all lanes look at the same item at the same time.
//!
//! Lanes exchange nothing for each item or row: on `cpu`, an exchange makes 32 threads take turns, which takes longer than a pixel.

use crate::canvas;
use crate::geometry::{blocks, touches};
use crate::item::{
    self, BORDER, COLOUR, COLOUR_2, Edges, FROM, GLYPH, HASH, KIND, LINE, MORE, PIXELS_OF, RECTANGLE, SHADOW, SHAPE,
    SIZE, TO,
};
use crate::memory::*;
use crate::shapes;
use gpu_run_kernel::gpu::{WARP, add, ballot, lane, load, shuffle, store};
use gpu_run_kernel::team::Team;

/// Brightness of each value of a colour's channel, and the value for each of 4096 steps of brightness.
static LINEAR: Words = Words(*include_bytes!("linear.bin"));
static VALUES: &[u8; STEPS as usize] = include_bytes!("srgb.bin");
const STEPS: u32 = 4096;

/// Aligned, so that a word is loaded at once and not byte by byte.
#[repr(align(4))]
struct Words([u8; 1024]);

/// Added to the place of the first item that a tile shows: it covers all of the tile, and hides what is below.
const HIDES: u32 = 1 << 31;

const TILES_A_BLOCK: u32 = BLOCK / TILE_WIDTH * (BLOCK / TILE_HEIGHT);

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

/// A tile's place, and the frame's size.
struct Tile {
    left: u32,
    top: u32,
    width: u32,
    height: u32,
}

pub fn raster(team: &Team) {
    let (width, height) = (load(D_WIDTH), load(D_HEIGHT));
    look(team, width, height);
    let listed = load(S_TO_DRAW);
    let columns = width.div_ceil(TILE_WIDTH);
    let warps = team.size / WARP;
    let mut i = team.rank / WARP;
    let mut drawn = 0;
    while drawn < listed {
        if i < listed {
            let (tile, first) = (load(TO_DRAW + i * 8), load(TO_DRAW + i * 8 + 4));
            let (left, top) = (tile % columns * TILE_WIDTH, tile / columns * TILE_HEIGHT);
            let items = Items { from: first & !HIDES, ..items_of(left, top) };
            draw(items, first & HIDES != 0, &Tile { left, top, width, height });
        }
        i += warps;
        drawn += warps;
        // `cpu` takes threads that meet nobody for long as idle, and sleeps between their turns. Many warps meet rarely: on a GPU they
        // would wait for the slowest of them.
        if (drawn / warps).is_multiple_of(2 * warps) {
            team.meet();
        }
    }
    team.meet();
    if team.leads() {
        store(S_DRAWN, listed);
        store(S_TO_DRAW, 0);
    }
}

/// Lists the tiles to draw: a warp looks at a block, a lane at a tile of it.
fn look(team: &Team, width: u32, height: u32) {
    let (columns, rows) = (width.div_ceil(TILE_WIDTH), height.div_ceil(TILE_HEIGHT));
    let (block_columns, block_rows) = blocks();
    let seed = item::hash(item::hash(VERSION, width), height);
    let mut block = team.rank / WARP;
    while block < block_columns * block_rows {
        let (left, top) = (block % block_columns * BLOCK, block / block_columns * BLOCK);
        let items = items_of(left, top);
        let is_same = items.listed && load(BLOCK_CHANGED + block * 4) == 0;
        let mut base = 0;
        while base < TILES_A_BLOCK {
            let place = base + lane();
            let column = left / TILE_WIDTH + place % (BLOCK / TILE_WIDTH);
            let row = top / TILE_HEIGHT + place / (BLOCK / TILE_WIDTH);
            let (exists, tile) = (column < columns && row < rows, row * columns + column);
            let mut changed = (false, 0);
            if exists && !is_same {
                let tile = Tile { left: column * TILE_WIDTH, top: row * TILE_HEIGHT, width, height };
                let (hash, first) = shown(items, &tile, seed);
                changed = (note(row * columns + column, hash), first);
            }
            if exists {
                store(DAMAGE + tile * 4, changed.0 as u32);
            }
            if !is_same {
                list(tile, changed);
            }
            base += WARP;
        }
        block += team.size / WARP;
    }
    team.meet();
}

/// Keeps a tile's hash; returns whether it is another than before.
#[inline(always)]
fn note(tile: u32, (first, second): (u32, u32)) -> bool {
    let at = TILES + tile * 8;
    let changed = load(at) != first || load(at + 4) != second;
    store(at, first);
    store(at + 4, second);
    changed
}

/// Lists the lanes' tiles that changed, each with the place of the first item that it shows.
#[inline(always)]
fn list(tile: u32, (changed, first): (bool, u32)) {
    let mask = ballot(changed as u32);
    if mask == 0 {
        return;
    }
    let before = if lane() == 0 { add(S_TO_DRAW, mask.count_ones()) } else { 0 };
    let at = shuffle(before, 0) + (mask & ((1 << lane()) - 1)).count_ones();
    if changed {
        store(TO_DRAW + at * 8, tile);
        store(TO_DRAW + at * 8 + 4, first);
    }
}

fn items_of(left: u32, top: u32) -> Items {
    let (columns, _) = blocks();
    let block = top / BLOCK * columns + left / BLOCK;
    if load(S_BY_BLOCK) > MAX_BY_BLOCK {
        Items { from: 0, to: load(S_ITEMS), listed: false }
    } else {
        Items { from: load(BLOCKS + block * 8), to: load(BLOCKS + block * 8 + 4), listed: true }
    }
}

/// How an item lies in a tile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lies {
    /// It changes no pixel.
    Nowhere,
    /// It changes some pixels, or all of them in different ways.
    Somewhere,
    /// It lies over all of them, in one colour.
    Evenly,
}

/// Returns how an item that touches a tile lies in it, and whether nothing below it shows. What coverage makes of every pixel must follow:
/// exactly 0 if it is nowhere, exactly 1 if it is even or hides what is below.
#[inline(always)]
fn lies(at: u32, tile: &Tile) -> (Lies, bool) {
    let kind = load(at + KIND);
    if kind != RECTANGLE && kind != PIXELS_OF && kind != BORDER {
        return (Lies::Somewhere, false);
    }
    let (left, top) = (tile.left, tile.top);
    let (right, bottom) = ((left + TILE_WIDTH).min(tile.width), (top + TILE_HEIGHT).min(tile.height));
    let inset = if kind == BORDER { number(at + MORE) } else { 0.0 };
    let radius = (number(at + SIZE) - inset).max(0.0);
    let near = [number(at + SHAPE) + inset, number(at + SHAPE + 4) + inset];
    let far = [number(at + SHAPE + 8) - inset, number(at + SHAPE + 12) - inset];
    let within = |x: f32, y: f32| {
        near[0] + x <= left as f32
            && far[0] - x >= right as f32
            && near[1] + y <= top as f32
            && far[1] - y >= bottom as f32
    };
    // Between the corners, from left to right or from top to bottom.
    if !within(radius, 0.0) && !within(0.0, radius) {
        return (Lies::Somewhere, false);
    }
    if kind == BORDER {
        return (Lies::Nowhere, false);
    }
    let (from, to) = (load(at + FROM), load(at + TO));
    if from & 0xFFFF > left || from >> 16 > top || (to & 0xFFFF) < right || to >> 16 < bottom {
        return (Lies::Somewhere, false);
    }
    let (colour, other) = (load(at + COLOUR), load(at + COLOUR_2));
    if kind == PIXELS_OF {
        return (Lies::Somewhere, true);
    }
    (if colour == other { Lies::Evenly } else { Lies::Somewhere }, (colour & other) >> 24 == 255)
}

/// A hash of what the tile shows, as two words, and the place of the first item that shows, with [`HIDES`].
#[inline(always)]
fn shown(items: Items, tile: &Tile, seed: u32) -> ((u32, u32), u32) {
    let (mut first, mut second, mut from) = (seed, !seed, items.from);
    let mut place = items.from;
    while place < items.to {
        let item = items.at(place);
        if touches(item, tile.left, tile.top, tile.left + TILE_WIDTH, tile.top + TILE_HEIGHT) {
            let at = ITEMS + item * ITEM_BYTES;
            let (lies, hides) = lies(at, tile);
            if hides {
                (first, second, from) = (seed, !seed, place | HIDES);
            }
            if lies != Lies::Nowhere {
                let word = load(at + if lies == Lies::Evenly { COLOUR } else { HASH });
                first = item::hash(first, word);
                second = item::hash(second.rotate_left(7), !word);
            }
        }
        place += 1;
    }
    // Never what fresh scratch has.
    ((first | 1, second), from)
}

/// Which of 32 items from a place on show in a tile, as bits.
#[inline(always)]
fn showing(items: Items, base: u32, tile: &Tile) -> u32 {
    let place = base + lane();
    let mut shows = false;
    if place < items.to {
        let item = items.at(place);
        shows = touches(item, tile.left, tile.top, tile.left + TILE_WIDTH, tile.top + TILE_HEIGHT)
            && lies(ITEMS + item * ITEM_BYTES, tile).0 != Lies::Nowhere;
    }
    ballot(shows as u32)
}

/// Draws a tile; `hides`: its first item covers all of it.
#[inline(never)]
fn draw(items: Items, hides: bool, tile: &Tile) {
    let x = tile.left + lane();
    let ground = ITEMS + items.at(items.from) * ITEM_BYTES;
    let is_even = hides && load(ground + KIND) == RECTANGLE && load(ground + COLOUR) == load(ground + COLOUR_2);
    let even = if is_even { ink(ground, 0.0, 0.0).0 } else { [0.0; 3] };
    let items = Items { from: items.from + hides as u32, ..items };
    let masks = |i: u32| if items.from + i * WARP < items.to { showing(items, items.from + i * WARP, tile) } else { 0 };
    // Of the first ones they are found once for all rows.
    let masks = [masks(0), masks(1), masks(2), masks(3)];
    let bottom = (tile.top + TILE_HEIGHT).min(tile.height);
    let mut y = tile.top;
    if is_even && masks == [0; 4] && items.from + 4 * WARP >= items.to {
        let word = packed(even);
        while x < tile.width && y < bottom {
            store(PIXELS + (y * tile.width + x) * 4, word);
            y += 1;
        }
        return;
    }
    while y < bottom {
        let (middle_x, middle_y) = (x as f32 + 0.5, y as f32 + 0.5);
        let mut pixel = if hides && !is_even { ink(ground, middle_x, middle_y).0 } else { even };
        let mut base = items.from;
        while base < items.to {
            let mut mask = match (base - items.from) / WARP {
                0 => masks[0],
                1 => masks[1],
                2 => masks[2],
                3 => masks[3],
                _ => showing(items, base, tile),
            };
            while mask != 0 {
                let item = items.at(base + mask.trailing_zeros());
                if touches(item, x, y, x + 1, y + 1) {
                    cover(ITEMS + item * ITEM_BYTES, middle_x, middle_y, &mut pixel);
                }
                mask &= mask - 1;
            }
            base += WARP;
        }
        if x < tile.width {
            store(PIXELS + (y * tile.width + x) * 4, packed(pixel));
        }
        y += 1;
    }
}

/// A pixel as the frame buffer has it.
#[inline(always)]
fn packed(pixel: [f32; 3]) -> u32 {
    let [red, green, blue] = pixel.map(value);
    red | green << 8 | blue << 16 | 0xFF00_0000
}

#[inline(always)]
fn number(at: u32) -> f32 {
    f32::from_bits(load(at))
}

/// Where an item's shape is.
#[inline(always)]
fn edges(at: u32) -> Edges {
    [number(at + SHAPE), number(at + SHAPE + 4), number(at + SHAPE + 8), number(at + SHAPE + 12)]
}

/// The light of an item at a pixel, for each channel, and its opacity, of 255.
#[inline(always)]
fn ink(at: u32, x: f32, y: f32) -> ([f32; 3], f32) {
    let (mut colour, other) = (load(at + COLOUR), load(at + COLOUR_2));
    let kind = load(at + KIND);
    if kind == PIXELS_OF {
        return (canvas::sample(load(at + MORE), colour, edges(at), x, y), 255.0);
    }
    if kind == RECTANGLE && colour != other {
        let [_, top, _, bottom] = edges(at);
        let share = ((y - top) / (bottom - top)).clamp(0.0, 1.0);
        colour = crate::theme::mix(colour, other, share);
    }
    ([0, 8, 16].map(|shift| brightness(colour >> shift & 255)), (colour >> 24) as f32)
}

/// Lays an item over a pixel, in linear light.
#[inline(always)]
fn cover(at: u32, x: f32, y: f32, pixel: &mut [f32; 3]) {
    let (edges, size, more) = (edges(at), number(at + SIZE), number(at + MORE));
    let coverage = match load(at + KIND) {
        RECTANGLE | PIXELS_OF => shapes::rectangle(x, y, edges, size),
        BORDER => shapes::border(x, y, edges, size, more),
        SHADOW => shapes::shadow(x, y, edges, size, more),
        LINE => shapes::line(x, y, edges, size),
        GLYPH => shapes::glyph(x - edges[0], y - edges[1], size, more.to_bits(), load(at + COLOUR_2)),
        _ => 0.0,
    };
    if coverage <= 0.0 {
        return;
    }
    let (light, opacity) = ink(at, x, y);
    let opacity = coverage * opacity / 255.0;
    (0..3).for_each(|i| blend(&mut pixel[i], light[i], opacity));
}

/// Lays light over a channel. What is opaque hides everything below: not even rounding may tell what that was.
#[inline(always)]
fn blend(channel: &mut f32, light: f32, opacity: f32) {
    *channel = if opacity >= 1.0 { light } else { *channel + (light - *channel) * opacity };
}

#[inline(always)]
pub fn brightness(value: u32) -> f32 {
    let at = value as usize * 4;
    let bytes = &LINEAR.0;
    f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The value of a colour's channel for a brightness.
#[inline(always)]
fn value(brightness: f32) -> u32 {
    let step = (brightness * (STEPS - 1) as f32 + 0.5) as u32;
    VALUES[step.min(STEPS - 1) as usize] as u32
}
