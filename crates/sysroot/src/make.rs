//! Makes a sysroot: copies the sources of std, lays the overlay over them, and has cargo build them.

use crate::{Error, Result, Rust, Sysroot, Target, at, overlay};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where distributions put wasi-libc.
const OTHER_LIBC: &str = "/usr/lib/wasm32-wasi";
/// What a program for WASI is linked with.
const LIBC: [&str; 3] = ["crt1-command.o", "crt1-reactor.o", "libc.a"];

impl Sysroot {
    /// Makes the std for a target, if it is not there. A process that finds another one at this waits for it. Whatever happens, the
    /// std appears when it is complete, or not at all.
    pub fn make(&self, rust: &Rust, target: Target) -> Result<()> {
        let folder = self.path.parent().unwrap_or(&self.path);
        create(folder)?;
        let lock = folder.join("lock");
        let lock = File::create(&lock).and_then(|file| file.lock().map(|()| file)).map_err(at(&lock))?;
        if self.has(target) {
            return Ok(());
        }
        tracing::info!(target = target.name(), sysroot = %self.path.display(), "making a std");
        let work = self.path.with_extension("building");
        remove(&work)?;
        let done = self.make_in(&work, rust, target);
        remove(&work)?;
        drop(lock);
        done
    }

    fn make_in(&self, work: &Path, rust: &Rust, target: Target) -> Result<()> {
        let (library, made) = (work.join("library"), work.join("lib"));
        copy(&rust.sources, &library)?;
        overlay::lay_over(&library.join("std"), &rust.version)?;
        let libc = libc(rust, target).ok_or(Error::NoLibc { target })?;
        copy(&libc, &made.join("self-contained"))?;
        build(work, rust, target)?;
        let built = work.join("target").join(target.name()).join("release/deps");
        for entry in fs::read_dir(&built).map_err(at(&built))? {
            let file = entry.map_err(at(&built))?.path();
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if name.ends_with(".rlib") && !name.starts_with("libempty-") {
                fs::copy(&file, made.join(&*name)).map_err(at(&file))?;
            }
        }
        let place = self.libraries(target);
        create(place.parent().unwrap_or(&place))?;
        fs::rename(&made, &place).map_err(at(&place))
    }
}

/// Returns the folder with the C library for a target: rustc's own, or a distribution's, which has none for threads.
fn libc(rust: &Rust, target: Target) -> Option<PathBuf> {
    let own = rust.own.join("lib/rustlib").join(target.name()).join("lib/self-contained");
    let other = (target == Target::Wasip1).then(|| PathBuf::from(OTHER_LIBC));
    [Some(own), other].into_iter().flatten().find(|place| LIBC.iter().all(|file| place.join(file).is_file()))
}

/// Has cargo build std as the dependency of an empty crate.
fn build(work: &Path, rust: &Rust, target: Target) -> Result<()> {
    let (library, empty) = (work.join("library"), work.join("empty"));
    create(&empty.join("src"))?;
    let manifest = "[package]\nname = \"empty\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n";
    for (file, text) in [("Cargo.toml", manifest), ("src/lib.rs", "")] {
        fs::write(empty.join(file), text).map_err(at(&empty))?;
    }
    // Bitcode, so that programs can be built with LTO; source paths as in the std that rustup installs.
    let flags =
        format!("-Cembed-bitcode=yes --remap-path-prefix={}=/rustc/{}/library", library.display(), rust.whole_commit);
    let mut cargo = Command::new(&rust.cargo);
    cargo.args(["build", "--release", "--quiet", "-Zbuild-std=std,panic_abort,proc_macro,test", "--target"]);
    cargo.arg(target.name()).arg("--target-dir").arg(work.join("target")).current_dir(&empty);
    // A stable compiler builds its own std with features that it allows nobody else.
    cargo
        .env("RUSTC", &rust.rustc)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("__CARGO_TESTS_ONLY_SRC_ROOT", &library)
        .env("RUSTFLAGS", flags);
    // What the user asks for is asked of the program, not of std.
    for variable in [
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "CARGO_TARGET_DIR",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
    ] {
        cargo.env_remove(variable);
    }
    let program = rust.cargo.display().to_string();
    let output = cargo
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .and_then(|child| child.wait_with_output())
        .map_err(|error| Error::NotStarted { program, error })?;
    if !output.status.success() {
        return Err(Error::Build { target, messages: String::from_utf8_lossy(&output.stderr).trim_end().to_owned() });
    }
    Ok(())
}

fn create(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(at(folder))
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(folder)(error)),
        _ => Ok(()),
    }
}

/// Copies a folder with everything in it, links as what they lead to.
fn copy(from: &Path, to: &Path) -> Result<()> {
    create(to)?;
    for entry in fs::read_dir(from).map_err(at(from))? {
        let file = entry.map_err(at(from))?.path();
        let copied = to.join(file.file_name().unwrap_or_default());
        if file.is_dir() {
            copy(&file, &copied)?;
        } else {
            fs::copy(&file, &copied).map_err(at(&file))?;
        }
    }
    Ok(())
}
