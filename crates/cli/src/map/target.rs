//! Where output records go: our stdout, a file with a journal, or a folder with a journal.
//!
//! A *checkpoint* makes what was put so far last: it is flushed to disk, then the journal says so. Checkpoints cost a
//! wait for the disk; the next one is made when the last one is a small part of the time since. The first comes before any
//! output, the last after all of it.

use super::journal::{Journal, Progress};
use crate::failure::Failure;
use crate::output::Standard;
use anyhow::{Context, Result};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How many times as long as a checkpoint took no other one is made: a twentieth of the time goes into them at most.
const SPACING: u32 = 20;
const BUFFER: usize = 1 << 20;
/// What a file of an output folder is called until it is whole.
const FRESH: &str = ".gpu-run-map.file";

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
        root: PathBuf,
        lock: File,
    },
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("journal", &self.journal).finish_non_exhaustive()
    }
}

impl Target {
    pub(crate) fn stdout() -> Result<Self> {
        Ok(Self::stream(Box::new(Standard::stdout()?)))
    }

    fn stream(to: Box<dyn Write + Send>) -> Self {
        Self::new(Sink::Stream(Buffered::new(to)), None)
    }

    fn new(sink: Sink, journal: Option<Journal>) -> Self {
        Self { sink, journal, safe: Progress::default(), next: Instant::now() }
    }

    /// Opens a file for writing. What is in it stays until [`Target::begin`].
    pub(crate) fn file(path: &Path, journal: Journal) -> Result<Self> {
        let unwritable = |error| Failure::environment(format!("cannot write {}: {error}", path.display()));
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(unwritable)?;
        // `/dev/stdout` may be a regular file, but a journal has no place beside it.
        if !file.metadata().map_err(unwritable)?.is_file() || path.starts_with("/dev") {
            return Ok(Self::stream(Box::new(file)));
        }
        lock(&file, path)?;
        Ok(Self::new(Sink::File { file: Buffered::new(file), bytes: 0, path: path.to_owned() }, Some(journal)))
    }

    /// Makes the folder, if it is not there.
    pub(crate) fn folder(root: &Path, journal: Journal) -> Result<Self> {
        let unwritable = |error| Failure::environment(format!("cannot write to {}: {error}", root.display()));
        fs::create_dir_all(root).map_err(unwritable)?;
        let folder = File::open(root).map_err(unwritable)?;
        lock(&folder, root)?;
        Ok(Self::new(Sink::Folder { root: root.to_owned(), lock: folder }, Some(journal)))
    }

    /// What an earlier run left, if it is to be gone on with; refuses what would destroy an unfinished output, and what is none.
    pub(crate) fn earlier(&self, resume: bool, force: bool) -> Result<Option<Progress>> {
        let Some(journal) = &self.journal else {
            let failure = Failure::usage("--resume needs --output with a file or folder to go on with");
            return if resume { Err(failure.into()) } else { Ok(None) };
        };
        let output = match &self.sink {
            Sink::Stream(_) => return Ok(None),
            Sink::File { path, .. } | Sink::Folder { root: path, .. } => path.display(),
        };
        if !resume {
            if journal.exists() && !force {
                return Err(Failure::usage(format!("{output} is unfinished: an earlier run was interrupted"))
                    .hint("go on with it with --resume, or begin anew with --force")
                    .into());
            }
            return Ok(None);
        }
        let earlier = journal.read()?;
        let length = match &self.sink {
            Sink::File { file, .. } => file.to.metadata()?.len(),
            _ => 0,
        };
        match &earlier {
            Some(progress) if progress.output > length => {
                Err(Failure::usage(format!("--resume: {output} is shorter than it was: somebody has changed it"))
                    .hint("begin anew with --force")
                    .into())
            }
            None if length > 0 => Err(Failure::usage(format!("--resume: {output} is not unfinished"))
                .hint("leave --resume out to write it anew")
                .into()),
            _ => Ok(earlier),
        }
    }

    /// From here on the output is ours: what is beyond `from` is gone, and the journal is there.
    pub(crate) fn begin(&mut self, from: Progress) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        // First: an output that was cut must not look like a finished one.
        journal.write(&from)?;
        if let Sink::Folder { root, .. } = &self.sink {
            // A run that was killed has left one.
            let _ = fs::remove_file(root.join(FRESH));
        }
        if let Sink::File { file, bytes, path } = &mut self.sink {
            let cut = |file: &mut File| file.set_len(from.output).and_then(|()| file.seek(SeekFrom::End(0)));
            *bytes = cut(&mut file.to).with_context(|| format!("cannot write {}", path.display()))?;
        }
        self.safe = from;
        Ok(())
    }

    /// The output of one record: `None` if it has none. `name` is its file in a folder.
    pub(crate) fn put(&mut self, name: &Path, record: Option<&[u8]>) -> Result<()> {
        let bytes = record.unwrap_or_default();
        match &mut self.sink {
            Sink::Stream(stream) => stream.write_all(bytes).context("cannot write the output"),
            Sink::File { file, bytes: count, path } => {
                *count += bytes.len() as u64;
                file.write_all(bytes).with_context(|| format!("cannot write {}", path.display()))
            }
            Sink::Folder { root, .. } => {
                let path = root.join(name);
                put_file(&path, &root.join(FRESH), record).with_context(|| format!("cannot write {}", path.display()))
            }
        }
    }

    /// Hands on what was put: whoever reads the output sees whole batches.
    pub(crate) fn deliver(&mut self) -> Result<()> {
        match &mut self.sink {
            Sink::Stream(stream) => stream.flush().context("cannot write the output"),
            Sink::File { file, path, .. } => file.flush().with_context(|| format!("cannot write {}", path.display())),
            Sink::Folder { .. } => Ok(()),
        }
    }

    /// Makes what was put last, if it is time for that, or `now`.
    pub(crate) fn checkpoint(&mut self, mut progress: Progress, now: bool) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        if let Sink::File { bytes, .. } = &self.sink {
            progress.output = *bytes;
        }
        let began = Instant::now();
        if !now && began < self.next || progress == self.safe {
            return Ok(());
        }
        match &mut self.sink {
            Sink::Stream(_) => {}
            Sink::File { file, path, .. } => {
                let flushed = file.flush().and_then(|()| file.to.sync_data());
                flushed.with_context(|| format!("cannot write {}", path.display()))?;
            }
            // One wait for all of them, and not one for each file.
            Sink::Folder { root, lock } => {
                rustix::fs::syncfs(lock).with_context(|| format!("cannot write to {}", root.display()))?;
            }
        }
        journal.write(&progress)?;
        self.safe = progress;
        self.next = Instant::now() + began.elapsed() * SPACING;
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

    /// All records are there, and safe.
    pub(crate) fn finish(&mut self) -> Result<()> {
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
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() < BUFFER { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.write_all(&self.bytes)?;
        self.bytes.clear();
        self.to.flush()
    }
}

/// The file is whole or not there: a reader never sees half of one.
fn put_file(path: &Path, fresh: &Path, content: Option<&[u8]>) -> io::Result<()> {
    let Some(content) = content else {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    fs::write(fresh, content)?;
    match (fs::rename(fresh, path), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(folder)?;
            fs::rename(fresh, path)
        }
        (result, _) => result,
    }
}

fn lock(file: &File, path: &Path) -> Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            Err(Failure::environment(format!("another gpu-run writes to {} now", path.display())).into())
        }
        // Some file systems have no locks; then nobody is kept out.
        Err(TryLockError::Error(_)) => Ok(()),
    }
}
