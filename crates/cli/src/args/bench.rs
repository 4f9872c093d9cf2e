//! The options of `gpu-run bench`.

use super::common::{ChecksChoice, LaunchArgs, PlacementChoice};
use super::map::{MapArgs, Split, TuneArgs};
use clap::Args;
use gpu_run_console::failure::Failure;
use gpu_run_console::units;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

const BENCH_EXPLAINED: &str = "\
Without PROGRAM, bench measures the benchmark set and host calls. `bench hostcalls` measures host calls alone, `bench machine` the resident machine alone, `bench desktop` frames of a desktop, `bench threads` \
threads on the device and on the host, `bench processes` how long it takes to start a process on either.

Rates are the best of three rounds, in which the two sides take turns. On the device, a round is everything from the set-up of the instances to their \
outcomes, with the program loaded. Under Wasmtime, each instance has a store of its own (pooling allocator), on all cores. bench compares what a sample of the \
instances print. Every instance finds its number in GPU_RUN_INSTANCE.

With --input, bench measures your own program with your own records, as `gpu-run map` would run them. If there are fewer records than run at once, they are \
repeated.

Where nvcc is installed (in PATH or CUDA_HOME), sha256 and n-body are also measured as hand-written CUDA kernels, kernel time only.

Exit codes:
  0    all programs were measured, and all outputs are the same
  1    a program failed, or outputs differ
  2    a usage error";

/// A gpu-run without `bench` parses these options, and then says that it has no `bench`.
#[cfg_attr(not(feature = "bench"), allow(dead_code))]
#[derive(Debug, Args)]
#[command(after_help = BENCH_EXPLAINED)]
pub(crate) struct BenchArgs {
    /// The programs to measure, or `desktop`, `hostcalls`, `machine`, `processes` or `threads` [default: the benchmark set, and hostcalls]
    #[arg(value_name = "PROGRAM")]
    pub(crate) programs: Vec<PathBuf>,

    /// The folder with the set's .wasm files [default: GPU_RUN_BENCHES, or what scripts/build-benches made here or above]
    #[arg(long, value_name = "DIR", conflicts_with = "programs")]
    pub(crate) set: Option<PathBuf>,

    /// Measures only programs whose name contains NAME
    #[arg(long, value_name = "NAME")]
    pub(crate) filter: Option<String>,

    /// The number of copies that run at once on the device [default: 131072 on a GPU, 1024 on cpu]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) instances: Option<NonZeroU32>,

    /// Your own records for one PROGRAM, as for `gpu-run map`: a file, a folder, or `-` for stdin. Says from how many records on the device pays
    #[arg(short, long, value_name = "PATH", requires = "programs", conflicts_with_all = ["filter", "instances", "svg"])]
    pub(crate) input: Option<PathBuf>,

    /// What a record of --input is [default: files for a folder, else lines]
    #[arg(long, value_name = "HOW", requires = "input")]
    pub(crate) split: Option<Split>,

    /// The number of records that run at once, at most 1048576 [default: 131072 on a GPU, 1024 on cpu]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20), requires = "input")]
    pub(crate) batch: Option<u32>,

    /// With `threads`: how many threads the device's side can have at once, the first one included [default: as for a run]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=65536))]
    pub(crate) threads: Option<u32>,

    /// With `threads`: how the threads lie on a GPU [default: auto, as for a run]
    #[arg(long, value_name = "HOW")]
    pub(crate) thread_placement: Option<PlacementChoice>,

    /// How long a round of one side may take: Wasmtime then runs fewer instances, the device fewer rounds
    #[arg(long, value_name = "S", default_value = "2", value_parser = units::duration, allow_hyphen_values = true)]
    pub(crate) seconds: Duration,

    /// Writes all figures as JSON; with `-` they go to stdout, and the table to stderr
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Measures the fastest of a program's builds, as `gpu-run tune` finds it
    #[arg(long)]
    pub(crate) tune: bool,

    /// The file for the picture
    #[arg(long, value_name = "FILE", default_value = "gpu-run-bench.svg")]
    pub(crate) svg: PathBuf,

    /// The arguments of PROGRAM with --input, where {} stands for the record
    #[arg(value_name = "ARGS", last = true, requires = "input")]
    pub(crate) args: Vec<OsString>,

    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
}

impl BenchArgs {
    /// Refuses options that only `bench threads` takes.
    pub(crate) fn check_without_threads(&self) -> Result<(), Failure> {
        let options = [("--threads", self.threads.is_some()), ("--thread-placement", self.thread_placement.is_some())];
        match options.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Failure::usage(format!("only `gpu-run bench threads` takes {option}"))),
            None => Ok(()),
        }
    }

    /// Refuses options that have no effect without `--input`.
    #[cfg_attr(not(feature = "bench"), allow(dead_code))]
    pub(crate) fn check_without_input(&self) -> Result<(), Failure> {
        let launch = &self.launch;
        let useless = [
            ("--dir", !launch.given.dirs.is_empty()),
            ("--dir-ro", !launch.given.dirs_read_only.is_empty()),
            ("--net", !launch.given.net.is_empty()),
            ("--env", !launch.given.env.is_empty()),
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

/// `gpu-run bench PROGRAM --input` reads its records as `map` does.
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
