#![allow(clippy::unwrap_used)] // in a test, that is an assertion

use super::*;
use crate::batch::results::Done;
use bytes::Bytes;
use gpu_run_abi::{Layout, TrapCode};
use gpu_run_compiler::Sibling;
use gpu_run_compiler::{Build, CompileOptions, Compiled, Entry, Placement};
use gpu_run_run::allowance::SHARE;
use gpu_run_run::{Denied, End, Limits};
use gpu_run_wasi::Builder;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

fn mapper(wat: &str, capacity: usize, layout: Layout) -> Mapper {
    checked_mapper(wat, capacity, Build::Exact(layout))
}

fn checked_mapper(wat: &str, capacity: usize, build: Build) -> Mapper {
    Mapper::new(program(wat, build), Extent { capacity, ..Extent::default() }, None).unwrap()
}

/// Guest memory is the thread's own, so many bytes.
fn local_mapper(wat: &str, capacity: usize, local_bytes: u32) -> Mapper {
    let program = built(wat, Build::speculative(Layout::Interleaved, local_bytes));
    assert!(program.compiled().slots.is_local(), "it does not fit");
    let mapper = Mapper::new(program, Extent { capacity, ..Extent::default() }, None).unwrap();
    // However few they are: a GPU sets no memory of threads' own aside for a few.
    mapper.inner.plan.lock().as_mut().unwrap().build = None;
    mapper
}

pub(super) fn program(wat: &str, build: Build) -> Arc<Program> {
    built(wat, build)
}

pub(super) fn built(wat: &str, build: Build) -> Arc<Program> {
    loaded(compiled(wat, build))
}

pub(super) fn loaded(compiled: Compiled) -> Arc<Program> {
    Arc::new(Program::load(device(), Arc::new(compiled)).unwrap())
}

pub(super) fn compiled(wat: &str, build: Build) -> Compiled {
    let options = CompileOptions { build, sm: 75, entry: Entry::Start, registers: None };
    Compiled::new(&wat::parse_str(wat).unwrap(), &options).unwrap()
}

/// `cpu`, or what `GPU_RUN_TEST_DEVICE` says, as `scripts/gpu-test` does.
/// One for all tests: each context of a GPU keeps the stacks of its own.
fn device() -> Arc<dyn gpu_run_device::Device> {
    static DEVICE: OnceLock<Arc<dyn gpu_run_device::Device>> = OnceLock::new();
    let id = || std::env::var("GPU_RUN_TEST_DEVICE").unwrap_or_else(|_| "cpu".into());
    DEVICE.get_or_init(|| gpu_run_device::open(&id()).unwrap()).clone()
}

/// What became of jobs, to compare.
fn run(mapper: &Mapper, stdin: &[&str]) -> (Vec<Owned>, RunStats) {
    let (results, stats) = mapper.run(jobs(stdin), None).unwrap();
    (results.iter().map(Owned::from).collect(), stats)
}

#[derive(Clone, Debug, PartialEq)]
struct Owned {
    end: End,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    denied: Option<Denied>,
}

impl From<Done<'_>> for Owned {
    fn from(done: Done<'_>) -> Self {
        let Done { end, stdout, stderr, denied } = done;
        Self { end: end.clone(), stdout: stdout.into(), stderr: stderr.into(), denied }
    }
}

pub(super) fn jobs<T: AsRef<[u8]>>(stdin: &[T]) -> Vec<Job> {
    let context = Arc::new(Builder::new());
    let job = |(number, bytes): (u64, &T)| Job {
        context: context.clone(),
        number,
        stdin: Bytes::copy_from_slice(bytes.as_ref()),
    };
    (0..).zip(stdin).map(job).collect()
}

pub(super) const IMPORTS: &str = r#"
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)"#;

/// Counts in memory how often it ran there, then copies stdin behind the count; traps if stdin begins with `!`.
fn echo() -> String {
    format!(
        r#"(module {IMPORTS} (func (export "_start")
          (i32.store8 (i32.const 99) (i32.add (i32.const 49) (i32.load8_u (i32.const 98))))
          (i32.store8 (i32.const 98) (i32.const 1))
          (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 1000))
          (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
          (i32.store (i32.const 0) (i32.const 99)) (i32.store (i32.const 4) (i32.add (i32.const 1) (i32.load (i32.const 8))))
          (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
          (if (i32.eq (i32.load8_u (i32.const 100)) (i32.const 33)) (then unreachable))))"#
    )
}

#[test]
fn every_batch_and_every_wave_finds_fresh_instances() {
    for layout in [Layout::Linear, Layout::Interleaved] {
        let mapper = mapper(&echo(), 2, layout);
        for batch in [&["a", "b", "c", "d", "e"][..], &["f"], &[], &["g", "h", "i"]] {
            let (done, stats) = run(&mapper, batch);
            let expected: Vec<_> = batch.iter().map(|text| format!("1{text}").into_bytes()).collect();
            assert_eq!(done.into_iter().map(|d| d.stdout).collect::<Vec<_>>(), expected);
            assert_eq!((stats.instances, stats.launches), (batch.len() as u64, batch.len().div_ceil(2) as u64));
        }
    }
}

/// Grows by as many pages as stdin's digit says, traps if anything is in its memory, and fills all of it.
fn littering() -> String {
    format!(
        r#"(module {IMPORTS}
          (func $look (local $at i32)
            (local.set $at (i32.const 1024))
            (loop $next
              (if (i64.ne (i64.load (local.get $at)) (i64.const 0)) (then unreachable))
              (local.set $at (i32.add (local.get $at) (i32.const 8)))
              (br_if $next (i32.lt_u (local.get $at) (i32.shl (memory.size) (i32.const 16))))))
          (func (export "_start")
            (call $look)
            (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 1))
            (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
            (drop (memory.grow (i32.sub (i32.load8_u (i32.const 100)) (i32.const 48))))
            (call $look)
            (memory.fill (i32.const 1024) (i32.const 165) (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 1024)))))"#
    )
}

