//! Where output records go: a stream, a file with a journal, or a folder with a journal; and objects in place of these.
//!
//! A *checkpoint* makes the output so far durable: it is flushed to disk, and then the journal says so. A checkpoint
//! waits for the disk, so the next one is made only when this wait is a small part of the time since. The first
//! checkpoint comes before any output. A finished output needs none: its journal is removed. The last checkpoint of a
//! shard says that the shard is finished.

use super::journal::{Identity, Journal, Progress, SUFFIX, Tail, Task, with_suffix};
use super::objects::{ObjectFolderOutput, ObjectOutput};
use super::shards;
use crate::error::Error;
use crate::folder::{Folder, FolderEntry};
use crate::options::Unfinished;
use gpu_run_objects::{Object, ObjectFolder};
use rustix::fs::OFlags;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The next checkpoint comes after at least this many times as long as the last one took: checkpoints take at most 1/20
/// of the time.
const CHECKPOINT_SPACING: u32 = 20;
/// Bytes of output that are gathered before they are written.
const BUFFER_BYTES: usize = 1 << 20;

pub(crate) struct Target {
    sink: Sink,
    /// `None`: after an interruption, the output cannot be continued.
    journal: Option<Journal>,
    /// The input of a shard: if it has changed in the end, the shard may not belong to the others.
    input: Option<PathBuf>,
    /// What the journal says.
    safe: Progress,
    /// No checkpoint is due before this.
    next: Instant,
}

enum Sink {
    /// A pipe, a terminal, or a device.
    Stream(Buffered<Box<dyn Write + Send>>),
    File {
        file: Buffered<File>,
        bytes: u64,
        path: PathBuf,
    },
    Object(ObjectOutput),
    Folder {
        root: Arc<Folder>,
        /// Locked while the folder is written to. Several shards may write to it at once.
        lock: File,
        /// If a shard is written, it is locked by this.
        shard: Option<File>,
        /// Begins the names of temporary files.
        stem: OsString,
        /// The record that was put last.
        last: Option<PathBuf>,
        path: PathBuf,
    },
    Objects(ObjectFolderOutput),
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("journal", &self.journal).finish_non_exhaustive()
    }
}

impl Target {
    pub(crate) fn stream(to: Box<dyn Write + Send>) -> Self {
        Self::new(Sink::Stream(Buffered::new(to)), None)
    }

    fn new(sink: Sink, journal: Option<Journal>) -> Self {
        Self { sink, journal, input: None, safe: Progress::default(), next: Instant::now() }
    }

    /// An output that cannot have a journal beside it: one that the process has open already.
    pub(crate) fn special(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new().write(true).open(path).map_err(|error| unwritable(path, error))?;
        Ok(Self::stream(Box::new(file)))
    }

    /// An output that is a device or a pipe.
    pub(crate) fn device(entry: &FolderEntry, path: &Path) -> Result<Self, Error> {
        let file = entry.open(OFlags::WRONLY).map_err(|error| unwritable(path, error))?;
        Ok(Self::stream(Box::new(file)))
    }

    /// Opens a file for writing. Its content stays until [`Target::begin`].
    pub(crate) fn file(entry: FolderEntry, path: &Path, task: Task) -> Result<Self, Error> {
        // Also for reading: the journal has a hash of the file's end.
        let file = entry.open(OFlags::RDWR | OFlags::CREATE).map_err(|error| unwritable(path, error))?;
        lock(&file, path)?;
        let journal = Journal::beside(Arc::new(entry.folder), &entry.name, path, task);
        Ok(Self::new(Sink::File { file: Buffered::new(file), bytes: 0, path: path.to_owned() }, Some(journal)))
    }

    /// Takes an object for writing. One that exists stays until the map has finished.
    pub(crate) fn object(object: Object, task: Task) -> Result<Self, Error> {
        let journal = Journal::beside_object(&object, task);
        Ok(Self::new(Sink::Object(ObjectOutput::new(object)?), Some(journal)))
    }

    /// Takes a folder of objects for writing. It need not exist: folders of objects are only names.
    pub(crate) fn objects(folder: &ObjectFolder, task: Task) -> Result<Self, Error> {
        let journal = match task.shard {
            None => folder.object(SUFFIX),
            Some(shard) => shards::of_objects(folder).and_then(|shards| shards.object(&(shard.file_name() + SUFFIX))),
        };
        let journal = journal.map_err(|error| Error::write(folder.name(), error))?;
        let sink = Sink::Objects(ObjectFolderOutput::new(folder, task.shard.is_some()));
        Ok(Self::new(sink, Some(Journal::of_object(journal, task))))
    }

