//! Opening what a map reads and writes, without either destroying the other.

use super::args::{MapArgs, Split};
use super::chain::Anchor;
use super::handover::{self, Contents, Stream};
use super::journal::{Identity, Journal, Progress, Task};
use super::reader::Reader;
use super::split::{self, Rule};
use super::tape::Tape;
use super::target::Target;
use crate::failure::Failure;
use crate::source::Source as Program;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// The input.
pub(crate) struct Input {
    pub(crate) reader: Reader,
    /// In bytes, if that can be known.
    pub(crate) length: Option<u64>,
    /// Where it comes once.
    pub(crate) tape: Option<Tape>,
}

/// Opens the input, and skips what an earlier run did. `handed` is what another process had of a stream.
pub(crate) fn input(
    args: &MapArgs,
    split: Split,
    from: &Progress,
    handed: Option<(Stream, Contents)>,
) -> Result<Input> {
    let rule = match split {
        Split::Lines => Rule::Lines,
        Split::Jsonl => Rule::Jsonl,
        Split::Csv => Rule::Csv,
        Split::Files => {
            let mut reader = Reader::folder(&args.input)?;
            if from.mark.records > 0 {
                reader.skip_to(&from.mark)?;
            }
            return Ok(Input { reader, length: None, tape: None });
        }
    };
    let file = match handed.as_ref().and_then(|(stream, _)| stream.file) {
        Some(number) => handover::open_stream(number)?,
        None if args.reads_stdin() => {
            File::from(io::stdin().as_fd().try_clone_to_owned().context("cannot read stdin")?)
        }
        None => File::open(&args.input)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", args.input.display())))?,
    };
    let regular = file.metadata().ok().filter(|metadata| metadata.is_file());
    let length = regular.map(|metadata| metadata.len());
    // Stdin is a stream also if it is a file: somebody else has opened it, and may have read from it.
    if length.is_some() && !args.reads_stdin() {
        let mut reader = Reader::stream(split::Source::File(file), rule)?;
        if from.mark.records > 0 {
            reader.skip_to(&from.mark)?;
        }
        return Ok(Input { reader, length, tape: None });
    }
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
    if from.mark.records > 0 {
        reader.skip_to(&from.mark)?;
    }
    Ok(Input { reader, length, tape: Some(tape) })
}

/// Opens the output, unless that would destroy the input.
pub(crate) fn target(args: &MapArgs, split: Split, program: &Program) -> Result<Target> {
    let Some(output) = args.output() else { return Target::stdout() };
    let task = task(args, split, program)?;
    if !args.reads_stdin() {
        check_apart(&args.input, output)?;
    }
    let is_folder = output.is_dir();
    match split {
        Split::Files if output.exists() && !is_folder => {
            Err(Failure::usage(format!("--output {} is a file, and --split files writes a folder", output.display()))
                .hint("leave --output out and redirect stdout to have all output in one file")
                .into())
        }
        Split::Files => Target::folder(output, Journal::within(output, task)),
        _ if is_folder => {
            Err(Failure::usage(format!("--output {} is a folder; only --split files writes one", output.display()))
                .into())
        }
        _ => Target::file(output, Journal::beside(output, task)),
    }
}

fn task(args: &MapArgs, split: Split, program: &Program) -> Result<Task> {
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
