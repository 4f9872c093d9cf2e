//! What others have chosen, names, folders and files, and guests that ask for more than they may.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use support::{Place, Ran, wat};

/// Sets a terminal's title, clears it, goes back to the line's beginning, turns what follows around, and begins a line.
const EVIL: &str = "evil\x1b]0;owned\x07\u{9b}2J\r\u{202e}\nerror: x";
/// The same as wat writes it.
const EVIL_WAT: &str = r"evil\1b]0;owned\07\c2\9b2J\0d\e2\80\ae\0aerror: x";
/// What becomes of it.
const SHOWN: &str = r"evil\u001b]0;owned\u0007\u009b2J\u000d\u202e\u000aerror: x";

/// Runs it, and looks at every byte that comes out.
#[track_caller]
fn run(mut command: Command) -> Ran {
    let output = command.output().unwrap();
    for (stream, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let text = String::from_utf8_lossy(bytes);
        let raw = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || c == '\u{202e}';
        assert!(!text.contains(raw), "{command:?} has control characters on {stream}: {text:?}");
    }
    Ran::from(output)
}

#[track_caller]
fn gpu_run(place: &Place, line: &str, more: &[&str]) -> Ran {
    let mut command = place.command(line);
    command.args(more);
    run(command)
}

/// A name that is shown stays on its line.
#[track_caller]
fn shows(ran: Ran) -> Ran {
    let all = format!("{}{}", ran.stdout, ran.stderr);
    assert!(all.contains(SHOWN), "{all}");
    assert!(!all.contains("\nerror: x"), "{all}");
    ran
}

