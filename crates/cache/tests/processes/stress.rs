//! Many at once.
#![allow(clippy::unwrap_used)]

use super::role::{finish, length, start};
use super::support::{ask, bytes, key, options, walk};
use super::whole;
use gpu_run_cache::{Cache, Options};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};

const PROCESSES: u64 = 16;
const KEYS: u64 = 300;

/// Sixteen, with room for a tenth of what they want.
pub(crate) fn sixteen() {
    let most = crowd(true);
    assert!(most.over == 0, "entries were over the limit by {} bytes", most.over);
}

/// The same where the file system has no locks: over the limit by what each writes at the moment, at most.
pub(crate) fn without_locks() {
    let most = crowd(false);
    let largest = (0..KEYS).map(length).max().unwrap() as u64 + 120 + 36;
    assert!(most.over <= largest * PROCESSES, "entries were over the limit by {} bytes", most.over);
}

struct Most {
    over: u64,
}

fn crowd(locks: bool) -> Most {
    let milliseconds = if whole() { 60_000 } else { 4_000 };
    let dir = tempfile::tempdir().unwrap();
    let working_set: u64 = (0..KEYS).map(|n| length(n) as u64).sum();
    let limit = working_set / 10;
    let how = if locks { "locks" } else { "none" };
    let role = |seed| format!("work {seed} {milliseconds} {KEYS} {limit} {how}");
    let began = Instant::now();
    let mut crowd: Vec<_> = (0..PROCESSES).map(|seed| start(dir.path(), &role(seed))).collect();
    let (mut over, mut drafts) = (0, 0);
    while crowd.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        over = over.max(bytes(dir.path()).saturating_sub(limit));
        drafts = drafts.max(walk(&dir.path().join("tmp")).len() as u64);
        assert!(began.elapsed() < Duration::from_millis(milliseconds) + Duration::from_secs(600), "they do not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    let (mut asked, mut evictions) = (0, 0);
    for child in crowd {
        let (lines, fine) = finish(child);
        let words: Vec<_> = lines.last().unwrap().split(' ').map(str::to_owned).collect();
        assert!(fine, "{lines:?}");
        asked += words[1].parse::<u64>().unwrap();
        evictions += words[5].parse::<u64>().unwrap();
        assert_eq!(words[7], "0", "nothing was damaged: {lines:?}");
    }
    // A manifest or a file of counts may be among them.
    assert!(drafts <= 2 * PROCESSES, "{drafts} files were being written at once");
    assert!(evictions > PROCESSES, "{evictions} evictions are no stress");
    let cache = Cache::open(Options { limit, locks, ..options(dir.path()) });
    cache.prune(None, None).unwrap();
    assert!(bytes(dir.path()) <= limit && cache.verify(false).unwrap().damaged.is_empty());
    let counts = cache.stats().unwrap().total.counts;
    assert!(counts.hits + counts.misses >= asked, "{counts:?}, and {asked} were asked");
    println!("    {asked} asked, {evictions} evicted, hit rate {:.2}", counts.hit_rate().unwrap());
    Most { over }
}

pub(crate) fn single_flight() {
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<_> = (0..8).map(|_| start(dir.path(), "once 5")).collect();
    let lines: Vec<_> = all.into_iter().flat_map(|child| finish(child).0).collect();
    let count = |what: &str| lines.iter().filter(|line| *line == what).count();
    assert_eq!((count("compiled"), count("done")), (1, 8));
    // One that dies while it compiles is not waited for.
    let mut victim = start(dir.path(), "stuck 6");
    let mut line = String::new();
    BufReader::new(victim.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let waits = start(dir.path(), "once 6");
    std::thread::sleep(Duration::from_millis(50));
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_eq!(finish(waits).0, ["compiled", "done"]);
}

pub(crate) fn in_use() {
    let dir = tempfile::tempdir().unwrap();
    let mut user = start(dir.path(), "hold 3");
    let mut line = String::new();
    BufReader::new(user.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "holds\n");
    let limit = 4 * 20_220;
    let cache = Cache::open(Options { limit, ..options(dir.path()) });
    for n in 10..60 {
        ask(&cache, n, length(n));
    }
    assert_eq!(cache.clear().unwrap().in_use, 1);
    assert!(is_there(&cache, dir.path()));
    user.kill().unwrap();
    user.wait().unwrap();
    assert_eq!(cache.clear().unwrap().in_use, 0, "its user is gone");
    assert!(!is_there(&cache, dir.path()));
}

fn is_there(cache: &Cache, dir: &Path) -> bool {
    bytes(dir) > 0 && cache.get(&key(3)).is_some()
}
