//! Raster: finds the tiles whose items changed. A warp looks at a block and its lanes at the block's tiles: each hashes what its tile shows,
//! with the order. A block with the items of the last frame is not looked at, and a tile with the hash of the last frame stays as it is.
//! Then all glyphs get their images (`glyphs.rs`), and warps draw these tiles (`draw.rs`).

use crate::draw;
use crate::geometry::blocks;
use crate::glyphs;
use crate::item::{self, BORDER, COLOUR, COLOUR_2, GRADIENT, HASH, PIXELS_OF, RECTANGLE, Shape};
use crate::memory::*;
use crate::shapes;
use gpu_run_kernel::gpu::{WARP, add, ballot, lane, load, load_all, shuffle, store};
use gpu_run_kernel::team::Team;

/// Added to the place of the first item that a tile shows: it covers all of the tile, and hides what is below.
const HIDES: u32 = 1 << 31;

/// How many tiles a warp takes at once.
const MOST_AT_ONCE: u32 = 4;

const TILES_A_BLOCK: u32 = BLOCK / TILE_WIDTH * (BLOCK / TILE_HEIGHT);

/// Where the items are that may touch a tile.
#[derive(Clone, Copy)]
pub struct Items {
    pub from: u32,
    pub to: u32,
    /// Whether `from` and `to` are places in the list by block, or items themselves.
    pub listed: bool,
    /// Of the first [`WARP`], those that show in a tile to draw, as bits.
    pub shown: u32,
    /// Of these, those that do not touch all columns of the tile.
    pub narrow: u32,
}

impl Items {
    /// The address of an item.
    #[inline(always)]
    pub fn address(&self, place: u32) -> u32 {
        if self.listed { load(BY_BLOCK + place * 4) } else { ITEMS + place * ITEM_BYTES }
    }
}

