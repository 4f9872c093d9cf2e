//! Items: what the display list consists of. A [`Brush`] makes them, or only counts them.

use crate::event::effects;
use crate::font;
use crate::math::{ceil, floor};
use crate::memory::*;
use crate::text;
use core::ops::Range;
use gpu_run_kernel::gpu::{load, load_all, store};

// Kinds of items.
/// A rounded rectangle of one colour: its edges in [`Shape::edges`], the radius in [`Shape::size`].
pub const RECTANGLE: u32 = 1;
/// The border inside a rounded rectangle: [`Shape::more`] is its width.
pub const BORDER: u32 = 2;
/// The shadow of a rounded rectangle: [`Shape::more`] is how far it fades, [`COLOUR_2`] is 1 through twice that.
pub const SHADOW: u32 = 3;
/// A line with round ends: from and to in [`Shape::edges`], half its width in [`Shape::size`].
pub const LINE: u32 = 4;
/// A glyph: its origin in [`Shape::edges`], in quarters of a pixel, and its number there, pixels for a unit in [`Shape::size`], its first
/// line in [`Shape::more`] and their number in [`COLOUR_2`].
pub const GLYPH: u32 = 5;
/// Pixels of a canvas: edges and radius as of a rectangle, the first pixel in [`Shape::more`], their size in [`COLOUR`].
pub const PIXELS_OF: u32 = 6;
/// A rounded rectangle with two colours, at the top and at the bottom.
pub const GRADIENT: u32 = 7;

// Offsets of an item's words.
/// The pixels that it can touch: left and top, right and bottom, 16 bits each.
pub const FROM: u32 = 0;
pub const TO: u32 = 4;
pub const KIND: u32 = 8;
pub const COLOUR: u32 = 36;
pub const COLOUR_2: u32 = 40;
/// A hash of all of these.
pub const HASH: u32 = 44;
/// What pixels need again and again: the brightness of [`COLOUR`]'s channels, and its opacity, 0 to 1. Of a gradient, the first is how
/// much of it a row of pixels is.
pub const LIGHT: u32 = 48;

/// What an item's coverage follows from.
pub struct Shape {
    pub kind: u32,
    pub edges: Edges,
    pub size: f32,
    pub more: u32,
}

impl Shape {
    #[inline(always)]
    pub fn load(at: u32) -> Self {
        let [_, _, kind, a, b, c, d, size, more, _] = load_all(at);
        Self { kind, edges: [a, b, c, d].map(f32::from_bits), size: f32::from_bits(size), more }
    }
}

/// The brightness of an item's channels; see [`LIGHT`].
#[inline(always)]
pub fn light(item: u32) -> [f32; 3] {
    let [red, green, blue] = load_all(item + LIGHT).map(f32::from_bits);
    [red, green, blue]
}

/// The opacity of an item's [`COLOUR`].
#[inline(always)]
pub fn opacity(item: u32) -> f32 {
    f32::from_bits(load(item + LIGHT + 12))
}

/// Whether items of a kind have one colour.
#[inline(always)]
pub fn is_even(kind: u32) -> bool {
    kind != PIXELS_OF && kind != GRADIENT
}

/// Brightness of each value of a colour's channel.
static LINEAR: Words = Words(*include_bytes!("linear.bin"));

/// Aligned, so that a word is loaded at once and not byte by byte.
#[repr(align(4))]
struct Words([u8; 1024]);

