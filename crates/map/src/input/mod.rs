//! The input: found, opened, and read as records.

pub(crate) mod chain;
mod files;
mod flaw;
mod links;
mod objects;
pub(crate) mod reader;
mod split;
pub(crate) mod tape;
mod walk;

pub use flaw::Flaw;
pub use reader::Location;
pub use split::SplitError;

pub(crate) use split::{ByteSource, Rule, separator};

use crate::error::Error;
use crate::folder::{FindError, FolderEntry, Trust};
use crate::handover::{Contents, Stream, open_stream};
use crate::options::{Input, Options, Split};
use crate::output::journal::{Identity, Progress};
use crate::shard::Shard;
use chain::Anchor;
use gpu_run_objects::Reader as ObjectReader;
use links::InputFolder;
use objects::ObjectFiles;
use reader::Reader;
use rustix::fs::{FileType, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use tape::Tape;

/// Where the input is.
pub(crate) enum FoundInput {
    Stdin,
    Stream(Box<dyn Read + Send>),
    /// A path to something that the process has open already.
    Special(PathBuf),
    File(FolderEntry, PathBuf),
    Object(Box<ObjectReader>),
    Folder(InputFolder),
    Objects(Box<ObjectFiles>),
}

/// An input that is open.
#[derive(Debug)]
pub(crate) struct OpenInput {
    pub(crate) reader: Reader,
    /// The bytes up to its end, or to its shard's, if known.
    pub(crate) length: Option<u64>,
    pub(crate) again: ReadAgain,
}

/// How another process gets the input that was read but not written.
#[derive(Clone, Debug)]
pub(crate) enum ReadAgain {
    /// It opens the input itself.
    FromPath,
    /// The input can be read only once, so what was read is kept. `is_stdin`: the other process inherits it.
    FromTape {
        tape: Tape,
        is_stdin: bool,
    },
    Never,
}

impl ReadAgain {
    pub(crate) fn tape(&self) -> Option<&Tape> {
        match self {
            Self::FromTape { tape, .. } => Some(tape),
            Self::FromPath | Self::Never => None,
        }
    }
}

impl FoundInput {
    /// Finds the input. Refuses a path that leads through links which a guest may have made, and a shard of what can be
    /// read only once.
    pub(crate) fn find(input: Input, options: &Options) -> Result<Self, Error> {
        let path = match input {
            Input::Stdin | Input::Stream(_) if options.shard.is_some() => return Err(Error::ShardOfStream),
            Input::Stdin => return Ok(Self::Stdin),
            Input::Stream(stream) => return Ok(Self::Stream(stream)),
            Input::Object(object) if options.split == Split::Files => {
                let folder = object.into_folder().map_err(Error::InputNotListed)?;
                return Ok(Self::Objects(Box::new(ObjectFiles::list(folder)?)));
            }
            Input::Objects(folder) if options.split != Split::Files => {
                return Err(Error::InputIsFolder(folder.name().to_owned()));
            }
            Input::Objects(folder) => return Ok(Self::Objects(Box::new(ObjectFiles::list(folder)?))),
            Input::Object(object) => {
                let reader = object.reader().map_err(|error| Error::read(object.name(), error))?;
                return Ok(Self::Object(Box::new(reader)));
            }
            Input::Path(path) => path,
        };
        if is_special(&path) {
            return if options.shard.is_some() { Err(Error::ShardOfStream) } else { Ok(Self::Special(path)) };
        }
        let entry = FolderEntry::find(&path, &Trust::of(options), false).map_err(|error| match error {
            FindError::Io(error) => Error::read(path.display().to_string(), error),
            FindError::UntrustedLink(link) => Error::UntrustedLink { action: "read", path: path.clone(), link },
        })?;
        if options.split != Split::Files {
            // Looked at before it is opened: opening a pipe waits for whoever writes to it.
            let is_stream = || entry.kind().is_ok_and(|kind| kind.is_some_and(|kind| kind != FileType::RegularFile));
            return if options.shard.is_some() && is_stream() {
                Err(Error::ShardOfStream)
            } else {
                Ok(Self::File(entry, path))
            };
        }
        let folder = entry.into_folder(false).map_err(|source| Error::OpenInput { path, source })?;
        Ok(Self::Folder(InputFolder::new(folder, options.follow_links)?))
    }

    /// Returns what a journal recognizes an object, or a folder of objects, by.
    pub(crate) fn object(&self) -> Option<Identity> {
        match self {
            Self::Object(object) => {
                let (url, state) = (object.object().name().to_owned(), object.state());
                Some(Identity::Object { url, bytes: state.bytes, version: state.version.clone() })
            }
            Self::Objects(files) => Some(Identity::Objects { url: files.folder().name().to_owned() }),
            _ => None,
        }
    }

    /// See [`InputFolder::links`].
    pub(crate) fn links(&self) -> Option<String> {
        match self {
            Self::Folder(folder) => folder.links(),
            _ => None,
        }
    }

    /// Opens the input, or one shard of it, and skips what an earlier run did. `handed` is what another process has read
    /// of a stream.
    pub(crate) fn open(
        self,
        split: Split,
        shard: Option<Shard>,
        from: &Progress,
        handed: Option<(Stream, Contents)>,
    ) -> Result<OpenInput, Error> {
        let number = handed.as_ref().and_then(|(stream, _)| stream.file);
        let is_stdin = matches!(self, Self::Stdin);
        let rule = match split {
            Split::Jsonl => Rule::Jsonl,
            Split::Csv => Rule::Csv,
            Split::Lines | Split::Files => Rule::Lines,
        };
        let unreadable = |path| |source| Error::OpenInput { path, source };
        let file = match (self, number) {
            (Self::Folder(folder), _) => return seekable(Reader::folder(folder)?, None, shard, from),
            (Self::Objects(files), _) => return seekable(Reader::objects(*files), None, shard, from),
            (Self::Object(object), _) => {
                let length = Some(object.state().bytes);
                return seekable(Reader::stream(ByteSource::Object(object), rule)?, length, shard, from);
            }
            (Self::Stream(stream), _) => {
                let mut reader = Reader::stream(ByteSource::Stream(stream), rule)?;
                skip(&mut reader, from)?;
                return Ok(OpenInput { reader, length: None, again: ReadAgain::Never });
            }
            (_, Some(number)) => open_stream(number)?,
            (Self::Stdin, None) => {
                let stdin = io::stdin().as_fd().try_clone_to_owned();
                File::from(stdin.map_err(|error| Error::read("stdin", error))?)
            }
            (Self::Special(path), None) => File::open(&path).map_err(unreadable(path))?,
            (Self::File(entry, path), None) => entry.open(OFlags::RDONLY).map_err(unreadable(path))?,
        };
        let regular = file.metadata().ok().filter(|metadata| metadata.is_file());
        let length = regular.map(|metadata| metadata.len());
        // Stdin is a stream even if it is a file: another process has opened it, and may have read from it.
        if length.is_some() && !is_stdin {
            return seekable(Reader::stream(ByteSource::File(file), rule)?, length, shard, from);
        }
        let (reader, tape) = stream(file, rule, from, handed)?;
        Ok(OpenInput { reader, length, again: ReadAgain::FromTape { tape, is_stdin } })
    }
}

fn seekable(
    mut reader: Reader,
    mut length: Option<u64>,
    shard: Option<Shard>,
    from: &Progress,
) -> Result<OpenInput, Error> {
    if let Some(shard) = shard {
        let share = reader.end_with(shard)?;
        length = length.map(|_| share.end);
        if from.mark.records == 0 {
            reader.skip_before(share.start)?;
        }
    }
    skip(&mut reader, from)?;
    Ok(OpenInput { reader, length, again: ReadAgain::FromPath })
}

/// Opens an input that can be read only once: what is read of it is kept until its output is written.
fn stream(
    file: File,
    rule: Rule,
    from: &Progress,
    handed: Option<(Stream, Contents)>,
) -> Result<(Reader, Tape), Error> {
    // If the other process has written no record, the stream begins with its header.
    let continued = handed.is_some() && from.mark.records > 0;
    let (stream, contents) = handed.unzip();
    let Contents { header, input, .. } = contents.unwrap_or_default();
    let anchor = stream.map_or_else(Anchor::start, |stream| stream.anchor);
    let (tape, source) = Tape::new(file, anchor.offset, input);
    if let Some(anchor) = &from.mark.anchor {
        tape.forget(anchor.offset);
    }
    let source = ByteSource::Stream(Box::new(source));
    let mut reader = match continued {
        true => Reader::continued(source, rule, header, anchor),
        false => Reader::stream(source, rule)?,
    };
    skip(&mut reader, from)?;
    Ok((reader, tape))
}

fn skip(reader: &mut Reader, from: &Progress) -> Result<(), Error> {
    if from.mark.records > 0 { reader.skip_to(&from.mark) } else { Ok(()) }
}

/// Returns whether a path stands for something that the process has open already, which cannot be reached by name.
pub(crate) fn is_special(path: &Path) -> bool {
    ["/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/proc"].iter().any(|special| path.starts_with(special))
}
