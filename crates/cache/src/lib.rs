//! A cache of compiled programs that any number of processes share.
//!
//! ```text
//! let found = cache.get_or_compile(&key, || device.compile(&ptx))?;
//! ```
//!
//! [`Cache`] is the disk layer: bytes by [`Key`]. [`Resident`] is the memory layer: loaded modules by key, up to a
//! limit of bytes. Neither layer interprets the values it keeps.
//!
//! # On disk
//!
//! ```text
//! <cache>/                        $XDG_CACHE_HOME/gpu-run, or the folder the user chose
//!   NVIDIA-H200/                  one folder for each device model
//!     ab/ab…64 digits….entry      one file for each entry, named by its key        entry, store
//!     manifest.json               a list of the entries, for people                manifest
//!   lock                          locked to add or remove entries; holds the       ledger
//!                                 account: the bytes of all entries
//!   tmp/                          files that are being written
//!   busy/                         which process compiles which key                 announce
//!   leases/                       entries in use, on file systems without locks    in_use
//!   stats/                        counts, a file for each process                  counts
//!   damaged/                      the entries set aside last
//!   sysroots/                     the stds that `gpu-run build` made; no concern of this crate
//! ```
//!
//! **A hit** opens the one file that the key names, takes a shared lock on it, reads it piece by piece, and checks the
//! key and each piece's BLAKE3 sum. The file's modification time records when the entry was last used; a hit updates it
//! once the recorded time is a minute old. A hit reads nothing else, so it costs the same among ten entries and a
//! hundred thousand.
//!
//! **A write** creates a file in `tmp/` and syncs it. Then, under the lock, it evicts entries if space is short, raises
//! the account, and renames the file to its place. Last, it syncs the folder. A process killed at any step leaves
//! either no entry or a whole one, and at worst a file in `tmp/` that carries its name and an account that is too high.
//! The next write that needs space, or `prune`, corrects both.
//!
//! **Eviction** removes the least recently used entries, under the lock, and skips any entry that somebody has locked
//! or leased. A reader that opened an entry just before its removal can still read all of it: removal takes the name
//! away, not the bytes.
//!
//! **Damage is a miss.** A file that is not exactly what was written is moved to `damaged/`, counted, and made again.
//! Under the lock, the mover checks that the path still leads to the file it read, so that it never takes away a good
//! entry that came in the meantime.
//!
//! **Compiling** holds no lock. A process that compiles leaves an announcement; another process that misses the same
//! key waits as long as it sees the first one work, up to a time limit. Processes that cannot see each other both
//! compile. The last rename wins, and either result is right: a key names one result.
//!
//! **A remote cache** ([`Remote`]) may be asked for what the one on disk lacks. Its entries are the same files, signed.
//! This crate knows no network: who opens the cache says where they lie ([`RemoteStore`]).
//!
//! **Where nothing can be written**, because the disk is full or the folder is read-only, gpu-run prints one warning and
//! writes no more entries; hits still work. If the folder cannot be opened, gpu-run prints one warning and works without
//! a cache.
//!
//! An entry is native code that its reader will run: whoever may write to the folder could run code as its readers. So
//! files and folders are created for their owner alone, and a folder or an entry that belongs to somebody else, or that
//! others may write to, is refused ([`trust`]): such a folder means no cache, such an entry is set aside. The process
//! holds the cache's folder open and reaches everything in it from there, so that nobody can put another folder in its
//! place.

mod announce;
mod cache;
mod counts;
mod destination;
mod entry;
mod fault;
mod found;
mod in_use;
mod key;
mod ledger;
mod manifest;
mod owner;
mod pieces;
mod remote;
mod resident;
mod scan;
mod signature;
mod store;
pub mod trust;
mod upkeep;

/// The types that `resident` is built on. Its model check (`tests/model.rs`) replaces them with loom's.
mod sync {
    pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
}

pub use cache::{Cache, Options};
pub use counts::Counts;
pub use destination::Destination;
pub use entry::Damage;
pub use found::{Found, Got, Made, Origin};
pub use in_use::InUse;
pub use key::{KEY_BYTES, Key};
pub use remote::{Arrival, END_WAIT, Fetch, Remote, RemoteError, RemoteStore};
pub use resident::Resident;
pub use signature::{ShortSecret, SigningKey};
pub use upkeep::{Check, Listed, ModelStats, Pruned, Stats};

use std::io;
use std::path::PathBuf;

/// Why upkeep failed. Lookups and writes never fail: without a cache, every program is compiled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the cache in {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("there is no cache: {0}")]
    Off(String),
    #[error("cannot encode a recipe: {0}")]
    Recipe(serde_json::Error),
}
