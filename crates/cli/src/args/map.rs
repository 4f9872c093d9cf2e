//! The options of `gpu-run map`.

use super::common::{ChecksChoice, GuestArgs, LaunchArgs, PlacementChoice, ThreadArgs};
use anyhow::Result;
use clap::{Args, ValueEnum};
use gpu_run_console::failure::Failure;
use gpu_run_map::Shard;
use gpu_run_objects::{Object, ObjectFolder};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

const HELP: &str = "\
Examples:
  gpu-run map upper.wasm < in.txt > out.txt       one run for each line
  gpu-run map score.wasm -i big.jsonl -o out.txt  after Ctrl-C, --resume continues
  gpu-run map row.wasm -i table.csv --split csv   each run reads the header and one row
  gpu-run map thumb.wasm -i photos -o thumbs      one output file for each input file
  gpu-run map user.wasm -i names.txt -- --name={}
  gpu-run map score.wasm -i big.jsonl -o out.txt --device cuda:all   on all GPUs
  gpu-run map score.wasm -i big.jsonl -o out.txt --shard 3/64   the fourth of 64 parts; see docs/clusters.md
  gpu-run map score.wasm -i s3://bucket/in.jsonl -o s3://bucket/out.txt
  gpu-run map thumb.wasm -i s3://bucket/photos/ -o s3://bucket/thumbs/
  gpu-run map --invoke distance geo.wasm -i pairs.txt    calls a function for each line, such as `0.5 -2`

Records: gpu-run runs the program once for each record. The record is the run's stdin; GPU_RUN_INSTANCE holds its number, from 0; \
{} in ARGS is the record without its newline, or the file's path. --timeout applies to the records that run at once, a batch.

Output: the stdout of each run is one record, in the order of the input. For lines, jsonl and csv, map adds a newline to output that does not end \
with one: a program that prints one line, or nothing, keeps output and input aligned. map overwrites a finished file; an unfinished one only with \
--resume or --force.

Functions: with --invoke, a record has the arguments of a call: words, or fields with --split csv, or with --split jsonl an array. The result is a line; several results are words, fields or an array again. Arguments are i32, i64, f32 and f64, written as for `gpu-run --invoke`. With ARGS, these are the arguments, where {} stands for those of the record. An instance serves up to 64 calls, one after the other, and if one of them fails, all of them are made again, each by an instance of its own: a function must not rely on what it kept from earlier calls. What a function prints comes in front of its result.

Folders: the records are the files of the input folder and of the folders in it, by name. map follows links to files within the folder, and links that \
lead out of it only with --follow-links; it skips links to folders. A link that leads elsewhere, a FIFO or a device is a record that fails. map never \
writes through a link.

Devices: with --device cuda:all or cuda:0,2, each batch goes to a GPU that is free; the output is the same, in the same order. If a GPU is lost, the others continue, \
and if the last one is lost, a new process does. --device cpu:0,1 makes two devices that divide the cores, to try it without a GPU.

Failures: a record fails if it traps, exits with a code other than 0, takes too long, or is not what --split says. The first ten failed records are \
printed on stderr, with their line and the end of their own stderr; the rest are only counted. If a failed run exited, its output is kept; otherwise its record is \
empty, or in a folder has no file.

Exit codes:
  0    all records succeeded
  1    a record failed, or something else did
  2    a usage error
  75   the device or the machine failed (a lost GPU, no memory, a full disk): the same command with --resume may succeed later or elsewhere
  130  after Ctrl-C
  141  nobody reads gpu-run's output any more";

#[derive(Debug, Args)]
#[command(override_usage = "gpu-run map FILE [OPTIONS] [--] [ARGS]...", after_help = HELP)]
pub(crate) struct MapArgs {
    /// A .wasm, .wat or .rs file, or a Cargo package's folder
    pub(crate) file: PathBuf,

    /// The guest's arguments, where {} stands for the record; after `--` if the first begins with a hyphen
    #[arg(value_name = "ARGS", trailing_var_arg = true)]
    pub(crate) args: Vec<OsString>,

    /// Calls an exported function of numbers for each record, instead of running the program; see below
    #[arg(long, value_name = "FUNCTION", conflicts_with = "tune")]
    pub(crate) invoke: Option<String>,

