//! A std for WebAssembly that asks gpu-run for what WASI preview 1 lacks: processes, pipes, sockets, and the number of threads.
//!
//! The std that rustup ships refuses these without asking anybody. This crate makes another one, once for each version of Rust,
//! from the user's own sources of std and an *overlay*: files that replace or join those of std ([`overlay`]). What is made is a
//! *sysroot*, a folder that rustc takes std from (`--sysroot`). It is kept in the cache, beside the compiled programs.
//!
//! 1. [`Rust::find`]: which Rust this is, and where its sources are.
//! 2. [`Sysroot::of`]: where the sysroot of this Rust is or would be.
//! 3. [`Sysroot::make`]: copies the sources, lays the overlay over them, and has cargo build them.

mod make;
mod overlay;
mod rust;

pub use overlay::{SUPPORTED, lay_over};
pub use rust::Rust;

use std::io;
use std::path::{Path, PathBuf};

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

/// A folder with a std for one or more targets.
#[derive(Clone, Debug)]
pub struct Sysroot {
    path: PathBuf,
    panic: Panic,
}

impl Sysroot {
    /// Whether a sysroot was ever made in this cache.
    pub fn any_in(cache: &Path) -> bool {
        cache.join(FOLDER).is_dir()
    }

    /// Returns the sysroot for a Rust, made or not. Its name covers everything that it is made from.
    pub fn of(cache: &Path, rust: &Rust, panic: Panic) -> Sysroot {
        let suffix = if panic == Panic::Unwinds { "-unwinds" } else { "" };
        let name = format!("{}-{}-{}{suffix}", rust.version, rust.commit, overlay::hash(&rust.version));
        Sysroot { path: cache.join(FOLDER).join(name), panic }
    }

    /// What a panic does in programs with this std.
    pub fn panic(&self) -> Panic {
        self.panic
    }

    /// The folder, for rustc's option `--sysroot`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn has(&self, target: Target) -> bool {
        self.libraries(target).is_dir()
    }

    fn libraries(&self, target: Target) -> PathBuf {
        self.path.join("lib/rustlib").join(target.name()).join("lib")
    }
}
