//! A std for WebAssembly that asks gpu-run for what WASI preview 1 lacks: processes, pipes, sockets, and the number of threads.
//!
//! The std that rustup ships refuses these without asking anybody. This crate makes another one, once for each version of Rust,
//! from the user's own sources of std and an *overlay*: files that replace or join those of std ([`overlay`]). What is made is a
//! *sysroot*, a folder that rustc takes std from (`--sysroot`). It is kept in the cache, beside the compiled programs.
//!
//! 1. [`Rust::find`]: which Rust this is, and where its sources are.
//! 2. [`Sysroot::of`]: where the sysroot of this Rust is or would be.
//! 3. [`Sysroot::make`]: copies the sources, lays the overlay over them, and has cargo build them.
//! 4. [`kept`], [`sweep`]: what is in the cache, and what makers that died left there.

mod make;
mod overlay;
mod rust;
mod upkeep;

pub use make::Step;
pub use overlay::{SUPPORTED, lay_over};
pub use rust::Rust;
pub use upkeep::{Kept, kept, sweep};

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::SystemTime;

/// A target that a sysroot can have a std for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Wasip1,
    Wasip1Threads,
    Unknown,
}

impl Target {
    pub const ALL: [Target; 3] = [Target::Wasip1, Target::Wasip1Threads, Target::Unknown];

    pub fn name(self) -> &'static str {
        match self {
            Target::Wasip1 => "wasm32-wasip1",
            Target::Wasip1Threads => "wasm32-wasip1-threads",
            Target::Unknown => "wasm32-unknown-unknown",
        }
    }

    pub fn by_name(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| target.name() == name)
    }
}

/// What a panic does in a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Panic {
    /// It ends the program, as with rustup's std.
    #[default]
    Aborts,
    /// It ends the thread, and can be caught, as natively.
    Unwinds,
}

impl Panic {
    /// The flags that everything in such a program is compiled with. Without the last one, LLVM writes the instructions of the old
    /// proposal, which WebAssembly 3.0 does not have.
    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Panic::Aborts => &[],
            Panic::Unwinds => &["-Cpanic=unwind", "-Cllvm-args=-wasm-use-legacy-eh=false"],
        }
    }
}

/// Why there is no sysroot.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start {program}: {error}")]
    NotStarted { program: String, error: io::Error },
    #[error("`{command}` failed ({status}); its message is above")]
    Failed { command: String, status: ExitStatus },
    #[error("`{command}` printed nothing that gpu-run understands")]
    Unclear { command: String },
    #[error("gpu-run's std is written for Rust {}, and this is {version}", supported())]
    Version { version: String },
    #[error("the sources of std for Rust {version} are not installed")]
    NoSources { version: String },
    #[error("there is no C library for {target}", target = target.name())]
    NoLibc { target: Target },
    #[error("{} is not as gpu-run's std expects it: {what}", path.display())]
    Changed { path: PathBuf, what: &'static str },
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("std does not build for {target}:\n{messages}", target = target.name())]
    Build { target: Target, messages: String },
    #[error("making std for {target} was stopped by signal {signal}", target = target.name())]
    Stopped { target: Target, signal: i32 },
}

fn supported() -> String {
    let (last, others) = SUPPORTED.split_last().expect("there are several");
    format!("{} and {last}", others.join(", "))
}

pub type Result<T> = std::result::Result<T, Error>;

fn at(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |error| Error::File { path: path.to_owned(), error }
}

/// The folder of all sysroots in the cache.
const FOLDER: &str = "sysroots";

/// The file beside the libraries of a std that lists them with their sizes: a line for each, as in `1234 libcore-0.rlib`.
const SIZES: &str = "gpu-run-sizes";
/// How the names of the libraries begin that no std is without.
const NEEDED: [&str; 2] = ["libcore-", "libstd-"];

/// A folder with a std for one or more targets.
#[derive(Clone, Debug)]
pub struct Sysroot {
    /// The folder of all of them.
    folder: PathBuf,
    /// How the names of those begin that were made for the same Rust.
    rust: String,
    name: String,
    path: PathBuf,
    panic: Panic,
}

impl Sysroot {
    /// The folder of all sysroots in a cache.
    pub fn folder_in(cache: &Path) -> PathBuf {
        cache.join(FOLDER)
    }

    /// Returns the sysroot for a Rust, made or not. Its name covers everything that it is made from.
    pub fn of(cache: &Path, rust: &Rust, panic: Panic) -> Sysroot {
        let suffix = if panic == Panic::Unwinds { "-unwinds" } else { "" };
        let folder = Sysroot::folder_in(cache);
        let of_rust = format!("{}-{}-", rust.version, rust.commit);
        let name = format!("{of_rust}{}{suffix}", overlay::hash(&rust.version));
        Sysroot { path: folder.join(&name), folder, rust: of_rust, name, panic }
    }

    /// What a panic does in programs with this std.
    pub fn panic(&self) -> Panic {
        self.panic
    }

    /// The folder, for rustc's option `--sysroot`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the std for a target was made, and all of it is there.
    pub fn has(&self, target: Target) -> bool {
        is_whole(&self.libraries(target))
    }

    /// Notes that the sysroot is used now, in the time of its folder.
    pub fn note_use(&self) {
        // It may be read-only. Then it looks older than it is, and so do its successors, which cannot be made there.
        let _ = File::open(&self.path).and_then(|folder| folder.set_modified(SystemTime::now()));
    }

    fn libraries(&self, target: Target) -> PathBuf {
        libraries(&self.path, target)
    }
}

fn libraries(sysroot: &Path, target: Target) -> PathBuf {
    sysroot.join("lib/rustlib").join(target.name()).join("lib")
}

/// Whether everything that a folder of libraries lists is there.
fn is_whole(libraries: &Path) -> bool {
    let listed = fs::read_to_string(libraries.join(SIZES)).unwrap_or_default();
    let listed: Vec<(&str, &str)> = listed.lines().filter_map(|line| line.split_once(' ')).collect();
    let has_size = |(size, name): &(&str, &str)| {
        fs::metadata(libraries.join(name)).is_ok_and(|file| file.len().to_string() == *size)
    };
    NEEDED.iter().all(|library| listed.iter().any(|(_, name)| name.starts_with(library))) && listed.iter().all(has_size)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_std_that_lost_something_is_no_std() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("self-contained")).unwrap();
        for (name, text) in [("libcore-0.rlib", "core"), ("libstd-0.rlib", "std"), ("self-contained/libc.a", "")] {
            fs::write(at(name), text).unwrap();
        }
        assert!(!is_whole(folder.path()), "nothing says what belongs to it");
        fs::write(at(SIZES), "4 libcore-0.rlib\n3 libstd-0.rlib\n0 self-contained/libc.a\n").unwrap();
        assert!(is_whole(folder.path()));
        fs::write(at("libcore-0.rlib"), "co").unwrap();
        assert!(!is_whole(folder.path()), "a file is cut");
        fs::write(at("libcore-0.rlib"), "core").unwrap();
        fs::remove_file(at("self-contained/libc.a")).unwrap();
        assert!(!is_whole(folder.path()), "a file is missing");
        fs::write(at(SIZES), "4 libcore-0.rlib\n").unwrap();
        assert!(!is_whole(folder.path()), "the list is cut");
    }
}
