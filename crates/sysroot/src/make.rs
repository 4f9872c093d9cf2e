//! Makes a sysroot: copies the sources of std, lays the overlay over them, and has cargo build them.

use crate::upkeep::sweep_locked;
use crate::{Error, NEEDED, Panic, Result, Rust, SIZES, Sysroot, Target, at, overlay};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::env;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;

/// Where distributions put wasi-libc.
const OTHER_LIBC: [&str; 2] = ["/usr/lib/wasm32-wasip1", "/usr/lib/wasm32-wasi"];
/// What a program for WASI is linked with.
const LIBC: [&str; 3] = ["crt1-command.o", "crt1-reactor.o", "libc.a"];
/// How the names of folders begin in which a std is made.
pub(crate) const WORK: &str = "building-";
/// Part of the name of each sysroot: changes when this file makes other libraries of the same sources.
pub(crate) const MANNER: u8 = 2;

/// The std of wasm32-unknown-unknown is that of wasm32-wasip1, C library and all, under another name: the two targets have the same
/// ABI. Only std and its dependencies are compiled with these flags; programs see the target as it is.
const AS_WASI: [&str; 3] = ["--cfg=target_os=\"wasi\"", "--cfg=target_env=\"p1\"", "-Aexplicit_builtin_cfgs_in_flags"];

/// The settings of cargo that apply to making a std, by how their variables begin: how crates are fetched, and how many programs run
/// at once. All others are meant for the user's own packages.
const KEPT_SETTINGS: [&str; 7] = [
    "CARGO_HOME",
    "CARGO_BUILD_JOBS",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTR",
    "CARGO_SOURCE_",
    "CARGO_CREDENTIAL_ALIAS_",
];
/// The release profile as it is by default, because configuration files may have another. Options on the command line come first.
const PROFILE: [&str; 10] = [
    "opt-level=3",
    "debug=false",
    "strip=\"none\"",
    "debug-assertions=false",
    "overflow-checks=false",
    "lto=false",
    "panic=\"unwind\"",
    "incremental=false",
    "codegen-units=16",
    "rpath=false",
];

/// What the making of a std has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Another process makes one, or a cargo is still at it whose gpu-run was killed.
    Waiting,
    Starting,
    /// This crate is being compiled.
    Compiling(&'a str),
}

