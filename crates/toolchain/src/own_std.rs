//! gpu-run's own std, which `gpu-run build` makes: where it is, and whether it can be trusted.

use gpu_run_cache::trust::{self, Others};
use gpu_run_sysroot::{Panic, Rust, Sysroot, Target};
use std::env;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Returns the sysroot with gpu-run's own std for a target, if it was made for the installed Rust.
pub(crate) fn made(target: Target, rustc: PathBuf, cache: &Path) -> Option<PathBuf> {
    // Asking rustc takes a moment: not where nothing was ever made.
    if !Sysroot::folder_in(cache).is_dir() {
        return None;
    }
    let sysroot = Sysroot::of(cache, &rust(rustc).ok()?, Panic::Aborts);
    if !sysroot.has(target) {
        return None;
    }
    if let Err(why) = check(cache, &sysroot) {
        tracing::warn!("gpu-run's own std is not used: {why}");
        return None;
    }
    sysroot.note_use();
    Some(sysroot.path().to_owned())
}

/// Asks this rustc, and the cargo that goes with it, who they are.
pub fn rust(rustc: PathBuf) -> gpu_run_sysroot::Result<Rust> {
    Rust::of(rustc, env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from))
}

/// A std becomes part of programs: the folders that lead to it are checked as the cache of programs checks its own.
pub fn check(cache: &Path, sysroot: &Sysroot) -> Result<(), String> {
    for folder in [cache, &Sysroot::folder_in(cache), sysroot.path()] {
        match trust::open_folder(folder, Others::MayRead) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(format!("{}: {error}", folder.display())),
            _ => {}
        }
    }
    Ok(())
}
