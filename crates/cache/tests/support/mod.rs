//! What the tests share: keys, and what they name.
#![allow(dead_code, clippy::unwrap_used)] // not every test uses all of it; one that cannot go on panics

use gpu_run_cache::{Cache, Found, Key, Options, Origin};
use std::convert::Infallible;
use std::path::{Path, PathBuf};

/// Bytes of an entry's file before its payload, where it has no label.
pub(crate) const HEADER: u64 = 120 + 36;

/// A small generator of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
}

pub(crate) fn key(n: u64) -> Key {
    Key::new("test model", &n).unwrap()
}

/// What key `n` names: so many bytes that do not pack, and tell whose they are.
pub(crate) fn result(n: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(n + 1);
    let mut bytes: Vec<u8> = (0..length.div_ceil(4)).flat_map(|_| (random.next() as u32).to_le_bytes()).collect();
    bytes.truncate(length);
    bytes
}

/// Asks for key `n`, checks what comes, and says whether it was there.
pub(crate) fn ask(cache: &Cache, n: u64, length: usize) -> (Found, bool) {
    let found = cache.get_or_compile(&key(n), || Ok::<_, Infallible>(result(n, length))).unwrap();
    assert!(found.bytes == result(n, length), "key {n} names another's bytes");
    let hit = matches!(found.origin, Origin::Hit { .. });
    (found, hit)
}

/// Quick: what is not synced is in the system's memory all the same.
pub(crate) fn options(dir: &Path) -> Options {
    Options { durable: false, touch_every: std::time::Duration::ZERO, ..Options::new(dir) }
}

/// All entries' files.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    walk(dir).into_iter().filter(|path| path.extension().is_some_and(|e| e == "entry")).collect()
}

/// All files below a folder, but for entries that were set aside.
pub(crate) fn walk(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && entry.file_name() != "damaged" => found.extend(walk(&entry.path())),
            Ok(kind) if !kind.is_dir() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

/// Bytes of all entries.
pub(crate) fn bytes(dir: &Path) -> u64 {
    files(dir).iter().filter_map(|path| Some(path.metadata().ok()?.len())).sum()
}
