//! A program with threads that `--timeout` or a signal stops: gpu-run says where each thread was. And the names of threads in
//! other messages.
//!
//! Tests that need a Rust program compile one with rustc; where rustc has no std for wasm32-wasip1-threads they are reported as
//! ignored. With `CI` set in the environment they fail there.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;
#[path = "support/with_rust.rs"]
mod with_rust;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Place, Ran};

const TARGET: &str = "wasm32-wasip1-threads";

fn main() {
    with_rust::run(TARGET, &ANYWHERE, &WITH_RUST);
}

const ANYWHERE: [(&str, fn()); 9] = [
    ("states::running_sleeping_waiting_and_calling", running_sleeping_waiting_and_calling),
    ("groups::threads_at_one_place_are_one_line", threads_at_one_place_are_one_line),
    ("groups::many_addresses_are_one_line", many_addresses_are_one_line),
    ("groups::a_few_addresses_are_told_apart", a_few_addresses_are_told_apart),
    ("groups::threads_that_have_ended_are_not_there", threads_that_have_ended_are_not_there),
    ("signals::the_first_stops_the_program", the_first_signal_stops_the_program),
    ("top::shows_the_threads_of_a_running_program", top_shows_the_threads_of_a_running_program),
    ("one::a_single_thread_is_told_as_in_other_programs", a_single_thread_is_told_as_in_other_programs),
    ("traps::say_which_thread_it_was", traps_say_which_thread_it_was),
];

const WITH_RUST: [(&str, fn()); 3] = [
    ("rust::a_deadlock_of_two_locks_can_be_found", a_deadlock_of_two_locks_can_be_found),
    ("rust::without_notes_of_calls_a_note_says_how", without_notes_of_calls_a_note_says_how),
    ("rust::a_trap_has_the_threads_name", a_trap_has_the_threads_name),
];

/// A program that starts `count` threads, each of which runs `work` with its number, counted from 0; the first waits for ever.
fn program(count: u32, work: &str) -> String {
    format!(
        r#"(module
        (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1 1 shared)
        ;; For fd_read, a buffer; for poll_oneoff, 90 seconds of the monotonic clock.
        (data (i32.const 1024) "\40\04\00\00\08\00\00\00")
        (data (i32.const 2064) "\01")
        (data (i32.const 2072) "\00\a4\65\f4\14\00\00\00")
        (func $wait (param $at i32) (param $time i64)
            (drop (memory.atomic.wait32 (local.get $at) (i32.const 0) (local.get $time))))
        (func $spin (loop $l (br $l)))
        (func $read (drop (call $fd_read (i32.const 0) (i32.const 1024) (i32.const 1) (i32.const 1032))))
        (func $sleep (drop (call $poll_oneoff (i32.const 2048) (i32.const 3072) (i32.const 1) (i32.const 3200))))
        (func $work (param $n i32) {work})
        (func (export "wasi_thread_start") (param $id i32) (param $n i32) (call $work (local.get $n)))
        (func $main (local $n i32)
            (loop $l
                (drop (call $spawn (local.get $n)))
                (local.set $n (i32.add (local.get $n) (i32.const 1)))
                (br_if $l (i32.lt_u (local.get $n) (i32.const {count}))))
            (call $wait (i32.const 64) (i64.const -1)))
        (func (export "_start") call $main))"#
    )
}

/// Runs it until `--timeout`, with a stdin that stays empty.
fn stopped(text: &str, backtrace: &str) -> Ran {
    let place = Place::new().with("a.wat", text);
    let mut command = place.command("--device cpu --timeout 1s --threads 128 a.wat");
    command.env("RUST_BACKTRACE", backtrace);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    let ran = Ran::from(child.wait_with_output().unwrap());
    drop(stdin);
    ran.gives(124, "").says(&["error: a.wat did not finish within 1.00 s\n  it had "])
}

