//! Gangs: threads that share a memory, wait for each other, count together, and end together.
#![allow(clippy::unwrap_used)]

#[path = "../../compiler/tests/support/mod.rs"]
mod support;

use gpu_run_abi::TrapCode;
use gpu_run_cache::Cache;
use gpu_run_compiler::{Compiler, Error};
use gpu_run_device::Device;
use gpu_run_gang::{Gang, GangOptions, GangProgram, Successor};
use std::sync::Arc;
use std::time::{Duration, Instant};

const IMPORTS: &str = r#"
  (import "gpu" "thread" (func $thread (result i32)))
  (import "gpu" "threads" (func $threads (result i32)))
  (import "gpu" "group" (func $group (result i32)))
  (import "gpu" "groups" (func $groups (result i32)))
  (import "gpu" "lane" (func $lane (result i32)))
  (import "gpu" "processor" (func $processor (result i32)))
  (import "gpu" "barrier" (func $barrier))
  (import "gpu" "ballot" (func $ballot (param i32) (result i32)))
  (import "gpu" "shuffle" (func $shuffle (param i32 i32) (result i32)))
  (import "gpu" "shuffle_up" (func $shuffle_up (param i32 i32) (result i32)))
  (import "gpu" "shuffle_xor" (func $shuffle_xor (param i32 i32) (result i32)))
  (import "gpu" "clock" (func $clock (result i64)))
  (import "gpu" "cycles" (func $cycles (result i64)))
  (import "gpu" "sleep" (func $sleep (param i32)))
  (import "gpu" "fence" (func $fence))
  (import "gpu" "fence_system" (func $fence_system))
  (import "gpu" "local_load" (func $local_load (param i32) (result i32)))
  (import "gpu" "local_store" (func $local_store (param i32 i32)))
  (import "gpu" "local_add" (func $local_add (param i32 i32) (result i32)))
  (import "gpu" "bus_load" (func $bus_load (param i32) (result i64)))
  (import "gpu" "bus_store" (func $bus_store (param i32 i64)))
  (import "gpu" "bus_put" (func $bus_put (param i32 i64)))
  (import "gpu" "bus_load2" (func $bus_load2 (param i32 i32)))
  (import "gpu" "bus_put2" (func $bus_put2 (param i32 i64 i64)))
  (global $sp (mut i32) (i32.const 65536))
  (memory 1)
  (func $number (result i32) (i32.add (i32.mul (call $group) (call $threads)) (call $thread)))
  (func $slot (param i32) (result i32) (i32.add (local.get 0) (i32.mul (call $number) (i32.const 4))))
"#;

fn wasm(body: &str) -> Arc<Vec<u8>> {
    Arc::new(wat::parse_str(format!("(module {IMPORTS} {body})")).unwrap())
}

/// `cpu`, or what `GPU_RUN_TEST_DEVICE` says: `cuda:0`.
fn device() -> Arc<dyn Device> {
    let id = std::env::var("GPU_RUN_TEST_DEVICE");
    gpu_run_device::open(id.as_deref().unwrap_or("cpu")).unwrap()
}

fn compile(body: &str, options: &GangOptions) -> Result<Arc<GangProgram>, Error> {
    let wasm = wasm(body);
    support::assemble(&options.ptx(&wasm)?).unwrap();
    GangProgram::compile(&Compiler::new(Cache::off("a test")), &device(), wasm, options, "test")
}

fn gang(body: &str, options: &GangOptions) -> Gang {
    Gang::new(compile(body, options).unwrap()).unwrap()
}

fn run(gang: &mut Gang, entry: &str) {
    gang.launch(entry).unwrap().wait().unwrap().unwrap();
}

