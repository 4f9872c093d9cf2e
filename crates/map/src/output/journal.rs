//! What is needed to finish an unfinished output: a small file beside it, or in it if it is a folder.
//!
//! The journal says what was being done (program, input, options) and how many records and bytes of output are safely
//! on disk. It exists before the first byte of output and until after the last. Each version replaces the previous one
//! in one step, after the output that it describes was flushed. So whenever the process or the machine dies, the
//! journal is whole, and the output is at least as long as the journal says; anything beyond belongs to an unfinished
//! batch, which is done again.
//!
//! The journal of a finished output is removed. That of a finished shard stays, and says that the shard is finished:
//! [`Merge`](crate::Merge) learns from it what the shard is.
//!
//! A journal is a line of JSON, and a line with that line's hash. A damaged journal is refused, and so is an output
//! whose end is not what the journal says ([`Tail`]).

use crate::error::{Error, JournalFlaw, TaskChange};
use crate::folder::Folder;
use crate::input::reader::Mark;
use crate::shard::Shard;
use gpu_run_objects::{Object, Parts};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Suffix of a journal's name, after the output's name. In a folder, every name that begins with it is ours.
pub(crate) const SUFFIX: &str = ".gpu-run-map";
const VERSION: u32 = 3;
/// Bytes of a journal, at most: it repeats the command line.
const MAX_JOURNAL_BYTES: u64 = 16 << 20;
/// Bytes at the end of the output whose hash is in the journal.
const TAIL_BYTES: u64 = 64 << 10;

/// What is being done. Two runs with the same task give the same output, whatever the device and the size of batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// blake3 of the module.
    pub(crate) program: String,
    pub(crate) input: Identity,
    pub(crate) split: String,
    pub(crate) args: Vec<String>,
    /// The function that is called.
    #[serde(default)]
    pub(crate) function: Option<String>,
    pub(crate) dirs: Vec<String>,
    /// blake3 of the variables: their values may be secret.
    pub(crate) env: String,
    pub(crate) max_memory: Option<u64>,
    /// Hash of the links of an input folder that are followed: see [`crate::input::FoundInput::links`].
    pub(crate) links: Option<String>,
    #[serde(default)]
    pub(crate) shard: Option<Shard>,
}

impl Task {
    /// Returns the first difference between two tasks.
    pub(crate) fn difference(&self, now: &Self) -> Option<TaskChange> {
        let same = [
            (TaskChange::Program, self.program == now.program),
            (TaskChange::Input, self.input == now.input),
            (TaskChange::Split, self.split == now.split),
            (TaskChange::Function, self.function == now.function),
            (TaskChange::Args, self.args == now.args),
            (TaskChange::Folders, self.dirs == now.dirs),
            (TaskChange::Env, self.env == now.env),
            (TaskChange::MaxMemory, self.max_memory == now.max_memory),
            (TaskChange::Links, self.links == now.links),
            (TaskChange::Shard, self.shard == now.shard),
        ];
        same.into_iter().find(|(_, same)| !same).map(|(change, _)| change)
    }
}

/// How the input is recognized. An input that is no file is recognized by [`Mark::seen`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Identity {
    File { path: String, bytes: u64, modified: (i64, i64) },
    Folder { path: String },
    Object { url: String, bytes: u64, version: String },
    Objects { url: String },
    Stream,
}

impl Identity {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        // Formatted, because a path need not be valid text.
        let (metadata, path) = (fs::metadata(path)?, format!("{:?}", fs::canonicalize(path)?));
        Ok(if metadata.is_dir() {
            Self::Folder { path }
        } else if metadata.is_file() {
            Self::File { path, bytes: metadata.len(), modified: (metadata.mtime(), metadata.mtime_nsec()) }
        } else {
            Self::Stream
        })
    }
}

/// How far the map is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Where the map began: in a shard, this is not the beginning of the input.
    #[serde(default)]
    pub(crate) start: Mark,
    pub(crate) mark: Mark,
    /// Bytes of output; 0 if the output is a folder.
    pub(crate) output: u64,
    /// Records that failed.
    pub(crate) failed: u64,
    pub(crate) tail: Tail,
    /// Whether this is a whole shard.
    #[serde(default)]
    pub(crate) finished: bool,
    /// What is there of an output that is an object.
    #[serde(default)]
    pub(crate) upload: Option<Parts>,
}

