//! A record that succeeds alone succeeds in any batch, whatever its neighbours take.

#![allow(clippy::unwrap_used)] // in a test, that is an assertion

use super::tests::{built, compiled, program};
use super::*;
use gpu_run_compiler::{Build, Placement, Value};
use gpu_run_run::{Denied, End, Limits, RunOptions};
use gpu_run_wasi::Builder;
use gpu_run_wasi::Stdio;
use proptest::prelude::*;
use std::sync::OnceLock;

/// Does what its stdin says, two bytes at a time: `g` grows memory by so many pages and writes to the last one, `r` calls itself so many times 8 deep, `p` prints so many
/// KiB, `a` appends a byte to the file `log` so many times. At the end it prints how many pages it has, or exits with 7 if it was refused one.
pub(super) fn worker() -> String {
    r#"(module
      (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
      (import "wasi_snapshot_preview1" "path_open"
        (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
      (memory (export "memory") 1)
      (data (i32.const 40) "log")
      (global $log (mut i32) (i32.const 0))
      (func $down (param $left i32) (result i32)
        (if (result i32) (local.get $left)
          (then (i32.add (i32.const 1) (call $down (i32.sub (local.get $left) (i32.const 1)))))
          (else (i32.const 0))))
      (func $write (param $fd i32) (param $at i32) (param $length i32)
        (i32.store (i32.const 0) (local.get $at)) (i32.store (i32.const 4) (local.get $length))
        (if (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8)) (then (call $exit (i32.const 9)))))
      (func $append
        (if (i32.eqz (global.get $log)) (then
          (if (call $path_open (i32.const 3) (i32.const 0) (i32.const 40) (i32.const 3) (i32.const 1)
                (i64.const 64) (i64.const 0) (i32.const 1) (i32.const 48))
            (then (call $exit (i32.const 8))))
          (global.set $log (i32.load (i32.const 48)))))
        (call $write (global.get $log) (i32.const 40) (i32.const 1)))
      (func (export "_start") (local $at i32) (local $end i32) (local $count i32)
        (i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 4096))
        (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
        (local.set $at (i32.const 1024))
        (local.set $end (i32.add (i32.const 1024) (i32.load (i32.const 8))))
        (block $done (loop $next
          (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
          (local.set $count (i32.load8_u offset=1 (local.get $at)))
          (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 0x67)) (then
            (if (i32.eq (memory.grow (local.get $count)) (i32.const -1)) (then (call $exit (i32.const 7))))
            (i32.store8 (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 1)) (i32.const 1))))
          (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 0x72)) (then
            (if (i32.ne (call $down (i32.shl (local.get $count) (i32.const 3))) (i32.shl (local.get $count) (i32.const 3)))
              (then unreachable))))
          (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 0x70)) (then
            (block $out (loop $more
              (br_if $out (i32.eqz (local.get $count)))
              (call $write (i32.const 1) (i32.const 8192) (i32.const 1024))
              (local.set $count (i32.sub (local.get $count) (i32.const 1)))
              (br $more)))))
          (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 0x61)) (then
            (block $out (loop $more
              (br_if $out (i32.eqz (local.get $count)))
              (call $append)
              (local.set $count (i32.sub (local.get $count) (i32.const 1)))
              (br $more)))))
          (local.set $at (i32.add (local.get $at) (i32.const 2)))
          (br $next)))
        (i32.store (i32.const 16) (memory.size))
        (call $write (i32.const 1) (i32.const 16) (i32.const 4))))"#
        .to_owned()
}

/// What records gave, and what is in the log.
pub(super) type Seen = (Vec<(String, Vec<u8>, Option<Denied>)>, usize);

