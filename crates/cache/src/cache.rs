//! The cache as its users see it.

use crate::announce::{Turn, announce};
use crate::counts::{self, ByModel, Counts};
use crate::entry::Damage;
use crate::found::{Found, Got, Made, Origin};
use crate::in_use::InUse;
use crate::key::Key;
use crate::manifest::{self, Row};
use crate::remote::{Arrival, Arrived, END_WAIT, Fetch, Fetching, Remote};
use crate::scan::Item;
use crate::store::{Lookup, Store};
use crate::{Destination, Error, entry, fault, store};
use parking_lot::{Mutex, MutexGuard};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use std::time::{Duration, Instant, SystemTime};

/// How to open a cache.
#[derive(Clone)]
pub struct Options {
    pub dir: PathBuf,
    /// Maximum bytes of all entries together.
    pub limit: u64,
    /// A hit updates an entry's time of last use only if the recorded time is at least this old. A minute is fine
    /// enough to choose what to evict.
    pub touch_every: Duration,
    /// Maximum time to wait for another process that compiles the same key.
    pub patience: Duration,
    /// Whether entries are synced to disk before they appear.
    pub durable: bool,
    /// Whether to use the file system's locks. If the file system turns out to have none, the cache works without them
    /// anyway.
    pub locks: bool,
    /// Returns the current time; tests replace it.
    pub clock: fn() -> SystemTime,
    /// A cache beyond this machine, which is asked for what this one lacks.
    pub remote: Option<Remote>,
}

impl Options {
    pub const LIMIT: u64 = 1 << 30;

    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            limit: Self::LIMIT,
            touch_every: Duration::from_secs(60),
            patience: Duration::from_secs(300),
            durable: true,
            locks: true,
            clock: SystemTime::now,
            remote: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("dir", &self.dir).field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// A cache on disk, or none. Without one, every request compiles and nothing is kept.
#[derive(Debug)]
pub struct Cache {
    store: Result<Store, String>,
    remote: Option<Remote>,
    /// Tells this cache's file of counts from those of other caches in the process.
    number: u64,
    state: Mutex<State>,
    /// Whether a write has failed: no further write is tried.
    broken: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    counts: ByModel,
    come: Vec<(String, String, Row)>,
    gone: Vec<Item>,
    /// Whether some counts have not been written yet.
    fresh: bool,
}

impl Cache {
    /// Opens a cache, and creates its folder if need be. On failure, prints a warning and works without a cache.
    pub fn open(options: Options) -> Self {
        let (dir, remote) = (options.dir.clone(), options.remote.clone());
        let store = Store::open(options).map_err(|error| {
            let message = format!("{}: {error}", dir.display());
            tracing::warn!("compiled programs are not kept: cannot use the cache in {message}");
            message
        });
        Self::with(store, remote)
    }

    /// Returns a cache that is switched off, with no remote one either. No warning is printed; upkeep fails with `why`.
    pub fn off(why: &str) -> Self {
        Self::with(Err(why.to_owned()), None)
    }

    fn with(store: Result<Store, String>, remote: Option<Remote>) -> Self {
        static CACHES: AtomicU64 = AtomicU64::new(0);
        let number = CACHES.fetch_add(1, Ordering::Relaxed);
        Self { store, remote, number, state: Mutex::default(), broken: AtomicBool::new(false) }
    }

    /// The cache's folder, if there is a cache.
    pub fn path(&self) -> Option<&Path> {
        self.store.as_ref().ok().map(|store| store.place.as_path())
    }

    /// The remote cache, if there is one.
    pub fn remote(&self) -> Option<&Remote> {
        self.remote.as_ref()
    }

    pub(crate) fn store(&self) -> Result<&Store, Error> {
        self.store.as_ref().map_err(|why| Error::Off(why.clone()))
    }

    /// Returns the key's bytes: from disk, or else from `compile`, whose result is kept. A failure of the cache itself
    /// is never a failure of this function.
    pub fn get_or_compile<E>(&self, key: &Key, compile: impl FnOnce() -> Result<Vec<u8>, E>) -> Result<Found, E> {
        Ok(match self.get_or_make(key, |_| compile().map(Made::Compiled))? {
            Got::Read(found) | Got::Made(found) => found,
        })
    }

