//! `gpu-run map`, the real binary: order and count, failures, every way of splitting, and what is left after an interruption.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::Ran;
use tempfile::TempDir;

/// A folder of its own, with the guests in it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, body) in
            [("echo", ECHO), ("cat", CAT), ("args", ARGS), ("number", NUMBER), ("slow", &slow()), ("stuck", STUCK)]
        {
            place.write(&format!("{name}.wat"), guest(body));
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[track_caller]
    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Everything after `map`; always on the cpu, and never for ever.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-run"));
        let (program, rest) = line.split_once(' ').unwrap_or((line, ""));
        command.args(["map", program, "--device", "cpu"]).args(rest.split_whitespace());
        command.current_dir(self.0.path()).env_remove("GPU_RUN_LOG").env("GPU_RUN_CACHE", "off").stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Ran {
        self.command(line).output().unwrap().into()
    }

    fn run_with_input(&self, line: &str, input: &[u8]) -> Ran {
        let mut child = self.start(line, Stdio::piped());
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let ran = child.wait_with_output().unwrap().into();
        feeder.join().unwrap();
        ran
    }

    fn start(&self, line: &str, stdin: Stdio) -> Child {
        self.command(line).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

// ---- the guests ---------------------------------------------------------------------------------

/// A command with WASI's functions, a few of our own, and this body for `_start`.
fn guest(body: &str) -> String {
    format!(
        r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $environ_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes_get (param i32 i32) (result i32)))
  (memory (export "memory") 3)
  (data (i32.const 512) "half an answer")
  (data (i32.const 544) "it went wrong\n")
  ;; writes `length` bytes at `at` to `fd`
  (func $write (param $fd i32) (param $at i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
  ;; reads up to 64 KiB of stdin to 65536, and says how much
  (func $read (result i32)
    (i32.store (i32.const 0) (i32.const 65536))
    (i32.store (i32.const 4) (i32.const 65536))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.load (i32.const 8)))
  (func $begins (param $with i32) (result i32) (i32.eq (i32.load8_u (i32.const 65536)) (local.get $with)))
  (func (export "_start") (local $n i32) {body}))"#
    )
}

/// Writes its stdin, unless it begins with `t` (writes half of it and traps), `e` (exits with 3) or `q` (writes nothing).
const ECHO: &str = r#"
  (local.set $n (call $read))
  (if (call $begins (i32.const 0x71)) (then return))
  (if (call $begins (i32.const 0x74)) (then
    (call $write (i32.const 1) (i32.const 512) (i32.const 14))
    (call $write (i32.const 2) (i32.const 544) (i32.const 14))
    unreachable))
  (call $write (i32.const 1) (i32.const 65536) (local.get $n))
  (if (call $begins (i32.const 0x65)) (then (call $proc_exit (i32.const 3))))"#;

/// Copies stdin of any length.
const CAT: &str = r#"
  (loop $again
    (if (local.tee $n (call $read)) (then
      (call $write (i32.const 1) (i32.const 65536) (local.get $n))
      (br $again))))"#;

/// Writes its arguments, each ended by a NUL.
const ARGS: &str = r#"
  (drop (call $args_sizes_get (i32.const 16) (i32.const 20)))
  (drop (call $args_get (i32.const 1024) (i32.const 65536)))
  (call $write (i32.const 1) (i32.const 65536) (i32.load (i32.const 20)))"#;

/// Writes its environment, each variable ended by a NUL.
const NUMBER: &str = r#"
  (drop (call $environ_sizes_get (i32.const 16) (i32.const 20)))
  (drop (call $environ_get (i32.const 1024) (i32.const 65536)))
  (call $write (i32.const 1) (i32.const 65536) (i32.load (i32.const 20)))"#;

const STUCK: &str = "(if (i32.eq (call $read) (i32.const 2)) (then (loop $again (br $again))))";

/// The same as `ECHO`, after some milliseconds of work.
fn slow() -> String {
    format!(
        "(local.set $n (i32.const 9000000)) (loop $work (br_if $work (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) {ECHO}"
    )
}

fn lines(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, i| {
        writeln!(text, "line {i} {}", "x".repeat(i * 7919 % 50)).unwrap();
        text
    })
}

// ---- order, count, forms of input and output ----------------------------------------------------

