//! Geometry: the display list, in the order of drawing, and for each block of the frame the list of items that touch it.

use crate::item::{self, Brush, HASH, TO};
use crate::memory::*;
use crate::overlay;
use crate::paint::{paint, parts};
use gpu_run_kernel::gpu::{WARP, ballot, lane, load, shuffle_xor, store};
use gpu_run_kernel::team::Team;

pub fn geometry(team: &Team) {
    list_parts(team);
    let listed = load(S_PARTS);
    team.for_each(listed, |i| store(part(i) + 8, painted(i, 0)));
    let total = team.scan(listed, |i| load(part(i) + 8), |i, before| store(part(i) + 12, before));
    // Parts whose items would not fit are left out.
    team.for_each(listed, |i| {
        let before = load(part(i) + 12);
        if before + load(part(i) + 8) <= MAX_ITEMS {
            painted(i, ITEMS + before * ITEM_BYTES);
        } else if before < MAX_ITEMS {
            (before..MAX_ITEMS).for_each(|item| store(ITEMS + item * ITEM_BYTES + TO, 0));
        }
    });
    let items = total.min(MAX_ITEMS);
    team.for_each(items.div_ceil(CHUNK), |chunk| bound(chunk, items));
    let (columns, rows) = blocks();
    // First every block has as much room as any other.
    let room = MAX_BY_BLOCK / (columns * rows);
    let seed = item::hash(item::hash(VERSION, load(D_WIDTH)), load(D_HEIGHT));
    each_block(team, columns * rows, |block| {
        let hash = list_block(block, columns, items, block * room, room);
        note(block, hash.wrapping_add(seed));
    });
    let count = |block: u32| load(BLOCKS + block * 8 + 4) - load(BLOCKS + block * 8);
    let most = team.reduce_over(columns * rows, count, u32::max);
    let listed = team.scan(columns * rows, count, |block, before| set(T_ITEM, block, before));
    if team.leads() {
        store(S_ITEMS, items);
        store(S_BY_BLOCK, listed);
    }
    team.meet();
    if listed > MAX_BY_BLOCK {
        return forget(team);
    }
    if most > room {
        each_block(team, columns * rows, |block| {
            list_block(block, columns, items, get(T_ITEM, block), MAX_BY_BLOCK);
        });
    }
}

/// Lists the items that touch a block, from a place on; those that do not fit are only counted. Returns a hash of all of them and their
/// order, a sum so that every lane can have a part in it: its first word in even lanes, its second in odd ones.
#[inline(always)]
fn list_block(block: u32, columns: u32, items: u32, from: u32, room: u32) -> u32 {
    let (mut count, mut sums) = (0, [0u32; 2]);
    each_touching(block, columns, items, |item, mask| {
        let rank = count + (mask & ((1 << lane()) - 1)).count_ones();
        if mask >> lane() & 1 != 0 {
            if rank < room {
                store(BY_BLOCK + (from + rank) * 4, ITEMS + item * ITEM_BYTES);
            }
            let word = load(ITEMS + item * ITEM_BYTES + HASH);
            sums[0] = sums[0].wrapping_add(item::hash(item::hash(VERSION, rank), word));
            sums[1] = sums[1].wrapping_add(item::hash(item::hash(!VERSION, word), rank));
        }
        count += mask.count_ones();
    });
    if lane() == 0 {
        store(BLOCKS + block * 8, from);
        store(BLOCKS + block * 8 + 4, from + count);
    }
    sum_of_lanes(sums)
}

/// Returns the sum of the first words of all lanes in even lanes, that of the second words in odd ones.
#[inline(always)]
fn sum_of_lanes([first, second]: [u32; 2]) -> u32 {
    let (own, other) = if lane().is_multiple_of(2) { (first, second) } else { (second, first) };
    let mut sum = own.wrapping_add(shuffle_xor(other, 1));
    let mut mask = 2;
    while mask < WARP {
        sum = sum.wrapping_add(shuffle_xor(sum, mask));
        mask *= 2;
    }
    sum
}

/// Makes every block count as changed in the next frame.
pub fn forget(team: &Team) {
    team.for_each(MAX_BLOCKS * 2, |word| store(BLOCK_HASHES + word * 4, 0));
}

/// Notes whether a block has other items than in the frame before, by their hash: the first two lanes have its words.
#[inline(always)]
fn note(block: u32, hash: u32) {
    let at = BLOCK_HASHES + block * 8 + lane() % 2 * 4;
    // Never what fresh scratch has.
    let hash = if lane() == 0 { hash | 1 } else { hash };
    let changed = ballot((lane() < 2 && load(at) != hash) as u32);
    if lane() < 2 {
        store(at, hash);
        store(BLOCK_CHANGED + block * 4, (changed != 0) as u32);
    }
}