    /// Like [`Cache::get_or_compile`], but reads an entry directly into a [`Destination`]. While `compile` runs, the
    /// remote cache may send the entry: `compile` should then stop and return that instead.
    pub fn get_or_make<R: Destination, E>(
        &self,
        key: &Key,
        compile: impl FnOnce(&Fetch) -> Result<Made, E>,
    ) -> Result<Got<R>, E> {
        let mut turn = None;
        if let Ok(store) = &self.store {
            if let Some(found) = self.lookup(store, key) {
                return Ok(Got::Read(found));
            }
            turn = match self.wait_for_turn(store, key) {
                Ok(found) => return Ok(Got::Read(found)),
                Err(turn) => Some(turn),
            };
        }
        let fetching = self.remote.as_ref().map(|remote| remote.fetch(key));
        let fetch = fetching.as_ref().map(Fetching::fetch).unwrap_or_default();
        let began = Instant::now();
        let made = match fetch.wait(fault::slowness()) {
            Some(arrival) => Ok(Made::Fetched(arrival)),
            None => compile(&fetch),
        };
        if !matches!(made, Ok(Made::Fetched(_))) {
            self.count(key, |counts| counts.misses += 1);
        }
        let found = match made? {
            Made::Compiled(bytes) => self.compiled(key, bytes, began.elapsed(), fetching),
            Made::Fetched(arrival) => self.fetched(key, arrival),
        };
        drop(turn);
        Ok(Got::Made(found))
    }

    /// Keeps what was compiled, here and in the remote cache.
    fn compiled(&self, key: &Key, bytes: Vec<u8>, took: Duration, fetching: Option<Fetching<'_>>) -> Found {
        let (mut kept, mut in_use) = (None, InUse::default());
        let store = self.store.as_ref().ok().filter(|_| !self.is_broken());
        if store.is_some() || fetching.is_some() {
            let file = entry::encode(key, &bytes, took, self.now());
            if let Some(store) = store {
                (kept, in_use) = self.keep(store, key, &file, bytes.len(), took);
            }
            if let Some(fetching) = fetching {
                fetching.offer(file);
            }
        }
        Found { bytes, origin: Origin::Miss { took, kept }, in_use }
    }

    /// Keeps what came from the remote cache.
    fn fetched(&self, key: &Key, arrival: Arrival) -> Found {
        let Arrived { about, file, payload } = arrival.take();
        let saved = about.took;
        self.count(key, |counts| {
            counts.fetched += 1;
            counts.saved_ms += saved.as_millis() as u64;
        });
        let store = self.store.as_ref().ok().filter(|_| !self.is_broken());
        let in_use = store.map(|store| self.keep(store, key, &file, payload.len(), saved).1).unwrap_or_default();
        Found { bytes: payload, origin: Origin::Fetched { saved }, in_use }
    }

