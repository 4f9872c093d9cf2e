//! Which Rust is installed, and where the sources of its std are.

use crate::{Error, Result, SUPPORTED};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where distributions put the sources of std, besides rustc's own folder. `{}` is the version.
const OTHER_SOURCES: [&str; 2] = ["/usr/src/rustc-{}/library", "/usr/lib/rustlib/src/rust/library"];

/// An installed Rust.
#[derive(Clone, Debug)]
pub struct Rust {
    /// `1.95.0`
    pub version: String,
    /// The first nine digits of the commit it was built from.
    pub commit: String,
    /// The whole commit, which paths of std's sources name.
    pub(crate) whole_commit: String,
    pub rustc: PathBuf,
    pub cargo: PathBuf,
    /// rustc's own sysroot.
    pub(crate) own: PathBuf,
    /// The folder `library` of std's sources.
    pub(crate) sources: PathBuf,
}

impl Rust {
    /// Finds the Rust that the variables `RUSTC` and `CARGO` name, or the one in `PATH`.
    pub fn find() -> Result<Rust> {
        let program = |variable, name| std::env::var_os(variable).map_or_else(|| PathBuf::from(name), PathBuf::from);
        Rust::of(program("RUSTC", "rustc"), program("CARGO", "cargo"))
    }

    /// Asks rustc about itself, and looks for the sources. A version that the overlay was not written for is an error.
    pub fn of(rustc: PathBuf, cargo: PathBuf) -> Result<Rust> {
        let described = answer(&rustc, &["-vV"])?;
        let field = |name: &str| described.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let unclear = || Error::Unclear { command: "rustc -vV".into() };
        let version = field("release").ok_or_else(unclear)?.to_owned();
        let whole_commit = field("commit-hash").ok_or_else(unclear)?.to_owned();
        // A distribution's rustc may not know its commit.
        let commit = whole_commit.chars().take(9).collect();
        if !is_supported(&version) {
            return Err(Error::Version { version });
        }
        let own = PathBuf::from(answer(&rustc, &["--print", "sysroot"])?.trim_end());
        // Not rustup's fronts for them, which would take another Rust in another folder.
        let itself = |program: PathBuf| {
            program.file_name().map(|name| own.join("bin").join(name)).filter(|own| own.is_file()).unwrap_or(program)
        };
        let (rustc, cargo) = (itself(rustc), itself(cargo));
        let places = OTHER_SOURCES.map(|place| PathBuf::from(place.replace("{}", &version)));
        let mut places = [own.join("lib/rustlib/src/rust/library")].into_iter().chain(places);
        match places.find(|place| is_library(place)) {
            Some(sources) => Ok(Rust { version, commit, whole_commit, rustc, cargo, own, sources }),
            None => Err(Error::NoSources { version }),
        }
    }
}

/// Whether the overlay was written for a version: `1.95.0` and `1.95.1`, but not `1.95.0-nightly`.
fn is_supported(version: &str) -> bool {
    let is_release = version.split('.').all(|part| part.parse::<u32>().is_ok());
    is_release && SUPPORTED.iter().any(|known| version.strip_prefix(known).is_some_and(|rest| rest.starts_with('.')))
}

fn is_library(place: &Path) -> bool {
    place.join("std/src/lib.rs").is_file() && place.join("Cargo.lock").is_file()
}

fn answer(program: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Error::NotStarted { program: program.display().to_string(), error })?;
    let command = format!("{} {}", program.display(), arguments.join(" "));
    if !output.status.success() {
        return Err(Error::Failed { command, status: output.status });
    }
    String::from_utf8(output.stdout).ok().filter(|text| !text.is_empty()).ok_or(Error::Unclear { command })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_releases_of_known_versions_are_supported() {
        for version in ["1.95.0", "1.95.2", "1.96.0", "1.97.1"] {
            assert!(is_supported(version), "{version}");
        }
        for version in ["1.94.0", "1.9.5", "1.950.0", "1.95", "1.95.0-nightly", "1.96.0-beta.3", "2.0.0", ""] {
            assert!(!is_supported(version), "{version}");
        }
    }
}
