//! The font: advances, and outlines as straight lines. `tests/font.rs` prepares it.
//!
//! `font.bin` has words of 16 bits: ascender, descender, number of glyphs, 0; then for each glyph, by code: code, advance, first point,
//! number of points, and its bounds; then the points. Units are thousandths of the text's size, and y goes up.

use crate::memory::{ADVANCES, CODES, LINES, MAX_LINES};
use gpu_run_kernel::gpu::{load, store};
use gpu_run_kernel::team::Team;

static FONT: &[u8] = include_bytes!("../font/font.bin");

const HEADER: u32 = 8;
const GLYPH: u32 = 16;
/// Units of an em.
pub const EM: f32 = 1000.0;
/// Marks the end of a contour in place of a point.
const END: i32 = i16::MIN as i32;

#[inline(always)]
fn half(at: u32) -> u32 {
    FONT[at as usize] as u32 | (FONT[at as usize + 1] as u32) << 8
}
#[inline(always)]
fn signed(at: u32) -> i32 {
    half(at) as i16 as i32
}
fn glyphs() -> u32 {
    half(4)
}
fn points() -> u32 {
    HEADER + glyphs() * GLYPH
}

/// Where the baseline lies below the top of a line of text of size 1 that is 1.4 high.
pub fn baseline() -> f32 {
    let (up, down) = (signed(0) as f32 / EM, -signed(2) as f32 / EM);
    (1.4 - up - down) / 2.0 + up
}

/// The glyph of a character; of one that the font does not have, the question mark's.
pub fn glyph(code: u32) -> u32 {
    if code.wrapping_sub(32) < 95 {
        return code - 32;
    }
    let (mut low, mut high) = (0, glyphs());
    while high - low > 1 {
        let middle = (low + high) / 2;
        if half(HEADER + middle * GLYPH) <= code { low = middle } else { high = middle }
    }
    if half(HEADER + low * GLYPH) == code { low } else { 31 }
}

/// The advance of a character, in units.
#[inline(always)]
pub fn advance(code: u32) -> u32 {
    load(ADVANCES + code.min(CODES - 1) * 4)
}

/// The same, found in the font. A tabulator is four spaces wide; other control characters take no space.
fn find_advance(code: u32) -> u32 {
    match code {
        TAB => 4 * half(HEADER + 2),
        0..32 => 0,
        _ => half(HEADER + glyph(code) * GLYPH + 2),
    }
}

const TAB: u32 = '\t' as u32;

/// The first line of a glyph's outline, and the number of lines.
pub fn outline(glyph: u32) -> (u32, u32) {
    let at = HEADER + glyph * GLYPH;
    (half(at + 4), half(at + 6))
}

/// Left, bottom, right and top of a glyph's outline.
pub fn bounds(glyph: u32) -> [i32; 4] {
    let at = HEADER + glyph * GLYPH;
    [signed(at + 8), signed(at + 10), signed(at + 12), signed(at + 14)]
}

/// Writes advances and outlines to scratch, outlines as lines of 32-bit floats. The lines of a point are those to the next point of its contour.
pub fn unpack(team: &Team) {
    team.for_each(CODES, |code| store(ADVANCES + code * 4, find_advance(code)));
    let count = (FONT.len() as u32 - points()) / 4;
    team.for_each(count.min(MAX_LINES), |i| {
        let at = |i: u32| (signed(points() + i * 4), signed(points() + i * 4 + 2));
        let from = at(i);
        let mut to = from;
        if from.0 != END {
            to = at(i + 1);
            if to.0 == END {
                let mut first = i;
                while first > 0 && at(first - 1).0 != END {
                    first -= 1;
                }
                to = at(first);
            }
        }
        let line = LINES + i * 16;
        store(line, (from.0 as f32).to_bits());
        store(line + 4, (from.1 as f32).to_bits());
        store(line + 8, (to.0 as f32).to_bits());
        store(line + 12, (to.1 as f32).to_bits());
    });
}