#[inline(always)]
pub fn brightness(value: u32) -> f32 {
    let at = value as usize * 4;
    let bytes = &LINEAR.0;
    f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The brightness of a colour's channels.
#[inline(always)]
pub fn solid(colour: u32) -> [f32; 3] {
    [0, 8, 16].map(|shift| brightness(colour >> shift & 255))
}

/// The columns and rows of pixels that an item can touch.
#[inline(always)]
pub fn touched(item: u32) -> (Range<u32>, Range<u32>) {
    let [from, to] = load_all(item + FROM);
    (from & 0xFFFF..to & 0xFFFF, from >> 16..to >> 16)
}

/// Whether these, or those of a chunk of items, meet a rectangle of pixels.
#[inline(always)]
pub fn meets(item: u32, left: u32, top: u32, right: u32, bottom: u32) -> bool {
    let (columns, rows) = touched(item);
    columns.start < right && rows.start < bottom && columns.end > left && rows.end > top
}

#[inline(always)]
pub fn hash(hash: u32, word: u32) -> u32 {
    let mixed = (hash ^ word).wrapping_mul(0x9E37_79B1);
    mixed ^ mixed >> 15
}

/// Left, top, right, bottom in pixels.
pub type Edges = [f32; 4];

pub fn grown(edges: Edges, by: f32) -> Edges {
    [edges[0] - by, edges[1] - by, edges[2] + by, edges[3] + by]
}

/// Makes the items of one widget.
pub struct Brush {
    /// Where the next item goes; 0: items are only counted.
    pub at: u32,
    pub count: u32,
    /// What may be drawn on.
    pub clip: [i32; 4],
    /// Pixels for a unit.
    pub scale: f32,
}

impl Brush {
    /// Limits drawing to `edges`, and returns the limits before.
    pub fn limit(&mut self, edges: Edges) -> [i32; 4] {
        let before = self.clip;
        let [left, top, right, bottom] = edges;
        self.clip = [
            before[0].max(floor(left)),
            before[1].max(floor(top)),
            before[2].min(ceil(right)),
            before[3].min(ceil(bottom)),
        ];
        before
    }

    #[inline(never)]
    fn put(&mut self, kind: u32, touches: Edges, words: [u32; 8]) {
        let left = floor(touches[0]).max(self.clip[0]);
        let top = floor(touches[1]).max(self.clip[1]);
        let right = ceil(touches[2]).min(self.clip[2]);
        let bottom = ceil(touches[3]).min(self.clip[3]);
        if left >= right || top >= bottom {
            return;
        }
        self.count += 1;
        if self.at == 0 {
            return;
        }
        let head = [left as u32 | (top as u32) << 16, right as u32 | (bottom as u32) << 16, kind];
        let mut sum = 0x5EED;
        let mut word = 0;
        while word < 11 {
            let value = if word < 3 { head[word as usize] } else { words[word as usize - 3] };
            store(self.at + word * 4, value);
            sum = hash(sum, value);
            word += 1;
        }
        store(self.at + HASH, sum);
        let [.., colour, _] = words;
        let mut light = solid(colour);
        if kind == GRADIENT {
            let [_, top, _, bottom, ..] = words.map(f32::from_bits);
            light[0] = 1.0 / (bottom - top);
        }
        let words = [light[0], light[1], light[2], (colour >> 24) as f32 / 255.0];
        words.iter().enumerate().for_each(|(i, word)| store(self.at + LIGHT + i as u32 * 4, word.to_bits()));
        self.at += ITEM_BYTES;
    }

    fn shape(&mut self, kind: u32, touches: Edges, edges: Edges, size: f32, more: f32, colours: [u32; 2]) {
        let [a, b, c, d] = edges.map(f32::to_bits);
        self.put(kind, touches, [a, b, c, d, size.to_bits(), more.to_bits(), colours[0], colours[1]]);
    }

    pub fn rectangle(&mut self, edges: Edges, radius: f32, colour: u32) {
        self.shape(RECTANGLE, edges, edges, radius, 0.0, [colour, colour]);
    }

    pub fn gradient(&mut self, edges: Edges, radius: f32, top: u32, bottom: u32) {
        let kind = if top == bottom { RECTANGLE } else { GRADIENT };
        self.shape(kind, edges, edges, radius, 0.0, [top, bottom]);
    }

    pub fn border(&mut self, edges: Edges, radius: f32, width: f32, colour: u32) {
        self.shape(BORDER, edges, edges, radius, width, [colour, colour]);
    }

    pub fn shadow(&mut self, edges: Edges, radius: f32, fade: f32, colour: u32) {
        if load(D_EFFECTS) >= effects::NO_SHADOWS {
            return;
        }
        let inverse = (0.5 / fade).to_bits();
        self.shape(SHADOW, grown(edges, fade), edges, radius, fade, [colour, inverse]);
    }

    pub fn circle(&mut self, x: f32, y: f32, radius: f32, colour: u32) {
        self.rectangle([x - radius, y - radius, x + radius, y + radius], radius, colour);
    }

    pub fn line(&mut self, from: [f32; 2], to: [f32; 2], width: f32, colour: u32) {
        let touches = [from[0].min(to[0]), from[1].min(to[1]), from[0].max(to[0]), from[1].max(to[1])];
        let edges = [from[0], from[1], to[0], to[1]];
        self.shape(LINE, grown(touches, width / 2.0 + 0.5), edges, width / 2.0, 0.0, [colour, colour]);
    }

    /// A widget's text from `x` on, with its baseline at `y`, `size` pixels large.
    pub fn text(&mut self, widget: u32, x: f32, y: f32, size: f32, colour: u32) {
        self.part_of_text(widget, 0, u32::MAX, x, y, size, colour);
    }

    /// The characters of a widget's text from `from` to the one before `to`.
    #[allow(clippy::too_many_arguments)]
    pub fn part_of_text(&mut self, widget: u32, from: u32, to: u32, x: f32, y: f32, size: f32, colour: u32) {
        let text = text::Reader::of(widget);
        let (scale, mut advance, mut i) = (size / font::EM, 0, from);
        while i < to.min(text.length) {
            let (code, at) = (text.at(i), x + advance as f32 * scale);
            if at > self.clip[2] as f32 + size {
                return;
            }
            self.glyph(code, at, y, scale, colour);
            advance += font::advance(code);
            i += 1;
        }
    }

    /// One character. `scale` is pixels for a unit of the font. It goes to the nearest quarter of a pixel, so that its image is soon one
    /// that there is already.
    pub fn glyph(&mut self, code: u32, x: f32, y: f32, scale: f32, colour: u32) {
        let glyph = font::glyph(code);
        let (line, lines) = font::outline(glyph);
        if lines != 0 && code >= 32 {
            let [x, y] = [x, y].map(|at| floor(at * 4.0 + 0.5) as f32 / 4.0);
            let [left, bottom, right, top] = font::bounds(glyph).map(|bound| bound as f32 * scale);
            let touches = [x + left, y - top, x + right, y - bottom];
            let [a, b] = [x.to_bits(), y.to_bits()];
            self.put(GLYPH, touches, [a, b, glyph, 0, scale.to_bits(), line, colour, lines]);
        }
    }

    /// As much of a widget's text as there is room for; three dots stand for the rest.
    pub fn short_text(&mut self, widget: u32, x: f32, y: f32, size: f32, room: f32, colour: u32) {
        const DOTS: u32 = 0x2026;
        let scale = size / font::EM;
        if text::width_at(widget, size) <= room {
            return self.text(widget, x, y, size, colour);
        }
        let most = (room / scale) as i32 - font::advance(DOTS) as i32;
        let (mut advance, mut shown, mut ends) = (0, 0, false);
        text::each(widget, |_, code| {
            advance += font::advance(code) as i32;
            ends |= advance > most;
            shown += !ends as u32;
        });
        self.part_of_text(widget, 0, shown, x, y, size, colour);
        let mut width = 0;
        text::each(widget, |i, code| width += if i < shown { font::advance(code) } else { 0 });
        self.glyph(DOTS, x + width as f32 * scale, y, scale, colour);
    }

    /// Pixels of a canvas or image, from the one numbered `first` on. `changed` is another number whenever one of them has changed.
    pub fn pixels(&mut self, edges: Edges, radius: f32, first: u32, size: u32, changed: u32) {
        let [a, b, c, d] = edges.map(f32::to_bits);
        self.put(PIXELS_OF, edges, [a, b, c, d, radius.to_bits(), first, size, changed]);
    }
}