#[test]
fn every_line_gives_one_record_in_order_whatever_the_batch() {
    let place = Place::new();
    let text = lines(300);
    place.write("in.txt", &text);
    for batch in ["", "--batch 1", "--batch 7", "--batch 299", "--batch 300", "--batch 100000"] {
        place.run(&format!("echo.wat --input in.txt {batch}")).gives(0, &text).says(&["300 records, 0 failed"]);
    }
    place.run("echo.wat -i in.txt -o out.txt --batch 64").gives(0, "");
    assert_eq!(place.read("out.txt"), text);
    assert!(!place.has("out.txt.gpu-run-map"), "a finished output has no journal");
    place.run_with_input("echo.wat --layout interleaved --batch 40 -i -", text.as_bytes()).gives(0, &text);
}

#[test]
fn a_newline_is_added_where_it_is_missing_and_nothing_else() {
    let place = Place::new();
    place
        .run_with_input("echo.wat", b"a\nq\n\nb\r\nlast")
        .gives(0, "a\n\n\nb\r\nlast\n")
        .says(&["5 records, 0 failed"]);
    place.run_with_input("args.wat {}", b"x y\r\n\nz").gives(0, "args.wat\0x y\0\nargs.wat\0\0\nargs.wat\0z\0\n");
}

#[test]
fn an_empty_input_gives_an_empty_output() {
    let place = Place::new();
    place.write("empty", "");
    fs::create_dir(place.path("folder")).unwrap();
    place.run_with_input("echo.wat", b"").gives(0, "").says(&["0 records, 0 failed"]);
    place.run("echo.wat -i empty -o out").gives(0, "");
    assert_eq!(place.read("out"), "");
    place.run("echo.wat -i empty --split csv").gives(0, "");
    place.run("echo.wat -i folder -o outs").gives(0, "");
    assert!(place.path("outs").is_dir());
}

#[test]
fn numbers_are_counted_over_the_whole_input() {
    let place = Place::new();
    let expected: String = (0..25).map(|i| format!("A=b\0GPU_RUN_INSTANCE={i}\0\n")).collect();
    place.run_with_input("number.wat --batch 4 --env A=b", &[b'\n'; 25]).gives(0, &expected);
}

#[test]
fn braces_in_arguments_are_the_record_and_the_rest_is_the_guests() {
    let place = Place::new();
    place
        .run_with_input("args.wat --batch 1 one --x={}", b"a\nb\n")
        .gives(0, "args.wat\0one\0--x=a\0\nargs.wat\0one\0--x=b\0\n");
    place.run_with_input("args.wat -- --batch {}{}", b"a\n").gives(0, "args.wat\0--batch\0aa\0\n");
    place.run_with_input("args.wat same", b"a\nb\n").gives(0, "args.wat\0same\0\nargs.wat\0same\0\n");
    let ran = place.run_with_input("args.wat {}", b"a\nb\0c\nd\n");
    ran.gives(1, "args.wat\0a\0\n\nargs.wat\0d\0\n").says(&["line 2 (record 1)", "NUL", "3 records, 1 failed"]);
}

#[test]
fn a_huge_record_goes_through_with_small_ones() {
    let place = Place::new();
    let huge = "x".repeat(70 << 20);
    let text = format!("a\n{huge}\nb\n");
    place.write("in", &text);
    place.run("cat.wat -i in -o out").gives(0, "").says(&["3 records, 0 failed"]);
    assert!(place.read("out") == text, "70 MiB in one line");
}

// ---- failures -----------------------------------------------------------------------------------

#[test]
fn failures_are_told_with_line_and_stderr_and_the_run_goes_on() {
    let place = Place::new();
    let ran = place.run_with_input("echo.wat --batch 2", b"a\ntrap\nb\nexit\nc\n");
    ran.gives(1, "a\n\nb\nexit\nc\n").says(&[
        "gpu-run: line 2 (record 1) trapped: unreachable\n",
        "at offset 0x",
        "    it went wrong\n",
        "gpu-run: line 4 (record 3) exited with 3\n",
        "gpu-run: 5 records, 2 failed, in ",
        "records/s)",
    ]);
}

#[test]
fn a_flood_of_failures_is_counted_not_told() {
    let place = Place::new();
    let ran = place.run_with_input("echo.wat --batch 16", "t\n".repeat(500).as_bytes());
    assert_eq!(ran.stderr.matches("trapped").count(), 10, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("only counted").count(), 1);
    ran.gives(1, &"\n".repeat(500)).says(&["500 records, 500 failed"]);
}