    /// Opens a folder, and makes it if it does not exist.
    pub(crate) fn folder(entry: FolderEntry, path: &Path, task: Task) -> Result<Self, Error> {
        let unwritable = |error| unwritable(path, error);
        let root = Arc::new(entry.into_folder(true).map_err(unwritable)?);
        let handle = root.as_file().map_err(unwritable)?;
        let folder = |root, lock, shard, stem, journal| {
            Self::new(Sink::Folder { root, lock, shard, stem, last: None, path: path.to_owned() }, Some(journal))
        };
        let Some(shard) = task.shard else {
            lock(&handle, path)?;
            let journal = Journal::within(root.clone(), path, task);
            return Ok(folder(root, handle, None, SUFFIX.into(), journal));
        };
        is_locked(handle.try_lock_shared(), path)?;
        let (shards, name) = (shards::within(), shard.file_name());
        let own = path.join(&shards).join(&name);
        let stem = with_suffix(SUFFIX.as_ref(), &format!(".{name}"));
        let entry = FolderEntry { folder: root.below(&shards, true).map_err(unwritable)?, name: name.into() };
        let file = entry.open(OFlags::RDWR | OFlags::CREATE).map_err(unwritable)?;
        lock(&file, &own)?;
        let journal = Journal::beside(Arc::new(entry.folder), &entry.name, &own, task);
        Ok(folder(root, handle, Some(file), stem, journal))
    }

    /// Has the target check in the end that the input at `path` is still the same.
    pub(crate) fn checking(self, path: Option<&Path>) -> Self {
        Self { input: path.map(Path::to_owned), ..self }
    }

    /// Returns what an earlier run left, if this run is to continue it. Refuses to destroy an unfinished output, and to
    /// continue one that is not unfinished.
    pub(crate) fn earlier(&self, unfinished: Unfinished) -> Result<Option<Progress>, Error> {
        let is_resumed = unfinished == Unfinished::Resume;
        let (Some(journal), Some(output)) = (&self.journal, self.path()) else {
            return if is_resumed { Err(Error::OutputHasNoJournal) } else { Ok(None) };
        };
        if unfinished == Unfinished::Overwrite {
            return Ok(None);
        }
        if self.has_rival()? {
            let error = if journal.is_of_shard() { Error::OutputUnfinished } else { Error::OutputHasShards };
            return Err(error(output.to_owned()));
        }
        if !is_resumed {
            return if journal.is_unfinished()? { Err(Error::OutputUnfinished(output.to_owned())) } else { Ok(None) };
        }
        let earlier = journal.read()?;
        let unreadable = |error| Error::read(output.display().to_string(), error);
        if let Sink::Object(object) = &self.sink {
            return object.earlier(earlier);
        }
        let length = match &self.sink {
            Sink::File { file, .. } => file.to.metadata().map_err(unreadable)?.len(),
            _ => 0,
        };
        let Some(progress) = earlier else {
            return if length > 0 { Err(Error::OutputNotUnfinished(output.to_owned())) } else { Ok(None) };
        };
        if progress.output > length {
            return Err(Error::OutputShorter(output.to_owned()));
        }
        if progress.finished && progress.output < length {
            return Err(Error::OutputEndChanged(output.to_owned()));
        }
        let last = progress.tail.path.as_ref().map(|path| PathBuf::from(OsStr::from_bytes(path)));
        let tail = self.tail(progress.output, last.as_deref()).map_err(unreadable)?;
        match last {
            _ if tail == progress.tail => Ok(Some(progress)),
            Some(file) => Err(Error::OutputFileChanged { output: output.to_owned(), file }),
            None => Err(Error::OutputEndChanged(output.to_owned())),
        }
    }

    /// Whether another kind of map has not finished the folder: one of the whole, or of shards.
    fn has_rival(&self) -> Result<bool, Error> {
        match &self.sink {
            Sink::Folder { root, shard: None, .. } => Ok(shards::are_begun(root)),
            Sink::Folder { root, shard: Some(_), .. } => Ok(root.stat(SUFFIX).is_ok()),
            Sink::Objects(folder) => folder.has_rival(),
            Sink::Stream(_) | Sink::File { .. } | Sink::Object(_) => Ok(false),
        }
    }

    /// Removes the journals of another kind of map, whose files this one overwrites.
    fn remove_rival(&self) -> io::Result<()> {
        match &self.sink {
            Sink::Folder { root, shard: None, .. } => shards::remove(root, &shards::within()),
            // Another shard may have removed it.
            Sink::Folder { root, shard: Some(_), .. } => root.remove(Path::new(SUFFIX)),
            Sink::Objects(folder) => Ok(folder.remove_rival()?),
            Sink::Stream(_) | Sink::File { .. } | Sink::Object(_) => Ok(()),
        }
    }

