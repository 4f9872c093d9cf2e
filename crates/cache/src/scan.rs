//! Lists the entries, and decides which of them to evict.
//!
//! The writer keeps the limit. Before its entry appears, the writer evicts the least recently used entries until the
//! new one fits and a tenth of the limit is free, so that not every write has to look at all entries. Entries in use
//! stay; if they leave too little space, the new entry is not kept.

use crate::entry::{self, About, Damage};
use crate::in_use::{claim, leased};
use crate::ledger::Ledger;
use crate::owner::{Owner, Seen};
use crate::store::{EXTENSION, Store, is_own, open};
use crate::trust::check_named;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Leftovers of processes out of sight are removed when they are older than this.
const LEFT_AFTER: Duration = Duration::from_secs(24 * 3600);

/// An entry's file, as its folder lists it.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) model: String,
    /// The key, in hexadecimal.
    pub(crate) hex: String,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// When the entry was last used.
    pub(crate) used: SystemTime,
}

impl Item {
    /// Reads the entry's header.
    pub(crate) fn about(&self) -> io::Result<Result<About, Damage>> {
        let mut start = Vec::with_capacity(entry::HEADER + 1024);
        open(&self.path)?.take(start.capacity() as u64).read_to_end(&mut start)?;
        Ok(entry::read_header(&start, self.bytes))
    }
}

/// Everything in the models' folders.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) entries: Vec<Item>,
    /// Model and path of each file that is not named like an entry.
    pub(crate) foreign: Vec<(String, PathBuf)>,
}

/// Lists the models' folders. A file that disappears meanwhile is left out.
pub(crate) fn list(store: &Store) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for model in read_dir(&store.root)? {
        let name = model.file_name().to_string_lossy().into_owned();
        if is_own(&name) || !model.file_type()?.is_dir() {
            continue;
        }
        check(store, &model.path())?;
        for shard in read_dir(&model.path())? {
            if shard.file_type()?.is_dir() {
                check(store, &shard.path())?;
                read_shard(&mut listing, &name, &shard.path())?;
            } else if shard.file_name() != crate::manifest::NAME {
                listing.foreign.push((name.clone(), shard.path()));
            }
        }
    }
    Ok(listing)
}

/// Fails unless the folder is owned by us and nobody else may write to it: nothing in another folder is looked at.
fn check(store: &Store, folder: &Path) -> io::Result<()> {
    check_named(folder)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", store.shown(folder).display())))
}

fn read_shard(listing: &mut Listing, model: &str, shard: &Path) -> io::Result<()> {
    for file in read_dir(shard)? {
        let Ok(metadata) = file.metadata() else { continue };
        let name = file.file_name().to_string_lossy().into_owned();
        let hex = name.strip_suffix(EXTENSION).and_then(|n| n.strip_suffix('.'));
        let hex = hex.filter(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()));
        match hex.filter(|_| metadata.is_file()) {
            None => listing.foreign.push((model.to_owned(), file.path())),
            Some(hex) => listing.entries.push(Item {
                model: model.to_owned(),
                hex: hex.to_owned(),
                path: file.path(),
                bytes: metadata.len(),
                used: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            }),
        }
    }
    Ok(())
}

/// Lists a folder; a missing folder is empty.
fn read_dir(path: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(path) {
        Ok(entries) => Ok(entries.flatten().collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Makes space for an entry of `bytes` bytes, which replaces the `before` bytes at `target`. Returns the bytes of all
/// entries once the new one is written, or `None` if it does not fit; and the evicted entries.
pub(crate) fn make_room(
    store: &Store,
    ledger: &Ledger,
    bytes: u64,
    target: &Path,
    before: u64,
) -> io::Result<(Option<u64>, Vec<Item>)> {
    let limit = store.options.limit;
    if let Some(total) = ledger.bytes() {
        let after = total.saturating_sub(before) + bytes;
        if after <= limit {
            return Ok((Some(after), Vec::new()));
        }
    }
    sweep(store);
    let others: Vec<_> = list(store)?.entries.into_iter().filter(|item| item.path != target).collect();
    let total: u64 = others.iter().map(|item| item.bytes).sum();
    let (left, evicted) = match total + bytes <= limit {
        true => (total, Vec::new()),
        false => evict(store, others, (limit - limit / 10).saturating_sub(bytes))?,
    };
    ledger.set_bytes(left + before, true)?;
    Ok(((left + bytes <= limit).then_some(left + bytes), evicted))
}

/// Removes the least recently used of `items` until at most `goal` bytes are left. Returns the bytes left, and the
/// removed items.
pub(crate) fn evict(store: &Store, mut items: Vec<Item>, goal: u64) -> io::Result<(u64, Vec<Item>)> {
    items.sort_by(|a, b| (a.used, &a.hex).cmp(&(b.used, &b.hex)));
    let mut total: u64 = items.iter().map(|item| item.bytes).sum();
    let leased = leased(&store.own("leases"));
    let mut evicted = Vec::new();
    for item in items {
        if total <= goal {
            break;
        }
        if !leased.contains(&item.hex) && remove(store, &item)? {
            total -= item.bytes;
            evicted.push(item);
        }
    }
    Ok((total, evicted))
}

/// Removes an entry, unless it is in use or the system refuses. Returns whether it is gone.
pub(crate) fn remove(store: &Store, item: &Item) -> io::Result<bool> {
    match claim(&item.path, store.options.locks) {
        // `_file` keeps the lock until the entry is gone.
        Ok(Some(_file)) => match fs::remove_file(&item.path) {
            Ok(()) => Ok(true),
            Err(error) => Ok(error.kind() == io::ErrorKind::NotFound),
        },
        Ok(None) => Ok(false),
        Err(error) => Ok(error.kind() == io::ErrorKind::NotFound),
    }
}

/// Removes what dead processes left behind, and returns how many files those were, leases not counted.
pub(crate) fn sweep(store: &Store) -> u64 {
    let mut removed = crate::announce::sweep(&store.own("busy"), LEFT_AFTER);
    for file in read_dir(&store.own("tmp")).unwrap_or_default() {
        let age = || file.metadata().and_then(|m| m.modified()).ok().and_then(|time| time.elapsed().ok());
        let stale = match Owner::of_file(&file.file_name().to_string_lossy()).map(|owner| owner.seen()) {
            Some(Seen::Alive) => false,
            Some(Seen::Dead) => true,
            _ => age().is_some_and(|age| age > LEFT_AFTER),
        };
        removed += u64::from(stale && fs::remove_file(file.path()).is_ok());
    }
    leased(&store.own("leases"));
    removed
}

/// Removes all but the `most` newest files of a folder.
pub(crate) fn keep_newest(folder: &Path, most: usize) {
    let mut files: Vec<_> = read_dir(folder)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path())))
        .collect();
    files.sort();
    for (_, path) in files.iter().rev().skip(most) {
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
    }
}
