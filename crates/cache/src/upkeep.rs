//! Operations on a whole cache: `gpu-run cache stats`, `list`, `prune`, `verify`, `clear`.

use crate::cache::Cache;
use crate::counts::{self, Counts};
use crate::entry::{self, Damage, Failure};
use crate::scan::{self, Item, Listing};
use crate::store::{Inode, Store, open};
use crate::trust::{self, Others};
use crate::{Error, manifest};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// What is in the cache, and what happened so far.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stats {
    pub limit: u64,
    #[serde(flatten)]
    pub total: ModelStats,
    pub models: BTreeMap<String, ModelStats>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ModelStats {
    pub entries: u64,
    pub bytes: u64,
    #[serde(flatten)]
    pub counts: Counts,
    pub hit_rate: Option<f64>,
}

/// One entry.
#[derive(Clone, Debug)]
pub struct Listed {
    pub model: String,
    /// The key's hash in hexadecimal.
    pub key: String,
    pub label: String,
    /// Bytes of the entry's file.
    pub bytes: u64,
    pub unpacked_bytes: u64,
    pub took: Duration,
    pub made: SystemTime,
    pub used: SystemTime,
}

/// What a prune or a clear removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    pub entries: u64,
    pub bytes: u64,
    /// Files that dead processes had left behind.
    pub leftovers: u64,
    /// Entries that should have been removed but are in use.
    pub in_use: u64,
}

/// The result of reading every entry.
#[derive(Clone, Debug, Default)]
pub struct Check {
    pub whole: u64,
    pub damaged: Vec<(PathBuf, Damage)>,
    /// How many of the damaged files were set aside.
    pub repaired: u64,
}

impl Cache {
    /// Statistics over all processes, in total and for each model.
    pub fn stats(&self) -> Result<Stats, Error> {
        self.flush();
        self.upkeep(|store| {
            let mut stats = Stats { limit: store.options.limit, ..Stats::default() };
            for (model, counts) in counts::read(store)? {
                stats.models.entry(model).or_default().counts = counts;
            }
            for item in scan::list(store)?.entries {
                let model = stats.models.entry(item.model).or_default();
                model.entries += 1;
                model.bytes += item.bytes;
            }
            for model in stats.models.values_mut() {
                model.hit_rate = model.counts.hit_rate();
                stats.total.entries += model.entries;
                stats.total.bytes += model.bytes;
                stats.total.counts.add(&model.counts);
            }
            stats.total.hit_rate = stats.total.counts.hit_rate();
            Ok(stats)
        })
    }

    /// Lists all entries, most recently used first.
    pub fn list(&self) -> Result<Vec<Listed>, Error> {
        self.upkeep(|store| {
            let mut listed: Vec<_> = scan::list(store)?.entries.into_iter().filter_map(listed).collect();
            listed.sort_by(|a, b| (b.used, &a.key).cmp(&(a.used, &b.key)));
            Ok(listed)
        })
    }

    /// Removes the entries not used for `max_age`, then the least recently used ones until at most `max_size` bytes are
    /// left (by default the cache's limit), and what dead processes left behind.
    pub fn prune(&self, max_age: Option<Duration>, max_size: Option<u64>) -> Result<Pruned, Error> {
        let pruned = self.upkeep(|store| {
            let ledger = store.lock()?;
            let leftovers = scan::sweep(store);
            let entries = scan::list(store)?.entries;
            let before = sum(&entries);
            let old = |item: &Item| {
                max_age.is_some_and(|most| store.now().duration_since(item.used).is_ok_and(|age| age > most))
            };
            let (old, young): (Vec<_>, Vec<_>) = entries.into_iter().partition(old);
            let old_count = old.len();
            let (old_left, mut gone) = scan::evict(store, old, 0)?;
            let in_use = (old_count - gone.len()) as u64;
            let goal = max_size.unwrap_or(store.options.limit).min(store.options.limit);
            let (young_left, more) = scan::evict(store, young, goal.saturating_sub(old_left))?;
            let bytes = old_left + young_left;
            gone.extend(more);
            ledger.set_bytes(bytes, true)?;
            drop(ledger);
            counts::read(store)?;
            manifest::rebuild(store)?;
            Ok((Pruned { entries: gone.len() as u64, bytes: before - bytes, leftovers, in_use }, gone))
        })?;
        for item in &pruned.1 {
            self.count_model(&item.model, |counts| counts.evictions += 1);
        }
        Ok(pruned.0)
    }

