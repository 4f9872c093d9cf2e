//! The letters and digits that overlays are labelled with: five by seven points each.

use crate::picture::{Colour, Edges, Picture, common};

const COLUMNS: i32 = 5;
const ROWS: i32 = 7;

/// The rows of each, the leftmost point in the highest of five bits.
const LETTERS: [(char, [u8; ROWS as usize]); 20] = [
    ('0', [0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110]),
    ('1', [0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110]),
    ('2', [0b01110, 0b10001, 0b00001, 0b00010, 0b00100, 0b01000, 0b11111]),
    ('3', [0b11111, 0b00010, 0b00100, 0b00010, 0b00001, 0b10001, 0b01110]),
    ('4', [0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010]),
    ('5', [0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110]),
    ('6', [0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110]),
    ('7', [0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000]),
    ('8', [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110]),
    ('9', [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100]),
    ('c', [0b00000, 0b00000, 0b01110, 0b10000, 0b10000, 0b10001, 0b01110]),
    ('e', [0b00000, 0b00000, 0b01110, 0b10001, 0b11111, 0b10000, 0b01110]),
    ('f', [0b00110, 0b01001, 0b01000, 0b11100, 0b01000, 0b01000, 0b01000]),
    ('h', [0b10000, 0b10000, 0b10110, 0b11001, 0b10001, 0b10001, 0b10001]),
    ('o', [0b00000, 0b00000, 0b01110, 0b10001, 0b10001, 0b10001, 0b01110]),
    ('p', [0b00000, 0b00000, 0b11110, 0b10001, 0b11110, 0b10000, 0b10000]),
    ('r', [0b00000, 0b00000, 0b10110, 0b11001, 0b10000, 0b10000, 0b10000]),
    ('s', [0b00000, 0b00000, 0b01110, 0b10000, 0b01110, 0b00001, 0b11110]),
    ('u', [0b00000, 0b00000, 0b10001, 0b10001, 0b10001, 0b10011, 0b01101]),
    ('v', [0b00000, 0b00000, 0b10001, 0b10001, 0b10001, 0b01010, 0b00100]),
];

const WHITE: Colour = [255; 3];

/// The width and height of a label, in pixels, if a point has `point` of them.
pub(super) fn size(text: &str, point: i32) -> (i32, i32) {
    ((text.chars().count() as i32 * (COLUMNS + 1) + 1) * point, (ROWS + 2) * point)
}

/// Writes a text in white on a plate of a colour, with its left top corner at a place.
pub(super) fn label(picture: &mut Picture, text: &str, at: (i32, i32), point: i32, within: Edges, colour: Colour) {
    let (left, top) = at;
    let (width, height) = size(text, point);
    picture.tint(common([left, top, left + width, top + height], within), colour, 256);
    for (number, letter) in (0..).zip(text.chars()) {
        let rows = LETTERS.iter().find(|(known, _)| *known == letter).map_or([0; ROWS as usize], |(_, rows)| *rows);
        for (row, bits) in (0..).zip(rows) {
            for column in (0..COLUMNS).filter(|column| bits >> (COLUMNS - 1 - column) & 1 != 0) {
                let x = left + (1 + number * (COLUMNS + 1) + column) * point;
                let y = top + (1 + row) * point;
                picture.tint(common([x, y, x + point, y + point], within), WHITE, 256);
            }
        }
    }
}