fn running_sleeping_waiting_and_calling() {
    let text = program(
        5,
        "(block $sleep (block $read (block $spin (block $time (block $wait
             (br_table $wait $time $spin $read $sleep (local.get $n)))
         (return (call $wait (i32.const 128) (i64.const -1))))
         (return (call $wait (i32.const 132) (i64.const 60_000_000_000))))
         (return (call $spin)))
         (return (call $read)))
         (call $sleep)",
    );
    stopped(&text, "0").says(&[
        "  it had 6 threads:\n    thread 0 `main` waits at address 0x40 in wait\n",
        "    thread 1 waits at address 0x80 in wait\n",
        "    thread 2 waits at address 0x84 for at most 60.0 s in wait\n",
        "    thread 3 runs in spin\n",
        "    thread 4 waits for the host (fd_read)\n",
        "    thread 5 sleeps for 90.0 s\n",
        "  note: run with RUST_BACKTRACE=1 to see which functions of the program led there\n",
    ]);
    let ran = stopped(&text, "1").says(&[
        "    thread 4 waits for the host (fd_read) in read, called by work\n",
        "    thread 5 sleeps for 90.0 s in sleep, called by work\n",
    ]);
    assert!(!ran.stderr.contains("note:"), "{}", ran.stderr);
}

fn threads_at_one_place_are_one_line() {
    let ran = stopped(&program(100, "(call $wait (i32.const 128) (i64.const -1))"), "0");
    let lines: Vec<_> = ran.stderr.lines().skip(1).take(4).collect();
    assert_eq!(
        lines,
        [
            "  it had 101 threads:",
            "    thread 0 `main` waits at address 0x40 in wait",
            "    thread 1 waits at address 0x80 in wait",
            "      … and 99 more at the same place",
        ]
    );
}

fn many_addresses_are_one_line() {
    let work = "(call $wait (i32.add (i32.const 128) (i32.mul (local.get $n) (i32.const 4))) (i64.const -1))";
    let ran = stopped(&program(100, work), "1").says(&[
        "    thread 1 waits at address 0x80 in wait\n      … and 99 more at the same place, some at other addresses\n",
    ]);
    assert!(ran.stderr.lines().count() < 8, "{}", ran.stderr);
}

fn a_few_addresses_are_told_apart() {
    let work = "(call $wait (i32.add (i32.const 128) (i32.mul (local.get $n) (i32.const 4))) (i64.const -1))";
    stopped(&program(3, work), "0").says(&["thread 1 waits at address 0x80 ", "thread 3 waits at address 0x88 "]);
}

fn threads_that_have_ended_are_not_there() {
    let work = "(if (local.get $n) (then (call $wait (i32.const 128) (i64.const -1))))";
    let ran = stopped(&program(2, work), "0").says(&["it had 2 threads:", "thread 2 waits at address 0x80 "]);
    assert!(!ran.stderr.contains("thread 1 "), "{}", ran.stderr);
}

fn the_first_signal_stops_the_program() {
    let place = Place::new().with("a.wat", program(2, "(call $wait (i32.const 128) (i64.const -1))"));
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut command = place.command("--device cpu a.wat");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Before it watches for signals, one ends the process at once.
        std::thread::sleep(Duration::from_secs(2));
        let began = Instant::now();
        Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        ran.gives(code, "").says(&["error: a.wat was interrupted\n  it had 3 threads:\n", "      … and 1 more at the"]);
    }
}

