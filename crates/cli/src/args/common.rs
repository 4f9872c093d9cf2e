//! Options that several commands share.

use clap::{Args, ValueEnum};
use gpu_run_abi::Layout;
use gpu_run_compiler::Build;
use gpu_run_console::units;
use gpu_run_device::DeviceList;
use gpu_run_run::{Common, ThreadPlacement};
use gpu_run_wasi::{Access, NetRule, Preopen};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// What guests are given.
#[derive(Clone, Debug, Args)]
pub(crate) struct GivenArgs {
    /// Gives the guest a folder, under the same name or as GUEST; repeatable [default: none]
    #[arg(long = "dir", value_name = "HOST[::GUEST]", value_parser = folder)]
    pub(crate) dirs: Vec<Preopen>,

    /// Gives the guest a folder that it can only read; repeatable [default: none]
    #[arg(long = "dir-ro", value_name = "HOST[::GUEST]", value_parser = read_only_folder)]
    pub(crate) dirs_read_only: Vec<Preopen>,

    /// Lets the guest use the network: `connect=HOST:PORT` to connect, `listen=ADDRESS:PORT` to accept connections and datagrams there; `*` stands for any host, address or port; repeatable [default: none]
    #[arg(long = "net", value_name = "RULE")]
    pub(crate) net: Vec<NetRule>,

    /// Sets a variable in the guest's environment; without a value, passes on gpu-run's own; repeatable [default: none]
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<Variable>,
}

/// What every command that runs guests takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct LaunchArgs {
    #[command(flatten)]
    pub(crate) given: GivenArgs,

    /// The device to run on: `cpu`, `cuda` (the first GPU), `cuda:N`, or `auto`: the first usable GPU, else `cpu`. `map` runs on several: `cuda:0,2`, `cuda:all`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceList,

    /// Stops instances that still run after this long, not counting compile time; a number with `us`, `ms`, `s`, `m` or `h`, or plain seconds [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = units::duration, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,

    /// Limits the memories and tables of an instance, all together; bytes, or a number with `K`, `M` or `G` (powers of 1024) [default: what the module declares and the device has]
    #[arg(long, value_name = "SIZE", value_parser = units::size, allow_hyphen_values = true)]
    pub(crate) max_memory: Option<u64>,

    /// Prints on stderr where the time went; `json` prints one object
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub(crate) stats: Option<StatsFormat>,

    #[command(flatten)]
    pub(crate) cache: CacheArgs,

    #[command(flatten)]
    pub(crate) codegen: CodegenArgs,
}

/// What commands take whose guests may start processes.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProcessArgs {
    /// A program that the guest may start under this name, with `std::process::Command`; of a folder, all .wasm files under their own names; repeatable [default: none]
    #[arg(long = "program", value_name = "[NAME=]FILE")]
    pub(crate) programs: Vec<ProgramArg>,

    /// Limits how many processes run at once, besides the first
    #[arg(long, value_name = "N", default_value = "64", allow_negative_numbers = true)]
    pub(crate) max_processes: u32,
}

/// A program, or a folder of programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProgramArg {
    /// `None`: as the file is called.
    pub(crate) name: Option<String>,
    pub(crate) path: PathBuf,
}

impl FromStr for ProgramArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && !path.is_empty() && !name.contains('/') => {
                Ok(Self { name: Some(name.to_owned()), path: path.into() })
            }
            None if !text.is_empty() => Ok(Self { name: None, path: text.into() }),
            _ => Err("expected NAME=FILE, FILE or a folder; a name has no `/`".into()),
        }
    }
}

/// What every command that takes programs from the cache takes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CacheArgs {
    /// The folder of compiled programs [default: GPU_RUN_CACHE, or ~/.cache/gpu-run]
    #[arg(long, value_name = "DIR", conflicts_with = "no_cache")]
    pub(crate) cache_dir: Option<PathBuf>,

    /// Compiles again, and keeps nothing
    #[arg(long)]
    pub(crate) no_cache: bool,
}

/// What a program finds that asks for it with the crate `gpu-run-guest`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct GuestArgs {
    /// The bytes of the buffer that all instances share, for programs with the crate gpu-run-guest [default: 64KiB; none in `map`]
    #[arg(long, value_name = "SIZE", value_parser = shared_buffer, allow_hyphen_values = true)]
    pub(crate) shared_buffer: Option<u64>,

    /// The time of a program that draws, in seconds: what `time` of the crate gpu-run-guest returns
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0", allow_hyphen_values = true)]
    pub(crate) time: f64,
}

