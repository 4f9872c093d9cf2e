//! Puts the finished shards of an output together.
//!
//! Nothing is believed: each shard's journal says what the shard is and how it ends, and all of them must speak of the
//! same map, and of shards that follow each other without a gap. Only then is the output written, under a temporary name,
//! and gets its own name in one step. The shards of a folder have written into the folder itself: there, only their
//! journals are removed.
//!
//! Shards that are objects are put together by `merge_objects.rs`.
//!
//! Links on the way to the output are followed, whoever made them: the output is written only into the folder in which
//! the shards lie. No link is followed from there on.

use crate::error::{Error, MissingShards};
use crate::folder::{FindError, Folder, FolderEntry, Trust};
use crate::output::journal::{self, Content, Progress, SUFFIX, Tail, Task, with_suffix};
use crate::output::shards;
use crate::output::target::{is_locked, lock};
use crate::shard::Shard;
use rustix::fs::{FileType, OFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Suffix of the temporary file's name, after the output's name.
const TEMPORARY_SUFFIX: &str = ".gpu-run-merge";

/// What is to be put together.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The output, as the shards have got it.
    pub output: PathBuf,
    /// Whether an output that exists is replaced.
    pub force: bool,
    /// Whether the shards of a file are removed in the end.
    pub remove_shards: bool,
}

/// What was put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    pub shards: u32,
    pub records: u64,
    /// Records that failed.
    pub failed: u64,
}

impl Merge {
    pub fn run(&self) -> Result<Merged, Error> {
        let output = &self.output;
        let unreadable = |error| Error::read(output.display().to_string(), error);
        let entry = FolderEntry::find(output, &Trust::default(), false).map_err(|error| match error {
            FindError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                let shards = output.with_file_name(shards::beside(output.file_name().unwrap_or_default()));
                Error::NoShards { output: output.clone(), shards }
            }
            FindError::Io(error) => unreadable(error),
            FindError::UntrustedLink(link) => Error::UntrustedLink { action: "write", path: output.clone(), link },
        })?;
        match entry.kind().map_err(unreadable)? {
            None => self.merge_file(&entry),
            Some(FileType::RegularFile) => {
                if !self.force {
                    return Err(Error::OutputExists(output.clone()));
                }
                let old =
                    entry.open(OFlags::RDWR).map_err(|error| Error::write(output.display().to_string(), error))?;
                lock(&old, output)?;
                self.merge_file(&entry)
            }
            Some(FileType::Directory) => self.merge_folder(entry),
            Some(_) => Err(Error::ShardToStream(output.clone())),
        }
    }

    fn merge_file(&self, entry: &FolderEntry) -> Result<Merged, Error> {
        let (output, name) = (&self.output, shards::beside(&entry.name));
        let shards = Shards::open(&entry.folder, &name, output.with_file_name(&name), output, None)?;
        // Two merges would do the same.
        let held = shards.folder.as_file().map_err(|error| Error::read(shards.path.display().to_string(), error))?;
        lock(&held, &shards.path)?;
        shards.check_all_there()?;
        shards.each(|_, _, _| Ok(()))?;

        let unwritable = |error| Error::write(output.display().to_string(), error);
        let stem = with_suffix(&entry.name, TEMPORARY_SUFFIX);
        // One that a killed merge has left and that cannot be removed does no harm.
        let _ = entry.folder.remove_temporary(&stem);
        let (mut file, fresh) = entry.folder.temporary(&stem).map_err(unwritable)?;
        let written = shards.each(|mut shard, path, length| {
            let copied = io::copy(&mut shard, &mut file)
                .map_err(|error| Error::write(format!("{} from {}", output.display(), path.display()), error))?;
            if copied == length { Ok(()) } else { Err(Error::ShardChanged(path.to_owned())) }
        });
        let placed = written.and_then(|merged| {
            let placed = file.sync_all().and_then(|()| entry.folder.rename(&fresh, Path::new(&entry.name)));
            placed.and_then(|()| entry.folder.sync()).map(|()| merged).map_err(unwritable)
        });
        if placed.is_err() {
            let _ = entry.folder.remove(Path::new(&fresh));
        }
        let merged = placed?;
        let removed = |path: PathBuf| |source| Error::Remove { path, source };
        if self.force {
            // That of the unfinished output that was replaced.
            let journal = with_suffix(&entry.name, SUFFIX);
            entry.folder.remove(Path::new(&journal)).map_err(removed(output.with_file_name(&journal)))?;
        }
        if self.remove_shards {
            shards::remove(&entry.folder, &name).map_err(removed(shards.path.clone()))?;
        }
        Ok(merged)
    }

    fn merge_folder(&self, entry: FolderEntry) -> Result<Merged, Error> {
        let (output, name) = (&self.output, shards::within());
        let unreadable = |error| Error::read(output.display().to_string(), error);
        let root = entry.into_folder(false).map_err(unreadable)?;
        // No shard is being written now.
        let held = root.as_file().map_err(unreadable)?;
        lock(&held, output)?;
        let shards = Shards::open(&root, &name, output.join(&name), output, Some(&root))?;
        shards.check_all_there()?;
        let merged = shards.each(|_, _, _| Ok(()))?;
        let removed = shards::remove(&root, &name).and_then(|()| root.sync());
        removed.map_err(|source| Error::Remove { path: shards.path.clone(), source })?;
        Ok(merged)
    }
}

/// The folder with the shards of an output, or, if the output is a folder, with their journals.
struct Shards<'a> {
    folder: Folder,
    path: PathBuf,
    count: u32,
    /// The output, if it is a folder.
    root: Option<&'a Folder>,
}

