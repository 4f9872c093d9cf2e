//! Puts shards together that are objects, into an object or a file: what [`Merge`](crate::Merge) does with files.
//!
//! An object is sent in parts. A *note*, an object beside it, says which shards it is made from and which parts were sent:
//! where a merge was killed, the next one continues. A file is written under a temporary name.

use crate::error::Error;
use crate::folder::{FolderEntry, Trust};
use crate::merge::{Merged, Sequence, check_all_there, count_of};
use crate::output::journal::{self, Content, SUFFIX, Tail, with_suffix};
use crate::output::shards;
use crate::shard::Shard;
use gpu_run_objects::{Entry, Error as ObjectError, Object, ObjectFolder, Parts, Reader, Upload};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Suffix of the note's name, and of a temporary file's, after the output's name.
const MERGE_SUFFIX: &str = ".gpu-run-merge";
/// Journals that are read at once.
const JOURNALS_AT_ONCE: usize = 32;
/// Bytes that are sent between two notes.
const NOTE_SPACING: u64 = 32 << 20;
const COPIED_AT_ONCE: usize = 1 << 20;

/// What is to be put together.
#[derive(Clone, Debug)]
pub struct MergeObjects {
    pub shards: Shards,
    /// Whether an output that exists is replaced.
    pub force: bool,
    /// Whether the shards of an object are removed in the end.
    pub remove_shards: bool,
}

/// The shards of an output, as the shards have got it.
#[derive(Clone, Debug)]
pub enum Shards {
    /// They are put together in another place.
    OfObject(Object, MergeTo),
    /// They have written into the folder itself.
    OfFolder(ObjectFolder),
}

/// Where the shards of an object are put together.
#[derive(Clone, Debug)]
pub enum MergeTo {
    Object(Object),
    File(PathBuf),
}

impl MergeObjects {
    pub fn run(&self) -> Result<Merged, Error> {
        match &self.shards {
            Shards::OfFolder(folder) => merge_folder(folder),
            Shards::OfObject(object, to) => {
                let found = Found::find(shards::beside_object(object), object.name())?;
                let merged = found.check()?;
                match to {
                    MergeTo::Object(to) => self.to_object(&found, to)?,
                    MergeTo::File(to) => self.to_file(&found, to)?,
                }
                if self.remove_shards {
                    remove_all(&found.folder)?;
                }
                Ok(merged)
            }
        }
    }

    fn to_object(&self, found: &Found, to: &Object) -> Result<(), Error> {
        let unwritable = |error: ObjectError| Error::write(to.name(), error);
        if !to.is_writable() {
            return Err(unwritable(ObjectError::ReadOnly(to.name().to_owned())));
        }
        let note = to.beside(MERGE_SUFFIX);
        let earlier = note.get().map_err(|error| Error::read(note.name(), error))?;
        let earlier: Option<Note> = earlier.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut upload = match earlier {
            Some(earlier) if earlier.shards == found.hash && !self.force => {
                to.continue_upload(earlier.parts).map_err(unwritable)?
            }
            earlier => {
                if !self.force && to.state().map_err(unwritable)?.is_some() {
                    return Err(Error::OutputExists(to.name().into()));
                }
                if let Some(earlier) = earlier {
                    // One that cannot be given up does no harm.
                    let _ = to.continue_upload(earlier.parts).and_then(Upload::abort);
                }
                to.upload().map_err(unwritable)?
            }
        };
        let (mut skip, mut noted) = (upload.bytes(), upload.bytes());
        let write_note = |parts: &Parts| {
            let text = serde_json::to_vec(&Note { shards: found.hash.clone(), parts: parts.clone() });
            let put = text.map_err(io::Error::from).and_then(|text| Ok(note.put(text.into())?));
            put.map_err(|error| Error::write(note.name(), error))
        };
        write_note(upload.flush().map_err(unwritable)?)?;
        let mut buffer = vec![0; COPIED_AT_ONCE];
        for shard in Shard::all(found.count) {
            let (mut reader, length) = found.reader(shard)?;
            let skipped = skip.min(length);
            skip -= skipped;
            let unreadable = |error| Error::read(found.path(shard).display().to_string(), error);
            reader.seek(SeekFrom::Start(skipped)).map_err(unreadable)?;
            loop {
                let count = reader.read(&mut buffer).map_err(unreadable)?;
                if count == 0 {
                    break;
                }
                upload.write(&buffer[..count]).map_err(unwritable)?;
                if upload.bytes() - noted >= NOTE_SPACING && upload.can_flush() {
                    write_note(upload.flush().map_err(unwritable)?)?;
                    noted = upload.bytes();
                }
            }
        }
        // The note comes first: whoever continues must know that nothing but this is left to do.
        write_note(upload.close().map_err(unwritable)?)?;
        upload.finish().map_err(unwritable)?;
        if self.force {
            // That of the unfinished output that was replaced.
            remove(&to.beside(SUFFIX))?;
        }
        remove(&note)
    }

