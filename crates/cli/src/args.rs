//! The command line.
//!
//! `gpu-run FILE ARGS…` is the command people use; everything after FILE is the guest's, whatever it looks like. The
//! subcommands are recognised only in FILE's place, so that no guest argument is ever taken for one.

use crate::cache::{CacheArgs, CacheCommand};
use crate::machine::{BootArgs, TopArgs};
use crate::map::{MapArgs, Split, TuneArgs};
use clap::{Args, Parser, Subcommand, ValueEnum};
use gpu_run_abi::Layout;
use gpu_run_compiler::Build;
use gpu_run_console::failure::Failure;
use gpu_run_console::units;
use gpu_run_wasi::Access;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  gpu-run app.wasm --its --own options   everything after FILE is the guest's
  gpu-run hello.rs                       compiles one Rust file and runs it
  gpu-run --bin server .                 builds the Cargo package here first
  gpu-run --dir=data::/in app.wasm       the guest sees `data` as `/in`, nothing else
  gpu-run --env RUST_LOG --env N=3 app.wasm
  gpu-run --instances 64 app.wasm        64 at once
  gpu-run map app.wasm < in.txt          once for each line; see `gpu-run map --help`
  gpu-run --invoke add math.wat 2 3      calls one exported function
  gpu-run --timeout 10s --max-memory 64MiB untrusted.wasm
  gpu-run compile app.wasm -o app.ptx
  gpu-run explain app.wasm main          functions named like that, in three forms
  gpu-run cache stats                    compiled programs are kept; see `gpu-run cache --help`

As a Cargo runner, in .cargo/config.toml:
  [target.wasm32-wasip1]
  runner = \"gpu-run --dir=.\"
Then `cargo run` and `cargo test`, with --target wasm32-wasip1, run on the device.

Exit codes:
  the guest's own; 2 for a usage error or a file that cannot be run;
  124 when --timeout ended it; 134 for a trap; 1 for everything else that fails
Only the guest's bytes go to stdout.";

const BENCH_EXPLAINED: &str = "\
Every instance finds its number in GPU_RUN_INSTANCE. Rates are the best of three rounds, in which the sides take turns. \
On the device a round is everything from the set-up of the instances to their outcomes, the program being loaded; under Wasmtime \
it is a store and an instance of its own for each (pooling allocator), on all cores. What a sample of the instances prints is compared.

With --input it is your own program, with your own records: each is a run, as with `gpu-run map`, on the device and under Wasmtime. \
If they are fewer than run at once, they are taken again and again. Exit code 1 if the outputs differ.

Where there is nvcc, in PATH or CUDA_HOME, sha256 and n-body are measured as hand-written CUDA kernels too: kernel time only.

Exit code 1 if a program failed.";

#[derive(Debug, Parser)]
#[command(
    name = "gpu-run",
    version,
    about = "Runs ordinary Rust programs, compiled to WebAssembly, on the GPU",
    override_usage = "gpu-run [OPTIONS] FILE [ARGS]...\n       gpu-run <COMMAND>",
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs FILE: the same as without `run`, for files named like a command
    #[command(override_usage = "gpu-run run [OPTIONS] FILE [ARGS]...")]
    Run(RunArgs),
    /// Runs FILE once for each line, row, JSON value or file of an input, and writes what each run prints, in order
    Map(MapArgs),
    /// Finds out which build of FILE is the fastest for an input on this device; `map` takes it from then on
    Tune(TuneArgs),
    /// Writes the PTX or the CLIF that FILE compiles to
    Compile(CompileArgs),
    /// Shows functions as wasm, as CLIF and as PTX
    Explain(ExplainArgs),
    /// Measures programs on the device and under Wasmtime on all cores, side by side
    Bench(BenchArgs),
    /// Brings the resident machine up: a kernel that owns its state and ticks by itself
    Boot(BootArgs),
    /// Shows the machine that another process has booted, live
    Top(TopArgs),
    /// Looks after the compiled programs that are kept
    Cache(CacheCommand),
    /// Runs scripts of the WebAssembly test suite and says what passed
    Wast(WastArgs),
    /// Lists the devices there are, and says why others are missing
    Devices,
    /// Prints a completion script for a shell
    Completion { shell: clap_complete::Shell },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A .wasm, .wat or .rs file, a Cargo package's folder, or `-` for stdin; then the guest's arguments
    #[arg(value_name = "FILE [ARGS]", required = true, trailing_var_arg = true)]
    pub(crate) file_and_args: Vec<OsString>,

    /// Calls this exported function instead of `_start`; ARGS are its parameters, results go to stdout
    #[arg(long, value_name = "FUNC")]
    pub(crate) invoke: Option<String>,

    /// How many copies run at once; each finds its number, from 0, in GPU_RUN_INSTANCE
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true)]
    pub(crate) instances: NonZeroU32,

    /// Writes lines of all instances as they come, not instance after instance
    #[arg(long)]
    pub(crate) unordered: bool,

    /// Output that may wait on disk for its turn, of all instances together; what an instance writes beyond that fails as on a full disk
    #[arg(long, value_name = "SIZE", value_parser = units::size_or_none, default_value = "16GiB", allow_hyphen_values = true)]
    pub(crate) max_spill: u64,

    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
}