/// Instances that had little memory and much follow each other in the same slots, few and many of them.
pub(super) fn finds_nothing_of_others(program: impl Fn(&str, Layout) -> Arc<Program>) {
    for layout in [Layout::Linear, Layout::Interleaved] {
        let mapper = Mapper::new(program(&littering(), layout), Extent { capacity: 40, ..Extent::default() }, None);
        let mapper = mapper.unwrap();
        for batch in ["3333333333", "0", "123", "0123012301230123012301230123012301230123", "00000", "3210"] {
            for times in [1, 4] {
                let digits: Vec<_> = batch.repeat(times).into_bytes().into_iter().map(|digit| [digit]).collect();
                let (results, _) = mapper.run(jobs(&digits), None).unwrap();
                let ends: Vec<_> = results.iter().map(|done| done.end.clone()).collect();
                assert_eq!(ends, vec![End::Returned; digits.len()], "{layout:?}: {batch} {times} times");
            }
        }
    }
}

#[test]
fn an_instance_finds_nothing_of_those_that_had_its_slot_before() {
    finds_nothing_of_others(|wat, layout| program(wat, Build::Exact(layout)));
}

#[test]
fn a_trap_ends_one_record_and_keeps_what_it_wrote() {
    let (done, _) = run(&mapper(&echo(), 4, Layout::Linear), &["a", "!b", "c"]);
    assert_eq!((&done[0].end, &done[2].end), (&End::Returned, &End::Returned));
    assert!(matches!(&done[1].end, End::Trapped(trap) if trap.code == TrapCode::Unreachable));
    assert_eq!(done[1].stdout, b"1!b");
}

/// Stores and loads where the instructions' promise of alignment is broken if stdin has an odd length, and past the memory's end if it begins with `!`.
fn careless() -> String {
    format!(
        r#"(module {IMPORTS} (func (export "_start") (local $n i32)
          (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 1000))
          (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
          (local.set $n (i32.load (i32.const 8)))
          (if (i32.eq (i32.load8_u (i32.const 100)) (i32.const 33)) (then (i32.store (i32.const 65533) (i32.const 1))))
          (i32.store align=4 (i32.add (i32.const 2000) (local.get $n)) (i32.const 0x64636261))
          (i64.store align=1 (i32.add (i32.const 2005) (local.get $n)) (i64.load align=1 (i32.add (i32.const 2000) (local.get $n))))
          (i32.store16 align=1 (i32.add (i32.const 2015) (local.get $n)) (i32.const 0x7978))
          (i32.store (i32.const 0) (i32.add (i32.const 2000) (local.get $n))) (i32.store (i32.const 4) (i32.const 20))
          (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#
    )
}

#[test]
fn what_a_speculative_build_stops_runs_again_with_an_exact_one() {
    let inputs = ["", "a", "ab", "abc", "abcd", "!", "abcde"];
    let (exact, _) = run(&mapper(&careless(), 8, Layout::Interleaved), &inputs);
    let fast = checked_mapper(&careless(), 8, Build::Speculative(Placement::Interleaved));
    // Most do, so that the next ones begin there.
    for again in [5, 0] {
        let (done, stats) = run(&fast, &inputs);
        assert_eq!(done, exact);
        assert_eq!((stats.again, stats.instances), (again, 7));
    }
    let few = ["", "a", "abcd", "abcdefgh", "abcdefghijkl"];
    let (exact_few, _) = run(&mapper(&careless(), 8, Layout::Interleaved), &few);
    let fast = checked_mapper(&careless(), 8, Build::Speculative(Placement::Interleaved));
    for _ in 0..2 {
        let (done, stats) = run(&fast, &few);
        assert_eq!(done, exact_few);
        assert_eq!(stats.again, 1);
    }
    assert_eq!(exact[0].stdout, b"abcd\0abcd\0\0\0\0\0\0xy\0\0\0");
    assert!(matches!(&exact[5].end, End::Trapped(trap) if trap.code == TrapCode::MemoryOutOfBounds));
}

/// A stack of a megabyte below the data. It writes one byte as far below the stack's top as stdin's first says (times 64 KiB), then prints the 8 bytes
/// around that, if a byte of the data, found by an index, is as it was; if stdin has a second, it does the first by `memory.fill`.
fn deep() -> String {
    let imports = IMPORTS.replace("1)", "17)");
    format!(
        r#"(module {imports} (global $stack (mut i32) (i32.const 1048576)) (data (i32.const 1048588) "data\01")
          (func (export "_start") (local $at i32)
          (i32.store (i32.const 1048576) (i32.const 1048600)) (i32.store (i32.const 1048580) (i32.const 1000))
          (drop (call $fd_read (i32.const 0) (i32.const 1048576) (i32.const 1) (i32.const 1048584)))
          (local.set $at (i32.sub (global.get $stack)
            (i32.mul (i32.const 65536) (i32.sub (i32.load8_u (i32.const 1048600)) (i32.const 48)))))
          (if (i32.eq (i32.load (i32.const 1048584)) (i32.const 2))
            (then (memory.fill (local.get $at) (i32.const 120) (i32.const 3)))
            (else (i32.store8 (local.get $at) (i32.const 121))))
          (i32.store (i32.const 1048576) (i32.sub (local.get $at) (i32.const 4))) (i32.store (i32.const 1048580) (i32.const 8))
          (if (i32.ne (i32.load8_u offset=1048588 (i32.load8_u (i32.const 1048592))) (i32.const 97)) (then unreachable))
          (drop (call $fd_write (i32.const 1) (i32.const 1048576) (i32.const 1) (i32.const 1048584)))))"#
    )
}

