//! The cache as its users see it.

use crate::announce::{Turn, announce};
use crate::counts::{self, ByModel, Counts};
use crate::entry::Damage;
use crate::in_use::InUse;
use crate::key::Key;
use crate::manifest::{self, Row};
use crate::scan::Item;
use crate::store::{Lookup, Store};
use crate::{Destination, Error, store};
use parking_lot::{Mutex, MutexGuard};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use std::time::{Duration, Instant, SystemTime};

/// How to open a cache.
#[derive(Clone)]
pub struct Options {
    pub dir: PathBuf,
    /// Bytes of all entries together.
    pub limit: u64,
    /// A use is recorded if the last one that was is older than this: a minute is fine enough for what goes first.
    pub touch_every: Duration,
    /// How long to wait at most for another process that compiles the same.
    pub patience: Duration,
    /// Whether entries are synced to disk before they appear.
    pub durable: bool,
    /// Whether the file system's locks are used. Where it has none that is found out, too.
    pub locks: bool,
    /// What time it is.
    pub clock: fn() -> SystemTime,
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
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("dir", &self.dir).field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// What was asked for, wherever it came from.
#[derive(Debug)]
pub struct Found<R = Vec<u8>> {
    pub bytes: R,
    pub origin: Origin,
    /// The entry stays on disk for as long as this lives.
    pub in_use: InUse,
}

/// Where it came from decides what it lies in.
#[derive(Debug)]
pub enum Got<R> {
    Read(Found<R>),
    Made(Found),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was there, and it would have taken this long to make.
    Hit { saved: Duration },
    /// It was made, and took this long; the bytes of its entry, if it was kept.
    Miss { took: Duration, kept: Option<u64> },
}

/// A cache on disk, or none: what is asked of none is compiled, and nothing is kept.
#[derive(Debug)]
pub struct Cache {
    store: Result<Store, String>,
    /// Tells this one's file of counts from others of the process.
    number: u64,
    state: Mutex<State>,
    /// Whether writing has failed before: it is not tried again.
    broken: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    counts: ByModel,
    come: Vec<(String, String, Row)>,
    gone: Vec<Item>,
    /// Whether there are counts that were not written.
    fresh: bool,
}

impl Cache {
    /// Opens or makes a cache. If that cannot be done there is none, and a warning says why.
    pub fn open(options: Options) -> Self {
        let dir = options.dir.clone();
        let store = Store::open(options).map_err(|error| {
            let message = format!("{}: {error}", dir.display());
            tracing::warn!("programs are not kept, there is no cache in {message}");
            message
        });
        Self::with(store)
    }

    /// No cache, without a warning. `why` is what upkeep says.
    pub fn off(why: &str) -> Self {
        Self::with(Err(why.to_owned()))
    }

    fn with(store: Result<Store, String>) -> Self {
        static CACHES: AtomicU64 = AtomicU64::new(0);
        let number = CACHES.fetch_add(1, Ordering::Relaxed);
        Self { store, number, state: Mutex::default(), broken: AtomicBool::new(false) }
    }

    /// Where it is, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.store.as_ref().ok().map(|store| store.place.as_path())
    }

    pub(crate) fn store(&self) -> Result<&Store, Error> {
        self.store.as_ref().map_err(|why| Error::Off(why.clone()))
    }

    /// What the key names: from disk, or else from `compile`, whose result is kept. Whatever goes wrong with the cache itself, this gives the result.
    pub fn get_or_compile<E>(&self, key: &Key, compile: impl FnOnce() -> Result<Vec<u8>, E>) -> Result<Found, E> {
        Ok(match self.get_or_make(key, compile)? {
            Got::Read(found) | Got::Made(found) => found,
        })
    }

