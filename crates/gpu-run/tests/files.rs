//! Maps of files: what the command `gpu-run map` does, from a program.

#![allow(clippy::unwrap_used)] // In a test, that is an assertion.

use gpu_run::files::{FileMap, Input, Location, Output, Reason, Shard, Split, StopReason, Unfinished, merge};
use gpu_run::{Command, Config, DeviceInfo, Engine, Error, Interrupt, Linker, Mapper, Module, Status, Wasi};
use parking_lot::Mutex;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tempfile::TempDir;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(&Config::new().device("cpu").no_cache()).unwrap());

/// Prints its stdin; for `t` it traps, for `e` it exits with 3, for `l` it does not end, for `f` it calls a function that fails.
const ECHO: &str = r#"
    (module
        (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (import "host" "fail" (func $fail (param i32)))
        (memory (export "memory") 1)
        (data (i32.const 0) "\40\00\00\00\00\04\00\00")
        (func $begins (param $with i32) (result i32) (i32.eq (i32.load8_u (i32.const 64)) (local.get $with)))
        (func (export "_start")
            (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 4)))
            (if (call $begins (i32.const 0x74)) (then unreachable))
            (loop $for_ever (br_if $for_ever (call $begins (i32.const 0x6c))))
            (if (call $begins (i32.const 0x66)) (then (call $fail (i32.load8_u (i32.const 65)))))
            (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
            (if (call $begins (i32.const 0x65)) (then (call $exit (i32.const 3))))))
"#;

fn linker() -> Linker<u64> {
    let mut linker = Linker::new(&ENGINE);
    linker.function("host", "fail", |byte: i32| Err::<(), _>(format!("no more of {byte}"))).unwrap();
    linker
}

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// From `in` to `out`, a few records at a time.
    fn map(&self) -> FileMap {
        self.map_on(&ENGINE)
    }

    fn map_on(&self, engine: &Engine) -> FileMap {
        let module = Module::named(engine, "echo", ECHO.as_bytes()).unwrap();
        let mut linker = Linker::new(engine);
        linker.function("host", "fail", |byte: i32| Err::<(), _>(format!("no more of {byte}"))).unwrap();
        let builder = Mapper::builder(&module).functions(&linker, |number| number).batch(7);
        builder.files(Input::at(self.path("in")).unwrap(), Output::at(self.path("out")).unwrap())
    }
}

fn lines(count: usize) -> String {
    (0..count).map(|i| format!("line {i}\n").replace("line", if i == 30 { "t" } else { "_" })).collect()
}

fn expected(count: usize) -> String {
    lines(count).lines().map(|line| if line.starts_with('t') { "\n".into() } else { format!("{line}\n") }).collect()
}

#[test]
fn records_that_fail_are_told_and_all_others_are_written() {
    let place = Place::new();
    place.write("in", "one\ntrap\nexit\nf!\nzulu");
    let (told, progress) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU32::new(0)));
    let (telling, counting) = (told.clone(), progress.clone());
    let ended = place
        .map()
        .on_failure(move |failure| {
            assert!(matches!(failure.location, Location::Line(line) if *line == failure.number + 1));
            telling.lock().push((failure.number, failure.reason.to_string()));
            assert!(failure.number != 3 || matches!(failure.reason, Reason::Ended(Status::Failed { .. })));
        })
        .on_progress(move |_| _ = counting.fetch_add(1, Ordering::Relaxed))
        .run()
        .unwrap();
    assert_eq!(place.read("out"), "one\n\nexit\n\nzulu\n");
    assert_eq!((ended.summary.records, ended.summary.failed, ended.stopped), (5, 3, None));
    assert_eq!(ended.statistics.instances, 5);
    assert!(progress.load(Ordering::Relaxed) > 0);
    let told = told.lock();
    let [(1, trap), (2, exit), (3, failure)] = &told[..] else { panic!("{told:?}") };
    assert!(trap.starts_with("trapped: unreachable"), "{trap}");
    assert_eq!((&exit[..], &failure[..]), ("exited with code 3", "`host.fail` failed: no more of 33"));
}