    fn to_file(&self, found: &Found, to: &Path) -> Result<(), Error> {
        let unwritable = |error| Error::write(to.display().to_string(), error);
        let FolderEntry { folder, name } =
            FolderEntry::find(to, &Trust::default(), false).map_err(|error| match error {
                crate::folder::FindError::Io(error) => unwritable(error),
                crate::folder::FindError::UntrustedLink(link) => {
                    Error::UntrustedLink { action: "write", path: to.to_owned(), link }
                }
            })?;
        match folder.stat(&name).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Err(_) => {}
            Ok(FileType::Directory) => return Err(Error::OutputIsFolder(to.to_owned())),
            Ok(FileType::RegularFile) if self.force => {}
            Ok(_) => return Err(Error::OutputExists(to.to_owned())),
        }
        let stem = with_suffix(&name, MERGE_SUFFIX);
        // One that a killed merge has left and that cannot be removed does no harm.
        let _ = folder.remove_temporary(&stem);
        let (mut file, fresh) = folder.temporary(&stem).map_err(unwritable)?;
        let mut buffer = vec![0; COPIED_AT_ONCE];
        let mut copy = |shard| {
            let (mut reader, _) = found.reader(shard)?;
            loop {
                let read = reader.read(&mut buffer);
                match read.map_err(|error| Error::read(found.path(shard).display().to_string(), error))? {
                    0 => return Ok(()),
                    count => file.write_all(&buffer[..count]).map_err(unwritable)?,
                }
            }
        };
        let written = Shard::all(found.count).try_for_each(&mut copy);
        let placed = written.and_then(|()| {
            let placed = file.sync_all().and_then(|()| folder.rename(&fresh, Path::new(&name)));
            placed.and_then(|()| folder.sync()).map_err(unwritable)
        });
        if placed.is_err() {
            let _ = folder.remove(Path::new(&fresh));
        }
        placed
    }
}

fn merge_folder(output: &ObjectFolder) -> Result<Merged, Error> {
    let unreadable = |error: ObjectError| Error::read(output.name(), error);
    let found = Found::find(shards::of_objects(output).map_err(unreadable)?, output.name())?;
    let merged = found.check_with(|shard, content| {
        let Tail { path: Some(path), .. } = &content.progress.tail else { return Ok(()) };
        let changed = || Error::ShardChanged(found.path(shard));
        let name = std::str::from_utf8(path).map_err(|_| changed())?;
        let now = output.object(name).and_then(|object| object.entry()).map_err(unreadable)?;
        let tail = Tail::of_object(Some(path), now.map(|now| now.version));
        if tail == content.progress.tail { Ok(()) } else { Err(changed()) }
    })?;
    remove_all(&found.folder)?;
    Ok(merged)
}

/// What a merge that was killed has left.
#[derive(Serialize, Deserialize)]
struct Note {
    /// Hash of the shards' journals.
    shards: String,
    parts: Parts,
}

