//! The files of an input folder as records.
//!
//! A file's *weight* is what it counts when a folder is cut into shards: a byte more than its size, so that empty files
//! have an owner, too, and are shared out like others.

use super::flaw::Flaw;
use super::links::InputFolder;
use super::split::MAX_RECORD_BYTES;
use super::walk::{Found, Walk};
use crate::error::Error;
use rustix::fs::Stat;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A file that was opened, or why it cannot be read.
pub(super) type Opened = Result<(File, Stat), Flaw>;

#[derive(Debug)]
pub(super) struct Files {
    root: InputFolder,
    walk: Walk,
    /// Hash of the paths, sizes and times of the files so far.
    seen: blake3::Hasher,
    /// The weight of the files so far.
    position: u64,
    /// Files that begin here, or after it, belong to other shards.
    end: u64,
}

impl Files {
    pub(super) fn new(root: InputFolder) -> Result<Self, Error> {
        let walk = Walk::new(&root)?;
        Ok(Self { root, walk, seen: blake3::Hasher::new(), position: 0, end: u64::MAX })
    }

    /// Opens the next file.
    pub(super) fn next(&mut self) -> Option<(PathBuf, Opened)> {
        if self.position >= self.end {
            return None;
        }
        let found = self.walk.next(&self.root)?;
        let (path, opened, weight) = open(&self.root, found, &mut self.seen);
        self.position += weight;
        Some((path, opened))
    }

    /// Skips the files that begin before `offset`. Returns how many they are.
    pub(super) fn skip_before(&mut self, offset: u64) -> u64 {
        let mut count = 0;
        while self.position < offset && self.next().is_some() {
            count += 1;
        }
        count
    }

    /// Ends before the file that begins at `offset` or after it.
    pub(super) fn end_at(&mut self, offset: u64) {
        self.end = offset;
    }

    /// Returns the weight of all files, those of the past included. They are looked at, but not read.
    pub(super) fn total(&self) -> Result<u64, Error> {
        let (mut walk, mut total) = (Walk::new(&self.root)?, 0);
        while let Some(found) = walk.next(&self.root) {
            let (_, _, weight) = open(&self.root, found, &mut blake3::Hasher::new());
            total += weight;
        }
        Ok(total)
    }

    /// Returns the hash of the paths, sizes and times of the files so far.
    pub(super) fn seen(&self) -> String {
        self.seen.finalize().to_hex().to_string()
    }
}

/// Opens a file that was found, or says why it cannot be read; returns also its weight. Its path, size and time are added
/// to the hash `seen`; its content is not read.
fn open(root: &InputFolder, found: Found, seen: &mut blake3::Hasher) -> (PathBuf, Opened, u64) {
    let opened = match found.flaw {
        Some(flaw) => Err(flaw),
        None => root.open(&found.path),
    };
    let state = opened.as_ref().map(|(_, stat)| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec)).unwrap_or_default();
    seen.update(found.path.as_os_str().as_bytes());
    seen.update(format!("\0{state:?}\0").as_bytes());
    (found.path, opened, 1 + state.0.unsigned_abs())
}

/// Reads a file that was opened.
pub(super) fn content(file: File, stat: &Stat) -> Result<Vec<u8>, Flaw> {
    let too_long = || Flaw::TooLong(MAX_RECORD_BYTES);
    let length = usize::try_from(stat.st_size).ok().filter(|length| *length <= MAX_RECORD_BYTES);
    let mut bytes = Vec::with_capacity(length.ok_or_else(too_long)? + 1);
    // The file may have grown since then.
    file.take(MAX_RECORD_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(Flaw::unreadable)?;
    if bytes.len() > MAX_RECORD_BYTES { Err(too_long()) } else { Ok(bytes) }
}
