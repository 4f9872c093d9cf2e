//! `gpu-run desktop`: the real binary draws on `cpu`.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use std::fs::File;
use std::io::BufReader;
use std::sync::LazyLock;
use support::{Place, Ran};
use tempfile::TempDir;

/// One cache for all: the kernel is compiled once.
static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

const SCRIPT: &str =
    "theme dark\nwindow w \"W\" left=20 top=10\nbutton b in w \"Go\" look=strong\ndrag w 10 5 over 3\nhover b\n";

fn desktop(place: &Place, line: &str) -> Ran {
    let mut command = place.command(&format!("desktop --device cpu --threads 32 {line}"));
    command.env("GPU_RUN_CACHE", CACHE.path());
    Ran::from(command.output().unwrap())
}

#[test]
fn a_script_becomes_a_picture() {
    let place = Place::new().with("script", SCRIPT);
    let ran = desktop(&place, "--script script --png out.png --size 130x90 --scale 2 --stats");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.says(&["frames, in the mean", "hit test", "raster and frame end"]);
    let decoder = png::Decoder::new(BufReader::new(File::open(place.path().join("out.png")).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (260, 180));
    // The dark desktop, and in the window the button's blue.
    let at = |x: usize, y: usize| [0, 1, 2].map(|channel| pixels[(y * 260 + x) * 3 + channel]);
    assert!(at(4, 4).iter().all(|value| *value < 64), "{:?}", at(4, 4));
    let blue = |[red, _, blue]: [u8; 3]| blue > 180 && red < 120;
    assert!((0..260).any(|x| (0..180).any(|y| blue(at(x, y)))));
}

#[test]
fn what_cannot_be_drawn_is_said() {
    let place = Place::new()
        .with("wrong", "window w\nbutton b in v\n")
        .with("narrow", "window w\nbutton b in w\nset b width=-5\n");
    let ran = desktop(&place, "--script wrong --png out.png");
    assert_eq!(ran.code, Some(2));
    ran.says(&["wrong, line 2: there is no widget `v`"]);
    let ran = desktop(&place, "--script narrow --png out.png --size 80x60");
    assert_eq!(ran.code, Some(1));
    ran.says(&["the desktop refused 1 commands of the script, up to line 3"]);
    desktop(&place, "--script nowhere --png out.png").says(&["--script nowhere"]);
    desktop(&place, "--script wrong --png out.png --size 4000x100").says(&["4000 by 100 pixels", "3840 by 2160"]);
    desktop(&place, "--script wrong --png out.png --size large").says(&["1280x800"]);
}