/// What every command that runs guests takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct LaunchArgs {
    /// Gives the guest a folder, under the same name or as GUEST; repeatable [default: none]
    #[arg(long = "dir", value_name = "HOST[::GUEST]")]
    pub(crate) dirs: Vec<Preopen>,

    /// The same, to be read only: what would change anything there fails; repeatable [default: none]
    #[arg(long = "dir-ro", value_name = "HOST[::GUEST]", value_parser = Preopen::read_only)]
    pub(crate) dirs_read_only: Vec<Preopen>,

    /// Sets a variable in the guest's environment; without a value, passes ours on; repeatable [default: none]
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<Variable>,

    /// Where to run: `cpu`, `cuda`, `cuda:N`, or `auto`, the first GPU there is, else cpu
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceChoice,

    /// Ends what still runs after this long; `us`, `ms`, `s`, `m`, `h`, a plain number is seconds. Compiling does not count
    /// [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = units::duration, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,

    /// Linear memory an instance may have at most; bytes, or with K, M, G (powers of 1024) [default: what the module
    /// declares and the device has]
    #[arg(long, value_name = "SIZE", value_parser = units::size, allow_hyphen_values = true)]
    pub(crate) max_memory: Option<u64>,

    /// Says on stderr where the time went; `json` prints one object
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub(crate) stats: Option<StatsFormat>,

    #[command(flatten)]
    pub(crate) cache: CacheArgs,

    #[command(flatten)]
    pub(crate) codegen: CodegenArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompileArgs {
    /// A .wasm, .wat or .rs file, a Cargo package's folder, or `-` for stdin
    pub(crate) file: PathBuf,

    /// Where to write; the extension, .ptx or .clif, says what; `-` is PTX on stdout [default: FILE's name with .ptx, here]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// What to write [default: as OUT's extension says, else ptx]
    #[arg(long, value_name = "FORM")]
    pub(crate) emit: Option<Emit>,

    /// How accesses to memory are checked: `speculative` is what `gpu-run map` takes
    #[arg(long, value_name = "HOW", default_value = "exact")]
    pub(crate) checks: ChecksChoice,

    #[command(flatten)]
    pub(crate) codegen: CodegenArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A .wasm, .wat or .rs file, a Cargo package's folder, or `-` for stdin
    pub(crate) file: PathBuf,

    /// Which functions: an index, a name, or a part of one [default: all]
    pub(crate) func: Option<String>,

    /// Which build: the one of `gpu-run FILE`, or the one that `gpu-run map` runs on a GPU
    #[arg(long, value_name = "BUILD", default_value = "run")]
    pub(crate) build: BuildChoice,

    #[command(flatten)]
    pub(crate) codegen: CodegenArgs,
}

/// What a program is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BuildChoice {
    Run,
    Map,
}

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