/// Its first segment is a table of constants, from which it prints what it finds at 16 places. Before that it writes there what stdin's first byte says: by a store, by a store that only
/// begins before it, by `memory.fill`, by reading stdin to it, by a store behind it, or not at all.
fn constants() -> String {
    format!(
        r#"(module {IMPORTS} (data (i32.const 1024) "0123456789abcdef") (data (i32.const 1040) "more")
          (func (export "_start") (local $how i32) (local $i i32)
          (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 1))
          (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
          (local.set $how (i32.load8_u (i32.const 100)))
          (if (i32.eq (local.get $how) (i32.const 115)) (then (i32.store8 (i32.add (local.get $how) (i32.const 912)) (i32.const 33))))
          (if (i32.eq (local.get $how) (i32.const 98)) (then (i32.store align=1 (i32.add (local.get $how) (i32.const 923)) (i32.const 0x21212121))))
          (if (i32.eq (local.get $how) (i32.const 102)) (then (memory.fill (i32.add (local.get $how) (i32.const 935)) (i32.const 33) (i32.const 5))))
          (if (i32.eq (local.get $how) (i32.const 114)) (then
            (i32.store (i32.const 0) (i32.add (local.get $how) (i32.const 911))) (i32.store (i32.const 4) (i32.const 3))
            (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))))
          (if (i32.eq (local.get $how) (i32.const 97)) (then (i32.store8 (i32.add (local.get $how) (i32.const 943)) (i32.const 33))))
          (loop $copy
            (i32.store8 offset=200 (local.get $i) (i32.load8_u offset=1024 (i32.and (local.get $i) (i32.const 15))))
            (br_if $copy (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 16))))
          (i32.store8 (i32.const 216) (i32.load8_u (i32.const 1027)))
          (i32.store (i32.const 0) (i32.const 200)) (i32.store (i32.const 4) (i32.const 17))
          (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#
    )
}

#[test]
fn constants_that_are_written_after_all_have_their_new_values() {
    let inputs = ["", "s", "b", "f", "rXYZ", "a", "n"];
    let (exact, _) = run(&mapper(&constants(), 8, Layout::Interleaved), &inputs);
    let printed: Vec<_> = exact.iter().map(|done| String::from_utf8_lossy(&done.stdout).into_owned()).collect();
    let plain = "0123456789abcdef3";
    let written = ["012!456789abcdef!", "!123456789abcdef3", "0123456789abc!!!3", "0XYZ456789abcdefZ"];
    assert_eq!(printed, [&[plain][..], &written, &[plain, plain]].concat());
    let slots = checked_mapper(&constants(), 8, Build::Speculative(Placement::Interleaved));
    for fast in [slots, local_mapper(&constants(), 8, 256 << 10)] {
        let (done, stats) = run(&fast, &inputs);
        assert_eq!(done, exact);
        assert_eq!((stats.again, stats.instances), (4, 7));
    }
}

#[test]
fn a_stack_deeper_than_what_has_a_place_runs_again() {
    let inputs = ["1", "2", "3", "4", "8", "9", "2x", "9x"];
    let (exact, _) = run(&mapper(&deep(), 8, Layout::Interleaved), &inputs);
    assert_eq!(exact[0].stdout, b"\0\0\0\0y\0\0\0");
    assert_eq!(exact[7].stdout, b"\0\0\0\0xxx\0");
    let fast = checked_mapper(&deep(), 8, Build::Speculative(Placement::Interleaved));
    for _ in 0..2 {
        let (done, stats) = run(&fast, &inputs);
        assert_eq!(done, exact);
        // 256 KiB of stack have a place; the fourth writes its first byte, and prints from before it.
        assert_eq!(stats.again, 4);
    }
}

#[test]
fn an_atomic_store_below_the_stack_that_has_a_place_runs_again() {
    // It prints the data instead of what is around the store, so that nothing but the store looks there.
    let around = "(i32.sub (local.get $at) (i32.const 4))";
    let deep = deep().replace("17)", "17 17 shared)").replace("i32.store8", "i32.atomic.store8");
    let deep = deep.replace(around, "(i32.const 1048588)");
    let inputs = ["1", "2", "3", "4", "8", "9"];
    let (exact, _) = run(&mapper(&deep, 8, Layout::Linear), &inputs);
    assert_eq!(exact[5].stdout, b"data\x01\0\0\0");
    for layout in [Layout::Linear, Layout::Interleaved] {
        let (done, stats) = run(&checked_mapper(&deep, 8, Build::speculative(layout, 0)), &inputs);
        assert_eq!((&done, stats.again), (&exact, 2), "{layout:?}");
    }
}

#[test]
fn a_speculative_build_gives_what_an_exact_one_gives() {
    let (exact, _) = run(&mapper(&echo(), 4, Layout::Interleaved), &["a", "!b", "c"]);
    let fast = checked_mapper(&echo(), 4, Build::Speculative(Placement::Interleaved));
    let (done, stats) = run(&fast, &["a", "!b", "c"]);
    // What may trap ends without a word, and the exact build finds out why.
    assert_eq!((done, stats.again), (exact, 1));
}

