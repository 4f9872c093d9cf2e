//! Pictures of phases: what a phase of the last frame found, drawn over what the desktop shows. All of it is read from the device's memory;
//! nothing of it is in the kernel, and the desktop goes on as if nobody had looked.

mod letters;

use crate::Desktop;
use crate::desktop::Result;
use crate::event::kinds;
use crate::map::{self, BLOCK, ITEM_BYTES, TILE_HEIGHT, TILE_WIDTH};
use crate::picture::{Colour, Edges, Picture, common};
use letters::label;

/// The phases of which there are pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// Each widget has a colour where it is the frontmost.
    HitTest,
    /// The pointer, and the widgets that are hovered, pressed and focused.
    Dispatch,
    /// Each widget's box, its padding and its margin.
    Layout,
    /// Each widget's place in the order of drawing, and what may be drawn on.
    Order,
    /// How many items of the display list touch each tile, and how many are listed for each block.
    Geometry,
    /// The tiles that the last frame drew.
    Raster,
}

impl Overlay {
    /// All of them by their names, in the order of the phases.
    pub const ALL: [(&'static str, Self); 6] = [
        ("hit-test", Self::HitTest),
        ("dispatch", Self::Dispatch),
        ("layout", Self::Layout),
        ("order", Self::Order),
        ("geometry", Self::Geometry),
        ("raster", Self::Raster),
    ];
}

const BLUE: Colour = [37, 99, 235];
const GREEN: Colour = [22, 130, 60];
const RED: Colour = [214, 40, 57];
const PURPLE: Colour = [126, 34, 206];
const SLATE: Colour = [51, 65, 85];
const YELLOW: Colour = [255, 214, 10];
/// The colours of padding and margin that the tools of browsers use, too.
const PADDING: Colour = [120, 190, 90];
const MARGIN: Colour = [246, 178, 107];
/// Colours that are easy to tell from each other: those of widgets made one after the other differ.
const MANY: [Colour; 10] = [
    [228, 26, 28],
    [55, 126, 184],
    [77, 175, 74],
    [152, 78, 163],
    [255, 127, 0],
    [23, 190, 207],
    [247, 129, 191],
    [166, 86, 40],
    [188, 189, 34],
    [64, 64, 160],
];
/// How much of a tint's colour a pixel gets, of 256.
const TINT: u32 = 112;

/// A widget that shows, as the last frame placed it. Lengths are in pixels.
#[derive(Debug)]
struct Shown {
    number: u32,
    kind: u32,
    order: u32,
    edges: Edges,
    /// What it may draw on.
    clip: Edges,
    /// What it has inside its padding, and outside with its margin.
    content: Edges,
    outside: Edges,
}

impl Shown {
    fn visible(&self) -> Edges {
        common(self.edges, self.clip)
    }

    fn holds_widgets(&self) -> bool {
        matches!(self.kind, kinds::WINDOW | kinds::PANEL | kinds::SCROLL)
    }
}

/// Where a length is, as the kernel rounds it.
fn pixel(at: f32) -> i32 {
    (at + 0.5).floor() as i32
}

fn is_empty([left, top, right, bottom]: Edges) -> bool {
    left >= right || top >= bottom
}

fn tile(column: u32, row: u32) -> Edges {
    let (left, top) = ((column * TILE_WIDTH) as i32, (row * TILE_HEIGHT) as i32);
    [left, top, left + TILE_WIDTH as i32, top + TILE_HEIGHT as i32]
}

/// What is drawn on, and what is known.
struct Drawing<'a> {
    desktop: &'a Desktop,
    picture: Picture,
    all: Edges,
    /// The width of the thinnest line.
    hair: i32,
}

impl Desktop {
    /// Returns what the desktop shows with what a phase of the last frame found.
    pub fn explained(&self, phase: Overlay) -> Result<Picture> {
        let picture = self.picture()?;
        let all = [0, 0, picture.width as i32, picture.height as i32];
        let hair = (self.word(map::D_SCALE)? / 256).max(1) as i32;
        let mut drawing = Drawing { desktop: self, picture, all, hair };
        match phase {
            Overlay::HitTest => drawing.hit_test()?,
            Overlay::Dispatch => drawing.dispatch()?,
            Overlay::Layout => drawing.layout()?,
            Overlay::Order => drawing.order()?,
            Overlay::Geometry => drawing.geometry()?,
            Overlay::Raster => drawing.raster()?,
        }
        Ok(drawing.picture)
    }

