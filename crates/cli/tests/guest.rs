//! The crate gpu-run-guest in programs: one that uses every function, in every profile that could lose the functions' marks.
//!
//! Where rustc has no std for wasm32-wasip1, most of these are reported as ignored.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;
#[path = "support/with_rust.rs"]
mod with_rust;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use support::{Place, Ran};
use wasmparser::{Operator, Parser, Payload, TypeRef};
use wasmtime::{Engine, Linker, Module, Store};
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p1;
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;

fn main() {
    with_rust::run("wasm32-wasip1", &ANYWHERE, &WITH_RUST);
}

const ANYWHERE: [(&str, fn()); 14] = [
    ("marks::a_function_of_another_type_is_itself", a_function_of_another_type_is_itself),
    ("marks::through_a_table_it_is_the_operation", through_a_table_it_is_the_operation),
    ("marks::unknown_ones_are_said", unknown_ones_are_said),
    ("shared::outside_of_the_buffer_is_a_trap", outside_of_the_buffer_is_a_trap),
    ("shared::records_of_a_map_share_nothing_unasked", records_of_a_map_share_nothing_unasked),
    ("picture::without_one_is_an_error", without_one_is_an_error),
    ("picture::the_programs_exit_code_comes_first", the_programs_exit_code_comes_first),
    ("picture::without_one_no_file_is_made", without_one_no_file_is_made),
    ("picture::only_an_ordinary_file_takes_one", only_an_ordinary_file_takes_one),
    ("picture::a_file_that_is_there_is_replaced", a_file_that_is_there_is_replaced),
    ("picture::the_first_size_holds", the_first_size_holds),
    ("picture::sizes_have_limits", sizes_have_limits),
    ("picture::a_large_one_is_packed_soon", a_large_one_is_packed_soon),
    ("picture::drawn_before_a_timeout_is_written", drawn_before_a_timeout_is_written),
];