/// Finds the pixels that a chunk of items can touch.
fn bound(chunk: u32, items: u32) {
    let (mut left, mut top, mut right, mut bottom) = (u32::MAX, u32::MAX, 0, 0);
    let mut item = chunk * CHUNK;
    while item < (chunk * CHUNK + CHUNK).min(items) {
        let (columns, rows) = item::touched(ITEMS + item * ITEM_BYTES);
        (left, top) = (left.min(columns.start), top.min(rows.start));
        (right, bottom) = (right.max(columns.end), bottom.max(rows.end));
        item += 1;
    }
    store(CHUNKS + chunk * 8, left | top << 16);
    store(CHUNKS + chunk * 8 + 4, right | bottom << 16);
}

fn part(i: u32) -> u32 {
    PARTS + i * PART_BYTES
}

/// In place of a widget: the part is an overlay's.
const OVERLAY: u32 = NONE - 1;

/// Lists the parts of all widgets that could show in the order of drawing, then the overlays. Widgets whose parts would not fit are left out.
fn list_parts(team: &Team) {
    const MOST: u32 = MAX_PARTS - overlay::LAYERS;
    let widgets = load(S_LISTED);
    team.for_each(widgets, |i| set(T_ITEM, i, parts(get(T_BY_ORDER, i))));
    let total = team.scan(
        widgets,
        |i| get(T_ITEM, i),
        |i, before| {
            let count = get(T_ITEM, i);
            (before..(before + count).min(MOST)).for_each(|at| {
                store(part(at), if before + count <= MOST { get(T_BY_ORDER, i) } else { NONE });
                store(part(at) + 4, at - before);
            });
        },
    );
    if team.leads() {
        let parts = total.min(MOST);
        (0..overlay::LAYERS).for_each(|layer| {
            store(part(parts + layer), OVERLAY);
            store(part(parts + layer) + 4, layer);
        });
        store(S_PARTS, parts + overlay::LAYERS);
    }
    team.meet();
}

/// Makes a part's items at an address, or counts them; returns how many there are.
fn painted(i: u32, at: u32) -> u32 {
    let (widget, part) = (load(part(i)), load(part(i) + 4));
    if widget == NONE {
        return 0;
    }
    let mut brush = Brush { at, count: 0, clip: [0; 4], scale: load(D_SCALE) as f32 / 256.0 };
    if widget == OVERLAY {
        brush.clip = [0, 0, load(D_WIDTH) as i32, load(D_HEIGHT) as i32];
        overlay::paint(part, &mut brush);
    } else {
        let (from, to) = (get(W_CLIP_FROM, widget), get(W_CLIP_TO, widget));
        brush.clip = [from & 0xFFFF, from >> 16, to & 0xFFFF, to >> 16].map(|edge| edge as i32);
        paint(widget, part, &mut brush);
    }
    brush.count
}

/// Columns and rows of blocks in the frame.
pub fn blocks() -> (u32, u32) {
    (load(D_WIDTH).div_ceil(BLOCK), load(D_HEIGHT).div_ceil(BLOCK))
}

/// Calls `body` for each block with all lanes of one warp.
#[inline(always)]
fn each_block(team: &Team, blocks: u32, mut body: impl FnMut(u32)) {
    let mut block = team.rank / WARP;
    while block < blocks {
        body(block);
        block += team.size / WARP;
    }
    team.meet();
}

/// Calls `body` with each lane's item, a chunk at a time, and with which of them touch the block. Chunks that do not touch it are
/// passed over, 32 at a time.
#[inline(always)]
fn each_touching(block: u32, columns: u32, items: u32, mut body: impl FnMut(u32, u32)) {
    let (left, top) = (block % columns * BLOCK, block / columns * BLOCK);
    let (right, bottom) = (left + BLOCK, top + BLOCK);
    let chunks = items.div_ceil(CHUNK);
    let mut first = 0;
    while first < chunks {
        let chunk = first + lane();
        let is_near = chunk < chunks && item::meets(CHUNKS + chunk * 8, left, top, right, bottom);
        let mut near = ballot(is_near as u32);
        while near != 0 {
            let item = (first + near.trailing_zeros()) * CHUNK + lane();
            let mask =
                ballot((item < items && item::meets(ITEMS + item * ITEM_BYTES, left, top, right, bottom)) as u32);
            if mask != 0 {
                body(item, mask);
            }
            near &= near - 1;
        }
        first += WARP;
    }
}