fn words(gang: &Gang, at: u64, count: usize) -> Vec<u32> {
    let mut bytes = vec![0; 4 * count];
    gang.read(at, &mut bytes).unwrap();
    bytes.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

const WIDE: GangOptions =
    GangOptions { threads: 1024, groups: 1, stack_bytes: 1024, image_bytes: 1 << 16, bus_bytes: 4096, relaxed: false };

#[test]
fn threads_see_what_others_wrote_before_a_barrier() {
    let body = r#"(func (export "exchange") (local $round i32)
      (loop $again
        (i32.store (call $slot (i32.const 0)) (i32.add (call $thread) (local.get $round)))
        (call $barrier)
        (i32.store offset=8192 (call $slot (i32.const 0))
          (i32.load (i32.mul (i32.const 4) (i32.and (i32.const 1023) (i32.add (call $thread) (i32.const 7))))))
        (call $barrier)
        (local.set $round (i32.add (local.get $round) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $round) (i32.const 5)))))"#;
    let mut gang = gang(body, &WIDE);
    run(&mut gang, "exchange");
    let expected: Vec<u32> = (0..1024).map(|t| ((t + 7) & 1023) + 4).collect();
    assert_eq!(words(&gang, 8192, 1024), expected);
}

#[test]
fn lanes_vote_and_shuffle() {
    let body = r#"
      (func (export "ballot") (i32.store (call $slot (i32.const 0)) (call $ballot (i32.and (call $thread) (i32.const 5)))))
      (func (export "index") (i32.store (call $slot (i32.const 0))
        (call $shuffle (call $thread) (i32.and (i32.mul (call $lane) (i32.const 3)) (i32.const 31)))))
      (func (export "up") (i32.store (call $slot (i32.const 0)) (call $shuffle_up (call $thread) (i32.const 3))))
      (func (export "xor") (i32.store (call $slot (i32.const 0)) (call $shuffle_xor (call $thread) (i32.const 9))))"#;
    let mut gang = gang(body, &WIDE);
    let votes: u32 = (0..32).filter(|l| l & 5 != 0).map(|l| 1 << l).sum();
    type Expected<'a> = (&'a str, &'a dyn Fn(u32) -> u32);
    let cases: [Expected<'_>; 4] = [
        ("ballot", &|_| votes),
        ("index", &|t| (t & !31) + (((t & 31) * 3) & 31)),
        ("up", &|t| if t & 31 < 3 { t } else { t - 3 }),
        ("xor", &|t| t ^ 9),
    ];
    for (entry, expected) in cases {
        run(&mut gang, entry);
        assert_eq!(words(&gang, 0, 1024), (0..1024).map(expected).collect::<Vec<_>>(), "{entry}");
    }
}

const COUNTING: &str = r#"
  (func (export "count") (local $i i32)
    (loop $again
      (drop (i32.atomic.rmw.add (i32.const 16) (i32.const 1)))
      (drop (i64.atomic.rmw.add (i32.const 24) (i64.const 3)))
      (drop (i32.atomic.rmw8.add_u (i32.const 33) (i32.const 1)))
      (drop (i32.atomic.rmw.xor (i32.const 40) (call $number)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 9)))))
  (func (export "lock") (local $i i32)
    (loop $again
      (block $have
        (loop $spin
          (br_if $have (i32.eqz (i32.atomic.rmw.cmpxchg (i32.const 0) (i32.const 0) (i32.const 1))))
          (call $sleep (i32.const 20))
          (br $spin)))
      (call $fence)
      (i32.store (i32.const 4) (i32.add (i32.load (i32.const 4)) (i32.const 1)))
      (call $fence)
      (i32.atomic.store (i32.const 0) (i32.const 0))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 2)))))"#;

#[test]
fn atomics_count_every_thread_of_every_group() {
    for relaxed in [false, true] {
        let options = GangOptions { groups: 3, relaxed, ..WIDE };
        let mut gang = gang(COUNTING, &options);
        run(&mut gang, "count");
        let counted = words(&gang, 16, 8);
        let threads = 3 * 1024;
        let xor = (0..threads).fold(0, |a, b| a ^ b);
        assert_eq!(counted[0], 9 * threads);
        assert_eq!(counted[2..4], [27 * threads, 0]);
        assert_eq!(counted[4], ((9 * threads) & 0xff) << 8, "a byte within its word");
        assert_eq!(counted[6], xor);
    }
}

