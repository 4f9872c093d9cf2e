//! `--trace wasi`: the guest's calls of the host, one line each, on stderr.

mod support;

use support::Place;

/// Opens a file that is there and one that is not, reads, writes and exits.
const CALLS: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_open"
        (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "\40\00\00\00\06\00\00\00hello\n")
    (data (i32.const 16) "\00\01\00\00\20\00\00\00")
    (data (i32.const 64) "hello\n")
    (data (i32.const 80) "in.txt")
    (data (i32.const 96) "no\1b[2J")
    (func $open (param $path i32) (param $length i32)
        (drop (call $path_open (i32.const 3) (i32.const 1) (local.get $path) (local.get $length) (i32.const 0)
            (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 32))))
    (func (export "_start")
        (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 32)))
        (call $open (i32.const 80) (i32.const 6))
        (drop (call $fd_read (i32.load (i32.const 32)) (i32.const 16) (i32.const 1) (i32.const 32)))
        (call $open (i32.const 96) (i32.const 6))
        (call $proc_exit (i32.const 3))))"#;

const LINES: [&str; 5] = [
    r#"fd_write(1, [{"hello\n", 6}]) = 0 (6)"#,
    r#"path_open(3, 0x1, "in.txt", 0x0, 0x2, 0x0, 0x0) = 0 (4)"#,
    r#"fd_read(4, [{"some \"text\"\n", 12}]) = 0 (12)"#,
    r#"path_open(3, 0x1, "no\u{1b}[2J", 0x0, 0x2, 0x0, 0x0) = noent"#,
    "proc_exit(3) = ?",
];

fn place() -> Place {
    Place::new().with("a.wat", CALLS).with("in.txt", "some \"text\"\n")
}

#[test]
fn calls_are_printed_with_their_arguments_and_results() {
    let ran = place().run("--device cpu --trace wasi --dir . a.wat").gives(3, "hello\n");
    assert_eq!(ran.stderr.lines().collect::<Vec<_>>(), LINES);
    let ran = place().run("--device cpu --dir . a.wat").gives(3, "hello\n");
    assert_eq!(ran.stderr, "");
}

#[test]
fn each_instance_has_its_number() {
    let ran = place().run("--device cpu --trace wasi --instances 3 --dir . a.wat");
    for instance in 0..3 {
        let start = format!("[instance {instance}] ");
        let own: Vec<_> = ran.stderr.lines().filter_map(|line| line.strip_prefix(&start)).collect();
        assert_eq!(own, LINES, "{}", ran.stderr);
    }
}

/// A call that the device began again, because the instance outgrew its memory, is made once and shown once.
#[test]
fn a_rerun_instance_shows_its_calls_once() {
    let growing = CALLS.replace(
        "(call $proc_exit (i32.const 3))",
        "(drop (memory.grow (i32.const 1000))) (call $proc_exit (i32.const 3))",
    );
    let place = Place::new().with("a.wat", growing).with("in.txt", "some \"text\"\n");
    let ran = place.run("--device cpu --trace wasi --dir . a.wat").gives(3, "hello\n");
    assert_eq!(ran.stderr.lines().collect::<Vec<_>>(), LINES);
}

#[test]
fn each_thread_has_its_number() {
    let text = r#"(module
        (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1 1 shared)
        (data (i32.const 0) "\40\00\00\00\01\00\00\00")
        (data (i32.const 64) "x")
        (func $print (param $to i32)
            (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (local.get $to))))
        (func (export "wasi_thread_start") (param $id i32) (param $n i32)
            (call $print (i32.const 132))
            (i32.atomic.store (i32.const 128) (i32.const 1))
            (drop (memory.atomic.notify (i32.const 128) (i32.const 1))))
        (func $run
            (i32.atomic.store (i32.const 128) (i32.const 0))
            (drop (call $spawn (i32.const 0)))
            (drop (memory.atomic.wait32 (i32.const 128) (i32.const 0) (i64.const -1))))
        (func (export "_start") (call $print (i32.const 140)) (call $run) (call $run)))"#;
    let ran = Place::new().with("a.wat", text).run("--device cpu --trace wasi --timeout 60s a.wat").gives(0, "xxx");
    let line = r#" fd_write(1, [{"x", 1}]) = 0 (1)"#;
    let expected: Vec<_> = (0..3).map(|thread| format!("[thread {thread}]{line}")).collect();
    assert_eq!(ran.stderr.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn map_says_what_to_do_instead() {
    let ran = place().with("r.txt", "a\n").run("map --device cpu --trace wasi a.wat -i r.txt").gives(2, "");
    ran.says(&["error: map does not trace host calls", "hint: run one record alone: gpu-run --trace wasi FILE"]);
}

#[test]
fn only_wasi_can_be_traced() {
    place().run("--device cpu --trace syscalls a.wat").gives(2, "").says(&["[possible values: wasi]"]);
}
