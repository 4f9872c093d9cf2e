//! What a map is to do.

use crate::function::Function;
use crate::shard::Shard;
use gpu_run_device::Device;
use gpu_run_objects::{Error as ObjectError, Object, ObjectFolder};
use gpu_run_wasi::{Builder, Preopen};
use std::ffi::OsString;
use std::fmt;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Where records are read from.
pub enum Input {
    Stdin,
    /// A file, a pipe, or with [`Split::Files`] a folder.
    Path(PathBuf),
    /// With [`Split::Files`], the folder of objects of this name.
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
    /// With [`Split::Files`], the folder of objects of this name.
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

/// Calls of a function that an instance serves in a usual batch. More would make a batch take longer than one of
/// programs, and with it what an interrupted map does again.
const CALLS_OF_INSTANCE: u32 = 16;

/// Returns how many records a batch has if a function is called for each, unless the user chooses.
pub fn usual_batch_of_calls(device: &dyn Device) -> u32 {
    usual_batch(device) * CALLS_OF_INSTANCE
}

/// How records become instances, and what limits apply.
#[derive(Clone, Debug)]
pub struct Options {
    pub split: Split,
    /// What every instance gets: environment, folders, the program's name, and `args` unless [`differ`](crate::differ)
    /// says that each record has its own, or a function is called.
    pub context: Builder,
    /// Is called for each record, instead of running the program. Its arguments are `args`, where `{}` stands for those
    /// of the record; without any, they are the record's.
    pub function: Option<Function>,
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
    /// When this becomes true, the map stops as soon as it can: nothing more is written, and launches end.
    pub interrupt: Option<Arc<AtomicBool>>,
}

impl Input {
    /// Returns the object that a path is the address of, such as `s3://bucket/in.txt`, or the folder of objects, such as
    /// `s3://bucket/in/`; else the file or folder.
    pub fn at(path: impl AsRef<Path>) -> Result<Self, ObjectError> {
        place(path.as_ref(), Self::Objects, Self::Object, Self::Path)
    }
}

impl Output {
    /// Returns the object that a path is the address of, such as `s3://bucket/out.txt`, or the folder of objects, such as
    /// `s3://bucket/out/`; else the file or folder.
    pub fn at(path: impl AsRef<Path>) -> Result<Self, ObjectError> {
        place(path.as_ref(), Self::Objects, Self::Object, Self::Path)
    }
}

/// What a path is, made of a folder of objects, of an object, or of the path of a file or folder.
fn place<T>(
    path: &Path,
    objects: fn(ObjectFolder) -> T,
    object: fn(Object) -> T,
    files: fn(PathBuf) -> T,
) -> Result<T, ObjectError> {
    Ok(match path.to_str().filter(|path| Object::is_address(path)) {
        Some(address) if ObjectFolder::is_address(address) => objects(ObjectFolder::open(address)?),
        Some(address) => object(Object::open(address)?),
        None => files(path.to_owned()),
    })
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
    fn an_address_is_that_of_an_object_or_of_a_folder_of_objects() {
        for (at, found) in [
            ("s3://bucket/in", "Object("),
            ("s3://bucket/in/", "ObjectFolder("),
            ("s3://bucket", "ObjectFolder("),
            ("bucket/in/", "Path("),
        ] {
            let (input, output) = (format!("{:?}", Input::at(at).unwrap()), format!("{:?}", Output::at(at).unwrap()));
            assert!(input.starts_with(found) && output == input, "{at}: {input} {output}");
        }
        for (at, why) in
            [("s3://", "it names no bucket"), ("https://host/in/", "cannot be listed"), ("ftp://a/b", "s3://")]
        {
            let error = Input::at(at).unwrap_err().to_string();
            assert!(error.contains(why) && Output::at(at).is_err(), "{at}: {error}");
        }
    }

    #[test]
    fn journals_of_earlier_versions_know_a_folder_again() {
        let folder = Preopen { host: "a".into(), guest: "/b".into(), access: Access::ReadWrite };
        assert_eq!(format!("{folder:?}"), r#"Preopen { host: "a", guest: "/b", access: ReadWrite }"#);
    }
}
