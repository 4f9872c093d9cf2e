//! gpu-run's own std, which `gpu-run build` makes once for each version of Rust: where it is, and how it gets there.

use crate::args::CacheArgs;
use crate::program_cache;
use anyhow::Result;
use gpu_run_cache::trust;
use gpu_run_console::failure::Failure;
use gpu_run_console::progress::Progress;
use gpu_run_sysroot::{Error, Panic, Rust, Step, Sysroot, Target};
use gpu_run_toolchain::{check, rust};
use std::cell::OnceCell;
use std::path::PathBuf;

/// What a Rust prints whose cargo cannot get the crates that std needs.
const NO_CRATES: [&str; 5] =
    ["offline", "failed to download", "download of", "failed to get", "Unable to update registry"];

/// The std that a command of cargo is to use.
#[derive(Debug)]
pub(crate) struct OwnStd {
    cache: PathBuf,
    rust: Rust,
    target: Target,
    pub(crate) sysroot: Sysroot,
}

impl OwnStd {
    /// Finds the place of the std, where it was made or will be.
    pub(crate) fn find(target: Target, panic: Panic, rustc: PathBuf) -> Result<OwnStd> {
        let cache = program_cache::place(&CacheArgs::default())?
            .map_err(|why| Failure::environment(format!("there is no place to keep gpu-run's std: {why}")))?;
        let rust = rust(rustc).map_err(|error| advised(error, target))?;
        let sysroot = Sysroot::of(&cache, &rust, panic);
        Ok(OwnStd { cache, rust, target, sysroot })
    }

    /// Makes the std, unless it is there.
    pub(crate) fn make(&self) -> Result<()> {
        let refused = |why: String| Failure::environment(format!("gpu-run cannot keep its std: {why}"));
        let unusable = |error| refused(format!("{}: {error}", self.cache.display()));
        trust::make_folder(&self.cache).map_err(unusable)?;
        check(&self.cache, &self.sysroot).map_err(refused)?;
        if !self.sysroot.has(self.target) {
            self.make_now()?;
        }
        self.sysroot.note_use();
        Ok(())
    }

    fn make_now(&self) -> Result<()> {
        let that_unwinds = if self.sysroot.panic() == Panic::Unwinds { " that unwinds" } else { "" };
        let message = format!("making std for {}{that_unwinds}", self.target.name());
        let progress = OnceCell::new();
        let tell = |step: Step<'_>| match step {
            Step::Waiting => eprintln!("gpu-run: waiting for another gpu-run, which is making a std"),
            Step::Starting => {
                let version = &self.rust.version;
                eprintln!("gpu-run: {message} from the sources of Rust {version}, once; this takes a minute or two");
                let _ = progress.set(Progress::start(message.clone()));
            }
            Step::Compiling(name) => {
                if let Some(progress) = progress.get() {
                    progress.set(format!("{message}: {name}"));
                }
            }
        };
        let made = self.sysroot.make(&self.rust, self.target, &tell);
        drop(progress);
        if let Err(Error::Stopped { signal, .. }) = made {
            // As if the signal had come while nobody looked at it: the shell sees what ended gpu-run.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
        made.map_err(|error| advised(error, self.target).into())
    }
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
        Error::Build { messages, .. } if NO_CRATES.iter().any(|part| messages.contains(part)) => {
            "the first std for a version of Rust needs a network: cargo downloads the crates that std is made with, once".to_owned()
        }
        // rustc says what failed; a full disk, for instance; and what cargo says.
        Error::Failed { .. } | Error::File { .. } | Error::Build { .. } | Error::Stopped { .. } => {
            return Failure::environment(error.to_string());
        }
    };
    Failure::environment(error.to_string()).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_network_is_advised() {
        let advice = |messages: &str| {
            advised(Error::Build { target: Target::Wasip1, messages: messages.into() }, Target::Wasip1).to_string()
        };
        for messages in [
            "error: failed to download from `https://index.crates.io/config.json`",
            "error: unable to update registry\n  attempting to make an HTTP request, but --offline was specified",
            "error: failed to get `cfg-if` as a dependency of package `std`",
        ] {
            assert!(advice(messages).contains("needs a network"), "{messages}");
        }
        assert!(!advice("error: No space left on device (os error 28)").contains("network"));
    }
}
