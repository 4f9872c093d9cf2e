//! The options of `gpu-run map`.

use super::common::{ChecksChoice, LaunchArgs};
use anyhow::Result;
use clap::{Args, ValueEnum};
use gpu_run_console::failure::Failure;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

const HELP: &str = "\
Examples:
  gpu-run map upper.wasm < in.txt > out.txt       each line is one run's stdin
  gpu-run map score.wasm -i big.jsonl -o out.txt  Ctrl-C it: the same with --resume goes on
  gpu-run map row.wasm -i table.csv --split csv   each run reads the header and one row
  gpu-run map thumb.wasm -i photos -o thumbs      each file of a folder becomes one file
  gpu-run map user.wasm -i names.txt -- --name={}

Records: each is a run of its own. Its stdin is the record, GPU_RUN_INSTANCE its number from 0, and {} in ARGS the record \
without its newline, or the file's path. --timeout is for the records that run at once, a batch.

Output: each run's stdout is one record, in the order of the input. For lines, jsonl and csv a newline is added if it does not end \
with one, so that a program that prints one line, or nothing, keeps the lines aligned. A file that is there is overwritten; \
one that is unfinished is not, without --resume or --force.

Folders: a record is a file of the input folder or of the folders in it, by name. A link is followed to a file within the folder, \
and out of it only with --follow-links; links to folders are passed over. A link that leads elsewhere, a FIFO or a device is a record that fails. \
The output is written through no link at all.

Failures: a record fails if it traps, exits with another code than 0, takes too long, or is not what --split says. The first ten are \
told on stderr, with the line and the end of the run's own stderr; the others are counted. What a run has printed is kept if \
it exited, whatever its code; any other failure leaves an empty record, in a folder no file.

Exit codes: 0 if all records were fine; 1 if some failed, or something else did; 2 for a usage error; 130 after Ctrl-C.";

#[derive(Debug, Args)]
#[command(override_usage = "gpu-run map FILE [OPTIONS] [--] [ARGS]...", after_help = HELP)]
pub(crate) struct MapArgs {
    /// A .wasm, .wat or .rs file, or a Cargo package's folder
    pub(crate) file: PathBuf,

    /// The guest's arguments, the same for each record but for {}; after `--` if the first begins with a hyphen
    #[arg(value_name = "ARGS", trailing_var_arg = true)]
    pub(crate) args: Vec<OsString>,

    /// What to read: a file, a folder, or `-` for stdin
    #[arg(short, long, value_name = "PATH", default_value = "-")]
    pub(crate) input: PathBuf,

    /// What a record is [default: files for a folder, else lines]
    #[arg(long, value_name = "HOW")]
    split: Option<Split>,

    /// Where to write: a file, `-` for stdout, or with --split files a folder [default: stdout]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Records that run at once, at most 1048576 [default: 131072 on a GPU, 1024 on cpu]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) batch: Option<u32>,

    /// Finds out first which build of the program is the fastest for the first batch, as `gpu-run tune` does. Without it, one other build is tried on a GPU once a batch has taken a second
    #[arg(long, conflicts_with_all = ["resume", "dirs", "layout"])]
    pub(crate) tune: bool,

    /// Stops before the first record that fails
    #[arg(long)]
    pub(crate) fail_fast: bool,

    /// Goes on with an unfinished --output: nothing is lost, nothing is there twice
    #[arg(long, requires = "output", conflicts_with = "force")]
    pub(crate) resume: bool,

    /// Begins anew though --output is unfinished
    #[arg(long)]
    pub(crate) force: bool,

    /// Follows links in an input folder that lead out of it, as far as they were there before the run, and links on the way to --input and
    /// --output where --dir lets guests make some
    #[arg(long)]
    pub(crate) follow_links: bool,

    /// How accesses to memory are checked: `speculative` ones rerun a record with `exact` ones where they are not sure
    #[arg(long, value_name = "HOW", default_value = "speculative")]
    pub(crate) checks: ChecksChoice,

    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
}

const TUNE_HELP: &str = "\
Examples:
  gpu-run tune score.wasm -i big.jsonl   measures; from then on `gpu-run map score.wasm` takes what was fastest
  gpu-run map score.wasm -i big.jsonl --tune

