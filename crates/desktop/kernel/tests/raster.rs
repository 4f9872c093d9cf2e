//! Pixels against tiny-skia: how much of each pixel a shape covers.

mod support;

use fastrand::Rng;
use gpu_run_desktop_kernel::item::Brush;
use gpu_run_desktop_kernel::memory::*;
use gpu_run_desktop_kernel::{font, glyphs, item, raster};
use gpu_run_kernel::gpu::{load, store};
use gpu_run_kernel::team::Team;
use support::Desk;
use tiny_skia::{FillRule, Mask, PathBuilder, Rect, Stroke, Transform};

const SIDE: u32 = 64;
const WHITE: u32 = 0xFFFF_FFFF;

/// Draws white on black; returns how much of each pixel is covered.
fn ours(desk: &Desk, draw: impl Fn(&mut Brush)) -> Vec<f32> {
    desk.world.look(|| {
        store(D_WIDTH, SIDE);
        store(D_HEIGHT, SIDE);
        let mut brush = Brush { at: ITEMS, count: 0, clip: [0, 0, SIDE as i32, SIDE as i32], scale: 1.0 };
        draw(&mut brush);
        store(S_ITEMS, brush.count);
        store(S_BY_BLOCK, u32::MAX);
    });
    desk.world.launch(1, 32, || raster::raster(&Team::new(1)));
    let light = |value: u32| {
        let share = value as f32 / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    desk.pixels().iter().map(|pixel| light(pixel & 255)).collect()
}

/// tiny-skia's coverage, which it finds by 16 samples a pixel: with `FINE` times as many in each direction, to be the judge.
fn theirs(path: &tiny_skia::Path) -> Vec<f32> {
    const FINE: u32 = 8;
    let mut mask = Mask::new(SIDE * FINE, SIDE * FINE).unwrap();
    mask.fill_path(path, FillRule::Winding, true, Transform::from_scale(FINE as f32, FINE as f32));
    let mut covered = vec![0.0; (SIDE * SIDE) as usize];
    for (i, value) in mask.data().iter().enumerate() {
        let (x, y) = (i as u32 % (SIDE * FINE), i as u32 / (SIDE * FINE));
        covered[(y / FINE * SIDE + x / FINE) as usize] += *value as f32 / (255 * FINE * FINE) as f32;
    }
    covered
}

#[derive(Default)]
struct Differences {
    most: f32,
    sum: f32,
    edges: u32,
}

impl Differences {
    fn add(&mut self, ours: &[f32], theirs: &[f32]) {
        for (a, b) in ours.iter().zip(theirs) {
            self.most = self.most.max((a - b).abs());
            self.sum += (a - b).abs();
            self.edges += ((0.02..0.98).contains(a) || (0.02..0.98).contains(b)) as u32;
        }
    }

    /// Checks the largest difference of a pixel, and the mean over pixels that a shape covers in part.
    fn within(&self, what: &str, most: f32, mean: f32) {
        let of_edges = self.sum / self.edges as f32;
        println!("{what}: at most {:.3}, {of_edges:.4} in the mean over {} edge pixels", self.most, self.edges);
        assert!(self.most <= most && of_edges <= mean, "{what}");
    }
}

fn rounded(edges: [f32; 4], radius: f32) -> tiny_skia::Path {
    let [left, top, right, bottom] = edges;
    if radius <= 0.0 {
        return PathBuilder::from_rect(Rect::from_ltrb(left, top, right, bottom).unwrap());
    }
    // A quarter of a circle as a cubic curve.
    let (r, k) = (radius, radius * (1.0 - 0.552_284_8));
    let mut path = PathBuilder::new();
    path.move_to(left + r, top);
    path.line_to(right - r, top);
    path.cubic_to(right - k, top, right, top + k, right, top + r);
    path.line_to(right, bottom - r);
    path.cubic_to(right, bottom - k, right - k, bottom, right - r, bottom);
    path.line_to(left + r, bottom);
    path.cubic_to(left + k, bottom, left, bottom - k, left, bottom - r);
    path.line_to(left, top + r);
    path.cubic_to(left, top + k, left + k, top, left + r, top);
    path.close();
    path.finish().unwrap()
}

fn edges(random: &mut Rng) -> [f32; 4] {
    let (left, top) = (random.f32() * 20.0, random.f32() * 20.0);
    [left, top, left + 6.0 + random.f32() * 36.0, top + 6.0 + random.f32() * 36.0]
}

fn within(edges: [f32; 4], random: &mut Rng) -> f32 {
    random.f32() * ((edges[2] - edges[0]).min(edges[3] - edges[1]) / 2.0)
}

#[test]
fn rounded_rectangles_and_borders_are_tiny_skias() {
    let (mut random, desk) = (Rng::with_seed(1), Desk::boot());
    let (mut filled, mut bordered) = (Differences::default(), Differences::default());
    for _ in 0..60 {
        let edges = edges(&mut random);
        let radius = [0.0, within(edges, &mut random)][random.usize(..2)];
        let whole = theirs(&rounded(edges, radius));
        filled.add(&ours(&desk, |brush| brush.rectangle(edges, radius, WHITE)), &whole);
        let width = 1.0 + random.f32();
        let [left, top, right, bottom] = edges;
        let inner = [left + width, top + width, right - width, bottom - width];
        let hole = theirs(&rounded(inner, (radius - width).max(0.0)));
        let ring: Vec<f32> = whole.iter().zip(hole).map(|(whole, hole)| whole - hole).collect();
        bordered.add(&ours(&desk, |brush| brush.border(edges, radius, width, WHITE)), &ring);
    }
    filled.within("rounded rectangles", 0.1, 0.012);
    bordered.within("borders", 0.11, 0.012);
}

#[test]
fn lines_are_tiny_skias() {
    let (mut random, desk) = (Rng::with_seed(2), Desk::boot());
    let mut found = Differences::default();
    for _ in 0..60 {
        let mut at = || [6.0 + random.f32() * 50.0, 6.0 + random.f32() * 50.0];
        let (from, to, width) = (at(), at(), 1.5 + random.f32() * 5.0);
        let mut path = PathBuilder::new();
        path.move_to(from[0], from[1]);
        path.line_to(to[0], to[1]);
        let stroke = Stroke { width, line_cap: tiny_skia::LineCap::Round, ..Stroke::default() };
        let path = path.finish().unwrap().stroke(&stroke, 4.0).unwrap();
        found.add(&ours(&desk, |brush| brush.line(from, to, width, WHITE)), &theirs(&path));
    }
    found.within("lines", 0.11, 0.025);
}

#[test]
fn glyphs_are_tiny_skias() {
    let (mut random, desk) = (Rng::with_seed(4), Desk::boot());
    desk.world.launch(1, 32, || font::unpack(&Team::new(1)));
    desk.world.look(|| gpu_run_desktop_kernel::tree::create(1, 1, 0, 0));
    let mut found = Differences::default();
    for code in (33..127).chain(192..256) {
        let size = 10.0 + random.f32() * 34.0;
        let (x, y) = (8.0 + random.u32(..16) as f32 / 4.0, 44.0 + random.u32(..4) as f32 / 4.0);
        let path = desk.world.look(|| {
            let (first, lines) = font::outline(font::glyph(code));
            let scale = size / font::EM;
            let mut path = PathBuilder::new();
            let mut last = None;
            for line in first..first + lines {
                let at = |word: u32| f32::from_bits(load(LINES + line * 16 + word * 4)) * scale;
                let (from, to) = ((x + at(0), y - at(1)), (x + at(2), y - at(3)));
                // The end of a contour stands in the list as a line outside everything.
                if at(0) < -100.0 {
                    path.close();
                    last = None;
                    continue;
                }
                if last.is_none() {
                    path.move_to(from.0, from.1);
                }
                path.line_to(to.0, to.1);
                last = Some(to);
            }
            path.finish().unwrap()
        });
        let text = char::from_u32(code).unwrap() as u32;
        let drawn = ours(&desk, |brush| {
            gpu_run_desktop_kernel::text::clear(1);
            gpu_run_desktop_kernel::text::push(1, core::iter::once(text));
            brush.text(1, x, y, size, WHITE);
        });
        found.add(&drawn, &theirs(&path));
    }
    found.within("glyphs", 0.03, 0.005);
}

#[test]
fn an_image_of_a_glyph_has_what_every_pixel_would_find_by_itself() {
    let (mut random, desk) = (Rng::with_seed(5), Desk::boot());
    desk.world.launch(1, 32, || font::unpack(&Team::new(1)));
    let mut seen = 0;
    for code in (33..127).chain(192..256) {
        let (size, x, y) = (6.0 + random.f32() * 60.0, random.f32() * 50.0 - 10.0, random.f32() * 60.0);
        ours(&desk, |brush| brush.glyph(code, x, y, size / font::EM, WHITE));
        desk.world.look(|| {
            if load(S_ITEMS) == 0 {
                return;
            }
            let (columns, rows) = item::touched(ITEMS);
            for column in columns {
                for top in rows.clone().step_by(4) {
                    let kept = glyphs::coverage(ITEMS, column, top);
                    for row in (top..rows.end).take(4) {
                        let found = glyphs::without_image(ITEMS, column, row) / glyphs::ONE;
                        assert_eq!(kept[(row - top) as usize], found, "{code} {size} {x} {y}: {column} {row}");
                        seen += (found != 0.0) as u32;
                    }
                }
            }
        });
    }
    assert!(seen > 10_000, "{seen} pixels");
}

#[test]
fn glyphs_look_the_same_with_new_images_kept_ones_and_none() {
    let (mut random, desk) = (Rng::with_seed(6), Desk::boot());
    desk.world.launch(1, 32, || font::unpack(&Team::new(1)));
    for _ in 0..30 {
        let glyphs: Vec<(u32, f32, f32, f32)> = (0..40)
            .map(|_| {
                let size = [12.0, 14.0, 20.0 + random.f32() * 100.0][random.usize(..3)];
                (random.u32(33..127), random.f32() * 60.0, random.f32() * 64.0, size / font::EM)
            })
            .collect();
        let drawn = || {
            desk.world.look(|| (0..MAX_TILES * 2).for_each(|word| store(TILES + word * 4, 0)));
            ours(&desk, |brush| {
                glyphs.iter().for_each(|(code, x, y, size)| brush.glyph(*code, *x, *y, *size, 0x7F80_FF40))
            })
        };
        let used = || desk.world.look(|| load(S_COVERAGE));
        let first = drawn();
        let before = used();
        assert_eq!(drawn(), first, "kept");
        assert_eq!(used(), before, "all were kept");
        // None is known, and only some find space.
        desk.world.look(|| {
            (0..MAX_KEPT_IMAGES).for_each(|i| store(KEPT_IMAGES + i * KEPT_IMAGE_BYTES, 0));
            store(S_COVERAGE, MAX_COVERAGE - random.u32(..2000));
        });
        assert_eq!(drawn(), first, "without space");
        assert_eq!(drawn(), first, "with space again");
        assert!((1..MAX_COVERAGE / 2).contains(&used()));
    }
}
