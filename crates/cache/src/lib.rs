//! Compile once, reuse for ever: a cache of compiled programs that any number of processes share.
//!
//! ```text
//! let found = cache.get_or_compile(&key, || device.compile(&ptx))?;
//! ```
//!
//! [`Cache`] is the disk layer: bytes by [`Key`]. [`Resident`] is the memory layer: loaded modules by key, for as long as there is room. Neither knows
//! what it keeps.
//!
//! # On disk
//!
//! ```text
//! <cache>/                        $XDG_CACHE_HOME/gpu-run, or what the user says
//!   NVIDIA-H200/                  one folder for each model
//!     ab/ab…64 digits….entry      one file for each entry, named by its key      entry, store
//!     manifest.json               what is in there, for people                    manifest
//!   lock                          who changes which entries there are, and the account of bytes   ledger
//!   tmp/                          files that are being written
//!   busy/                         who compiles what                               announce
//!   leases/                       what is in use, where there are no locks        in_use
//!   stats/                        counts, a file for each process                 counts
//!   damaged/                      entries that were set aside, the last few
//! ```
//!
//! **A hit** opens the one file that the key names, takes a shared lock on it, reads it piece by piece, checks its key and each piece's BLAKE3 sum, and sets its time
//! of modification: that is when it was used last. Nothing else is read, so it costs the same among ten entries and a hundred thousand.
//!
//! **A write** goes to a file in `tmp/`, which is synced; then, under the lock, room is made, the account is raised, and the file is renamed to its place; then
//! its folder is synced. A process killed at any step leaves either nothing or a whole entry, and at worst a file in `tmp/` with its name
//! on it and an account that is too high; both are put right by the next write that needs room, and by `prune`.
//!
//! **Evicting** takes the entries used longest ago, under the lock, and each only if nobody holds a lock on it or a lease of it. A reader that has
//! opened an entry just before it is removed reads it to its end: a name goes, not the bytes.
//!
//! **Damage is a miss.** Any file that is not exactly what was written is moved to `damaged/`, counted, and made again. Whether the file in that place is
//! still the one that was seen is checked under the lock, so that no good entry goes with it.
//!
//! **Compiling** happens without any lock. Who does it leaves an announcement, and who misses the same key meanwhile waits as long as it sees that process work.
//! Where processes cannot see each other, both compile, the last rename wins, and both were right: a key names one result.
//!
//! **Where nothing can be written**, because the disk is full, the folder read-only, or there is none, one warning is given, and everything goes on
//! without a cache.
//!
//! An entry is native code that its reader will run: whoever may write to the folder could run code as its readers. So all of it is made for its owner alone, and a folder or an
//! entry that belongs to somebody else, or that others may write to, is refused ([`trust`]): the folder means no cache, the entry is set aside. The cache's folder is held open and all
//! that is done in it begins there, so that nobody can put another in its place meanwhile.

mod announce;
mod cache;
mod counts;
mod destination;
mod entry;
mod fault;
mod in_use;
mod key;
mod ledger;
mod manifest;
mod owner;
mod pieces;
mod resident;
mod scan;
mod store;
pub mod trust;
mod upkeep;

/// What `resident` is built on: its model check puts others in their place.
mod sync {
    pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
}

pub use cache::{Cache, Found, Got, Options, Origin};
pub use counts::Counts;
pub use destination::Destination;
pub use entry::Damage;
pub use in_use::InUse;
pub use key::{KEY_BYTES, Key};
pub use resident::Resident;
pub use upkeep::{Check, Listed, ModelStats, Pruned, Stats};

use std::io;
use std::path::PathBuf;

/// What upkeep can fail with. Getting and keeping never fail: without a cache, one compiles.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the cache in {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("there is no cache: {0}")]
    Off(String),
    #[error("a recipe cannot be written down: {0}")]
    Recipe(serde_json::Error),
}