const WITH_RUST: [(&str, fn()); 12] = [
    ("package::is_complete", the_package_is_complete),
    ("profile::dev", || in_profile("dev")),
    ("profile::release", || in_profile("release")),
    ("profile::fat_lto_stripped", || in_profile("stripped")),
    ("profile::thin_lto", || in_profile("thin")),
    ("profile::size", || in_profile("size")),
    ("profile::size_fat_lto", || in_profile("small")),
    ("profile::one_codegen_unit", || in_profile("one-unit")),
    ("picture::another_size_is_a_panic", another_size_is_a_panic),
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
[profile.small]
inherits = "release"
opt-level = "z"
lto = true
[profile.one-unit]
inherits = "release"
codegen-units = 1
[workspace]
"#;

/// Returns a folder with `every.wasm`, built in this profile.
fn built(profile: &str) -> Place {
    static PACKAGE: Mutex<()> = Mutex::new(());
    let _alone = PACKAGE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // What was built is kept from test to test.
    let package = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guest-every");
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest");
    fs::create_dir_all(package.join("src")).unwrap();
    for (name, content) in [
        ("Cargo.toml", MANIFEST.replace("GUEST", guest.to_str().unwrap())),
        ("src/main.rs", include_str!("guest/every.rs").to_owned()),
    ] {
        if fs::read_to_string(package.join(name)).ok().as_ref() != Some(&content) {
            fs::write(package.join(name), content).unwrap();
        }
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--offline", "--target", "wasm32-wasip1", "--target-dir", "target"]);
    cargo.args(["--profile", profile]).current_dir(&package).env_remove("RUSTFLAGS");
    assert!(cargo.status().unwrap().success());
    let folder = if profile == "dev" { "debug" } else { profile };
    let file: PathBuf = package.join(format!("target/wasm32-wasip1/{folder}/every.wasm"));
    Place::new().with("every.wasm", fs::read(file).unwrap())
}

/// Returns which two operators each call of `shuffle` has before it, as they are shown for debugging.
fn operands_of_shuffle(wasm: &[u8]) -> Vec<[String; 2]> {
    let (mut imported, mut shuffle, mut operands) = (0, None, Vec::new());
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.unwrap() {
            Payload::ImportSection(imports) => {
                let is_function = |ty| matches!(ty, TypeRef::Func(_));
                imported = imports.into_imports().filter(|import| is_function(import.as_ref().unwrap().ty)).count();
            }
            Payload::ExportSection(exports) => {
                let mut exports = exports.into_iter().map(Result::unwrap);
                shuffle = exports.find(|export| export.name == "gpu-run:shuffle").map(|export| export.index);
            }
            Payload::CodeSectionEntry(body) => {
                let all: Vec<_> = body.get_operators_reader().unwrap().into_iter().map(Result::unwrap).collect();
                let calls = all.windows(3).filter(
                    |three| matches!(three[2], Operator::Call { function_index } if Some(function_index) == shuffle),
                );
                operands.extend(calls.map(|three| [0, 1].map(|at| format!("{:?}", three[at]))));
            }
            _ => {}
        }
    }
    assert!(imported > 0 && shuffle.is_some(), "the program imports WASI and exports `shuffle`");
    operands
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
    let line = "--device cpu --instances 4 --time 2.5 --shared-buffer 128K --png a.png every.wasm";
    let mut ran = place.run(line);
    if profile == "dev" {
        assert!((0..4).all(|me| ran.stdout.contains(&format!("[{me}] 1 and 2\n[{me}]\n"))), "{}", ran.stdout);
        assert_eq!(ran.stderr.matches("1 + 1 = 2").count(), 4, "{}", ran.stderr);
        assert_eq!(ran.stderr.matches(": 2 + 2 = 4").count(), 4, "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("src/main.rs:").count(), 4 * 4, "{}", ran.stderr);
        (0..4).for_each(|me| ran.stdout = ran.stdout.replace(&format!("[{me}] 1 and 2\n[{me}]\n"), ""));
    }
    let expected: String = (0..4).map(|me| said(me, "Some(4)", 128 << 10, 8, "2.5")).collect();
    assert_eq!(without_last(&ran.stdout), expected, "{}", ran.stderr);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    is_drawn_by(&place, 4);

    // On `cpu`, nobody would notice that an argument is missing.
    let operands = operands_of_shuffle(&fs::read(place.path().join("every.wasm")).unwrap());
    let passes_both = |[value, lane]: &[String; 2]| match profile {
        "dev" => value.starts_with("LocalGet") && lane.starts_with("LocalGet") && value != lane,
        _ => value == "I32Const { value: 8 }" && lane == "I32Const { value: 99 }",
    };
    assert!(operands.iter().any(passes_both), "{operands:?}");
}

/// Checks the picture that so many instances have drawn.
fn is_drawn_by(place: &Place, instances: u32) {
    let (width, height, bytes) = picture(place, "a.png");
    assert_eq!((width, height), (8, 4));
    let pixel = |n: u32| [(n % 8 * 30) as u8, (n / 8 * 60) as u8, (n % instances) as u8];
    assert_eq!(bytes, (0..32).flat_map(pixel).collect::<Vec<u8>>());
}

/// Returns the width, the height, and the bytes of a picture's pixels.
fn picture(place: &Place, name: &str) -> (u32, u32, Vec<u8>) {
    let file = std::io::BufReader::new(File::open(place.path().join(name)).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    assert_eq!(info.color_type, png::ColorType::Rgb);
    (info.width, info.height, bytes)
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
            assert_eq!(ran.stdout, all("None", 32), "{layout} {checks}: {}", ran.stderr);
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
        is_drawn_by(&place, instances);
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

fn unknown_ones_are_said() {
    let module = r#"(module (memory (export "gpu-run:memory") 1)
        (func (export "gpu-run:instance") (result i32) i32.const 17)
        (func (export "gpu-run:lane") (result i32) i32.const 17)
        (func (export "gpu-run:fence"))
        (func (export "_start")))"#;
    let place = Place::new().with("a.wat", module);
    let ran = place.run("--device cpu a.wat").gives(0, "");
    ran.says(&["gpu-run: a.wat asks for `gpu-run:memory` and 1 more, which this gpu-run does not know"]);
    let ran = place.run_with_input("map --device cpu a.wat", b"1\n").gives(0, "\n");
    ran.says(&["a.wat asks for `gpu-run:memory`"]);
    let known = r#"(module (func (export "gpu-run:fence")) (func (export "gpu-run:picture_size") (result i64) i64.const 0)
        (func (export "_start")))"#;
    let ran = Place::new().with("a.wat", known).run("--device cpu a.wat");
    assert_eq!(ran.stderr, "");
}

fn without_one_is_an_error() {
    let place = Place::new().with("a.wat", r#"(module (func (export "_start")))"#);
    place.run("--device cpu --png a.png a.wat").gives(1, "").says(&["drew no picture", "Frame"]);
    place.run("--device cpu --png no/such/a.png a.wat").gives(2, "").says(&["--png no/such/a.png", "hint"]);
}

fn the_programs_exit_code_comes_first() {
    let module = r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1) (func (export "_start") (call $exit (i32.const 3))))"#;
    let place = Place::new().with("exits.wat", module);
    let place = place.with("traps.wat", r#"(module (func (export "_start") unreachable))"#);
    let place = place.with("hangs.wat", r#"(module (func (export "_start") (loop br 0)))"#);
    place.run("--device cpu --png a.png exits.wat").gives(3, "").says(&["drew no picture"]);
    place.run("--device cpu --png a.png traps.wat").gives(134, "").says(&["unreachable", "drew no picture"]);
    place.run("--device cpu --timeout 0.2 --png a.png hangs.wat").gives(124, "").says(&["drew no picture"]);
}

fn without_one_no_file_is_made() {
    let place = Place::new().with("a.wat", r#"(module (func (export "_start")))"#).with("old.png", "old");
    place.run("--device cpu --png new.png a.wat").gives(1, "");
    assert!(!place.path().join("new.png").exists());
    place.run("--device cpu --png old.png a.wat").gives(1, "");
    assert_eq!(fs::read(place.path().join("old.png")).unwrap(), b"old");
}

/// A program that draws one pixel in a picture of this size, and returns what `picture` does.
fn drawing(width: u32, height: u32) -> String {
    format!(
        r#"(module
            (func $picture (export "gpu-run:picture") (param i32 i32) (result i32) (i32.const 0))
            (func $pixel (export "gpu-run:pixel") (param i32 i32))
            (func $instance (export "gpu-run:instance") (result i64) (i64.const 0))
            (func (export "draw") (result i32)
                (call $picture (i32.const {width}) (i32.const {height}))
                (call $pixel (i32.const 0) (i32.const 0x010203))))"#
    )
}

fn only_an_ordinary_file_takes_one() {
    let place = Place::new().with("a.wat", drawing(1, 1));
    let pipe = place.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::create_dir(place.path().join("folder")).unwrap();
    symlink("nowhere", place.path().join("link")).unwrap();
    let began = Instant::now();
    for name in ["pipe", "folder", "folder/", "new/", "link", "-", "/dev/null", "/dev/full", "/dev/stdout"] {
        // Nothing has run.
        let ran = place.run(&format!("--device cpu --png {name} --invoke draw a.wat")).gives(2, "");
        let shown = if name == "/dev/stdout" { "--png " } else { &format!("--png {name}: ") };
        ran.says(&[shown, "hint"]);
    }
    assert!(began.elapsed() < Duration::from_secs(20), "it waited for somebody");
    place.run("--png pipe --invoke draw a.wat").says(&["--png pipe: not an ordinary file"]);
    assert!(!place.path().join("nowhere").exists());
}

fn a_file_that_is_there_is_replaced() {
    let place = Place::new().with("a.wat", drawing(1, 1)).with("a.png", "x".repeat(1000));
    symlink("a.png", place.path().join("link.png")).unwrap();
    place.run("--device cpu --png link.png --invoke draw a.wat").gives(0, "1\n");
    assert_eq!(picture(&place, "a.png"), (1, 1, vec![1, 2, 3]));
    place.run("--device cpu --png b.png --invoke draw a.wat").gives(0, "1\n");
    assert_eq!(picture(&place, "b.png"), (1, 1, vec![1, 2, 3]));
}

fn the_first_size_holds() {
    let module = r#"(module
        (func $picture (export "gpu-run:picture") (param i32 i32) (result i32) (i32.const 0))
        (func $size (export "gpu-run:picture_size") (result i64) (i64.const 0))
        (func (export "sizes") (result i32 i32 i32 i32 i64)
            (call $picture (i32.const 3) (i32.const 2))
            (call $picture (i32.const 3) (i32.const 2))
            (call $picture (i32.const 2) (i32.const 3))
            (call $picture (i32.const 0) (i32.const 0))
            (call $size)))"#;
    let place = Place::new().with("a.wat", module);
    place.run("--device cpu --png a.png --invoke sizes a.wat").gives(0, "1\n1\n3\n2\n8589934595\n");
    let (width, height, _) = picture(&place, "a.png");
    assert_eq!((width, height), (3, 2));
    place.run("--device cpu --invoke sizes a.wat").gives(0, "0\n0\n0\n0\n0\n");
}

fn sizes_have_limits() {
    for (width, height, fits) in [
        (65536, 1, true),
        (1, 65536, true),
        (65537, 1, false),
        (1, 65537, false),
        (8193, 8192, false),
        (0, 1, false),
        (1, 0, false),
        (u32::MAX, u32::MAX, false),
    ] {
        let place = Place::new().with("a.wat", drawing(width, height));
        let ran = place.run("--device cpu --png a.png --invoke draw a.wat");
        match fits {
            true => ran.gives(0, "1\n").says(&[]),
            false => ran.gives(1, "2\n").says(&["drew no picture"]),
        };
    }
}

/// A picture whose pixels look random: nothing about it can be packed.
fn noise(width: u32, height: u32) -> String {
    format!(
        r#"(module
            (func $picture (export "gpu-run:picture") (param i32 i32) (result i32) (i32.const 0))
            (func $pixel (export "gpu-run:pixel") (param i32 i32))
            (func (export "draw") (local $i i32)
                (drop (call $picture (i32.const {width}) (i32.const {height})))
                (loop
                    (call $pixel (local.get $i) (i32.mul (local.get $i) (i32.mul (local.get $i) (i32.const 0x9e3779b1))))
                    (br_if 0 (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {}))))))"#,
        width * height
    )
}