    /// The input: a file, a folder, an object (s3://, gs://, https://, http://), a folder of objects (s3://bucket/folder/), or `-` for stdin
    #[arg(short, long, value_name = "PATH", default_value = "-")]
    pub(crate) input: PathBuf,

    /// What a record is [default: files for a folder, else lines]
    #[arg(long, value_name = "HOW")]
    split: Option<Split>,

    /// The output: a file, an object (s3://, gs://), `-` for stdout, or with --split files a folder, of objects, too [default: stdout]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,

    /// The number of records that run at once, at most 1048576 [default: 131072 on a GPU, 1024 on cpu; 16 times as many with --invoke]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) batch: Option<u32>,

    /// Measures first which build is the fastest for the first batch, as `gpu-run tune` does. Without it, `map` tries one other build on a GPU after a batch of more than a second
    #[arg(long, conflicts_with_all = ["resume", "dirs", "net", "layout"])]
    pub(crate) tune: bool,

    /// Stops before the first record that fails
    #[arg(long)]
    pub(crate) fail_fast: bool,

    /// Continues an unfinished --output: no record is lost, none is there twice
    #[arg(long, requires = "output", conflicts_with = "force")]
    pub(crate) resume: bool,

    /// Overwrites an unfinished --output
    #[arg(long)]
    pub(crate) force: bool,

    /// Follows links that lead out of the input folder, if they were there before the run, and links on the way to --input and --output in folders of --dir
    #[arg(long)]
    pub(crate) follow_links: bool,

    /// Maps one part of the input, the I-th of N, from 0: for machines that share a file system or a bucket. `gpu-run merge` puts the parts together
    #[arg(long, value_name = "I/N", requires = "output")]
    pub(crate) shard: Option<Shard>,

    /// How memory accesses are checked
    #[arg(long, value_name = "HOW", default_value = "speculative")]
    pub(crate) checks: ChecksChoice,

    /// Not for `map`: [`MapArgs::check`] says what to do instead
    #[arg(long, value_name = "WHAT", hide = true)]
    trace: Option<String>,

    #[command(flatten)]
    pub(crate) guest: GuestArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,

    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
}

const MERGE_HELP: &str = "\
Examples:
  gpu-run map score.wasm -i big.jsonl -o out.txt --shard 0/2 --resume   on one machine
  gpu-run map score.wasm -i big.jsonl -o out.txt --shard 1/2 --resume   on another one
  gpu-run merge out.txt                                                 afterwards, on any
  gpu-run merge s3://bucket/out.txt                                     the same, after shards with -o s3://bucket/out.txt
  gpu-run merge s3://bucket/out.txt -o out.txt                          into a file

merge checks that all shards are there, finished, and of the same map; if not, it says which, and writes nothing. OUT is then what a map of the whole input \
writes, byte for byte. The shards of a file lie in OUT.shards. The shards of a folder write into OUT itself: merge removes only their journals. A merge into an object that was interrupted is continued by the same command.

Exit codes:
  0    the shards are together, and all records succeeded
  1    the shards are together, and a record failed
  2    a usage error: a shard is missing, unfinished or of another map, or OUT exists
  75   the machine failed (a full disk, a shard that is being written): the same command may succeed later";

/// Merges the outputs of `map --shard`.
#[derive(Debug, Args)]
#[command(override_usage = "gpu-run merge OUT [OPTIONS]", after_help = MERGE_HELP)]
pub(crate) struct MergeArgs {
    /// The --output of the shards
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,

    /// A file or an object to write instead of OUT, if OUT is an object
    #[arg(short = 'o', long = "output", value_name = "PATH")]
    pub(crate) to: Option<PathBuf>,

    /// Replaces OUT if it exists
    #[arg(long)]
    pub(crate) force: bool,

    /// Removes OUT.shards in the end
    #[arg(long)]
    pub(crate) remove_shards: bool,
}

const TUNE_HELP: &str = "\
Examples:
  gpu-run tune score.wasm -i big.jsonl         measures; `gpu-run map score.wasm` then uses the fastest build
  gpu-run map score.wasm -i big.jsonl --tune   measures, then runs all records

A program has several builds. They differ in how instances lie in memory, in registers per instance, and in instances that run at once. Which build is the fastest \
depends on the program and on its input. tune compiles each build and runs the first batch of records with it at least twice; a program that writes to a --dir \
does so each time. The result is kept with the compiled program, for this kind of device; map uses it unless --layout is given.

