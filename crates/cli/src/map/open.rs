//! Opening what a map reads and writes, without either destroying the other.

use super::args::{MapArgs, Split};
use super::chain::Anchor;
use super::folder::{Spot, Trust};
use super::handover::{self, Contents, Stream};
use super::journal::{Identity, Progress, Task};
use super::links::InputFolder;
use super::reader::Reader;
use super::split::{self, Rule};
use super::tape::Tape;
use super::target::Target;
use crate::source::Source as Program;
use anyhow::{Context, Result};
use gpu_run_console::failure::Failure;
use rustix::fs::{FileType, OFlags};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where the input is.
#[derive(Debug)]
pub(crate) enum Place {
    Stdin,
    /// What stands for something that a process has open already.
    Special(PathBuf),
    File(Spot, PathBuf),
    Folder(InputFolder),
}

/// The input.
pub(crate) struct Input {
    pub(crate) reader: Reader,
    /// In bytes, if that can be known.
    pub(crate) length: Option<u64>,
    /// Where it comes once.
    pub(crate) tape: Option<Tape>,
}

impl Place {
    /// Finds the input. A path that leads through links which a guest may have made is refused.
    pub(crate) fn find(args: &MapArgs, split: Split) -> Result<Self> {
        let path = args.input.clone();
        if args.reads_stdin() {
            return Ok(Self::Stdin);
        }
        if is_special(&path) {
            return Ok(Self::Special(path));
        }
        let found = Spot::find(&path, &trust(args), false);
        let spot = found.with_context(|| format!("cannot read {}", path.display()))?;
        if split != Split::Files {
            return Ok(Self::File(spot, path));
        }
        let folder = spot.into_folder(false).map_err(|error| unreadable(&path, &error))?;
        Ok(Self::Folder(InputFolder::new(folder, args.follow_links)?))
    }

    /// See [`InputFolder::links`].
    pub(crate) fn links(&self) -> Option<String> {
        match self {
            Self::Folder(folder) => folder.links(),
            _ => None,
        }
    }

    /// Opens the input, and skips what an earlier run did. `handed` is what another process had of a stream.
    pub(crate) fn open(self, split: Split, from: &Progress, handed: Option<(Stream, Contents)>) -> Result<Input> {
        let number = handed.as_ref().and_then(|(stream, _)| stream.file);
        let is_stdin = matches!(self, Self::Stdin);
        let file = match (self, number) {
            (Self::Folder(folder), _) => {
                let mut reader = Reader::folder(folder)?;
                skip(&mut reader, from)?;
                return Ok(Input { reader, length: None, tape: None });
            }
            (_, Some(number)) => handover::open_stream(number)?,
            (Self::Stdin, None) => File::from(io::stdin().as_fd().try_clone_to_owned().context("cannot read stdin")?),
            (Self::Special(path), None) => File::open(&path).map_err(|error| unreadable(&path, &error))?,
            (Self::File(spot, path), None) => spot.open(OFlags::RDONLY).map_err(|error| unreadable(&path, &error))?,
        };
        let rule = match split {
            Split::Jsonl => Rule::Jsonl,
            Split::Csv => Rule::Csv,
            Split::Lines | Split::Files => Rule::Lines,
        };
        let regular = file.metadata().ok().filter(|metadata| metadata.is_file());
        let length = regular.map(|metadata| metadata.len());
        // Stdin is a stream also if it is a file: somebody else has opened it, and may have read from it.
        if length.is_some() && !is_stdin {
            let mut reader = Reader::stream(split::Source::File(file), rule)?;
            skip(&mut reader, from)?;
            return Ok(Input { reader, length, tape: None });
        }
        let (reader, tape) = stream(file, rule, from, handed)?;
        Ok(Input { reader, length, tape: Some(tape) })
    }
}

/// An input that comes once: what is read of it is kept until it has been dealt with.
fn stream(file: File, rule: Rule, from: &Progress, handed: Option<(Stream, Contents)>) -> Result<(Reader, Tape)> {
    // What another process has not written a record of begins with its header.
    let continued = handed.is_some() && from.mark.records > 0;
    let (stream, contents) = handed.unzip();
    let Contents { header, input, .. } = contents.unwrap_or_default();
    let anchor = stream.map_or_else(Anchor::start, |stream| stream.anchor);
    let (tape, source) = Tape::new(file, anchor.offset, input);
    if let Some(anchor) = &from.mark.anchor {
        tape.forget(anchor.offset);
    }
    let source = split::Source::Stream(Box::new(source));
    let mut reader = match continued {
        true => Reader::continued(source, rule, header, anchor),
        false => Reader::stream(source, rule)?,
    };
    skip(&mut reader, from)?;
    Ok((reader, tape))
}