#[test]
fn fail_fast_stops_before_the_first_failure() {
    let place = Place::new();
    let input = format!("{}trap\nt\n{}", lines(40), lines(4000));
    place.write("in", &input);
    let ran = place.run("echo.wat -i in --fail-fast --batch 16").gives(1, &lines(40));
    let ran = ran.says(&["line 41 (record 40) trapped", "stopped at the first failure: 40 records, 1 failed"]);
    assert_eq!(ran.stderr.matches("trapped").count(), 1);
    // With a file, it can be gone on with, the failure included.
    place.run("echo.wat -i in -o out --fail-fast --batch 16").gives(1, "").says(&["--resume goes on at record 32"]);
    assert_eq!(place.read("out"), lines(40));
    place.run("echo.wat -i in -o out --resume").gives(1, "").says(&["4042 records (32 by earlier runs), 2 failed"]);
    assert_eq!(place.read("out"), input.replace("trap\nt\n", "\n\n"));
}

#[test]
fn a_time_limit_ends_one_batch_and_the_next_one_runs() {
    let place = Place::new();
    let ran = place.run_with_input("stuck.wat --batch 1 --timeout 3s", b"aa\nb\ncc\n");
    ran.gives(1, "\n\n\n").says(&["line 2 (record 1) did not end within 3.00 s", "3 records, 1 failed"]);
}

#[test]
fn a_record_that_is_a_tree_of_calls_fails_alone() {
    let place = Place::new();
    let functions: String = (0..60).map(|n| format!("(func $f{n} (call $f{0}) (call $f{0}))\n", n + 1)).collect();
    let leaf =
        "(global $g (mut i32) (i32.const 0)) (func $f60 (global.set $g (i32.add (global.get $g) (i32.const 1))))";
    let start = "(func (export \"_start\")";
    let tree = guest(STUCK).replace("(loop $again (br $again))", "(call $f0)");
    place.write("tree.wat", tree.replace(start, &format!("{leaf}\n{functions}{start}")));
    let ran = place.run_with_input("tree.wat --batch 1 --timeout 3s", b"aa\nb\ncc\n");
    ran.gives(1, "\n\n\n").says(&["line 2 (record 1) did not end within 3.00 s", "3 records, 1 failed"]);
}

#[test]
fn mistakes_are_named_before_anything_is_written() {
    let place = Place::new();
    place.write("in", "a\n");
    place.write("folder/a", "a");
    place.write("bad.wat", "(module (func (export \"f\")))");
    for (line, parts) in [
        ("echo.wat -i nope", &["--input nope", "No such file"][..]),
        ("echo.wat -i in --split files", &["--split files needs a folder"]),
        ("echo.wat -i folder --split lines", &["--split lines needs a file", "cat folder/*"]),
        ("echo.wat -i in --split words", &["--split", "jsonl"]),
        ("echo.wat -i in --batch 0", &["--batch"]),
        ("echo.wat -i in --resume", &["--output"]),
        ("echo.wat -i in -o out --resume --force", &["--force"]),
        ("echo.wat -i in -o in", &["in each other's way"]),
        ("echo.wat -i in -o ./folder/../in", &["in each other's way"]),
        ("echo.wat -i folder -o folder", &["in each other's way"]),
        ("echo.wat -i folder -o folder/out", &["in each other's way"]),
        ("echo.wat -i folder -o folder/new/deep", &["in each other's way"]),
        ("echo.wat -i folder -o .", &["in each other's way"]),
        ("echo.wat -i folder -o in", &["--output in is a file"]),
        ("echo.wat -i in -o folder", &["--output folder is a folder"]),
        ("echo.wat --nonsense", &["--nonsense"]),
        ("bad.wat -i in -o out", &["no function `_start`"]),
        ("- -i -", &["cannot both come from stdin"]),
        ("echo.wat -i in --dir nope", &["--dir nope: no such folder"]),
    ] {
        place.run(line).gives(2, "").says(parts);
    }
    assert_eq!((place.read("in"), place.has("out")), ("a\n".into(), false));
    place.run("echo.wat -i in -o no/such/folder/out").gives(1, "").says(&["cannot write no/such/folder/out"]);
    place.run("echo.wat -i in -o /dev/full").gives(1, "").says(&["cannot write", "No space left"]);
    place.run("echo.wat -i in -o -").gives(0, "a\n");
    place.run("echo.wat -i in -o /dev/stdout").gives(0, "a\n");
    place.run("echo.wat -i in -o - --resume").gives(2, "").says(&["--resume needs --output"]);
    place.run("echo.wat -i in -o /dev/null").gives(0, "").says(&["1 record, 0 failed"]);
}