#[test]
fn a_lock_is_held_by_one_thread_at_a_time() {
    let mut gang = gang(COUNTING, &GangOptions { threads: 64, groups: 5, relaxed: true, ..WIDE });
    run(&mut gang, "lock");
    assert_eq!(words(&gang, 4, 1), [64 * 5 * 2]);
}

#[test]
fn every_thread_has_its_own_stack_and_globals() {
    let body = r#"
      (global $own (mut i32) (i32.const 5))
      (func (export "stack")
        (global.set $own (i32.add (global.get $own) (call $number)))
        (global.set $sp (i32.sub (global.get $sp) (i32.const 16)))
        (i32.store (global.get $sp) (call $number))
        (call $barrier)
        (i32.store (call $slot (i32.const 0)) (i32.load (global.get $sp)))
        (i32.store offset=16384 (call $slot (i32.const 0)) (global.get $own))
        (i32.store offset=32768 (call $slot (i32.const 0)) (global.get $sp)))"#;
    let mut gang = gang(body, &GangOptions { groups: 2, ..WIDE });
    // Twice: a launch begins with globals as they were at first.
    for _ in 0..2 {
        run(&mut gang, "stack");
        assert_eq!(words(&gang, 0, 2048), (0..2048).collect::<Vec<_>>());
        assert_eq!(words(&gang, 16384, 2048), (0..2048).map(|t| t + 5).collect::<Vec<_>>());
        let tops: Vec<u32> = (0..2048).map(|t| (1 << 16) + (t + 1) * 1024 - 16).collect();
        assert_eq!(words(&gang, 32768, 2048), tops);
    }
    assert_eq!(gang.read_image().unwrap().len(), 1 << 16, "stacks are no part of the image");
}

#[test]
fn a_trap_of_one_thread_ends_the_gang_and_says_whose() {
    let body = r#"
      (func $fail (param i32) (if (i32.eq (call $number) (local.get 0)) (then (unreachable))))
      (func (export "at_barriers") (local $i i32)
        (call $fail (i32.const 1500))
        (loop $again
          (call $barrier)
          (br $again)))
      (func (export "at_loops") (call $fail (i32.const 37)) (loop $again (br $again)))
      (func (export "at_sleep") (call $fail (i32.const 2047)) (loop $again (call $sleep (i32.const 1000)) (br $again)))
      (func (export "outside") (if (i32.eq (call $number) (i32.const 99)) (then (i32.store (i32.const -8) (i32.const 1)))) (call $barrier))
      (func (export "fine") (i32.store (call $slot (i32.const 0)) (i32.const 1)))"#;
    let mut gang = gang(body, &GangOptions { groups: 2, ..WIDE });
    for (entry, thread, code) in [
        ("at_barriers", 1500, TrapCode::Unreachable),
        ("at_loops", 37, TrapCode::Unreachable),
        ("at_sleep", 2047, TrapCode::Unreachable),
        ("outside", 99, TrapCode::MemoryOutOfBounds),
    ] {
        let trap = gang.launch(entry).unwrap().wait().unwrap().unwrap_err();
        assert_eq!((trap.thread, trap.trap.code), (thread, code), "{entry}: {trap}");
        gang.recover().unwrap();
    }
    run(&mut gang, "fine");
    assert_eq!(words(&gang, 0, 2048), [1; 2048]);
}

#[test]
fn a_trap_lets_the_workgroup_leave_at_its_barrier() {
    let body = r#"
      (func (export "run") (if (i32.eq (call $thread) (i32.const 500)) (then (unreachable)))
        (loop $again (call $barrier) (br $again)))"#;
    let mut gang = gang(body, &WIDE);
    let trap = gang.launch("run").unwrap().wait().unwrap().unwrap_err();
    assert_eq!((trap.thread, trap.trap.code), (500, TrapCode::Unreachable));
}

