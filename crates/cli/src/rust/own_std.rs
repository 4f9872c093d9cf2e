//! gpu-run's own std, which `gpu-run build` makes once for each version of Rust: where it is, and how it gets there.

use crate::args::CacheArgs;
use crate::program_cache;
use anyhow::Result;
use gpu_run_console::failure::Failure;
use gpu_run_console::progress::Progress;
use gpu_run_sysroot::{Error, Panic, Rust, Sysroot, Target};
use std::path::PathBuf;

/// Returns the sysroot with gpu-run's own std for a target, if it was made for the installed Rust.
pub(crate) fn made(target: Target) -> Option<PathBuf> {
    let cache = program_cache::place(&CacheArgs::default()).ok()?.ok()?;
    // Asking rustc takes a moment: not where nothing was ever made.
    if !Sysroot::any_in(&cache) {
        return None;
    }
    let sysroot = Sysroot::of(&cache, &Rust::find().ok()?, Panic::Aborts);
    sysroot.has(target).then(|| sysroot.path().to_owned())
}

/// Makes the std for a target, unless it is there.
pub(crate) fn make(target: Target, panic: Panic) -> Result<Sysroot> {
    let cache = program_cache::place(&CacheArgs::default())?
        .map_err(|why| Failure::environment(format!("there is no place to keep gpu-run's std: {why}")))?;
    let rust = Rust::find().map_err(|error| advised(error, target))?;
    let sysroot = Sysroot::of(&cache, &rust, panic);
    if !sysroot.has(target) {
        eprintln!(
            "gpu-run: making std for {} from the sources of Rust {}, once; this takes a minute or two",
            target.name(),
            rust.version
        );
        let message = format!("making std for {}", target.name());
        let progress = Progress::start(message.clone());
        let begins = |name: &str| progress.set(format!("{message}: {name}"));
        sysroot.make(&rust, target, &begins).map_err(|error| advised(error, target))?;
    }
    Ok(sysroot)
}

fn advised(error: Error, target: Target) -> Failure {
    let hint = match &error {
        Error::NotStarted { .. } | Error::Unclear { .. } => "install Rust from https://rustup.rs".to_owned(),
        Error::Version { .. } => format!(
            "use one of these versions, or build without gpu-run's additions: cargo build --target {}",
            target.name()
        ),
        Error::NoSources { .. } => {
            "run: rustup component add rust-src; or install your distribution's package rust-src".to_owned()
        }
        Error::NoLibc { target: Target::Wasip1Threads } => {
            format!("run: rustup target add {}; distributions have none for threads", target.name())
        }
        Error::NoLibc { target } => {
            format!("run: rustup target add {}; or install your distribution's package wasi-libc", target.name())
        }
        Error::Changed { .. } => {
            "the sources of std were changed; install them again: rustup component remove rust-src, then rustup component add rust-src"
                .to_owned()
        }
        // A full disk, for instance; and what rustc says.
        Error::File { .. } | Error::Build { .. } => return Failure::environment(error.to_string()),
    };
    Failure::environment(error.to_string()).hint(hint)
}
