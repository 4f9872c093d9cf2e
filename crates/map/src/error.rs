//! What can go wrong with a map, apart from its records: a failed record is an outcome, not an error.
//!
//! An error names the thing and the place. The caller, who knows the options, adds advice and the name of the option.

use crate::handover::HandoverReason;
use crate::input::SplitError;
use crate::runner::DeviceLost;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    // ---- the input ----
    #[error("cannot read {}", path.display())]
    OpenInput { path: PathBuf, source: io::Error },
    #[error("cannot read on: {0}")]
    RecordTooLong(SplitError),
    /// The first row of CSV.
    #[error("cannot read the input")]
    ReadHeader(#[source] SplitError),
    #[error("the input is not the one that the unfinished output was made from")]
    InputChanged,

    // ---- the output ----
    #[error("the output {} and the input {} are in each other's way: input would be overwritten", output.display(), input.display())]
    OutputOverInput { input: PathBuf, output: PathBuf },
    #[error("the output {} is a file, and a map of files writes a folder", .0.display())]
    OutputIsFile(PathBuf),
    #[error("the output {} is a folder, and only a map of files writes one", .0.display())]
    OutputIsFolder(PathBuf),
    #[error("there is no folder {}, and only a map of files writes one", .0.display())]
    OutputFolderMissing(PathBuf),
    #[error("another map writes to {} now", .0.display())]
    OutputInUse(PathBuf),
    #[error("{} was replaced while the map wrote it: what is there now is not the output", .0.display())]
    OutputReplaced(PathBuf),

    // ---- continuing an unfinished output ----
    #[error("only a file or a folder can be gone on with")]
    OutputHasNoJournal,
    #[error("{} is unfinished: an earlier run was interrupted", .0.display())]
    OutputUnfinished(PathBuf),
    #[error("{} is not unfinished", .0.display())]
    OutputNotUnfinished(PathBuf),
    #[error("{} is shorter than it was: somebody has changed it", .0.display())]
    OutputShorter(PathBuf),
    #[error("{} does not end as it did: somebody has changed it", .0.display())]
    OutputEndChanged(PathBuf),
    #[error("{} is not as it was: somebody has changed {}", output.display(), file.display())]
    OutputFileChanged { output: PathBuf, file: PathBuf },
    #[error("{} {flaw}", path.display())]
    Journal { path: PathBuf, flaw: JournalFlaw },
    #[error("{0} since the unfinished output was begun")]
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
    #[error("a record from {first} on does not end, nor when it is told to")]
    Hung { first: u64 },
    #[error("cannot start the {name}'s thread")]
    StartThread { name: &'static str, source: io::Error },
    #[error("internal error: {0}")]
    Internal(&'static str),

    // ---- continuing in another process ----
    #[error("cannot go on in a new process: {} was replaced while the map ran", .0.display())]
    PathReplaced(PathBuf),
    #[error("cannot go on in a new process: links of {} were changed while the map ran", .0.display())]
    LinksChanged(PathBuf),
    #[error("cannot go on with a map ({variable}={number:?})")]
    TakeHandover { variable: &'static str, number: OsString, source: io::Error },
    #[error("cannot go on reading the input")]
    TakeInput(#[source] io::Error),
    #[error("cannot hand the input on")]
    GiveInput(#[source] io::Error),
    #[error("{reason}, and no other process can be started")]
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
    #[error("is no regular file")]
    NoFile,
    #[error("is damaged, or no journal of this version of gpu-run")]
    Damaged,
    #[error("is no journal that this version of gpu-run can read")]
    Unknown,
}

/// What has changed since an unfinished output was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskChange {
    #[error("the program has changed")]
    Program,
    #[error("the input has changed")]
    Input,
    #[error("the way to split it has changed")]
    Split,
    #[error("the guest's arguments have changed")]
    Args,
    #[error("the guest's folders have changed")]
    Folders,
    #[error("the guest's environment has changed")]
    Env,
    #[error("the memory an instance may have has changed")]
    MaxMemory,
    #[error("what links of the input lead to, or whether they are followed, has changed")]
    Links,
}