#[test]
fn the_host_stops_a_gang() {
    let body = r#"(func (export "run") (loop $again (call $sleep (i32.const 1000)) (br $again)))"#;
    let mut gang = gang(body, &GangOptions { groups: 3, ..WIDE });
    let running = gang.launch("run").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert!(!running.is_done().unwrap());
    gang.stop();
    assert!(running.wait().unwrap().unwrap_err().is_stop());
}

#[test]
fn host_and_threads_talk_over_the_bus_while_a_launch_runs() {
    // Thread 0 echoes: the host's number is at 0, the answer at 64; a number that is negative ends it.
    let body = r#"
      (func (export "echo") (local $seen i64) (local $new i64)
        (if (i32.eqz (call $number)) (then
          (block $end
            (loop $again
              (local.set $new (call $bus_load (i32.const 0)))
              (if (i64.eq (local.get $new) (local.get $seen)) (then (call $sleep (i32.const 100)) (br $again)))
              (br_if $end (i64.lt_s (local.get $new) (i64.const 0)))
              (local.set $seen (local.get $new))
              (call $bus_store (i32.const 64) (i64.mul (local.get $new) (i64.const 3)))
              (br $again))))))
      (func (export "pairs") (local $at i32)
        (if (i32.eqz (call $number)) (then
          (call $bus_load2 (i32.const 128) (i32.const 1024))
          (call $fence_system)
          (call $bus_put2 (i32.const 144) (i64.load (i32.const 1032)) (i64.load (i32.const 1024)))
          (call $bus_put (i32.const 160) (i64.const 7)))))
      (func (export "outside") (drop (call $bus_load (i32.const 4096))))
      (func (export "skewed") (drop (call $bus_load (i32.const 4))))"#;
    let mut gang = gang(body, &GangOptions { threads: 32, ..WIDE });
    let running = gang.launch("echo").unwrap();
    let deadline = Instant::now() + Duration::from_secs(300);
    for number in 1..200u64 {
        gang.bus().store_u64(0, number);
        while gang.bus().load_u64(64) != number * 3 {
            assert!(Instant::now() < deadline && !running.is_done().unwrap(), "no answer to {number}");
        }
    }
    gang.bus().store_u64(0, u64::MAX);
    running.wait().unwrap().unwrap();
    gang.bus().store_u64(128, 11);
    gang.bus().store_u64(136, 22);
    run(&mut gang, "pairs");
    assert_eq!([144, 152, 160].map(|at| gang.bus().load_u64(at)), [22, 11, 7]);
    for entry in ["outside", "skewed"] {
        let trap = gang.launch(entry).unwrap().wait().unwrap().unwrap_err();
        assert_eq!(trap.trap.code, TrapCode::MemoryOutOfBounds);
        gang.recover().unwrap();
    }
}

#[test]
fn launches_queue_up_and_go_on_with_the_image() {
    let body = r#"(data (i32.const 100) "\05\00\00\00")
      (func (export "tick")
        (drop (i32.atomic.rmw.add (i32.const 100) (i32.const 1)))
        (i32.store offset=4096 (call $slot (i32.const 0)) (i32.add (i32.load offset=4096 (call $slot (i32.const 0))) (call $thread))))"#;
    let mut gang = gang(body, &WIDE);
    let launched: Vec<_> = (0..5).map(|_| gang.launch("tick").unwrap()).collect();
    for running in &launched {
        running.wait().unwrap().unwrap();
    }
    assert_eq!(words(&gang, 100, 1), [5 + 5 * 1024]);
    assert_eq!(words(&gang, 4096, 1024), (0..1024).map(|t| 5 * t).collect::<Vec<_>>());
    let image = gang.read_image().unwrap();
    run(&mut gang, "tick");
    gang.write_image(&image).unwrap();
    assert_eq!(gang.read_image().unwrap(), image);
    assert!(gang.write_image(&image[1..]).is_err());
}