    fn now(&self) -> SystemTime {
        self.store.as_ref().map_or_else(|_| SystemTime::now(), Store::now)
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// Waits until the remote cache has what was compiled here, at most so long. Returns how many entries it lacks.
    pub fn wait_until_sent(&self, most: Duration) -> usize {
        self.remote.as_ref().map_or(0, |remote| remote.finish(most))
    }

    /// Returns the key's bytes if they are on disk, and counts a hit or a miss.
    pub fn get(&self, key: &Key) -> Option<Found> {
        let store = self.store.as_ref().ok()?;
        let found = self.lookup(store, key);
        if found.is_none() {
            self.count(key, |counts| counts.misses += 1);
        }
        found
    }

    /// Returns the key's bytes if they are on disk, and counts nothing. For data that a run can do without.
    pub fn peek(&self, key: &Key) -> Option<Vec<u8>> {
        match self.store.as_ref().ok()?.get(key) {
            Lookup::Hit(hit) => Some(hit.bytes),
            Lookup::Damaged | Lookup::Miss => None,
        }
    }

    /// Keeps bytes that the caller made in time `took`. Returns whether they were kept.
    pub fn put(&self, key: &Key, bytes: &[u8], took: Duration) -> bool {
        let Some(store) = self.store.as_ref().ok().filter(|_| !self.is_broken()) else { return false };
        let file = entry::encode(key, bytes, took, store.now());
        self.keep(store, key, &file, bytes.len(), took).0.is_some()
    }

    /// Sets aside an entry that is whole but useless, for instance because a driver refuses it. This process does not
    /// take the remote cache's, either.
    pub fn discard(&self, key: &Key) {
        if let Some(remote) = &self.remote {
            remote.refuse(key);
        }
        if let Ok(store) = &self.store
            && store.set_aside(&store.path(key), key.model(), None, Damage::Useless)
        {
            self.count(key, |counts| counts.repaired += 1);
        }
    }

    /// Reads an entry. Counts a hit and a damaged entry; counting a miss is left to the caller.
    fn lookup<R: Destination>(&self, store: &Store, key: &Key) -> Option<Found<R>> {
        match store.get(key) {
            Lookup::Hit(store::Hit { about, bytes, in_use }) => {
                let saved = about.took;
                self.count(key, |counts| {
                    counts.hits += 1;
                    counts.saved_ms += saved.as_millis() as u64;
                });
                Some(Found { bytes, origin: Origin::Hit { saved }, in_use })
            }
            Lookup::Damaged => {
                self.count(key, |counts| counts.repaired += 1);
                None
            }
            Lookup::Miss => None,
        }
    }

    /// Waits while another process compiles the same key. Returns the entry if it appears, or `Err` when this process
    /// should compile.
    fn wait_for_turn<R: Destination>(&self, store: &Store, key: &Key) -> Result<Found<R>, Turn> {
        if self.is_broken() {
            return Err(Turn::Unannounced);
        }
        let (busy, path) = (store.own("busy"), store.path(key));
        let began = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            let turn = announce(&busy, key);
            // The other process may have finished between our lookup and our announcement.
            if path.exists()
                && let Some(found) = self.lookup(store, key)
            {
                return Ok(found);
            }
            match turn {
                Turn::Theirs if began.elapsed() < store.options.patience => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(20));
                }
                Turn::Theirs => return Err(Turn::Unannounced),
                ours => return Err(ours),
            }
        }
    }

    /// Writes an entry's file. Returns its bytes, or `None` if it was not kept.
    fn keep(&self, store: &Store, key: &Key, file: &[u8], unpacked: usize, took: Duration) -> (Option<u64>, InUse) {
        match store.put(key, file) {
            Ok(written) => {
                let mut state = self.state();
                for item in &written.evicted {
                    state.counts.entry(item.model.clone()).or_default().evictions += 1;
                }
                state.fresh |= !written.evicted.is_empty();
                state.gone.extend(written.evicted);
                let Some(in_use) = written.kept else {
                    tracing::info!("{key:?} is not kept: the cache has no room for {} bytes", written.bytes);
                    return (None, InUse::default());
                };
                let row = manifest::row(
                    key.label().into(),
                    written.bytes,
                    unpacked as u64,
                    took.as_millis() as u64,
                    store.now(),
                );
                state.come.push((key.model().into(), key.hex(), row));
                (Some(written.bytes), in_use)
            }
            Err(error) => {
                if !self.broken.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        "compiled programs are not kept: cannot write to the cache in {}: {error}",
                        store.place.display()
                    );
                }
                (None, InUse::default())
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn count(&self, key: &Key, add: impl FnOnce(&mut Counts)) {
        self.count_model(key.model(), add);
    }

    pub(crate) fn count_model(&self, model: &str, add: impl FnOnce(&mut Counts)) {
        let mut state = self.state();
        if !state.counts.contains_key(model) {
            state.counts.insert(model.to_owned(), Counts::default());
        }
        if let Some(counts) = state.counts.get_mut(model) {
            add(counts);
        }
        state.fresh = true;
    }

    /// What this process has counted so far, over all models.
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.state().counts.values().for_each(|counts| sum.add(counts));
        sum
    }

    fn count_sent(&self) {
        let sent = self.remote.as_ref().map(Remote::take_sent).unwrap_or_default();
        for (model, sent) in sent {
            self.count_model(&model, |counts| counts.sent += sent);
        }
    }

    /// Writes counts and manifests now instead of when the cache is dropped: for a process that may be killed before
    /// that.
    pub fn flush(&self) {
        let Ok(store) = &self.store else { return };
        self.count_sent();
        let mut state = self.state();
        let (come, gone) = (std::mem::take(&mut state.come), std::mem::take(&mut state.gone));
        let counts = std::mem::take(&mut state.fresh).then(|| state.counts.clone());
        drop(state);
        let counted = counts.map_or(Ok(()), |counts| counts::write(store, self.number, &counts));
        let listed = if come.is_empty() && gone.is_empty() { Ok(()) } else { manifest::update(store, &come, &gone) };
        if let Err(error) = counted.and(listed) {
            // Only `keep` warns that the cache cannot be written to, because there an entry is lost.
            tracing::debug!("statistics are not kept: cannot write to the cache in {}: {error}", store.place.display());
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let unsent = self.wait_until_sent(END_WAIT);
        if unsent > 0 {
            let what =
                if unsent == 1 { "a compiled program was".into() } else { format!("{unsent} compiled programs were") };
            tracing::warn!("{what} not sent to the remote cache within {END_WAIT:?}");
        }
        self.flush();
        let counts = std::mem::take(&mut self.state().counts);
        if let (Ok(store), false) = (&self.store, counts.is_empty()) {
            let _ = counts::settle(store, self.number, &counts);
        }
    }
}