pub(super) fn run_with(program: &Arc<Program>, extent: Extent, records: &[Vec<u8>], batches: usize) -> (Seen, u64) {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("log"), "").unwrap();
    let mut builder = Builder::new();
    builder.preopen(place.path(), "/").unwrap();
    let context = Arc::new(builder);
    let mapper = Mapper::new(program.clone(), extent, None).unwrap();
    let (mut seen, mut again) = (Vec::new(), 0);
    for (batch, part) in records.chunks(records.len().div_ceil(batches).max(1)).enumerate() {
        let number = |i: usize| (batch * records.len() + i) as u64;
        let job = |(i, stdin): (usize, &Vec<u8>)| Job {
            context: context.clone(),
            number: number(i),
            stdin: stdin.clone().into(),
        };
        let (done, stats) = mapper.run(part.iter().enumerate().map(job).collect(), None).unwrap();
        assert_eq!(done.len(), part.len());
        seen.extend(done.iter().map(|done| (format!("{:?}", done.end), done.stdout.to_vec(), done.denied)));
        again += stats.again;
    }
    let log = std::fs::read(place.path().join("log")).unwrap().len();
    ((seen, log), again)
}

/// The same one by one, where there is no limit: on `cpu`, whichever device is tested. A GPU would take a third of a second for each record that needs another stack.
pub(super) fn alone(records: &[Vec<u8>]) -> Seen {
    static WORKER: OnceLock<Arc<Program>> = OnceLock::new();
    let load = || {
        let cpu = gpu_run_device::open("cpu").unwrap();
        Arc::new(Program::load(cpu, Arc::new(compiled(&worker(), Build::Exact(Layout::Linear)))).unwrap())
    };
    let extent = Extent { capacity: 1, ..Extent::default() };
    run_with(WORKER.get_or_init(load), extent, records, records.len()).0
}

fn step() -> impl Strategy<Value = [u8; 2]> {
    prop_oneof![
        (0u8..60).prop_map(|pages| [b'g', pages]),
        any::<u8>().prop_map(|depth| [b'r', depth]),
        (0u8..80).prop_map(|kib| [b'p', kib]),
        (0u8..40).prop_map(|times| [b'a', times]),
    ]
}

pub(super) fn records() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let record = prop::collection::vec(step(), 0..5).prop_map(|steps| steps.concat());
    prop::collection::vec(record, 1..40)
}

fn small_limits() -> impl Strategy<Value = Limits> {
    let output = (0usize..300, 0u64..64, 0u64..2000);
    (20u64..200, 1u32..64, output, 0usize..30).prop_map(|(device, stack, (output, outboxes, annexes), answers)| {
        Limits {
            device_bytes: Some(device << 20),
            first_stack: Some(stack << 10),
            output_bytes: (output + 300) << 10,
            outbox_bytes: outboxes << 10,
            annex_bytes: Some(annexes << 10),
            answer_bytes: answers << 8,
        }
    })
}

/// The worker, built in every way; once for all tests, for a GPU's driver takes a second for each.
fn builds() -> &'static [Arc<Program>; 4] {
    static BUILDS: OnceLock<[Arc<Program>; 4]> = OnceLock::new();
    BUILDS.get_or_init(|| {
        [
            program(&worker(), Build::Exact(Layout::Linear)),
            program(&worker(), Build::Exact(Layout::Interleaved)),
            program(&worker(), Build::Speculative(Placement::Interleaved)),
            built(&worker(), Build::speculative(Layout::Interleaved, 192 << 10)),
        ]
    })
}

