//! Canvases and images: pixels that their owner sets. They lie one behind the other in `PIXEL_ARENA`; a list in the order of their places
//! (`W_LINK`) says where there is room for more.
//!
//! The leader only lists what is to be written, since a tick can write many pixels; then all threads write.

use crate::dispatch::{pointer, tell, tell_with};
use crate::event::{KEYED, PIXELS_RUN, POINTED, WHEELED, kinds};
use crate::item::{Brush, COLOUR, Edges, Shape, brightness};
use crate::math::{ceil, floor, round};
use crate::memory::*;
use crate::{paint, theme, tree};
use gpu_run_kernel::event::Event;
use gpu_run_kernel::gpu::{load, store};
use gpu_run_kernel::team::Team;

/// What the pointer did (flags of [`POINTED`]).
const MOVED: u16 = 0;
const PRESSED: u16 = 1;
const RELEASED: u16 = 2;

const BLACK: u32 = 0;
/// How many pixels, in each direction, are looked at for one that shows many.
const TAPS: i32 = 8;

fn has_pixels(widget: u32) -> bool {
    matches!(get(W_KIND, widget), kinds::CANVAS | kinds::IMAGE)
}

fn columns(size: u32) -> u32 {
    size & 0xFFFF
}
fn rows(size: u32) -> u32 {
    size >> 16
}
fn area(size: u32) -> u32 {
    columns(size) * rows(size)
}
/// The words that so many pixels take.
fn words(size: u32) -> u32 {
    BANDS + area(size)
}

// --- Room for pixels -------------------------------------------------------------------------------------------------------

/// Gives a widget so many pixels, all black. Returns false, and changes nothing, if that is not allowed or there is no room.
pub fn resize(widget: u32, size: u32) -> bool {
    if !has_pixels(widget) || size != 0 && area(size) == 0 || area(size) > PIXEL_ROOM - BANDS {
        return false;
    }
    let (old, place) = (get(W_PIXEL_SIZE, widget), get(W_PIXELS, widget));
    free(widget);
    if size != 0 && !take(widget, size) {
        if old != 0 {
            link(widget, old, place, before(place));
        }
        return false;
    }
    if size != 0 {
        list(get(W_PIXELS, widget) + BANDS, area(size), [BLACK; 4]);
        touched(widget, 0, rows(size) - 1);
    }
    setf(W_CONTENT_WIDTH, widget, columns(size) as f32);
    setf(W_CONTENT_HEIGHT, widget, rows(size) as f32);
    tree::touch(widget);
    true
}

/// Gives a widget's pixels back.
pub fn free(widget: u32) {
    let size = get(W_PIXEL_SIZE, widget);
    if !has_pixels(widget) || size == 0 {
        return;
    }
    // Pixels that were listed before must not be written to what has this place next.
    write_all();
    let (previous, next) = (before(get(W_PIXELS, widget)), get(W_LINK, widget));
    if previous == NONE {
        store(D_PIXELS, next)
    } else {
        set(W_LINK, previous, next)
    }
    store(D_PIXEL_COUNT, load(D_PIXEL_COUNT) - words(size));
    set(W_PIXEL_SIZE, widget, 0);
}

/// The last widget whose pixels lie before a place.
fn before(place: u32) -> u32 {
    let (mut previous, mut at) = (NONE, load(D_PIXELS));
    while at != NONE && get(W_PIXELS, at) < place {
        (previous, at) = (at, get(W_LINK, at));
    }
    previous
}

/// Takes the first gap that is large enough.
fn take(widget: u32, size: u32) -> bool {
    let (mut previous, mut at, mut from) = (NONE, load(D_PIXELS), 0);
    while at != NONE && get(W_PIXELS, at) - from < words(size) {
        from = get(W_PIXELS, at) + words(get(W_PIXEL_SIZE, at));
        (previous, at) = (at, get(W_LINK, at));
    }
    if at == NONE && PIXEL_ROOM - from < words(size) {
        return false;
    }
    link(widget, size, from, previous);
    true
}

fn link(widget: u32, size: u32, place: u32, previous: u32) {
    let word = if previous == NONE { D_PIXELS } else { W_LINK + previous * 4 };
    set(W_LINK, widget, load(word));
    store(word, widget);
    set(W_PIXEL_SIZE, widget, size);
    set(W_PIXELS, widget, place);
    store(D_PIXEL_COUNT, load(D_PIXEL_COUNT) + words(size));
}

// --- Writing pixels --------------------------------------------------------------------------------------------------------

