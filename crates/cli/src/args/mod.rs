//! The command line.
//!
//! `gpu-run FILE ARGS…` is the command people use; everything after FILE belongs to the guest, whatever it looks like.
//! Subcommands are recognised only in FILE's place, so that no guest argument is ever taken for one.

mod apps;
mod bench;
mod cache;
mod common;
mod desktop;
mod machine;
mod map;

pub(crate) use apps::AppArgs;
pub(crate) use bench::BenchArgs;
pub(crate) use cache::{CacheCommand, PreloadArgs, Task};
pub(crate) use common::{
    CacheArgs, ChecksChoice, CodegenArgs, GuestArgs, LaunchArgs, LayoutChoice, ProcessArgs, ProgramArg, StatsFormat,
    ThreadArgs, TraceChoice, Variable,
};
pub(crate) use desktop::DesktopArgs;
pub(crate) use machine::{BootArgs, TopArgs};
pub(crate) use map::{MapArgs, MergeArgs, Split, TuneArgs};

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use gpu_run_console::units;
use gpu_run_device::DeviceList;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  gpu-run app.wasm --its --own options   everything after FILE belongs to the guest
  gpu-run hello.rs                       compiles one Rust file and runs it
  gpu-run --bin server .                 builds the Cargo package of this folder and runs it
  gpu-run --dir=data::/in app.wasm       the guest sees `data` as `/in`, and no other folder
  gpu-run --env RUST_LOG --env N=3 app.wasm
  gpu-run --instances 64 app.wasm        runs 64 copies at once
  gpu-run map app.wasm < in.txt          runs once for each line; see `gpu-run map --help`
  gpu-run --invoke add math.wat 2 3      calls one exported function
  gpu-run --timeout 10s --max-memory 64MiB untrusted.wasm
  RUST_BACKTRACE=1 gpu-run app.wasm      shows the functions and lines that led to a panic or a trap
  gpu-run --trace wasi app.wasm          prints each call of the host, as strace does
  gpu-run compile app.wasm -o app.ptx
  gpu-run explain app.wasm main          shows the functions named `main` as wasm, CLIF and PTX
  gpu-run cache stats                    shows the compiled programs that are kept

As a Cargo runner, in .cargo/config.toml:
  [target.wasm32-wasip1]
  runner = \"gpu-run --dir=.\"
Then `cargo run` and `cargo test`, with --target wasm32-wasip1, run on the device.

Exit codes:
  the guest's own exit code, or
  1    something else failed: no device, a full disk
  2    a usage error, or a file that cannot be run
  124  --timeout stopped the guest
  130  Ctrl-C stopped a program with threads
  134  the guest trapped
  141  nobody reads gpu-run's output any more
Only the guest's bytes go to stdout; gpu-run's own messages go to stderr.";

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

/// Whether a word in FILE's place, without options before it, is a command.
pub(crate) fn is_command(word: &str) -> bool {
    Cli::command().find_subcommand(word).is_some()
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs FILE, as without `run`: for a file that is named like a command
    #[command(override_usage = "gpu-run run [OPTIONS] FILE [ARGS]...")]
    Run(RunArgs),
    /// Runs FILE once for each line, row, JSON value or file of an input, and writes the outputs in order
    Map(MapArgs),
    /// Puts the parts of an output together that `map --shard` has written
    Merge(MergeArgs),
    /// Measures which build of FILE is the fastest for an input; `map` uses that build from then on
    Tune(TuneArgs),
    /// Builds a Cargo package with gpu-run's own std, which has processes and sockets
    #[command(override_usage = "gpu-run build [--threads] [--unwind] [CARGO OPTIONS]...", after_help = BUILD_HELP)]
    Build(CargoArgs),
    /// Builds the tests of a Cargo package in the same way, and runs them
    #[command(override_usage = "gpu-run test [--threads] [--unwind] [CARGO OPTIONS]...", after_help = TEST_HELP)]
    Test(CargoArgs),
    /// Writes the PTX or the CLIF that FILE compiles to
    Compile(CompileArgs),
    /// Shows functions as wasm, CLIF and PTX
    Explain(ExplainArgs),
    /// Compares programs on the device with Wasmtime on all cores
    Bench(BenchArgs),
    /// Starts the resident machine: a kernel that owns its state and ticks by itself
    Boot(BootArgs),
    /// Shows a desktop that lives on the device, in a browser or as a picture
    Desktop(DesktopArgs),
    /// Shows a running machine, or the threads of a running program, live
    Top(TopArgs),
    /// Shows, fills and cleans the cache of compiled programs
    Cache(CacheCommand),
    /// Runs scripts of the WebAssembly test suite
    Wast(WastArgs),
    /// Lists the devices, and says why others cannot be used
    Devices,
    /// Prints a completion script for a shell
    Completion { shell: clap_complete::Shell },
}

const BUILD_HELP: &str = "\
The options are cargo's, and so are the places of the output: target/wasm32-wasip1/debug, for instance. Besides:
  --threads         builds for wasm32-wasip1-threads, so that the program can start threads
  --unwind          a panic ends its thread and can be caught, as natively; without, it ends the program. Other WASI runtimes run \