pub(super) fn cases() -> u32 {
    let is_set = |name| std::env::var_os(name).is_some();
    match (is_set("GPU_RUN_TEST_ALL"), is_set("GPU_RUN_TEST_DEVICE")) {
        (true, _) => 400,
        // Other stacks take a GPU a third of a second, and each case has several.
        (false, true) => 4,
        (false, false) => 24,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn any_batch_gives_what_each_record_gives_alone(
        records in records(),
        limits in small_limits(),
        capacity in 1usize..50,
        batches in 1usize..4,
        build in 0usize..4,
    ) {
        let expected = alone(&records);
        let extent = Extent { capacity, limits, ..Extent::default() };
        let (seen, _) = run_with(&builds()[build], extent, &records, batches);
        prop_assert_eq!(seen, expected);
    }
}

fn grows(pages: u8) -> Vec<u8> {
    vec![b'g', pages]
}

#[test]
fn records_that_need_more_than_their_share_of_the_device_run_fewer_at_a_time() {
    let limits = Limits { device_bytes: Some(64 << 20), ..Limits::default() };
    for program in builds() {
        // Each needs 8 MiB where 64 have one each.
        let records = vec![grows(127); 64];
        let (seen, again) = run_with(program, Extent { capacity: 64, limits, ..Extent::default() }, &records, 1);
        assert_eq!(seen, alone(&records));
        assert!(again >= 64, "{again}");
    }
}

#[test]
fn launches_that_follow_in_the_same_batch_begin_with_what_many_records_needed() {
    let limits = Limits { device_bytes: Some(64 << 20), ..Limits::default() };
    let program = program(&worker(), Build::Exact(Layout::Linear));
    let records = vec![grows(63); 256];
    let (seen, again) = run_with(&program, Extent { capacity: 32, limits, ..Extent::default() }, &records, 1);
    assert_eq!(seen, alone(&records));
    assert!((1..256).contains(&again), "{again}");
}

#[test]
fn batches_that_follow_begin_with_what_many_records_needed() {
    let limits = Limits { device_bytes: Some(64 << 20), ..Limits::default() };
    let program = program(&worker(), Build::Speculative(Placement::Interleaved));
    let mapper = Mapper::new(program.clone(), Extent { capacity: 32, limits, ..Extent::default() }, None).unwrap();
    let jobs = || super::tests::jobs(&vec![grows(63); 32]);
    let again: Vec<u64> = (0..3).map(|_| mapper.run(jobs(), None).unwrap().1.again).collect();
    assert!(again[0] >= 32 && again[1..] == [0, 0], "{again:?}");
    let learned = mapper.tuning().unwrap().learned;
    assert_eq!(learned.unwrap().memory, 64 << 16);
    // So does who is told.
    let extent = Extent { capacity: 32, limits, learned, ..Extent::default() };
    let told = Mapper::new(program, extent, None).unwrap();
    assert_eq!(told.run(jobs(), None).unwrap().1.again, 0);
}

/// Prints 1 KiB at a time, with a question after the first part.
fn prints(kib: u8, kib_after: u8) -> Vec<u8> {
    vec![b'p', kib, b'a', 1, b'p', kib_after]
}

#[test]
fn batches_that_follow_have_room_for_what_many_records_printed() {
    for program in builds() {
        // The pool is enough for three of them.
        let limits =
            Limits { output_bytes: 600 << 10, outbox_bytes: 0, annex_bytes: Some(16 << 20), ..Limits::default() };
        let extent = Extent { capacity: 32, limits, ..Extent::default() };
        let mapper = Mapper::new(program.clone(), extent, None).unwrap();
        let jobs = || super::tests::jobs(&vec![vec![b'p', 200]; 32]);
        let runs: Vec<_> = (0..3).map(|_| mapper.run(jobs(), None).unwrap()).collect();
        assert!(runs.iter().all(|(done, _)| done.iter().all(|done| done.stdout.len() == (200 << 10) + 4)));
        let again: Vec<u64> = runs.iter().map(|(_, stats)| stats.again).collect();
        assert!(again[0] >= 29 && again[1..] == [0, 0], "{again:?}");
        assert_eq!(runs[2].1.hostcalls, 0, "all of it was in annexes");
        let learned = mapper.tuning().unwrap().learned.unwrap();
        assert!((200 << 10..300 << 10).contains(&learned.output), "{learned:?}");
        assert_eq!((learned.memory, learned.stack), (0, 0), "what they had is not what they needed");
        let told = Mapper::new(program.clone(), Extent { learned: Some(learned), ..extent }, None).unwrap();
        let (_, stats) = told.run(jobs(), None).unwrap();
        assert_eq!((stats.again, stats.hostcalls), (0, 0));
    }
}

#[test]
fn what_one_batch_lacked_denies_the_next_one_nothing() {
    // Neither annexes nor room for answers: the first batch ends with records that run alone.
    let limits = Limits {
        device_bytes: Some(20 << 20),
        output_bytes: 300 << 10,
        outbox_bytes: 0,
        annex_bytes: Some(0),
        answer_bytes: 0,
        ..Limits::default()
    };
    let extent = Extent { capacity: 10, limits, ..Extent::default() };
    let first = [vec![b'p', 32], vec![b'a', 1], vec![b'a', 1, b'g', 47], vec![b'p', 56]];
    let records = first.into_iter().chain(vec![grows(48); 4]).collect::<Vec<_>>();
    for program in builds() {
        assert_eq!(run_with(program, extent, &records, 2).0, alone(&records));
    }
}

#[test]
fn output_is_in_order_whichever_way_it_took() {
    // Of 512 bytes, 4 KiB and more: some writes fit the outbox, some the annex, and some are sent.
    for (outboxes, annexes) in [(0, 0), (0, 12 << 12), (1 << 20, 0), (1 << 20, 12 << 13)] {
        let limits = Limits { outbox_bytes: outboxes, annex_bytes: Some(annexes), ..Limits::default() };
        let learned = Some(Allowance { output: annexes / 12, ..Allowance::default() });
        let records: Vec<_> = (0..12).map(|i| prints(i % 7, i % 5)).collect();
        for program in builds() {
            let extent = Extent { capacity: 12, limits, learned, ..Extent::default() };
            assert_eq!(run_with(program, extent, &records, 1).0, alone(&records));
        }
    }
}

#[test]
fn what_was_printed_before_a_rerun_is_no_answer_it_waits_for() {
    // A KiB does not fit the outbox of one of 64, and does where few run again.
    let limits = Limits { device_bytes: Some(64 << 20), outbox_bytes: 64 << 10, ..Limits::default() };
    let records: Vec<_> = (0..64).map(|_| [prints(2, 3), grows(127), prints(1, 1)].concat()).collect();
    for program in builds() {
        let (seen, again) = run_with(program, Extent { capacity: 64, limits, ..Extent::default() }, &records, 1);
        assert!(again >= 64, "{again}");
        assert_eq!(seen, alone(&records));
    }
}

#[test]
fn one_greedy_record_does_not_make_the_others_fewer() {
    let limits = Limits { device_bytes: Some(256 << 20), ..Limits::default() };
    let program = program(&worker(), Build::Speculative(Placement::Interleaved));
    let mapper = Mapper::new(program, Extent { capacity: 64, limits, ..Extent::default() }, None).unwrap();
    let mut records = vec![grows(1); 64];
    records[20] = grows(250);
    for _ in 0..2 {
        let (_, stats) = mapper.run(super::tests::jobs(&records), None).unwrap();
        assert!(stats.again <= 4 && stats.again > 0, "{}", stats.again);
    }
    assert!(mapper.tuning().is_none());
}

#[test]
fn what_a_record_is_refused_for_good_is_said() {
    let program = program(&worker(), Build::Exact(Layout::Linear));
    let records = [grows(10), grows(250)];
    let exited = |code: u32| format!("{:?}", End::Exited(code));
    let limits = Limits { device_bytes: Some(8 << 20), ..Limits::default() };
    let ((seen, _), _) = run_with(&program, Extent { capacity: 2, limits, ..Extent::default() }, &records, 1);
    assert_eq!(seen[0].2, None);
    assert!(seen[1].0 == exited(7) && matches!(seen[1].2, Some(Denied::DeviceMemory(_))), "{seen:?}");
    let extent = Extent { capacity: 2, max_memory: Some(4 << 20), ..Extent::default() };
    let ((seen, _), _) = run_with(&program, extent, &records, 1);
    assert_eq!((&seen[1].0, seen[1].2), (&exited(7), Some(Denied::MaxMemory(4 << 20))));
    let bounded =
        program_with(&worker().replace(r#"(memory (export "memory") 1)"#, r#"(memory (export "memory") 1 100)"#));
    let ((seen, _), _) = run_with(&bounded, Extent { capacity: 2, ..Extent::default() }, &records, 1);
    assert_eq!((&seen[1].0, seen[1].2), (&exited(7), Some(Denied::ModuleMaximum(100 << 16))));
}

fn program_with(wat: &str) -> Arc<Program> {
    program(wat, Build::Exact(Layout::Linear))
}

#[test]
fn all_memories_and_tables_of_an_instance_share_what_is_allowed() {
    let wat = r#"(module (memory $a 1) (memory $b 1) (table $t 8 100000 funcref)
      (func (export "f") (param i32 i32 i32) (result i32)
        (i32.or (i32.or (i32.lt_s (memory.grow $a (local.get 0)) (i32.const 0))
          (i32.shl (i32.lt_s (memory.grow $b (local.get 1)) (i32.const 0)) (i32.const 1)))
          (i32.shl (i32.lt_s (table.grow $t (ref.null func) (local.get 2)) (i32.const 0)) (i32.const 2)))))"#;
    let options = gpu_run_compiler::CompileOptions {
        build: Build::Exact(Layout::Linear),
        sm: 75,
        entry: gpu_run_compiler::Entry::Exports,
        registers: None,
    };
    let compiled = gpu_run_compiler::Compiled::new(&wat::parse_str(wat).unwrap(), &options).unwrap();
    let program = super::tests::loaded(compiled);
    let call = |a: i32, b: i32, t: i32, pages: u64| {
        let args = [a, b, t].map(Value::I32);
        let options = RunOptions { max_memory: Some(pages << 16), ..RunOptions::default() };
        let contexts = vec![Builder::new().build(Stdio::null())];
        gpu_run_run::run(&program, "f", &args, contexts, &options).map(|(outcomes, _)| outcomes[0].results[0])
    };
    assert_eq!(call(3, 3, 0, 9).unwrap(), Value::I32(0));
    assert_eq!(call(3, 4, 0, 9).unwrap(), Value::I32(2), "the second memory has no room any more");
    assert_eq!(call(6, 0, 9000, 9).unwrap(), Value::I32(4), "nor has the table");
    assert!(matches!(call(0, 0, 0, 2), Err(Error::Limit(what)) if what.contains("memories and tables begin with")));
}

#[test]
fn instances_with_contexts_run_again_with_more_and_act_once() {
    let program = program(&worker(), Build::Exact(Layout::Linear));
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("log"), "").unwrap();
    let mut builder = Builder::new();
    builder.preopen(place.path(), "/").unwrap();
    let printed = Arc::new(Mutex::new(Vec::new()));
    let context = |_| {
        // Asks, grows, asks again, goes deep, prints.
        let stdin = Box::new(std::io::Cursor::new(b"a\x05g\x40a\x03r\xffp\x01".to_vec()));
        let stdio =
            Stdio { stdin: Box::new(Reader(stdin)), stdout: Box::new(Printer(printed.clone())), ..Stdio::null() };
        builder.clone().build(stdio)
    };
    let limits =
        Limits { device_bytes: Some(24 << 20), first_stack: Some(4 << 10), answer_bytes: 256, ..Limits::default() };
    let contexts = (0..8).map(context).collect();
    let options = RunOptions { limits, ..RunOptions::default() };
    let (outcomes, stats) = gpu_run_run::run(&program, "_start", &[], contexts, &options).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.end == End::Returned), "{outcomes:?}");
    assert!(stats.again >= 8, "{stats:?}");
    assert_eq!(std::fs::read(place.path().join("log")).unwrap().len(), 8 * 8);
    assert_eq!(printed.lock().len(), 8 * (1024 + 4));
}

