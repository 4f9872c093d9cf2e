//! Random sequences of operations, on the cache and on a model of it that fits on a page.
#![allow(clippy::unwrap_used)]

mod support;

use gpu_run_cache::{Cache, InUse, Options};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use support::{HEADER, ask, files, key, options};

const LIMIT: u64 = 20_000;

thread_local!(static TIME: Cell<u64> = const { Cell::new(1_000_000) });

/// A clock that goes on by a second at each look.
fn clock() -> SystemTime {
    TIME.set(TIME.get() + 1);
    UNIX_EPOCH + Duration::from_secs(TIME.get())
}

#[derive(Clone, Debug)]
enum Op {
    Ask(u64),
    /// Uses it until `Release`.
    Hold(u64),
    Release(u64),
    Damage(u64),
    Remove(u64),
    Prune {
        age: Option<u64>,
        size: Option<u64>,
    },
    Clear,
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    let n = 0..24u64;
    prop_oneof![
        12 => n.clone().prop_map(Op::Ask),
        3 => n.clone().prop_map(Op::Hold),
        3 => n.clone().prop_map(Op::Release),
        1 => n.clone().prop_map(Op::Damage),
        1 => n.prop_map(Op::Remove),
        1 => (prop::option::of(0..200u64), prop::option::of(0..LIMIT))
            .prop_map(|(age, size)| Op::Prune { age, size }),
        1 => Just(Op::Clear),
        1 => Just(Op::Reopen),
    ]
}

/// Key `n`'s bytes: some are larger than half of the limit, one is larger than all of it.
fn length(n: u64) -> usize {
    [100, 700, 1500, 2200, 3000, 12_000, 400, 25_000][n as usize % 8]
}

/// What must be on disk.
#[derive(Debug, Default)]
struct Model {
    /// By key: bytes, and when it was used last, as a count of uses.
    entries: BTreeMap<u64, (u64, u64)>,
    /// Of those, which are damaged.
    damaged: Vec<u64>,
    held: BTreeMap<u64, InUse>,
    uses: u64,
}

impl Model {
    fn bytes(&self) -> u64 {
        self.entries.values().map(|e| e.0).sum()
    }

    /// Whether it is a hit.
    fn ask(&mut self, n: u64) -> bool {
        self.uses += 1;
        if self.damaged.contains(&n) {
            self.drop_entry(n);
        }
        if let Some(entry) = self.entries.get_mut(&n) {
            entry.1 = self.uses;
            return true;
        }
        let bytes = length(n) as u64 + HEADER;
        if bytes <= LIMIT {
            if self.bytes() + bytes > LIMIT {
                self.evict((LIMIT - LIMIT / 10).saturating_sub(bytes));
            }
            if self.bytes() + bytes <= LIMIT {
                self.entries.insert(n, (bytes, self.uses));
            }
        }
        false
    }

    fn evict(&mut self, goal: u64) {
        let mut order: Vec<_> = self.entries.iter().map(|(n, e)| (e.1, *n)).collect();
        order.sort_unstable();
        for (_, n) in order {
            if self.bytes() > goal && !self.held.contains_key(&n) {
                self.drop_entry(n);
            }
        }
    }

    fn drop_entry(&mut self, n: u64) {
        self.entries.remove(&n);
        self.damaged.retain(|d| *d != n);
    }
}

fn path(dir: &Path, n: u64) -> std::path::PathBuf {
    let hex = key(n).hex();
    dir.join("test-model").join(&hex[..2]).join(format!("{hex}.entry"))
}

fn check(ops: &[Op], locks: bool) {
    let dir = tempfile::tempdir().unwrap();
    let open = || Cache::open(Options { limit: LIMIT, clock, locks, ..options(dir.path()) });
    let (mut cache, mut model) = (open(), Model::default());
    for op in ops {
        match *op {
            Op::Ask(n) => assert_eq!(ask(&cache, n, length(n)).1, model.ask(n), "{op:?}"),
            Op::Hold(n) => {
                let (found, hit) = ask(&cache, n, length(n));
                assert_eq!(hit, model.ask(n), "{op:?}");
                assert_eq!(found.in_use.is_held(), model.entries.contains_key(&n), "{op:?}");
                if found.in_use.is_held() {
                    model.held.insert(n, found.in_use);
                }
            }
            Op::Release(n) => drop(model.held.remove(&n)),
            // Somebody writes into the file, or removes it: the name of what is held is not ours to move then.
            Op::Damage(n) if model.entries.contains_key(&n) && !model.held.contains_key(&n) => {
                let mut bytes = fs::read(path(dir.path(), n)).unwrap();
                let at = bytes.len() / 2;
                bytes[at] ^= 1;
                let used = fs::metadata(path(dir.path(), n)).unwrap().modified().unwrap();
                fs::write(path(dir.path(), n), bytes).unwrap();
                fs::File::open(path(dir.path(), n)).unwrap().set_modified(used).unwrap();
                if !model.damaged.contains(&n) {
                    model.damaged.push(n);
                } else {
                    model.damaged.retain(|d| *d != n); // flipped back
                }
            }
            Op::Remove(n) if model.entries.contains_key(&n) && !model.held.contains_key(&n) => {
                fs::remove_file(path(dir.path(), n)).unwrap();
                model.drop_entry(n);
                // The account does not know of it; whoever looks finds out.
                cache.prune(None, None).unwrap();
            }
            Op::Damage(_) | Op::Remove(_) => {}
            Op::Prune { age, size } => {
                cache.prune(age.map(|_| Duration::from_secs(1 << 40)), size).unwrap();
                model.evict(size.unwrap_or(LIMIT));
            }
            Op::Clear => {
                cache.clear().unwrap();
                model.evict(0);
            }
            Op::Reopen => {
                drop(cache);
                cache = open();
            }
        }
        let mut expected: Vec<_> = model.entries.keys().map(|n| path(dir.path(), *n)).collect();
        let mut there = files(dir.path());
        expected.sort();
        there.sort();
        assert_eq!(there, expected, "after {op:?}");
        assert!(model.bytes() <= LIMIT);
    }
    let stats = cache.stats().unwrap();
    assert_eq!((stats.total.entries, stats.total.bytes), (model.entries.len() as u64, model.bytes()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_cache_does_what_its_model_does(ops in prop::collection::vec(op(), 1..80)) {
        check(&ops, true);
    }

    #[test]
    fn and_where_there_are_no_locks(ops in prop::collection::vec(op(), 1..60)) {
        check(&ops, false);
    }
}
