//! Many processes at once, killed at any moment.
//!
//! The processes are this binary itself, in the role that `GPU_RUN_CACHE_TEST_ROLE` names. `GPU_RUN_CACHE_TEST=whole` runs everything at full length: a
//! thousand kills, a minute of stress.

#[path = "processes/crash.rs"]
mod crash;
#[path = "processes/day.rs"]
mod day;
#[path = "processes/role.rs"]
mod role;
#[path = "processes/stress.rs"]
mod stress;
mod support;

use libtest_mimic::{Arguments, Trial};

fn main() {
    if role::play() {
        return;
    }
    let trials = vec![
        Trial::test("crash::killed_at_every_step_of_a_write", || run(crash::every_step)),
        Trial::test("crash::killed_at_random_beside_four_others", || run(crash::at_random)),
        Trial::test("crash::a_full_disk_at_every_step_is_no_failure", || run(crash::full_disk)),
        Trial::test("crash::network_file_systems_in_their_odd_ways", || run(crash::odd_file_systems)),
        Trial::test("stress::sixteen_processes_in_a_tenth_of_the_room", || run(stress::sixteen)),
        Trial::test("stress::sixteen_processes_without_locks", || run(stress::without_locks)),
        Trial::test("stress::processes_that_miss_together_compile_once", || run(stress::single_flight)),
        Trial::test("stress::entries_another_process_uses_stay", || run(stress::in_use)),
        Trial::test("day::in_the_life_of_a_developer", || run(day::in_the_life)),
    ];
    // One after the other: each has processes enough.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials).exit();
}

fn run(test: fn()) -> Result<(), libtest_mimic::Failed> {
    test();
    Ok(())
}

/// Whether everything is wanted at full length.
fn whole() -> bool {
    std::env::var_os("GPU_RUN_CACHE_TEST").is_some_and(|v| v == "whole")
        || std::env::var_os("GPU_RUN_TEST_ALL").is_some()
}