impl Progress {
    /// Returns the records that are done.
    pub(crate) fn records(&self) -> u64 {
        self.mark.records.saturating_sub(self.start.records)
    }

    /// Whether the numbers contradict each other.
    fn is_absurd(&self) -> bool {
        self.mark.records.checked_sub(self.start.records).is_none_or(|records| self.failed > records)
    }
}

/// The end of an output, to recognize it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tail {
    /// In a folder, the path of the record that was written last.
    pub(crate) path: Option<Vec<u8>>,
    /// Hash of the length and the last bytes; of an object, its version. `None` if there is no file.
    hash: Option<String>,
}

impl Tail {
    /// Returns the tail of the first `length` bytes of a file.
    fn of_file(file: &File, length: u64) -> io::Result<Self> {
        let count = length.min(TAIL_BYTES);
        let mut bytes = vec![0; count as usize];
        file.read_exact_at(&mut bytes, length - count)?;
        let hash = blake3::Hasher::new().update(&length.to_le_bytes()).update(&bytes).finalize();
        Ok(Self { path: None, hash: Some(hash.to_hex().to_string()) })
    }

    /// Returns the tail of an output of `length` bytes.
    pub(crate) fn of_output(file: &File, length: u64) -> io::Result<Self> {
        if length == 0 { Ok(Self::default()) } else { Self::of_file(file, length) }
    }

    /// Returns the tail of a record's file in a folder, which may not exist.
    pub(crate) fn of_record(folder: &Folder, path: &Path) -> io::Result<Self> {
        let file = match folder.read(path) {
            Ok((file, stat)) => Self::of_file(&file, stat.st_size as u64)?,
            Err(Errno::NOENT) => Self::default(),
            Err(error) => return Err(error.into()),
        };
        Ok(Self { path: Some(path.as_os_str().as_bytes().to_vec()), ..file })
    }

    /// Returns the tail of an object, or of a record's object in a folder, which may not exist.
    pub(crate) fn of_object(path: Option<&[u8]>, version: Option<String>) -> Self {
        Self { path: path.map(<[u8]>::to_vec), hash: version }
    }
}

/// What a journal says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Content {
    version: u32,
    pub(crate) task: Task,
    pub(crate) progress: Progress,
}

/// Where a journal is.
#[derive(Debug)]
enum Place {
    Folder(Arc<Folder>, OsString),
    Object(Object),
}

/// The journal of one output.
#[derive(Debug)]
pub(crate) struct Journal {
    place: Place,
    /// Its path in messages.
    path: PathBuf,
    task: Task,
}

impl Journal {
    /// The journal of the file `file` in the folder; `output` is the file's path.
    pub(crate) fn beside(folder: Arc<Folder>, file: &OsStr, output: &Path, task: Task) -> Self {
        let path = with_suffix(output.as_os_str(), SUFFIX).into();
        Self { place: Place::Folder(folder, with_suffix(file, SUFFIX)), path, task }
    }

    /// The journal of an object, which is an object, too.
    pub(crate) fn beside_object(output: &Object, task: Task) -> Self {
        Self::of_object(output.beside(SUFFIX), task)
    }

    /// The journal that is this object.
    pub(crate) fn of_object(journal: Object, task: Task) -> Self {
        let path = journal.name().into();
        Self { place: Place::Object(journal), path, task }
    }

    /// The journal of a folder. It is not beside the folder, because that may be all we can write to.
    pub(crate) fn within(folder: Arc<Folder>, output: &Path, task: Task) -> Self {
        Self { place: Place::Folder(folder, SUFFIX.into()), path: output.join(SUFFIX), task }
    }

    /// Whether there may be something that a killed run has left beside it.
    pub(crate) fn has_leftovers(&self) -> bool {
        match &self.place {
            Place::Folder(folder, name) => folder.stat(name).is_ok(),
            Place::Object(_) => false,
        }
    }

    fn content(&self) -> Result<Option<Content>, Error> {
        match &self.place {
            Place::Folder(folder, name) => content(folder, name, &self.path),
            Place::Object(object) => {
                let bytes = object.get().map_err(|error| Error::read(self.path.display().to_string(), error))?;
                bytes.map(|bytes| parsed(&bytes, &self.path)).transpose()
            }
        }
    }

    /// Returns the upload that the journal is about, whatever its task.
    pub(crate) fn upload(&self) -> Option<Parts> {
        self.content().ok().flatten().and_then(|content| content.progress.upload)
    }