    /// The same in another [`Destination`], which what was read is put into at once. What was made is not: it is `Made`.
    pub fn get_or_make<R: Destination, E>(
        &self,
        key: &Key,
        compile: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Got<R>, E> {
        let Ok(store) = &self.store else {
            let began = Instant::now();
            let bytes = compile()?;
            let origin = Origin::Miss { took: began.elapsed(), kept: None };
            return Ok(Got::Made(Found { bytes, origin, in_use: InUse::default() }));
        };
        if let Some(found) = self.lookup(store, key) {
            return Ok(Got::Read(found));
        }
        let turn = match self.wait_for_turn(store, key) {
            Ok(found) => return Ok(Got::Read(found)),
            Err(turn) => turn,
        };
        self.count(key, |counts| counts.misses += 1);
        let began = Instant::now();
        let bytes = compile()?;
        let took = began.elapsed();
        let (kept, in_use) = self.keep(store, key, &bytes, took);
        drop(turn);
        Ok(Got::Made(Found { bytes, origin: Origin::Miss { took, kept }, in_use }))
    }

    /// What the key names, if it is there.
    pub fn get(&self, key: &Key) -> Option<Found> {
        let store = self.store.as_ref().ok()?;
        let found = self.lookup(store, key);
        if found.is_none() {
            self.count(key, |counts| counts.misses += 1);
        }
        found
    }

    /// What the key names, if it is there; nothing is counted. For what a run can do without.
    pub fn peek(&self, key: &Key) -> Option<Vec<u8>> {
        match self.store.as_ref().ok()?.get(key) {
            Lookup::Hit(hit) => Some(hit.bytes),
            Lookup::Damaged | Lookup::Miss => None,
        }
    }

    /// Keeps what was made elsewhere. Says whether it was kept.
    pub fn put(&self, key: &Key, bytes: &[u8], took: Duration) -> bool {
        self.store.as_ref().is_ok_and(|store| self.keep(store, key, bytes, took).0.is_some())
    }

    /// Sets an entry aside that is whole and yet of no use: a driver refuses it, for instance.
    pub fn discard(&self, key: &Key) {
        if let Ok(store) = &self.store
            && store.set_aside(&store.path(key), key.model(), None, Damage::Useless)
        {
            self.count(key, |counts| counts.repaired += 1);
        }
    }

    /// A hit is counted; a miss is not yet.
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

    /// Waits while another compiles the same. `Err` is our turn to do it.
    fn wait_for_turn<R: Destination>(&self, store: &Store, key: &Key) -> Result<Found<R>, Turn> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(Turn::Unannounced);
        }
        let (busy, path) = (store.own("busy"), store.path(key));
        let began = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            let turn = announce(&busy, key);
            // The other may have been done between our look and our announcement.
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

    /// The bytes of the entry, if it was kept.
    fn keep(&self, store: &Store, key: &Key, bytes: &[u8], took: Duration) -> (Option<u64>, InUse) {
        if self.broken.load(Ordering::Relaxed) {
            return (None, InUse::default());
        }
        match store.put(key, bytes, took) {
            Ok(written) => {
                let mut state = self.state();
                for item in &written.evicted {
                    state.counts.entry(item.model.clone()).or_default().evictions += 1;
                }
                state.fresh |= !written.evicted.is_empty();
                state.gone.extend(written.evicted);
                let Some(in_use) = written.kept else {
                    tracing::info!("{key:?} is not kept: {} bytes find no room", written.bytes);
                    return (None, InUse::default());
                };
                let row = manifest::row(
                    key.label().into(),
                    written.bytes,
                    bytes.len() as u64,
                    took.as_millis() as u64,
                    store.now(),
                );
                state.come.push((key.model().into(), key.hex(), row));
                (Some(written.bytes), in_use)
            }
            Err(error) => {
                if !self.broken.swap(true, Ordering::Relaxed) {
                    tracing::warn!("programs are not kept, the cache in {}: {error}", store.place.display());
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

    /// What this process has counted.
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.state().counts.values().for_each(|counts| sum.add(counts));
        sum
    }

    /// Writes counts and manifests, which otherwise happens when this is dropped: for a process that may not live to do so.
    pub fn flush(&self) {
        let Ok(store) = &self.store else { return };
        let mut state = self.state();
        let (come, gone) = (std::mem::take(&mut state.come), std::mem::take(&mut state.gone));
        let counts = std::mem::take(&mut state.fresh).then(|| state.counts.clone());
        drop(state);
        let counted = counts.map_or(Ok(()), |counts| counts::write(store, self.number, &counts));
        let listed = if come.is_empty() && gone.is_empty() { Ok(()) } else { manifest::update(store, &come, &gone) };
        if let Err(error) = counted.and(listed) {
            // That the cache cannot be written to is said where an entry is lost by it.
            tracing::debug!("statistics are not kept, the cache in {}: {error}", store.place.display());
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.flush();
        let counts = std::mem::take(&mut self.state().counts);
        if let (Ok(store), false) = (&self.store, counts.is_empty()) {
            let _ = counts::settle(store, self.number, &counts);
        }
    }
}