#[derive(Debug, Args)]
pub(crate) struct WastArgs {
    /// Scripts; of a folder, all .wast files in it and below
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Where to run: `cpu`, `cuda`, `cuda:N`, or `auto`, the first GPU there is, else cpu
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceChoice,

    /// How instances lie in memory; `both` runs each script twice
    #[arg(long, value_name = "LAYOUT", default_value = "both")]
    pub(crate) layout: WastLayout,

    /// Scripts that run side by side at most [default: one for each core, and as the device has room]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroU32>,

    /// Shows every problem, what is not supported, and times; -vv says more
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WastLayout {
    Linear,
    Interleaved,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChecksChoice {
    /// Stop an instance where the code is not sure, and rerun it with exact checks
    #[value(alias = "fast")]
    Speculative,
    /// Right whatever the program does
    Exact,
}

impl ChecksChoice {
    pub(crate) fn build(self, layout: Layout, local_bytes: u32) -> Build {
        match self {
            ChecksChoice::Speculative => Build::speculative(layout, local_bytes),
            ChecksChoice::Exact => Build::Exact(layout),
        }
    }
}

/// What every command that compiles takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct CodegenArgs {
    /// How instances lie in memory: `auto` is linear, and interleaved from 32 instances on a GPU
    #[arg(long, value_name = "LAYOUT", default_value = "auto")]
    pub(crate) layout: LayoutChoice,

    /// The PTX target to compile for [default: sm_75, which every newer GPU takes too]
    #[arg(long, value_name = "sm_NN", value_parser = units::target)]
    pub(crate) target: Option<u32>,

    /// Ends compiling after this long
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = units::duration, allow_hyphen_values = true)]
    pub(crate) compile_timeout: Duration,

    /// Which binary of a Cargo package [default: its only one, or `default-run`]
    #[arg(long, value_name = "NAME")]
    pub(crate) bin: Option<String>,

    /// Says on stderr what is done; -vv says more
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    Ptx,
    Clif,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutChoice {
    Linear,
    Interleaved,
    Auto,
}

impl LayoutChoice {
    /// Below a warp's 32 instances there is nothing to coalesce, and on `cpu` there never is.
    pub(crate) fn resolve(self, gpu: bool, instances: u32) -> Layout {
        match self {
            LayoutChoice::Linear => Layout::Linear,
            LayoutChoice::Interleaved => Layout::Interleaved,
            LayoutChoice::Auto if gpu && instances >= gpu_run_abi::layout::WARP as u32 => Layout::Interleaved,
            LayoutChoice::Auto => Layout::Linear,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceChoice {
    Auto,
    Cpu,
    Cuda(u32),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => match text.strip_prefix("cuda:").map(str::parse) {
                Some(Ok(index)) => Ok(Self::Cuda(index)),
                _ => Err("expected `cpu`, `cuda`, `cuda:N` or `auto`; `gpu-run devices` lists them".into()),
            },
        }
    }
}

impl LaunchArgs {
    /// All folders that the guest is given.
    pub(crate) fn preopens(&self) -> impl Iterator<Item = &Preopen> {
        self.dirs.iter().chain(&self.dirs_read_only)
    }
}

/// `--dir HOST[::GUEST]`, `--dir-ro HOST[::GUEST]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Preopen {
    pub(crate) host: PathBuf,
    pub(crate) guest: String,
    pub(crate) access: Access,
}

impl Preopen {
    fn read_only(text: &str) -> Result<Self, String> {
        Ok(Self { access: Access::ReadOnly, ..text.parse()? })
    }

    /// The option it was given with.
    pub(crate) fn option(&self) -> &'static str {
        if self.access == Access::ReadOnly { "--dir-ro" } else { "--dir" }
    }
}

impl FromStr for Preopen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, guest) = text.split_once("::").unwrap_or((text, text));
        if host.is_empty() || guest.is_empty() {
            return Err("expected a folder, or HOST::GUEST with both sides given".into());
        }
        Ok(Self { host: host.into(), guest: guest.into(), access: Access::ReadWrite })
    }
}