#[test]
fn a_map_that_stopped_goes_on_where_it_stopped() {
    let place = Place::new();
    place.write("in", &lines(100));
    let ended = place.map().fail_fast().run().unwrap();
    assert_eq!((ended.stopped, ended.resumes_at), (Some(StopReason::RecordFailed), Some(28)));
    let refused = place.map().run().unwrap_err();
    assert!(matches!(refused, Error::Files(_)) && refused.to_string().contains("is unfinished"), "{refused}");
    let ended = place.map().unfinished(Unfinished::Resume).run().unwrap();
    assert_eq!((ended.summary.records, ended.summary.failed), (100, 1));
    assert!(ended.summary.before >= 28);
    assert_eq!(place.read("out"), expected(100));
    // A finished output is overwritten.
    place.write("in", "other\n");
    place.map().run().unwrap();
    assert_eq!(place.read("out"), "other\n");
}

#[test]
fn an_interrupt_ends_a_map_which_then_can_go_on() {
    let place = Place::new();
    let text = lines(40).replace("_ 35\n", "loop\n");
    place.write("in", &text);
    let interrupt = Interrupt::new();
    let module = Module::named(&ENGINE, "echo", ECHO.as_bytes()).unwrap();
    let builder = || Mapper::builder(&module).functions(&linker(), |number| number).batch(7);
    let files = |builder: gpu_run::MapperBuilder| {
        builder.files(Input::at(place.path("in")).unwrap(), Output::at(place.path("out")).unwrap())
    };
    let raised = interrupt.clone();
    let map = files(builder().interrupt(&interrupt)).on_progress(move |done| {
        if done.records == 35 {
            raised.raise();
        }
    });
    let began = Instant::now();
    let ended = map.run().unwrap();
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!((ended.stopped, ended.resumes_at), (Some(StopReason::Interrupted), Some(35)));
    assert!(expected(40).starts_with(&place.read("out")));
    let ended = files(builder().timeout(Duration::from_millis(300))).unfinished(Unfinished::Resume).run().unwrap();
    assert_eq!((ended.summary.records, ended.summary.failed), (40, 2));
    assert_eq!(place.read("out"), expected(40).replace("_ 35\n", "\n"));
}

#[test]
fn shards_and_several_devices_write_what_one_map_writes() {
    let place = Place::new();
    place.write("in", &lines(100));
    for index in 0..3 {
        place.map().shard(Shard::new(index, 3).unwrap()).run().unwrap();
    }
    let again = place.map().shard(Shard::new(0, 3).unwrap()).unfinished(Unfinished::Resume).run().unwrap();
    assert!(again.summary.records > 0 && again.summary.records == again.summary.before, "it is finished");
    let merged = merge(place.path("out")).unwrap();
    assert_eq!((merged.shards, merged.records, merged.failed), (3, 100, 1));
    assert_eq!(place.read("out"), expected(100));
    fs::remove_file(place.path("out")).unwrap();
    let two = Engine::new(&Config::new().device("cpu:0,1").no_cache()).unwrap();
    let ended = place.map_on(&two).run().unwrap();
    assert_eq!(place.read("out"), expected(100));
    let shares = &ended.statistics.devices;
    assert_eq!(shares.iter().map(|share| share.records).sum::<u64>(), 100);
    assert_eq!(shares.len(), 2);
}