/// Appends to the file `log`: `first`, 8 random bytes, and, behind an access where a speculative build stops if stdin has an odd length, `second`. Also says so on stderr, through a descriptor that
/// the device does not know of, and on stdout.
fn logging() -> String {
    format!(
        r#"(module
          (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
          (import "wasi_snapshot_preview1" "fd_renumber" (func $renumber (param i32 i32) (result i32)))
          (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
          {IMPORTS}
          (data (i32.const 500) "log") (data (i32.const 510) "first ") (data (i32.const 520) "second ")
          (func $write (param $fd i32) (param $at i32) (param $length i32)
            (i32.store (i32.const 0) (local.get $at)) (i32.store (i32.const 4) (local.get $length))
            (if (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable)))
          (func (export "_start") (local $fd i32)
            (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 300))
            (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 12)))
            (if (call $open (i32.const 3) (i32.const 0) (i32.const 500) (i32.const 3) (i32.const 1)
                  (i64.const 0x40) (i64.const 0) (i32.const 1) (i32.const 16)) (then unreachable))
            (local.set $fd (i32.load (i32.const 16)))
            (call $write (local.get $fd) (i32.const 510) (i32.const 6))
            (drop (call $random (i32.const 532) (i32.const 8)))
            (call $write (local.get $fd) (i32.const 532) (i32.const 8))
            (if (call $open (i32.const 3) (i32.const 0) (i32.const 500) (i32.const 3) (i32.const 1)
                  (i64.const 0x40) (i64.const 0) (i32.const 1) (i32.const 20)) (then unreachable))
            (if (call $renumber (i32.const 2) (i32.load (i32.const 20))) (then unreachable))
            (call $write (i32.load (i32.const 20)) (i32.const 510) (i32.const 6))
            (i32.store align=4 (i32.add (i32.const 600) (i32.load (i32.const 12))) (i32.const 1))
            (call $write (i32.load (i32.const 20)) (i32.const 520) (i32.const 6))
            (call $write (i32.const 1) (i32.const 520) (i32.const 6))
            (call $write (local.get $fd) (i32.const 520) (i32.const 7))
            (if (i32.eq (i32.load8_u (i32.const 100)) (i32.const 33)) (then unreachable))))"#
    )
}

#[test]
fn what_an_instance_did_outside_happens_once_though_it_runs_twice() {
    for build in [Build::Exact(Layout::Interleaved), Build::Speculative(Placement::Interleaved)] {
        let folder = tempfile::tempdir().unwrap();
        let mapper = checked_mapper(&logging(), 4, build);
        let mut context = Builder::new();
        context.preopen(folder.path(), "/").unwrap();
        let context = Arc::new(context);
        let job = |number, text: &str| Job {
            context: context.clone(),
            number,
            stdin: Bytes::copy_from_slice(text.as_bytes()),
        };
        let (results, stats) = mapper.run(vec![job(7, "a"), job(8, "!bc"), job(9, "")], None).unwrap();
        let done: Vec<Owned> = results.iter().map(Owned::from).collect();
        assert_eq!((&done[0].end, &done[2].end), (&End::Returned, &End::Returned), "{build:?}");
        assert!(matches!(&done[1].end, End::Trapped(trap) if trap.code == TrapCode::Unreachable), "{:?}", done[1].end);
        for done in &done {
            assert_eq!((&done.stdout[..], &done.stderr[..]), (&b"second"[..], &b"first second"[..]), "{build:?}");
        }
        assert_eq!(stats.again, if build.is_speculative() { 2 } else { 0 });
        let log = std::fs::read(folder.path().join("log")).unwrap();
        let count = |word: &[u8]| log.windows(word.len()).filter(|part| *part == word).count();
        assert_eq!((count(b"first "), count(b"second "), log.len()), (3, 3, 3 * (6 + 8 + 7)), "{build:?}");
    }
}

/// Writes what the monotonic clock says, 8 bytes.
const TIME: &str = r#"(module
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (if (call $clock (i32.const 1) (i64.const 1) (i32.const 16)) (then unreachable))
    (i32.store (i32.const 0) (i32.const 16)) (i32.store (i32.const 4) (i32.const 8))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

#[test]
fn the_devices_clock_is_the_hosts() {
    let host = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32).as_nanos() as u64
    };
    for build in [Build::Exact(Layout::Linear), Build::Speculative(Placement::Interleaved)] {
        let mapper = checked_mapper(TIME, 3, build);
        for _ in 0..3 {
            let before = host();
            let (done, stats) = run(&mapper, &["", "", ""]);
            let after = host();
            for done in done {
                let time = u64::from_le_bytes(done.stdout.try_into().unwrap());
                assert!((before..=after).contains(&time), "{before} {time} {after}");
            }
            assert_eq!(stats.hostcalls, 0, "the device knows");
        }
    }
}

#[test]
fn what_a_speculative_build_stops_has_no_more_time_than_the_rest() {
    let endless = format!(r#"(module {IMPORTS} (func (export "_start") (loop $l (br $l))))"#);
    let mapper = checked_mapper(&endless, 2, Build::Speculative(Placement::Interleaved));
    let timeout = Duration::from_secs(2);
    let (results, stats) = mapper.run(jobs(&["", ""]), Some(timeout)).unwrap();
    for done in results.iter() {
        assert!(matches!(done.end, End::Trapped(trap) if trap.code == TrapCode::Interrupted), "{:?}", done.end);
    }
    // An eighth of it once more, and not all.
    assert!(stats.run < timeout * 2, "{:?}", stats.run);
}

#[test]
fn memory_of_a_threads_own_is_fresh_for_every_instance() {
    let mapper = local_mapper(&echo(), 2, 128 << 10);
    for batch in [&["a", "b", "c", "d", "e"][..], &["f"], &["g", "!h", "i"]] {
        let (exact, _) = run(&self::mapper(&echo(), 4, Layout::Linear), batch);
        let (done, stats) = run(&mapper, batch);
        let trapped = batch.iter().filter(|text| text.starts_with('!')).count();
        assert_eq!((done, stats.again), (exact, trapped as u64));
    }
}

/// What is in memory at first. The segment that comes first is not the lowest, so that nothing is expected to stay.
const SEGMENTS: [(usize, &str); 3] = [(4093, "second, and not aligned"), (16, "first"), (60001, "the last")];

/// Prints a hash of all its memory as it begins, and leaves none of it as it was.
fn soiling() -> String {
    let data: String = SEGMENTS.iter().map(|(at, text)| format!("(data (i32.const {at}) {text:?}) ")).collect();
    format!(
        r#"(module {IMPORTS} {data} (func (export "_start") (local $at i32) (local $hash i32)
          (loop $bytes
            (local.set $hash (i32.add (i32.mul (local.get $hash) (i32.const 31)) (i32.load8_u (local.get $at))))
            (i32.store8 (local.get $at) (i32.const 0xa5))
            (br_if $bytes (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const 65536))))
          (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 4)) (i32.store (i32.const 100) (local.get $hash))
          (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#
    )
}

