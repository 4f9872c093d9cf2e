//! The objects of a folder as records, some of them read ahead.
//!
//! The folder is listed once, when the map begins; what comes later is no record of this map. An object that is not what
//! the list says any more ends the map: `--resume` begins with a new list. A weight is as that of a [file](super::files).

use super::flaw::Flaw;
use super::split::MAX_RECORD_BYTES;
use crate::error::Error;
use crate::output::journal::SUFFIX;
use bytes::Bytes;
use gpu_run_objects::{Entry, Error as ObjectError, Fetch, ObjectFolder};
use std::collections::VecDeque;
use std::path::PathBuf;

/// Objects that are asked for before they are wanted, and their weight.
const MAX_AHEAD: usize = 32;
const MAX_WEIGHT_AHEAD: u64 = 64 << 20;

#[derive(Debug)]
pub(crate) struct ObjectFiles {
    folder: ObjectFolder,
    /// Those that are left, the last one first.
    entries: Vec<Entry>,
    /// The requests for the next ones; none for an object that is too long.
    ahead: VecDeque<Option<Fetch>>,
    weight_ahead: u64,
    /// Hash of the names, sizes and versions of the objects so far.
    seen: blake3::Hasher,
    /// The weight of the objects so far.
    position: u64,
    /// Objects that begin here, or after it, belong to other shards.
    end: u64,
}

/// An object that was read, or why it cannot be.
pub(super) type Content = Result<Bytes, Flaw>;

impl ObjectFiles {
    pub(super) fn list(folder: ObjectFolder) -> Result<Self, Error> {
        let mut entries = folder.list().map_err(|error| Error::read(folder.name(), error))?;
        // What an earlier map into that folder left for itself.
        entries.retain(|entry| !entry.name.split('/').any(|name| name.starts_with(SUFFIX)));
        entries.reverse();
        let (ahead, seen) = (VecDeque::new(), blake3::Hasher::new());
        Ok(Self { folder, entries, ahead, weight_ahead: 0, seen, position: 0, end: u64::MAX })
    }

    pub(super) fn folder(&self) -> &ObjectFolder {
        &self.folder
    }

    /// Returns the next object.
    pub(super) fn next(&mut self) -> Result<Option<(PathBuf, Content)>, Error> {
        self.look_ahead()?;
        let (Some(fetch), Some(entry)) = (self.ahead.pop_front(), self.entries.last()) else { return Ok(None) };
        self.weight_ahead -= weight(entry);
        let content = match fetch.map(Fetch::wait) {
            None => Err(Flaw::TooLong(MAX_RECORD_BYTES)),
            Some(Ok(bytes)) => Ok(bytes),
            Some(Err(error @ ObjectError::Denied(_))) => Err(Flaw::Unreadable(error.to_string())),
            Some(Err(ObjectError::Missing(name))) => return Err(Error::read(name.clone(), ObjectError::Changed(name))),
            Some(Err(error)) => return Err(Error::read(format!("{}{}", self.folder.name(), entry.name), error)),
        };
        // An object that ended the map is not among those so far.
        Ok(self.skip().map(|entry| (entry.name.into(), content)))
    }

    fn look_ahead(&mut self) -> Result<(), Error> {
        while self.ahead.len() < MAX_AHEAD && self.weight_ahead < MAX_WEIGHT_AHEAD {
            let at = self.entries.len().checked_sub(1 + self.ahead.len());
            let Some(entry) = at.and_then(|at| self.entries.get(at)) else { break };
            if self.position + self.weight_ahead >= self.end {
                break;
            }
            let fits = usize::try_from(entry.bytes).is_ok_and(|bytes| bytes <= MAX_RECORD_BYTES);
            let fetch = fits.then(|| self.folder.fetch(entry)).transpose();
            self.weight_ahead += weight(entry);
            self.ahead.push_back(fetch.map_err(|error| Error::read(self.folder.name(), error))?);
        }
        Ok(())
    }

    /// Skips the next object, and returns it.
    fn skip(&mut self) -> Option<Entry> {
        if self.position >= self.end {
            return None;
        }
        let entry = self.entries.pop()?;
        self.seen.update(entry.name.as_bytes());
        self.seen.update(format!("\0{} {}\0", entry.bytes, entry.version).as_bytes());
        self.position += weight(&entry);
        Some(entry)
    }

    /// Skips so many objects. Returns whether there are so many.
    pub(super) fn skip_count(&mut self, count: u64) -> bool {
        (0..count).all(|_| self.skip().is_some())
    }

    /// Skips the objects that begin before `offset`. Returns how many they are.
    pub(super) fn skip_before(&mut self, offset: u64) -> u64 {
        let mut count = 0;
        while self.position < offset && self.skip().is_some() {
            count += 1;
        }
        count
    }

    /// Ends before the object that begins at `offset` or after it.
    pub(super) fn end_at(&mut self, offset: u64) {
        self.end = offset;
    }

    /// Returns the weight of all objects, those of the past included.
    pub(super) fn total(&self) -> u64 {
        self.position + self.entries.iter().map(weight).sum::<u64>()
    }

    /// Returns the hash of the names, sizes and versions of the objects so far.
    pub(super) fn seen(&self) -> String {
        self.seen.finalize().to_hex().to_string()
    }
}

fn weight(entry: &Entry) -> u64 {
    1 + entry.bytes
}
