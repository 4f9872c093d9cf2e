//! The heap under a storm: a million allocations and frees at random, from 1024 threads at once.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

use gpu_run_bench::machine::storm;
use gpu_run_cache::Cache;
use gpu_run_compiler::Compiler;

#[test]
fn a_million_allocations_from_1024_threads_overlap_nowhere_and_leak_nothing() {
    let compiler = Compiler::new(Cache::off("it is needed once"));
    let device = gpu_run_device::open(&std::env::var("GPU_RUN_TEST_DEVICE").unwrap_or("cpu".into())).unwrap();
    let storm = storm::heap(&compiler, &device, Some(1024), 2000, 42).unwrap();
    assert_eq!((storm.wrong, storm.refused, storm.left), (0, 0, 0), "{storm:?}");
    assert!(storm.allocations > 1_000_000, "{storm:?}");
    println!("{:.0} allocations/s", storm.allocations as f64 / storm.time.as_secs_f64());
}