#[test]
fn memory_is_as_the_module_says_after_an_instance_has_written_to_all_of_it() {
    let mut memory = vec![0u8; 65536];
    SEGMENTS.iter().for_each(|(at, text)| memory[*at..][..text.len()].copy_from_slice(text.as_bytes()));
    let hash = memory.iter().fold(0u32, |hash, byte| hash.wrapping_mul(31).wrapping_add((*byte).into()));
    for mapper in [local_mapper(&soiling(), 2, 128 << 10), mapper(&soiling(), 2, Layout::Interleaved)] {
        let (done, stats) = run(&mapper, &["a", "b", "c", "d", "e"]);
        assert!(stats.again == 0 && done.iter().all(|done| done.stdout == hash.to_le_bytes()), "{done:?}");
    }
}

/// Bytes of three pages, and the first that is moved.
const MOVED: std::ops::Range<u32> = 8192..3 << 16;

/// Fills its memory with a pattern, then moves and fills as stdin says, four words each: 0, where to, where from and how much, or 1, where, with what and how much. Prints a hash of it all.
fn mover() -> String {
    let imports = IMPORTS.replace("1)", "3)");
    let (first, end) = (MOVED.start, MOVED.end);
    format!(
        r#"(module {imports} (func (export "_start") (local $at i32) (local $op i32) (local $hash i32)
          (local.set $at (i32.const {first}))
          (loop $bytes
            (i32.store8 (local.get $at) (i32.xor (i32.mul (local.get $at) (i32.const 167)) (i32.shr_u (local.get $at) (i32.const 7))))
            (br_if $bytes (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const {end}))))
          (i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 4096))
          (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
          (local.set $op (i32.const 1024))
          (block $done (loop $next
            (br_if $done (i32.ge_u (local.get $op) (i32.add (i32.const 1024) (i32.load (i32.const 8)))))
            (if (i32.load (local.get $op))
              (then (memory.fill (i32.load offset=4 (local.get $op)) (i32.load offset=8 (local.get $op)) (i32.load offset=12 (local.get $op))))
              (else (memory.copy (i32.load offset=4 (local.get $op)) (i32.load offset=8 (local.get $op)) (i32.load offset=12 (local.get $op)))))
            (local.set $op (i32.add (local.get $op) (i32.const 16)))
            (br $next)))
          (local.set $at (i32.const {first}))
          (loop $bytes
            (local.set $hash (i32.mul (i32.xor (local.get $hash) (i32.load8_u (local.get $at))) (i32.const 16777619)))
            (br_if $bytes (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const {end}))))
          (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 4)) (i32.store (i32.const 100) (local.get $hash))
          (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#
    )
}

/// What `mover` prints.
fn moved(operations: &[[u32; 4]]) -> [u8; 4] {
    let mut memory: Vec<u8> = (0..MOVED.end).map(|at| (at.wrapping_mul(167) ^ at >> 7) as u8).collect();
    for [is_fill, to, from, length] in operations {
        let [to, from, length] = [to, from, length].map(|n| *n as usize);
        match is_fill {
            0 => memory.copy_within(from..from + length, to),
            _ => memory[to..to + length].fill(from as u8),
        }
    }
    let moved = &memory[MOVED.start as usize..];
    moved.iter().fold(0u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619)).to_le_bytes()
}

#[test]
fn copies_and_fills_of_any_length_are_right_wherever_memory_is() {
    // Beside what is random: overlaps both ways of more than a stretch, by less than one, by a byte, and by none.
    let stretch = 64 << 10;
    let first = MOVED.start;
    let mut records: Vec<Vec<[u32; 4]>> = Vec::new();
    for distance in [0, 1, 3, 4, 4096, stretch - 1, stretch, stretch + 1] {
        for length in [stretch - 1, stretch, stretch + 1, 2 * stretch - 3] {
            let length = length.min(MOVED.end - first - distance);
            records.push(vec![[0, first + distance, first, length]]);
            records.push(vec![[0, first, first + distance, length]]);
            records.push(vec![[1, first + distance, distance, length]]);
        }
    }
    let mut seed = 7u32;
    let mut random = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((u64::from(seed) * u64::from(below)) >> 32) as u32
    };
    for _ in 0..32 {
        let operation = |_| {
            let [to, from] = [(); 2].map(|()| MOVED.start + random(MOVED.end - MOVED.start));
            let (is_fill, length) = (u32::from(random(4) == 0), random(MOVED.end - to.max(from)));
            [is_fill, to, from, length]
        };
        records.push((0..3).map(operation).collect());
    }
    let jobs = || {
        let bytes = |record: &Vec<[u32; 4]>| record.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        jobs(&records.iter().map(bytes).collect::<Vec<Vec<u8>>>())
    };
    let flat = checked_mapper(&mover(), 128, Build::Speculative(Placement::Linear));
    let exact = [Layout::Linear, Layout::Interleaved].map(|layout| mapper(&mover(), 128, layout));
    for mapper in exact.into_iter().chain([flat, local_mapper(&mover(), 128, 256 << 10)]) {
        let (done, stats) = mapper.run(jobs(), None).unwrap();
        assert_eq!(stats.again, 0);
        for (operations, done) in records.iter().zip(done.iter()) {
            assert_eq!(done.stdout, moved(operations), "{operations:?}");
        }
    }
}