    /// Removes every entry that is not in use.
    pub fn clear(&self) -> Result<Pruned, Error> {
        self.upkeep(|store| {
            let ledger = store.lock()?;
            let leftovers = scan::sweep(store);
            let Listing { entries, foreign } = scan::list(store)?;
            let (count, before) = (entries.len() as u64, sum(&entries));
            let (left, gone) = scan::evict(store, entries, 0)?;
            for (_, path) in foreign {
                let _ = std::fs::remove_file(path);
            }
            scan::keep_newest(&store.own("damaged"), 0);
            ledger.set_bytes(left, true)?;
            drop(ledger);
            manifest::rebuild(store)?;
            let entries = gone.len() as u64;
            Ok(Pruned { entries, bytes: before - left, leftovers, in_use: count - entries })
        })
    }

    /// Reads every entry and checks its sums. With `repair`, sets damaged files aside and rebuilds the manifests.
    pub fn verify(&self, repair: bool) -> Result<Check, Error> {
        let (check, models) = self.upkeep(|store| {
            let (mut check, mut models) = (Check::default(), Vec::new());
            let Listing { entries, foreign } = scan::list(store)?;
            for item in entries {
                match inspect(&item) {
                    Ok(Ok(())) => check.whole += 1,
                    Ok(Err((damage, inode))) => {
                        if repair && store.set_aside(&item.path, &item.model, Some(inode), damage) {
                            check.repaired += 1;
                            models.push(item.model);
                        }
                        check.damaged.push((store.shown(&item.path), damage));
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            for (model, path) in foreign {
                if repair && store.set_aside(&path, &model, None, Damage::Foreign) {
                    check.repaired += 1;
                    models.push(model);
                }
                check.damaged.push((store.shown(&path), Damage::Foreign));
            }
            if repair {
                manifest::rebuild(store)?;
            }
            Ok((check, models))
        })?;
        for model in models {
            self.count_model(&model, |counts| counts.repaired += 1);
        }
        Ok(check)
    }

    fn upkeep<T>(&self, work: impl FnOnce(&Store) -> io::Result<T>) -> Result<T, Error> {
        let store = self.store()?;
        work(store).map_err(|source| Error::Io { path: store.place.clone(), source })
    }
}

fn sum(items: &[Item]) -> u64 {
    items.iter().map(|item| item.bytes).sum()
}

fn listed(item: Item) -> Option<Listed> {
    let about = item.about().ok()?.ok()?;
    Some(Listed {
        model: item.model,
        key: item.hex,
        label: about.label,
        bytes: item.bytes,
        unpacked_bytes: about.given,
        took: about.took,
        made: about.made,
        used: item.used,
    })
}

/// Checks that an entry is whole, trusted, and named by its key.
fn inspect(item: &Item) -> io::Result<Result<(), (Damage, Inode)>> {
    let file = open(&item.path)?;
    let metadata = file.metadata()?;
    let inode = Inode::of(&metadata);
    if let Err(distrust) = trust::check(&rustix::fs::fstat(&file)?, Others::MayRead) {
        return Ok(Err((Damage::Distrusted(distrust), inode)));
    }
    match entry::check(&file, metadata.len()) {
        Ok(about) if crate::key::hex(&about.key) == item.hex => Ok(Ok(())),
        Ok(_) => Ok(Err((Damage::Key, inode))),
        Err(Failure::Damage(damage)) => Ok(Err((damage, inode))),
        Err(Failure::Io(error)) => Err(error),
    }
}
