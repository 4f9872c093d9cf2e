//! Parts of std that only a nightly compiler takes, and the newest stable ones: what a program prints on the device must be what it
//! prints natively. docs/std.md names these tests.
//!
//! Where rustc has no std for wasm32-wasip1, they are reported as ignored.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;
#[path = "support/with_rust.rs"]
mod with_rust;

use std::process::Command;
use support::{Place, Ran};

fn main() {
    with_rust::run("wasm32-wasip1", &[], &[("unstable", unstable), ("range", range)]);
}

fn unstable() {
    // As on a nightly compiler.
    prints_what_it_prints_natively(include_str!("unstable_std/unstable.rs"), "1");
}

fn range() {
    prints_what_it_prints_natively(include_str!("unstable_std/range.rs"), "0");
}

fn prints_what_it_prints_natively(source: &str, bootstrap: &str) {
    let place = Place::new().with("main.rs", source);
    let rustc = |args: &[&str]| {
        let mut command = Command::new(with_rust::rustc());
        command.args(["--edition", "2024", "-O", "main.rs"]).args(args).current_dir(place.path());
        assert!(command.env("RUSTC_BOOTSTRAP", bootstrap).status().unwrap().success());
    };
    rustc(&["-o", "native"]);
    rustc(&["-o", "app.wasm", "--target", "wasm32-wasip1"]);
    let native = Ran::from(Command::new(place.path().join("native")).output().unwrap());
    assert_eq!(native.code, Some(0), "{}", native.stderr);
    assert!(native.stdout.lines().count() > 2, "{}", native.stdout);
    place.run("--device cpu app.wasm").gives(0, &native.stdout);
}