#[test]
fn a_speculative_build_stops_what_it_cannot_be_sure_of_wherever_memory_is() {
    let inputs = ["", "a", "ab", "abc", "abcd", "!", "abcde"];
    let (exact, _) = run(&mapper(&careless(), 8, Layout::Interleaved), &inputs);
    let flat = checked_mapper(&careless(), 8, Build::Speculative(Placement::Linear));
    for mapper in [local_mapper(&careless(), 8, 64 << 10), flat] {
        let (done, stats) = run(&mapper, &inputs);
        assert_eq!(done, exact);
        assert!((1..7).contains(&stats.again), "{}", stats.again);
    }
}

#[test]
fn atomic_accesses_do_the_same_wherever_memory_is() {
    let module = format!(
        r#"(module {IMPORTS} (data (i32.const 16) "abcdefgh") (func (export "_start")
          (drop (i32.atomic.rmw.add (i32.const 16) (i32.const 1)))
          (drop (i32.atomic.rmw8.xchg_u (i32.const 21) (i32.const 70)))
          (drop (i32.atomic.rmw16.cmpxchg_u (i32.const 22) (i32.const 0x6867) (i32.const 0x4847)))
          (i64.atomic.store (i32.const 24) (i64.atomic.rmw.cmpxchg (i32.const 16) (i64.const 0) (i64.const 1)))
          (i32.store (i32.const 0) (i32.const 16)) (i32.store (i32.const 4) (i32.const 16))
          (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#
    );
    let shared = module.replace("(export \"memory\") 1)", "(export \"memory\") 1 1 shared)");
    let [linear, interleaved] =
        [Layout::Linear, Layout::Interleaved].map(|layout| checked_mapper(&shared, 2, Build::speculative(layout, 0)));
    for mapper in [local_mapper(&module, 2, 64 << 10), linear, interleaved] {
        let (done, stats) = run(&mapper, &["", "", ""]);
        assert!(done.iter().all(|done| done.stdout == b"bbcdeFGHbbcdeFGH"), "{done:?}");
        assert_eq!(stats.again, 0);
    }
}

/// Vectors at multiples of 4, as they are promised to be, and at any address, which nothing promises.
fn vectors() -> String {
    format!(
        r#"(module {IMPORTS} (func (export "_start") (local $at i32)
          (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 1000))
          (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
          (local.set $at (i32.add (i32.const 2000) (i32.mul (i32.const 4) (i32.load (i32.const 8)))))
          (v128.store align=4 (local.get $at) (v128.const i32x4 0x64636261 0x68676665 0x6c6b6a69 0x706f6e6d))
          (v128.store offset=16 align=4 (local.get $at) (i8x16.add (v128.load align=4 (local.get $at)) (v128.load64_splat offset=4 align=4 (local.get $at))))
          (v128.store offset=33 align=1 (local.get $at) (v128.load offset=3 align=1 (local.get $at)))
          (i32.store (i32.const 0) (local.get $at)) (i32.store (i32.const 4) (i32.const 50))
          (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#
    )
}

#[test]
fn vectors_that_keep_what_is_promised_of_them_do_not_run_again() {
    let inputs = ["", "a", "ab", "abc"];
    let (exact, _) = run(&mapper(&vectors(), 4, Layout::Linear), &inputs);
    assert_eq!(exact[1].stdout[..16], *b"abcdefghijklmnop");
    assert_eq!(exact[1].stdout[33..49], exact[1].stdout[3..19]);
    let [flat, interleaved] = [Layout::Linear, Layout::Interleaved]
        .map(|layout| checked_mapper(&vectors(), 4, Build::speculative(layout, 0)));
    for mapper in [local_mapper(&vectors(), 4, 64 << 10), flat, interleaved] {
        let (done, stats) = run(&mapper, &inputs);
        assert_eq!((&done, stats.again), (&exact, 0));
    }
}

#[test]
fn a_stack_deeper_than_local_memory_runs_again() {
    let inputs = ["0", "1", "2", "8", "1x", "9x"];
    let (exact, _) = run(&mapper(&deep(), 8, Layout::Interleaved), &inputs);
    let own = local_mapper(&deep(), 8, 256 << 10);
    let (done, stats) = run(&own, &inputs);
    assert_eq!(done, exact);
    // 16 KiB of stack have a place.
    assert_eq!(stats.again, 5);
}

/// Grows its memory by as many pages as stdin's first byte says, writes to the last, and prints 4 of its bytes and what the memory's size was.
fn growing() -> String {
    format!(
        r#"(module {IMPORTS} (func (export "_start") (local $last i32)
          (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 1000))
          (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
          (i32.store (i32.const 204) (memory.grow (i32.sub (i32.load8_u (i32.const 100)) (i32.const 48))))
          (local.set $last (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4)))
          (i32.store8 (local.get $last) (i32.const 120))
          (i32.store (i32.const 200) (i32.load (local.get $last)))
          (i32.store (i32.const 0) (i32.const 200)) (i32.store (i32.const 4) (i32.const 8))
          (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#
    )
}

#[test]
fn what_outgrows_local_memory_runs_where_there_is_more() {
    let inputs: Vec<&str> = (0..40).map(|i| if i == 7 { "9" } else { "1" }).collect();
    let (exact, _) = run(&mapper(&growing(), 64, Layout::Linear), &inputs);
    assert_eq!((&exact[0].stdout[..], &exact[7].stdout[..]), (&b"x\0\0\0\x01\0\0\0"[..], &b"x\0\0\0\x01\0\0\0"[..]));
    let own = local_mapper(&growing(), 64, 128 << 10);
    // What one instance left there, the next does not find.
    for _ in 0..3 {
        let (done, stats) = run(&own, &inputs);
        assert_eq!(done, exact);
        assert_eq!(stats.again, 1);
    }
}

#[test]
fn a_program_whose_instances_outgrow_their_threads_begins_where_there_is_more() {
    let inputs = ["1", "9", "9", "2", "9"];
    let (exact, _) = run(&mapper(&growing(), 8, Layout::Linear), &inputs);
    let own = local_mapper(&growing(), 8, 128 << 10);
    let again = [(); 2].map(|()| {
        let (done, stats) = run(&own, &inputs);
        assert_eq!(done, exact);
        stats.again
    });
    assert_eq!(again, [4, 0]);
}

/// Calls itself as often as stdin's first byte says, with so many bytes of stack each time, as LLVM has it; prints what it left in the deepest frame.
fn recursive(frame: u32) -> String {
    let imports = IMPORTS.replace("1)", "17)");
    format!(
        r#"(module {imports} (global $stack (mut i32) (i32.const 1048576)) (data (i32.const 1048576) "\00")
          (func $down (param $left i32) (result i32) (local $frame i32) (local $found i32)
            (global.set $stack (local.tee $frame (i32.sub (global.get $stack) (i32.const {frame}))))
            (i32.store (local.get $frame) (local.get $frame))
            (local.set $found (i32.load (local.get $frame)))
            (if (local.get $left)
              (then (local.set $found (call $down (i32.sub (local.get $left) (i32.const 1))))))
            (global.set $stack (i32.add (local.get $frame) (i32.const {frame})))
            (local.get $found))
          (func (export "_start")
            (i32.store (i32.const 1048584) (i32.const 1048600)) (i32.store (i32.const 1048588) (i32.const 1000))
            (drop (call $fd_read (i32.const 0) (i32.const 1048584) (i32.const 1) (i32.const 1048592)))
            (i32.store (i32.const 1048600) (call $down (i32.sub (i32.load8_u (i32.const 1048600)) (i32.const 48))))
            (i32.store (i32.const 1048588) (i32.const 4))
            (drop (call $fd_write (i32.const 1) (i32.const 1048584) (i32.const 1) (i32.const 1048592)))))"#
    )
}

#[test]
fn a_stack_deeper_than_a_threads_own_runs_where_there_is_more_of_it() {
    // 16 KiB and four frames have a place: 32 KiB, 8 calls.
    let (frame, rare): (u32, Vec<&str>) = (4096, (0..40).map(|i| if i == 7 { "8" } else { "7" }).collect());
    for (inputs, again, instead) in [(&rare[..], [1, 1], None), (&["7", "8", "9"], [2, 0], Some(Sibling::InSlots))] {
        let (exact, _) = run(&mapper(&recursive(frame), 64, Layout::Linear), inputs);
        let deepest = (1_048_576 - 8 * frame).to_le_bytes();
        assert_eq!(exact[0].stdout, deepest);
        let own = local_mapper(&recursive(frame), 64, 128 << 10);
        for again in again {
            let (done, stats) = run(&own, inputs);
            assert_eq!((done, stats.again), (exact.clone(), again));
        }
        assert_eq!(own.inner.plan.lock().unwrap().build, instead);
    }
}

#[test]
fn a_program_with_large_frames_has_room_for_some_of_them() {
    let own = local_mapper(&recursive(20_000), 8, 128 << 10);
    let (done, stats) = run(&own, &["0", "1", "2"]);
    assert_eq!(stats.again, 0);
    assert_eq!(done[2].stdout, 988_576u32.to_le_bytes());
}

#[test]
fn fewer_lanes_of_a_warp_give_the_same() {
    let inputs: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let (exact, _) = run(&mapper(&echo(), 128, Layout::Linear), &inputs);
    for layout in [Layout::Linear, Layout::Interleaved] {
        let extent = Extent { capacity: 64, lanes: Some(8), ..Extent::default() };
        let mapper = Mapper::new(program(&echo(), Build::speculative(layout, 0)), extent, None).unwrap();
        assert_eq!(run(&mapper, &inputs).0, exact);
    }
}

/// Writes 1000 bytes at a time to a descriptor until that fails.
fn endless(fd: u32) -> String {
    format!(
        r#"(module {IMPORTS} (func (export "_start")
          (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 1000))
          (loop $again (br_if $again (i32.eqz (call $fd_write (i32.const {fd}) (i32.const 0) (i32.const 1) (i32.const 8)))))))"#
    )
}