impl Sysroot {
    /// Makes the std for a target, if it is not there, or not all of it; `tell` is told each step. A process that finds another one at
    /// this waits for it. Whatever happens, the std appears when it is complete, or not at all. SIGHUP, SIGINT and SIGTERM end the making.
    pub fn make(&self, rust: &Rust, target: Target, tell: &dyn Fn(Step<'_>)) -> Result<()> {
        create(&self.folder)?;
        let lock = match lock_if_free(&self.folder)? {
            Some(lock) => lock,
            None => {
                tell(Step::Waiting);
                let (path, lock) = lock_file(&self.folder)?;
                lock.lock().map_err(at(&path))?;
                lock
            }
        };
        if self.has(target) {
            return Ok(());
        }
        let libc = libc(rust, target)?;
        tell(Step::Starting);
        tracing::info!(target = target.name(), sysroot = %self.path.display(), "making a std");
        sweep_locked(&self.folder)?;
        // Always the same folder: its path is part of the names of the libraries, which the user's compiled programs refer to.
        let work = self.folder.join(format!("{WORK}{}-{}", self.name, target.name()));
        let done = copy(&libc, &work.join("lib/self-contained"));
        let done = done.and_then(|()| self.make_in(&work, &lock, rust, target, tell));
        let _ = remove(&work);
        if done.is_ok() {
            self.remove_older();
        }
        drop(lock);
        done
    }

    fn make_in(&self, work: &Path, lock: &File, rust: &Rust, target: Target, tell: &dyn Fn(Step<'_>)) -> Result<()> {
        let (library, made) = (work.join("library"), work.join("lib"));
        copy(&rust.sources, &library)?;
        overlay::lay_over(&library.join("std"), &rust.version)?;
        build(work, lock, rust, target, self.panic, tell)?;
        let built = work.join("target").join(target.name()).join("release/deps");
        for entry in fs::read_dir(&built).map_err(at(&built))? {
            let file = entry.map_err(at(&built))?.path();
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if name.ends_with(".rlib") && !name.starts_with("libempty-") {
                let copied = made.join(&*name);
                fs::copy(&file, &copied).map_err(at(&copied))?;
            }
        }
        let sizes = sizes(&made, "")?;
        if !NEEDED.iter().all(|library| sizes.contains(library)) {
            return Err(Error::Build { target, messages: "cargo has built no libstd".into() });
        }
        let list = made.join(SIZES);
        fs::write(&list, sizes).map_err(at(&list))?;
        let place = self.libraries(target);
        create(place.parent().unwrap_or(&place))?;
        // One that is not whole may be there.
        remove(&place)?;
        fs::rename(&made, &place).map_err(at(&place))
    }
}

/// Lists the files of a folder with their sizes; `names` is what their names begin with.
fn sizes(folder: &Path, names: &str) -> Result<String> {
    let mut list = String::new();
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let file = entry.map_err(at(folder))?;
        let name = format!("{names}{}", file.file_name().to_string_lossy());
        let metadata = file.metadata().map_err(at(folder))?;
        list += &match metadata.is_dir() {
            true => sizes(&file.path(), &format!("{name}/"))?,
            false => format!("{} {name}\n", metadata.len()),
        };
    }
    Ok(list)
}

/// Opens the file that makers of stds lock.
fn lock_file(folder: &Path) -> Result<(PathBuf, File)> {
    let path = folder.join("lock");
    let file = File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(at(&path))?;
    Ok((path, file))
}

/// Takes the lock, unless another process has it.
pub(crate) fn lock_if_free(folder: &Path) -> Result<Option<File>> {
    let (path, file) = lock_file(folder)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(at(&path)(error)),
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
fn build(work: &Path, lock: &File, rust: &Rust, target: Target, panic: Panic, tell: &dyn Fn(Step<'_>)) -> Result<()> {
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
    let built = work.join("target");
    let mut cargo = Command::new(&rust.cargo);
    cargo.args(["build", "--release", "-Zbuild-std=std,panic_abort,panic_unwind,proc_macro,test", "--target"]);
    cargo.arg(target.name()).arg("--target-dir").arg(&built).args(["--color", "never"]).current_dir(&empty);
    PROFILE.iter().for_each(|setting| _ = cargo.arg("--config").arg(format!("profile.release.{setting}")));
    // A distribution's sources come with the crates that std is made with: no network is needed.
    let vendor = library.join("vendor");
    if vendor.is_dir() {
        // Texts of Rust are those of TOML, for paths.
        for setting in ["crates-io.replace-with=\"vendor\"".to_owned(), format!("vendor.directory={vendor:?}")] {
            cargo.arg("--config").arg(format!("source.{setting}"));
        }
        cargo.arg("--offline");
    }
    // What the user asks for is asked of the program, not of std.
    env::vars_os().filter(|(name, _)| is_a_programs(name)).for_each(|(name, _)| _ = cargo.env_remove(name));
    // A stable compiler builds its own std with features that it allows nobody else.
    cargo
        .env("RUSTC", &rust.rustc)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("__CARGO_TESTS_ONLY_SRC_ROOT", &library)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    // What configuration files say otherwise.
    cargo
        .env("CARGO_BUILD_BUILD_DIR", &built)
        .env("RUSTC_WRAPPER", "")
        .env("RUSTC_WORKSPACE_WRAPPER", "")
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_TERM_QUIET", "false")
        .env("CARGO_TERM_VERBOSE", "false")
        .env("CARGO_TERM_PROGRESS_WHEN", "never");
    let not_started = |error| Error::NotStarted { program: rust.cargo.display().to_string(), error };
    // As long as cargo has the lock's file, nobody else works in this folder, also if gpu-run is killed and cargo is not.
    let lock = lock.try_clone().map_err(at(work))?;
    cargo.stdin(lock).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    // From here on a signal is kept, and ends cargo when there is one.
    let signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(not_started)?;
    let mut child = cargo.spawn().map_err(not_started)?;
    let stopper = Stopper::of(&child, signals);
    let (mut errors, mut all) = (String::new(), String::new());
    for line in child.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).split(b'\n')) {
        let line = String::from_utf8_lossy(&line.map_err(not_started)?).into_owned() + "\n";
        match line.trim_start().strip_prefix("Compiling ") {
            Some(which) => tell(Step::Compiling(which.split(' ').next().unwrap_or(which))),
            // What std's own authors are warned of is of no interest.
            None if !errors.is_empty() || line.starts_with("error") => errors += &line,
            None => {}
        }
        all += &line;
    }
    let status = child.wait().map_err(not_started)?;
    if let Some(signal) = stopper.end() {
        return Err(Error::Stopped { target, signal });
    }
    if status.success() {
        return Ok(());
    }
    let messages = if errors.is_empty() { all } else { errors };
    Err(Error::Build { target, messages: messages.trim_end().to_owned() })
}

/// Whether a variable is about the user's own packages.
fn is_a_programs(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let is_cargos = name.starts_with("CARGO_") || name.starts_with("__CARGO_");
    let is_kept = KEPT_SETTINGS.iter().any(|kept| name.starts_with(kept));
    is_cargos && !is_kept || ["RUSTFLAGS", "RUSTDOCFLAGS"].contains(&&*name)
}

/// Ends cargo, and every rustc that it started, when a signal asks gpu-run to end.
#[derive(Debug)]
struct Stopper {
    signals: Handle,
    /// The signal that came, or 0.
    stopped: Arc<AtomicI32>,
    thread: JoinHandle<()>,
}

impl Stopper {
    /// The signals for gpu-run do not reach the child, whose process group is its own.
    fn of(child: &Child, mut signals: Signals) -> Stopper {
        let group = Pid::from_child(child);
        let (handle, stopped) = (signals.handle(), Arc::new(AtomicI32::new(0)));
        let noted = stopped.clone();
        let thread = std::thread::spawn(move || {
            for signal in signals.forever() {
                noted.store(signal, Ordering::Release);
                let _ = kill_process_group(group, Signal::TERM);
            }
        });
        Stopper { signals: handle, stopped, thread }
    }