impl<'a> Shards<'a> {
    fn open(
        parent: &Folder,
        name: &OsStr,
        path: PathBuf,
        output: &Path,
        root: Option<&'a Folder>,
    ) -> Result<Self, Error> {
        let none = || Error::NoShards { output: output.to_owned(), shards: path.clone() };
        let unreadable = |error| Error::read(path.display().to_string(), error);
        let folder = match parent.below(name, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(none()),
            folder => folder.map_err(unreadable)?,
        };
        let mut found = shards::begun(&folder).map_err(unreadable)?;
        let count = count_of(&mut found, &path)?.ok_or_else(none)?;
        Ok(Self { folder, path, count, root })
    }

    fn path(&self, shard: Shard) -> PathBuf {
        self.path.join(shard.file_name())
    }

    fn journal(&self, shard: Shard) -> Result<Option<Content>, Error> {
        let name = shard.file_name() + SUFFIX;
        journal::content(&self.folder, name.as_ref(), &self.path.join(&name))
    }

    /// Names the shards that are missing or unfinished, if there are any.
    fn check_all_there(&self) -> Result<(), Error> {
        check_all_there(&self.path, self.count, |shard| {
            Ok(self.journal(shard)?.map(|content| content.progress.finished))
        })
    }

    /// Checks each shard, and gives its file, path and length to `visit`, in order.
    fn each(&self, mut visit: impl FnMut(File, &Path, u64) -> Result<(), Error>) -> Result<Merged, Error> {
        let mut sequence = Sequence::new(self.count);
        for shard in Shard::all(self.count) {
            let path = self.path(shard);
            let Some(content) = self.journal(shard)? else {
                return Err(Error::ShardChanged(path));
            };
            let progress = sequence.add(shard, content, |shard| self.path(shard))?;
            visit(self.checked(shard, &path, progress)?, &path, progress.output)?;
        }
        Ok(sequence.merged)
    }

    /// Opens a shard's file, and checks that nobody is writing to the shard, and that it ends as its journal says.
    fn checked(&self, shard: Shard, path: &Path, progress: &Progress) -> Result<File, Error> {
        let unreadable = |error: io::Error| Error::read(path.display().to_string(), error);
        let (file, stat) = self.folder.read(Path::new(&shard.file_name())).map_err(|error| unreadable(error.into()))?;
        is_locked(file.try_lock_shared(), path)?;
        let last = progress.tail.path.as_ref().map(|path| Path::new(OsStr::from_bytes(path)));
        let tail = match (self.root, last) {
            (Some(root), Some(last)) => Tail::of_record(root, last),
            (Some(_), None) => Ok(Tail::default()),
            (None, _) if stat.st_size as u64 != progress.output => return Err(Error::ShardChanged(path.to_owned())),
            (None, _) => Tail::of_output(&file, progress.output),
        };
        let is_same = progress.finished && tail.map_err(unreadable)? == progress.tail;
        if is_same { Ok(file) } else { Err(Error::ShardChanged(path.to_owned())) }
    }
}

/// Returns how many shards those that were found are part of; `None` if none were.
pub(crate) fn count_of(found: &mut [Shard], path: &Path) -> Result<Option<u32>, Error> {
    found.sort_by_key(|shard| (shard.count(), shard.index()));
    let Some((first, last)) = found.first().copied().zip(found.last().copied()) else { return Ok(None) };
    if first.count() != last.count() {
        return Err(Error::ShardsOfSeveral { shards: path.to_owned(), found: (first, last) });
    }
    Ok(Some(first.count()))
}

/// Names the shards that are missing or unfinished, if there are any. `finished` says whether a shard is finished; `None` if
/// it is not there.
pub(crate) fn check_all_there(
    path: &Path,
    count: u32,
    mut finished: impl FnMut(Shard) -> Result<Option<bool>, Error>,
) -> Result<(), Error> {
    let mut missing = MissingShards::default();
    for shard in Shard::all(count) {
        match finished(shard)? {
            None => missing.missing.push(shard),
            Some(false) => missing.unfinished.push(shard),
            Some(true) => {}
        }
    }
    match missing == MissingShards::default() {
        true => Ok(()),
        false => Err(Error::ShardsMissing { shards: path.to_owned(), count, missing }),
    }
}

/// Checks that shards are of one map, and follow each other without a gap.
pub(crate) struct Sequence {
    before: Option<Content>,
    pub(crate) merged: Merged,
}

impl Sequence {
    pub(crate) fn new(count: u32) -> Self {
        Self { before: None, merged: Merged { shards: count, ..Merged::default() } }
    }

    /// Adds the next shard, of which `content` is the journal. `path` names a shard in messages.
    pub(crate) fn add(
        &mut self,
        shard: Shard,
        content: Content,
        path: impl Fn(Shard) -> PathBuf,
    ) -> Result<&Progress, Error> {
        let Content { task, progress, .. } = &content;
        let expected = self.before.as_ref().map_or(task, |before| &before.task).clone();
        if let Some(change) = task.difference(&Task { shard: Some(shard), ..expected }) {
            let first = path(Shard::first(shard.count()));
            return Err(Error::ShardOfAnotherMap { shard: path(shard), first, change });
        }
        let follows = match &self.before {
            None => progress.start.records == 0,
            Some(Content { progress: Progress { mark, .. }, .. }) => {
                (progress.start.records, &progress.start.seen) == (mark.records, &mark.seen)
            }
        };
        if !follows {
            return Err(Error::ShardOutOfPlace(path(shard)));
        }
        self.merged.records += progress.records();
        self.merged.failed += progress.failed;
        Ok(&self.before.insert(content).progress)
    }
}