#[test]
fn streams_and_arguments_that_differ() {
    // Prints its second argument.
    let module = Module::new(
        &ENGINE,
        r#"(module
            (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (func (export "_start") (local $end i32)
                (drop (call $args (i32.const 0) (i32.const 64)))
                (local.set $end (i32.load (i32.const 4)))
                (loop $next
                    (local.set $end (i32.add (local.get $end) (i32.const 1)))
                    (br_if $next (i32.load8_u (local.get $end))))
                (i32.store (i32.const 16) (i32.load (i32.const 4)))
                (i32.store (i32.const 20) (i32.sub (local.get $end) (i32.load (i32.const 4))))
                (drop (call $write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 32)))))"#,
    )
    .unwrap();
    let written = Arc::new(Mutex::new(Vec::new()));
    let input: Box<dyn Read + Send> = Box::new(io::Cursor::new("1\n{}\n\"x\"\n"));
    Mapper::builder(&module)
        .arg("app")
        .arg("--record={}!")
        .files(Input::Stream(input), Output::Stream(Box::new(Shared(written.clone()))))
        .split(Split::Jsonl)
        .run()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&written.lock()), "--record=1!\n--record={}!\n--record=\"x\"!\n");
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_function_is_called_for_each_record() {
    let place = Place::new();
    let module = Module::new(
        &ENGINE,
        r#"(module
            (func (export "div") (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1)))
            (func (export "vector") (param v128)))"#,
    )
    .unwrap();
    place.write("in", &(0..5000).map(|i| format!("{}\n", i % 11)).collect::<String>());
    let map = |function: &str| {
        let (input, output) = (Input::at(place.path("in")).unwrap(), Output::at(place.path("out")).unwrap());
        Mapper::builder(&module).files(input, output).function(function).arguments(["100", "{}"])
    };
    let ended = map("div").run().unwrap();
    let expected: String =
        (0..5000).map(|i| (100i32).checked_div(i % 11).map_or("\n".into(), |x| format!("{x}\n"))).collect();
    assert_eq!(place.read("out"), expected);
    assert_eq!((ended.summary.records, ended.summary.failed), (5000, 455));
    assert!(matches!(map("mod").run(), Err(Error::MissingExport(_))));
    assert!(matches!(map("vector").run(), Err(Error::Limit(_))));
}

#[test]
fn what_is_wrong_with_files_is_an_error_with_the_name() {
    let place = Place::new();
    let error = place.map().run().unwrap_err();
    assert!(error.to_string().contains(&*Path::new(&place.path("in")).to_string_lossy()), "{error}");
    assert!(Input::at("s3://").is_err());
}

#[test]
fn runs_of_one_command_at_the_same_time_have_failures_of_their_own() {
    let module = Module::named(&ENGINE, "echo", ECHO.as_bytes()).unwrap();
    let (inside, calls) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut linker: Linker<()> = Linker::new(&ENGINE);
    let (waiting, counting) = (inside.clone(), calls.clone());
    let fail = move |_: i32| {
        // Both runs fail at the same time.
        waiting.fetch_add(1, Ordering::SeqCst);
        let began = Instant::now();
        while waiting.load(Ordering::SeqCst) % 2 != 0 && began.elapsed() < Duration::from_secs(5) {
            std::thread::yield_now();
        }
        Err::<(), _>(format!("call {}", counting.fetch_add(1, Ordering::SeqCst)))
    };
    linker.blocking_function("host", "fail", fail).unwrap();
    let command = Command::new(&module).functions(&linker, |_| ()).stdin(*b"f");
    for _ in 0..20 {
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(|| command.output().unwrap().status);
            (command.output().unwrap().status, other.join().unwrap())
        });
        for status in [one, other] {
            assert!(matches!(status, Status::Failed { .. }), "{status}");
        }
    }
}

#[test]
fn statistics_traces_and_streams_of_a_command() {
    let module = Module::named(&ENGINE, "echo", ECHO.as_bytes()).unwrap();
    let (traced, written) = (Arc::new(Mutex::new(String::new())), Arc::new(Mutex::new(Vec::new())));
    let lines = traced.clone();
    let command = Command::new(&module).functions(&linker(), |number| number).stdin(*b"hello");
    let traced_command = command.clone().trace(move |line| lines.lock().push_str(line));
    let (outputs, statistics) = traced_command.measured(2).unwrap();
    assert_eq!((outputs.len(), statistics.instances), (2, 2));
    assert!(statistics.host_calls >= 4 && statistics.launches > 0, "{statistics:?}");
    let traced = traced.lock();
    assert!(traced.contains("[instance 1] ") && traced.contains("fd_write"), "{traced}");
    let wasi = Wasi::new().stdin(*b"hello").stdout_to(Shared(written.clone()));
    assert!(command.clone().wasi(wasi).status().unwrap().success());
    assert_eq!(*written.lock(), b"hello");
    let mut mapper = Mapper::builder(&module).functions(&linker(), |number| number).build().unwrap();
    assert_eq!(mapper.map(["a", "b", "c"]).count(), 3);
    assert_eq!(mapper.statistics().instances, 3);
    let trapped = command.stdin(*b"t").backtrace(true).output().unwrap().status;
    assert!(trapped.backtrace().is_some_and(|lines| !lines.is_empty()), "{trapped}");
    assert_eq!(DeviceInfo::cpu().id, "cpu");
}
