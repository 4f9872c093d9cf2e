//! The helpers of `team`, on teams of several sizes: each gives what a plain loop gives.

use gpu_run_kernel::gpu::*;
use gpu_run_kernel::layout::*;
use gpu_run_kernel::team::Team;
use gpu_run_kernel::twin::World;
use gpu_run_kernel::work::mix;

const TEAMS: [(u32, u32); 3] = [(1, 32), (1, 64), (2, 32)];
const LENGTHS: [u32; 6] = [0, 1, 31, 64, 65, 200];

fn each_team(test: impl Fn(&Team) + Sync) {
    for (groups, threads) in TEAMS {
        World::new().launch(groups, threads, || test(&Team::new(groups)));
    }
}

#[test]
fn for_each_comes_to_each_number_once() {
    each_team(|team| {
        for n in LENGTHS {
            team.for_each(200, |i| store(X_LIST + i * 4, 0));
            team.for_each(n, |i| {
                add(X_LIST + i * 4, 1);
            });
            for i in 0..200 {
                assert_eq!(load(X_LIST + i * 4), (i < n) as u32);
            }
            team.meet();
        }
    });
}

#[test]
fn scan_sums_what_lies_before() {
    each_team(|team| {
        for n in LENGTHS {
            let total = team.scan(n, |i| i % 7, |i, before| store(X_LIST + i * 4, before));
            let mut sum = 0;
            for i in 0..n {
                assert_eq!(load(X_LIST + i * 4), sum);
                sum += i % 7;
            }
            assert_eq!(total, sum);
            team.meet();
        }
    });
}

#[test]
fn reduce_takes_all() {
    each_team(|team| {
        for n in LENGTHS {
            let expected = (0..n).map(mix).max().unwrap_or(0);
            assert_eq!(team.reduce_over(n, mix, u32::max), expected);
            assert_eq!(team.reduce_over(n, |_| 1, u32::wrapping_add), n);
        }
    });
}

#[test]
fn sort_sorts() {
    each_team(|team| {
        for n in LENGTHS {
            team.for_each(n, |i| store(X_SORT + i * 4, mix(i) % 50));
            team.sort(X_SORT, n);
            let mut expected: Vec<u32> = (0..n).map(|i| mix(i) % 50).collect();
            expected.sort();
            let got: Vec<u32> = (0..n).map(|i| load(X_SORT + i * 4)).collect();
            assert_eq!(got, expected);
            team.meet();
        }
    });
}

#[test]
fn lanes_without_work_are_not_counted_as_active() {
    let world = World::new();
    world.launch(1, 64, || {
        let team = Team::new(1);
        team.for_each(40, |_| {});
        team.tell_lanes(PHASE_WORK);
    });
    let count = |word: u32| world.look(|| load64(S_STATUS + (word + PHASE_WORK) * 8));
    assert_eq!((count(STATUS_ACTIVE), count(STATUS_SLOTS)), (40, 64));
}