impl GuestArgs {
    /// Returns what so many instances have in common. Records of a map share a buffer only if that is asked for: one must not
    /// find what another left there.
    pub(crate) fn common(&self, instances: Option<u64>) -> Common {
        let usual = if instances.is_some() { Common::SHARED_BYTES } else { 0 };
        let shared_bytes = self.shared_buffer.unwrap_or(usual);
        Common { instances, shared_bytes, seconds: self.time, ..Common::default() }
    }
}

/// The largest shared buffer: a program's offsets in it have 32 bits.
const MAX_SHARED_BUFFER: u64 = 1 << 31;

fn shared_buffer(text: &str) -> Result<u64, String> {
    let bytes = units::size_or_none(text)?;
    match (8..=MAX_SHARED_BUFFER).contains(&bytes) && bytes.is_multiple_of(8) {
        true => Ok(bytes),
        false => Err("give a multiple of 8 bytes, at least 8 and at most 2 GiB".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite());
    number.ok_or_else(|| "it is not a number of seconds".to_owned())
}

/// The threads of a program with threads.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ThreadArgs {
    /// The number of threads that a program with threads can have at once, itself included [default: 4 per core and at least 64
    /// on cpu; 16384 on a GPU, for each record of a map 128]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) threads: Option<u32>,

    /// How the threads of a program lie on a GPU: `lane` for threads that do the same (32 of them share a warp), `warp` for threads
    /// that do different things, `auto` for warps first and lanes when there are many
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) thread_placement: PlacementChoice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlacementChoice {
    Auto,
    Lane,
    Warp,
}

impl From<PlacementChoice> for ThreadPlacement {
    fn from(choice: PlacementChoice) -> Self {
        match choice {
            PlacementChoice::Auto => Self::Auto,
            PlacementChoice::Lane => Self::Lane,
            PlacementChoice::Warp => Self::Warp,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChecksChoice {
    /// Stop an instance where a fast check fails, and rerun it exactly
    #[value(alias = "fast")]
    Speculative,
    /// Check every access in full; nothing is rerun
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
    /// How instances lie in device memory: `auto` is linear, and interleaved from 32 instances on a GPU
    #[arg(long, value_name = "LAYOUT", default_value = "auto")]
    pub(crate) layout: LayoutChoice,

    /// The PTX target to compile for [default: sm_75, which runs on every newer GPU]
    #[arg(long, value_name = "sm_NN", value_parser = units::target)]
    pub(crate) target: Option<u32>,

    /// Stops compiling after this long
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = units::duration, allow_hyphen_values = true)]
    pub(crate) compile_timeout: Duration,

    /// The binary of a Cargo package to run [default: its only one, or `default-run`]
    #[arg(long, value_name = "NAME")]
    pub(crate) bin: Option<String>,

    /// Prints progress on stderr; -vv prints more
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl CodegenArgs {
    /// What commands compile with that do not have these options.
    pub(crate) fn usual() -> Self {
        let compile_timeout = Duration::from_secs(300);
        Self { layout: LayoutChoice::Auto, target: None, compile_timeout, bin: None, verbose: 0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsFormat {
    Text,
    Json,
}

/// What `--trace` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceChoice {
    /// Calls of WASI that the host answers
    Wasi,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutChoice {
    Linear,
    Interleaved,
    Auto,
}

impl LayoutChoice {
    pub(crate) fn resolve(self, gpu: bool, instances: u32) -> Layout {
        self.fixed().unwrap_or(Layout::suited(gpu, instances))
    }

    /// Returns the layout that the user chose; `None` for `auto`.
    pub(crate) fn fixed(self) -> Option<Layout> {
        match self {
            LayoutChoice::Linear => Some(Layout::Linear),
            LayoutChoice::Interleaved => Some(Layout::Interleaved),
            LayoutChoice::Auto => None,
        }
    }
}

impl GivenArgs {
    /// Returns all folders that the guest is given.
    pub(crate) fn preopens(&self) -> impl Iterator<Item = &Preopen> {
        self.dirs.iter().chain(&self.dirs_read_only)
    }
}

/// `--dir HOST[::GUEST]`
pub(crate) fn folder(text: &str) -> Result<Preopen, String> {
    let (host, guest) = text.split_once("::").unwrap_or((text, text));
    if host.is_empty() || guest.is_empty() {
        return Err("expected a folder, or HOST::GUEST with both sides given".into());
    }
    Ok(Preopen { host: host.into(), guest: guest.into(), access: Access::ReadWrite })
}

/// `--dir-ro HOST[::GUEST]`
fn read_only_folder(text: &str) -> Result<Preopen, String> {
    Ok(Preopen { access: Access::ReadOnly, ..folder(text)? })
}

/// `--env NAME[=VALUE]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// `None` means the value in our own environment.
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
            return Err("expected NAME=VALUE, or NAME alone to pass on gpu-run's own value".into());
        }
        Ok(Self { name: name.to_owned(), value })
    }
}