#[test]
fn output_without_end_ends_when_one_has_printed_all_that_one_may() {
    let program = program(&endless(1), Build::Exact(Layout::Linear));
    let limits = Limits { output_bytes: 100_000, ..Limits::default() };
    let mapper = Mapper::new(program, Extent { capacity: 4, limits, ..Extent::default() }, None).unwrap();
    for _ in 0..2 {
        let (done, _) = run(&mapper, &["", "", "", ""]);
        let all = SHARE + 100_000;
        for Owned { stdout, denied, .. } in done {
            assert_eq!((stdout.len(), denied), (all / 1000 * 1000, Some(Denied::Output(all as u64))));
        }
    }
}

#[test]
fn the_deadline_ends_a_batch_and_the_next_one_runs() {
    let mapper = mapper(&endless(2), 2, Layout::Linear);
    for _ in 0..2 {
        let (done, _) = mapper.run(jobs(&["", ""]), Some(Duration::from_millis(50))).unwrap();
        assert!(done.iter().all(|d| matches!(&d.end, End::Trapped(trap) if trap.code == TrapCode::Interrupted)));
    }
}

#[test]
fn a_module_whose_segments_do_not_fit_traps_in_every_record() {
    let wat = r#"(module (memory 1) (data (i32.const 65536) "x") (func (export "_start")))"#;
    let (done, stats) = run(&mapper(wat, 4, Layout::Linear), &["a", "b"]);
    assert_eq!((done.len(), stats.launches), (2, 0));
    assert!(done.iter().all(|d| matches!(&d.end, End::Trapped(_))));
}

