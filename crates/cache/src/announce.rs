//! Who compiles what: so that two that miss the same key compile once.
//!
//! Whoever begins to compile leaves a file in `busy/`, named like the key and made by the one system call that fails if it is there; in it
//! is the name of the process. Another that misses meanwhile waits for as long as it sees that process work. It is an announcement and no
//! lock: nobody has to keep to it. If the process is gone, or out of sight, or takes longer than anybody should wait,
//! the other compiles too, and both are right.

use crate::key::Key;
use crate::owner::{Owner, Seen};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An announcement without a name is being written, or was left by a process that died: it is waited for this long.
const NAMELESS: Duration = Duration::from_secs(1);

/// Whose turn it is to compile.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Ours, and announced.
    Mine(#[expect(dead_code, reason = "held for its Drop")] Announcement),
    /// Another's, whom we see at work.
    Theirs,
    /// Ours, though nobody is told.
    Unannounced,
}

/// Ours: taken back when dropped.
#[derive(Debug)]
pub(crate) struct Announcement(PathBuf);

impl Drop for Announcement {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Announces that this process compiles the key, unless another does.
pub(crate) fn announce(folder: &Path, key: &Key) -> Turn {
    let path = folder.join(key.hex());
    // Twice: once more after a dead one's was removed.
    for _ in 0..2 {
        match File::create_new(&path) {
            Ok(mut file) => {
                let announcement = Announcement(path);
                return match file.write_all(Owner::this().to_string().as_bytes()) {
                    Ok(()) => Turn::Mine(announcement),
                    Err(_) => Turn::Unannounced,
                };
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match seen(&path) {
                Some(Seen::Alive) => return Turn::Theirs,
                Some(Seen::OutOfSight) => return Turn::Unannounced,
                Some(Seen::Dead) => drop(fs::remove_file(&path)),
                None => {}
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::create_dir_all(folder).is_err() {
                    return Turn::Unannounced;
                }
            }
            Err(_) => return Turn::Unannounced,
        }
    }
    Turn::Unannounced
}

/// What can be said of whoever left an announcement; `None` if it has gone meanwhile.
fn seen(path: &Path) -> Option<Seen> {
    let name = fs::read_to_string(path).ok()?;
    if let Ok(owner) = name.parse::<Owner>() {
        return Some(owner.seen());
    }
    let age = fs::metadata(path).ok()?.modified().ok()?.elapsed().unwrap_or_default();
    Some(if age < NAMELESS { Seen::Alive } else { Seen::Dead })
}

/// Removes announcements of processes that are gone, and those out of sight that are older than `most`.
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
        fs::write(&path, dead).unwrap();
        assert!(matches!(announce(&busy, &key), Turn::Mine(_)), "its process is gone");
        fs::write(&path, "0123-1-1-1").unwrap();
        assert!(matches!(announce(&busy, &key), Turn::Unannounced), "both compile where they cannot see each other");
        fs::write(&path, "").unwrap();
        assert!(matches!(announce(&busy, &key), Turn::Theirs), "it is just being written");
    }

    #[test]
    fn where_nothing_can_be_written_everybody_compiles() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(announce(&file.join("busy"), &Key::new("cpu", &1).unwrap()), Turn::Unannounced));
    }
}
