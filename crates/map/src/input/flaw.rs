//! Why a record cannot be run.

use std::io;

/// The text follows the name of the record: `line 3 is not JSON: …`.
#[derive(Debug, thiserror::Error)]
pub enum Flaw {
    #[error("is not JSON: {0}")]
    NotJson(String),
    #[error("has a quoted field that is never closed")]
    UnclosedQuote,
    #[error("is longer than {0} bytes")]
    TooLong(usize),
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// A link that the user has not asked to follow.
    #[error("is a link out of the input folder")]
    LinkOut,
    #[error("is a link out of the input folder that was created after the map began")]
    NewLinkOut,
    #[error("is a link that leads nowhere: {0}")]
    LinkToNothing(io::Error),
    /// A function cannot be called for it.
    #[error("has wrong arguments: {0}")]
    NoArguments(String),
    #[error("cannot be an argument: {0}")]
    NoArgument(gpu_run_wasi::Error),
    /// It ran before, and only the end of its process stopped it.
    #[error("did not finish in time and could not be stopped")]
    DidNotEnd,
}

impl Flaw {
    pub(super) fn unreadable(error: io::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}
