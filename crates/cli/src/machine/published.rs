//! What a booted machine publishes for `gpu-run top`: a small file, replaced several times a second, in a folder that
//! only its owner can read. A reader trusts nothing: someone else could have made the folder, put a pipe or a link in
//! it, or damaged the file.

use anyhow::{Context as _, Result};
use gpu_run_cache::trust::{self, Others};
use gpu_run_console::failure::Failure;
use gpu_run_console::units::milliseconds;
use gpu_run_machine::Status;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, OsStr};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A machine's state, as another process sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Published {
    pub(crate) pid: u32,
    pub(crate) device: String,
    pub(crate) strategy: String,
    /// Seconds since the machine came up.
    pub(crate) seconds: f64,
    pub(crate) tick: u64,
    pub(crate) events: u64,
    pub(crate) refused: u64,
    pub(crate) waiting: u32,
    pub(crate) lost: u64,
    pub(crate) heap_bytes: u64,
    pub(crate) objects: u64,
    pub(crate) timers: u64,
    pub(crate) work: u64,
    pub(crate) heartbeat_gap_ms: f64,
    pub(crate) late: u64,
    pub(crate) launches: u64,
    pub(crate) restarts: u32,
    pub(crate) loads: u32,
    pub(crate) load_gap_ms: f64,
    /// As a fraction of one core.
    pub(crate) host_cpu: f64,
    /// For each phase: name, seconds, share of active lanes.
    pub(crate) phases: Vec<(String, f64, Option<f64>)>,
    pub(crate) stuck: Option<String>,
}

impl Published {
    pub(crate) fn new(device: &str, strategy: &str, seconds: f64, host_cpu: f64, state: &Status) -> Self {
        let phase = |p: &gpu_run_machine::Phase| (p.name.to_owned(), p.time.as_secs_f64(), p.lanes_active());
        Self {
            pid: std::process::id(),
            device: device.to_owned(),
            strategy: strategy.to_owned(),
            seconds,
            tick: state.tick,
            events: state.events,
            refused: state.refused,
            waiting: state.waiting,
            lost: state.lost,
            heap_bytes: state.heap_bytes,
            objects: state.objects,
            timers: state.timers,
            work: state.work,
            heartbeat_gap_ms: milliseconds(state.heartbeat_gap),
            late: state.late,
            launches: state.launches,
            restarts: state.restarts,
            loads: state.loads,
            load_gap_ms: milliseconds(state.load_gap),
            host_cpu,
            phases: state.phases.iter().map(phase).collect(),
            stuck: state.stuck.map(str::to_owned),
        }
    }
}

/// The folder of the machines' files, held open. It is used only if it belongs to this user alone: the name of a folder
/// in the temporary directory is predictable, so anybody could have made it.
#[derive(Debug)]
struct Folder(OwnedFd);

impl Folder {
    /// Returns the path of a folder in the user's runtime directory, or else in the temporary directory.
    fn path() -> PathBuf {
        match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute()) {
            Some(folder) => folder.join("gpu-run"),
            None => std::env::temp_dir().join(format!("gpu-run-{}", rustix::process::geteuid().as_raw())),
        }
    }

    /// Opens the folder; `None` if it does not exist yet.
    fn open(path: &Path) -> Result<Option<Self>> {
        match trust::open_folder_in(CWD, path, Others::MayNothing) {
            Ok(folder) => Ok(Some(Self(folder))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::environment(format!("cannot use {}: {error}", path.display()))
                .hint("set XDG_RUNTIME_DIR to a folder that only you can access")
                .into()),
        }
    }

    fn make(path: &Path) -> Result<Self> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        // Whatever exists there already is checked when it is opened.
        if let Err(error) = made
            && error.kind() != ErrorKind::AlreadyExists
        {
            return Err(error).with_context(|| format!("cannot create {}", path.display()));
        }
        Self::open(path)?.with_context(|| format!("{} was removed", path.display()))
    }

    /// Replaces a file in one step.
    fn replace(&self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let draft = format!(".{name}.tmp");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create = || openat(&self.0, &draft, flags, Mode::RUSR | Mode::WUSR);
        let file = match create() {
            // Left by a process that had our process ID and was killed.
            Err(Errno::EXIST) => unlinkat(&self.0, &draft, AtFlags::empty()).and_then(|()| create()),
            made => made,
        }?;
        File::from(file).write_all(bytes)?;
        Ok(renameat(&self.0, &draft, &self.0, name)?)
    }

    /// Returns what a process has published, and when, if the file is whole and belongs to that process.
    fn read(&self, name: &CStr) -> Option<(SystemTime, Published)> {
        let pid: u32 = name.to_str().ok()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()?;
        let file = trust::open_file_in(&self.0, OsStr::from_bytes(name.to_bytes())).ok()?;
        let metadata = file.metadata().ok().filter(|metadata| metadata.is_file())?;
        let mut bytes = Vec::new();
        file.take(MAX_PUBLISHED_BYTES + 1).read_to_end(&mut bytes).ok()?;
        let published = decode(&bytes).filter(|published| published.pid == pid)?;
        Some((metadata.modified().ok()?, published))
    }
}

const PREFIX: &str = "machine-";
const SUFFIX: &str = ".status";
/// The most bytes of a file that are read; a real one has a few hundred.
const MAX_PUBLISHED_BYTES: u64 = 1 << 20;

fn file_name(pid: u32) -> String {
    format!("{PREFIX}{pid}{SUFFIX}")
}

/// Encodes a JSON object, followed by its checksum on a line of its own.
fn encode(published: &Published) -> serde_json::Result<Vec<u8>> {
    let object = serde_json::to_string(published)?;
    let sum = blake3::hash(object.as_bytes());
    Ok(format!("{object}\n{sum}\n").into_bytes())
}

fn decode(bytes: &[u8]) -> Option<Published> {
    if bytes.len() as u64 > MAX_PUBLISHED_BYTES {
        return None;
    }
    let (object, sum) = str::from_utf8(bytes).ok()?.strip_suffix('\n')?.rsplit_once('\n')?;
    if sum != blake3::hash(object.as_bytes()).to_string() {
        return None;
    }
    serde_json::from_str(object).ok()
}

/// This process's file; dropping this removes it.
#[derive(Debug)]
pub(crate) struct Publisher {
    folder: Folder,
    name: String,
}

impl Publisher {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { folder: Folder::make(&Folder::path())?, name: file_name(std::process::id()) })
    }

    pub(crate) fn publish(&self, published: &Published) {
        let written = encode(published).map_err(Into::into).and_then(|bytes| self.folder.replace(&self.name, &bytes));
        if let Err(error) = written {
            tracing::debug!("{}: {error}", self.name);
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let _ = unlinkat(&self.folder.0, &self.name, AtFlags::empty());
    }
}

/// Returns the machine of the given process, or of the live process that published last.
pub(crate) fn find(pid: Option<u32>) -> Result<Option<Published>> {
    let path = Folder::path();
    let Some(folder) = Folder::open(&path)? else { return Ok(None) };
    let mut newest = None;
    for entry in Dir::read_from(&folder.0).with_context(|| path.display().to_string())?.flatten() {
        let Some((time, published)) = folder.read(entry.file_name()) else { continue };
        let alive = Path::new("/proc").join(published.pid.to_string()).exists();
        if !alive || pid.is_some_and(|pid| pid != published.pid) {
            continue;
        }
        if newest.as_ref().is_none_or(|(other, _)| *other < time) {
            newest = Some((time, published));
        }
    }
    Ok(newest.map(|(_, published)| published))
}

#[cfg(test)]
#[path = "published_tests.rs"]
mod tests;
