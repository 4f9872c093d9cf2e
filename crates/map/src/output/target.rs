//! Where output records go: a stream, a file with a journal, or a folder with a journal.
//!
//! A *checkpoint* makes what was put so far last: it is flushed to disk, then the journal says so. Checkpoints cost a
//! wait for the disk; the next one is made when the last one is a small part of the time since. The first comes before any
//! output, the last after all of it.

use super::journal::{Journal, Progress, Tail, Task};
use crate::error::Error;
use crate::folder::{Folder, FolderEntry};
use crate::options::Unfinished;
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// How many times as long as a checkpoint took no other one is made: a twentieth of the time goes into them at most.
const CHECKPOINT_SPACING: u32 = 20;
/// Bytes that are written at once, at least.
const BUFFER_BYTES: usize = 1 << 20;

pub(crate) struct Target {
    sink: Sink,
    /// `None`: nothing of it can be gone on with.
    journal: Option<Journal>,
    /// What the journal says.
    safe: Progress,
    /// Before this, no checkpoint is due.
    next: Instant,
}

enum Sink {
    /// A pipe, a terminal, a device.
    Stream(Buffered<Box<dyn Write + Send>>),
    File {
        file: Buffered<File>,
        bytes: u64,
        path: PathBuf,
    },
    Folder {
        root: Arc<Folder>,
        /// Locked while it is written to.
        lock: File,
        /// The record that was put last.
        last: Option<PathBuf>,
        path: PathBuf,
    },
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
        Self { sink, journal, safe: Progress::default(), next: Instant::now() }
    }

    /// What no journal can be beside: what a process has open already.
    pub(crate) fn special(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new().write(true).open(path).map_err(|error| unwritable(path, error))?;
        Ok(Self::stream(Box::new(file)))
    }

    /// A device or a pipe.
    pub(crate) fn device(entry: &FolderEntry, path: &Path) -> Result<Self, Error> {
        let file = entry.open(OFlags::WRONLY).map_err(|error| unwritable(path, error))?;
        Ok(Self::stream(Box::new(file)))
    }

    /// Opens a file for writing. What is in it stays until [`Target::begin`].
    pub(crate) fn file(entry: FolderEntry, path: &Path, task: Task) -> Result<Self, Error> {
        // Read, too: the journal says what is at its end.
        let file = entry.open(OFlags::RDWR | OFlags::CREATE).map_err(|error| unwritable(path, error))?;
        lock(&file, path)?;
        let journal = Journal::beside(Arc::new(entry.folder), &entry.name, path, task);
        Ok(Self::new(Sink::File { file: Buffered::new(file), bytes: 0, path: path.to_owned() }, Some(journal)))
    }

    /// Makes the folder, if it is not there.
    pub(crate) fn folder(entry: FolderEntry, path: &Path, task: Task) -> Result<Self, Error> {
        let held = entry.into_folder(true).and_then(|root| Ok((root.as_file()?, Arc::new(root))));
        let (handle, root) = held.map_err(|error| unwritable(path, error))?;
        lock(&handle, path)?;
        let journal = Journal::within(root.clone(), path, task);
        Ok(Self::new(Sink::Folder { root, lock: handle, last: None, path: path.to_owned() }, Some(journal)))
    }

    /// What an earlier run left, if it is to be gone on with; refuses what would destroy an unfinished output, and what is none.
    pub(crate) fn earlier(&self, unfinished: Unfinished) -> Result<Option<Progress>, Error> {
        let is_resumed = unfinished == Unfinished::Resume;
        let (Some(journal), Some((output, _))) = (&self.journal, self.held()) else {
            return if is_resumed { Err(Error::OutputHasNoJournal) } else { Ok(None) };
        };
        if !is_resumed {
            let is_refused = unfinished == Unfinished::Refuse && journal.exists();
            return if is_refused { Err(Error::OutputUnfinished(output.to_owned())) } else { Ok(None) };
        }
        let earlier = journal.read()?;
        let unreadable = |error| Error::read(output.display().to_string(), error);
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
        let last = progress.tail.path.as_ref().map(|path| PathBuf::from(OsStr::from_bytes(path)));
        let tail = self.tail(progress.output, last.as_deref()).map_err(unreadable)?;
        match last {
            _ if tail == progress.tail => Ok(Some(progress)),
            Some(file) => Err(Error::OutputFileChanged { output: output.to_owned(), file }),
            None => Err(Error::OutputEndChanged(output.to_owned())),
        }
    }

    /// The end of the first `length` bytes that were put, or of the folder's `last` record.
    fn tail(&self, length: u64, last: Option<&Path>) -> io::Result<Tail> {
        match &self.sink {
            Sink::Folder { root, .. } => last.map_or(Ok(Tail::default()), |last| Tail::of_record(root, last)),
            Sink::File { file, .. } if length > 0 => Tail::of_file(&file.to, length),
            _ => Ok(Tail::default()),
        }
    }

    /// The output's path, and what is held open of it.
    fn held(&self) -> Option<(&Path, &File)> {
        match &self.sink {
            Sink::Stream(_) => None,
            Sink::File { path, file, .. } => Some((path, &file.to)),
            Sink::Folder { path, lock, .. } => Some((path, lock)),
        }
    }

    /// From here on the output is ours: what is beyond `from` is gone, and the journal is there.
    pub(crate) fn begin(&mut self, from: Progress) -> Result<(), Error> {
        let Some(journal) = &self.journal else { return Ok(()) };
        // A run that was killed has left its journal, too.
        let leftovers = journal.exists();
        // First: an output that was cut must not look like a finished one.
        journal.write(&from)?;
        if leftovers {
            journal.remove_temporary();
        }
        match &mut self.sink {
            Sink::Stream(_) => {}
            Sink::Folder { last, .. } => {
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

    /// The output of one record: `None` if it has none. `name` is its file in a folder.
    pub(crate) fn put(&mut self, name: &Path, record: Option<&[u8]>) -> Result<(), Error> {
        let bytes = record.unwrap_or_default();
        match (&mut self.sink, &self.journal) {
            (Sink::Stream(stream), _) => stream.write_all(bytes).map_err(unwritable_stream),
            (Sink::File { file, bytes: count, path }, _) => {
                *count += bytes.len() as u64;
                file.write_all(bytes).map_err(|error| unwritable(path, error))
            }
            (Sink::Folder { root, last, path, .. }, journal) => {
                let stem = journal.as_ref().map_or("".as_ref(), Journal::stem);
                put_file(root, name, stem, record).map_err(|error| unwritable(&path.join(name), explained(error)))?;
                *last = Some(name.to_owned());
                Ok(())
            }
        }
    }

    /// Hands on what was put: whoever reads the output sees whole batches.
    pub(crate) fn deliver(&mut self) -> Result<(), Error> {
        match &mut self.sink {
            Sink::Stream(stream) => stream.flush().map_err(unwritable_stream),
            Sink::File { file, path, .. } => file.flush().map_err(|error| unwritable(path, error)),
            Sink::Folder { .. } => Ok(()),
        }
    }

    /// Makes what was put last, if it is time for that, or `now`.
    pub(crate) fn checkpoint(&mut self, mut progress: Progress, now: bool) -> Result<(), Error> {
        let Some(journal) = &self.journal else { return Ok(()) };
        if let Sink::File { bytes, .. } = &self.sink {
            progress.output = *bytes;
        }
        progress.tail = self.safe.tail.clone();
        let began = Instant::now();
        if !now && began < self.next || progress == self.safe {
            return Ok(());
        }
        match &mut self.sink {
            Sink::Stream(_) => {}
            Sink::File { file, path, .. } => {
                let flushed = file.flush().and_then(|()| file.to.sync_data());
                flushed.map_err(|error| unwritable(path, error))?;
            }
            // One wait for all of them, and not one for each file.
            Sink::Folder { lock, path, .. } => {
                rustix::fs::syncfs(lock).map_err(|error| Error::write(format!("to {}", path.display()), error))?;
            }
        }
        let last = match &self.sink {
            Sink::Folder { last, .. } => last.as_deref(),
            _ => None,
        };
        let tail = self.tail(progress.output, last);
        progress.tail = tail.map_err(|error| Error::read("the end of the output again", error))?;
        journal.write(&progress)?;
        self.safe = progress;
        self.next = Instant::now() + began.elapsed() * CHECKPOINT_SPACING;
        Ok(())
    }

    /// After a write that failed: what is not safe is cut off, so that no part of a record stays.
    pub(crate) fn cut_back(&mut self) {
        if let Sink::File { file, .. } = &mut self.sink {
            file.bytes.clear();
            // If this fails too, the next run does it.
            let _ = file.to.set_len(self.safe.output);
        }
    }

    /// All records are there. From here on the output is a file like any other: nobody waits until it is on disk, which may take longer than all the rest.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.deliver()?;
        if let Some((path, held)) = self.held() {
            let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
            if fs::metadata(path).ok().map(identity) != held.metadata().ok().map(identity) {
                return Err(Error::OutputReplaced(path.to_owned()));
            }
        }
        self.journal.as_ref().map_or(Ok(()), Journal::remove)
    }

    /// What the journal says is safe, if there is one: only then an interrupted run can be gone on with.
    pub(crate) fn safe(&self) -> Option<&Progress> {
        self.journal.as_ref().map(|_| &self.safe)
    }
}

/// Writes in large pieces, and nothing that was not asked for: dropped, it drops what it holds.
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

/// The file is whole or not there: a reader never sees half of one.
fn put_file(root: &Folder, path: &Path, stem: &OsStr, content: Option<&[u8]>) -> io::Result<()> {
    let Some(content) = content else { return root.remove(path) };
    let (mut file, fresh) = root.temporary(stem)?;
    let put = file.write_all(content).and_then(|()| root.rename(&fresh, path));
    if put.is_err() {
        let _ = root.remove(Path::new(&fresh));
    }
    put
}

/// Says why a folder cannot be entered that seems to be there.
fn explained(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotADirectory => {
            io::Error::other("a folder on the way is a link or a file; nothing is written through links")
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

fn lock(file: &File, path: &Path) -> Result<(), Error> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Error::OutputInUse(path.to_owned())),
        // Some file systems have no locks; then nobody is kept out.
        Err(TryLockError::Error(_)) => Ok(()),
    }
}