#[test]
fn a_reader_that_leaves_ends_the_run_quietly() {
    let place = Place::new();
    place.write("in", lines(20_000));
    let mut child = place.start("echo.wat -i in", Stdio::null());
    drop(child.stdout.take());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(141), ""));
}

#[test]
fn help_teaches_and_stats_are_counted() {
    let place = Place::new();
    let help = place.run("--help");
    for part in ["--resume", "GPU_RUN_INSTANCE", "Exit codes", "--split csv", "[default: stdout]"] {
        assert!(help.stdout.contains(part), "{part} is not in:\n{}", help.stdout);
    }
    let ran = place.run_with_input("echo.wat --stats=json --batch 2", b"a\nt\ne\n");
    let last = ran.stderr.lines().last().unwrap();
    let object: serde_json::Value = serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {last}"));
    assert_eq!((&object["instances"], &object["launches"], &object["trapped"]), (&3.into(), &2.into(), &1.into()));
    assert_eq!((&object["exits"]["0"], &object["exits"]["3"]), (&1.into(), &1.into()));
}

// ---- other ways of splitting --------------------------------------------------------------------

#[test]
fn csv_rows_come_with_their_header_and_quoted_newlines() {
    let place = Place::new();
    place.write("in.csv", "name,\"no\nte\"\r\nana,\"x\ny\"\r\n\r\nbob,\"say \"\"hi\"\"\"\neve,5\" disk");
    let header = "name,\"no\nte\"\r\n";
    let expected = format!("{header}ana,\"x\ny\"\r\n{header}bob,\"say \"\"hi\"\"\"\n{header}eve,5\" disk\n");
    place.run("echo.wat -i in.csv --split csv").gives(0, &expected).says(&["3 records, 0 failed"]);
    let ran = place.run("args.wat -i in.csv --split csv {}");
    ran.gives(0, "args.wat\0ana,\"x\ny\"\0\nargs.wat\0bob,\"say \"\"hi\"\"\"\0\nargs.wat\0eve,5\" disk\0\n");
    let ran = place.run_with_input("echo.wat --split csv", b"a\n1\n\"2\n3\n");
    ran.gives(1, "a\n1\n\n").says(&["line 3 (record 1) has a quoted field that is never closed"]);
}

#[test]
fn a_line_that_is_no_json_is_told_and_keeps_its_place() {
    let place = Place::new();
    let ran = place.run_with_input("echo.wat --split jsonl", b"{\"a\":1}\n{\"a\":\n[2]\nnull");
    ran.gives(1, "{\"a\":1}\n\n[2]\nnull\n").says(&["line 2 (record 1) is not JSON: EOF", "4 records, 1 failed"]);
}

#[test]
fn files_of_a_folder_become_files_of_the_same_names() {
    let place = Place::new();
    for (name, content) in [("b.txt", "bee"), ("a/x", "x\n"), ("a/y", ""), ("c", "trap"), ("d", "exit")] {
        place.write(&format!("in/{name}"), content);
    }
    place.write("out/c", "from an earlier time");
    let ran = place.run("echo.wat -i in -o out/ --batch 2").gives(1, "");
    ran.says(&["c (record 3) trapped", "d (record 4) exited with 3", "5 records, 2 failed"]);
    let read = |name: &str| place.read(&format!("out/{name}"));
    assert_eq!([read("b.txt"), read("a/x"), read("a/y"), read("d")], ["bee", "x\n", "", "exit"]);
    assert!(!place.has("out/c") && !place.has("out/.gpu-run-map"));
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 3, "nothing but the output is left there");
    place.run("echo.wat -i in").gives(1, "x\nbeeexit");
    place.run("args.wat -i in -o names {}").gives(0, "");
    assert_eq!(place.read("names/a/x"), "args.wat\0a/x\0");
}

#[test]
fn a_slow_pipe_gets_its_results_before_it_ends() {
    let place = Place::new();
    let mut child = place.start("echo.wat", Stdio::piped());
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        // Until the other side has seen a result, the input does not end.
        for i in 0.. {
            if stdin.write_all(format!("{i}\n").as_bytes()).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(60));
        }
    });
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "0\n");
    child.kill().unwrap();
    child.wait().unwrap();
    feeder.join().unwrap();
}

// ---- interruptions ------------------------------------------------------------------------------

/// Numbers that differ from run to run: where a kill strikes should.
fn random(below: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish() % below
}

