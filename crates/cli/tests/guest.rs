//! The crate gpu-run-guest in programs: one that uses every function, in every profile that could lose the functions' marks.
//!
//! Where rustc has no std for wasm32-wasip1, most of these are reported as ignored.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;
#[path = "support/with_rust.rs"]
mod with_rust;

use std::fs::File;
use std::path::Path;
use std::process::Command;
use support::Place;
use wasmtime::{Engine, Linker, Module, Store};
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p1;
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;

fn main() {
    with_rust::run("wasm32-wasip1", &ANYWHERE, &WITH_RUST);
}

const ANYWHERE: [(&str, fn()); 5] = [
    ("marks::a_function_of_another_type_is_itself", a_function_of_another_type_is_itself),
    ("marks::through_a_table_it_is_the_operation", through_a_table_it_is_the_operation),
    ("shared::outside_of_the_buffer_is_a_trap", outside_of_the_buffer_is_a_trap),
    ("shared::records_of_a_map_share_nothing_unasked", records_of_a_map_share_nothing_unasked),
    ("picture::without_one_is_an_error", without_one_is_an_error),
];

const WITH_RUST: [(&str, fn()); 8] = [
    ("profile::dev", || in_profile("dev")),
    ("profile::release", || in_profile("release")),
    ("profile::fat_lto_stripped", || in_profile("stripped")),
    ("profile::thin_lto", || in_profile("thin")),
    ("profile::size", || in_profile("size")),
    ("builds::all_say_the_same", all_builds_say_the_same),
    ("wasmtime::runs_it_as_one_instance", wasmtime_runs_it_as_one_instance),
    ("picture::instances_draw_it_together", instances_draw_a_picture_together),
];

const MANIFEST: &str = r#"
[package]
name = "every"
version = "0.1.0"
edition = "2024"
[dependencies]
gpu-run-guest = { path = "GUEST" }
[profile.stripped]
inherits = "release"
lto = "fat"
strip = true
codegen-units = 1
panic = "abort"
[profile.thin]
inherits = "release"
lto = "thin"
[profile.size]
inherits = "release"
opt-level = "z"
[workspace]
"#;

/// Returns a folder with `every.wasm`, built in this profile.
fn built(profile: &str) -> Place {
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest");
    let place = Place::new()
        .with("Cargo.toml", MANIFEST.replace("GUEST", guest.to_str().unwrap()))
        .with("src/main.rs", include_str!("guest/every.rs"));
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--offline", "--target", "wasm32-wasip1", "--target-dir", "target"]);
    cargo.args(["--profile", profile]).current_dir(place.path()).env_remove("RUSTFLAGS");
    assert!(cargo.status().unwrap().success());
    let folder = if profile == "dev" { "debug" } else { profile };
    let file = format!("target/wasm32-wasip1/{folder}/every.wasm");
    std::fs::copy(place.path().join(file), place.path().join("every.wasm")).unwrap();
    place
}

/// What an instance prints of a release build.
fn said(instance: u64, instances: &str, bytes: u64, pixels: u32, time: &str) -> String {
    format!(
        "instance {instance} of {instances}, thread 0 of 1\n\
         lane is active: 1, lanes: 1\n\
         time goes on: true\n\
         ballots: 1 0\n\
         shuffles: 7 8\n\
         reduced: [5, 6, 7, 8, 9, 10]\n\
         fast: [true, true, true, true, true, true, true]\n\
         buffer: {bytes}\n\
         u32: [15, 6, 6, 7] (5, Ok(6), Err(7))\n\
         u64: [13194139533315, 6597069766656, 6597069766656, 7696581394432] (5497558138880, Ok(6), Err(7696581394432))\n\
         dbg: 2\n\
         picture: 8 × 4, pixels {pixels}\n\
         time: {time}\n"
    )
}

const LAST: &str = "sum is right: true\n";

/// Returns what was printed without the line of the instance that ended last, which there must be once.
fn without_last(stdout: &str) -> String {
    assert_eq!(stdout.matches(LAST).count(), 1, "{stdout}");
    stdout.replace(LAST, "")
}

fn in_profile(profile: &str) {
    let place = built(profile);
    let mut ran = place.run("--device cpu --instances 4 --time 2.5 --shared-buffer 128K every.wasm");
    if profile == "dev" {
        assert!((0..4).all(|me| ran.stdout.contains(&format!("[{me}] 1 and 2\n"))), "{}", ran.stdout);
        assert_eq!(ran.stderr.matches("1 + 1 = 2").count(), 4, "{}", ran.stderr);
        (0..4).for_each(|me| ran.stdout = ran.stdout.replace(&format!("[{me}] 1 and 2\n"), ""));
    }
    let expected: String = (0..4).map(|me| said(me, "Some(4)", 128 << 10, 8, "2.5")).collect();
    assert_eq!(without_last(&ran.stdout), expected, "{}", ran.stderr);
}