    /// Leaves signals to the system again, and returns the one that came.
    fn end(self) -> Option<i32> {
        self.signals.close();
        let _ = self.thread.join();
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            let _ = signal_hook::flag::register_conditional_default(signal, Arc::new(AtomicBool::new(true)));
        }
        Some(self.stopped.load(Ordering::Acquire)).filter(|signal| *signal != 0)
    }
}

/// Creates a folder and its missing parents, for their owner alone, as the rest of the cache.
fn create(folder: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(at(folder))
}

pub(crate) fn remove(folder: &Path) -> Result<()> {
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
            fs::copy(&file, &copied).map_err(at(&copied))?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn settings_for_the_users_packages_do_not_reach_std() {
        for name in [
            "CARGO_BUILD_BUILD_DIR",
            "CARGO_BUILD_RUSTC_WRAPPER",
            "CARGO_PROFILE_RELEASE_LTO",
            "CARGO_INCREMENTAL",
            "CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_TERM_COLOR",
            "CARGO_UNSTABLE_BUILD_STD_FEATURES",
            "RUSTFLAGS",
        ] {
            assert!(is_a_programs(name.as_ref()), "{name}");
        }
        for name in ["CARGO_HOME", "CARGO_NET_OFFLINE", "CARGO_REGISTRIES_A_INDEX", "CARGO_BUILD_JOBS", "PATH", "CARGO"]
        {
            assert!(!is_a_programs(name.as_ref()), "{name}");
        }
    }

    #[test]
    fn folders_are_their_owners_and_a_full_disk_names_what_is_written() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        create(&from).unwrap();
        assert_eq!(fs::metadata(&from).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(from.join("file"), "text").unwrap();
        // What cannot be written, for whatever reason.
        create(&to.join("file")).unwrap();
        let error = copy(&from, &to).unwrap_err();
        assert!(matches!(&error, Error::File { path, .. } if path.starts_with(&to)), "{error}");
    }
}
