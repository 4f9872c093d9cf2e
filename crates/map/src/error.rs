//! What can go wrong with a map, apart from its records: a failed record is an outcome, not an error.
//!
//! An error names the thing and the place. The caller, who knows the options, adds advice and the name of the option.

use crate::handover::HandoverReason;
use crate::input::SplitError;
use crate::runner::DeviceLost;
use crate::shard::Shard;
use gpu_run_objects::Error as ObjectError;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Shards that a message names, at most.
const MAX_SHARDS_NAMED: usize = 10;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    // ---- the input ----
    #[error("cannot read {}", path.display())]
    OpenInput { path: PathBuf, source: io::Error },
    #[error("cannot read the input any further: {0}")]
    RecordTooLong(SplitError),
    /// The first row of CSV.
    #[error("cannot read the input")]
    ReadHeader(#[source] SplitError),
    #[error("the input is not the one that the unfinished output was made from")]
    InputChanged,
    #[error("a map of files reads a folder, but {0}")]
    InputNotListed(ObjectError),
    #[error("{0} is a folder; only a map of files reads one")]
    InputIsFolder(String),
    #[error("only a file or a folder has shards: a stream can be read once, and by one process")]
    ShardOfStream,
    #[error("{} changed while a shard of it was mapped", .0.display())]
    InputChanging(PathBuf),

    // ---- the output ----
    #[error("the output {} and the input {} overlap: the input would be overwritten", output.display(), input.display())]
    OutputOverInput { input: PathBuf, output: PathBuf },
    #[error("the output {} is a file, but a map of files writes a folder", .0.display())]
    OutputIsFile(PathBuf),
    #[error("the output {} is a folder; only a map of files writes one", .0.display())]
    OutputIsFolder(PathBuf),
    #[error("there is no folder {}; only a map of files creates one", .0.display())]
    OutputFolderMissing(PathBuf),
    #[error("another map is writing to {}", .0.display())]
    OutputInUse(PathBuf),
    #[error("{} was replaced while the map was writing to it: it no longer holds the output", .0.display())]
    OutputReplaced(PathBuf),

    #[error("a map of files writes a folder, but {0}")]
    OutputNotListed(ObjectError),
    #[error("only a file, a folder or an object can be written in shards, not {}", .0.display())]
    ShardToStream(PathBuf),
    #[error("{} has shards that were not put together", .0.display())]
    OutputHasShards(PathBuf),

    // ---- putting shards together ----
    #[error("{} exists", .0.display())]
    OutputExists(PathBuf),
    #[error("there are no shards of {}: {} is not there", output.display(), shards.display())]
    NoShards { output: PathBuf, shards: PathBuf },
    #[error("{} has shards of several maps: {}, and {}", shards.display(), found.0.file_name(), found.1.file_name())]
    ShardsOfSeveral { shards: PathBuf, found: (Shard, Shard) },
    #[error("of the {count} shards in {}, {missing}", shards.display())]
    ShardsMissing { shards: PathBuf, count: u32, missing: MissingShards },
    /// It differs from the first shard.
    #[error("{} is a shard of another map than {}: {change}", shard.display(), first.display())]
    ShardOfAnotherMap { shard: PathBuf, first: PathBuf, change: TaskChange },
    #[error("{} does not begin where the shard before it ends: the input changed between the two", .0.display())]
    ShardOutOfPlace(PathBuf),
    #[error("{} was changed after it was finished", .0.display())]
    ShardChanged(PathBuf),

    // ---- continuing an unfinished output ----
    #[error("only a file, a folder or an object can be resumed")]
    OutputHasNoJournal,
    #[error("{} is unfinished: an earlier run was interrupted", .0.display())]
    OutputUnfinished(PathBuf),
    #[error("{} has no journal: it is finished, or map did not write it", .0.display())]
    OutputNotUnfinished(PathBuf),
    #[error("{} was changed since the unfinished run: it is shorter", .0.display())]
    OutputShorter(PathBuf),
    #[error("{} was changed since the unfinished run: its end is different", .0.display())]
    OutputEndChanged(PathBuf),
    #[error("{} was changed since the unfinished run: {} is different or missing", output.display(), file.display())]
    OutputFileChanged { output: PathBuf, file: PathBuf },
    #[error("{} {flaw}", path.display())]
    Journal { path: PathBuf, flaw: JournalFlaw },
    #[error("{0} since the unfinished run")]
    TaskChanged(TaskChange),

    // ---- either ----
    #[error("cannot {action} {}: the path leads through the link {}, in a folder that guests can write to", path.display(), link.display())]
    UntrustedLink { action: &'static str, path: PathBuf, link: PathBuf },
    #[error("cannot read {what}")]
    Read { what: String, source: io::Error },
    #[error("cannot write {what}")]
    Write { what: String, source: io::Error },
    #[error("cannot remove {}", path.display())]
    Remove { path: PathBuf, source: io::Error },

    // ---- running ----
    #[error(transparent)]
    Engine(#[from] gpu_run_compiler::Error),
    #[error(transparent)]
    DeviceLost(DeviceLost),
    #[error("the device was lost {times} times in a row: {lost}")]
    DeviceLostAgain { times: u32, lost: DeviceLost },
    #[error("a record from {first} on does not finish and cannot be stopped")]
    Hung { first: u64 },
    #[error("cannot start the {name}'s thread")]
    StartThread { name: &'static str, source: io::Error },
    #[error("internal error: {0}")]
    Internal(&'static str),

    // ---- continuing in another process ----
    #[error("cannot continue in a new process: {} was replaced while the map ran", .0.display())]
    PathReplaced(PathBuf),
    #[error("cannot continue in a new process: links of {} were changed while the map ran", .0.display())]
    LinksChanged(PathBuf),
    #[error("cannot take over a map ({variable}={number:?})")]
    TakeHandover { variable: &'static str, number: OsString, source: io::Error },
    #[error("cannot continue to read the input")]
    TakeInput(#[source] io::Error),
    #[error("cannot pass the input to a new process")]
    GiveInput(#[source] io::Error),
    #[error("{reason}, but that process cannot be started")]
    GiveHandover { reason: HandoverReason, source: io::Error },
}

impl Error {
    pub(crate) fn read(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Read { what: what.into(), source: source.into() }
    }

    pub(crate) fn write(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Write { what: what.into(), source: source.into() }
    }
}

/// Why a journal is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalFlaw {
    #[error("is not a regular file")]
    NoFile,
    #[error("is damaged, or is not a journal of this version of gpu-run")]
    Damaged,
    #[error("is not a journal that this version of gpu-run can read")]
    Unknown,
}

/// What has changed since an unfinished output was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskChange {
    #[error("the program has changed")]
    Program,
    #[error("the input has changed")]
    Input,
    #[error("the way to split the input has changed")]
    Split,
    #[error("the function that is called has changed")]
    Function,
    #[error("the guest's arguments have changed")]
    Args,
    #[error("the guest's folders have changed")]
    Folders,
    #[error("the guest's environment has changed")]
    Env,
    #[error("the memory limit has changed")]
    MaxMemory,
    #[error("the target of a link in the input, or whether links are followed, has changed")]
    Links,
    #[error("the shard's numbers have changed")]
    Shard,
}

/// Shards that cannot be put together yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingShards {
    /// Shards of which there is nothing.
    pub missing: Vec<Shard>,
    /// Shards that were begun.
    pub unfinished: Vec<Shard>,
}

impl fmt::Display for MissingShards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |shards: &[Shard], what: &str| {
            let shown: Vec<_> = shards.iter().take(MAX_SHARDS_NAMED).map(|shard| shard.index().to_string()).collect();
            let dots = if shards.len() > MAX_SHARDS_NAMED { ", …" } else { "" };
            let are = if shards.len() == 1 { "is" } else { "are" };
            format!("{} {are} {what} ({}{dots})", shards.len(), shown.join(", "))
        };
        match (&self.missing[..], &self.unfinished[..]) {
            (missing, []) => f.write_str(&told(missing, "missing")),
            ([], unfinished) => f.write_str(&told(unfinished, "unfinished")),
            (missing, unfinished) => {
                write!(f, "{} and {}", told(missing, "missing"), told(unfinished, "unfinished"))
            }
        }
    }
}
