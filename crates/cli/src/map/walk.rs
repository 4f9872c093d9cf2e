//! The files of a folder, and of the folders in it, in an order that stays: by name, folder by folder.
//!
//! Memory holds the names of the folders on the way, not of the whole tree. Links to files are files; links to folders are
//! not followed, so that no ring of links is walked for ever. What is neither (sockets, devices) is passed over, and so is
//! what an earlier map into that folder has left of its own.

use super::journal::SUFFIX;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs::{self, FileType};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Walk {
    root: PathBuf,
    /// What is still to be visited, of each folder on the way down: names in reverse order.
    pending: Vec<(PathBuf, Vec<(OsString, FileType)>)>,
}

impl Walk {
    pub(crate) fn new(root: &Path) -> Result<Self> {
        let mut walk = Self { root: root.to_owned(), pending: Vec::new() };
        walk.descend(PathBuf::new())?;
        Ok(walk)
    }

    /// The next file's path, from the root on.
    pub(crate) fn next(&mut self) -> Result<Option<PathBuf>> {
        while let Some((folder, names)) = self.pending.last_mut() {
            let Some((name, kind)) = names.pop() else {
                self.pending.pop();
                continue;
            };
            let path = folder.join(name);
            if kind.is_dir() {
                self.descend(path)?;
            } else if kind.is_file() || kind.is_symlink() && !self.root.join(&path).is_dir() {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    fn descend(&mut self, folder: PathBuf) -> Result<()> {
        let path = self.root.join(&folder);
        let unreadable = || format!("cannot read the folder {}", path.display());
        let mut names = Vec::new();
        for entry in fs::read_dir(&path).with_context(unreadable)? {
            let entry = entry.with_context(unreadable)?;
            if !entry.file_name().as_bytes().starts_with(SUFFIX.as_bytes()) {
                names.push((entry.file_name(), entry.file_type().with_context(unreadable)?));
            }
        }
        names.sort_by(|(a, _), (b, _)| b.cmp(a));
        self.pending.push((folder, names));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_come_by_name_and_rings_of_links_end() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for file in ["b", "a/z", "a/y", "c/d/e", ".hidden", ".gpu-run-map"] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "").unwrap();
        }
        fs::create_dir(root.join("empty")).unwrap();
        symlink("..", root.join("c/up")).unwrap();
        symlink("b", root.join("link")).unwrap();
        symlink("nowhere", root.join("lost")).unwrap();
        let mut walk = Walk::new(root).unwrap();
        let found: Vec<_> = std::iter::from_fn(|| walk.next().unwrap()).map(|p| p.display().to_string()).collect();
        assert_eq!(found, [".hidden", "a/y", "a/z", "b", "c/d/e", "link", "lost"]);
    }
}
