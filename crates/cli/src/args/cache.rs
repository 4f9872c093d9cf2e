//! The options of `gpu-run cache`.

use super::common::CodegenArgs;
use clap::{Args, Subcommand};
use gpu_run_console::units;
use gpu_run_device::DeviceList;
use std::path::PathBuf;
use std::time::Duration;

const HELP: &str = "\
gpu-run keeps compiled programs, so that the next run of a program compiles nothing. A cache of more than 1 GiB drops the entries that were not used for the longest \
time (GPU_RUN_CACHE_LIMIT=4GiB sets another limit); entries in use stay. Any number of processes can share a cache. A damaged entry is set aside, and its \
program compiled again.

The cache is the folder of --cache-dir, else of GPU_RUN_CACHE, else $XDG_CACHE_HOME/gpu-run, else ~/.cache/gpu-run. GPU_RUN_CACHE=off uses none; --no-cache \
uses none for one run.

GPU_RUN_CACHE_REMOTE=s3://bucket/prefix (or gs://, or file:///folder) names a cache that machines share. It is asked for what is not here, while the program is \
compiled: whichever is there first is used. GPU_RUN_CACHE_KEY is the secret that entries there are signed with, the same on all machines; an entry without the \
right signature is not used.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CacheCommand {
    #[command(subcommand)]
    pub(crate) task: Task,

    /// The folder of compiled programs [default: GPU_RUN_CACHE, or ~/.cache/gpu-run]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) cache_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Prints how large the cache is, and how often programs were found in it
    Stats {
        /// Prints one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Lists the entries, the most recently used first
    List {
        /// Prints one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Compiles programs ahead of time, several at once
    Preload(PreloadArgs),
    /// Removes old entries, entries beyond a size, and remains of processes that died
    Prune {
        /// Removes entries that were not used for this long: `30d`, `12h`
        #[arg(long, value_name = "DURATION", value_parser = units::age, allow_hyphen_values = true)]
        max_age: Option<Duration>,
        /// Removes the least recently used entries until the cache is no larger than this
        #[arg(long, value_name = "SIZE", value_parser = units::size, allow_hyphen_values = true)]
        max_size: Option<u64>,
    },
    /// Reads every entry and names the damaged ones
    Verify {
        /// Sets damaged entries aside; their programs are compiled again when needed
        #[arg(long)]
        repair: bool,
    },
    /// Removes all entries that are not in use
    Clear,
    /// Prints the path of the cache
    Path,
}

#[derive(Debug, Args)]
pub(crate) struct PreloadArgs {
    /// Programs: .wasm, .wat or .rs files, or Cargo packages' folders
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// The device to compile for: `cpu`, `cuda` (the first GPU), `cuda:N`, or `auto`: the first usable GPU, else `cpu`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceList,

    #[command(flatten)]
    pub(crate) codegen: CodegenArgs,
}

impl CacheCommand {
    /// The level of `-v`.
    pub(crate) fn verbose(&self) -> u8 {
        match &self.task {
            Task::Preload(args) => args.codegen.verbose,
            _ => 0,
        }
    }
}
