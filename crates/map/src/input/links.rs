//! An input folder, and where links in it may lead.
//!
//! A link that leads out of the folder is not followed: a guest may have made it a moment ago. If the user asks to
//! follow links, all of them are looked up once, before the first guest runs. These links lead where they led then; a
//! guest may have made any other.

use super::flaw::Flaw;
use super::walk::Walk;
use crate::error::Error;
use crate::folder::Folder;
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct InputFolder {
    root: Folder,
    /// Links that existed before the first guest ran, and where they led.
    known: Option<BTreeMap<PathBuf, PathBuf>>,
}

impl InputFolder {
    pub(crate) fn new(root: Folder, follow_links: bool) -> Result<Self, Error> {
        let mut folder = Self { root, known: None };
        if follow_links {
            folder.known = Some(folder.survey()?);
        }
        Ok(folder)
    }

    fn survey(&self) -> Result<BTreeMap<PathBuf, PathBuf>, Error> {
        let (mut walk, mut links) = (Walk::new(self)?, BTreeMap::new());
        while let Some(link) = walk.next_link(self) {
            // A link that leads nowhere yet is not followed later.
            if let Ok(target) = self.root.leads_to(&link) {
                links.insert(link, target);
            }
        }
        Ok(links)
    }

    /// Returns the hash of the links that are followed, which must be the same later; `None` if none are.
    pub(crate) fn links(&self) -> Option<String> {
        let mut hasher = blake3::Hasher::new();
        for path in self.known.as_ref()?.iter().flat_map(|(link, target)| [link, target]) {
            hasher.update(path.as_os_str().as_bytes()).update(b"\0");
        }
        Some(hasher.finalize().to_hex().to_string())
    }

    pub(crate) fn list(&self, path: &Path) -> io::Result<Vec<(OsString, FileType)>> {
        self.root.list(path)
    }

    /// Opens a file for reading, or says why it is not a record's content.
    pub(crate) fn open(&self, path: &Path) -> Result<(File, Stat), Flaw> {
        match self.root.read(path) {
            Err(Errno::LOOP) => self.follow(path),
            result => result.map_err(why),
        }
    }

    /// Returns whether a link leads to a folder. It looks only at what lies in the input or was linked from it before
    /// the run: a guest learns nothing about other places.
    pub(crate) fn leads_to_folder(&self, path: &Path) -> bool {
        if let Some(target) = self.known(path) {
            return fs::symlink_metadata(target).is_ok_and(|metadata| metadata.is_dir());
        }
        match self.within(path) {
            Ok(Some(target)) if target.as_os_str().is_empty() => true,
            Ok(Some(target)) => self.root.kind(&target) == Ok(FileType::Directory),
            _ => false,
        }
    }

    fn follow(&self, path: &Path) -> Result<(File, Stat), Flaw> {
        if let Some(target) = self.known(path) {
            let top = Folder::top().map_err(Flaw::unreadable)?;
            return top.read(target.strip_prefix("/").unwrap_or(target)).map_err(why);
        }
        match self.within(path) {
            // From here on no link is followed: if the target is a link by now, it is refused.
            Ok(Some(target)) => self.root.read(&target).map_err(why),
            Ok(None) if self.known.is_some() => Err(Flaw::NewLinkOut),
            Ok(None) => Err(Flaw::LinkOut),
            Err(error) => Err(Flaw::LinkToNothing(error)),
        }
    }

    fn known(&self, path: &Path) -> Option<&PathBuf> {
        self.known.as_ref()?.get(path)
    }

    /// Returns where in the folder a link leads; `None` if it leads out of the folder.
    fn within(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let (root, target) = (self.root.real_path()?, self.root.leads_to(path)?);
        Ok(target.strip_prefix(&root).ok().map(Path::to_owned))
    }
}

fn why(error: Errno) -> Flaw {
    Flaw::Unreadable(match error {
        Errno::NXIO => "it is not a regular file".into(),
        Errno::LOOP => "it has become a link".into(),
        Errno::NOTDIR => "a folder in its path was replaced".into(),
        error => io::Error::from(error).to_string(),
    })
}
