//! `gpu-run cache`, as it is typed.

use super::common::{CodegenArgs, DeviceChoice};
use clap::{Args, Subcommand};
use gpu_run_console::units;
use std::path::PathBuf;
use std::time::Duration;

const HELP: &str = "\
What a program compiles to is kept, so that its next run compiles nothing. Entries that were not used for longest go when there are more than 1 GiB of them \
(GPU_RUN_CACHE_LIMIT=4GiB changes that); those in use stay. Any number of processes share a cache. An entry that is damaged is set aside and made again.

The cache is where --cache-dir says, or GPU_RUN_CACHE, or in $XDG_CACHE_HOME/gpu-run, or in ~/.cache/gpu-run. GPU_RUN_CACHE=off does without, and so does \
--no-cache for one run.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CacheCommand {
    #[command(subcommand)]
    pub(crate) task: Task,

    /// Where compiled programs are kept [default: GPU_RUN_CACHE, or ~/.cache/gpu-run]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) cache_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Says what is there, and how often it was found
    Stats {
        /// Prints one object
        #[arg(long)]
        json: bool,
    },
    /// Lists what is there, the one used last first
    List {
        /// Prints one object a line
        #[arg(long)]
        json: bool,
    },
    /// Compiles programs ahead, several at a time
    Preload(PreloadArgs),
    /// Removes what was not used for long or is too much, and what processes that died have left
    Prune {
        /// What was not used for so long: `30d`, `12h`
        #[arg(long, value_name = "DURATION", value_parser = units::age, allow_hyphen_values = true)]
        max_age: Option<Duration>,
        /// What is more than this, the one used longest ago first
        #[arg(long, value_name = "SIZE", value_parser = units::size, allow_hyphen_values = true)]
        max_size: Option<u64>,
    },
    /// Reads every entry and says which are damaged
    Verify {
        /// Sets them aside: they are compiled again when they are next asked for
        #[arg(long)]
        repair: bool,
    },
    /// Removes everything that is not in use
    Clear,
    /// Prints the folder
    Path,
}

#[derive(Debug, Args)]
pub(crate) struct PreloadArgs {
    /// Programs: .wasm, .wat or .rs files, or Cargo packages' folders
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// The device to compile for: `cpu`, `cuda`, `cuda:N`, or `auto`, the first GPU there is, else cpu
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceChoice,

    #[command(flatten)]
    pub(crate) codegen: CodegenArgs,
}

impl CacheCommand {
    /// How much is said of what is done.
    pub(crate) fn verbose(&self) -> u8 {
        match &self.task {
            Task::Preload(args) => args.codegen.verbose,
            _ => 0,
        }
    }
}
