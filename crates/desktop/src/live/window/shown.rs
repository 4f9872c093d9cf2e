//! The desktop's last frame, and where it is in the window.

use crate::live::screen::{Patch, Place};

/// What is around a frame that has another shape than the window: the page's colour.
const BEHIND: u32 = 0x10_1216;

#[derive(Debug, Default)]
pub(super) struct Shown {
    width: u32,
    height: u32,
    /// Red, green and blue, from the higher to the lower bytes.
    pixels: Vec<u32>,
}

impl Shown {
    /// Takes what is new. Returns whether the frame has another size than before: then all of it is new.
    pub(super) fn apply(&mut self, patch: &Patch) -> bool {
        let is_other = (self.width, self.height) != (patch.width, patch.height);
        if is_other {
            (self.width, self.height) = (patch.width, patch.height);
            self.pixels = vec![BEHIND; (patch.width * patch.height) as usize];
        }
        let mut rest = &patch.pixels[..];
        for [left, top, width, height] in &patch.places {
            for row in self.pixels.chunks_mut(self.width as usize).skip(*top as usize).take(*height as usize) {
                let (now, later) = rest.split_at(*width as usize * 4);
                let colours = now.as_chunks::<4>().0.iter().map(|[r, g, b, _]| u32::from_be_bytes([0, *r, *g, *b]));
                row[*left as usize..].iter_mut().zip(colours).for_each(|(pixel, colour)| *pixel = colour);
                rest = later;
            }
        }
        is_other
    }

    /// Where the frame is in a window of this size: pixel by pixel if it has the same, otherwise as large as it fits.
    pub(super) fn place(&self, (width, height): (u32, u32)) -> Place {
        if (self.width, self.height) == (width, height) || self.pixels.is_empty() {
            return [0, 0, width, height];
        }
        let less = (f64::from(width) / f64::from(self.width)).min(f64::from(height) / f64::from(self.height));
        let fits = |pixels: u32, most: u32| ((f64::from(pixels) * less).round() as u32).clamp(1, most);
        let (w, h) = (fits(self.width, width), fits(self.height, height));
        [(width - w) / 2, (height - h) / 2, w, h]
    }

    /// Whether the frame is in a window of this size pixel by pixel.
    pub(super) fn is_exact(&self, size: (u32, u32)) -> bool {
        (self.width, self.height) == size
    }

    /// Where a place in the window is on the desktop, in 256ths of a pixel.
    pub(super) fn on_desktop(&self, size: (u32, u32), x: f64, y: f64) -> (i32, i32) {
        if self.pixels.is_empty() {
            // Before the first frame: it will have the window's size.
            return ((x * 256.0).round() as i32, (y * 256.0).round() as i32);
        }
        let [left, top, width, height] = self.place(size).map(f64::from);
        let at = |at: f64, from: f64, length: f64, pixels: u32| {
            ((at - from) / length * f64::from(pixels) * 256.0).round() as i32
        };
        (at(x, left, width, self.width), at(y, top, height, self.height))
    }

    /// Reads a part of a row of the window, if the frame is at `place`.
    pub(super) fn read(&self, [left, top, width, height]: Place, x: u32, y: u32, row: &mut [u32]) {
        let line = y.checked_sub(top).filter(|y| *y < height).map(|y| y * self.height / height);
        let line = line.and_then(|line| self.pixels.chunks(self.width.max(1) as usize).nth(line as usize));
        let Some(line) = line else { return row.fill(BEHIND) };
        if width == self.width && left == 0 && x as usize + row.len() <= line.len() {
            return row.copy_from_slice(&line[x as usize..][..row.len()]);
        }
        for (x, pixel) in (x..).zip(row) {
            let column = x.checked_sub(left).filter(|x| *x < width).map(|x| x * self.width / width);
            *pixel = column.map_or(BEHIND, |column| line[column as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of `width` by `height` pixels, all places of which have this pixel.
    fn patch(width: u32, height: u32, places: &[Place], pixel: u8) -> Patch {
        let count: u32 = places.iter().map(|[_, _, width, height]| width * height).sum();
        let pixels = [pixel, pixel + 1, pixel + 2, 255].repeat(count as usize);
        Patch { width, height, places: places.to_vec(), pixels, ..Patch::default() }
    }

    fn rows(shown: &Shown, size: (u32, u32)) -> Vec<Vec<u32>> {
        let mut rows = vec![vec![1; size.0 as usize]; size.1 as usize];
        (0..).zip(&mut rows).for_each(|(y, row)| shown.read(shown.place(size), 0, y, row));
        rows
    }

    #[test]
    fn patches_take_their_places() {
        let mut shown = Shown::default();
        assert_eq!(rows(&shown, (2, 1)), [[BEHIND, BEHIND]]);
        assert_eq!(shown.on_desktop((2, 1), 1.5, 0.5), (384, 128));
        shown.apply(&patch(4, 2, &[[0, 0, 4, 2]], 1));
        shown.apply(&patch(4, 2, &[[1, 0, 2, 1], [3, 1, 1, 1]], 8));
        let (old, new) = (0x01_0203, 0x08_090A);
        assert_eq!(rows(&shown, (4, 2)), [[old, new, new, old], [old, old, old, new]]);
        let mut part = [0; 2];
        shown.read(shown.place((4, 2)), 2, 0, &mut part);
        assert_eq!(part, [new, old]);
    }

    #[test]
    fn a_frame_of_another_shape_is_in_the_middle() {
        let mut shown = Shown::default();
        shown.apply(&patch(2, 1, &[[0, 0, 1, 1]], 1));
        let (one, two) = (0x01_0203, BEHIND);
        assert_eq!(shown.place((4, 4)), [0, 1, 4, 2]);
        assert_eq!(rows(&shown, (4, 4)), [[BEHIND; 4], [one, one, two, two], [one, one, two, two], [BEHIND; 4]]);
        assert_eq!(shown.on_desktop((4, 4), 4.0, 3.0), (512, 256));
        assert_eq!(shown.on_desktop((4, 4), 0.0, 0.0), (0, -128));
        assert_eq!(shown.place((6, 1)), [2, 0, 2, 1]);
        assert_eq!(rows(&shown, (6, 1)), [[BEHIND, BEHIND, one, two, BEHIND, BEHIND]]);
    }
}
