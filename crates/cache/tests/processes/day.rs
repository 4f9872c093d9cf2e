//! A day: what the hit rate is in ordinary use.
#![allow(clippy::unwrap_used)]

use super::role::{finish, length, start};
use super::support::options;
use gpu_run_cache::Cache;

/// Programs that are run and not worked on.
const INSTALLED: u64 = 12;
/// Times the two programs that are worked on are changed.
const EDITS: u64 = 16;

/// Every run is a process of its own. Twelve programs are in use; two more are worked on: each change is a new build, which is then run a few
/// times by hand, by its test suite and in a loop. A run is killed at times, and at noon the cache is pruned.
pub(crate) fn in_the_life() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(2024);
    let mut builds = [1000, 2000];
    for edit in 0..EDITS {
        builds[edit as usize % 2] += 1;
        let mut runs: Vec<u64> = vec![builds[edit as usize % 2]; 36];
        runs.extend((0..14).map(|_| random.u64(..INSTALLED)));
        runs.extend([builds[0], builds[1]]);
        // Four at a time, as tests run.
        for together in runs.chunks(4) {
            let all: Vec<_> = together.iter().map(|n| start(dir.path(), &format!("write {n} 1"))).collect();
            for child in all {
                assert!(finish(child).1);
            }
        }
        let mut killed = start(dir.path(), &format!("write {} 1", random.u64(..INSTALLED)));
        killed.kill().unwrap();
        killed.wait().unwrap();
        if edit == EDITS / 2 {
            Cache::open(options(dir.path())).prune(Some(std::time::Duration::from_secs(3600)), None).unwrap();
        }
    }
    let stats = Cache::open(options(dir.path())).stats().unwrap();
    let rate = stats.total.hit_rate.unwrap();
    println!("    {} runs, hit rate {:.1} %", stats.total.counts.hits + stats.total.counts.misses, rate * 100.0);
    assert!(rate > 0.95, "{stats:?}");
    assert!(stats.total.entries >= INSTALLED && length(1) > 0);
}
