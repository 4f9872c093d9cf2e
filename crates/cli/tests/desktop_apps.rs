//! `gpu-run desktop`: the apps that come with it do their work, on `cpu` or on the device under test. The keyboard reaches all of it.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use std::fs;
use std::sync::LazyLock;
use support::tested::device;
use support::{Place, Ran};
use tempfile::TempDir;

/// One cache for all: the kernel and the apps are compiled once.
static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

/// Prints its arguments, then what it reads, and exits with 3.
const ECHO: &str = r#"(module
    (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (func $print (param $at i32) (param $count i32)
        (i32.store (i32.const 0) (local.get $at)) (i32.store (i32.const 4) (local.get $count))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
    (func (export "_start")
        (drop (call $sizes (i32.const 16) (i32.const 20)))
        (drop (call $args (i32.const 1024) (i32.const 2048)))
        (call $print (i32.const 2048) (i32.load (i32.const 20)))
        (i32.store (i32.const 0) (i32.const 4096)) (i32.store (i32.const 4) (i32.const 100))
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
        (call $print (i32.const 4096) (i32.load (i32.const 8)))
        (call $exit (i32.const 3))))"#;

/// Runs a script on a desktop that has the folder as `here`.
fn desktop(place: &Place, options: &str, script: &str) -> Ran {
    fs::write(place.path().join("script"), script).unwrap();
    let line = format!("desktop --device {} --size 640x480 --script script --png out.png {options}", device());
    let mut command = place.command(&line);
    command.env("GPU_RUN_CACHE", CACHE.path());
    Ran::from(command.output().unwrap())
}

fn done(ran: &Ran) {
    // That a busy machine is slow is no defect of an app.
    let is_slow = |line: &&str| line.contains("for more than a second");
    let said: Vec<&str> = ran.stderr.lines().filter(|line| !is_slow(line)).collect();
    assert_eq!((ran.code, said), (Some(0), vec![]), "{}", ran.stdout);
}

/// Keys that type a line.
fn enter(text: &str) -> String {
    format!("type \"{text}\"\nkey enter\n")
}

#[test]
fn the_terminal_runs_programs_with_arguments_input_and_exit_codes() {
    let place = Place::new().with("tools/echo.wasm", wat::parse_str(ECHO).unwrap());
    let lines = ["echo one two", "and this", "echo three", "no-such-program", "tools/echo.wasm four", "five"];
    let [first, read, second, none, path, five] = lines.map(enter);
    let script = format!(
        "start Terminal\nexpect \"help\"\n{first}expect \"echoonetwo\"\n{read}expect \"echo: exit\"\n{none}expect \"no-such-program: \"\n{path}expect \"four\"\n{five}expect \"tools/echo.wasm: exit\"\n{second}expect \"three\"\n"
    );
    done(&desktop(&place, "--dir . --program echo=tools/echo.wasm", &script));
}

#[test]
fn the_terminal_lists_folders_and_shows_files() {
    let place = Place::new().with("a/b/file.txt", "what is in it").with("a/other", "");
    let script = format!(
        "start Terminal\nexpect \"help\"\n{}expect \"b/\"\n{}expect \"$ cd a/b\"\nwait 100\n{}expect \"what is in it\"\nwait 100\n{}expect \"cat: \"\nwait 100\n{}wait 200\n",
        enter("ls a"),
        enter("cd a/b"),
        enter("cat file.txt"),
        enter("cat missing"),
        enter("exit")
    );
    done(&desktop(&place, "--dir .", &script));
}

#[test]
fn the_editor_opens_changes_and_saves() {
    let place = Place::new().with("notes.txt", "first\nsecond\n");
    let script = "start Editor notes.txt\nexpect \"2 lines\"\nkey end control\ntype \"third\"\nexpect \"notes.txt *\"\n\
        key tab shift\nkey enter\nexpect \"Saved\"\n";
    let ran = desktop(&place, "--dir .", script);
    done(&ran);
    assert_eq!(fs::read_to_string(place.path().join("notes.txt")).unwrap(), "first\nsecond\nthird");
    assert!(!place.path().join("notes.txt.saving").exists());
}

#[test]
fn the_editor_loses_nothing_that_it_cannot_show() {
    let place = Place::new().with("crab.txt", "🦀").with("bytes", [0xFFu8, 0xFE]);
    for (name, why) in [("crab.txt", "cannot keep"), ("bytes", "no text"), ("missing", "Cannot open missing")] {
        let why = if name == "bytes" { "not text" } else { why };
        done(&desktop(&place, "--dir .", &format!("start Editor {name}\nexpect \"{why}\"\n")));
    }
    // With a folder that can only be read, saving says so.
    let script = "start Editor crab.txt\nexpect \"cannot keep\"\nkey tab\nkey tab\nkey tab\nkey enter\nexpect \"open it first\"\n";
    done(&desktop(&place, "--dir-ro .", script));
    assert_eq!(fs::read_to_string(place.path().join("crab.txt")).unwrap(), "🦀");
}

#[test]
fn files_are_browsed_and_opened() {
    let place = Place::new().with("folder/inner.txt", "inner").with("top.txt", "top");
    // The table has the focus after five tabs; its first row is the folder.
    let script = format!(
        "start Files\nexpect \"1 folders, \"\n{}key home\nkey enter\nexpect \"0 folders, 1 files\"\nkey home\nkey enter\nexpect \"inner.txt – Editor\"\n",
        "key tab\n".repeat(5)
    );
    done(&desktop(&place, "--dir .", &script));
}

#[test]
fn settings_mandelbrot_life_and_the_monitor_work() {
    let place = Place::new();
    let script = "start Settings\nexpect \"Appearance\"\nstart Mandelbrot\nexpect \"112000 pixels\"\n\
        start Life\nexpect \"generation 3\"\nstart Monitor\nexpect \"Geometry (µs)\"\n";
    done(&desktop(&place, "", script));
}

#[test]
fn apps_without_folders_and_programs_reach_none() {
    let place = Place::new().with("secret.txt", "secret");
    let script = format!(
        "start Terminal\nexpect \"help\"\n{}expect \"cat: \"\nwait 100\n{}expect \"$ cat /etc/passwd\"\nwait 100\n{}expect \"echo: \"\nstart Editor secret.txt\nexpect \"Cannot open\"\n",
        enter("cat secret.txt"),
        enter("cat /etc/passwd"),
        enter("echo a")
    );
    done(&desktop(&place, "", &script));
}

#[test]
fn what_is_wrong_with_apps_is_said() {
    let place = Place::new().with("Life.wasm", wat::parse_str(ECHO).unwrap()).with("text.wasm", "no module");
    desktop(&place, "Life.wasm", "frames 1\n").says(&["there already is an app `Life`"]);
    desktop(&place, "text.wasm", "frames 1\n").says(&["text.wasm"]);
    desktop(&place, "missing.wasm", "frames 1\n").says(&["missing.wasm"]);
    let ran = desktop(&place, "", "start Nothing\nframes 1\n");
    ran.says(&["`Nothing`, which is none of the desktop's apps"]);
    // A program without windows, and one that traps, end; the desktop stays.
    let traps =
        wat::parse_str("(module (memory (export \"memory\") 1) (func (export \"_start\") unreachable))").unwrap();
    let place = place.with("traps.wasm", traps);
    let ran = desktop(&place, "traps.wasm", "start Settings\nexpect \"Appearance\"\n");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.says(&["traps", "trapped"]);
}
