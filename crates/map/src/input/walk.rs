//! The files of a folder and of all folders below it, in a stable order: by name, folder by folder.
//!
//! Memory holds the names in the folders on the way down, not those of the whole tree. Links to folders are not
//! followed, so that no ring of links is walked for ever. Files that an earlier map into that folder left for itself
//! are skipped. Everything else is a record; but one that is no regular file, or cannot be read, is only reported as
//! failed.

use super::flaw::Flaw;
use super::links::InputFolder;
use crate::error::Error;
use crate::output::journal::SUFFIX;
use rustix::fs::FileType;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct Walk {
    /// What is still to be visited in each folder on the way down: names in reverse order.
    pending: Vec<(PathBuf, Vec<(OsString, FileType)>)>,
}

/// Something in the folder.
#[derive(Debug)]
pub(crate) struct Found {
    /// Relative to the root.
    pub(crate) path: PathBuf,
    /// If it is a folder: why it cannot be read.
    pub(crate) flaw: Option<Flaw>,
}

impl Walk {
    pub(crate) fn new(root: &InputFolder) -> Result<Self, Error> {
        let mut walk = Self { pending: Vec::new() };
        walk.descend(root, PathBuf::new()).map_err(|error| Error::read("the input folder", error))?;
        Ok(walk)
    }

    /// Returns the next file, or folder that cannot be read.
    pub(crate) fn next(&mut self, root: &InputFolder) -> Option<Found> {
        loop {
            let (found, kind) = self.step(root)?;
            if kind != FileType::Symlink || !root.leads_to_folder(&found.path) {
                return Some(found);
            }
        }
    }

    /// Returns the next link.
    pub(crate) fn next_link(&mut self, root: &InputFolder) -> Option<PathBuf> {
        loop {
            let (found, kind) = self.step(root)?;
            if kind == FileType::Symlink {
                return Some(found.path);
            }
        }
    }

    fn step(&mut self, root: &InputFolder) -> Option<(Found, FileType)> {
        while let Some((folder, names)) = self.pending.last_mut() {
            let Some((name, kind)) = names.pop() else {
                self.pending.pop();
                continue;
            };
            let path = folder.join(name);
            let flaw = match kind {
                FileType::Directory => match self.descend(root, path.clone()) {
                    Ok(()) => continue,
                    Err(error) => Some(Flaw::unreadable(error)),
                },
                _ => None,
            };
            return Some((Found { path, flaw }, kind));
        }
        None
    }

    fn descend(&mut self, root: &InputFolder, folder: PathBuf) -> io::Result<()> {
        let mut names = root.list(&folder)?;
        names.retain(|(name, _)| !name.as_bytes().starts_with(SUFFIX.as_bytes()));
        names.sort_by(|(a, _), (b, _)| b.cmp(a));
        self.pending.push((folder, names));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Folder;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn all(root: &Path) -> Vec<String> {
        let root = InputFolder::new(Folder::open(root), false).unwrap();
        let mut walk = Walk::new(&root).unwrap();
        std::iter::from_fn(|| walk.next(&root)).map(|found| found.path.display().to_string()).collect()
    }

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
        assert_eq!(all(root), [".hidden", "a/y", "a/z", "b", "c/d/e", "link", "lost"]);
    }

    #[test]
    fn a_folder_that_became_a_link_since_it_was_listed_is_told_and_not_walked() {
        let (place, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(elsewhere.path().join("secret"), "").unwrap();
        for folder in ["a", "b"] {
            fs::create_dir(place.path().join(folder)).unwrap();
            fs::write(place.path().join(folder).join("file"), "").unwrap();
        }
        let root = InputFolder::new(Folder::open(place.path()), false).unwrap();
        let mut walk = Walk::new(&root).unwrap();
        assert_eq!(walk.next(&root).unwrap().path, Path::new("a/file"));
        fs::remove_dir_all(place.path().join("b")).unwrap();
        symlink(elsewhere.path(), place.path().join("b")).unwrap();
        let found = walk.next(&root).unwrap();
        assert_eq!(found.path, Path::new("b"));
        assert!(found.flaw.is_some_and(|flaw| flaw.to_string().contains("cannot be read")));
        assert!(walk.next(&root).is_none());
    }
}
