//! What a map is asked to do.

use gpu_run_device::Device;
use gpu_run_wasi::{Builder, Preopen};
use std::ffi::OsString;
use std::fmt;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

/// What the records are read from.
pub enum Input {
    Stdin,
    /// A file, a pipe, or with [`Split::Files`] a folder.
    Path(PathBuf),
    /// Comes once. No other process can go on with it.
    Stream(Box<dyn Read + Send>),
}

/// What the records' outputs are written to.
pub enum Output {
    /// Nothing of it can be gone on with after an interruption.
    Stream(Box<dyn Write + Send>),
    /// A file, a pipe, or with [`Split::Files`] a folder.
    Path(PathBuf),
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    Lines,
    /// A line, which must be JSON.
    Jsonl,
    /// A row, with the header before it.
    Csv,
    /// A file of a folder, or of the folders in it.
    Files,
}

/// What is done with an output that an earlier run has not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    Refuse,
    /// Goes on where the earlier run was: nothing is lost, nothing is there twice.
    Resume,
    Overwrite,
}

/// Records in a batch on a GPU, unless the user says otherwise.
pub const GPU_BATCH: u32 = 131_072;
const CPU_BATCH: u32 = 1024;

/// Records in a batch on a device, unless the user says otherwise.
pub fn usual_batch(device: &dyn Device) -> u32 {
    if device.is_gpu() { GPU_BATCH } else { CPU_BATCH }
}

/// How records become instances, and what may happen to them.
#[derive(Clone, Debug)]
pub struct Options {
    pub split: Split,
    /// What every instance is given: environment, folders, the program's name and `args`, unless [`differ`](crate::differ) says that these are each record's own.
    pub context: Builder,
    pub args: Vec<OsString>,
    /// What `context` was made of: an unfinished output is gone on with by the same task only.
    pub env: Vec<(String, OsString)>,
    pub folders: Vec<Preopen>,
    /// Links in an input folder that lead out of it are followed, and links that a guest may have made on the way to input and output.
    pub follow_links: bool,
    pub unfinished: Unfinished,
    /// The map stops before the first record that fails.
    pub fail_fast: bool,
    /// For the records that run at once.
    pub timeout: Option<Duration>,
    pub max_memory: Option<u64>,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("Stdin"),
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(_) => f.write_str("Stream"),
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
        }
    }
}

/// Journals hold these words.
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
