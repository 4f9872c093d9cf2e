//! The directory a program works in: a fresh copy of a fixture, and what it holds afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Path from the directory to contents; `None` is a directory.
pub(crate) type Files = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// A fresh copy of a fixture, removed when dropped.
pub(crate) struct Directory(TempDir);

impl Directory {
    /// An empty `fixture` is an empty directory.
    pub(crate) fn copy_of(fixtures: &Path, fixture: &str) -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        if !fixture.is_empty() {
            copy(&fixtures.join(fixture), directory.path())?;
        }
        Ok(Self(directory))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn files(&self) -> io::Result<Files> {
        let mut files = Files::new();
        collect(self.path(), Path::new(""), &mut files)?;
        Ok(files)
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn collect(root: &Path, below: &Path, files: &mut Files) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let name = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            files.insert(name.clone(), None);
            collect(root, &name, files)?;
        } else {
            files.insert(name, Some(fs::read(entry.path())?));
        }
    }
    Ok(())
}