/// `--env NAME[=VALUE]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// `None`: as in our own environment.
    pub(crate) value: Option<String>,
}

impl FromStr for Variable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        if name.is_empty() {
            return Err("expected NAME=VALUE, or NAME alone to pass ours on".into());
        }
        Ok(Self { name: name.to_owned(), value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("gpu-run").chain(line.split_whitespace()))
    }

    fn guest(line: &str) -> Vec<String> {
        let cli = parse(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert!(cli.command.is_none(), "{line}");
        cli.run.file_and_args.into_iter().map(|a| a.into_string().unwrap()).collect()
    }

    #[test]
    fn definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn all_after_file_is_the_guests() {
        assert_eq!(guest("a.wasm --dir=x -v --help"), ["a.wasm", "--dir=x", "-v", "--help"]);
        assert_eq!(guest("--dir=. a.wasm --version run"), ["a.wasm", "--version", "run"]);
        assert_eq!(guest("a.wasm -- -x"), ["a.wasm", "--", "-x"]);
        assert_eq!(guest("a.wasm compile"), ["a.wasm", "compile"]);
        assert_eq!(guest("./compile"), ["./compile"]);
        assert_eq!(guest("--stats a.wasm json"), ["a.wasm", "json"]);
        assert_eq!(guest("-"), ["-"]);
    }

    #[test]
    fn options_before_file_are_ours() {
        let cli = parse(
            "-vv --dir=. --dir-ro a::/b --dir a::/b --env A --env B=c=d --stats=json --timeout 2m --max-memory 1G a.wasm -v",
        );
        let run = cli.unwrap().run;
        let run = run.launch;
        assert_eq!(run.codegen.verbose, 2);
        let [here, both] = [(".", "."), ("a", "/b")].map(|(host, guest)| Preopen {
            host: host.into(),
            guest: guest.into(),
            access: Access::ReadWrite,
        });
        let read_only = Preopen { access: Access::ReadOnly, ..both.clone() };
        assert_eq!(run.preopens().collect::<Vec<_>>(), [&here, &both, &read_only]);
        assert_eq!(run.env[0], Variable { name: "A".into(), value: None });
        assert_eq!(run.env[1], Variable { name: "B".into(), value: Some("c=d".into()) });
        assert_eq!(run.stats, Some(StatsFormat::Json));
        assert_eq!(run.timeout, Some(Duration::from_secs(120)));
        assert_eq!(run.max_memory, Some(1 << 30));
    }

    #[test]
    fn a_mistyped_option_is_not_taken_for_a_file() {
        for line in [
            "--unorderd a.wasm",
            "--instances 0 a.wasm",
            "--instances -1 a.wasm",
            "--device gpu a.wasm",
            "--device cuda: a.wasm",
            "--dir= a.wasm",
            "--dir=x:: a.wasm",
            "--dir-ro=x:: a.wasm",
            "--env =x a.wasm",
            "--timeout soon a.wasm",
            "--dir=.",
            "",
        ] {
            let error = parse(line).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn subcommands_stand_in_files_place() {
        assert!(matches!(parse("compile a.wasm -o -").unwrap().command, Some(Command::Compile(_))));
        assert!(matches!(parse("explain a.wasm 3").unwrap().command, Some(Command::Explain(_))));
        assert!(matches!(parse("devices").unwrap().command, Some(Command::Devices)));
        let Some(Command::Run(run)) = parse("run --dir=. compile --x").unwrap().command else { panic!("not run") };
        assert_eq!(run.file_and_args, ["compile", "--x"]);
    }

    #[test]
    fn auto_layout_interleaves_whole_warps_on_a_gpu_only() {
        assert_eq!(LayoutChoice::Auto.resolve(true, 32), Layout::Interleaved);
        assert_eq!(LayoutChoice::Auto.resolve(true, 31), Layout::Linear);
        assert_eq!(LayoutChoice::Auto.resolve(false, 1000), Layout::Linear);
        assert_eq!(LayoutChoice::Interleaved.resolve(false, 1), Layout::Interleaved);
    }
}
