//! Glyphs: how much of each pixel an outline covers. Before tiles are drawn, every glyph that shows in one of them gets an image. Each line of the outline leaves in the pixels that it crosses how much it changes the coverage of these and all to their right;
//! then sums along the rows are the coverage. All of these are whole numbers of [`ONE`]: no order and no device gives another sum.

use crate::item::{self, COLOUR_2, GLYPH, KIND, Shape};
use crate::math::{ceil, floor, least, most};
use crate::memory::*;
use crate::raster::each_to_draw;
use crate::shapes::{ROWS, rows};
use core::ops::Range;
use gpu_run_kernel::gpu::{WARP, lane, load, load_all, store};
use gpu_run_kernel::team::Team;

/// A pixel that is covered.
pub const ONE: f32 = 4096.0;

/// Rows of an image in a band, and how many lanes make an image at most.
const BAND: u32 = 4;
const MOST_LANES: u32 = 4;

/// In place of an image's address: there shall be one.
const WANTED: u32 = 1;

/// Makes the images of all glyphs that show in the tiles to draw. Those for which there is no space have none.
pub fn images(team: &Team) {
    each_to_draw(team, |items, _, tile| {
        let mut place = items.from + lane();
        let mut shows = items.shown >> lane() & 1 != 0;
        while place < items.to {
            let item = items.address(place);
            if shows && load(item + KIND) == GLYPH {
                store(image(item), WANTED);
            }
            place += WARP;
            shows = place < items.to && tile.is_touched_by(items.address(place));
        }
    });
    let items = load(S_ITEMS);
    let words = |i: u32| {
        let item = ITEMS + i * ITEM_BYTES;
        if load(image(item)) == WANTED { words_of(item) } else { 0 }
    };
    team.scan(items, words, |i, before| {
        let item = ITEMS + i * ITEM_BYTES;
        if load(image(item)) == WANTED {
            let fits = before + words_of(item) <= MAX_COVERAGE;
            store(image(item), if fits { COVERAGE + before * 4 } else { 0 });
        }
    });
    // Where there are threads enough, several lanes make an image, each in bands of its own; together they look at more lines.
    let lanes = if items < team.size { MOST_LANES } else { 1 };
    team.for_each(items * lanes, |i| {
        let item = ITEMS + i / lanes * ITEM_BYTES;
        if load(image(item)) != 0 {
            make(item, i % lanes, lanes);
        }
    });
}

/// Forgets the images of the last frame: all threads call it, and meet afterwards.
pub fn forget(team: &Team) {
    let mut i = team.rank;
    while i < load(S_ITEMS) {
        store(IMAGES + i * 4, 0);
        i += team.size;
    }
}

/// Where the address of an item's image is.
#[inline(always)]
pub fn image(item: u32) -> u32 {
    IMAGES + (item - ITEMS) / ITEM_BYTES * 4
}

/// The words of a row of an image, which has two pixels in each.
#[inline(always)]
pub fn stride(columns: &Range<u32>) -> u32 {
    (columns.end - columns.start).div_ceil(2)
}

/// The words of an item's image.
fn words_of(item: u32) -> u32 {
    let (columns, rows) = item::touched(item);
    stride(&columns) * (rows.end - rows.start)
}

/// The coverage of some pixels of a column that a glyph's item touches; rows that it does not touch may have any.
#[inline(always)]
pub fn coverage(item: u32, x: u32, top: u32) -> [f32; ROWS as usize] {
    let (columns, own) = item::touched(item);
    let (image, column, stride) = (load(image(item)), x - columns.start, stride(&columns));
    let below = |row: u32| (top + row).clamp(own.start, own.end - 1) - own.start;
    if image == 0 {
        return rows!(|row| without_image(item, column, below(row)) / ONE);
    }
    let at = image + column / 2 * 4;
    rows!(|row| (load(at + below(row) * stride * 4) >> (column % 2 * 16) & 0xFFFF) as f32 / ONE)
}

/// What the image of an item would have in a pixel.
#[inline(never)]
pub fn without_image(item: u32, column: u32, row: u32) -> f32 {
    let mut sum = 0;
    each_change(item, row..row + 1, |at, _, change| sum += if at <= column { change } else { 0 });
    least(sum.abs() as f32, ONE)
}

/// Makes one of `lanes` shares of an item's image.
#[inline(never)]
fn make(item: u32, share: u32, lanes: u32) {
    let (columns, rows) = item::touched(item);
    let (image, stride, rows) = (load(image(item)), stride(&columns), rows.end - rows.start);
    if lanes == 1 {
        return make_rows(item, image, stride, 0..rows);
    }
    let mut from = share * BAND;
    while from < rows {
        make_rows(item, image, stride, from..(from + BAND).min(rows));
        from += lanes * BAND;
    }
}

