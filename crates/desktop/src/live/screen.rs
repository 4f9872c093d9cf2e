//! The frame buffer, as the host knows it: after each frame it reads the rows with tiles that this frame drew.

use super::tiles::{Rectangle, Tiles};
use crate::desktop::Result;
use crate::map::{self, TILE_HEIGHT, TILE_WIDTH};
use crate::{Desktop, desktop};
use std::sync::OnceLock;

/// Rows of tiles between two that are read along with them: a read of its own would take longer.
const GAP: u32 = 4;

#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Whether something is under way that the next frames go on with.
    pub(crate) moves: bool,
    pixels: Vec<u8>,
}

/// A place in pixels: left, top, width, height.
pub(crate) type Place = [u32; 4];

/// Some places of a frame, and their pixels.
#[derive(Debug, Default)]
pub(crate) struct Patch {
    /// The frame's size.
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) places: Vec<Place>,
    /// Red, green, blue, 255 for each pixel: place after place, row by row.
    pub(crate) pixels: Vec<u8>,
    /// The patch in a page's message: the first of the pages packs it.
    pub(crate) packed: OnceLock<Vec<u8>>,
}

impl Screen {
    /// Reads the whole frame.
    pub(crate) fn read(desktop: &Desktop) -> Result<Self> {
        let desktop::Header { width, height, moves } = desktop.header()?;
        let pixels = desktop.read(map::PIXELS, width * height * 4)?;
        Ok(Self { width, height, moves, pixels })
    }

    /// Reads what the last tick drew. None: the frame has another size than before, and all of it is new.
    pub(crate) fn update(&mut self, desktop: &Desktop) -> Result<Option<Tiles>> {
        let header = desktop.header()?;
        if (header.width, header.height) != (self.width, self.height) {
            *self = Self::read(desktop)?;
            return Ok(None);
        }
        self.moves = header.moves;
        let mut drawn = Tiles::new(self.width, self.height, false);
        if desktop.word(map::S_DRAWN)? == 0 {
            return Ok(Some(drawn));
        }
        let damage = desktop.read(map::DAMAGE, drawn.len() * 4)?;
        let (damage, _) = damage.as_chunks::<4>();
        (0..).zip(damage).filter(|(_, word)| **word != [0; 4]).for_each(|(tile, _)| drawn.mark(tile));
        for (from, to) in drawn.stretches(GAP) {
            let (from, to) = (from * TILE_HEIGHT, (to * TILE_HEIGHT).min(self.height));
            let at = from * self.width * 4;
            let rows = desktop.read(map::PIXELS + at, (to - from) * self.width * 4)?;
            self.pixels[at as usize..][..rows.len()].copy_from_slice(&rows);
        }
        Ok(Some(drawn))
    }

    /// What the frame shows in these tiles.
    pub(crate) fn patch(&self, tiles: &Tiles) -> Patch {
        let places: Vec<Place> = tiles.rectangles().iter().map(|it| self.place(it)).collect();
        let size: u32 = places.iter().map(|[_, _, width, height]| width * height * 4).sum();
        let mut pixels = Vec::with_capacity(size as usize);
        places.iter().flat_map(|place| self.rows(*place)).for_each(|row| pixels.extend_from_slice(row));
        Patch { width: self.width, height: self.height, places, pixels, packed: OnceLock::new() }
    }

    /// The place of tiles, within the frame.
    fn place(&self, it: &Rectangle) -> Place {
        let (left, top) = (it.column * TILE_WIDTH, it.row * TILE_HEIGHT);
        let (right, bottom) = (left + it.columns * TILE_WIDTH, top + it.rows * TILE_HEIGHT);
        [left, top, right.min(self.width) - left, bottom.min(self.height) - top]
    }

    /// The pixels of each row of a place.
    fn rows(&self, [left, top, width, height]: Place) -> impl Iterator<Item = &[u8]> {
        let (from, stride) = (left as usize * 4, self.width as usize * 4);
        let rows = self.pixels.chunks(stride).skip(top as usize).take(height as usize);
        rows.map(move |row| &row[from..from + width as usize * 4])
    }
}