#[test]
fn a_grid_barrier_of_atomics_lets_all_groups_through() {
    // Groups arrive at a counter; the last thread of each waits for the others. More groups than the host has cores.
    let body = r#"
      (func $grid_barrier (param $round i32)
        (call $fence)
        (call $barrier)
        (if (i32.eqz (call $thread)) (then
          (drop (i32.atomic.rmw.add (i32.const 0) (i32.const 1)))
          (block $open
            (loop $wait
              (br_if $open (i32.ge_u (i32.atomic.load (i32.const 0)) (i32.mul (local.get $round) (call $groups))))
              (call $sleep (i32.const 100))
              (br $wait)))))
        (call $barrier)
        (call $fence))
      (func (export "run") (local $i i32)
        (local.set $i (i32.const 1))
        (loop $again
          (i32.store offset=1024 (call $slot (i32.const 0)) (local.get $i))
          (call $grid_barrier (i32.sub (i32.mul (local.get $i) (i32.const 2)) (i32.const 1)))
          ;; What the next group wrote.
          (i32.store offset=32768 (call $slot (i32.const 0))
            (i32.load offset=1024 (i32.mul (i32.const 4)
              (i32.rem_u (i32.add (call $number) (call $threads)) (i32.mul (call $groups) (call $threads))))))
          (if (i32.ne (i32.load offset=32768 (call $slot (i32.const 0))) (local.get $i)) (then (unreachable)))
          (call $grid_barrier (i32.mul (local.get $i) (i32.const 2)))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $again (i32.le_u (local.get $i) (i32.const 20)))))"#;
    let mut gang = gang(body, &GangOptions { threads: 256, groups: 12, relaxed: true, ..WIDE });
    run(&mut gang, "run");
    assert_eq!(words(&gang, 32768, 3072), [20; 3072]);
}

#[test]
fn workgroups_have_memory_of_their_own() {
    let body = r#"(func (export "run")
        (drop (call $local_add (i32.const 32764) (i32.const 2)))
        (call $local_store (i32.mul (i32.const 4) (call $thread)) (call $number))
        (call $barrier)
        (i32.store (call $slot (i32.const 0))
          (i32.add (call $local_load (i32.const 32764)) (call $local_load (i32.mul (i32.const 4) (i32.xor (call $thread) (i32.const 1)))))))
      (func (export "outside") (drop (call $local_load (i32.const 32768))))"#;
    let mut gang = gang(body, &GangOptions { groups: 3, ..WIDE });
    run(&mut gang, "run");
    assert_eq!(words(&gang, 0, 3072), (0..3072).map(|t| (t ^ 1) + 2048).collect::<Vec<_>>());
    let trap = gang.launch("outside").unwrap().wait().unwrap().unwrap_err();
    assert_eq!(trap.trap.code, TrapCode::MemoryOutOfBounds);
}

#[test]
fn a_memory_is_as_large_as_the_image_and_never_grows() {
    let body = r#"(func (export "run")
        (i32.store (i32.const 0) (memory.size))
        (i32.store (i32.const 4) (memory.grow (i32.const 1)))
        (i32.store (i32.const 8) (memory.grow (i32.const 0)))
        (i64.store (i32.const 16) (call $clock))
        (if (i64.lt_u (call $cycles) (call $cycles)) (then (i32.store (i32.const 24) (call $processor)))))
      (func (export "bulk") (memory.fill (i32.const 1000) (i32.const 7) (i32.const 100)) (memory.copy (i32.const 3001) (i32.const 1000) (i32.const 50)))"#;
    let mut gang = gang(body, &GangOptions { threads: 1, image_bytes: 4 << 16, ..WIDE });
    run(&mut gang, "run");
    assert_eq!(words(&gang, 0, 3), [4, u32::MAX, 4]);
    run(&mut gang, "bulk");
    let image = gang.read_image().unwrap();
    assert_eq!((image[1000..1100].to_vec(), image[3001..3051].to_vec()), (vec![7; 100], vec![7; 50]));
    assert_eq!(image.len(), 4 << 16);
}

