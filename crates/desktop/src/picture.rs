//! What the desktop shows, as a picture, and what is drawn over it.

use crate::desktop::{Error, Result};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// The pixels of a frame: red, green, blue, 255 for each, from the top left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub pixels: Vec<u8>,
}

/// Left, top, right, bottom, in pixels.
pub(crate) type Edges = [i32; 4];
/// Red, green, blue.
pub(crate) type Colour = [u8; 3];

/// Returns what two rectangles have in common.
pub(crate) fn common(a: Edges, b: Edges) -> Edges {
    [a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])]
}

impl Picture {
    /// Writes the picture as a PNG file.
    pub fn write(&self, path: &Path) -> Result<()> {
        let failed = |error: String| Error::Picture { path: path.to_owned(), error };
        let file = File::create(path).map_err(|error| failed(error.to_string()))?;
        let mut encoder = png::Encoder::new(BufWriter::new(file), self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        // Even areas and repeated letters are smaller as they are than as differences.
        encoder.set_filter(png::Filter::NoFilter);
        encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
        let (pixels, _) = self.pixels.as_chunks::<4>();
        let colours: Vec<u8> = pixels.iter().flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
        let write = |mut writer: png::Writer<_>| {
            writer.write_image_data(&colours)?;
            writer.finish()
        };
        encoder.write_header().and_then(write).map_err(|error| failed(error.to_string()))
    }

    /// The pixels of a rectangle, as far as it lies in the picture: for each row the bytes from the first to the last.
    fn rows(&self, edges: Edges) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let width = self.width as usize;
        let [left, top, right, bottom] = common(edges, [0, 0, self.width as i32, self.height as i32]);
        let rows = if left < right { top..bottom } else { 0..0 };
        rows.map(move |row| (row as usize * width + left as usize) * 4..(row as usize * width + right as usize) * 4)
    }

    /// Mixes a colour into all pixels of a rectangle: `share` of 256 of it.
    pub(crate) fn tint(&mut self, edges: Edges, colour: Colour, share: u32) {
        for row in self.rows(edges) {
            let (pixels, _) = self.pixels[row].as_chunks_mut::<4>();
            for (value, of_colour) in pixels.iter_mut().flat_map(|pixel| pixel.iter_mut().zip(colour)) {
                *value = ((u32::from(*value) * (256 - share) + u32::from(of_colour) * share + 128) >> 8) as u8;
            }
        }
    }

    /// Tints what lies within `outer` and not within `inner`.
    pub(crate) fn frame(&mut self, outer: Edges, inner: Edges, within: Edges, colour: Colour, share: u32) {
        let [left, top, right, bottom] = outer;
        let inner = common(inner, outer);
        let (near, upper) = (inner[0].min(right), inner[1].min(bottom));
        let (far, lower) = (inner[2].max(near), inner[3].max(upper));
        let sides = [
            [left, top, right, upper],
            [left, upper, near, lower],
            [far, upper, right, lower],
            [left, lower, right, bottom],
        ];
        sides.into_iter().for_each(|side| self.tint(common(side, within), colour, share));
    }

    /// Draws the border of a rectangle, on its inside.
    pub(crate) fn outline(&mut self, edges: Edges, within: Edges, width: i32, colour: Colour) {
        let [left, top, right, bottom] = edges;
        let inner = [left + width, top + width, right - width, bottom - width];
        self.frame(edges, inner, within, colour, 256);
    }

    /// Copies the pixels of a rectangle from a picture of the same size.
    pub(crate) fn copy(&mut self, from: &Self, edges: Edges) {
        self.rows(edges).for_each(|row| self.pixels[row.clone()].copy_from_slice(&from.pixels[row]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A black picture of eight by six pixels after `draw`: a `#` for each pixel that is not black.
    fn drawn(draw: impl FnOnce(&mut Picture)) -> String {
        let mut picture = Picture { width: 8, height: 6, pixels: vec![0; 8 * 6 * 4] };
        draw(&mut picture);
        let rows = picture.pixels.chunks(8 * 4).map(|row| {
            let (pixels, _) = row.as_chunks::<4>();
            pixels.iter().map(|pixel| if pixel[0] == 0 { '.' } else { '#' }).collect()
        });
        rows.collect::<Vec<String>>().join(" ")
    }

    const ALL: Edges = [-100, -100, 100, 100];

    #[test]
    fn what_is_drawn_stays_within_the_picture_and_its_limits() {
        let tinted = |edges| drawn(|picture| picture.tint(edges, [255; 3], 128));
        assert_eq!(tinted([6, -3, 99, 2]), "......## ......## ........ ........ ........ ........");
        assert_eq!(tinted([5, 2, 5, 4]), tinted([9, 9, 12, 12]));
        assert_eq!(tinted([5, 2, 3, 4]), tinted([0, 4, 8, 2]));
        let outlined = |edges, within| drawn(|picture| picture.outline(edges, within, 1, [255; 3]));
        assert_eq!(outlined([1, 1, 6, 5], ALL), "........ .#####.. .#...#.. .#...#.. .#####.. ........");
        assert_eq!(outlined([1, 1, 6, 5], [0, 0, 4, 3]), "........ .###.... .#...... ........ ........ ........");
        assert_eq!(outlined([1, 1, 2, 5], ALL), "........ .#...... .#...... .#...... .#...... ........");
        assert_eq!(outlined([1, 1, 1, 5], ALL), tinted([0; 4]));
    }

    #[test]
    fn a_frame_is_tinted_once() {
        let mut picture = Picture { width: 8, height: 6, pixels: vec![0; 8 * 6 * 4] };
        picture.frame([0, 0, 8, 6], [5, 2, 3, 1], ALL, [255; 3], 128);
        assert!(picture.pixels.iter().all(|value| *value == 0 || *value == 128), "{:?}", picture.pixels);
    }
}
