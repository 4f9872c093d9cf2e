//! A folder that is held open: everything in it is reached from there, name by name, and no link is followed on the
//! way.
//!
//! A guest that was given a folder can, at any time while a map runs, put links into it, and replace files and folders.
//! So a path is looked up once, before the first guest runs ([`FolderEntry::find`]); from then on everything is opened,
//! made, renamed and removed relative to the handle.

use crate::options::Options;
use gpu_run_wasi::Access;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, fsync, mkdirat, open, openat, readlinkat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Links that one path may lead through: the same number as in Linux.
const MAX_LINKS: u32 = 40;
/// Names that are tried for a temporary file. They are random: if one is taken, somebody guessed it.
const MAX_TEMPORARY_NAMES: u32 = 100;
/// Random digits at the end of a temporary file's name.
const RANDOM_DIGITS: usize = 16;

/// Opens a folder to reach what is in it; the folder itself need not be readable.
const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Opens a folder to list, lock or flush it.
const LISTED: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Does not wait for a FIFO, and does not make a terminal ours.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

/// A name in a folder that is held open. The name need not exist.
#[derive(Debug)]
pub(crate) struct FolderEntry {
    pub(crate) folder: Folder,
    pub(crate) name: OsString,
}

/// Which of the user's paths may lead through links: those on which no guest can have put one.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    /// The real paths of the folders that guests can write to.
    guests: Vec<PathBuf>,
}

impl Trust {
    /// If the user asks to follow links, all links are trusted, wherever they are.
    pub(crate) fn of(options: &Options) -> Self {
        let written = options.folders.iter().filter(|folder| folder.access == Access::ReadWrite);
        Self::new(written.map(|folder| &*folder.host), options.follow_links)
    }

    fn new<'a>(written: impl Iterator<Item = &'a Path>, follow_links: bool) -> Self {
        let guests = written.filter(|_| !follow_links).filter_map(|folder| fs::canonicalize(folder).ok()).collect();
        Self { guests }
    }

    fn check(&self, folder: &OwnedFd, link: &OsStr) -> Result<(), FindError> {
        let real = real_path(folder.as_fd())?;
        match self.guests.iter().any(|guest| real.starts_with(guest)) {
            true => Err(FindError::UntrustedLink(real.join(link))),
            false => Ok(()),
        }
    }
}

/// Why a path cannot be followed.
#[derive(Debug)]
pub(crate) enum FindError {
    Io(io::Error),
    /// The path leads through this link, which a guest may have made.
    UntrustedLink(PathBuf),
}