    /// Returns whether the output is a shard.
    pub(crate) fn is_of_shard(&self) -> bool {
        self.task.shard.is_some()
    }

    /// Returns the input that the task is about.
    pub(crate) fn input(&self) -> &Identity {
        &self.task.input
    }

    /// Returns whether there is a journal of an output that is not finished. One that says nothing may be of any output.
    pub(crate) fn is_unfinished(&self) -> Result<bool, Error> {
        match self.content() {
            Ok(content) => Ok(content.is_some_and(|content| !content.progress.finished)),
            Err(Error::Journal { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Returns how far an earlier run with the same task came; `None` if there was none, or it finished.
    pub(crate) fn read(&self) -> Result<Option<Progress>, Error> {
        let Some(content) = self.content()? else { return Ok(None) };
        match content.task.difference(&self.task) {
            Some(change) => Err(Error::TaskChanged(change)),
            None => Ok(Some(content.progress)),
        }
    }

    /// Replaces the journal in one step. The output that it describes has been flushed.
    pub(crate) fn write(&self, progress: &Progress) -> Result<(), Error> {
        let content = Content { version: VERSION, task: self.task.clone(), progress: progress.clone() };
        self.replace(&content).map_err(|error| Error::write(self.path.display().to_string(), error))
    }

    fn replace(&self, content: &Content) -> io::Result<()> {
        let mut text = serde_json::to_vec(content)?;
        let hash = blake3::hash(&text).to_hex();
        text.extend([b"\n", hash.as_bytes(), b"\n"].concat());
        let (folder, name) = match &self.place {
            Place::Folder(folder, name) => (folder, name),
            Place::Object(object) => return Ok(object.put(text.into())?),
        };
        let (mut file, fresh) = folder.temporary(name)?;
        let written = file.write_all(&text).and_then(|()| file.sync_all());
        let replaced = written.and_then(|()| folder.rename(&fresh, Path::new(name)));
        if replaced.is_err() {
            let _ = folder.remove(Path::new(&fresh));
        }
        replaced.and_then(|()| folder.sync())
    }

    /// Removes temporary files that a killed run has left. One that cannot be removed does no harm.
    pub(crate) fn remove_temporary(&self) {
        if let Place::Folder(folder, name) = &self.place {
            let _ = folder.remove_temporary(name);
        }
    }

    /// Removes the journal: the output is finished.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        let removed = match &self.place {
            Place::Folder(folder, name) => folder.remove(Path::new(name)),
            Place::Object(object) => object.remove().map_err(io::Error::from),
        };
        removed.map_err(|source| Error::Remove { path: self.path.clone(), source })
    }
}

/// Returns a name with a suffix.
pub(crate) fn with_suffix(name: &OsStr, suffix: &str) -> OsString {
    [name, suffix.as_ref()].into_iter().collect()
}

/// Returns what the journal of this name says; `None` if there is none. `path` is its path in messages.
pub(crate) fn content(folder: &Folder, name: &OsStr, path: &Path) -> Result<Option<Content>, Error> {
    let refused = |flaw| Error::Journal { path: path.to_owned(), flaw };
    let unreadable = |error: io::Error| Error::read(path.display().to_string(), error);
    let file = match folder.read(Path::new(name)) {
        Ok((file, _)) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::NXIO | Errno::LOOP | Errno::ISDIR) => return Err(refused(JournalFlaw::NoFile)),
        Err(error) => return Err(unreadable(error.into())),
    };
    let mut bytes = Vec::new();
    file.take(MAX_JOURNAL_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
    parsed(&bytes, path).map(Some)
}

pub(crate) fn parsed(bytes: &[u8], path: &Path) -> Result<Content, Error> {
    let refused = |flaw| Error::Journal { path: path.to_owned(), flaw };
    let text = checked(bytes).ok_or_else(|| refused(JournalFlaw::Damaged))?;
    let content: Option<Content> = serde_json::from_slice(text).ok();
    let content = content.filter(|content| content.version == VERSION && !content.progress.is_absurd());
    content.ok_or_else(|| refused(JournalFlaw::Unknown))
}

/// Returns the first line, if the second one is its hash.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let lines = bytes.strip_suffix(b"\n")?;
    let end = lines.iter().rposition(|byte| *byte == b'\n')?;
    let (text, hash) = (&lines[..end], &lines[end + 1..]);
    (blake3::hash(text).to_hex().as_bytes() == hash).then_some(text)
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