    /// Returns the end of the first `length` bytes of a file, or of the folder's `last` record.
    fn tail(&self, length: u64, last: Option<&Path>) -> io::Result<Tail> {
        match &self.sink {
            Sink::Folder { root, .. } => last.map_or(Ok(Tail::default()), |last| Tail::of_record(root, last)),
            Sink::File { file, .. } => Tail::of_output(&file.to, length),
            Sink::Object(object) => object.tail(),
            Sink::Objects(folder) => folder.tail(last),
            Sink::Stream(_) => Ok(Tail::default()),
        }
    }

    /// Returns the output's path, or address.
    fn path(&self) -> Option<&Path> {
        match &self.sink {
            Sink::Stream(_) => None,
            Sink::File { path, .. } | Sink::Folder { path, .. } => Some(path),
            Sink::Object(object) => Some(Path::new(object.name())),
            Sink::Objects(folder) => Some(Path::new(folder.name())),
        }
    }

    /// Returns the output's path, and the file that is held open there.
    fn held(&self) -> Option<(&Path, &File)> {
        match &self.sink {
            Sink::Stream(_) | Sink::Object(_) | Sink::Objects(_) => None,
            Sink::File { path, file, .. } => Some((path, &file.to)),
            Sink::Folder { path, lock, .. } => Some((path, lock)),
        }
    }

    /// Begins: output beyond `from` is removed, and the journal exists.
    pub(crate) fn begin(&mut self, mut from: Progress, unfinished: Unfinished) -> Result<(), Error> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let overwrites = unfinished == Unfinished::Overwrite;
        if let Sink::Object(object) = &mut self.sink {
            object.begin(journal, &mut from, overwrites)?;
        }
        // A run that was killed leaves its journal behind.
        let leftovers = journal.has_leftovers();
        // The journal comes first: an output that was cut must not look like a finished one.
        journal.write(&from)?;
        if leftovers {
            journal.remove_temporary();
            if let Sink::Folder { root, stem, .. } = &self.sink {
                // One that cannot be removed does no harm.
                let _ = root.remove_temporary(stem);
            }
        }
        // Otherwise there is none: see `earlier`.
        if overwrites && self.has_rival()? {
            self.remove_rival().map_err(|error| Error::write("the journal of another map", error))?;
        }
        match &mut self.sink {
            Sink::Stream(_) | Sink::Object(_) => {}
            Sink::Folder { last, .. } | Sink::Objects(ObjectFolderOutput { last, .. }) => {
                *last = from.tail.path.as_ref().map(|path| PathBuf::from(OsStr::from_bytes(path)))
            }
            Sink::File { file, bytes, path } => {
                let cut = |file: &mut File| file.set_len(from.output).and_then(|()| file.seek(SeekFrom::End(0)));
                *bytes = cut(&mut file.to).map_err(|error| unwritable(path, error))?;
            }
        }
        self.safe = from;
        Ok(())
    }

    /// Puts the output of one record; `None` if it has none. In a folder, `name` is the record's file.
    pub(crate) fn put(&mut self, name: &Path, record: Option<&[u8]>) -> Result<(), Error> {
        let bytes = record.unwrap_or_default();
        match &mut self.sink {
            Sink::Stream(stream) => stream.write_all(bytes).map_err(unwritable_stream),
            Sink::File { file, bytes: count, path } => {
                *count += bytes.len() as u64;
                file.write_all(bytes).map_err(|error| unwritable(path, error))
            }
            Sink::Object(object) => object.write(bytes),
            Sink::Objects(folder) => folder.put(name, record),
            Sink::Folder { root, last, path, stem, .. } => {
                put_file(root, name, stem, record).map_err(|error| unwritable(&path.join(name), explained(error)))?;
                *last = Some(name.to_owned());
                Ok(())
            }
        }
    }

    /// Flushes the output of a batch: whoever reads the output sees whole batches.
    pub(crate) fn deliver(&mut self) -> Result<(), Error> {
        match &mut self.sink {
            Sink::Stream(stream) => stream.flush().map_err(unwritable_stream),
            Sink::File { file, path, .. } => file.flush().map_err(|error| unwritable(path, error)),
            Sink::Object(_) | Sink::Objects(_) | Sink::Folder { .. } => Ok(()),
        }
    }

    /// Makes a checkpoint, if one is due, or if `now`.
    pub(crate) fn checkpoint(&mut self, mut progress: Progress, now: bool) -> Result<(), Error> {
        let Some(journal) = &self.journal else { return Ok(()) };
        if let Sink::File { bytes, .. } = &self.sink {
            progress.output = *bytes;
        }
        progress.tail = self.safe.tail.clone();
        let began = Instant::now();
        progress.upload = self.safe.upload.clone();
        if !now && began < self.next || progress == self.safe || !self.can_be_safe() {
            return Ok(());
        }
        match &mut self.sink {
            Sink::Stream(_) => {}
            Sink::Object(object) => object.flush(&mut progress)?,
            Sink::Objects(folder) => folder.flush()?,
            Sink::File { file, path, .. } => {
                let flushed = file.flush().and_then(|()| file.to.sync_data());
                flushed.map_err(|error| unwritable(path, error))?;
            }
            // One wait for all files, instead of one for each.
            Sink::Folder { lock, path, .. } => {
                rustix::fs::syncfs(lock).map_err(|error| Error::write(format!("to {}", path.display()), error))?;
            }
        }
        let last = match &self.sink {
            Sink::Folder { last, .. } | Sink::Objects(ObjectFolderOutput { last, .. }) => last.as_deref(),
            _ => None,
        };
        let tail = self.tail(progress.output, last);
        progress.tail = tail.map_err(|error| Error::read("the end of the output", error))?;
        journal.write(&progress)?;
        self.safe = progress;
        self.next = Instant::now() + began.elapsed() * CHECKPOINT_SPACING;
        Ok(())
    }

    /// Whether a checkpoint can be made: what is sent of an object has a least size.
    pub(crate) fn can_be_safe(&self) -> bool {
        match &self.sink {
            Sink::Object(object) => object.can_flush(),
            _ => true,
        }
    }

    /// Cuts off, after a failed write, all output that is not safe, so that no part of a record stays.
    pub(crate) fn cut_back(&mut self) {
        if let Sink::File { file, .. } = &mut self.sink {
            file.bytes.clear();
            // If this fails, too, the next run does it.
            let _ = file.to.set_len(self.safe.output);
        }
    }

    /// Finishes the output: all records are there, as `done` says. From here on it is a file like any other, and nobody
    /// waits until it is on disk, which may take longer than all the rest. A shard must be on disk: other machines are to
    /// read it.
    pub(crate) fn finish(&mut self, done: &Progress) -> Result<(), Error> {
        self.deliver()?;
        match (&mut self.sink, &self.journal) {
            (Sink::Object(object), Some(journal)) => object.finish(journal, done)?,
            (Sink::Objects(folder), _) => folder.flush()?,
            _ => {}
        }
        if let Some((path, held)) = self.held() {
            let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
            if fs::metadata(path).ok().map(identity) != held.metadata().ok().map(identity) {
                return Err(Error::OutputReplaced(path.to_owned()));
            }
        }
        let Some(journal) = &self.journal else { return Ok(()) };
        if !journal.is_of_shard() {
            return journal.remove();
        }
        if let Some(input) = &self.input {
            let now = Identity::of(input).map_err(|error| Error::read(input.display().to_string(), error))?;
            if now != *journal.input() {
                return Err(Error::InputChanging(input.clone()));
            }
        }
        self.checkpoint(Progress { finished: true, ..done.clone() }, true)
    }

    /// Returns what the journal says is safe. Without a journal, an interrupted run cannot be continued.
    pub(crate) fn safe(&self) -> Option<&Progress> {
        self.journal.as_ref().map(|_| &self.safe)
    }
}

