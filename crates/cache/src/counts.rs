//! Statistics over all processes.
//!
//! Each process keeps its own counts and writes them, complete each time, to a file of its own in `stats/`. No two
//! processes write to the same file, and a killed process loses only what it counted since its last write. A process
//! that exits adds its counts to `totals.json` and removes its file. Whoever reads the statistics adds up all files,
//! and moves the counts of killed processes into the totals. The totals name the files they already include, so that
//! none counts twice if the process that adds it is killed before it removes the file.

use crate::owner::{Owner, Seen};
use crate::store::Store;
use crate::trust::make_folder;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// How often each event happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    pub hits: u64,
    /// Entries that came from the remote cache.
    pub fetched: u64,
    pub misses: u64,
    /// Entries that were sent to the remote cache.
    pub sent: u64,
    /// Entries that were removed to make space.
    pub evictions: u64,
    /// Entries that were damaged, and set aside.
    pub repaired: u64,
    /// Milliseconds it took to compile the entries that were hit or fetched, once for each time.
    pub saved_ms: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Self) {
        // Saturating, because a file may contain any number.
        let add = |sum: &mut u64, more| *sum = sum.saturating_add(more);
        add(&mut self.hits, other.hits);
        add(&mut self.fetched, other.fetched);
        add(&mut self.misses, other.misses);
        add(&mut self.sent, other.sent);
        add(&mut self.evictions, other.evictions);
        add(&mut self.repaired, other.repaired);
        add(&mut self.saved_ms, other.saved_ms);
    }

    /// The share of lookups that found the entry, here or in the remote cache; `None` without lookups.
    pub fn hit_rate(&self) -> Option<f64> {
        let found = self.hits.saturating_add(self.fetched);
        let looks = found.saturating_add(self.misses);
        (looks > 0).then(|| found as f64 / looks as f64)
    }
}

/// Counts by model.
pub(crate) type ByModel = BTreeMap<String, Counts>;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Totals {
    models: ByModel,
    /// Files of `stats/` that these totals include and that may still exist.
    merged: BTreeSet<String>,
}

const TOTALS: &str = "totals.json";
/// Age from which the file of a process out of sight is added to the totals.
const LEFT_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);

/// The name of the file of this process's counts; `number` tells the caches of one process apart.
fn file_name(number: u64) -> String {
    format!("{}.{number}.json", Owner::this())
}

/// Writes this process's counts.
pub(crate) fn write(store: &Store, number: u64, counts: &ByModel) -> io::Result<()> {
    let folder = store.own("stats");
    make_folder(&folder)?;
    store.replace(&folder.join(file_name(number)), counts)
}

/// Adds this process's final counts to the totals. Without locks, its file stays instead: of two processes that update
/// the totals at once, one would lose its counts.
pub(crate) fn settle(store: &Store, number: u64, counts: &ByModel) -> io::Result<()> {
    let ledger = store.lock()?;
    if !ledger.is_locked() {
        return write(store, number, counts);
    }
    let (folder, name) = (store.own("stats"), file_name(number));
    make_folder(&folder)?;
    let mut totals = read_totals(&folder);
    merge(&mut totals.models, counts);
    let file = folder.join(&name);
    let written = file.exists();
    if written {
        totals.merged.insert(name);
    }
    store.replace(&folder.join(TOTALS), &totals)?;
    if written {
        // The name stays in `merged` until the totals are next read; no other file will ever have this name.
        fs::remove_file(file)?;
    }
    Ok(())
}

fn read_totals(folder: &Path) -> Totals {
    let text = fs::read(folder.join(TOTALS)).ok();
    let mut totals: Totals = text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    totals.merged.retain(|name| folder.join(name).exists());
    totals
}

/// Returns the counts of all processes; this process's as it has written them.
pub(crate) fn read(store: &Store) -> io::Result<ByModel> {
    let folder = store.own("stats");
    let _alone = store.lock()?;
    let mut totals = read_totals(&folder);
    let (mut living, mut gone) = (ByModel::new(), Vec::new());
    for file in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let age = || file.metadata().and_then(|m| m.modified()).ok().and_then(|time| time.elapsed().ok());
        let Some(owner) = Owner::of_file(&name) else { continue };
        if totals.merged.contains(&name) {
            gone.push(name);
            continue;
        }
        let ended = match owner.seen() {
            Seen::Alive => false,
            Seen::Dead => true,
            Seen::OutOfSight => age().is_some_and(|age| age > LEFT_AFTER),
        };
        let counts = fs::read(file.path()).ok().and_then(|text| serde_json::from_slice::<ByModel>(&text).ok());
        merge(if ended { &mut totals.models } else { &mut living }, &counts.unwrap_or_default());
        if ended {
            totals.merged.insert(name.clone());
            gone.push(name);
        }
    }
    if !gone.is_empty() && store.replace(&folder.join(TOTALS), &totals).is_ok() {
        gone.iter().for_each(|name| drop(fs::remove_file(folder.join(name))));
    }
    let mut sums = totals.models;
    merge(&mut sums, &living);
    Ok(sums)
}

fn merge(sums: &mut ByModel, more: &ByModel) {
    for (model, counts) in more {
        sums.entry(model.clone()).or_default().add(counts);
    }
}
