//! Pictures of phases differ from the plain picture where something was found, and nowhere else; they are the same for every team.

use crate::run;
use gpu_run_desktop::{Desktop, Overlay, Picture, map};

const SIZE: (u32, u32) = (384, 240);
const SCENE: &str = "window back \"Back\" left=10 top=10 width=180 height=110\n\
    label l in back \"Label\"\n\
    window front \"Front\" left=160 top=60 width=200 height=170\n\
    field f in front \"Text\" content-width=60\n\
    button b in front \"Go\" margin-left=8\n\
    hover b\nset f focus=yes\nsettle\n\
    text l \"Other\"\n";
/// Left, top, right, bottom of the two windows.
const WINDOWS: [[u32; 4]; 2] = [[10, 10, 190, 120], [160, 60, 360, 230]];

fn contains([left, top, right, bottom]: [u32; 4], (x, y): (u32, u32)) -> bool {
    (left..right).contains(&x) && (top..bottom).contains(&y)
}

/// The pixels in which two pictures differ.
fn differing(a: &Picture, b: &Picture) -> Vec<(u32, u32)> {
    assert_eq!((a.width, a.height), (b.width, b.height));
    let pairs = a.pixels.chunks(4).zip(b.pixels.chunks(4));
    (0..).zip(pairs).filter(|(_, (a, b))| a != b).map(|(i, _)| (i % a.width, i / a.width)).collect()
}

fn changed(desktop: &Desktop, phase: Overlay) -> Vec<(u32, u32)> {
    differing(&desktop.picture().unwrap(), &desktop.explained(phase).unwrap())
}

/// A widget's box in whole pixels, and so much around it.
fn around(desktop: &Desktop, widget: u32, by: u32) -> [u32; 4] {
    let at = |field: u32| f32::from_bits(desktop.word(field + widget * 4).unwrap());
    let (x, y) = (at(map::W_AT_X), at(map::W_AT_Y));
    let [left, top] = [x, y].map(|at| (at.round() as u32).saturating_sub(by));
    let [right, bottom] = [x + at(map::W_W), y + at(map::W_H)].map(|at| at.round() as u32 + by);
    [left, top, right, bottom]
}

#[test]
fn the_hit_test_tints_widgets_and_not_the_desktop() {
    let desktop = run(SCENE, SIZE, (1, 32));
    let changed = changed(&desktop, Overlay::HitTest);
    assert!(changed.iter().all(|at| WINDOWS.iter().any(|window| contains(*window, *at))));
    let within = (180 * 110 + 200 * 170 - 30 * 60) as f32;
    assert!(changed.len() as f32 > 0.99 * within, "{} of {within}", changed.len());
    // Widgets have a colour each, of the same ground.
    let picture = desktop.explained(Overlay::HitTest).unwrap();
    let at = |x: u32, y: u32| picture.pixels[((y * SIZE.0 + x) * 4) as usize..][..4].to_vec();
    let colours = [at(20, 110), at(350, 220), at(170, 110)];
    assert!(colours[0] != colours[1] && colours[1] == colours[2]);
}

#[test]
fn the_layout_has_boxes_padding_and_margins() {
    let desktop = run(SCENE, SIZE, (1, 32));
    let changed = changed(&desktop, Overlay::Layout);
    assert!(changed.iter().all(|at| WINDOWS.iter().any(|window| contains(*window, *at))));
    // The corners of the button's box, its padding, the window's padding, and the button's margin.
    let [left, top, right, bottom] = around(&desktop, 5, 0);
    let marked = [(left, top), (right - 1, bottom - 1), (left + 5, top + 3), (left - 5, top + 3), (166, 200)];
    marked.into_iter().for_each(|at| assert!(changed.contains(&at), "{at:?}"));
    // What is neither: the inside of the window's content below the button, and of the button's text.
    assert!(!changed.contains(&(left + 40, bottom + 5)) && !changed.contains(&(left + 30, top + 16)));
}

#[test]
fn the_order_numbers_widgets_within_their_windows() {
    let desktop = run(SCENE, SIZE, (1, 32));
    let changed = changed(&desktop, Overlay::Order);
    assert!(changed.iter().all(|at| WINDOWS.iter().any(|window| contains(*window, *at))));
    // The number of the field is at its corner; what windows draw on is outlined.
    let [left, top, ..] = around(&desktop, 4, 0);
    assert!(changed.contains(&(left, top)) && changed.contains(&(10, 80)) && changed.contains(&(359, 150)));
    assert!(changed.len() < 3000, "{}", changed.len());
}

#[test]
fn geometry_is_warm_where_items_are() {
    let desktop = run(SCENE, SIZE, (1, 32));
    let changed = changed(&desktop, Overlay::Geometry);
    assert!(changed.contains(&(80, 60)) && changed.contains(&(220, 120)));
    // Only the ground, and neither a block's border nor its number.
    let bare = |at: &(u32, u32)| contains([2, 200, 60, 238], *at);
    assert_eq!(changed.iter().find(|at| bare(at)), None);
}

#[test]
fn the_raster_has_the_tiles_that_the_last_frame_drew() {
    let desktop = run(SCENE, SIZE, (1, 32));
    let columns = SIZE.0 / map::TILE_WIDTH;
    let is_drawn = |tile: &u32| desktop.word(map::DAMAGE + tile * 4).unwrap() != 0;
    let drawn: Vec<u32> = (0..columns * SIZE.1 / map::TILE_HEIGHT).filter(is_drawn).collect();
    assert!(!drawn.is_empty());
    let [left, top, right, bottom] = around(&desktop, 2, 4);
    let changed = changed(&desktop, Overlay::Raster);
    assert_eq!(changed.len() as u32, drawn.len() as u32 * map::TILE_WIDTH * map::TILE_HEIGHT);
    let tile = |(x, y): &(u32, u32)| y / map::TILE_HEIGHT * columns + x / map::TILE_WIDTH;
    assert!(changed.iter().all(|at| drawn.contains(&tile(at))));
    // Only the label's text changed.
    let near = [left.saturating_sub(32), top.saturating_sub(8), right + 32, bottom + 8];
    assert!(changed.iter().all(|at| contains(near, *at)));
}

#[test]
fn dispatch_marks_the_pointer_and_what_it_and_the_keyboard_are_on() {
    let desktop = run(SCENE, SIZE, (1, 32));
    let changed = changed(&desktop, Overlay::Dispatch);
    let near = [around(&desktop, 4, 16), around(&desktop, 5, 16)];
    assert!(changed.iter().all(|at| near.iter().any(|near| contains(*near, *at))));
    let marks = [around(&desktop, 4, 3), around(&desktop, 5, 3)];
    assert!(marks.iter().all(|[left, top, ..]| changed.contains(&(*left, *top))));
    let (x, y) = desktop.middle(5).unwrap().unwrap();
    assert!(changed.contains(&(x as u32, y as u32)));
}

#[test]
fn every_team_has_the_same_pictures_and_looking_changes_nothing() {
    let (one, two) = (run(SCENE, SIZE, (1, 32)), run(SCENE, SIZE, (2, 64)));
    let plain = one.picture().unwrap();
    for (name, phase) in Overlay::ALL {
        assert_eq!(one.explained(phase).unwrap(), two.explained(phase).unwrap(), "{name}");
        assert!(!differing(&plain, &one.explained(phase).unwrap()).is_empty(), "{name}");
    }
    assert_eq!(one.picture().unwrap(), plain);
}