#[test]
fn names_from_a_module_are_shown_and_not_obeyed() {
    let module = |body: &str| wat::parse_str(format!("(module {body})").replace("EVIL", EVIL_WAT)).unwrap();
    let trap = r#"(func $f (@name "EVIL") unreachable) (func (export "_start") call $f) (func (export "EVIL"))"#;
    let place = Place::new()
        .with("trap.wasm", module(trap))
        .with("import.wasm", module(r#"(import "EVIL" "b" (func)) (func (export "_start"))"#))
        .with("import2.wasm", module(r#"(import "wasi_snapshot_preview1" "EVIL" (func)) (func (export "_start"))"#))
        .with("memory.wasm", module(r#"(import "EVIL" "EVIL" (memory 1)) (func (export "_start"))"#))
        .with("library.wasm", module(r#"(func (export "EVIL"))"#))
        .with("typed.wasm", module(r#"(func (export "EVIL") (param v128 i32))"#))
        .with("twice.wasm", module(r#"(func (export "EVIL")) (func (export "EVIL")) (func (export "_start"))"#));
    for line in ["--device cpu trap.wasm", "--device cpu --instances 3 trap.wasm", "import.wasm", "import2.wasm"] {
        shows(gpu_run(&place, line, &[]));
    }
    for line in ["memory.wasm", "library.wasm", "--device cpu twice.wasm", "--invoke evil library.wasm"] {
        shows(gpu_run(&place, line, &[]));
    }
    shows(gpu_run(&place, "explain trap.wasm", &[])).gives_code(0);
    shows(gpu_run(&place, "explain trap.wasm evil", &[])).gives_code(0);
    gpu_run(&place, "explain library.wasm evilx", &[]);
    for file in ["trap.wasm", "library.wasm"] {
        for form in ["ptx", "clif"] {
            gpu_run(&place, &format!("compile {file} -o x.{form}"), &[]);
        }
        gpu_run(&place, &format!("compile {file} -o -"), &[]);
        gpu_run(&place, &format!("-vvv --device cpu {file}"), &[]);
    }
    shows(gpu_run(&place, "--device cpu --invoke", &[EVIL, "typed.wasm"]));
    shows(gpu_run(&place, "--device cpu --invoke", &[EVIL, "trap.wasm", "too many"]));
    shows(gpu_run(&place, "--device cpu --invoke", &["no such\x1b]0;x", "library.wasm"]));
    std::fs::write(place.path().join("in.txt"), "a\nb\n").unwrap();
    shows(gpu_run(&place, "map --device cpu trap.wasm -i in.txt", &[]));
}

#[test]
fn names_of_files_are_shown_and_not_obeyed() {
    let traps = wat::parse_str(r#"(module (func (export "_start") unreachable))"#).unwrap();
    let named = |end: &str| format!("{EVIL}{end}").replace('/', "-");
    let place = Place::new()
        .with(&named(".wasm"), &traps)
        .with(&named(".txt"), "text")
        .with(&named(".wast"), "(module (func $f)) (assert_return (invoke \"\x1b]0;x\x07\") (i32.const 1))")
        .with("bad.wast", "(module \x1b]0;x\x07")
        .with("bad.wat", "(module (func \x1b]0;x\x07))")
        .with(&format!("in/{}", named("")), "record")
        .with("traps.wasm", &traps);
    shows(gpu_run(&place, "--device cpu", &[&named(".wasm")]));
    shows(gpu_run(&place, "--device cpu", &[&named(".txt")]));
    shows(gpu_run(&place, "--device cpu", &[&named(".none")]));
    shows(gpu_run(&place, "map --device cpu traps.wasm --split files -i in -o out", &[]));
    gpu_run(&place, "--device cpu bad.wat", &[]);
    gpu_run(&place, "wast --device cpu bad.wast", &[]);
    gpu_run(&place, "wast --device cpu", &[&named(".wast")]);
    gpu_run(&place, "map --device cpu traps.wasm -i", &[&named(".none")]);
    gpu_run(&place, "--device cpu traps.wasm --dir", &[EVIL]);
    for option in ["--dir", "--dir-ro", "--cache-dir", "--env", "--timeout", "--device", EVIL] {
        gpu_run(&place, "", &[option, EVIL, "traps.wasm"]);
    }
    // What the cache says of them.
    let cached = |line: &str, more: &[&str]| {
        let mut command = place.command(line);
        command.args(more).env("GPU_RUN_CACHE", place.path().join(format!("cache {}", "\x1b]0;x")));
        run(command)
    };
    shows(cached("cache preload --device cpu", &[&named(".wasm")]));
    shows(cached("cache list", &[]));
    cached("cache list --json", &[]).shows_json(SHOWN);
    for line in ["cache stats", "cache stats --json", "cache path", "cache verify", "cache clear"] {
        cached(line, &[]).gives_code(0);
    }
    gpu_run(&place, "boot --device cpu --for 1s --replay", &[&named(".txt")]);
    gpu_run(&place, "boot --device cpu --for 1s --resume", &[&named(".txt")]);
}

impl Ran {
    #[track_caller]
    fn gives_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        self
    }

    /// One object a line, escaped or not, and the program's name as it is shown.
    #[track_caller]
    fn shows_json(self, shown: &str) {
        let object: serde_json::Value = serde_json::from_str(self.stdout.lines().next().unwrap()).unwrap();
        assert!(object["program"].as_str().unwrap().contains(shown), "{object}");
    }
}

/// `open.wat` for another descriptor, another name of three letters, and other flags.
fn opens(fd: u32, path: &str, oflags: u32, rights: u32) -> Vec<u8> {
    let text = wat!("open").replace("3 (; fd ;)", &fd.to_string()).replace("old", path);
    let text = text.replace("0 (; oflags ;)", &oflags.to_string()).replace("2 (; rights ;)", &rights.to_string());
    wat::parse_str(text).unwrap()
}

const ROFS: i32 = 69;

#[test]
fn a_folder_given_to_be_read_is_not_written() {
    let place = Place::new()
        .with("d/old", "old")
        .with("read.wasm", opens(3, "old", 0, 2))
        .with("write.wasm", opens(3, "old", 0, 64))
        .with("truncate.wasm", opens(3, "old", 8, 2))
        .with("create.wasm", opens(3, "new", 1, 64))
        .with("second.wasm", opens(4, "new", 1, 64))
        .with("in.txt", "a\n");
    for options in ["--dir-ro d", "--dir-ro=d::/x", "--instances 3 --dir-ro d"] {
        gpu_run(&place, &format!("--device cpu {options} read.wasm"), &[]).gives_code(0);
        for file in ["write", "truncate", "create"] {
            gpu_run(&place, &format!("--device cpu {options} {file}.wasm"), &[]).gives_code(ROFS);
        }
    }
    let mapped = gpu_run(&place, "map --device cpu --dir-ro d create.wasm -i in.txt", &[]);
    mapped.gives_code(1).says(&["exited with 69"]);
    assert_eq!(std::fs::read_dir(place.path().join("d")).unwrap().count(), 1);
    // Of both, the folder that may be written comes first, and each is as it was given.
    for options in ["--dir d::/a --dir-ro d::/b", "--dir-ro d::/b --dir d::/a", "--dir-ro d::/b --dir-ro d::/c"] {
        gpu_run(&place, &format!("--device cpu {options} second.wasm"), &[]).gives_code(ROFS);
    }
    assert_eq!(std::fs::read(place.path().join("d/old")).unwrap(), b"old");
    gpu_run(&place, "--device cpu --dir d::/a --dir-ro d::/b create.wasm", &[]).gives_code(0);
    assert_eq!(std::fs::read_dir(place.path().join("d")).unwrap().count(), 2);
    gpu_run(&place, "--dir-ro nowhere read.wasm", &[]).gives_code(2).says(&["--dir-ro nowhere: no such folder"]);
}

/// `random_bytes.wat` for so many bytes, in a memory of so many pages.
fn random(pages: u32, bytes: u32) -> Vec<u8> {
    let text = wat!("random_bytes").replace("1 (; pages ;)", &pages.to_string());
    let text = text.replace("64 (; bytes ;)", &bytes.to_string()).replace("56 (; last ;)", &(bytes - 8).to_string());
    wat::parse_str(text).unwrap()
}

#[test]
fn the_host_makes_no_more_random_bytes_at_once_than_a_piece() {
    let place = Place::new().with("bomb.wasm", random(1, 64 << 20)).with("large.wasm", random(64, (3 << 20) + 5));
    let calls = |file: &str, code| {
        let ran = gpu_run(&place, &format!("--device cpu --stats=json {file}"), &[]).gives_code(code);
        let object: serde_json::Value = serde_json::from_str(ran.stderr.lines().last().unwrap()).unwrap();
        object["host_calls"].as_u64().unwrap()
    };
    assert_eq!(calls("bomb.wasm", 134), 0, "the host was asked for what does not fit the guest's memory");
    assert_eq!(calls("large.wasm", 0), 49, "64 KiB at a time");
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_cache_that_others_may_write_to_is_not_run_from() {
    let place = Place::new().with("a.wasm", wat::parse_str(r#"(module (func (export "_start")))"#).unwrap());
    let cache = place.path().join("cache");
    let with_cache = |line: &str| {
        let mut command = place.command(line);
        command.env("GPU_RUN_CACHE", &cache);
        run(command)
    };
    let hit = |ran: Ran| ran.gives_code(0).stderr.contains("cache    hit");
    let app = "--device cpu --stats a.wasm";
    assert!(!hit(with_cache(app)) && hit(with_cache(app)));
    set_mode(&cache, 0o777);
    let refused = with_cache(app).says(&["other users can write to it", "0777"]);
    assert_eq!(refused.stderr.lines().filter(|line| line.contains("0777")).count(), 1, "{}", refused.stderr);
    assert!(!hit(refused));
    for line in ["cache list", "cache stats", "cache verify", "cache prune", "cache clear"] {
        with_cache(line).gives_code(1).says(&["other users can write to it"]);
    }
    set_mode(&cache, 0o755);
    assert!(hit(with_cache(app)));
    let entry = find(&cache, "entry".as_ref());
    set_mode(&entry, 0o666);
    assert!(!hit(with_cache(app).says(&["not using a compiled program", "0666"])));
    assert!(hit(with_cache(app)));
}

/// The file below a folder with this extension.
fn find(folder: &Path, extension: &OsStr) -> std::path::PathBuf {
    let mut paths = vec![folder.to_owned()];
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension() == Some(extension) {
            return path;
        }
    }
    panic!("no .{} in {}", extension.display(), folder.display());
}