/// Lists the pixels of a [`PIXELS`](crate::event::PIXELS) event. Returns false if they are not the widget's.
pub fn write(it: &Event) -> bool {
    let (widget, runs) = (it.key, it.flags & PIXELS_RUN != 0);
    if !tree::exists(widget) || !has_pixels(widget) {
        return false;
    }
    let size = get(W_PIXEL_SIZE, widget);
    let total = area(size);
    let count = if runs { it.id } else { (it.flags & 0xFF) as u32 };
    if count == 0 || !runs && count > 4 || it.a >= total || count > total - it.a {
        return false;
    }
    let colours =
        if runs { [it.b; 4] } else { [it.b, it.b >> 24 | it.id << 8, it.id >> 16 | it.wait << 16, it.wait >> 8] };
    list(get(W_PIXELS, widget) + BANDS + it.a, count, colours);
    touched(widget, it.a / columns(size), (it.a + count - 1) / columns(size));
    true
}

fn list(first: u32, count: u32, colours: [u32; 4]) {
    let at = WRITES + load(S_WRITES) * WRITE_BYTES;
    store(at, first);
    store(at + 4, count);
    (0..4).for_each(|i| store(at + 8 + i * 4, colours[i as usize] & 0xFF_FFFF));
    store(S_WRITES, load(S_WRITES) + 1);
}

/// Notes that rows change. The bands beside theirs count as changed, too: a pixel of the frame can show rows of two bands.
fn touched(widget: u32, from: u32, to: u32) {
    let rows = rows(get(W_PIXEL_SIZE, widget));
    let first = (from * BANDS / rows).saturating_sub(1);
    let last = (((to + 1) * BANDS - 1) / rows + 1).min(BANDS - 1);
    let change = load(D_PIXELS_CHANGED).wrapping_add(1);
    store(D_PIXELS_CHANGED, change);
    (first..=last).for_each(|band| store(PIXEL_ARENA + (get(W_PIXELS, widget) + band) * 4, change));
    store(D_CHANGED, 1);
}

/// Writes what is listed, by one lane.
fn write_all() {
    (0..load(S_WRITES)).for_each(|i| write_listed(WRITES + i * WRITE_BYTES, 0, 1));
    store(S_WRITES, 0);
}

/// Writes those pixels of a list that belong to the thread `rank` of `size`.
#[inline(always)]
fn write_listed(at: u32, rank: u32, size: u32) {
    let (first, count) = (load(at), load(at + 4));
    let phase = first % size;
    let mut i = if rank >= phase { rank - phase } else { rank + size - phase };
    while i < count {
        store(PIXEL_ARENA + (first + i) * 4, load(at + 8 + if i < 4 { i * 4 } else { 0 }));
        i += size;
    }
}

/// Writes the listed pixels. Every thread has its own pixels, and goes through the whole list: so of two colours for a pixel the later
/// one counts, for any number of threads.
pub fn apply(team: &Team) {
    let writes = load(S_WRITES);
    if writes == 0 {
        return;
    }
    let mut at = WRITES;
    while at < WRITES + writes * WRITE_BYTES {
        write_listed(at, team.rank, team.size);
        at += WRITE_BYTES;
    }
    team.meet();
}

// --- Drawing ---------------------------------------------------------------------------------------------------------------

/// Where a widget shows its pixels: as large as they can be within it, with their own ratio of sides.
fn picture(widget: u32, scale: f32) -> Edges {
    let [left, top, right, bottom] = paint::edges(widget, scale);
    let size = get(W_PIXEL_SIZE, widget);
    let (w, h) = (columns(size) as f32, rows(size) as f32);
    let factor = ((right - left) / w).min((bottom - top) / h);
    let (width, height) = (round(w * factor).max(1) as f32, round(h * factor).max(1) as f32);
    let (x, y) = (left + floor((right - left - width) / 2.0) as f32, top + floor((bottom - top - height) / 2.0) as f32);
    [x, y, x + width, y + height]
}