Exit codes:
  0    a build was found
  1    nothing could be measured
  2    a usage error";

/// As for `map`, whose options are taken with it; nothing is written.
#[derive(Debug, Args)]
#[command(override_usage = "gpu-run tune FILE [OPTIONS] [--] [ARGS]...", after_help = TUNE_HELP)]
pub(crate) struct TuneArgs {
    /// A .wasm, .wat or .rs file, or a Cargo package's folder
    pub(super) file: PathBuf,

    /// The guest's arguments, where {} stands for the record; after `--` if the first begins with a hyphen
    #[arg(value_name = "ARGS", trailing_var_arg = true)]
    pub(super) args: Vec<OsString>,

    /// The input: a file, a folder, or `-` for stdin
    #[arg(short, long, value_name = "PATH", default_value = "-")]
    pub(super) input: PathBuf,

    /// What a record is [default: files for a folder, else lines]
    #[arg(long, value_name = "HOW")]
    pub(super) split: Option<Split>,

    /// The number of records that run at once, at most 1048576 [default: 131072 on a GPU, 1024 on cpu]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(super) batch: Option<u32>,

    /// Follows links that lead out of the input folder
    #[arg(long)]
    pub(super) follow_links: bool,

    /// How memory accesses are checked
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
        let threads = ThreadArgs { threads: None, thread_placement: PlacementChoice::Auto };
        let guest = GuestArgs::default();
        Self {
            file,
            args,
            invoke: None,
            input,
            split,
            output,
            batch,
            tune,
            fail_fast,
            resume,
            force,
            follow_links,
            shard: None,
            checks,
            trace: None,
            guest,
            threads,
            launch,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Split {
    /// Each line
    Lines,
    /// Each file of a folder and of the folders in it, by name
    Files,
    /// Each line, which must be JSON
    Jsonl,
    /// Each row, with the header before it; quoted newlines belong to the row
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

    /// Returns the output's path; `None` means stdout.
    pub(crate) fn output(&self) -> Option<&Path> {
        self.output.as_deref().filter(|output| *output != Path::new("-"))
    }

    /// Reports mistakes that can be seen without opening anything.
    pub(crate) fn check(&self) -> Result<()> {
        if self.reads_stdin() && self.file == Path::new("-") {
            return Err(Failure::usage("program and input cannot both come from stdin")
                .hint("name the input's file with --input")
                .into());
        }
        if self.shard.is_some() && self.reads_stdin() {
            return Err(Failure::usage("--shard needs --input with a file or a folder: each shard reads a part of it")
                .hint("write the stream to a file first")
                .into());
        }
        if self.shard.is_some() && self.output().is_none() {
            return Err(Failure::usage(
                "--shard needs --output with a file, a folder or an object: `gpu-run merge` puts the shards together",
            )
            .into());
        }
        if self.trace.is_some() {
            return Err(Failure::usage("map does not trace host calls: most are answered on the device")
                .hint("run one record alone: gpu-run --trace wasi FILE < RECORD")
                .into());
        }
        Ok(())
    }

    /// Returns what `--split` says, or else what the input suggests.
    pub(crate) fn split(&self) -> Result<Split> {
        let input = self.input.display();
        let is_folder = match self.input.to_str().filter(|input| Object::is_address(input)) {
            _ if self.reads_stdin() => false,
            // Whether there is an object or a folder of that name, nobody has asked yet.
            Some(address) => ObjectFolder::is_address(address) || self.split == Some(Split::Files),
            None => match self.input.metadata() {
                Ok(metadata) => metadata.is_dir(),
                Err(error) => return Err(Failure::usage(format!("--input {input}: {error}")).into()),
            },
        };
        match (self.split, is_folder) {
            (Some(Split::Files), false) => {
                Err(Failure::usage(format!("--split files needs a folder, but {input} is not one"))
                    .hint("give the folder that contains the files: --input FOLDER")
                    .into())
            }
            (None | Some(Split::Files), true) => Ok(Split::Files),
            (Some(split), true) => {
                let failure = Failure::usage(format!("--split {split} needs a file, but {input} is a folder"));
                let is_address = self.input.to_str().is_some_and(Object::is_address);
                let hint = format!("cat {input}/* | gpu-run map … --split {split}");
                Err(if is_address { failure } else { failure.hint(hint) }.into())
            }
            (split, false) => Ok(split.unwrap_or(Split::Lines)),
        }
    }
}