A program has several builds: instances interleaved in memory or one after the other, more registers for each or more instances at once. \
Which is the fastest depends on the program and on its input. Each is compiled and runs the first batch of records at least twice; a program that \
writes to a --dir does so each time. What was found is kept with the compiled program, for this kind of device; `map` takes it unless --layout \
is given.

Exit codes: 0; 1 if nothing could be measured; 2 for a usage error.";

/// As for `map`, whose options are taken with it; nothing is written.
#[derive(Debug, Args)]
#[command(override_usage = "gpu-run tune FILE [OPTIONS] [--] [ARGS]...", after_help = TUNE_HELP)]
pub(crate) struct TuneArgs {
    /// A .wasm, .wat or .rs file, or a Cargo package's folder
    pub(super) file: PathBuf,

    /// The guest's arguments, the same for each record but for {}; after `--` if the first begins with a hyphen
    #[arg(value_name = "ARGS", trailing_var_arg = true)]
    pub(super) args: Vec<OsString>,

    /// What to read: a file, a folder, or `-` for stdin
    #[arg(short, long, value_name = "PATH", default_value = "-")]
    pub(super) input: PathBuf,

    /// What a record is [default: files for a folder, else lines]
    #[arg(long, value_name = "HOW")]
    pub(super) split: Option<Split>,

    /// Records that run at once, at most 1048576 [default: 131072 on a GPU, 1024 on cpu]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(super) batch: Option<u32>,

    /// Follows links in an input folder that lead out of it
    #[arg(long)]
    pub(super) follow_links: bool,

    /// How accesses to memory are checked: `speculative` ones rerun a record with `exact` ones where they are not sure
    #[arg(long, value_name = "HOW", default_value = "speculative")]
    pub(super) checks: ChecksChoice,

    #[command(flatten)]
    pub(super) launch: LaunchArgs,
}

impl From<TuneArgs> for MapArgs {
    fn from(args: TuneArgs) -> Self {
        let TuneArgs { file, args, input, split, batch, follow_links, checks, launch } = args;
        let (output, fail_fast, resume, force) = (None, false, false, false);
        let tune = true;
        Self { file, args, input, split, output, batch, tune, fail_fast, resume, force, follow_links, checks, launch }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Split {
    /// Each line
    Lines,
    /// Each file of a folder and the folders in it, by name
    Files,
    /// Each line, which must be JSON
    Jsonl,
    /// Each row, with the header before it; quoted newlines do not end a row
    Csv,
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}

impl From<Split> for gpu_run_map::Split {
    fn from(split: Split) -> Self {
        match split {
            Split::Lines => Self::Lines,
            Split::Files => Self::Files,
            Split::Jsonl => Self::Jsonl,
            Split::Csv => Self::Csv,
        }
    }
}

impl MapArgs {
    pub(crate) fn reads_stdin(&self) -> bool {
        self.input == Path::new("-")
    }

    /// `None`: stdout.
    pub(crate) fn output(&self) -> Option<&Path> {
        self.output.as_deref().filter(|output| *output != Path::new("-"))
    }

    /// Mistakes that nothing need be opened for.
    pub(crate) fn check(&self) -> Result<()> {
        if self.reads_stdin() && self.file == Path::new("-") {
            return Err(Failure::usage("program and input cannot both come from stdin")
                .hint("name the input's file with --input")
                .into());
        }
        Ok(())
    }

    /// What `--split` says, or what the input is.
    pub(crate) fn split(&self) -> Result<Split> {
        let input = self.input.display();
        let is_folder = !self.reads_stdin()
            && match self.input.metadata() {
                Ok(metadata) => metadata.is_dir(),
                Err(error) => return Err(Failure::usage(format!("--input {input}: {error}")).into()),
            };
        match (self.split, is_folder) {
            (Some(Split::Files), false) => {
                Err(Failure::usage(format!("--split files needs a folder, and {input} is none"))
                    .hint("give the folder the files lie in: --input FOLDER")
                    .into())
            }
            (None | Some(Split::Files), true) => Ok(Split::Files),
            (Some(split), true) => {
                Err(Failure::usage(format!("--split {split} needs a file, and {input} is a folder"))
                    .hint(format!("cat {input}/* | gpu-run map … --split {split}"))
                    .into())
            }
            (split, false) => Ok(split.unwrap_or(Split::Lines)),
        }
    }
}