pub fn paint(widget: u32, brush: &mut Brush) {
    let size = get(W_PIXEL_SIZE, widget);
    if size == 0 {
        return;
    }
    let edges = picture(widget, brush.scale);
    let least = (edges[2] - edges[0]).min(edges[3] - edges[1]);
    let radius = (theme::CONTROL_RADIUS * brush.scale).min(least / 8.0);
    let first = get(W_PIXELS, widget);
    let changed = |band: u32| load(PIXEL_ARENA + (first + band) * 4);
    let [left, top, right, bottom] = edges;
    if bottom - top < 2.0 * BANDS as f32 {
        let latest = (0..BANDS).fold(0, |latest, band| changed(band).max(latest));
        brush.pixels(edges, radius, first + BANDS, size, latest);
    } else {
        // A band a piece, so that only the tiles of those that changed are drawn.
        let border = |band: u32| top + round((bottom - top) * band as f32 / BANDS as f32) as f32;
        (0..BANDS).for_each(|band| {
            let before = brush.limit([left, border(band), right, border(band + 1)]);
            brush.pixels(edges, radius, first + BANDS, size, changed(band));
            brush.clip = before;
        });
    }
    paint::ring(widget, edges, radius, brush);
}

/// The brightness of each channel of an item at a pixel of the frame: the mean of the pixels of the canvas that this one shows.
#[inline(never)]
pub fn light(item: u32, x: u32, y: u32) -> [f32; 3] {
    let Shape { edges, more: first, .. } = Shape::load(item);
    let size = load(item + COLOUR);
    let (x, y) = (x as f32 + 0.5, y as f32 + 0.5);
    let span = |at: f32, from: f32, to: f32, count: u32| {
        let per_pixel = count as f32 / (to - from);
        // A thousandth less on each side: where the factor is whole, rounding brings in no neighbour. (`clamp` could panic, and the
        // text of its message needs more stack than there is.)
        let start = ((at - 0.5 - from) * per_pixel + 0.001).min(count as f32 - 0.002).max(0.0);
        (start, (start + per_pixel - 0.002).min(count as f32).max(start + 0.001))
    };
    let (left, right) = span(x, edges[0], edges[2], columns(size));
    let (top, bottom) = span(y, edges[1], edges[3], rows(size));
    let (from_x, to_x, from_y, to_y) = (floor(left), ceil(right), floor(top), ceil(bottom));
    let step = |from: i32, to: i32| ((to - from + TAPS - 1) / TAPS).max(1);
    let (step_x, step_y) = (step(from_x, to_x), step(from_y, to_y));
    let (mut light, mut sum) = ([0.0f32; 3], 0.0f32);
    let mut row = from_y;
    while row < to_y {
        let high = (bottom.min((row + step_y) as f32) - top.max(row as f32)).max(0.0);
        let mut column = from_x;
        while column < to_x {
            let wide = (right.min((column + step_x) as f32) - left.max(column as f32)).max(0.0);
            let pixel = load(PIXEL_ARENA + (first + row as u32 * columns(size) + column as u32) * 4);
            let weight = wide * high;
            light[0] += brightness(pixel & 255) * weight;
            light[1] += brightness(pixel >> 8 & 255) * weight;
            light[2] += brightness(pixel >> 16 & 255) * weight;
            sum += weight;
            column += step_x;
        }
        row += step_y;
    }
    light.map(|channel| channel / sum)
}

// --- Input -----------------------------------------------------------------------------------------------------------------

/// The pixel under the pointer, and whether the pointer is on the picture at all.
fn under_pointer(widget: u32) -> (u32, bool) {
    let size = get(W_PIXEL_SIZE, widget);
    if size == 0 {
        return (0, false);
    }
    let scale = load(D_SCALE) as f32 / 256.0;
    let [left, top, right, bottom] = picture(widget, scale);
    let (x, y) = pointer();
    let at = |at: f32, from: f32, to: f32, count: u32| {
        floor((at * scale - from) * count as f32 / (to - from)).clamp(0, count as i32 - 1) as u32
    };
    let inside = x * scale >= left && x * scale < right && y * scale >= top && y * scale < bottom;
    (at(x, left, right, columns(size)) | at(y, top, bottom, rows(size)) << 16, inside)
}

pub fn press(canvas: u32) {
    match under_pointer(canvas) {
        (pixel, true) => tell_with(POINTED, PRESSED, canvas, pixel),
        _ => store(D_PRESS, NONE),
    }
}

pub fn drag(canvas: u32) {
    tell_with(POINTED, MOVED, canvas, under_pointer(canvas).0);
}

pub fn release(canvas: u32) {
    tell_with(POINTED, RELEASED, canvas, under_pointer(canvas).0);
}

/// Tells of a key, or of a character with [`KEYED_CHARACTER`](crate::event::KEYED_CHARACTER) added.
pub fn key(canvas: u32, key: u32) {
    tell(KEYED, canvas, key);
}

/// Tells how far down the wheel turned.
pub fn wheel(canvas: u32, down: f32) {
    tell(WHEELED, canvas, down.to_bits());
}
