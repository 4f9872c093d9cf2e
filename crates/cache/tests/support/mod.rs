//! What the tests share: keys, and what they name.
#![allow(dead_code, clippy::unwrap_used)] // not every test uses all of it; one that cannot go on panics

use gpu_run_cache::{Cache, Found, Key, Options, Origin};
use std::convert::Infallible;
use std::path::{Path, PathBuf};

/// Bytes of an entry's file before its payload, where it has no label.
pub(crate) const HEADER: u64 = 120 + 36;

pub(crate) fn key(n: u64) -> Key {
    Key::new("test model", &n).unwrap()
}

/// What key `n` names: so many bytes that do not pack, and tell whose they are.
pub(crate) fn result(n: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(n);
    let mut bytes: Vec<u8> = (0..length.div_ceil(4)).flat_map(|_| random.u32(..).to_le_bytes()).collect();
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