/// Writes in large pieces. Dropping it writes nothing: the bytes that it still holds are lost.
struct Buffered<W> {
    to: W,
    bytes: Vec<u8>,
}

impl<W: Write> Buffered<W> {
    fn new(to: W) -> Self {
        Self { to, bytes: Vec::new() }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() >= BUFFER_BYTES / 4 {
            self.flush()?;
            return self.to.write_all(bytes);
        }
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() < BUFFER_BYTES { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.write_all(&self.bytes)?;
        self.bytes.clear();
        self.to.flush()
    }
}

/// Writes a record's file, or removes it if there is no content. The file is whole or absent: a reader never sees half
/// of it.
fn put_file(root: &Folder, path: &Path, stem: &OsStr, content: Option<&[u8]>) -> io::Result<()> {
    let Some(content) = content else { return root.remove(path) };
    let (mut file, fresh) = root.temporary(stem)?;
    let put = file.write_all(content).and_then(|()| root.rename(&fresh, path));
    if put.is_err() {
        let _ = root.remove(Path::new(&fresh));
    }
    put
}

/// Explains why a folder that seems to exist cannot be entered.
fn explained(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotADirectory => {
            io::Error::other("a folder in the path is a link or a file; map does not write through links")
        }
        _ => error,
    }
}

fn unwritable(path: &Path, error: io::Error) -> Error {
    Error::write(path.display().to_string(), error)
}

fn unwritable_stream(error: io::Error) -> Error {
    Error::write("the output", error)
}

/// Locks a file that this process writes, or says that another one does.
pub(crate) fn lock(file: &File, path: &Path) -> Result<(), Error> {
    is_locked(file.try_lock(), path)
}

pub(crate) fn is_locked(result: Result<(), TryLockError>, path: &Path) -> Result<(), Error> {
    match result {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Error::OutputInUse(path.to_owned())),
        // Some file systems have no locks; then no other map is kept out.
        Err(TryLockError::Error(_)) => Ok(()),
    }
}
