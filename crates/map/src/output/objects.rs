//! Outputs that are objects: one that is sent in parts, or a folder with one for each record.
//!
//! Their journals are objects, too. Nothing keeps two processes from writing the same object: stores have no locks.

use super::journal::{Journal, Progress, SUFFIX, Tail};
use super::shards;
use crate::error::Error;
use gpu_run_objects::{Error as ObjectError, Object, ObjectFolder, Puts, Upload};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An object that a map writes.
pub(super) struct ObjectOutput {
    object: Object,
    /// From the beginning of the map on, until the object is finished.
    upload: Option<Box<Upload>>,
    /// The bytes of a finished object.
    bytes: u64,
}

/// A folder of objects that a map writes, or a shard of one.
pub(super) struct ObjectFolderOutput {
    puts: Puts,
    is_shard: bool,
    /// The record that was put last.
    pub(super) last: Option<PathBuf>,
}

impl ObjectOutput {
    pub(super) fn new(object: Object) -> Result<Self, Error> {
        if !object.is_writable() {
            return Err(unwritable(&object)(ObjectError::ReadOnly(object.name().to_owned())));
        }
        Ok(Self { object, upload: None, bytes: 0 })
    }

    pub(super) fn name(&self) -> &str {
        self.object.name()
    }

    /// Returns what an earlier run left, which `journal` speaks of.
    pub(super) fn earlier(&self, journal: Option<Progress>) -> Result<Option<Progress>, Error> {
        let output = || PathBuf::from(self.name());
        let now = || self.object.entry().map_err(|error| Error::read(self.name(), error));
        match journal {
            None if now()?.is_none() => Ok(None),
            Some(progress) if progress.finished => {
                let is_same = now()?.is_some_and(|now| {
                    now.bytes == progress.output && Tail::of_object(None, Some(now.version)) == progress.tail
                });
                if is_same { Ok(Some(progress)) } else { Err(Error::OutputEndChanged(output())) }
            }
            // Of an object, nothing can be seen before it is finished.
            Some(progress) if progress.upload.is_some() => Ok(Some(progress)),
            _ => Err(Error::OutputNotUnfinished(output())),
        }
    }

    /// Continues the upload that the map goes on from, or begins one. If it `overwrites` an earlier one, that is given up.
    pub(super) fn begin(&mut self, journal: &Journal, from: &mut Progress, overwrites: bool) -> Result<(), Error> {
        let object = &self.object;
        let upload = match from.upload.clone() {
            Some(parts) => object.continue_upload(parts).map_err(unwritable(object))?,
            None => {
                if overwrites && let Some(earlier) = journal.upload() {
                    // One that cannot be given up does no harm.
                    let _ = object.continue_upload(earlier).and_then(Upload::abort);
                }
                let mut upload = object.upload().map_err(unwritable(object))?;
                from.upload = Some(upload.flush().map_err(unwritable(object))?.clone());
                upload
            }
        };
        self.upload = Some(Box::new(upload));
        Ok(())
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let upload = self.upload.as_mut().ok_or(Error::Internal("output before the map has begun"))?;
        upload.write(bytes).map_err(unwritable(&self.object))
    }

    /// Whether all that was written can be sent: parts have a least size.
    pub(super) fn can_flush(&self) -> bool {
        self.upload.as_ref().is_none_or(|upload| upload.can_flush())
    }

    /// Makes what was written safe, and says so in `progress`.
    pub(super) fn flush(&mut self, progress: &mut Progress) -> Result<(), Error> {
        (progress.output, progress.upload) = match &mut self.upload {
            None => (self.bytes, None),
            Some(upload) => {
                let parts = upload.flush().map_err(unwritable(&self.object))?;
                (parts.bytes(), Some(parts.clone()))
            }
        };
        Ok(())
    }

    /// Puts the object together.
    pub(super) fn finish(&mut self, journal: &Journal, done: &Progress) -> Result<(), Error> {
        let Some(mut upload) = self.upload.take() else { return Ok(()) };
        let parts = upload.close().map_err(unwritable(&self.object))?;
        self.bytes = parts.bytes();
        // The journal comes first: whoever continues must know that nothing but this is left to do.
        journal.write(&Progress { output: self.bytes, upload: Some(parts.clone()), ..done.clone() })?;
        upload.finish().map_err(unwritable(&self.object))
    }

    /// Returns what the finished object is recognized by.
    pub(super) fn tail(&self) -> io::Result<Tail> {
        match &self.upload {
            Some(_) => Ok(Tail::default()),
            None => Ok(Tail::of_object(None, self.object.entry()?.map(|now| now.version))),
        }
    }
}

impl ObjectFolderOutput {
    pub(super) fn new(folder: &ObjectFolder, is_shard: bool) -> Self {
        Self { puts: folder.puts(), is_shard, last: None }
    }

    pub(super) fn name(&self) -> &str {
        self.puts.folder().name()
    }

    /// Puts a record's object, or removes it if there is no content.
    pub(super) fn put(&mut self, path: &Path, content: Option<&[u8]>) -> Result<(), Error> {
        let failed = |error: io::Error| Error::write(format!("{}{}", self.name(), path.display()), error);
        let name =
            path.to_str().ok_or_else(|| failed(io::Error::other("the name of an object must be valid UTF-8")))?;
        // The error may be about an earlier one, which it names.
        let folder = self.name().to_owned();
        self.puts.put(name, content).map_err(|error| Error::write(folder, error))?;
        self.last = Some(path.to_owned());
        Ok(())
    }

    /// Waits until all objects are in the store.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.puts.flush().map_err(|error| Error::write(self.name(), error))
    }

    /// Returns what the object of a record is recognized by.
    pub(super) fn tail(&self, last: Option<&Path>) -> io::Result<Tail> {
        let Some(last) = last else { return Ok(Tail::default()) };
        let name = last.to_str().ok_or(io::ErrorKind::InvalidData)?;
        let now = self.puts.folder().object(name)?.entry()?;
        Ok(Tail::of_object(Some(last.as_os_str().as_bytes()), now.map(|now| now.version)))
    }

    /// Whether another kind of map has not finished the folder: one of the whole, or of shards.
    pub(super) fn has_rival(&self) -> Result<bool, Error> {
        let folder = self.puts.folder();
        let found = match self.is_shard {
            true => folder.object(SUFFIX).and_then(|journal| journal.state()).map(|found| found.is_some()),
            false => shards::of_objects(folder).and_then(|shards| shards.list_if_any()).map(|found| found.is_some()),
        };
        found.map_err(|error| Error::read(folder.name(), error))
    }

    pub(super) fn remove_rival(&self) -> Result<(), ObjectError> {
        let folder = self.puts.folder();
        match self.is_shard {
            true => folder.object(SUFFIX)?.remove(),
            false => shards::remove_objects(&shards::of_objects(folder)?),
        }
    }
}

fn unwritable(object: &Object) -> impl Fn(ObjectError) -> Error + use<> {
    let name = object.name().to_owned();
    move |error| Error::write(name.clone(), error)
}
