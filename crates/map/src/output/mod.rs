//! The output: opened without destroying the input, written in order, and recognized by its journal if it is
//! unfinished.

mod counts;
pub(crate) mod journal;
mod objects;
pub(crate) mod shards;
mod shared;
pub(crate) mod target;
pub(crate) mod writer;

pub use counts::Counts;
pub(crate) use shared::SharedWriter;
pub use shared::StopHandle;
pub(crate) use target::Target;

use crate::error::Error;
use crate::folder::{FindError, FolderEntry, Trust};
use crate::input::{FoundInput, is_special};
use crate::options::{Options, Output, Split};
use gpu_run_objects::{Object, ObjectFolder};
use gpu_run_run::Source;
use journal::{Identity, Task};
use rustix::fs::FileType;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Opens the output, unless that would destroy the input, which is at the path `input`, or the object `found`.
pub(crate) fn open(
    output: Output,
    input: Option<&Path>,
    found: &FoundInput,
    options: &Options,
    source: &Source,
) -> Result<Target, Error> {
    let task = |options| task(input, found, options, source);
    let output = match output {
        Output::Stream(_) if options.shard.is_some() => return Err(Error::ShardToStream("a stream".into())),
        Output::Stream(stream) => return Ok(Target::stream(stream)),
        Output::Object(object) => return open_object(object, options, task(options)?),
        Output::Objects(folder) => return open_objects(&folder, options, task(options)?),
        Output::Path(path) => path,
    };
    let task = task(options)?;
    if let Some(input) = input {
        check_apart(input, &output)?;
        if let Some(shard) = options.shard {
            check_apart(input, &shards::path_beside(&output, shard))?;
        }
    }
    if is_special(&output) {
        if options.shard.is_some() {
            return Err(Error::ShardToStream(output));
        }
        return Target::special(&output);
    }
    let is_folder = options.split == Split::Files;
    let unwritable = |error| Error::write(output.display().to_string(), error);
    let entry = FolderEntry::find(&output, &Trust::of(options), is_folder).map_err(|error| match error {
        FindError::Io(error) => unwritable(error),
        FindError::UntrustedLink(link) => Error::UntrustedLink { action: "write", path: output.clone(), link },
    })?;
    let kind = entry.kind().map_err(unwritable)?;
    // The journal of a link lies beside the file that the link leads to.
    let path = match output.is_symlink() {
        true => entry.folder.real_path().map_err(unwritable)?.join(&entry.name),
        false => output.clone(),
    };
    match (is_folder, kind) {
        (true, None | Some(FileType::Directory)) => Target::folder(entry, &path, task),
        (true, Some(_)) => Err(Error::OutputIsFile(output)),
        (false, Some(FileType::Directory)) => Err(Error::OutputIsFolder(output)),
        (false, None) if output.as_os_str().as_bytes().ends_with(b"/") => Err(Error::OutputFolderMissing(output)),
        (false, None | Some(FileType::RegularFile)) => match options.shard {
            None => Target::file(entry, &path, task),
            Some(shard) => {
                let shards = entry.folder.below(&shards::beside(&entry.name), true).map_err(unwritable)?;
                let entry = FolderEntry { folder: shards, name: shard.file_name().into() };
                Target::file(entry, &shards::path_beside(&path, shard), task)
            }
        },
        (false, Some(_)) if options.shard.is_some() => Err(Error::ShardToStream(output)),
        (false, Some(_)) => Target::device(&entry, &path),
    }
    .map(|target| target.checking(input.filter(|_| options.shard.is_some())))
}

fn open_object(object: Object, options: &Options, task: Task) -> Result<Target, Error> {
    if options.split == Split::Files {
        return open_objects(&object.into_folder().map_err(Error::OutputNotListed)?, options, task);
    }
    check_objects_apart(&task.input, object.name())?;
    let Some(shard) = options.shard else { return Target::object(object, task) };
    let shards = shards::beside_object(&object);
    check_objects_apart(&task.input, shards.name())?;
    let object = shards.object(&shard.file_name()).map_err(|error| Error::write(shards.name(), error))?;
    Target::object(object, task)
}

fn open_objects(folder: &ObjectFolder, options: &Options, task: Task) -> Result<Target, Error> {
    if options.split != Split::Files {
        return Err(Error::OutputIsFolder(folder.name().into()));
    }
    check_objects_apart(&task.input, folder.name())?;
    Target::objects(folder, task)
}

/// Refuses an output that is the input, lies within it, or contains it. Names of folders end with a `/`.
fn check_objects_apart(input: &Identity, output: &str) -> Result<(), Error> {
    let (Identity::Object { url: input, .. } | Identity::Objects { url: input }) = input else { return Ok(()) };
    let is_within = |inner: &str, outer: &str| outer.ends_with('/') && inner.starts_with(outer);
    match input == output || is_within(input, output) || is_within(output, input) {
        true => Err(Error::OutputOverInput { input: input.into(), output: output.into() }),
        false => Ok(()),
    }
}

/// Returns the task as the journal records it.
fn task(input: Option<&Path>, found: &FoundInput, options: &Options, source: &Source) -> Result<Task, Error> {
    let input = match (found.object(), input) {
        (Some(object), _) => object,
        (None, None) => Identity::Stream,
        (None, Some(path)) => Identity::of(path).map_err(|error| Error::read(path.display().to_string(), error))?,
    };
    let links = found.links();
    Ok(Task {
        program: hash(&source.wasm),
        input,
        split: options.split.to_string(),
        args: options.args.iter().map(|arg| format!("{arg:?}")).collect(),
        function: options.function.as_ref().map(|function| function.name().to_owned()),
        dirs: options.folders.iter().map(|folder| format!("{folder:?}")).collect(),
        env: hash(format!("{:?}", options.env).as_bytes()),
        max_memory: options.max_memory,
        links,
        shard: options.shard,
    })
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Refuses an output that is the input, lies within it, or contains it.
fn check_apart(input: &Path, output: &Path) -> Result<(), Error> {
    // The real path of something that does not exist yet begins with its nearest existing ancestor.
    let real = |path: &Path| {
        let path = std::path::absolute(path).ok()?;
        path.ancestors().find_map(|there| Some(fs::canonicalize(there).ok()?.join(path.strip_prefix(there).ok()?)))
    };
    let (Some(from), Some(to)) = (real(input), real(output)) else { return Ok(()) };
    let within = from.is_dir() && (to.starts_with(&from) || to.is_dir() && from.starts_with(&to));
    if from != to && !within {
        return Ok(());
    }
    Err(Error::OutputOverInput { input: input.to_owned(), output: output.to_owned() })
}
