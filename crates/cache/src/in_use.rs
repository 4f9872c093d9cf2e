//! Entries in use: no process evicts them.
//!
//! Where the file system has locks, a user of an entry holds a shared lock on the entry's own file, and a process that
//! evicts first tries to take an exclusive one, without waiting. The kernel releases the locks of a process that dies,
//! so nothing is written and nothing has to be cleaned up. Where there are no locks, a user leaves a *lease*: an empty
//! file in `leases/` whose name contains the entry and the process. A lease of a dead process does not count, and a
//! lease of a process out of sight counts for a day.

use crate::fault::{Oddity, odd};
use crate::owner::{Owner, Seen};
use crate::trust::make_folder;
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a lease of a process out of sight counts.
const MAX_LEASE: Duration = Duration::from_secs(24 * 3600);

/// Keeps an entry from being evicted while it lives. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct InUse(Option<Arc<Hold>>);

#[derive(Debug)]
enum Hold {
    Lock {
        _file: File,
    },
    /// The lease's file, and the cache's folder, through which the path leads: the cache may be closed before the lease
    /// is removed.
    Lease(PathBuf, #[expect(dead_code, reason = "held open")] Arc<OwnedFd>),
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Self::Lease(path, _) = self {
            let _ = fs::remove_file(path);
        }
    }
}

impl InUse {
    /// Locks an entry whose file is open. If an eviction of the entry is under way, it continues, and the result holds
    /// nothing: the open file stays readable.
    pub(crate) fn lock(file: File) -> Result<Self, io::Error> {
        odd(Oddity::Lock)?;
        match file.try_lock_shared() {
            Ok(()) => Ok(Self(Some(Arc::new(Hold::Lock { _file: file })))),
            Err(TryLockError::WouldBlock) => Ok(Self(None)),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether this keeps an entry from being evicted.
    pub fn is_held(&self) -> bool {
        self.0.is_some()
    }

    /// Leaves a lease, for file systems without locks. If that fails, nothing protects the entry, and it may have to be
    /// compiled again.
    pub(crate) fn lease(cache: &Arc<OwnedFd>, folder: &Path, hex: &str, number: u64) -> Self {
        let path = folder.join(format!("{}.{number}.{hex}", Owner::this()));
        let left = make_folder(folder).and_then(|()| File::create(&path));
        Self(left.ok().map(|_| Arc::new(Hold::Lease(path, cache.clone()))))
    }
}

/// Returns the keys that leases protect, and removes leases that no longer count.
pub(crate) fn leased(folder: &Path) -> HashSet<String> {
    let mut leased = HashSet::new();
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let (Some(owner), Some((_, hex))) = (Owner::of_file(&name), name.rsplit_once('.')) else { continue };
        let age = || file.metadata().and_then(|m| m.modified()).ok().and_then(|time| time.elapsed().ok());
        let counts = match owner.seen() {
            Seen::Alive => true,
            Seen::Dead => false,
            Seen::OutOfSight => age().is_none_or(|age| age < MAX_LEASE),
        };
        match counts {
            true => drop(leased.insert(hex.to_owned())),
            false => drop(fs::remove_file(file.path())),
        }
    }
    leased
}

/// Opens the file of an entry that nobody uses; `None` if it is in use. The exclusive lock is held as long as the file
/// is open.
pub(crate) fn claim(path: &Path, locks: bool) -> io::Result<Option<File>> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        // Read-only is enough: removing the file takes only the folder's permission.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(path)?,
        Err(error) => return Err(error),
    };
    if !locks {
        return Ok(Some(file));
    }
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_in_use_cannot_be_claimed_until_the_last_user_has_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("entry");
        fs::write(&path, "x").unwrap();
        let one = InUse::lock(File::open(&path).unwrap()).unwrap();
        let (two, three) = (InUse::lock(File::open(&path).unwrap()).unwrap(), one.clone());
        drop(one);
        assert!(claim(&path, true).unwrap().is_none());
        drop(two);
        assert!(claim(&path, true).unwrap().is_none());
        drop(three);
        assert!(claim(&path, true).unwrap().is_some());
    }

    #[test]
    fn a_lease_counts_as_long_as_its_process_lives() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().join("leases");
        let cache = Arc::new(File::open(folder.path()).unwrap().into());
        let lease = InUse::lease(&cache, &here, "abcd", 1);
        let dead = Owner::this().to_string().rsplit_once('-').unwrap().0.to_owned() + "-1.1.beef";
        fs::write(here.join(&dead), "").unwrap();
        fs::write(here.join("0123-1-1-1.1.cafe"), "").unwrap();
        fs::write(here.join("foreign"), "").unwrap();
        let mut found: Vec<_> = leased(&here).into_iter().collect();
        found.sort();
        assert_eq!(found, ["abcd", "cafe"]);
        assert!(!here.join(dead).exists());
        drop(lease);
        assert_eq!(leased(&here).len(), 1);
    }
}
