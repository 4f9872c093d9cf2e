//! What a booted machine or a program with threads publishes for `gpu-run top`: a small file, replaced several times a
//! second, in a folder that only its owner can read. A reader trusts nothing: someone else could have made the folder,
//! put a pipe or a link in it, or damaged the file.

use anyhow::{Context as _, Result};
use gpu_run_cache::trust::{self, Others};
use gpu_run_console::failure::Failure;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::{CStr, OsStr};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What a process publishes about itself.
pub(crate) trait Published: Serialize + DeserializeOwned {
    /// What the name of its file begins with; the process's number follows.
    const PREFIX: &'static str;
    fn pid(&self) -> u32;
}

/// The folder of these files, held open. It is used only if it belongs to this user alone: the name of a folder
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
    fn read<T: Published>(&self, name: &CStr) -> Option<(SystemTime, T)> {
        let pid: u32 = name.to_str().ok()?.strip_prefix(T::PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()?;
        let file = trust::open_file_in(&self.0, OsStr::from_bytes(name.to_bytes())).ok()?;
        let metadata = file.metadata().ok().filter(|metadata| metadata.is_file())?;
        let mut bytes = Vec::new();
        file.take(MAX_PUBLISHED_BYTES + 1).read_to_end(&mut bytes).ok()?;
        let published = decode(&bytes).filter(|published: &T| published.pid() == pid)?;
        Some((metadata.modified().ok()?, published))
    }
}

/// The file that `gpu-run top` renews while it looks.
const ASKED: &str = "top.asked";
/// How long ago it was renewed, at most, if somebody looks.
const ASKED_WITHIN: Duration = Duration::from_secs(3);
const SUFFIX: &str = ".status";
/// The most bytes of a file that are read; a real one has a few hundred.
const MAX_PUBLISHED_BYTES: u64 = 1 << 20;

fn file_name<T: Published>(pid: u32) -> String {
    format!("{}{pid}{SUFFIX}", T::PREFIX)
}

/// Encodes a JSON object, followed by its checksum on a line of its own.
fn encode(published: &impl Published) -> serde_json::Result<Vec<u8>> {
    let object = serde_json::to_string(published)?;
    let sum = blake3::hash(object.as_bytes());
    Ok(format!("{object}\n{sum}\n").into_bytes())
}

fn decode<T: Published>(bytes: &[u8]) -> Option<T> {
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
    pub(crate) fn new<T: Published>() -> Result<Self> {
        Ok(Self { folder: Folder::make(&Folder::path())?, name: file_name::<T>(std::process::id()) })
    }

    /// Returns whether `gpu-run top` looks, at whatever process.
    pub(crate) fn is_asked(&self) -> bool {
        let asked = trust::open_file_in(&self.folder.0, OsStr::new(ASKED)).and_then(|file| file.metadata()?.modified());
        asked.is_ok_and(|at| at.elapsed().is_ok_and(|ago| ago < ASKED_WITHIN))
    }

    pub(crate) fn publish(&self, published: &impl Published) {
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

/// Tells processes that publish only for somebody who looks that somebody does.
pub(crate) fn ask() -> Result<()> {
    match Folder::open(&Folder::path())? {
        Some(folder) => Ok(folder.replace(ASKED, b"")?),
        None => Ok(()),
    }
}

/// Returns what the given process published and when, or what the live process did that published last.
pub(crate) fn find<T: Published>(pid: Option<u32>) -> Result<Option<(SystemTime, T)>> {
    let path = Folder::path();
    let Some(folder) = Folder::open(&path)? else { return Ok(None) };
    let mut newest: Option<(SystemTime, T)> = None;
    for entry in Dir::read_from(&folder.0).with_context(|| path.display().to_string())?.flatten() {
        let Some((time, published)) = folder.read::<T>(entry.file_name()) else { continue };
        let alive = Path::new("/proc").join(published.pid().to_string()).exists();
        if !alive || pid.is_some_and(|pid| pid != published.pid()) {
            continue;
        }
        if newest.as_ref().is_none_or(|(other, _)| *other < time) {
            newest = Some((time, published));
        }
    }
    Ok(newest)
}

#[cfg(test)]
#[path = "published_tests.rs"]
mod tests;
