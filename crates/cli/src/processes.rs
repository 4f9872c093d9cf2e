//! What the command line says about processes that a guest starts: the programs it may start by their names, and how any program
//! is compiled for it.

use crate::args::{AppArgs, CacheArgs, ChecksChoice, CodegenArgs, LaunchArgs, ProcessArgs, ProgramArg};
use crate::backtrace::Wanted;
use crate::program::{Call, load, options};
use crate::program_cache;
use crate::source;
use crate::surface::Surface;
use anyhow::{Context as _, Result};
use gpu_run_compiler::{Compiler, Trap, printable};
use gpu_run_console::failure::Failure;
use gpu_run_device::Device;
use gpu_run_run::{Loaded, Loader, ProcessSettings, Processes, Source};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Prepares what a guest may start.
pub(crate) fn prepare(
    args: &ProcessArgs,
    source: &Source,
    launch: &LaunchArgs,
    device: &Arc<dyn Device>,
) -> Result<Processes> {
    let loader = ProgramLoader {
        cache: launch.cache.clone(),
        codegen: launch.codegen.clone(),
        max_memory: launch.max_memory,
        backtrace: Wanted::new(&launch.given.env),
    };
    let named = named(&args.programs, &loader, device)?;
    let settings = ProcessSettings {
        device: device.clone(),
        // A guest that was given no program and no folder starts nothing, not even itself.
        own: (!named.is_empty() || launch.given.preopens().next().is_some()).then(|| source.wasm.clone()),
        max_memory: launch.max_memory,
        max_processes: args.max_processes as usize,
    };
    Ok(Processes::new(settings, named, Box::new(loader)))
}

/// Prepares the apps of a desktop, by their names, and what they may start.
pub(crate) fn of_desktop(
    args: &AppArgs,
    apps: &[(String, Source)],
    cache: &CacheArgs,
    device: &Arc<dyn Device>,
) -> Result<Processes> {
    let (codegen, backtrace) = (CodegenArgs::usual(), Wanted::new(&args.given.env));
    let loader = ProgramLoader { cache: cache.clone(), codegen, max_memory: Some(args.max_memory), backtrace };
    let mut all = named(&args.processes.programs, &loader, device)?;
    let mut compiled: Vec<(Arc<Vec<u8>>, Loaded)> = Vec::new();
    for (name, source) in apps {
        if all.iter().any(|(other, _)| other == name) {
            let message = format!("two programs have the name `{}`", printable::name(name));
            return Err(Failure::usage(message).hint("give one of the files another name").into());
        }
        // Several apps may be one program.
        let known = compiled.iter().find(|(wasm, _)| Arc::ptr_eq(wasm, &source.wasm)).map(|(_, loaded)| loaded.clone());
        let loaded = match known {
            Some(loaded) => loaded,
            None => loader.compile(source, device)?,
        };
        compiled.push((source.wasm.clone(), loaded.clone()));
        all.push((name.clone(), loaded));
    }
    let max_processes = args.processes.max_processes as usize + apps.len();
    let settings =
        ProcessSettings { device: device.clone(), own: None, max_memory: Some(args.max_memory), max_processes };
    Ok(Processes::new(settings, all, Box::new(loader)))
}

/// Loads and compiles the programs of `--program`.
fn named(programs: &[ProgramArg], loader: &ProgramLoader, device: &Arc<dyn Device>) -> Result<Vec<(String, Loaded)>> {
    let files = named_files(programs)?;
    let mut named: Vec<(String, Loaded)> = Vec::new();
    for (at, (name, file)) in files.iter().enumerate() {
        let shown = printable::name(name);
        if name.ends_with(".wasm") {
            let message = format!("--program names a program `{shown}`: what ends in `.wasm` is the name of a file");
            return Err(Failure::usage(message).hint("give it another name: --program NAME=FILE").into());
        }
        if let Some((_, other)) = files[..at].iter().find(|(other, _)| other == name) {
            let (one, two) = (printable::path(other), printable::path(file));
            return Err(Failure::usage(format!("--program names two programs `{shown}`: {one} and {two}"))
                .hint("give one of them another name: --program NAME=FILE")
                .into());
        }
        let of_option = || format!("--program {shown}");
        let source = source::load(file, None, &loader.cache).with_context(of_option)?;
        named.push((name.clone(), loader.compile(&source, device).with_context(of_option)?));
    }
    Ok(named)
}

