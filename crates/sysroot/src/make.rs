//! Makes a sysroot: copies the sources of std, lays the overlay over them, and has cargo build them.

use crate::{Error, Panic, Result, Rust, Sysroot, Target, at, overlay};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where distributions put wasi-libc.
const OTHER_LIBC: [&str; 2] = ["/usr/lib/wasm32-wasip1", "/usr/lib/wasm32-wasi"];
/// What a program for WASI is linked with.
const LIBC: [&str; 3] = ["crt1-command.o", "crt1-reactor.o", "libc.a"];
/// How the names of folders begin in which a std is made.
const WORK: &str = "building-";

/// The std of wasm32-unknown-unknown is that of wasm32-wasip1, C library and all, under another name: the two targets have the same
/// ABI. Only std and its dependencies are compiled with these flags; programs see the target as it is.
const AS_WASI: [&str; 3] = ["--cfg=target_os=\"wasi\"", "--cfg=target_env=\"p1\"", "-Aexplicit_builtin_cfgs_in_flags"];

impl Sysroot {
    /// Makes the std for a target, if it is not there; `begins` is told which crate is being compiled. A process that finds another
    /// one at this waits for it. Whatever happens, the std appears when it is complete, or not at all.
    pub fn make(&self, rust: &Rust, target: Target, begins: &dyn Fn(&str)) -> Result<()> {
        let folder = self.path.parent().unwrap_or(&self.path);
        create(folder)?;
        let lock = folder.join("lock");
        let lock = File::create(&lock).and_then(|file| file.lock().map(|()| file)).map_err(at(&lock))?;
        if self.has(target) {
            return Ok(());
        }
        tracing::info!(target = target.name(), sysroot = %self.path.display(), "making a std");
        // What makers that were killed left behind goes; a cargo that one of them started may still be writing there.
        for entry in fs::read_dir(folder).map_err(at(folder))?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(WORK) {
                let _ = remove(&entry.path());
            }
        }
        let work = folder.join(format!("{WORK}{}", std::process::id()));
        let done = self.make_in(&work, rust, target, begins);
        let _ = remove(&work);
        drop(lock);
        done
    }

    fn make_in(&self, work: &Path, rust: &Rust, target: Target, begins: &dyn Fn(&str)) -> Result<()> {
        let (library, made) = (work.join("library"), work.join("lib"));
        copy(&rust.sources, &library)?;
        overlay::lay_over(&library.join("std"), &rust.version)?;
        let libc = libc(rust, target)?;
        copy(&libc, &made.join("self-contained"))?;
        build(work, rust, target, self.panic, begins)?;
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
fn libc(rust: &Rust, target: Target) -> Result<PathBuf> {
    let target = if target == Target::Unknown { Target::Wasip1 } else { target };
    let own = rust.own.join("lib/rustlib").join(target.name()).join("lib/self-contained");
    let others = if target == Target::Wasip1 { &OTHER_LIBC[..] } else { &[] };
    let mut places = [own].into_iter().chain(others.iter().map(PathBuf::from));
    places.find(|place| LIBC.iter().all(|file| place.join(file).is_file())).ok_or(Error::NoLibc { target })
}

/// Has cargo build std as the dependency of an empty crate.
fn build(work: &Path, rust: &Rust, target: Target, panic: Panic, begins: &dyn Fn(&str)) -> Result<()> {
    let (library, empty) = (work.join("library"), work.join("empty"));
    create(&empty.join("src"))?;
    let manifest = "[package]\nname = \"empty\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n";
    for (file, text) in [("Cargo.toml", manifest), ("src/lib.rs", "")] {
        fs::write(empty.join(file), text).map_err(at(&empty))?;
    }
    // Bitcode, so that programs can be built with LTO; source paths as in the std that rustup installs.
    let paths = format!("--remap-path-prefix={}=/rustc/{}/library", library.display(), rust.whole_commit);
    let mut flags = vec!["-Cembed-bitcode=yes", &paths];
    flags.extend(panic.flags());
    if target == Target::Unknown {
        flags.extend(AS_WASI);
    }
    let mut cargo = Command::new(&rust.cargo);
    cargo.args(["build", "--release", "-Zbuild-std=std,panic_abort,panic_unwind,proc_macro,test", "--target"]);
    cargo.arg(target.name()).arg("--target-dir").arg(work.join("target")).current_dir(&empty);
    // A stable compiler builds its own std with features that it allows nobody else.
    cargo
        .env("RUSTC", &rust.rustc)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("__CARGO_TESTS_ONLY_SRC_ROOT", &library)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    // What the user asks for is asked of the program, not of std.
    for variable in ["CARGO_BUILD_TARGET", "CARGO_TARGET_DIR", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
        cargo.env_remove(variable);
    }
    let not_started = |error| Error::NotStarted { program: rust.cargo.display().to_string(), error };
    let mut child =
        cargo.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(not_started)?;
    let mut messages = String::new();
    for line in child.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).lines()) {
        let line = line.map_err(not_started)?;
        match line.trim_start().strip_prefix("Compiling ") {
            Some(which) => begins(which.split(' ').next().unwrap_or(which)),
            // What std's own authors are warned of is of no interest.
            None if !messages.is_empty() || line.starts_with("error") => messages += &(line + "\n"),
            None => {}
        }
    }
    if child.wait().map_err(not_started)?.success() {
        return Ok(());
    }
    Err(Error::Build { target, messages: messages.trim_end().to_owned() })
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