    /// Returns the widgets that show, in the order of drawing, without the desktop itself.
    fn shown(&self) -> Result<Vec<Shown>> {
        let used = self.word(map::D_USED)?;
        let words = |field: u32| self.words(field, used);
        let scale = self.word(map::D_SCALE)? as f32 / 256.0;
        let numbers = |field: u32| -> Result<Vec<f32>> { Ok(words(field)?.into_iter().map(f32::from_bits).collect()) };
        let (kind, order) = (words(map::W_KIND)?, words(map::W_ORDER)?);
        let (from, to) = (words(map::W_CLIP_FROM)?, words(map::W_CLIP_TO)?);
        let [x, y] = [numbers(map::W_AT_X)?, numbers(map::W_AT_Y)?];
        let [width, height] = [numbers(map::W_W)?, numbers(map::W_H)?];
        // Left, top, right, bottom of both.
        let sides = |fields: [u32; 4]| fields.map(&numbers).into_iter().collect::<Result<Vec<_>>>();
        let padding = sides([map::W_PAD_LEFT, map::W_PAD_TOP, map::W_PAD_RIGHT, map::W_PAD_BOTTOM])?;
        let margin = sides([map::W_MARGIN_LEFT, map::W_MARGIN_TOP, map::W_MARGIN_RIGHT, map::W_MARGIN_BOTTOM])?;
        let shows = |i: &usize| kind[*i] != 0 && order[*i] != 0;
        let mut shown: Vec<Shown> = (1..used as usize)
            .filter(shows)
            .map(|i| {
                let edges = [x[i], y[i], x[i] + width[i], y[i] + height[i]];
                let inward = |by: &[Vec<f32>], sign: f32| {
                    let moved = [1.0, 1.0, -1.0, -1.0].map(|side| side * sign);
                    [0, 1, 2, 3].map(|side| pixel((edges[side] + moved[side] * by[side][i]) * scale))
                };
                Shown {
                    number: i as u32,
                    kind: kind[i],
                    order: order[i],
                    edges: edges.map(|at| pixel(at * scale)),
                    clip: [from[i] & 0xFFFF, from[i] >> 16, to[i] & 0xFFFF, to[i] >> 16].map(|at| at as i32),
                    content: inward(&padding, 1.0),
                    outside: inward(&margin, -1.0),
                }
            })
            .collect();
        shown.sort_by_key(|it| it.order);
        Ok(shown)
    }
}

