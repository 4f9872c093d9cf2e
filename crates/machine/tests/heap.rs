//! The heap under a storm: a million allocations and frees at random, from 1024 threads at once.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use gpu_run_machine::heap_storm;
use support::{compiler, device};

#[test]
fn a_million_allocations_from_1024_threads_overlap_nowhere_and_leak_nothing() {
    let storm = heap_storm(compiler(), &device(), Some(1024), 2000, 42).unwrap();
    assert_eq!((storm.wrong, storm.refused, storm.left), (0, 0, 0), "{storm:?}");
    assert!(storm.allocations > 1_000_000, "{storm:?}");
    println!("{:.0} allocations/s", storm.allocations as f64 / storm.time.as_secs_f64());
}