#[derive(Debug)]
struct Reader(Box<std::io::Cursor<Vec<u8>>>);

impl gpu_run_wasi::stdio::Input for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        std::io::Read::read(&mut self.0, buffer)
    }
}

#[derive(Debug)]
struct Printer(Arc<Mutex<Vec<u8>>>);

impl gpu_run_wasi::stdio::Output for Printer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
}

/// `cargo test -p gpu-run-map host_work -- --ignored --nocapture`
#[test]
#[ignore = "measures"]
fn host_work_for_long_outputs() {
    let learned = Some(Allowance { output: 700 << 10, ..Allowance::default() });
    let extent = Extent { capacity: 256, learned, ..Extent::default() };
    let mapper = Mapper::new(program(&worker(), Build::Exact(Layout::Linear)), extent, None).unwrap();
    let jobs = || super::tests::jobs(&vec![[b'p', 200, b'p', 200, b'p', 200]; 256]);
    let mut last = Results::default();
    for _ in 0..6 {
        let (results, stats) = mapper.run(jobs(), None).unwrap();
        let bytes: usize = results.iter().map(|done| done.stdout.len()).sum();
        let rate = bytes as f64 / stats.collect.as_secs_f64() / 1e9;
        eprintln!("{rate:.2} GB/s of {} MB", bytes >> 20);
        last = results;
    }
    drop(last);
}