#[test]
fn accesses_are_checked_to_the_guard_and_misaligned_ones_work_where_nothing_is_promised() {
    let body = r#"
      (global $at (mut i32) (i32.const 0))
      (func $place (result i32) (i32.add (global.get $at) (i32.const 16384)))
      (func (export "unaligned") (local $p i32)
        (local.set $p (i32.or (call $place) (i32.const 3)))
        (i64.store align=1 (local.get $p) (i64.const 0x0807060504030201))
        (i32.store (i32.const 0) (i32.load offset=2 align=1 (local.get $p)))
        (i32.store16 offset=9 align=1 (local.get $p) (i32.const 0x1211))
        (i32.store (i32.const 4) (i32.load16_u offset=9 align=1 (local.get $p)))
        (i32.store (i32.const 8) (i32.load8_u offset=7 (local.get $p)))
        (i32.store (i32.const 12) (i32.load offset=5000 align=1 (i32.sub (local.get $p) (i32.const 4998)))))
      (func (export "wrapped") (i32.store (i32.add (i32.mul (i32.sub (global.get $at) (i32.const 4)) (i32.const 4)) (i32.const 32)) (i32.const 77)))
      (func (export "broken_promise") (i32.store (i32.or (call $place) (i32.const 1)) (i32.const 1)))
      (func (export "beyond") (i32.store8 (i32.sub (global.get $at) (i32.const 1)) (i32.const 1)))
      (func (export "far") (drop (i32.load offset=70000 (i32.sub (global.get $at) (i32.const 4)))))
      (func (export "bulk") (memory.fill (i32.const 60000) (i32.const 0) (i32.const 1000000)))
      (func (export "atomic") (drop (i32.atomic.rmw.add (i32.const -4) (i32.const 1))))
      (func (export "skew") (drop (i32.atomic.rmw.add (i32.const 2) (i32.const 1))))"#;
    let mut gang = gang(body, &GangOptions { threads: 1, ..WIDE });
    run(&mut gang, "unaligned");
    assert_eq!(words(&gang, 0, 4), [0x0605_0403, 0x1211, 8, 0x0605_0403]);
    run(&mut gang, "wrapped");
    assert_eq!(words(&gang, 16, 1), [77]);
    for (entry, code) in [
        ("broken_promise", TrapCode::MemoryOutOfBounds),
        ("beyond", TrapCode::MemoryOutOfBounds),
        ("far", TrapCode::MemoryOutOfBounds),
        ("bulk", TrapCode::MemoryOutOfBounds),
        ("atomic", TrapCode::MemoryOutOfBounds),
        ("skew", TrapCode::UnalignedAtomic),
    ] {
        let trap = gang.launch(entry).unwrap().wait().unwrap().unwrap_err();
        assert_eq!(trap.trap.code, code, "{entry}: {trap}");
        gang.recover().unwrap();
    }
}

