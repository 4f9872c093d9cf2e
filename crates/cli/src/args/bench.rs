//! `gpu-run bench`, as it is typed.

use super::common::{ChecksChoice, LaunchArgs};
use super::map::{MapArgs, Split, TuneArgs};
use clap::Args;
use gpu_run_console::failure::Failure;
use gpu_run_console::units;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

const BENCH_EXPLAINED: &str = "\
Every instance finds its number in GPU_RUN_INSTANCE. Rates are the best of three rounds, in which the sides take turns. \
On the device a round is everything from the set-up of the instances to their outcomes, the program being loaded; under Wasmtime \
it is a store and an instance of its own for each (pooling allocator), on all cores. What a sample of the instances prints is compared.

With --input it is your own program, with your own records: each is a run, as with `gpu-run map`, on the device and under Wasmtime. \
If they are fewer than run at once, they are taken again and again. Exit code 1 if the outputs differ.

Where there is nvcc, in PATH or CUDA_HOME, sha256 and n-body are measured as hand-written CUDA kernels too: kernel time only.

Exit code 1 if a program failed.";

/// Nothing of it is looked at in a gpu-run without `bench`.
#[cfg_attr(not(feature = "bench"), allow(dead_code))]
#[derive(Debug, Args)]
#[command(after_help = BENCH_EXPLAINED)]
pub(crate) struct BenchArgs {
    /// Programs to measure; `hostcalls` is what asking the host takes, `machine` alone the resident machine [default: all of the set, and
    /// hostcalls]
    #[arg(value_name = "PROGRAM")]
    pub(crate) programs: Vec<PathBuf>,

    /// The folder with the set's .wasm files [default: GPU_RUN_BENCHES, or what scripts/build-benches made here or above]
    #[arg(long, value_name = "DIR", conflicts_with = "programs")]
    pub(crate) set: Option<PathBuf>,

    /// Only programs whose name contains this
    #[arg(long, value_name = "NAME")]
    pub(crate) filter: Option<String>,

    /// How many copies run at once on the device [default: 131072 on a GPU, 1024 on cpu]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) instances: Option<NonZeroU32>,

    /// Your own records for the one PROGRAM, as `gpu-run map` reads them: a file, a folder, or `-` for stdin. Says whether the device is worth it, and from how many
    /// records on
    #[arg(short, long, value_name = "PATH", requires = "programs", conflicts_with_all = ["filter", "instances", "svg"])]
    pub(crate) input: Option<PathBuf>,

    /// What a record of --input is [default: files for a folder, else lines]
    #[arg(long, value_name = "HOW", requires = "input")]
    pub(crate) split: Option<Split>,

    /// Records of --input that run at once on the device, at most 1048576 [default: 131072 on a GPU, 1024 on cpu]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20), requires = "input")]
    pub(crate) batch: Option<u32>,

    /// What a round of one side may take: Wasmtime runs fewer instances then, the device fewer rounds
    #[arg(long, value_name = "S", default_value = "2", value_parser = units::duration, allow_hyphen_values = true)]
    pub(crate) seconds: Duration,

    /// Writes all figures as JSON; `-` is stdout, the table then goes to stderr
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Tries a program's builds first, as `gpu-run tune` does, and measures the fastest
    #[arg(long)]
    pub(crate) tune: bool,

    /// Where to write the picture
    #[arg(long, value_name = "FILE", default_value = "gpu-run-bench.svg")]
    pub(crate) svg: PathBuf,

    /// The arguments of the program that --input is for; {} is the record
    #[arg(value_name = "ARGS", last = true, requires = "input")]
    pub(crate) args: Vec<OsString>,

    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
}

impl BenchArgs {
    /// The programs of the set are given nothing, and nothing of theirs is kept.
    #[cfg_attr(not(feature = "bench"), allow(dead_code))]
    pub(crate) fn check_without_input(&self) -> Result<(), Failure> {
        let launch = &self.launch;
        let useless = [
            ("--dir", !launch.dirs.is_empty()),
            ("--dir-ro", !launch.dirs_read_only.is_empty()),
            ("--env", !launch.env.is_empty()),
            ("--timeout", launch.timeout.is_some()),
            ("--max-memory", launch.max_memory.is_some()),
            ("--stats", launch.stats.is_some()),
        ];
        match useless.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Failure::usage(format!("bench takes {option} only with --input"))),
            None => Ok(()),
        }
    }
}

/// `gpu-run bench PROGRAM --input`: the same records.
impl From<(&BenchArgs, &Path, &Path)> for MapArgs {
    fn from((args, program, input): (&BenchArgs, &Path, &Path)) -> Self {
        TuneArgs {
            file: program.to_owned(),
            args: args.args.clone(),
            input: input.to_owned(),
            split: args.split,
            batch: args.batch,
            follow_links: false,
            checks: ChecksChoice::Speculative,
            launch: args.launch.clone(),
        }
        .into()
    }
}
