//! What is kept of stds in a cache.

use crate::make::{WORK, lock_if_free, remove};
use crate::{Result, Sysroot, Target, at, libraries};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A std that was made with another overlay, for the same Rust, is removed if it was not used for this long: another gpu-run may be
/// installed beside this one.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// The stds of a cache: how many, one for each target, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub stds: u64,
    pub bytes: u64,
}

/// Counts the stds of a cache.
pub fn kept(cache: &Path) -> Kept {
    let mut kept = Kept::default();
    for sysroot in folders(&Sysroot::folder_in(cache)) {
        if !is_work(&sysroot) {
            kept.stds += Target::ALL.iter().filter(|target| libraries(&sysroot, **target).is_dir()).count() as u64;
        }
        kept.bytes += bytes(&sysroot);
    }
    kept
}

/// Removes what makers of stds that died left behind, unless one is at work. Returns how many folders those were.
pub fn sweep(cache: &Path) -> Result<u64> {
    let folder = Sysroot::folder_in(cache);
    if !folder.is_dir() {
        return Ok(0);
    }
    match lock_if_free(&folder)? {
        Some(_lock) => sweep_locked(&folder),
        None => Ok(0),
    }
}

/// Does so for one who has the lock.
pub(crate) fn sweep_locked(folder: &Path) -> Result<u64> {
    let left: Vec<_> = folders(folder).filter(|folder| is_work(folder)).collect();
    left.iter().try_for_each(|folder| remove(folder))?;
    Ok(left.len() as u64)
}

impl Sysroot {
    /// Removes the sysroots that were made for the same Rust with another overlay, and not used lately.
    pub(crate) fn remove_older(&self) {
        let ours = self.name.trim_end_matches("-unwinds");
        let is_older = |sysroot: &PathBuf| {
            let name = sysroot.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&self.rust) && !name.starts_with(ours) && is_unused(sysroot)
        };
        for sysroot in folders(&self.folder).filter(is_older) {
            tracing::info!(sysroot = %sysroot.display(), "removing a std");
            let _ = remove(&sysroot);
        }
    }
}

fn is_unused(sysroot: &Path) -> bool {
    let used = fs::metadata(sysroot).and_then(|folder| folder.modified());
    used.is_ok_and(|used| SystemTime::now().duration_since(used).is_ok_and(|age| age > KEPT_FOR))
}

fn is_work(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(WORK))
}

fn folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).map_err(at(folder)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir())
}

fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(entry_is) if entry_is.is_dir() => bytes(&entry.path()),
        Ok(entry_is) => entry_is.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Panic, Rust};
    use std::fs::File;

    fn rust() -> Rust {
        let nowhere = PathBuf::new;
        Rust {
            version: "1.95.0".into(),
            commit: "012345678".into(),
            whole_commit: "0123456789".into(),
            rustc: nowhere(),
            cargo: nowhere(),
            own: nowhere(),
            sources: nowhere(),
        }
    }

    #[test]
    fn stds_of_another_overlay_go_when_they_are_not_used() {
        let cache = tempfile::tempdir().unwrap();
        let folder = Sysroot::folder_in(cache.path());
        let sysroot = Sysroot::of(cache.path(), &rust(), Panic::Aborts);
        let unwinding = Sysroot::of(cache.path(), &rust(), Panic::Unwinds);
        let [old, young, other] =
            ["1.95.0-012345678-00-unwinds", "1.95.0-012345678-11", "1.96.0-012345678-00"].map(|name| folder.join(name));
        for sysroot in [sysroot.path(), unwinding.path(), &old, &young, &other] {
            let libraries = libraries(sysroot, Target::Wasip1);
            fs::create_dir_all(&libraries).unwrap();
            fs::write(libraries.join("libstd-0.rlib"), "std").unwrap();
            let long_ago = SystemTime::now() - KEPT_FOR - Duration::from_secs(60);
            File::open(sysroot).unwrap().set_modified(long_ago).unwrap();
        }
        Sysroot { path: young.clone(), ..sysroot.clone() }.note_use();
        fs::create_dir(folder.join("building-a")).unwrap();
        assert_eq!(kept(cache.path()), Kept { stds: 5, bytes: 15 });
        sysroot.remove_older();
        let is_there = [sysroot.path(), unwinding.path(), &old, &young, &other].map(Path::is_dir);
        assert_eq!(is_there, [true, true, false, true, true]);
        assert_eq!(sweep(cache.path()).unwrap(), 1);
        assert_eq!(sweep(cache.path()).unwrap(), 0);
        assert_eq!(kept(cache.path()).stds, 4);
    }

    #[test]
    fn what_is_being_made_is_not_swept() {
        let cache = tempfile::tempdir().unwrap();
        let work = Sysroot::folder_in(cache.path()).join("building-a");
        assert_eq!(sweep(cache.path()).unwrap(), 0);
        fs::create_dir_all(&work).unwrap();
        let lock = lock_if_free(&Sysroot::folder_in(cache.path())).unwrap();
        assert!(lock.is_some());
        assert_eq!(sweep(cache.path()).unwrap(), 0);
        assert!(work.is_dir());
    }
}
