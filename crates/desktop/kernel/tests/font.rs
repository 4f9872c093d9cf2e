//! The font that the desktop draws with is prepared here: the outlines of the characters it knows, as straight lines. With BLESS=1
//! this test writes `font/font.bin`, otherwise it compares.

use std::collections::BTreeMap;
use std::path::Path;
use ttf_parser::{Face, OutlineBuilder};

/// How far a line may be from its curve, in the font's units (1000 to an em).
const TOLERANCE: f32 = 1.0;
/// Marks the end of a contour in place of a point.
const END: (i16, i16) = (i16::MIN, 0);

#[derive(Default)]
struct Flat {
    points: Vec<(i16, i16)>,
    at: (f32, f32),
}

impl Flat {
    fn put(&mut self, x: f32, y: f32) {
        self.at = (x, y);
        let point = (x.round() as i16, y.round() as i16);
        if self.points.last() != Some(&point) {
            self.points.push(point);
        }
    }
}

impl OutlineBuilder for Flat {
    fn move_to(&mut self, x: f32, y: f32) {
        self.put(x, y);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.put(x, y);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (x0, y0) = self.at;
        let (dx, dy) = (x0 - 2.0 * x1 + x, y0 - 2.0 * y1 + y);
        let parts = ((dx * dx + dy * dy).sqrt() / (4.0 * TOLERANCE)).sqrt().ceil().max(1.0);
        for part in 1..=parts as u32 {
            let t = part as f32 / parts;
            let s = 1.0 - t;
            self.put(s * s * x0 + 2.0 * s * t * x1 + t * t * x, s * s * y0 + 2.0 * s * t * y1 + t * t * y);
        }
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let (x0, y0) = self.at;
        for part in 1..=6 {
            let t = part as f32 / 6.0;
            let s = 1.0 - t;
            let of = |a: f32, b: f32, c: f32, d: f32| {
                s * s * s * a + 3.0 * s * s * t * b + 3.0 * s * t * t * c + t * t * t * d
            };
            self.put(of(x0, x1, x2, x), of(y0, y1, y2, y));
        }
    }
    fn close(&mut self) {
        self.points.push(END);
    }
}

#[test]
fn the_font_is_what_its_source_gives() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("font");
    let source = std::fs::read(folder.join("FiraSans-Regular.ttf")).unwrap();
    let face = Face::parse(&source, 0).unwrap();
    assert_eq!(face.units_per_em(), 1000);
    let characters = (32..127).chain(160..256).chain([0x2013, 0x2014, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2026]);
    let mut glyphs = BTreeMap::new();
    for code in characters {
        let Some(id) = face.glyph_index(char::from_u32(code).unwrap()) else { continue };
        let mut flat = Flat::default();
        face.outline_glyph(id, &mut flat);
        glyphs.insert(code as u16, (id, face.glyph_hor_advance(id).unwrap(), flat.points));
    }
    let mut table = Vec::<u8>::new();
    let mut points = Vec::<u8>::new();
    let words = |to: &mut Vec<u8>, words: &[u16]| words.iter().for_each(|word| to.extend(word.to_le_bytes()));
    words(&mut table, &[face.ascender() as u16, face.descender() as u16, glyphs.len() as u16, 0]);
    for (code, (_, advance, outline)) in &glyphs {
        let inside = || outline.iter().filter(|point| **point != END);
        let bounds = [
            inside().map(|p| p.0).min().unwrap_or(0),
            inside().map(|p| p.1).min().unwrap_or(0),
            inside().map(|p| p.0).max().unwrap_or(0),
            inside().map(|p| p.1).max().unwrap_or(0),
        ];
        words(&mut table, &[*code, *advance, (points.len() / 4) as u16, outline.len() as u16]);
        words(&mut table, &bounds.map(|bound| bound as u16));
        for (x, y) in outline {
            words(&mut points, &[*x as u16, *y as u16]);
        }
    }
    table.extend(points);
    let path = folder.join("font.bin");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    assert!(
        std::fs::read(&path).unwrap() == table,
        "font/font.bin is not what its source gives: run this test with BLESS=1"
    );
    println!("{} glyphs, {} bytes", glyphs.len(), table.len());
}
