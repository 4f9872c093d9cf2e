//! Chooses the programs to measure: files that the user names, or the benchmark set.

use crate::args::{BenchArgs, CacheArgs, CodegenArgs};
use crate::source;
use crate::surface::Surface;
use anyhow::Result;
use gpu_run_bench::{HOST_CALLS, Program};
use gpu_run_console::failure::Failure;
use gpu_run_run::Source;
use std::path::{Path, PathBuf};

/// Where `scripts/build-benches` puts the set, from the repository's root.
const BUILT: &str = "benches/programs/target/wasm32-wasip1/release";
/// The variable that names the set's folder if it lies elsewhere.
const VARIABLE: &str = "GPU_RUN_BENCHES";

/// A program to measure.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The file's name without folders and extension.
    pub(super) name: String,
    pub(super) path: PathBuf,
}

/// Returns the programs that `args` names, in alphabetical order if they come from a folder, and whether to measure
/// host calls.
pub(super) fn find(args: &BenchArgs) -> Result<(Vec<Entry>, bool)> {
    let is_calls = |path: &&PathBuf| path.as_os_str() == HOST_CALLS;
    let named = args.programs.iter().any(|path| is_calls(&path));
    if named && args.programs.iter().all(|path| is_calls(&path)) {
        return Ok((Vec::new(), true));
    }
    let programs = programs(args)?;
    Ok((programs, named || args.programs.is_empty() && args.filter.is_none()))
}

fn programs(args: &BenchArgs) -> Result<Vec<Entry>> {
    let all = if args.programs.is_empty() {
        folder(&set_folder(args)?)?
    } else {
        args.programs.iter().filter(|path| path.as_os_str() != HOST_CALLS).map(|path| entry(path.clone())).collect()
    };
    let wanted = args.filter.as_deref().unwrap_or("");
    let known: Vec<String> = all.iter().map(|entry| entry.name.clone()).collect();
    let chosen: Vec<Entry> = all.into_iter().filter(|entry| entry.name.contains(wanted)).collect();
    if chosen.is_empty() {
        return Err(Failure::usage(format!("no program's name contains `{wanted}`"))
            .hint(format!("the programs are {}", known.join(", ")))
            .into());
    }
    Ok(chosen)
}

pub(super) fn load(entry: &Entry, codegen: &CodegenArgs) -> Program {
    Program { name: entry.name.clone(), source: module(entry, codegen) }
}

/// Loads the program and checks it, so that errors read as those of `gpu-run FILE` do.
fn module(entry: &Entry, codegen: &CodegenArgs) -> Result<Source> {
    let source = source::load(&entry.path, codegen.bin.as_deref(), &CacheArgs::default())?;
    let surface = Surface::read(&source.wasm, &source.name)?;
    surface.check_imports(&source.name)?;
    surface.check_command(&source.name)?;
    Ok(source)
}

fn set_folder(args: &BenchArgs) -> Result<PathBuf> {
    if let Some(folder) = args.set.clone().or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from)) {
        return Ok(folder);
    }
    let here = std::env::current_dir()?;
    let built = here.ancestors().map(|folder| folder.join(BUILT)).find(|folder| folder.is_dir());
    built.ok_or_else(|| {
        Failure::usage(format!("the benchmark set is not built: there is no {BUILT} in this folder or in one above it"))
            .hint(format!(
                "build it with scripts/build-benches, say where it is with --set DIR or {VARIABLE}, or name .wasm files"
            ))
            .into()
    })
}

/// Returns all modules in a folder.
fn folder(folder: &Path) -> Result<Vec<Entry>> {
    let unreadable = |error| Failure::usage(format!("cannot read the folder {}: {error}", folder.display()));
    let mut entries = Vec::new();
    for file in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = file.map_err(unreadable)?.path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == "wasm" || extension == "wat") {
            entries.push(entry(path));
        }
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    if entries.is_empty() {
        return Err(Failure::usage(format!("{} contains no .wasm or .wat files", folder.display())).into());
    }
    Ok(entries)
}

fn entry(path: PathBuf) -> Entry {
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Entry { name, path }
}
