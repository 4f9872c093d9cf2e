//! Sets of tiles: what a frame drew, and what a viewer has not seen.

use crate::map::{TILE_HEIGHT, TILE_WIDTH};

/// Some of the tiles of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tiles {
    columns: u32,
    /// One for each tile, row by row.
    marks: Vec<bool>,
}

/// Neighbouring tiles, in tiles from the top left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub(crate) column: u32,
    pub(crate) row: u32,
    pub(crate) columns: u32,
    pub(crate) rows: u32,
}

impl Tiles {
    /// All tiles of a frame of this many pixels, or none of them.
    pub(crate) fn new(width: u32, height: u32, all: bool) -> Self {
        let (columns, rows) = (width.div_ceil(TILE_WIDTH), height.div_ceil(TILE_HEIGHT));
        Self { columns, marks: vec![all; (columns * rows) as usize] }
    }

    pub(crate) fn len(&self) -> u32 {
        self.marks.len() as u32
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.marks.contains(&true)
    }

    pub(crate) fn mark(&mut self, tile: u32) {
        self.marks[tile as usize] = true;
    }

    pub(crate) fn clear(&mut self) {
        self.marks.fill(false);
    }

    /// Adds the tiles of another set of the same frame size.
    pub(crate) fn add(&mut self, other: &Self) {
        self.marks.iter_mut().zip(&other.marks).for_each(|(mark, more)| *mark |= more);
    }

    /// The rows with tiles of this set: for each stretch the first, and the one after the last. Stretches with few rows between them
    /// are one.
    pub(crate) fn stretches(&self, gap: u32) -> Vec<(u32, u32)> {
        let mut stretches: Vec<(u32, u32)> = Vec::new();
        for (row, marks) in (0..).zip(self.marks.chunks(self.columns.max(1) as usize)) {
            match stretches.last_mut() {
                _ if !marks.contains(&true) => {}
                Some((_, end)) if row <= *end + gap => *end = row + 1,
                _ => stretches.push((row, row + 1)),
            }
        }
        stretches
    }

    /// The set as rectangles: runs of a row, joined with those above that have the same place.
    pub(crate) fn rectangles(&self) -> Vec<Rectangle> {
        let mut done = Vec::new();
        let mut open: Vec<Rectangle> = Vec::new();
        for (row, marks) in (0..).zip(self.marks.chunks(self.columns.max(1) as usize)) {
            let mut now = Vec::new();
            let mut column = 0;
            for run in marks.chunk_by(|a, b| a == b) {
                let columns = run.len() as u32;
                if run[0] {
                    let above = open.iter().position(|it| it.column == column && it.columns == columns);
                    let (row, rows) = above.map_or((row, 1), |i| (open[i].row, open.swap_remove(i).rows + 1));
                    now.push(Rectangle { column, row, columns, rows });
                }
                column += columns;
            }
            done.append(&mut open);
            open = now;
        }
        done.append(&mut open);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three by three tiles; `x` is marked.
    fn tiles(picture: &str) -> Tiles {
        let mut tiles = Tiles::new(3 * TILE_WIDTH - 5, 3 * TILE_HEIGHT - 1, false);
        let marks = picture.chars().filter(|c| !c.is_whitespace());
        (0..).zip(marks).filter(|(_, mark)| *mark == 'x').for_each(|(tile, _)| tiles.mark(tile));
        tiles
    }

    #[test]
    fn runs_of_the_same_place_are_one_rectangle() {
        let rectangle = |column, row, columns, rows| Rectangle { column, row, columns, rows };
        assert_eq!(Tiles::new(96, 24, true).rectangles(), [rectangle(0, 0, 3, 3)]);
        assert_eq!(tiles("... ... ...").rectangles(), []);
        let mut found = tiles("x.x x.x xx.").rectangles();
        found.sort_by_key(|it| (it.row, it.column));
        assert_eq!(found, [rectangle(0, 0, 1, 2), rectangle(2, 0, 1, 2), rectangle(0, 2, 2, 1)]);
    }

    #[test]
    fn stretches_join_over_a_gap() {
        assert_eq!(tiles("x.. ... ..x").stretches(0), [(0, 1), (2, 3)]);
        assert_eq!(tiles("x.. ... ..x").stretches(1), [(0, 3)]);
        assert_eq!(tiles("... .x. ...").stretches(1), [(1, 2)]);
    }
}
