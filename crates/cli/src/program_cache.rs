//! Where the cache of compiled programs is, and what its entries are called.

use crate::args::CacheArgs;
use anyhow::{Context, Result};
use gpu_run_cache::{Cache, Options, Remote, SigningKey};
use gpu_run_compiler::{CompileOptions, Entry};
use gpu_run_console::failure::Failure;
use gpu_run_console::units;
use gpu_run_objects::Folder;
use std::env;
use std::path::{Path, PathBuf};

/// The variable that names the cache's folder, or is `off`.
const PLACE: &str = "GPU_RUN_CACHE";
/// The variable that limits the cache's size.
const LIMIT: &str = "GPU_RUN_CACHE_LIMIT";

/// The variable with the address of a cache that machines share.
const REMOTE: &str = "GPU_RUN_CACHE_REMOTE";
/// The variable with the secret that the entries there are signed with.
const KEY: &str = "GPU_RUN_CACHE_KEY";

/// Opens the cache that a run uses. A cache that cannot be used is no failure.
pub(crate) fn open(args: &CacheArgs) -> Result<Cache> {
    match place(args)? {
        Err(why) => Ok(Cache::off(&why)),
        Ok(dir) => Ok(Cache::open(Options { limit: limit()?, remote: remote()?, ..Options::new(dir) })),
    }
}

/// Returns the cache's folder, or why there is none.
pub(crate) fn place(args: &CacheArgs) -> Result<Result<PathBuf, String>> {
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
    // The XDG specification says that relative paths are to be ignored.
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    Ok(base.map(|base| base.join("gpu-run")).ok_or_else(|| format!("neither {PLACE}, XDG_CACHE_HOME nor HOME is set")))
}

/// Returns the cache that machines share, if there is one.
fn remote() -> Result<Option<Remote>> {
    let text = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let given = |name: &str| text(name).filter(|value| !value.trim().is_empty());
    let Some(address) = given(REMOTE).filter(|address| address != "off") else { return Ok(None) };
    let folder = Folder::open(&address).map_err(|error| {
        Failure::usage(format!("{REMOTE}: {error}"))
            .hint("as in s3://bucket/prefix, gs://bucket/prefix or file:///folder")
    })?;
    let Some(secret) = given(KEY) else {
        tracing::warn!(
            "not using the remote cache {}: {KEY} is not set; its entries are code, so they are signed with that secret, \
             the same on all machines",
            folder.name()
        );
        return Ok(None);
    };
    // What was given is not repeated here: it is secret.
    let key = SigningKey::new(&secret).map_err(|error| Failure::usage(format!("{KEY} is too short: {error}")))?;
    Ok(Some(Remote::new(folder, key)))
}

fn limit() -> Result<u64> {
    let Some(text) = env::var_os(LIMIT) else { return Ok(Options::LIMIT) };
    let text = text.to_string_lossy();
    units::size(&text).map_err(|what| Failure::usage(format!("{LIMIT}={text}: {what}")).into())
}

/// Returns a file's name without its folders, for the list of entries.
pub(crate) fn label(name: &str) -> String {
    let path = Path::new(name);
    path.file_name().map_or_else(|| name.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Returns the name of the entry for this file with these options.
pub(crate) fn entry_name(name: &str, options: &CompileOptions) -> String {
    let mut build = options.build.layout().to_string();
    if options.build.is_speculative() {
        build += ", speculative";
    }
    if let Some(registers) = options.registers {
        build += &format!(", {registers} registers");
    }
    if options.backtrace {
        build += ", backtrace";
    }
    let entry = match &options.entry {
        Entry::Function(function) => format!(", {function}"),
        _ => String::new(),
    };
    format!("{} ({build}{entry})", label(name))
}