/// Starts, kills at a random moment, goes on, until it finishes. Says how often it was killed. The first time it is killed soon after it has begun, or after it has written
/// something `first` times.
fn finish_with_kills(place: &Place, line: &str, input: Option<&str>, signal: Signal, first: u64) -> usize {
    let journal = || ["out.gpu-run-map", "out/.gpu-run-map"].iter().find_map(|name| fs::read(place.path(name)).ok());
    for kills in 0..200 {
        let resume = if kills > 0 { "--resume" } else { "" };
        let stdin = input.map_or(Stdio::null(), |name| fs::File::open(place.path(name)).unwrap().into());
        let mut child = place.start(&format!("{line} {resume}"), stdin);
        // Later, after it has written a little more, or a lot.
        let (mut seen, mut steps) = (journal(), if kills == 0 { first } else { 1 + random(8) });
        while steps > 0 && child.try_wait().unwrap().is_none() {
            let now = journal();
            steps -= u64::from(now != seen);
            seen = now;
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(random(30)));
        let _ = kill_process(Pid::from_child(&child), signal);
        let ran = Ran::from(child.wait_with_output().unwrap());
        // Killed between the last step and the end of the process, all was done but for the exit code.
        if ran.code == Some(0) || ran.code == Some(2) && ran.stderr.contains("out is not unfinished") {
            return kills;
        }
        assert!(ran.code.is_none() || ran.code == Some(130), "{ran:?}");
        if ran.code == Some(130) {
            assert!(ran.stderr.contains("--resume goes on at record"), "{ran:?}");
        }
    }
    panic!("200 runs did not finish it");
}

/// The same, until one was killed before it had finished: on a busy machine the signal may come late, or before anybody listens.
fn finish_after_kills(place: &Place, line: &str, signal: Signal) {
    let is_killed = |attempt: u64| {
        let _ = fs::remove_file(place.path("out"));
        finish_with_kills(place, line, None, signal, attempt % 2) > 0
    };
    assert!((0..100).any(is_killed), "too fast to be killed: the test shows nothing");
}

fn whole_lines(output: &str, of: &str) -> bool {
    of.starts_with(output) && (output.is_empty() || output.ends_with('\n'))
}

#[test]
fn killed_at_any_moment_it_goes_on_and_gives_the_same_bytes() {
    let place = Place::new();
    let text = lines(400);
    place.write("in", &text);
    finish_after_kills(&place, "slow.wat -i in -o out --batch 9", Signal::KILL);
    assert_eq!(place.read("out"), text);
    assert!(!place.has("out.gpu-run-map") && !place.has("out.gpu-run-map.new"));
}

#[test]
fn interrupted_it_leaves_whole_records_and_goes_on() {
    let place = Place::new();
    let text = lines(400);
    place.write("in", &text);
    finish_after_kills(&place, "slow.wat -i in -o out --batch 9", Signal::INT);
    assert_eq!(place.read("out"), text);
}

#[test]
fn stdin_can_be_gone_on_with_too_and_folders() {
    let place = Place::new();
    let text = format!("head,er\n{}", lines(150));
    place.write("in", &text);
    finish_with_kills(&place, "slow.wat -o out --batch 9 --split csv", Some("in"), Signal::KILL, 0);
    let expected: String = lines(150).lines().map(|line| format!("head,er\n{line}\n")).collect();
    assert_eq!(place.read("out"), expected);

    let place = Place::new();
    for i in 0..150 {
        place.write(&format!("in/{}/{i}", i % 7), format!("file {i}"));
    }
    finish_with_kills(&place, "slow.wat -i in -o out --batch 9", None, Signal::KILL, 0);
    for i in 0..150 {
        assert_eq!(place.read(&format!("out/{}/{i}", i % 7)), format!("file {i}"));
    }
}

#[test]
fn ctrl_c_leaves_whole_records_on_stdout() {
    let place = Place::new();
    // More than a pipe takes: it cannot finish before it is interrupted.
    let text = lines(30_000);
    place.write("in", &text);
    let mut child = place.start("slow.wat -i in --batch 9", Stdio::null());
    let (mut stdout, mut written) = (BufReader::new(child.stdout.take().unwrap()), String::new());
    stdout.read_line(&mut written).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    stdout.read_to_string(&mut written).unwrap();
    let ran = Ran { stdout: written, ..Ran::from(child.wait_with_output().unwrap()) };
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(whole_lines(&ran.stdout, &text));
    let ran = ran.says(&["interrupted: "]);
    let count = ran.stdout.lines().count();
    ran.says(&[&format!("{count} record")]);
}

