//! Processes that are killed.
#![allow(clippy::unwrap_used)]

use super::role::{command, finish, length, start};
use super::support::{ask, bytes, files, options, walk};
use super::whole;
use gpu_run_cache::Cache;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

/// Every step of a write, one after the other, until a process comes through alive.
pub(crate) fn every_step() {
    let dir = tempfile::tempdir().unwrap();
    let mut kept = Vec::new();
    for step in 1.. {
        let n = 1000 + step;
        let mut child = command(dir.path(), &format!("write {n} 1"));
        let child = child.env("GPU_RUN_TEST_CACHE", format!("kill:{step}")).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        let alive = output.status.success();
        assert!(alive || output.status.signal() == Some(9), "step {step}: {}", output.status);
        // Others find it whole or not at all, and the ones before as they were.
        let cache = Cache::open(options(dir.path()));
        for good in &kept {
            assert!(ask(&cache, *good, length(*good)).1, "key {good} is lost by a death at step {step}");
        }
        ask(&cache, n, length(n));
        assert!(ask(&cache, n, length(n)).1, "step {step}");
        assert_eq!(cache.counts().repaired, 0, "step {step} left something damaged");
        kept.push(n);
        tidy(dir.path(), &cache);
        if alive {
            assert!(step > 8, "a write has {step} steps only");
            return;
        }
    }
}

/// Nothing is left after a prune but entries, and the account is right.
fn tidy(dir: &Path, cache: &Cache) {
    cache.prune(None, None).unwrap();
    for folder in ["tmp", "busy", "leases"] {
        let left = walk(&dir.join(folder));
        assert!(left.is_empty(), "left behind: {left:?}");
    }
    let account = std::fs::read_to_string(dir.join("lock")).unwrap();
    let account: u64 = account.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(account, bytes(dir));
}

/// A victim writes and is killed at a random moment, again and again, while four others read and write the same keys.
pub(crate) fn at_random() {
    let kills = if whole() { 1000 } else { 120 };
    let dir = tempfile::tempdir().unwrap();
    let (keys, forever) = (40, u64::MAX);
    let others: Vec<_> = (0..4)
        .map(|seed| start(dir.path(), &format!("work {seed} {} {keys} {forever} locks", kills * 20 + 1000)))
        .collect();
    let mut random = fastrand::Rng::with_seed(1);
    let mut kept = Vec::new();
    let mut killed = 0;
    for round in 0..kills {
        // Half of the time keys of its own, half of the time those that the others want, too.
        let first = if round % 2 == 0 { 10_000 + round * 1000 } else { random.u64(..keys) };
        let mut victim = start(dir.path(), &format!("write {first} 500"));
        std::thread::sleep(Duration::from_micros(random.u64(..30_000)));
        killed += u64::from(victim.try_wait().unwrap().is_none());
        victim.kill().unwrap();
        let lines = BufReader::new(victim.stdout.take().unwrap()).lines().map_while(Result::ok);
        kept.extend(lines.filter_map(|line| line.strip_prefix("kept ")?.parse::<u64>().ok()));
        victim.wait().unwrap();
    }
    for other in others {
        let (lines, fine) = finish(other);
        assert!(fine && lines.iter().any(|line| line.ends_with("repaired 0")), "{lines:?}");
    }
    assert!(killed > kills / 2, "{killed} of {kills} were killed before they were done");
    kept.sort_unstable();
    kept.dedup();
    let cache = Cache::open(options(dir.path()));
    for n in &kept {
        assert!(ask(&cache, *n, length(*n)).1, "key {n} was on disk and is lost");
    }
    tidy(dir.path(), &cache);
    let check = cache.verify(false).unwrap();
    assert!(check.damaged.is_empty() && check.whole >= kept.len() as u64, "{check:?}");
    println!("    {killed} of {kills} killed at work, {} entries they had written are all there", kept.len());
}

/// Whichever step finds no space, the result is right, nothing fails, and nothing is left behind.
pub(crate) fn full_disk() {
    for step in 1..20 {
        let dir = tempfile::tempdir().unwrap();
        let mut child = command(dir.path(), "write 1 3");
        let child = child.env("GPU_RUN_TEST_CACHE", format!("fail:{step}")).spawn().unwrap();
        let (lines, fine) = finish(child);
        assert!(fine && lines.len() == 3, "step {step}: {lines:?}");
        assert!(files(dir.path()).len() <= 3);
        let cache = Cache::open(options(dir.path()));
        assert!(cache.verify(false).unwrap().damaged.is_empty(), "step {step}");
        tidy(dir.path(), &cache);
    }
}

/// Four processes on a file system that lacks something, or does it oddly, beside two on one that does not: results are right, nothing is damaged, nothing is left.
pub(crate) fn odd_file_systems() {
    for oddity in ["lock", "link", "time", "sync", "stale", "rename"] {
        let dir = tempfile::tempdir().unwrap();
        let (keys, limit) = (30, 100_000);
        let start = |seed: u64| {
            let mut child = command(dir.path(), &format!("work {seed} 600 {keys} {limit} locks"));
            if seed < 4 {
                child.env("GPU_RUN_TEST_CACHE", format!("odd:{oddity}"));
            }
            child.spawn().unwrap()
        };
        let processes: Vec<_> = (0..6).map(start).collect();
        let mut hits = 0;
        for process in processes {
            let (lines, well) = finish(process);
            assert!(well, "{oddity}: {lines:?}");
            hits += lines[0].split(' ').nth(3).unwrap().parse::<u64>().unwrap();
            assert!(lines[0].ends_with("repaired 0"), "{oddity}: {lines:?}");
        }
        assert!(hits > 0, "{oddity}: nothing was kept");
        let cache = Cache::open(options(dir.path()));
        assert!(cache.verify(false).unwrap().damaged.is_empty(), "{oddity}");
        tidy(dir.path(), &cache);
    }
}