#[inline(never)]
fn make_rows(item: u32, image: u32, stride: u32, rows: Range<u32>) {
    let (begin, end) = (image + rows.start * stride * 4, image + rows.end * stride * 4);
    let mut at = begin;
    while at < end {
        store(at, 0);
        at += 4;
    }
    each_change(item, rows, |column, row, change| {
        let (at, shift) = (image + (row * stride + column / 2) * 4, column % 2 * 16);
        let word = load(at);
        let sum = (word >> shift).wrapping_add(change as u32) & 0xFFFF;
        store(at, word & !(0xFFFF << shift) | sum << shift);
    });
    let mut at = begin;
    while at < end {
        let row_end = at + stride * 4;
        let mut sum = 0;
        while at < row_end {
            let word = load(at);
            let half = |sum: i32| sum.unsigned_abs().min(ONE as u32);
            sum += word as i16 as i32;
            let left = half(sum);
            sum += (word >> 16) as i16 as i32;
            store(at, left | half(sum) << 16);
            at += 4;
        }
    }
}

/// Calls `put` with a column, a row and a change, for every change that a glyph's outline makes in some of its item's rows. What lies left
/// of the item's columns counts in the first one.
#[inline(always)]
fn each_change(item: u32, rows: Range<u32>, mut put: impl FnMut(u32, u32, i32)) {
    let Shape { edges, size: scale, more: first, .. } = Shape::load(item);
    let (across, down) = item::touched(item);
    let columns = across.end - across.start;
    let (left, top) = (edges[0] - across.start as f32, edges[1] - down.start as f32);
    let mut at = LINES + first * 16;
    let end = at + load(item + COLOUR_2) * 16;
    loop {
        // First every lane finds its next line in these rows: then all of them work.
        let ([x0, y0], [x1, y1]) = loop {
            if at == end {
                return;
            }
            let [x0, y0, x1, y1] = load_all(at).map(|word| f32::from_bits(word) * scale);
            let (y0, y1) = (top - y0, top - y1);
            at += 16;
            if most(y0, y1) > rows.start as f32 && least(y0, y1) < rows.end as f32 && y0 != y1 {
                break ([left + x0, y0], [left + x1, y1]);
            }
        };
        let slope = (x1 - x0) / (y1 - y0);
        let mut row = floor(most(least(y0, y1), rows.start as f32)) as u32;
        let last = ceil(least(most(y0, y1), rows.end as f32));
        while (row as i32) < last {
            // The part of the line in this row of pixels.
            let (above, below) = (y0 - row as f32, y1 - row as f32);
            let (from, to) = (above.clamp(0.0, 1.0), below.clamp(0.0, 1.0));
            let (xa, xb) = (x0 + (from - above) * slope, x0 + (to - above) * slope);
            if parts(from) != parts(to) {
                cross([xa, from], [xb, to], columns, |column, change| put(column, row, change));
            }
            row += 1;
        }
    }
}

/// A part of a pixel's height as a whole number.
#[inline(always)]
fn parts(height: f32) -> i32 {
    (height * ONE + 0.5) as i32
}

/// The changes of a line within one row of pixels.
#[inline(always)]
fn cross([xa, ya]: [f32; 2], [xb, yb]: [f32; 2], columns: u32, mut put: impl FnMut(u32, i32)) {
    // From left to right, whatever its direction.
    let (sign, from, to) = if xa <= xb { (1, [xa, ya], [xb, yb]) } else { (-1, [xb, yb], [xa, ya]) };
    let rise = (to[1] - from[1]) / (to[0] - from[0]);
    let (mut x, mut height) = (from[0], parts(from[1]));
    // All that lies to the left is one step.
    let mut column = if x < 0.0 { -1 } else { floor(least(x, columns as f32)) };
    while column < columns as i32 {
        let right = (column + 1) as f32;
        let ends = right >= to[0];
        let next = if ends { to[0] } else { right };
        let reached = parts(if ends { to[1] } else { (from[1] + (next - from[0]) * rise).clamp(0.0, 1.0) });
        let change = (reached - height) * sign;
        let middle = if column < 0 { 0.0 } else { (x + next) / 2.0 - column as f32 };
        let after = floor(change as f32 * middle + 0.5);
        put(column.max(0) as u32, change - after);
        if column + 1 < columns as i32 {
            put((column + 1) as u32, after);
        }
        if ends {
            return;
        }
        (x, height, column) = (next, reached, column + 1);
    }
}
