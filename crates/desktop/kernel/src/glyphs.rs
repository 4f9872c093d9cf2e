//! Glyphs: how much of each pixel an outline covers. Before tiles are drawn, every glyph gets an image. Images are kept from frame to
//! frame: a glyph of a size has at most sixteen, because glyphs lie at quarters of a pixel.
//!
//! Each line of the outline leaves in the pixels that it crosses how much it changes the coverage of these and all to their right; then
//! sums along the rows are the coverage. All of these are whole numbers of [`ONE`]: no order and no device gives another sum.

use crate::font;
use crate::item::{self, COLOUR_2, GLYPH, KIND, Shape};
use crate::math::{ceil, floor, least, most};
use crate::memory::*;
use crate::shapes::{ROWS, rows};
use core::ops::Range;
use gpu_run_kernel::gpu::{acquire, load, load_all, store, swap_if};
use gpu_run_kernel::team::Team;

/// A pixel that is covered.
pub const ONE: f32 = 4096.0;

// The words of an entry in the table of images. Its key is the number of the glyph with the quarters of a pixel, and the size.
/// 0: the entry is free; [`KEPT`]: there is an image; another: the item that makes one in this frame, plus 1.
const STATE: u32 = 0;
/// Rows of the image.
const HEIGHT: u32 = 4;
const KEY: u32 = 8;
/// The image's address, or 0; its left and top, as seen from the pixel in which the glyph's origin is; words in a row.
const ADDRESS: u32 = 16;
const LEFT: u32 = 20;
const TOP: u32 = 24;
const STRIDE: u32 = 28;

const KEPT: u32 = u32::MAX;
/// How many entries are looked at for a key.
const MOST_LOOKS: u32 = 64;

/// In place of an item's image: it is still to be made. The next word says which entry it will be.
const MISSING: u32 = 1;

/// Where what is known of an item's image is.
#[inline(always)]
fn image(item: u32) -> u32 {
    IMAGES + (item - ITEMS) / ITEM_BYTES * IMAGE_BYTES
}

/// Finds the images of all glyphs in the display list, and makes those that are not there. Those for which there is no space have none.
pub fn images(team: &Team) {
    if load(S_COVERAGE_FULL) != 0 {
        forget(team);
    }
    let items = load(S_ITEMS);
    let glyph = |i: u32| {
        let item = ITEMS + i * ITEM_BYTES;
        if load(item + KIND) == GLYPH { Some(item) } else { None }
    };
    team.for_each(items, |i| {
        if let Some(item) = glyph(i) {
            find(item, i + 1);
        }
    });
    if load(S_COVERAGE_MISSING) == 0 {
        return;
    }
    let used = load(S_COVERAGE);
    let own = |i: u32| glyph(i).and_then(|item| entry_of(item, i + 1));
    let words = |i: u32| own(i).map_or(0, |entry| load(entry + STRIDE) * load(entry + HEIGHT));
    let more = team.scan(items, words, |i, before| {
        if let Some(entry) = own(i) {
            let fits = used + before + words(i) <= MAX_COVERAGE;
            store(entry + ADDRESS, if fits { COVERAGE + (used + before) * 4 } else { 0 });
        }
    });
    team.for_each(items, |i| {
        if let (Some(item), Some(entry)) = (glyph(i), own(i)) {
            make(&Outline::of(item), entry);
        }
    });
    team.for_each(items, |i| {
        if let Some(item) = glyph(i)
            && load(image(item)) == MISSING
        {
            let entry = load(image(item) + 4);
            if load(entry + STATE) == i + 1 {
                store(entry + STATE, KEPT);
            }
            take(item, entry);
        }
    });
    if team.leads() {
        store(S_COVERAGE_MISSING, 0);
        store(S_COVERAGE, (used + more).min(MAX_COVERAGE));
        if used + more > MAX_COVERAGE {
            store(S_COVERAGE_FULL, 1);
        }
    }
}

/// Forgets all images.
pub fn forget(team: &Team) {
    team.for_each(MAX_KEPT_IMAGES, |i| store(KEPT_IMAGES + i * KEPT_IMAGE_BYTES + STATE, 0));
    if team.leads() {
        store(S_COVERAGE, 0);
        store(S_COVERAGE_FULL, 0);
    }
    team.meet();
}

/// What an image follows from.
fn key(item: u32) -> [u32; 2] {
    let Shape { edges: [x, y, glyph, _], size, .. } = Shape::load(item);
    let quarter = |at: f32| ((at - floor(at) as f32) * 4.0) as u32;
    [glyph.to_bits() << 4 | quarter(x) << 2 | quarter(y), size.to_bits()]
}

/// Finds the image of an item, or an entry where it will be.
fn find(item: u32, name: u32) {
    let [first, second] = key(item);
    let hash = item::hash(item::hash(VERSION, first), second);
    let mut look = 0;
    while look < MOST_LOOKS {
        let entry = KEPT_IMAGES + (hash.wrapping_add(look) % MAX_KEPT_IMAGES) * KEPT_IMAGE_BYTES;
        let mut state = load(entry + STATE);
        if state == 0 {
            if swap_if(entry + STATE, 0, name) {
                store(entry + KEY, first);
                store(entry + KEY + 4, second);
                measure(&Outline::of(item), entry);
                state = name;
            } else {
                state = acquire(entry + STATE);
            }
        }
        // Who else makes an image in this frame may not have written its key yet.
        let same = match state {
            KEPT => load(entry + KEY) == first && load(entry + KEY + 4) == second,
            maker => key(ITEMS + (maker - 1) * ITEM_BYTES) == [first, second],
        };
        if same && state == KEPT {
            return take(item, entry);
        }
        if same {
            store(image(item), MISSING);
            store(image(item) + 4, entry);
            return store(S_COVERAGE_MISSING, 1);
        }
        look += 1;
    }
    store(image(item), 0);
    store(S_COVERAGE_FULL, 1);
}