impl Drawing<'_> {
    fn hit_test(&mut self) -> Result<()> {
        let mut frontmost = vec![0; (self.picture.width * self.picture.height) as usize];
        for it in self.desktop.shown()? {
            let edges = common(it.visible(), self.all);
            if is_empty(edges) {
                continue;
            }
            let [left, top, right, bottom] = edges.map(|edge| edge as usize);
            for row in top..bottom {
                frontmost[row * self.picture.width as usize..][left..right].fill(it.number);
            }
        }
        let width = self.picture.width as usize;
        for (row, widgets) in (0..).zip(frontmost.chunks(width)) {
            let mut column = 0;
            for run in widgets.chunk_by(|a, b| a == b) {
                let end = column + run.len() as i32;
                if run[0] != 0 {
                    self.picture.tint([column, row, end, row + 1], MANY[run[0] as usize % MANY.len()], TINT);
                }
                column = end;
            }
        }
        Ok(())
    }

    fn dispatch(&mut self) -> Result<()> {
        let shown = self.desktop.shown()?;
        let marks = [("focus", map::D_FOCUS, BLUE), ("hover", map::D_HOVER, GREEN), ("press", map::D_PRESS, RED)];
        let mut marked: Vec<u32> = Vec::new();
        for (name, word, colour) in marks {
            let widget = self.desktop.word(word)?;
            let Some(it) = shown.iter().find(|it| it.number == widget) else { continue };
            // Those of one widget lie around each other, and their labels beside each other.
            let before = marked.iter().filter(|other| **other == widget).count() as i32;
            let [left, top, right, bottom] = it.visible();
            let far = (3 + 3 * before) * self.hair;
            let around = [left - far, top - far, right + far, bottom + far];
            self.picture.outline(around, self.all, 2 * self.hair, colour);
            let (width, height) = letters::size(name, self.hair);
            let x = (left - far).max(0) + before * width;
            let y = if top - far - height >= 0 { top - far - height } else { bottom + far };
            label(&mut self.picture, name, (x, y), self.hair, self.all, colour);
            marked.push(widget);
        }
        let scale = self.desktop.word(map::D_SCALE)? as f32 / 256.0;
        let place = |word: u32| -> Result<i32> { Ok(pixel(self.desktop.word(word)? as i32 as f32 / 256.0 * scale)) };
        let (x, y) = (place(map::D_POINTER_X)?, place(map::D_POINTER_Y)?);
        let (arm, half) = (8 * self.hair, self.hair);
        self.picture.tint([x - arm, y - half, x + arm, y + half], SLATE, 256);
        self.picture.tint([x - half, y - arm, x + half, y + arm], SLATE, 256);
        Ok(())
    }

    fn layout(&mut self) -> Result<()> {
        let plain = self.picture.clone();
        for it in self.desktop.shown()? {
            self.uncover(&plain, &it);
            self.picture.frame(it.outside, it.edges, it.clip, MARGIN, TINT);
            self.picture.frame(it.edges, it.content, it.clip, PADDING, TINT);
            self.picture.outline(it.edges, it.clip, self.hair, if it.holds_widgets() { PURPLE } else { BLUE });
        }
        Ok(())
    }

    fn order(&mut self) -> Result<()> {
        let plain = self.picture.clone();
        let mut outlined = Vec::new();
        for it in self.desktop.shown()? {
            self.uncover(&plain, &it);
            if it.kind == kinds::WINDOW {
                outlined = vec![self.all];
            }
            if !outlined.contains(&it.clip) {
                self.picture.outline(it.clip, self.all, 2 * self.hair, RED);
                outlined.push(it.clip);
            }
            let (number, [left, top, right, _]) = (it.order.to_string(), it.edges);
            // Containers have theirs at the other corner: many begin where their first child does.
            let (x, colour) = match it.holds_widgets() {
                true => (right - letters::size(&number, self.hair).0, PURPLE),
                false => (left, SLATE),
            };
            label(&mut self.picture, &number, (x, top), self.hair, it.visible(), colour);
        }
        Ok(())
    }

    /// A window covers what was drawn for those behind it.
    fn uncover(&mut self, plain: &Picture, it: &Shown) {
        if it.kind == kinds::WINDOW {
            self.picture.copy(plain, it.visible());
        }
    }

    fn geometry(&mut self) -> Result<()> {
        let (width, height) = (self.picture.width, self.picture.height);
        let columns = width.div_ceil(BLOCK);
        let count = columns * height.div_ceil(BLOCK);
        let items = self.desktop.words(map::ITEMS, self.desktop.word(map::S_ITEMS)? * ITEM_BYTES / 4)?;
        // The first two words of an item: the pixels that it can touch.
        let touched: Vec<Edges> = items
            .chunks((ITEM_BYTES / 4) as usize)
            .map(|item| [item[0] & 0xFFFF, item[0] >> 16, item[1] & 0xFFFF, item[1] >> 16].map(|at| at as i32))
            .collect();
        let blocks = self.desktop.words(map::BLOCKS, count * 2)?;
        let is_listed = self.desktop.word(map::S_BY_BLOCK)? <= map::MAX_BY_BLOCK;
        let mut tiles: Vec<(Edges, u32)> = Vec::new();
        let mut lists: Vec<(Edges, usize)> = Vec::new();
        for (block, range) in (0..).zip(blocks.chunks(2)) {
            let (left, top) = (block % columns * BLOCK, block / columns * BLOCK);
            // If the lists are too long for their memory, the raster looks at all items.
            let list = match is_listed {
                true => {
                    let addresses = self.desktop.words(map::BY_BLOCK + range[0] * 4, range[1] - range[0])?;
                    addresses.iter().map(|at| at.wrapping_sub(map::ITEMS) / ITEM_BYTES).collect()
                }
                false => (0..touched.len() as u32).collect::<Vec<_>>(),
            };
            let edges = [left, top, (left + BLOCK).min(width), (top + BLOCK).min(height)].map(|at| at as i32);
            lists.push((edges, list.len()));
            for row in top / TILE_HEIGHT..(top + BLOCK).min(height).div_ceil(TILE_HEIGHT) {
                for column in left / TILE_WIDTH..(left + BLOCK).min(width).div_ceil(TILE_WIDTH) {
                    let edges = tile(column, row);
                    let touches = |item: &&u32| {
                        touched.get(**item as usize).is_some_and(|touched| !is_empty(common(*touched, edges)))
                    };
                    tiles.push((edges, list.iter().filter(touches).count() as u32));
                }
            }
        }
        // One is the desktop's own ground.
        let most = tiles.iter().map(|(_, count)| *count).max().unwrap_or(0).max(2);
        for (edges, count) in tiles.into_iter().filter(|(_, count)| *count > 1) {
            let heat = |from: u8, to: u8| ((u32::from(from) * (most - count) + u32::from(to) * count) / most) as u8;
            let colour = [0, 1, 2].map(|channel| heat(YELLOW[channel], RED[channel]));
            self.picture.tint(edges, colour, 72 + 120 * count / most);
        }
        for (edges, count) in lists {
            let [left, top, right, bottom] = edges;
            self.picture.tint([left, top, right, top + self.hair], SLATE, TINT);
            self.picture.tint([left, top + self.hair, left + self.hair, bottom], SLATE, TINT);
            let at = (left + self.hair, top + self.hair);
            label(&mut self.picture, &count.to_string(), at, self.hair, edges, SLATE);
        }
        Ok(())
    }

    fn raster(&mut self) -> Result<()> {
        let (columns, rows) = (self.picture.width.div_ceil(TILE_WIDTH), self.picture.height.div_ceil(TILE_HEIGHT));
        let damage = self.desktop.words(map::DAMAGE, columns * rows)?;
        for (number, _) in (0..).zip(damage).filter(|(_, drawn)| *drawn != 0) {
            let edges = tile(number % columns, number / columns);
            self.picture.tint(edges, RED, TINT);
            let [left, top, right, bottom] = edges;
            self.picture.frame(edges, [left, top, right - self.hair, bottom - self.hair], self.all, RED, TINT);
        }
        Ok(())
    }
}