/// Returns the names and the files of `--program`; a folder stands for all .wasm files in it.
fn named_files(programs: &[ProgramArg]) -> Result<Vec<(String, PathBuf)>> {
    let stem = |file: &Path| file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut all: Vec<(String, PathBuf)> = Vec::new();
    for ProgramArg { name, path } in programs {
        match name {
            Some(name) => all.push((name.clone(), path.clone())),
            None if path.is_dir() => {
                let entries = path.read_dir().with_context(|| format!("--program {}", printable::path(path)))?;
                let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
                // No pipe, which would be waited for, and no link that leads nowhere.
                files.retain(|file| file.extension().is_some_and(|extension| extension == "wasm") && file.is_file());
                files.sort();
                if files.is_empty() {
                    let message = format!("--program {}: there is no .wasm file in this folder", printable::path(path));
                    return Err(Failure::usage(message).into());
                }
                all.extend(files.into_iter().map(|file| (stem(&file), file)));
            }
            None => all.push((stem(path), path.clone())),
        }
    }
    Ok(all)
}

/// Compiles what guests start.
#[derive(Debug)]
struct ProgramLoader {
    cache: CacheArgs,
    codegen: CodegenArgs,
    max_memory: Option<u64>,
    backtrace: Wanted,
}

impl ProgramLoader {
    fn compile(&self, source: &Source, device: &Arc<dyn Device>) -> Result<Loaded> {
        let surface = Surface::read(&source.wasm, &source.name)?;
        surface.check_imports(&source.name)?;
        surface.check_memory(&source.name, self.max_memory)?;
        let Call { entry, function, arguments, .. } = Call::of_program(&surface, &source.name)?;
        let options = options(&self.codegen, &**device, entry, 1, ChecksChoice::Exact);
        let mut options = surface.settle(options);
        options.backtrace = self.backtrace.is_any();
        // Most runs start no process: the cache is opened for one that does.
        let compiler = Compiler::new(program_cache::open(&self.cache)?).limited(self.codegen.compile_timeout);
        let (program, _) = load(&compiler, device, source, &options)?;
        // A `_start` that takes something is none.
        program.compiled().arguments(&function, &arguments).map_err(|error| Failure::compiler(&source.name, error))?;
        Ok(Loaded { program, function, arguments })
    }
}

impl Loader for ProgramLoader {
    fn check(&self, wasm: &[u8], name: &str) -> Result<(), String> {
        let name = printable::name(name);
        let checked = Surface::read(wasm, &name).and_then(|surface| surface.check_imports(&name));
        checked.map_err(|error| format!("{error:#}"))
    }

    fn describe(&self, trap: &Trap) -> String {
        self.backtrace.lines(trap)
    }

    fn load(&self, wasm: Arc<Vec<u8>>, name: &str, device: &Arc<dyn Device>) -> Result<Loaded, String> {
        let name = printable::name(name).into_owned();
        let source = Source { argv0: name.clone(), wasm, name };
        self.compile(&source, device).map_err(|error| format!("{error:#}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arg(name: Option<&str>, path: &Path) -> ProgramArg {
        ProgramArg { name: name.map(str::to_owned), path: path.to_owned() }
    }

    #[test]
    fn a_folder_stands_for_the_programs_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert!(named_files(&[arg(None, path)]).is_err(), "there are none");
        for file in ["b.wasm", "a.wasm", "notes.txt"] {
            std::fs::write(path.join(file), "").unwrap();
        }
        let names =
            |args: &[ProgramArg]| named_files(args).unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&[arg(None, path)]), ["a", "b"]);
        assert_eq!(names(&[arg(Some("x"), &path.join("a.wasm")), arg(None, &path.join("b.wasm"))]), ["x", "b"]);
    }
}