/// Shards that were found, or, if the output is a folder, their journals.
struct Found {
    folder: ObjectFolder,
    count: u32,
    entries: HashMap<String, Entry>,
    journals: Vec<Content>,
    /// Hash of all journals.
    hash: String,
}

impl Found {
    /// Finds the shards of the output, all of which must be there.
    fn find(folder: ObjectFolder, output: &str) -> Result<Self, Error> {
        let unreadable = |error: ObjectError| Error::read(folder.name(), error);
        let listed = folder.list_if_any().map_err(unreadable)?.unwrap_or_default();
        let of_journal = |entry: &Entry| Shard::of_file_name(entry.name.strip_suffix(SUFFIX)?);
        let mut begun: Vec<_> = listed.iter().filter_map(of_journal).collect();
        let path = Path::new(folder.name());
        let none = || Error::NoShards { output: output.into(), shards: path.to_owned() };
        let count = count_of(&mut begun, path)?.ok_or_else(none)?;
        let entries: HashMap<_, _> = listed.into_iter().map(|entry| (entry.name.clone(), entry)).collect();

        let (mut journals, mut hash) = (HashMap::new(), blake3::Hasher::new());
        for some in begun.chunks(JOURNALS_AT_ONCE) {
            let named = some.iter().map(|shard| (*shard, &entries[&(shard.file_name() + SUFFIX)]));
            let asked: Vec<_> = named.map(|(shard, entry)| (shard, folder.fetch(entry))).collect();
            for (shard, fetch) in asked {
                let bytes = fetch.and_then(|fetch| fetch.wait()).map_err(unreadable)?;
                let path = path.join(shard.file_name() + SUFFIX);
                journals.insert(shard.index(), journal::parsed(&bytes, &path)?);
                hash.update(&bytes);
            }
        }
        check_all_there(path, count, |shard| Ok(journals.get(&shard.index()).map(|found| found.progress.finished)))?;
        let journals = Shard::all(count).filter_map(|shard| journals.remove(&shard.index())).collect();
        let hash = hash.finalize().to_hex().to_string();
        Ok(Self { folder, count, entries, journals, hash })
    }

    fn path(&self, shard: Shard) -> PathBuf {
        Path::new(self.folder.name()).join(shard.file_name())
    }

    /// Checks that the shards belong together, and that each ends as its journal says.
    fn check(&self) -> Result<Merged, Error> {
        self.check_with(|shard, content| {
            let is_same = self.entries.get(&shard.file_name()).is_some_and(|entry| {
                entry.bytes == content.progress.output
                    && Tail::of_object(None, Some(entry.version.clone())) == content.progress.tail
            });
            if is_same { Ok(()) } else { Err(Error::ShardChanged(self.path(shard))) }
        })
    }

    fn check_with(&self, check: impl Fn(Shard, &Content) -> Result<(), Error>) -> Result<Merged, Error> {
        let mut sequence = Sequence::new(self.count);
        for (shard, content) in Shard::all(self.count).zip(&self.journals) {
            sequence.add(shard, content.clone(), |shard| self.path(shard))?;
            check(shard, content)?;
        }
        Ok(sequence.merged)
    }

    /// Reads a shard; returns also its length. If it has changed since it was checked, reading fails.
    fn reader(&self, shard: Shard) -> Result<(Reader, u64), Error> {
        let entry = self.entries.get(&shard.file_name()).ok_or_else(|| Error::ShardChanged(self.path(shard)))?;
        let reader = self.folder.reader(entry).map_err(|error| Error::read(self.folder.name(), error))?;
        Ok((reader, entry.bytes))
    }
}

fn remove(object: &Object) -> Result<(), Error> {
    object.remove().map_err(|error| Error::Remove { path: object.name().into(), source: error.into() })
}

fn remove_all(shards: &ObjectFolder) -> Result<(), Error> {
    shards::remove_objects(shards).map_err(|error| Error::Remove { path: shards.name().into(), source: error.into() })
}