/// A tile's place, and the frame's size.
pub struct Tile {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

impl Tile {
    #[inline(always)]
    pub fn is_touched_by(&self, item: u32) -> bool {
        item::meets(item, self.left, self.top, self.left + TILE_WIDTH, self.top + TILE_HEIGHT)
    }
}

pub fn raster(team: &Team) {
    look(team);
    let listed = load(S_TO_DRAW);
    if listed != 0 {
        draw::prepare();
        glyphs::images(team);
        draw_all(team, listed);
    }
    if team.leads() {
        store(S_DRAWN, listed);
        store(S_TO_DRAW, 0);
        store(S_NEXT_TO_DRAW, 0);
    }
}

/// Draws the tiles that are listed. A warp takes some of them at a time, whenever it is done with those before: tiles differ much in what
/// they cost.
fn draw_all(team: &Team, listed: u32) {
    let (width, height) = (load(D_WIDTH), load(D_HEIGHT));
    let (columns, warps) = (width.div_ceil(TILE_WIDTH), team.size / WARP);
    let share = (listed / (warps * 8)).clamp(1, MOST_AT_ONCE);
    let mut i = team.rank / WARP * share;
    while i < listed {
        let end = (i + share).min(listed);
        while i < end {
            let [tile, first, shown, narrow] = load_all(TO_DRAW + i * TO_DRAW_BYTES);
            let (left, top) = (tile % columns * TILE_WIDTH, tile / columns * TILE_HEIGHT);
            let items = Items { from: first & !HIDES, shown, narrow, ..items_of(left, top) };
            draw::draw(items, first & HIDES != 0, &Tile { left, top, width, height });
            i += 1;
        }
        let next = if lane() == 0 { add(S_NEXT_TO_DRAW, share) } else { 0 };
        i = warps * share + shuffle(next, 0);
    }
    team.meet();
}

/// Lists the tiles to draw: a warp looks at a block, a lane at a tile of it.
#[inline(never)]
fn look(team: &Team) {
    let (width, height) = (load(D_WIDTH), load(D_HEIGHT));
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
            let mut changed = (false, [0; 3]);
            if exists && !is_same {
                let tile = Tile { left: column * TILE_WIDTH, top: row * TILE_HEIGHT, width, height };
                let (hash, found) = shown(items, &tile, seed);
                changed = (note(row * columns + column, hash), found);
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

/// Lists the lanes' tiles that changed, each with what [`shown`] found in it.
#[inline(always)]
fn list(tile: u32, (changed, [first, shown, narrow]): (bool, [u32; 3])) {
    let mask = ballot(changed as u32);
    if mask == 0 {
        return;
    }
    let before = if lane() == 0 { add(S_TO_DRAW, mask.count_ones()) } else { 0 };
    let at = shuffle(before, 0) + (mask & ((1 << lane()) - 1)).count_ones();
    if changed {
        let at = TO_DRAW + at * TO_DRAW_BYTES;
        store(at, tile);
        store(at + 4, first);
        store(at + 8, shown);
        store(at + 12, narrow);
    }
}

fn items_of(left: u32, top: u32) -> Items {
    let (columns, _) = blocks();
    let block = top / BLOCK * columns + left / BLOCK;
    if load(S_BY_BLOCK) > MAX_BY_BLOCK {
        Items { from: 0, to: load(S_ITEMS), listed: false, shown: 0, narrow: 0 }
    } else {
        Items { from: load(BLOCKS + block * 8), to: load(BLOCKS + block * 8 + 4), listed: true, shown: 0, narrow: 0 }
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

/// How an item lies in a tile, and whether nothing below it shows.
#[derive(Clone, Copy)]
pub struct Lying {
    how: Lies,
    hides: bool,
}

impl Lying {
    #[inline(always)]
    pub fn shows(&self) -> bool {
        self.how != Lies::Nowhere
    }
}

/// Returns how an item that touches a tile lies in it. What coverage makes of every pixel must follow: exactly 0 if it is nowhere, exactly
/// 1 if it is even or hides what is below.
#[inline(always)]
pub fn lies(item: u32, tile: &Tile) -> Lying {
    let somewhere = Lying { how: Lies::Somewhere, hides: false };
    let Shape { kind, edges, size, more } = Shape::load(item);
    if ![RECTANGLE, GRADIENT, PIXELS_OF, BORDER].contains(&kind) {
        return somewhere;
    }
    let (left, top) = (tile.left, tile.top);
    let (right, bottom) = ((left + TILE_WIDTH).min(tile.width), (top + TILE_HEIGHT).min(tile.height));
    let inset = if kind == BORDER { f32::from_bits(more) } else { 0.0 };
    let (edges, radius) = shapes::inside(edges, size, inset);
    if !shapes::holds(edges, radius, [left, top, right, bottom].map(|edge| edge as f32)) {
        return somewhere;
    }
    if kind == BORDER {
        return Lying { how: Lies::Nowhere, hides: false };
    }
    let (columns, rows) = item::touched(item);
    if columns.start > left || rows.start > top || columns.end < right || rows.end < bottom {
        return somewhere;
    }
    if kind == PIXELS_OF {
        return Lying { how: Lies::Somewhere, hides: true };
    }
    let how = if kind == RECTANGLE { Lies::Evenly } else { Lies::Somewhere };
    Lying { how, hides: (load(item + COLOUR) & load(item + COLOUR_2)) >> 24 == 255 }
}

/// A hash of what the tile shows, as two words; and the place of the first item that shows, with [`HIDES`], which of the [`WARP`] items
/// from there on show, and which of these do not touch all columns, as bits.
#[inline(always)]
fn shown(items: Items, tile: &Tile, seed: u32) -> ((u32, u32), [u32; 3]) {
    let (mut first, mut second, mut from, mut shown, mut narrow) = (seed, !seed, items.from, 0, 0);
    let mut place = items.from;
    while place < items.to {
        let item = items.address(place);
        if tile.is_touched_by(item) {
            let lying = lies(item, tile);
            if lying.hides {
                (first, second, from, shown, narrow) = (seed, !seed, place | HIDES, 0, 0);
            }
            if lying.shows() {
                let rank = place - (from & !HIDES);
                let (columns, _) = item::touched(item);
                let is_narrow = columns.start > tile.left || columns.end < tile.left + TILE_WIDTH;
                shown |= if rank < WARP { 1 << rank } else { 0 };
                narrow |= if rank < WARP { (is_narrow as u32) << rank } else { 0 };
                let word = load(item + if lying.how == Lies::Evenly { COLOUR } else { HASH });
                first = item::hash(first, word);
                second = item::hash(second.rotate_left(7), !word);
            }
        }
        place += 1;
    }
    // Never what fresh scratch has.
    ((first | 1, second), [from, shown, narrow])
}
