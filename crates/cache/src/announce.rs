//! Announcements of which process compiles which key, so that two processes that miss the same key compile it once.
//!
//! A process that begins to compile creates a symbolic link in `busy/`. The link's name is the key, its target the name
//! of the process; one system call creates both, and fails if the link exists. Another process that misses the same key
//! waits as long as it sees the first one work. An announcement is not a lock, and nobody is bound by it. If the first
//! process is gone or out of sight, or takes longer than the waiting process allows, or the file system has no links,
//! the second process compiles too, and both results are right.

use crate::fault::{Oddity, odd};
use crate::key::Key;
use crate::owner::{Owner, Seen};
use crate::trust::make_folder;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Whose turn it is to compile.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Ours, and announced.
    Mine(#[expect(dead_code, reason = "held for its Drop")] Announcement),
    /// Another process's, which we see running.
    Theirs,
    /// Ours, without an announcement.
    Unannounced,
}

/// An announcement of this process; removed when dropped.
#[derive(Debug)]
pub(crate) struct Announcement(PathBuf);

impl Drop for Announcement {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Announces that this process compiles the key, unless another process does.
pub(crate) fn announce(folder: &Path, key: &Key) -> Turn {
    let path = folder.join(key.hex());
    // A second attempt, after the first removed a dead process's announcement or created the folder.
    for _ in 0..2 {
        match odd(Oddity::Link).and_then(|()| symlink(Owner::this().to_string(), &path)) {
            Ok(()) => return Turn::Mine(Announcement(path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match seen(&path) {
                Some(Seen::Alive) => return Turn::Theirs,
                Some(Seen::OutOfSight) => return Turn::Unannounced,
                Some(Seen::Dead) => drop(fs::remove_file(&path)),
                None => {}
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if make_folder(folder).is_err() {
                    return Turn::Unannounced;
                }
            }
            Err(_) => return Turn::Unannounced,
        }
    }
    Turn::Unannounced
}

/// Whether the process that left an announcement is running; `None` if the announcement is gone.
fn seen(path: &Path) -> Option<Seen> {
    match fs::read_link(path) {
        Ok(name) => Some(name.to_str().and_then(|name| name.parse::<Owner>().ok()).map_or(Seen::Dead, |o| o.seen())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        // Not a link, so not an announcement: a foreign file.
        Err(_) => Some(Seen::Dead),
    }
}

/// Removes the announcements of dead processes, and those of processes out of sight that are older than `most`. Returns
/// how many were removed.
pub(crate) fn sweep(folder: &Path, most: Duration) -> u64 {
    let mut removed = 0;
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = file.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok()).unwrap_or_default();
        let stale = match seen(&file.path()) {
            Some(Seen::Dead) => true,
            Some(Seen::OutOfSight) => age > most,
            _ => false,
        };
        removed += u64::from(stale && fs::remove_file(file.path()).is_ok());
    }
    removed
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn one_compiles_and_the_dead_are_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (busy, key) = (folder.path().join("busy"), Key::new("cpu", &1).unwrap());
        let mine = announce(&busy, &key);
        assert!(matches!(mine, Turn::Mine(_)));
        assert!(matches!(announce(&busy, &key), Turn::Theirs), "we see ourselves at work");
        assert!(matches!(announce(&busy, &Key::new("cpu", &2).unwrap()), Turn::Mine(_)));
        drop(mine);
        let path = busy.join(key.hex());
        assert!(!path.exists());
        let dead = Owner::this().to_string().rsplit_once('-').unwrap().0.to_owned() + "-1";
        symlink(dead, &path).unwrap();
        assert!(matches!(announce(&busy, &key), Turn::Mine(_)), "its process is gone");
        symlink("0123-1-1-1", &path).unwrap();
        assert!(matches!(announce(&busy, &key), Turn::Unannounced), "both compile where they cannot see each other");
        assert_eq!(sweep(&busy, Duration::MAX), 0);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "foreign").unwrap();
        assert_eq!(sweep(&busy, Duration::MAX), 1);
    }

    #[test]
    fn where_nothing_can_be_written_everybody_compiles() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(announce(&file.join("busy"), &Key::new("cpu", &1).unwrap()), Turn::Unannounced));
    }
}
