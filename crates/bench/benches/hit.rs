//! Measures how long a hit takes and whether that grows with the cache, beside `std::fs::read` of the same bytes.
//!
//! `cargo bench -p gpu-run-bench --bench hit`. Numbers of entries can be given: `-- 10 1000`.
#![allow(clippy::unwrap_used)]

use gpu_run_cache::{Cache, Key, Options, Resident};
use std::convert::Infallible;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Bytes of most entries: few, so that a hundred thousand entries fit.
const SMALL: usize = 2000;
/// Bytes of an entry as large as a program.
const LARGE: usize = 600 << 10;
/// Lookups of each kind.
const ASKED: u64 = 200;

fn main() {
    let sizes: Vec<u64> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![10, 100, 1000, 10_000, 100_000] } else { sizes };
    println!("median of {ASKED} hits, in microseconds; the files are in the system's memory");
    println!(
        "{:>9}  {:>10} {:>10}  {:>10} {:>10}  {:>10}",
        "entries", "2 KB", "fs::read", "600 KB", "fs::read", "10 keys"
    );
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(Options { limit: u64::MAX, durable: false, ..Options::new(folder.path()) });
    let mut filled = 0;
    for size in sizes {
        for n in filled..size {
            keep(&cache, n, SMALL);
        }
        filled = size;
        let larges = 1_000_000_000..1_000_000_010;
        larges.clone().for_each(|n| keep(&cache, n, LARGE));
        let step = (size / ASKED).max(1);
        let small: Vec<u64> = (0..ASKED).map(|i| i * step % size).collect();
        let large: Vec<u64> = larges.cycle().take(ASKED as usize).collect();
        let few: Vec<u64> = (0..10).cycle().take(ASKED as usize).collect();
        println!(
            "{size:>9}  {:>10.1} {:>10.1}  {:>10.1} {:>10.1}  {:>10.1}",
            hits(&cache, &small),
            reads(&cache, &small),
            hits(&cache, &large),
            reads(&cache, &large),
            hits(&cache, &few),
        );
    }
    let resident = Resident::<u64, u64>::new(1 << 20);
    let switch = median((0..ASKED).map(|n| {
        let key = n % 2;
        let began = Instant::now();
        black_box(resident.get_or_make(&key, || Ok::<_, Infallible>((key, 1))).unwrap());
        began.elapsed()
    }));
    println!("switch between two that are in memory: {switch:.3} microseconds");
}

fn key(n: u64) -> Key {
    Key::new("bench", &n).unwrap()
}

/// Writes an entry that LZ4 packs to about half, as it does code.
fn keep(cache: &Cache, n: u64, bytes: usize) {
    let mut random = fastrand::Rng::with_seed(n);
    let payload: Vec<u8> = (0..bytes).map(|i| if i % 32 < 16 { (i / 1024) as u8 } else { random.u8(..) }).collect();
    assert!(cache.put(&key(n), &payload, Duration::from_millis(1)));
}

fn hits(cache: &Cache, which: &[u64]) -> f64 {
    median(which.iter().map(|n| {
        let key = key(*n);
        let began = Instant::now();
        black_box(cache.get(&key).unwrap());
        began.elapsed()
    }))
}

fn reads(cache: &Cache, which: &[u64]) -> f64 {
    let path = |n: u64| -> PathBuf {
        let hex = key(n).hex();
        cache.path().unwrap().join("bench").join(&hex[..2]).join(format!("{hex}.entry"))
    };
    median(which.iter().map(|n| {
        let path = path(*n);
        let began = Instant::now();
        black_box(std::fs::read(&path).unwrap());
        began.elapsed()
    }))
}

fn median(times: impl Iterator<Item = Duration>) -> f64 {
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}
