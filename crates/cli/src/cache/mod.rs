//! The cache of compiled programs: where it is, and `gpu-run cache`.

mod preload;
mod show;

use crate::args::{CodegenArgs, DeviceChoice};
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use gpu_run_cache::{Cache, Options, Pruned};
use gpu_run_console::failure::Failure;
use gpu_run_console::terminal::print;
use gpu_run_console::units::{self, count, show_size};
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the cache is, or `off`.
const PLACE: &str = "GPU_RUN_CACHE";
/// How large it may become.
const LIMIT: &str = "GPU_RUN_CACHE_LIMIT";

const HELP: &str = "\
What a program compiles to is kept, so that its next run compiles nothing. Entries that were not used for longest go when there are more than 1 GiB of them \
(GPU_RUN_CACHE_LIMIT=4GiB changes that); those in use stay. Any number of processes share a cache. An entry that is damaged is set aside and made again.

The cache is where --cache-dir says, or GPU_RUN_CACHE, or in $XDG_CACHE_HOME/gpu-run, or in ~/.cache/gpu-run. GPU_RUN_CACHE=off does without, and so does \
--no-cache for one run.";

/// What every command that takes programs from the cache takes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CacheArgs {
    /// Where compiled programs are kept [default: GPU_RUN_CACHE, or ~/.cache/gpu-run]
    #[arg(long, value_name = "DIR", conflicts_with = "no_cache")]
    pub(crate) cache_dir: Option<PathBuf>,

    /// Compiles anew, and keeps nothing
    #[arg(long)]
    pub(crate) no_cache: bool,
}

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CacheCommand {
    #[command(subcommand)]
    task: Task,

    /// Where compiled programs are kept [default: GPU_RUN_CACHE, or ~/.cache/gpu-run]
    #[arg(long, value_name = "DIR", global = true)]
    cache_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Task {
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
    files: Vec<PathBuf>,

    /// The device to compile for: `cpu`, `cuda`, `cuda:N`, or `auto`, the first GPU there is, else cpu
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: DeviceChoice,

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

/// `gpu-run cache`
pub(crate) fn cache(args: &CacheCommand) -> Result<u8> {
    let here = CacheArgs { cache_dir: args.cache_dir.clone(), no_cache: false };
    if let Task::Path = args.task {
        let place = place(&here)?.map_err(|why| Failure::environment(format!("there is no cache: {why}")))?;
        return print(&format!("{}\n", place.display())).map(|()| 0);
    }
    let cache = open(&here)?;
    match &args.task {
        Task::Stats { json: true } => print(&format!("{}\n", serde_json::to_string(&cache.stats()?)?))?,
        Task::Stats { json: false } => print(&show::stats(&cache.stats()?, cache.path()))?,
        Task::List { json: true } => print(&show::list_json(&cache.list()?))?,
        Task::List { json: false } => print(&show::list(&cache.list()?))?,
        Task::Preload(args) => return preload::preload(cache, args),
        Task::Prune { max_age, max_size } => print(&removed(&cache.prune(*max_age, *max_size)?))?,
        Task::Clear => print(&removed(&cache.clear()?))?,
        Task::Verify { repair } => {
            let check = cache.verify(*repair)?;
            print(&show::check(&check))?;
            return Ok(u8::from(check.damaged.len() as u64 > check.repaired));
        }
        Task::Path => {}
    }
    Ok(0)
}

/// The cache that a run uses. That there is none is no failure.
pub(crate) fn open(args: &CacheArgs) -> Result<Cache> {
    match place(args)? {
        Err(why) => Ok(Cache::off(&why)),
        Ok(dir) => Ok(Cache::open(Options { limit: limit()?, ..Options::new(dir) })),
    }
}

/// The folder, or why there is none.
fn place(args: &CacheArgs) -> Result<Result<PathBuf, String>> {
    if args.no_cache {
        return Ok(Err("--no-cache was given".into()));
    }
    if let Some(dir) = &args.cache_dir {
        return std::path::absolute(dir).map(Ok).with_context(|| format!("--cache-dir {}", dir.display()));
    }
    if let Some(place) = env::var_os(PLACE) {
        if place.is_empty() || place == "off" || place == "0" {
            return Ok(Err(format!("{PLACE} is `{}`", place.display())));
        }
        return std::path::absolute(&place).map(Ok).with_context(|| format!("{PLACE}={}", place.display()));
    }
    // What is not absolute does not count, says the XDG specification.
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    Ok(base.map(|base| base.join("gpu-run")).ok_or_else(|| format!("neither {PLACE}, XDG_CACHE_HOME nor HOME is set")))
}

fn limit() -> Result<u64> {
    let Some(text) = env::var_os(LIMIT) else { return Ok(Options::LIMIT) };
    let text = text.to_string_lossy();
    units::size(&text).map_err(|what| Failure::usage(format!("{LIMIT}={text}: {what}")).into())
}

fn removed(pruned: &Pruned) -> String {
    let entries = match pruned.entries {
        1 => "1 entry".into(),
        entries => format!("{entries} entries"),
    };
    let mut text = format!("removed {entries}, {}", show_size(pruned.bytes));
    if pruned.leftovers > 0 {
        text += &format!(", and {} of processes that died", count(pruned.leftovers, "file"));
    }
    if pruned.in_use > 0 {
        text +=
            &format!("; {} in use", if pruned.in_use == 1 { "1 is".into() } else { format!("{} are", pruned.in_use) });
    }
    text + "\n"
}

/// A file's name, for the list.
pub(crate) fn label(name: &str) -> String {
    let path = Path::new(name);
    path.file_name().map_or_else(|| name.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// What an entry is called that belongs to this file, compiled like this.
pub(crate) fn entry_name(name: &str, options: &gpu_run_compiler::CompileOptions) -> String {
    let build = crate::report::build_name(options.build.layout(), options.registers);
    let entry = match &options.entry {
        gpu_run_compiler::Entry::Function(function) => format!(", {function}"),
        _ => String::new(),
    };
    format!("{} ({build}{entry})", label(name))
}