#[test]
fn what_cannot_be_a_gang_is_refused_by_name() {
    let message = |text: &str, options: &GangOptions| {
        let wasm = Arc::new(wat::parse_str(text).unwrap());
        GangProgram::compile(&Compiler::new(Cache::off("a test")), &device(), wasm, options, "t")
            .unwrap_err()
            .to_string()
    };
    let unknown = message(r#"(module (import "gpu" "thrad" (func)) (memory 1))"#, &WIDE);
    assert!(unknown.contains("`gpu.thrad`"), "{unknown}");
    let other = message(r#"(module (import "gpu" "thread" (func (result i64))) (memory 1))"#, &WIDE);
    assert!(other.contains("`gpu.thread`"), "{other}");
    let host =
        message(r#"(module (import "wasi_snapshot_preview1" "sched_yield" (func (result i32))) (memory 1))"#, &WIDE);
    assert!(host.contains("sched_yield"), "{host}");
    assert!(message("(module)", &WIDE).contains("0 memories"));
    assert!(message("(module (memory 2))", &WIDE).contains("131072"));
    let huge = GangOptions { stack_bytes: 1 << 20, groups: 8, ..WIDE };
    assert!(message("(module (memory 1))", &huge).contains("8192 stacks of 1048576"));
    let sizes = [
        GangOptions { image_bytes: u64::MAX - 0xffff, ..WIDE },
        GangOptions { threads: 1025, ..WIDE },
        GangOptions { groups: u32::MAX, ..WIDE },
        GangOptions { bus_bytes: 1 << 40, ..WIDE },
        GangOptions { stack_bytes: 17, ..WIDE },
    ];
    for options in sizes {
        assert!(!message("(module (memory 1))", &options).is_empty());
    }
    let mut gang = gang("", &WIDE);
    assert!(gang.launch("tick").unwrap_err().to_string().contains("`tick`"));
}

/// Adds a number to every thread's word, through a table, and waits for the host if it is asked to. The table makes slots as large as it is.
fn adding(number: u32, text: &str, table: u32) -> String {
    format!(
        r#"(table {table} funcref) (elem (i32.const {}) $number_to_add)
           (data (i32.const 16) "{text}")
           (func $number_to_add (result i32) (i32.const {number}))
           (func (export "add") (local $at i32)
             (local.set $at (call $slot (i32.const 4096)))
             (i32.store (local.get $at) (i32.add (i32.load (local.get $at)) (call_indirect (result i32) (i32.const {}))))
             (loop $wait
               (call $sleep (i32.const 1000))
               (br_if $wait (i64.ne (call $bus_load (i32.const 0)) (i64.const 0)))))"#,
        table - 1,
        table - 1
    )
}

#[test]
fn a_successor_goes_on_with_the_image_and_brings_its_own_data_and_slots() {
    let compiler = Compiler::new(Cache::off("a test"));
    let mut old = gang(&adding(1, "first", 1), &WIDE);
    let (mut spare, carried) = (None, 1024..WIDE.image_bytes - 1024);
    for (number, text, table) in [(10, "other", 1), (100, "wider", 600), (1000, "again", 1)] {
        old.bus().store_u64(0, 1);
        let running = old.launch("add").unwrap();
        // It is made ready while the other runs, and would wait for ever if it waited for that.
        let next = wasm(&adding(number, text, table));
        let next =
            Successor::prepare(&compiler, &old.seat(), next, &WIDE, "test", carried.clone(), &mut spare).unwrap();
        assert!(spare.is_none() && !running.is_done().unwrap());
        old.bus().store_u64(0, 0);
        running.wait().unwrap().unwrap();
        let new = next.take_over(&old).unwrap();
        spare = Some(std::mem::replace(&mut old, new));
        let mut data = [1; 1024];
        old.read(0, &mut data).unwrap();
        assert_eq!(std::str::from_utf8(&data[16..21]).unwrap(), text);
        // What another left there is gone.
        assert!(data[..16].iter().chain(&data[21..]).all(|byte| *byte == 0), "{data:?}");
        old.write(512, &[7; 64]).unwrap();
        old.read(WIDE.image_bytes - 1024, &mut data).unwrap();
        assert_eq!(data, [0; 1024]);
        old.write(WIDE.image_bytes - 8, &[7; 8]).unwrap();
    }
    run(&mut old, "add");
    assert_eq!(words(&old, 4096, 1024), [1111; 1024]);
    // What cannot be compiled leaves everything as it is.
    let wrong = Arc::new(wat::parse_str("(module)").unwrap());
    assert!(Successor::prepare(&compiler, &old.seat(), wrong, &WIDE, "test", carried, &mut spare).is_err());
    assert!(spare.is_some());
    run(&mut old, "add");
    assert_eq!(words(&old, 4096, 1), [2111]);
}