/// Waits until the journal of `out` says that some of it is safe.
fn wait_for_progress(place: &Place) {
    let safe = || -> Option<u64> {
        let journal = fs::read_to_string(place.path("out.gpu-run-map")).ok()?;
        let journal: serde_json::Value = serde_json::from_str(journal.lines().next()?).ok()?;
        journal["progress"]["output"].as_u64()
    };
    let began = Instant::now();
    while safe().is_none_or(|bytes| bytes == 0) {
        assert!(began.elapsed() < Duration::from_secs(300), "no record was finished");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An output that was killed in the middle, with its journal.
fn unfinished(place: &Place) -> String {
    let text = lines(3000);
    place.write("in", &text);
    let mut child = place.start("slow.wat -i in -o out --batch 5", Stdio::null());
    wait_for_progress(place);
    child.kill().unwrap();
    child.wait().unwrap();
    let output = place.read("out");
    assert!(text.starts_with(&output) && output.len() < text.len());
    text
}

#[test]
fn an_unfinished_output_is_not_destroyed_unless_that_is_asked_for() {
    let place = Place::new();
    unfinished(&place);
    let before = place.read("out");
    place.run("slow.wat -i in -o out").gives(2, "").says(&["out is unfinished", "--resume", "--force"]);
    assert_eq!(place.read("out"), before);
    place.write("in", lines(5));
    place.run("slow.wat -i in -o out --force").gives(0, "");
    assert_eq!(place.read("out"), lines(5));
    place.write("in", lines(6));
    place.run("echo.wat -i in -o out").gives(0, "");
    assert_eq!(place.read("out"), lines(6), "a finished output is overwritten, as by other programs");
}

#[test]
fn what_has_changed_since_is_named_and_nothing_is_written() {
    let place = Place::new();
    let text = unfinished(&place);
    let before = place.read("out");
    for (line, what) in [
        ("echo.wat -i in -o out --resume", "the program has changed"),
        ("slow.wat -i in -o out --resume --split jsonl", "--split has changed"),
        ("slow.wat -i in -o out --resume --env A=1", "--env has changed"),
        ("slow.wat -i in -o out --resume arg", "ARGS have changed"),
    ] {
        place.run(line).gives(2, "").says(&[what, "--force"]);
    }
    place.write("in", format!("{text}more\n"));
    place.run("slow.wat -i in -o out --resume").gives(2, "").says(&["the input has changed"]);
    assert_eq!(place.read("out"), before);
    assert!(place.has("out.gpu-run-map"));
}

#[test]
fn another_stdin_is_not_taken_for_the_same() {
    let place = Place::new();
    let text = lines(3000);
    let mut child = place.start("slow.wat -o out --batch 5", Stdio::piped());
    let mut stdin = child.stdin.take().unwrap();
    let feed = text.clone();
    let feeder = std::thread::spawn(move || drop(stdin.write_all(feed.as_bytes())));
    wait_for_progress(&place);
    child.kill().unwrap();
    child.wait().unwrap();
    feeder.join().unwrap();
    let other = text.replacen("line 0", "LINE 0", 1);
    let ran = place.run_with_input("slow.wat -o out --resume", other.as_bytes());
    ran.gives(2, "").says(&["the input is not the one"]);
    let ran = place.run_with_input("slow.wat -o out --resume", b"line 0 \n");
    ran.gives(2, "").says(&["the input is not the one"]);
}

#[test]
fn there_must_be_something_to_resume_or_nothing_at_all() {
    let place = Place::new();
    place.write("in", lines(3));
    place.run("echo.wat -i in -o out --resume").gives(0, "");
    assert_eq!(place.read("out"), lines(3), "nothing was there: it begins");
    place.run("echo.wat -i in -o out --resume").gives(2, "").says(&["out is not unfinished"]);
    unfinished(&place);
    fs::write(place.path("out"), "").unwrap();
    place.run("slow.wat -i in -o out --resume").gives(2, "").says(&["out is shorter than it was"]);
    fs::write(place.path("out.gpu-run-map"), "{").unwrap();
    place.run("slow.wat -i in -o out --resume").gives(2, "").says(&["no journal"]);
}

#[test]
fn a_full_disk_leaves_whole_records_and_can_be_gone_on_with() {
    let place = Place::new();
    let text = lines(3000);
    place.write("in", &text);
    // A limit on file sizes, in blocks of 512 bytes, says `no more` as a full disk does.
    let limited = "trap '' XFSZ; ulimit -f 64; exec \"$0\" map echo.wat --device cpu -i in -o out --batch 50";
    let mut command = Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_gpu-run")]).current_dir(place.0.path());
    command.env("GPU_RUN_CACHE", "off");
    let ran = Ran::from(command.output().unwrap()).gives(1, "");
    ran.says(&["cannot write out", "could not go on writing", "--resume goes on at record"]);
    let output = place.read("out");
    assert!(whole_lines(&output, &text) && output.len() <= 64 * 512, "{}", output.len());
    place.run("echo.wat -i in -o out --resume").gives(0, "").says(&["3000 records", "by earlier runs"]);
    assert_eq!(place.read("out"), text);
}

#[test]
fn two_runs_do_not_write_the_same_output() {
    let place = Place::new();
    place.write("in", lines(3000));
    let mut child = place.start("slow.wat -i in -o out --batch 5", Stdio::null());
    while !Path::exists(&place.path("out.gpu-run-map")) {
        std::thread::sleep(Duration::from_millis(5));
    }
    place.run("slow.wat -i in -o out --force").gives(1, "").says(&["another gpu-run writes to out"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

// ---- a lost device ------------------------------------------------------------------------------

impl Place {
    /// Runs where launches fault as the plan says: the device is lost, and another process has to go on. A batch is two launches.
    fn run_losing(&self, plan: &str, line: &str, input: Option<&[u8]>) -> Ran {
        let mut command = self.command(line);
        command.env("GPU_RUN_TEST_FAULT", plan).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() }).spawn().unwrap();
        let (stdin, input) = (child.stdin.take(), input.unwrap_or_default().to_vec());
        let feeder = std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
        let ran = child.wait_with_output().unwrap().into();
        feeder.join().unwrap().map_or(Ok(()), |fed| fed).unwrap();
        ran
    }
}

/// Lines, every so many of which exits with 3 or traps, and what they give.
fn mixed(count: usize) -> (String, String, usize) {
    let mut failed = 0;
    let (mut input, mut output) = (String::new(), String::new());
    for (i, line) in lines(count).lines().enumerate() {
        let (given, kept) = match i % 50 {
            7 => ("exit", "exit"),
            31 => ("trap", ""),
            _ => (line, line),
        };
        failed += usize::from(given != line);
        writeln!(input, "{given}").unwrap();
        writeln!(output, "{kept}").unwrap();
    }
    (input, output, failed)
}

#[test]
fn a_device_lost_on_the_way_changes_nothing_but_stderr() {
    let place = Place::new();
    let (input, output, failed) = mixed(300);
    place.write("in", &input);
    let summary = format!("300 records, {failed} failed");
    for (plan, losses) in
        [("launch:1", 1), ("launch:2", 1), ("launch:7", 1), ("launch:4,9,14,19", 4), ("launch:1,2,20", 3)]
    {
        let ran = place.run_losing(plan, "echo.wat -i in --batch 16", None).gives(1, &output).says(&[&summary]);
        assert_eq!(ran.stderr.matches("going on in a new process").count(), losses, "{plan}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches("trapped").count() + ran.stderr.matches("exited with").count(), 10, "told once");
        let ran = place.run_losing(plan, "echo.wat -i in -o out --batch 16", None).gives(1, "").says(&[&summary]);
        assert_eq!(
            (place.read("out"), place.has("out.gpu-run-map")),
            (output.clone(), false),
            "{plan}: {}",
            ran.stderr
        );
    }
    let ran = place.run_losing("launch:5", "echo.wat -i in --batch 16 --stats=json", None).gives(1, &output);
    let object: serde_json::Value = serde_json::from_str(ran.stderr.lines().last().unwrap()).unwrap();
    assert_eq!((&object["instances"], &object["trapped"], &object["exits"]["3"]), (&300.into(), &6.into(), &6.into()));
}

#[test]
fn what_was_read_from_a_pipe_is_not_lost_with_the_device() {
    let place = Place::new();
    // More than a pipe holds, than is read at once, and than the hash has in a block.
    let text = lines(80_000);
    assert!(text.len() > 2 << 20);
    for plan in ["launch:1", "launch:3,60", "launch:100,101"] {
        let ran = place.run_losing(plan, "echo.wat", Some(text.as_bytes())).gives(0, &text);
        ran.says(&["80000 records, 0 failed", "going on in a new process"]);
    }
    let csv = format!("he,ad\n{}", lines(3000));
    let expected: String = lines(3000).lines().map(|line| format!("he,ad\n{line}\n")).collect();
    for plan in ["launch:1", "launch:5,12"] {
        place.run_losing(plan, "echo.wat --split csv --batch 100", Some(csv.as_bytes())).gives(0, &expected);
    }
    // A pipe with a name stays open in the next process, and the journal speaks of the same input.
    let status = Command::new("mkfifo").arg(place.path("fifo")).status().unwrap();
    assert!(status.success());
    let (path, bytes) = (place.path("fifo"), text.clone());
    let feeder = std::thread::spawn(move || fs::write(path, bytes));
    place.run_losing("launch:20,30", "echo.wat -i fifo -o out", None).gives(0, "").says(&["80000 records, 0 failed"]);
    feeder.join().unwrap().unwrap();
    assert!(place.read("out") == text);
}

#[test]
fn an_input_that_comes_slowly_is_gone_on_with_while_it_is_open() {
    let place = Place::new();
    let mut command = place.command("echo.wat");
    command.env("GPU_RUN_TEST_FAULT", "launch:1,4").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    // The reader waits for more when the device is lost: it must not take what comes then.
    let feeder = std::thread::spawn(move || {
        for i in 0..40 {
            stdin.write_all(format!("{i}\n").as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(25));
        }
    });
    let seen: Vec<String> = stdout.lines().map(|line| line.unwrap()).collect();
    assert_eq!(seen, (0..40).map(|i| i.to_string()).collect::<Vec<_>>());
    feeder.join().unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_folder_and_a_program_from_stdin_survive_a_lost_device() {
    let place = Place::new();
    for i in 0..60 {
        place.write(&format!("in/{}/{i}", i % 7), format!("file {i}"));
    }
    let ran = place.run_losing("launch:3,8", "echo.wat -i in -o out --batch 9", None);
    ran.gives(0, "").says(&["60 records, 0 failed"]);
    for i in 0..60 {
        assert_eq!(place.read(&format!("out/{}/{i}", i % 7)), format!("file {i}"));
    }
    place.write("lines", lines(40));
    let program = guest(ECHO);
    place.run_losing("launch:3", "- -i lines --batch 9", Some(program.as_bytes())).gives(0, &lines(40));
}

#[test]
fn a_device_that_is_lost_again_and_again_ends_the_run_and_says_where() {
    let place = Place::new();
    let text = lines(100);
    place.write("in", &text);
    let ran = place.run_losing("launch:5,6,7,8,9,10", "echo.wat -i in -o out --batch 20", None).gives(1, "");
    let ran = ran.says(&["echo.wat: the device was lost 3 times in a row", "smaller --batch", "could not go on: "]);
    // What was under way with the one that faulted is lost with it.
    let safe = place.read("out").lines().count();
    assert!(matches!(safe, 20 | 40), "{}", ran.stderr);
    let again = format!("going on in a new process at record {safe}");
    assert_eq!(ran.stderr.matches(&again).count(), 2, "{}", ran.stderr);
    ran.says(&[&format!("--resume goes on at record {safe}")]);
    assert!(whole_lines(&place.read("out"), &text));
    // Resumed, and lost then: the count of earlier runs stays.
    let resumed = format!("100 records ({safe} by earlier runs), 0 failed");
    place.run_losing("launch:3", "echo.wat -i in -o out --batch 20 --resume", None).gives(0, "").says(&[&resumed]);
    assert_eq!(place.read("out"), text);
}

/// `hang:N`: the N-th launch never ends. Each batch is two launches; what is left of the plan goes to the next process.
#[test]
fn a_record_that_cannot_be_ended_fails_alone() {
    let place = Place::new();
    let text = lines(40);
    // All 40 at once hang, then record 2, alone, does: the first process launches once, the next ones twice for each record.
    place.write("in", &text);
    let output: String =
        text.lines().enumerate().map(|(i, line)| if i == 2 { "\n".into() } else { format!("{line}\n") }).collect();
    for to_pipe in [false, true] {
        let line = if to_pipe {
            "echo.wat -i in --timeout 1s --batch 40"
        } else {
            "echo.wat -i in -o out --timeout 1s --batch 40"
        };
        let ran = place.run_losing("hang:1,6", line, None);
        let ran = ran.gives(1, if to_pipe { &output } else { "" });
        ran.says(&[
            "looking for it in a new process",
            "going on without it",
            "line 3 (record 2) did not end in time",
            "40 records, 1 failed",
        ]);
        if !to_pipe {
            assert_eq!(place.read("out"), output);
        }
    }
}