fn all_builds_say_the_same() {
    let place = built("release");
    let all = |instances: &str, pixels| (0..40).map(|me| said(me, instances, 65536, pixels, "0")).collect::<String>();
    let alone = place.run("--device cpu every.wasm");
    assert_eq!(without_last(&alone.stdout), said(0, "Some(1)", 65536, 32, "0"));
    for layout in ["linear", "interleaved"] {
        let ran = place.run(&format!("--device cpu --layout {layout} --instances 40 every.wasm"));
        // 32 pixels: the last eight instances draw none.
        let expected: String = (0..40).map(|me| said(me, "Some(40)", 65536, u32::from(me < 32), "0")).collect();
        assert_eq!(without_last(&ran.stdout), expected, "{layout}: {}", ran.stderr);
        for checks in ["exact", "speculative"] {
            let line = format!("map --device cpu --layout {layout} --checks {checks} --shared-buffer 64K every.wasm");
            let ran = place.run_with_input(&line, "x\n".repeat(40).as_bytes());
            // Here, each instance is all there are.
            let printed = ran.stdout.replace(LAST, "");
            assert_eq!(printed, all("None", 32), "{layout} {checks}: {}", ran.stderr);
        }
    }
}

fn wasmtime_runs_it_as_one_instance() {
    let place = built("stripped");
    let engine = Engine::default();
    let module = Module::from_file(&engine, place.path().join("every.wasm")).unwrap();
    let mut linker = Linker::new(&engine);
    p1::add_to_linker_sync(&mut linker, |context| context).unwrap();
    let stdout = MemoryOutputPipe::new(1 << 20);
    let context = WasiCtxBuilder::new().stdout(stdout.clone()).build_p1();
    let mut store = Store::new(&engine, context);
    let instance = linker.instantiate(&mut store, &module).unwrap();
    instance.get_typed_func::<(), ()>(&mut store, "_start").unwrap().call(&mut store, ()).unwrap();
    let printed = String::from_utf8(stdout.contents().to_vec()).unwrap();
    assert_eq!(without_last(&printed), said(0, "Some(1)", 65536, 32, "0"));
}

fn instances_draw_a_picture_together() {
    let place = built("release");
    for instances in [1, 3, 50] {
        let ran = place.run(&format!("--device cpu --instances {instances} --png a.png every.wasm"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let file = std::io::BufReader::new(File::open(place.path().join("a.png")).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!((info.width, info.height, info.color_type), (8, 4, png::ColorType::Rgb));
        let pixel = |n: u32| [(n % 8 * 30) as u8, (n / 8 * 60) as u8, (n % instances) as u8];
        assert_eq!(bytes, (0..32).flat_map(pixel).collect::<Vec<u8>>());
    }
    let mut named = place.command("--device cpu --env GPU_RUN_PPM=a.ppm --dir . every.wasm");
    assert!(named.output().unwrap().status.success());
    assert!(std::fs::read(place.path().join("a.ppm")).unwrap().starts_with(b"P6\n8 4\n255\n\0\0\0\x1e\0\0"));
}

fn a_function_of_another_type_is_itself() {
    let module = r#"(module
        (func $a (export "gpu-run:instance") (result i32) i32.const 17)
        (func $b (export "gpu-run:lane") (param i32) (result i32) local.get 0)
        (func (export "f") (result i32) (i32.add (call $a) (call $b (i32.const 4)))))"#;
    Place::new().with("a.wat", module).run("--device cpu --invoke f a.wat").gives(0, "21\n");
}

fn through_a_table_it_is_the_operation() {
    let module = r#"(module (table funcref (elem $instance))
        (func $instance (export "gpu-run:instance") (result i64) i64.const 17)
        (func (export "f") (result i64) (call_indirect (result i64) (i32.const 0))))"#;
    Place::new().with("a.wat", module).run("--device cpu --instances 3 --invoke f a.wat").gives(0, "0\n1\n2\n");
}

fn outside_of_the_buffer_is_a_trap() {
    let module = |at: i64| {
        format!(
            r#"(module (func $add (export "gpu-run:shared_add_32") (param i32 i32) (result i32) i32.const 0)
                (func (export "f") (result i32) (call $add (i32.const {at}) (i32.const 1))))"#
        )
    };
    let run = |at| Place::new().with("a.wat", module(at)).run("--device cpu --shared-buffer 1K --invoke f a.wat");
    run(0).gives(0, "0\n");
    run(1020).gives(0, "0\n");
    for at in [1024, 1021, 2, -4, i64::from(i32::MIN)] {
        run(at).gives(134, "").says(&["out of bounds memory access"]);
    }
    let place = Place::new().with("a.wat", module(0));
    place.run("--shared-buffer 3 --invoke f a.wat").gives(2, "").says(&["multiple of 8"]);
}

fn records_of_a_map_share_nothing_unasked() {
    let module = r#"(module (memory (export "memory") 1)
        (func $add (export "gpu-run:shared_add_32") (param i32 i32) (result i32) i32.const 0)
        (func (export "_start") (drop (call $add (i32.const 0) (i32.const 1)))))"#;
    let place = Place::new().with("a.wat", module);
    let ran = place.run_with_input("map --device cpu a.wat", b"1\n2\n");
    assert_eq!(ran.stderr.matches("out of bounds memory access").count(), 2, "{}", ran.stderr);
    place.run_with_input("map --device cpu --shared-buffer 64 a.wat", b"1\n2\n").gives(0, "\n\n");
}

fn without_one_is_an_error() {
    let place = Place::new().with("a.wat", r#"(module (func (export "_start")))"#);
    place.run("--device cpu --png a.png a.wat").gives(2, "").says(&["drew no picture", "Frame"]);
    place.run("--device cpu --png no/such/a.png a.wat").gives(2, "").says(&["--png no/such/a.png", "hint"]);
}
