//! `gpu-run desktop`: the real binary draws on `cpu`.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
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

/// A picture's width and height, and red, green and blue of each pixel.
fn picture(path: &Path) -> (u32, u32, Vec<u8>) {
    let decoder = png::Decoder::new(BufReader::new(File::open(path).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    (info.width, info.height, pixels)
}

#[test]
fn a_script_becomes_a_picture() {
    let place = Place::new().with("script", SCRIPT);
    let ran = desktop(&place, "--script script --png out.png --size 130x90 --scale 2 --stats");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.says(&["frames, in the mean", "hit test", "raster and frame end"]);
    let (width, height, pixels) = picture(&place.path().join("out.png"));
    assert_eq!((width, height), (260, 180));
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

/// The scripts in docs/desktop say in their first lines which commands make their pictures. Those that start no program give the same
/// picture always.
#[test]
fn pictures_of_the_documents_are_what_their_scripts_give() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scripts = fs::read_dir(root.join("docs/desktop")).unwrap().map(|entry| entry.unwrap().path());
    let (place, mut count) = (Place::new(), 0);
    for script in scripts.filter(|path| path.extension().is_some_and(|extension| extension == "txt")) {
        let text = fs::read_to_string(&script).unwrap();
        let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("#     gpu-run ")).collect();
        assert!(!commands.is_empty(), "{} does not say how its picture is made", script.display());
        for command in commands.into_iter().filter(|command| !command.contains(".wasm")) {
            let (line, kept) = command.split_once("--png ").unwrap();
            let (kept, options) = kept.split_once(' ').unwrap_or((kept, ""));
            let made = place.path().join("made.png");
            let mut command = place.command(&format!("{line} --png {} {options}", made.display()));
            command.env("GPU_RUN_CACHE", CACHE.path()).current_dir(&root);
            let ran = Ran::from(command.output().unwrap());
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{line}");
            let same = picture(&made) == picture(&root.join(kept));
            assert!(same, "{kept} is not what its script gives: run scripts/desktop-pictures, and look at it");
            count += 1;
        }
    }
    assert!(count >= 8, "only {count} pictures were found");
}

#[test]
fn a_picture_of_a_phase_needs_a_picture_and_a_known_phase() {
    let place = Place::new().with("script", SCRIPT);
    let ran = desktop(&place, "--script script --show layout");
    assert_eq!(ran.code, Some(2));
    ran.says(&["--png <FILE>"]);
    let ran = desktop(&place, "--script script --png out.png --show paint");
    assert_eq!(ran.code, Some(2));
    ran.says(&["'paint'", "hit-test, dispatch, layout, order, geometry, raster"]);
}