#[test]
fn what_is_begun_while_another_batch_runs_gives_its_own_results() {
    let mapper = mapper(&echo(), 2, Layout::Linear);
    let batches = [&["a", "b"][..], &["c"], &["d", "e", "f", "g", "h", "i"], &["!j", "k"], &["l", "m", "n"]];
    let mut under_way = VecDeque::new();
    let mut seen = Vec::new();
    let mut finish = |pending: Pending| {
        let (results, _) = pending.finish().unwrap();
        seen.push(results.iter().map(|done| String::from_utf8(done.stdout.to_vec()).unwrap()).collect::<Vec<_>>());
    };
    for batch in batches {
        // The third would wait for the first, which this thread has to finish; a long one takes two launch slots.
        while under_way.len() > 1 || batch.len() > 2 && !under_way.is_empty() {
            finish(under_way.pop_front().unwrap());
        }
        under_way.push_back(mapper.begin(jobs(batch), None).unwrap());
        if batch.len() > 2 {
            finish(under_way.pop_front().unwrap());
        }
    }
    under_way.into_iter().for_each(finish);
    let expected = batches.map(|batch| batch.iter().map(|text| format!("1{text}")).collect::<Vec<_>>());
    assert_eq!(seen, expected);
}

#[test]
fn a_batch_is_made_ready_while_another_one_runs() {
    let mapper = mapper(&endless(2), 1, Layout::Linear);
    let (began, limit) = (Instant::now(), Duration::from_secs(2));
    let first = mapper.begin(jobs(&[""]), Some(limit)).unwrap();
    let second = mapper.begin(jobs(&[""]), Some(limit)).unwrap();
    assert!(began.elapsed() < limit, "the second waited for the first");
    first.finish().unwrap();
    let (_, stats) = second.finish().unwrap();
    assert!(stats.run >= limit && began.elapsed() >= 2 * limit, "each has its own time");
}

#[test]
fn a_third_batch_waits_until_another_thread_has_finished_one() {
    let mapper = mapper(&echo(), 2, Layout::Linear);
    let (send, receive) = std::sync::mpsc::channel::<Pending>();
    let finisher = std::thread::spawn(move || receive.iter().map(|p| p.finish().unwrap().0.len()).sum::<usize>());
    for _ in 0..20 {
        send.send(mapper.begin(jobs(&["a", "b", "c"]), None).unwrap()).unwrap();
    }
    drop(send);
    mapper.settle();
    assert_eq!(finisher.join().unwrap(), 60);
}

#[test]
fn a_batch_that_nobody_finishes_leaves_room_for_others() {
    let mapper = mapper(&echo(), 2, Layout::Linear);
    for _ in 0..5 {
        drop(mapper.begin(jobs(&["a", "b", "c"]), None).unwrap());
    }
    let pending = mapper.begin(jobs(&["a"]), None).unwrap();
    drop(mapper);
    assert_eq!(pending.finish().unwrap().0.get(0).unwrap().stdout, b"1a", "what was launched has run");
}

#[test]
fn every_launch_is_watched_those_that_run_again_too() {
    let counts = Arc::new(AtomicUsize::new(0));
    let counted = counts.clone();
    let watch: Watch = Arc::new(move || Box::new(counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed)));
    let program = program(&careless(), Build::Speculative(Placement::Interleaved));
    let mapper = Mapper::new(program, Extent { capacity: 2, ..Extent::default() }, Some(watch)).unwrap();
    let (_, stats) = run(&mapper, &["", "abcd", "", "a"]);
    assert_eq!((counts.load(std::sync::atomic::Ordering::Relaxed) as u64, stats.again > 0), (stats.launches, true));
}

/// What the host does for a batch besides the kernel. `cargo test -p gpu-run-map host_work -- --ignored --nocapture`
#[test]
#[ignore = "measures"]
fn host_work_for_a_batch_of_small_jobs() {
    const COUNT: usize = 65_536;
    let mapper = mapper(&echo(), COUNT, Layout::Interleaved);
    let texts: Vec<String> = (0..COUNT).map(|i| format!("record {i} of so many, forty bytes of text")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let jobs = jobs(&texts);
        let began = Instant::now();
        let (results, stats) = mapper.run(jobs, None).unwrap();
        let host = began.elapsed() - stats.run;
        assert_eq!(results.len(), COUNT);
        best = best.min(host);
        eprintln!("host {host:?}: {:?} before, {:?} after; kernel {:?}", stats.prepare, stats.collect, stats.run);
    }
    eprintln!("{COUNT} jobs: {best:?} on the host");
}