fn skip(reader: &mut Reader, from: &Progress) -> Result<()> {
    if from.mark.records > 0 { reader.skip_to(&from.mark) } else { Ok(()) }
}

/// Opens the output, unless that would destroy the input. `links` are those of the input that are followed.
pub(crate) fn target(args: &MapArgs, split: Split, program: &Program, links: Option<String>) -> Result<Target> {
    let Some(output) = args.output() else { return Target::stdout() };
    let task = task(args, split, program, links)?;
    if !args.reads_stdin() {
        check_apart(&args.input, output)?;
    }
    if is_special(output) {
        return Target::special(output);
    }
    let shown = output.display();
    let found = Spot::find(output, &trust(args), split == Split::Files);
    let spot = found.with_context(|| format!("cannot write {shown}"))?;
    let kind = spot.kind().with_context(|| format!("cannot write {shown}"))?;
    // A link's journal is beside what it leads to.
    let path = match output.is_symlink() {
        true => spot.folder.real_path()?.join(&spot.name),
        false => output.to_owned(),
    };
    match (split, kind) {
        (Split::Files, None | Some(FileType::Directory)) => Target::folder(spot, &path, task),
        (Split::Files, Some(_)) => {
            Err(Failure::usage(format!("--output {shown} is a file, and --split files writes a folder"))
                .hint("leave --output out and redirect stdout to have all output in one file")
                .into())
        }
        (_, Some(FileType::Directory)) => {
            Err(Failure::usage(format!("--output {shown} is a folder; only --split files writes one")).into())
        }
        (_, None) if output.as_os_str().as_bytes().ends_with(b"/") => {
            Err(Failure::usage(format!("--output {shown}: there is no such folder, and only --split files writes one"))
                .into())
        }
        (_, None | Some(FileType::RegularFile)) => Target::file(spot, &path, task),
        (_, Some(_)) => Target::device(&spot, &path),
    }
}

/// Whose links on the way are followed.
fn trust(args: &MapArgs) -> Trust {
    Trust::new(args.launch.dirs.iter().map(|dir| &*dir.host), args.follow_links)
}

/// What stands for something that a process has open already, and leads there by no name.
fn is_special(path: &Path) -> bool {
    ["/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/proc"].iter().any(|special| path.starts_with(special))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("cannot read {}: {error}", path.display()))
}

fn task(args: &MapArgs, split: Split, program: &Program, links: Option<String>) -> Result<Task> {
    let input = if args.reads_stdin() {
        Identity::Stream
    } else {
        Identity::of(&args.input).with_context(|| format!("cannot read {}", args.input.display()))?
    };
    let launch = &args.launch;
    let env = format!("{:?}", crate::guest::environment(&launch.env));
    Ok(Task {
        program: hash(&program.wasm),
        input,
        split: split.to_string(),
        args: args.args.iter().map(|arg| format!("{arg:?}")).collect(),
        dirs: launch.preopens().map(|dir| format!("{dir:?}")).collect(),
        env: hash(env.as_bytes()),
        max_memory: launch.max_memory,
        links,
    })
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Refuses an output that is the input, or within it, or around it.
fn check_apart(input: &Path, output: &Path) -> Result<()> {
    // What does not exist yet will be where the nearest folder is that does.
    let real = |path: &Path| {
        let path = std::path::absolute(path).ok()?;
        path.ancestors().find_map(|there| Some(fs::canonicalize(there).ok()?.join(path.strip_prefix(there).ok()?)))
    };
    let (Some(from), Some(to)) = (real(input), real(output)) else { return Ok(()) };
    let within = from.is_dir() && (to.starts_with(&from) || to.is_dir() && from.starts_with(&to));
    if from != to && !within {
        return Ok(());
    }
    let (input, output) = (input.display(), output.display());
    Err(Failure::usage(format!(
        "--output {output} and --input {input} are in each other's way: input would be overwritten"
    ))
    .hint("write beside it")
    .into())
}
