//! Errors of a machine.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Engine(#[from] gpu_run_compiler::Error),
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    /// The file is something else.
    #[error("{} cannot be used: {why}", path.display())]
    Foreign { path: PathBuf, why: String },
    /// The file was a checkpoint or a log, and is damaged.
    #[error("{} cannot be used: {why}", path.display())]
    Damaged { path: PathBuf, why: String },
    #[error(
        "{} holds a machine of version {theirs}, but this gpu-run has version {ours}: \
         resume it with the gpu-run that wrote it, or boot without it", path.display()
    )]
    Version { path: PathBuf, theirs: u32, ours: u32 },
    /// The ring is full: the machine takes events more slowly than they are posted.
    #[error("the machine has {waiting} events waiting and takes no more: post again later")]
    Full { waiting: u32 },
    #[error("the machine has not responded for {seconds:.1} s{}: {what}", stuck(.phase))]
    Silent { seconds: f64, phase: Option<&'static str>, what: String },
    #[error("the machine did not {what} within {seconds} s")]
    Slow { what: &'static str, seconds: u64 },
    #[error("{0}")]
    Usage(String),
}

fn stuck(phase: &Option<&'static str>) -> String {
    phase.map_or(String::new(), |phase| format!(" (in the phase `{phase}`)"))
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds a file's path to an I/O error.
pub(crate) trait At<T> {
    fn at(self, path: &std::path::Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &std::path::Path) -> Result<T> {
        self.map_err(|error| Error::File { path: path.to_owned(), error })
    }
}
