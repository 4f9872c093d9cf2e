//! Where the shards of an output are.
//!
//! The shards of a file `OUT` are files in the folder `OUT.shards` beside it: `0-of-64`, `1-of-64` and so on, each with
//! its journal. The shards of a folder write into that folder itself, because no two records have the same name. What
//! they need besides lies in `.gpu-run-map.shards` in the folder, under the same names: a file that is locked while the
//! shard is written, and the shard's journal.
//!
//! Where the output is an object, or a folder of objects, shards and journals are objects of the same names.

use super::journal::{SUFFIX, with_suffix};
use crate::folder::Folder;
use crate::shard::Shard;
use gpu_run_objects::{Error as ObjectError, Object, ObjectFolder};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Suffix of the folder's name, after the output's name.
const SHARDS_SUFFIX: &str = ".shards";
/// Suffix of the folder's name while it is being removed.
const MERGED_SUFFIX: &str = ".merged";

/// Returns the name of the folder with the shards of the file `file`.
pub(crate) fn beside(file: &OsStr) -> OsString {
    with_suffix(file, SHARDS_SUFFIX)
}

/// Returns the name of the folder with the shards of the folder that it is in.
pub(crate) fn within() -> OsString {
    with_suffix(SUFFIX.as_ref(), SHARDS_SUFFIX)
}

/// Returns the path of a shard of the file `output`.
pub(crate) fn path_beside(output: &Path, shard: Shard) -> PathBuf {
    output.with_file_name(beside(output.file_name().unwrap_or_default())).join(shard.file_name())
}

/// Returns the folder with the shards of the object `output`.
pub(crate) fn beside_object(output: &Object) -> ObjectFolder {
    output.folder_beside(SHARDS_SUFFIX)
}

/// Returns the folder with the journals of the shards of a folder of objects.
pub(crate) fn of_objects(output: &ObjectFolder) -> Result<ObjectFolder, ObjectError> {
    output.below(&format!("{SUFFIX}{SHARDS_SUFFIX}"))
}

/// Removes the shards and the journals in a folder of objects. The journals go first: without one, a shard is missing.
pub(crate) fn remove_objects(shards: &ObjectFolder) -> Result<(), ObjectError> {
    let (mut puts, found) = (shards.puts(), shards.list_if_any()?.unwrap_or_default());
    let (journals, others): (Vec<_>, Vec<_>) =
        found.iter().filter(|entry| is_of_shard(entry.name.as_ref())).partition(|entry| entry.name.ends_with(SUFFIX));
    for entry in journals {
        puts.put(&entry.name, None)?;
    }
    puts.flush()?;
    for entry in others {
        puts.put(&entry.name, None)?;
    }
    puts.flush()
}

/// Whether a shard of the folder `root` was begun.
pub(crate) fn are_begun(root: &Folder) -> bool {
    root.below(&within(), false).and_then(|shards| begun(&shards)).is_ok_and(|shards| !shards.is_empty())
}

/// Returns the shards in a folder of shards that were begun, which are those that have a journal.
pub(crate) fn begun(shards: &Folder) -> io::Result<Vec<Shard>> {
    let of_journal = |name: OsString| Shard::of_file_name(name.to_str()?.strip_suffix(SUFFIX)?);
    Ok(shards.list(Path::new(""))?.into_iter().filter_map(|(name, _)| of_journal(name)).collect())
}

/// Removes a folder of shards. It is renamed first: no shard is ever missing among others.
pub(crate) fn remove(parent: &Folder, name: &OsStr) -> io::Result<()> {
    let merged = with_suffix(name, MERGED_SUFFIX);
    // One that an interrupted removal has left.
    remove_files(parent, &merged)?;
    parent.rename(name, Path::new(&merged))?;
    remove_files(parent, &merged)
}

/// Removes the shards and the journals in a folder, and the folder if nothing else is in it.
fn remove_files(parent: &Folder, name: &OsStr) -> io::Result<()> {
    if parent.stat(name).is_err() {
        return Ok(());
    }
    let folder = parent.below(name, false)?;
    for (name, _) in folder.list(Path::new(""))?.into_iter().filter(|(name, _)| is_of_shard(name)) {
        folder.remove(Path::new(&name))?;
    }
    parent.remove_folder(name)
}

/// Whether a file belongs to a shard: its own file, its journal, or what a killed run has left of a journal.
fn is_of_shard(name: &OsStr) -> bool {
    let shard = |name: &str| Shard::of_file_name(name.split_once('.').map_or(name, |(shard, _)| shard));
    name.to_str().and_then(shard).is_some()
}