such a program only if they have WebAssembly's exceptions
  --target TARGET   wasm32-wasip1, which is the default, wasm32-wasip1-threads, or wasm32-unknown-unknown

gpu-run makes its std once for each version of Rust, from the sources that `rustup component add rust-src` installs, and keeps it \
with the compiled programs. The first time, cargo downloads the crates that std is made with. From then on, `gpu-run FILE.rs` and `gpu-run FOLDER` use it, too. What is built runs under every WASI \
runtime; others than gpu-run answer what it adds with `Unsupported`.

Examples:
  gpu-run build --release
  gpu-run build --threads -p server
  gpu-run --net connect=example.com:80 target/wasm32-wasip1/debug/app.wasm";

const TEST_HELP: &str = "\
The options are cargo's, --threads, --unwind and --target those of `gpu-run build`. The tests run with gpu-run, unless Cargo is configured to \
use another runner; a runner can have options for them.

Examples:
  gpu-run test
  gpu-run test --threads -p server -- --nocapture
  CARGO_TARGET_WASM32_WASIP1_RUNNER='gpu-run --dir=.' gpu-run test";

#[derive(Debug, Args)]
pub(crate) struct CargoArgs {
    /// Options of cargo
    #[arg(value_name = "CARGO OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) cargo_args: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A .wasm, .wat or .rs file, a Cargo package's folder, or `-` for stdin; then the guest's arguments
    #[arg(value_name = "FILE [ARGS]", required = true, trailing_var_arg = true)]
    pub(crate) file_and_args: Vec<OsString>,

    /// Calls this exported function instead of `_start`; ARGS are its parameters, results go to stdout
    #[arg(long, value_name = "FUNC")]
    pub(crate) invoke: Option<String>,

    /// Runs N copies at once; each finds its number, from 0, in GPU_RUN_INSTANCE
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true)]
    pub(crate) instances: NonZeroU32,

    /// Prints the guest's calls of the host on stderr, one line each; `wasi` is all there is to trace
    #[arg(long, value_name = "WHAT")]
    pub(crate) trace: Option<TraceChoice>,

    /// Writes a core dump of an instance or a process that traps, for a debugger, to a new file in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) coredump: Option<PathBuf>,

    /// Writes the picture that the instances draw, with the crate gpu-run-guest, to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) png: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) guest: GuestArgs,

    #[command(flatten)]
    pub(crate) processes: ProcessArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,

    /// Writes lines as they come, instead of one instance after the other
    #[arg(long)]
    pub(crate) unordered: bool,

    /// Limits how much output of all instances may wait on disk for its turn; beyond it, writes fail as on a full disk
    #[arg(long, value_name = "SIZE", value_parser = units::size_or_none, default_value = "16GiB", allow_hyphen_values = true)]
    pub(crate) max_spill: u64,

    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompileArgs {
    /// A .wasm, .wat or .rs file, a Cargo package's folder, or `-` for stdin
    pub(crate) file: PathBuf,

    /// The file to write; its extension, .ptx or .clif, selects the form; `-` is PTX on stdout [default: FILE's name with .ptx, here]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// The form to write [default: as OUT's extension says, else ptx]
    #[arg(long, value_name = "FORM")]
    pub(crate) emit: Option<Emit>,

    /// How memory accesses are checked; `map` uses `speculative`
    #[arg(long, value_name = "HOW", default_value = "exact")]
    pub(crate) checks: ChecksChoice,

    #[command(flatten)]
    pub(crate) codegen: CodegenArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A .wasm, .wat or .rs file, a Cargo package's folder, or `-` for stdin
    pub(crate) file: PathBuf,

    /// The functions to show: an index, a name, or a part of a name [default: all]
    pub(crate) func: Option<String>,

    /// The build to show: that of `gpu-run FILE`, or that of `gpu-run map` on a GPU
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

#[derive(Debug, Args)]
pub(crate) struct WastArgs {
    /// Scripts, or folders: of a folder, all .wast files in it and below
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// The device to run on: `cpu`, `cuda` (the first GPU), `cuda:N`, or `auto`: the first usable GPU, else `cpu`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceList,

    /// How instances lie in device memory; `both` runs each script twice
    #[arg(long, value_name = "LAYOUT", default_value = "both")]
    pub(crate) layout: WastLayout,

    /// The number of scripts that run at once, at most [default: one per core, as far as the device has memory]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroU32>,

    /// Prints every problem, everything unsupported, and times; -vv prints more
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
pub(crate) enum Emit {
    Ptx,
    Clif,
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_run_abi::Layout;
    use gpu_run_wasi::{Access, Preopen};
    use std::time::Duration;

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
        assert_eq!(run.given.preopens().collect::<Vec<_>>(), [&here, &both, &read_only]);
        assert_eq!(run.given.env[0], Variable { name: "A".into(), value: None });
        assert_eq!(run.given.env[1], Variable { name: "B".into(), value: Some("c=d".into()) });
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
