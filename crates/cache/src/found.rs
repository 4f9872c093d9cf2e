//! What a cache gives, and where it came from.

use crate::in_use::InUse;
use crate::remote::Arrival;
use std::time::Duration;

/// The bytes of a key, read or compiled.
#[derive(Debug)]
pub struct Found<R = Vec<u8>> {
    pub bytes: R,
    pub origin: Origin,
    /// Keeps the entry from being evicted as long as this value lives.
    pub in_use: InUse,
}

/// The result of [`Cache::get_or_make`](crate::Cache::get_or_make): bytes read from disk lie in the caller's
/// [`Destination`](crate::Destination), bytes that were compiled or came from the remote cache in a `Vec`.
#[derive(Debug)]
pub enum Got<R> {
    Read(Found<R>),
    Made(Found),
}

/// What came first.
#[derive(Debug)]
pub enum Made {
    Compiled(Vec<u8>),
    /// The entry, from the remote cache.
    Fetched(Arrival),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The entry was on disk; compiling it took `saved`.
    Hit { saved: Duration },
    /// The entry came from the remote cache; compiling it took `saved`.
    Fetched { saved: Duration },
    /// Compiling took `took`. `kept` is the size of the new entry's file in bytes, `None` if the result was not kept.
    Miss { took: Duration, kept: Option<u64> },
}

impl Origin {
    /// How long compiling took, now or whenever it was.
    pub fn took(&self) -> Duration {
        match *self {
            Self::Hit { saved } | Self::Fetched { saved } => saved,
            Self::Miss { took, .. } => took,
        }
    }
}