fn top_shows_the_threads_of_a_running_program() {
    let work = "(if (local.get $n) (then (call $wait (i32.const 128) (i64.const -1))) (else (call $sleep)))";
    let place = Place::new().with("a.wat", program(5, work));
    let top = |options: &str| {
        let mut command = place.command(&format!("top {options}"));
        Ran::from(command.env("XDG_RUNTIME_DIR", place.path()).output().unwrap())
    };
    assert_eq!(top("--once").says(&["no machine is running, and no program with threads"]).code, Some(1));
    let mut command = place.command("--device cpu --timeout 60s a.wat");
    let mut child = command.env("XDG_RUNTIME_DIR", place.path()).env("RUST_BACKTRACE", "1").spawn().unwrap();
    let folder = place.path().join("gpu-run");
    let status = folder.join(format!("program-{}.status", child.id()));
    let began = Instant::now();
    while !status.exists() {
        assert!(began.elapsed() < Duration::from_secs(30), "it publishes nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Some threads may not have come to where they wait.
    let unlooked = std::fs::read(&status).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(std::fs::read(&status).unwrap(), unlooked, "nobody looked");
    let seen = top(&format!("--once --pid {}", child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    let lines: Vec<_> = seen.stdout.lines().skip(1).collect();
    assert!(seen.stdout.starts_with("program  a.wat on cpu, process "), "{seen:?}");
    assert_eq!(
        lines,
        [
            "threads  6",
            "",
            "thread 0 `main` waits at address 0x40 in wait",
            "thread 1 sleeps for 90.0 s in sleep, called by work",
            "thread 2 waits at address 0x80 in wait",
            "  … and 3 more at the same place",
        ]
    );
    // What a killed process has left is not shown.
    assert_eq!(top("--once").code, Some(1));
}

fn a_single_thread_is_told_as_in_other_programs() {
    let text = r#"(module
        (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
        (memory (export "memory") 1 1 shared)
        (func $spin (loop $l (br $l)))
        (func (export "wasi_thread_start") (param i32 i32))
        (func (export "_start") call $spin))"#;
    let place = Place::new().with("a.wat", text);
    let ran =
        place.run("--device cpu --timeout 300ms a.wat").says(&["did not finish within 300 ms\n  in spin (function "]);
    assert!(!ran.stderr.contains("thread"), "{}", ran.stderr);
}

fn traps_say_which_thread_it_was() {
    let place = Place::new().with("a.wat", program(1, "unreachable"));
    place.run("--device cpu a.wat").says(&["error: a.wat trapped: unreachable\n  in thread 1\n  in work (function "]);
    let place = Place::new().with("a.wat", program(1, "").replace("(i64.const -1)))", "(i64.const 1)) unreachable)"));
    place.run("--device cpu a.wat").says(&["trapped: unreachable\n  in thread 0 `main`\n  in main (function "]);
}

/// Compiles a program of `tests/stopped_threads`, with DWARF.
fn compiled(source: &str) -> Place {
    let place = Place::new().with("src/app.rs", source);
    let mut command = Command::new(with_rust::rustc());
    command.args(["--target", TARGET, "-O", "-g", "-o", "app.wasm", "src/app.rs"]);
    let output = command.current_dir(place.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    place
}

const DEADLOCK: &str = include_str!("stopped_threads/deadlock.rs");

fn a_deadlock_of_two_locks_can_be_found() {
    let place = compiled(DEADLOCK);
    let mut command = place.command("--device cpu --timeout 2s app.wasm");
    let ran = Ran::from(command.env("RUST_BACKTRACE", "1").output().unwrap()).gives(124, "");
    let line = |start: &str| {
        let found = ran.stderr.lines().find(|line| line.trim_start().starts_with(start));
        found.unwrap_or_else(|| panic!("no {start}:\n{}", ran.stderr)).to_owned()
    };
    let (main, payer, refunder) =
        (line("thread 0 `main`"), line("thread 1 `payer`"), line(r"thread 2 `re\u001bfunder`"));
    assert!(main.contains("join, called by app::main at src/app.rs:34:"), "{main}");
    assert!(payer.contains("Mutex<T>::lock, called by app::pay at src/app.rs:9:"), "{payer}");
    assert!(refunder.contains("Mutex<T>::lock, called by app::refund at src/app.rs:18:"), "{refunder}");
    let address = |line: &str| line.split_once("at address ").unwrap().1.split(' ').next().unwrap().to_owned();
    assert_ne!(address(&payer), address(&refunder));
    let sleeper = line("thread 6 sleeps for 600 s in ");
    assert!(sleeper.contains("sleep, called by app::main::{{closure}} at src/app.rs:33:"), "{sleeper}");
}

fn without_notes_of_calls_a_note_says_how() {
    let ran = compiled(DEADLOCK).run("--device cpu --timeout 2s app.wasm").gives(124, "");
    ran.says(&["thread 1 `payer` waits at address 0x", "lock_contended\n", "  note: run with RUST_BACKTRACE=1 to see"]);
}

fn a_trap_has_the_threads_name() {
    let source = r#"fn main() {
        let worker = std::thread::Builder::new().name("wörker".into()).spawn(|| std::process::abort());
        worker.unwrap().join().unwrap();
    }"#;
    compiled(source).run("--device cpu app.wasm").gives(134, "").says(&["unreachable\n  in thread 1 `wörker`\n  in "]);
}
