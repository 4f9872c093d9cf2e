//! What a map is to do.

use crate::shard::Shard;
use gpu_run_device::Device;
use gpu_run_objects::{Object, ObjectFolder};
use gpu_run_wasi::{Builder, Preopen};
use std::ffi::OsString;
use std::fmt;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Where records are read from.
pub enum Input {
    Stdin,
    /// A file, a pipe, or with [`Split::Files`] a folder.
    Path(PathBuf),
    Object(Object),
    /// With [`Split::Files`].
    Objects(ObjectFolder),
    /// Can be read once. No other process can continue it.
    Stream(Box<dyn Read + Send>),
}

/// Where the records' outputs are written.
pub enum Output {
    /// After an interruption, it cannot be continued.
    Stream(Box<dyn Write + Send>),
    /// A file, a pipe, or with [`Split::Files`] a folder.
    Path(PathBuf),
    Object(Object),
    /// With [`Split::Files`].
    Objects(ObjectFolder),
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    Lines,
    /// A line, which must be JSON.
    Jsonl,
    /// A row, with the header before it.
    Csv,
    /// A file in a folder, or in a folder below it; also where both are objects.
    Files,
}

/// What happens to an output that an earlier run left unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    Refuse,
    /// Continues where the earlier run stopped: no record is lost, and none is written twice.
    Resume,
    Overwrite,
}

/// Records in a batch on a GPU, unless the user chooses.
pub const GPU_BATCH: u32 = 131_072;
const CPU_BATCH: u32 = 1024;

/// Returns how many records a batch on a device has, unless the user chooses.
pub fn usual_batch(device: &dyn Device) -> u32 {
    if device.is_gpu() { GPU_BATCH } else { CPU_BATCH }
}

/// How records become instances, and what limits apply.
#[derive(Clone, Debug)]
pub struct Options {
    pub split: Split,
    /// What every instance gets: environment, folders, the program's name, and `args` unless [`differ`](crate::differ)
    /// says that each record has its own.
    pub context: Builder,
    pub args: Vec<OsString>,
    /// What `context` was made from. The journal records it: only the same task may continue an unfinished output.
    pub env: Vec<(String, OsString)>,
    pub folders: Vec<Preopen>,
    /// Whether to follow links that lead out of an input folder, and links on the way to input and output that a guest
    /// may have made.
    pub follow_links: bool,
    /// The one part of the input that is mapped. Its output lies beside the others'; [`Merge`](crate::Merge) puts them
    /// together.
    pub shard: Option<Shard>,
    pub unfinished: Unfinished,
    /// Whether the map stops before the first record that fails.
    pub fail_fast: bool,
    /// For all records of one launch together.
    pub timeout: Option<Duration>,
    pub max_memory: Option<u64>,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("Stdin"),
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Object(object) => object.fmt(f),
            Self::Objects(folder) => folder.fmt(f),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(_) => f.write_str("Stream"),
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Object(object) => object.fmt(f),
            Self::Objects(folder) => folder.fmt(f),
        }
    }
}

/// Journals contain these words.
impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lines => "lines",
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Files => "files",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_run_wasi::Access;

    #[test]
    fn journals_of_earlier_versions_know_a_folder_again() {
        let folder = Preopen { host: "a".into(), guest: "/b".into(), access: Access::ReadWrite };
        assert_eq!(format!("{folder:?}"), r#"Preopen { host: "a", guest: "/b", access: ReadWrite }"#);
    }
}