/// With zlib's usual packing, it took 9 s.
fn a_large_one_is_packed_soon() {
    let place = Place::new().with("a.wat", noise(4096, 4096));
    // A limit of processor time is independent of what else the machine does.
    let line = format!(
        "ulimit -t 5; exec '{}' --device cpu --no-cache --png a.png --invoke draw a.wat",
        env!("CARGO_BIN_EXE_gpu-run")
    );
    let ran = Ran::from(Command::new("sh").args(["-c", &line]).current_dir(place.path()).output().unwrap());
    ran.gives(0, "");
    let mut first = [0; 8];
    File::open(place.path().join("a.png")).unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"\x89PNG\r\n\x1a\n");
}

fn drawn_before_a_timeout_is_written() {
    let module = drawing(1, 1).replace("0x010203))))", "0x010203)) (loop br 0)))");
    let place = Place::new().with("a.wat", module);
    place.run("--device cpu --timeout 0.3 --png a.png --invoke draw a.wat").gives(124, "").says(&["did not finish"]);
    assert_eq!(picture(&place, "a.png"), (1, 1, vec![1, 2, 3]));
}

fn the_package_is_complete() {
    let place = Place::new();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["package", "--allow-dirty", "--no-verify", "--offline", "--target-dir"]).arg(place.path());
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest");
    let ran = Ran::from(cargo.current_dir(guest).output().unwrap());
    assert!(ran.code == Some(0) && !ran.stderr.contains("warning"), "{}", ran.stderr);
    let list = Command::new("tar").arg("tf").arg(place.path().join("package/gpu-run-guest-0.1.0.crate")).output();
    let list = String::from_utf8(list.unwrap().stdout).unwrap();
    assert!(list.contains("/LICENSE-MIT") && list.contains("/LICENSE-APACHE") && list.contains("/README.md"), "{list}");
}

fn another_size_is_a_panic() {
    let place = built("release");
    let ran = place.run("--device cpu --instances 3 --png a.png every.wasm grow");
    assert_eq!(ran.code, Some(134), "{}", ran.stderr);
    let message = "a picture of 9 × 4 pixels: one of 8 × 4 was begun before";
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
    let ran = place.run("--device cpu every.wasm large");
    assert!(
        ran.stderr.contains("8193 × 8192 pixels is too large: it has at most 67108864, and 65536 on a side"),
        "{}",
        ran.stderr
    );
}