/// The entry for which an item makes the image.
fn entry_of(item: u32, name: u32) -> Option<u32> {
    let [address, entry] = load_all(image(item));
    if address == MISSING && load(entry + STATE) == name { Some(entry) } else { None }
}

/// Notes the image of an entry as that of an item.
fn take(item: u32, entry: u32) {
    let Shape { edges: [x, y, ..], .. } = Shape::load(item);
    let at = image(item);
    store(at, load(entry + ADDRESS));
    let [left, top] =
        [floor(x).wrapping_add(load(entry + LEFT) as i32), floor(y).wrapping_add(load(entry + TOP) as i32)];
    store(at + 4, left as u32 & 0xFFFF | (top as u32) << 16);
    store(at + 8, load(entry + STRIDE));
    store(at + 12, load(entry + HEIGHT));
}

/// The coverage of some pixels of a column that a glyph's item touches; rows that it does not touch may have any.
#[inline(always)]
pub fn coverage(item: u32, x: u32, top: u32) -> [f32; ROWS as usize] {
    let [at, place, stride, height] = load_all(image(item));
    if at == 0 {
        return rows!(|row| without_image(item, x, top + row) / ONE);
    }
    let (left, above) = (place as i16 as i32, place as i32 >> 16);
    let column = (x as i32 - left).clamp(0, stride as i32 * 2 - 1) as u32;
    let (at, shift) = (at + column / 2 * 4, column % 2 * 16);
    let below = |row: u32| ((top + row) as i32 - above).clamp(0, height as i32 - 1) as u32;
    rows!(|row| (load(at + below(row) * stride * 4) >> shift & 0xFFFF) as f32 / ONE)
}

/// What the image of an item would have in a pixel.
#[inline(never)]
pub fn without_image(item: u32, x: u32, y: u32) -> f32 {
    let Shape { edges, .. } = Shape::load(item);
    let outline = Outline::of(item);
    let [left, top, right, bottom] = outline.bounds();
    let (x, y) = (x as i32 - floor(edges[0]), y as i32 - floor(edges[1]));
    let (column, row) = ((x.clamp(left, right - 1) - left) as u32, (y.clamp(top, bottom - 1) - top) as u32);
    let mut sum = 0;
    outline.each_change([left, top, right], row..row + 1, |at, _, change| sum += if at <= column { change } else { 0 });
    least(sum.abs() as f32, ONE)
}

/// Notes how large the image of an entry will be.
fn measure(outline: &Outline, entry: u32) {
    let [left, top, right, bottom] = outline.bounds();
    store(entry + LEFT, left as u32);
    store(entry + TOP, top as u32);
    store(entry + STRIDE, ((right - left) as u32).div_ceil(2));
    store(entry + HEIGHT, (bottom - top) as u32);
}

/// Makes the image of an entry, if there is space for it.
#[inline(never)]
fn make(outline: &Outline, entry: u32) {
    let ([image, left, top, stride], rows) = (load_all(entry + ADDRESS), load(entry + HEIGHT));
    if image == 0 {
        return;
    }
    let end = image + rows * stride * 4;
    let mut at = image;
    while at < end {
        store(at, 0);
        at += 4;
    }
    let columns = stride as i32 * 2;
    outline.each_change([left as i32, top as i32, left as i32 + columns], 0..rows, |column, row, change| {
        let (at, shift) = (image + (row * stride + column / 2) * 4, column % 2 * 16);
        let word = load(at);
        let sum = (word >> shift).wrapping_add(change as u32) & 0xFFFF;
        store(at, word & !(0xFFFF << shift) | sum << shift);
    });
    let mut at = image;
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

/// A glyph's outline as its image shows it: what counts of its place is only the part of a pixel.
struct Outline {
    glyph: u32,
    /// The glyph's origin.
    x: f32,
    y: f32,
    scale: f32,
    lines: Range<u32>,
}

impl Outline {
    fn of(item: u32) -> Self {
        let Shape { edges: [x, y, glyph, _], size: scale, more: first, .. } = Shape::load(item);
        let [x, y] = [x, y].map(|at| at - floor(at) as f32);
        Self { glyph: glyph.to_bits(), x, y, scale, lines: first..first + load(item + COLOUR_2) }
    }

    /// The pixels that the outline touches: left, top, right and bottom. There is at least one.
    fn bounds(&self) -> [i32; 4] {
        let [left, bottom, right, top] = font::bounds(self.glyph).map(|bound| bound as f32 * self.scale);
        let (left, top) = (floor(self.x + left), floor(self.y - top));
        [left, top, ceil(self.x + right).max(left + 1), ceil(self.y - bottom).max(top + 1)]
    }

    /// Calls `put` with a column, a row and a change, for every change that the outline makes in some rows of an image with these edges.
    /// What lies left of the image counts in its first column.
    #[inline(always)]
    fn each_change(&self, [left, top, right]: [i32; 3], rows: Range<u32>, mut put: impl FnMut(u32, u32, i32)) {
        let (columns, scale) = ((right - left) as u32, self.scale);
        let (left, top) = (self.x - left as f32, self.y - top as f32);
        let (mut at, end) = (LINES + self.lines.start * 16, LINES + self.lines.end * 16);
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