impl From<io::Error> for FindError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for FindError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl FolderEntry {
    /// Returns where a path of the user's leads, through trusted links. With `make`, missing folders are made.
    pub(crate) fn find(path: &Path, trust: &Trust, make: bool) -> Result<Self, FindError> {
        let mut at = start(path)?;
        let (mut rest, mut links) = (names(path), 0);
        while let Some(name) = rest.pop() {
            match readlinkat(&at, &name, Vec::new()) {
                Ok(target) => {
                    trust.check(&at, &name)?;
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    if target.is_absolute() {
                        at = start(&target)?;
                    }
                    rest.extend(names(&target));
                    continue;
                }
                // No link, or nothing at all.
                Err(Errno::INVAL | Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
            if rest.is_empty() {
                return Ok(Self { folder: Folder(at), name });
            }
            at = step(&at, &name, make)?;
        }
        // The path was `.` or `/`, or a link led there.
        Ok(Self { folder: Folder(at), name: ".".into() })
    }

    /// Returns the kind of what is there; `None` if nothing is.
    pub(crate) fn kind(&self) -> io::Result<Option<FileType>> {
        match self.folder.stat(&self.name) {
            Ok(stat) => Ok(Some(kind_of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn open(&self, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(openat(&self.folder.0, &self.name, flags, Mode::from_raw_mode(0o666))?.into())
    }

    /// Opens the folder of this name; with `make`, it is made if it does not exist.
    pub(crate) fn into_folder(self, make: bool) -> io::Result<Folder> {
        self.folder.below(&self.name, make)
    }
}

impl Folder {
    /// Opens the root of the file system.
    pub(crate) fn top() -> io::Result<Self> {
        Ok(Self(open("/", STEP, Mode::empty())?))
    }

    #[cfg(test)]
    pub(crate) fn open(path: &Path) -> Self {
        FolderEntry::find(path, &Trust::default(), false).unwrap().into_folder(false).unwrap()
    }

    /// Opens a folder in this one; with `make`, it is made if it does not exist.
    pub(crate) fn below(&self, name: &OsStr, make: bool) -> io::Result<Self> {
        Ok(Self(step(&self.0, name, make)?))
    }

    pub(crate) fn real_path(&self) -> io::Result<PathBuf> {
        real_path(self.0.as_fd())
    }

    /// Returns where a path in this folder leads, through links, whoever made them. Nothing is opened.
    pub(crate) fn leads_to(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(handle_path(self.0.as_fd()).join(path))
    }

    /// Opens a regular file in this folder, or in one below it, for reading.
    pub(crate) fn read(&self, path: &Path) -> Result<(File, Stat), Errno> {
        let (folder, name) = self.way(path, false)?;
        // Its kind is checked before it is opened: opening a device may have effects.
        regular(statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?)?;
        let file = openat(&folder, name, READ, Mode::empty())?;
        let stat = regular(fstat(&file)?)?;
        Ok((file.into(), stat))
    }

    pub(crate) fn stat(&self, name: impl AsRef<OsStr>) -> Result<Stat, Errno> {
        statat(&self.0, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(crate) fn kind(&self, path: &Path) -> Result<FileType, Errno> {
        let (folder, name) = self.way(path, false)?;
        Ok(kind_of(&statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Returns what lies in a folder below this one, in no particular order.
    pub(crate) fn list(&self, path: &Path) -> io::Result<Vec<(OsString, FileType)>> {
        let mut at = None;
        for name in parts(path)? {
            at = Some(step(at.as_ref().unwrap_or(&self.0), name, false)?);
        }
        let folder = at.as_ref().unwrap_or(&self.0);
        let mut found = Vec::new();
        for entry in Dir::new(openat(folder, ".", LISTED, Mode::empty())?)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let kind = match entry.file_type() {
                FileType::Unknown => kind_of(&statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?),
                kind => kind,
            };
            if name != "." && name != ".." {
                found.push((name.to_owned(), kind));
            }
        }
        Ok(found)
    }

    /// Makes a new file with a name that nobody can foresee: `STEM.` and random digits.
    pub(crate) fn temporary(&self, stem: &OsStr) -> io::Result<(File, OsString)> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..MAX_TEMPORARY_NAMES {
            let mut name = stem.to_owned();
            name.push(format!(".{:0RANDOM_DIGITS$x}", RandomState::new().hash_one(())));
            match openat(&self.0, &name, flags, Mode::from_raw_mode(0o666)) {
                Ok(file) => return Ok((file.into(), name)),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Removes temporary files that a killed run has left.
    pub(crate) fn remove_temporary(&self, stem: &OsStr) -> io::Result<()> {
        let is_ours = |name: &OsStr| {
            let rest = name.as_bytes().strip_prefix(stem.as_bytes()).and_then(|rest| rest.strip_prefix(b"."));
            rest.is_some_and(|digits| digits.len() == RANDOM_DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
        };
        for (name, _) in self.list(Path::new(""))?.into_iter().filter(|(name, _)| is_ours(name)) {
            self.remove(Path::new(&name))?;
        }
        Ok(())
    }

    /// Moves a file of this folder to `path`, in one step, in place of whatever is there. Missing folders are made.
    pub(crate) fn rename(&self, name: &OsStr, path: &Path) -> io::Result<()> {
        let (folder, to) = self.way(path, true)?;
        Ok(renameat(&self.0, name, &folder, to)?)
    }

    /// Removes a file or a link, if it exists.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        let removed = self.way(path, false).and_then(|(folder, name)| unlinkat(&folder, name, AtFlags::empty()));
        match removed {
            Err(Errno::NOENT) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Removes a folder in this one, if it is empty.
    pub(crate) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        match unlinkat(&self.0, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Makes the names in this folder durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(fsync(openat(&self.0, ".", LISTED, Mode::empty())?)?)
    }

    /// Opens the same folder as a file, to be locked and flushed.
    pub(crate) fn as_file(&self) -> io::Result<File> {
        Ok(openat(&self.0, ".", LISTED, Mode::empty())?.into())
    }

    /// Returns the folder that the last name of a path is in, and that name.
    fn way<'a>(&self, path: &'a Path, make: bool) -> Result<(OwnedFd, &'a OsStr), Errno> {
        let names = parts(path)?;
        let (last, folders) = names.split_last().ok_or(Errno::INVAL)?;
        let mut at = openat(&self.0, ".", STEP, Mode::empty())?;
        for name in folders {
            at = step(&at, name, make)?;
        }
        Ok((at, last))
    }
}

/// Returns the names of a path that stays below its beginning; an error for any other path.
fn parts(path: &Path) -> Result<Vec<&OsStr>, Errno> {
    let name = |component| match component {
        Component::Normal(name) => Ok(name),
        _ => Err(Errno::INVAL),
    };
    path.components().map(name).collect()
}

/// Returns all names of a path, including `..`, the last one first.
fn names(path: &Path) -> Vec<OsString> {
    let name = |component: Component<'_>| match component {
        Component::Normal(_) | Component::ParentDir => Some(component.as_os_str().to_owned()),
        _ => None,
    };
    path.components().rev().filter_map(name).collect()
}

fn start(path: &Path) -> Result<OwnedFd, Errno> {
    let from = if path.is_absolute() { "/" } else { "." };
    openat(CWD, from, STEP, Mode::empty())
}

fn step(at: &OwnedFd, name: &OsStr, make: bool) -> Result<OwnedFd, Errno> {
    match openat(at, name, STEP, Mode::empty()) {
        Err(Errno::NOENT) if make => {
            made(at, name)?;
            openat(at, name, STEP, Mode::empty())
        }
        result => result,
    }
}

fn made(at: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    match mkdirat(at, name, Mode::from_raw_mode(0o777)) {
        Err(Errno::EXIST) => Ok(()),
        result => result,
    }
}

fn kind_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Refuses what is no regular file. For a link, the error is the same as the system's.
fn regular(stat: Stat) -> Result<Stat, Errno> {
    match kind_of(&stat) {
        FileType::RegularFile => Ok(stat),
        FileType::Symlink => Err(Errno::LOOP),
        FileType::Directory => Err(Errno::ISDIR),
        _ => Err(Errno::NXIO),
    }
}

fn handle_path(handle: BorrowedFd<'_>) -> PathBuf {
    format!("/proc/self/fd/{}", handle.as_raw_fd()).into()
}

fn real_path(handle: BorrowedFd<'_>) -> io::Result<PathBuf> {
    fs::read_link(handle_path(handle))
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
