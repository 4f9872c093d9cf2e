//! Files: permissions, which WASI does not have, and paths of which only a part is below a given folder.

#![forbid(unsafe_op_in_unsafe_fn)]

use super::{ask, ask_about, fd_filestat_get, path_filestat_get, result, unsupported};
use crate::borrow::Cow;
use crate::env;
use crate::ffi::{CStr, CString, OsStr, OsString, c_char, c_int};
use crate::fs;
use crate::io;
use crate::os::fd::RawFd;
use crate::os::wasi::ffi::OsStrExt;
use crate::path::{Component, Path, PathBuf};

/// What `fd_filestat_get` writes.
#[repr(C, align(8))]
#[derive(Default)]
pub struct Filestat {
    device: u64,
    inode: u64,
    filetype: u8,
    /// As on Unix. gpu-run puts them where WASI has padding; of other hosts, which leave it zero, a program may do
    /// what it asks for.
    permissions: u16,
    links: u64,
    size: u64,
    accessed: u64,
    modified: u64,
    changed: u64,
}

impl Filestat {
    fn stat(&self) -> libc::stat {
        let kind = match self.filetype {
            1 => libc::S_IFBLK,
            2 => libc::S_IFCHR,
            3 => libc::S_IFDIR,
            4 => libc::S_IFREG,
            7 => libc::S_IFLNK,
            _ => 0,
        };
        let time = |nanoseconds: u64| libc::timespec {
            tv_sec: (nanoseconds / 1_000_000_000) as libc::time_t,
            tv_nsec: (nanoseconds % 1_000_000_000) as libc::c_long,
        };
        let permissions = match (self.permissions, self.filetype) {
            (0, 3) => 0o755,
            (0, _) => 0o644,
            (known, _) => known,
        };
        // SAFETY: it consists of numbers.
        let mut stat: libc::stat = unsafe { crate::mem::zeroed() };
        stat.st_dev = self.device;
        stat.st_ino = self.inode;
        stat.st_mode = kind | libc::mode_t::from(permissions);
        stat.st_nlink = self.links;
        stat.st_size = self.size as libc::off_t;
        stat.st_atim = time(self.accessed);
        stat.st_mtim = time(self.modified);
        stat.st_ctim = time(self.changed);
        stat
    }
}

pub fn stat_of_file(fd: RawFd) -> io::Result<libc::stat> {
    let mut found = Filestat::default();
    // SAFETY: the host writes what it found.
    result(unsafe { fd_filestat_get(fd as u32, &mut found) })?;
    Ok(found.stat())
}

pub fn stat_of_path(path: &CStr, follows_link: bool) -> io::Result<libc::stat> {
    let Some((folder, relative)) = below_given_folder(path) else {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    };
    let mut found = Filestat::default();
    let (at, bytes) = (relative.as_ptr(), relative.count_bytes());
    // SAFETY: the host reads the path, and writes what it found.
    result(unsafe { path_filestat_get(folder as u32, follows_link.into(), at, bytes, &mut found) })?;
    Ok(found.stat())
}

/// Returns the descriptor of the given folder that a path is below, and the rest of the path.
fn below_given_folder(path: &CStr) -> Option<(c_int, CString)> {
    unsafe extern "C" {
        fn __wasilibc_find_relpath_alloc(
            path: *const c_char,
            prefix: *mut *const c_char,
            relative: *mut *mut c_char,
            relative_bytes: *mut usize,
            allocates: c_int,
        ) -> c_int;
    }
    let (mut prefix, mut relative, mut bytes) = (crate::ptr::null(), crate::ptr::null_mut(), 0);
    // SAFETY: it reads the path, and makes room for the rest of it.
    let folder =
        unsafe { __wasilibc_find_relpath_alloc(path.as_ptr(), &mut prefix, &mut relative, &mut bytes, 1) };
    if folder < 0 {
        return None;
    }
    // SAFETY: it has been made.
    let copy = unsafe { CStr::from_ptr(relative) }.to_owned();
    // SAFETY: it was allocated above, and is not used any more.
    unsafe { libc::free(relative.cast()) };
    Some((folder, copy))
}

/// Leaves out what `/./` begins with more than `/`: wasi-libc finds no given folder behind it. The path of a file in the folder that
/// the program works in often begins so.
pub fn without_leading_dots(path: &Path) -> Cow<'_, Path> {
    let bytes = path.as_os_str().as_bytes();
    let mut rest = bytes;
    while let Some(after) = rest.strip_prefix(b"/") {
        rest = match after {
            [b'.'] => b"/",
            [b'.', b'/', ..] => &after[1..],
            [b'/', ..] => after,
            _ => break,
        };
    }
    if rest.len() == bytes.len() { Cow::Borrowed(path) } else { Cow::Owned(PathBuf::from(OsStr::from_bytes(rest))) }
}

/// How many links a path may lead through, as on Linux.
const MAX_LINKS: usize = 40;

/// Resolves links and `..`. What is above the given folders is nothing that a program can look at, and stays as it is.
pub fn canonicalize(path: &CStr) -> io::Result<PathBuf> {
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    // An empty path is none.
    fs::symlink_metadata(path)?;
    let owned = |path: &Path| -> Vec<OsString> {
        path.components().rev().map(|component| component.as_os_str().to_owned()).collect()
    };
    let mut rest = owned(&env::current_dir().unwrap_or_default().join(path));
    let (mut real, mut links) = (PathBuf::from("/"), 0);
    while let Some(part) = rest.pop() {
        match Path::new(&part).components().next() {
            Some(Component::RootDir) => real = PathBuf::from("/"),
            Some(Component::ParentDir) => _ = real.pop(),
            Some(Component::Normal(name)) => {
                let next = real.join(name);
                match fs::read_link(&next) {
                    Ok(_) if links == MAX_LINKS => return Err(io::Error::from_raw_os_error(libc::ELOOP)),
                    Ok(target) => {
                        links += 1;
                        rest.extend(owned(&target));
                    }
                    Err(error) if error.raw_os_error() == Some(libc::EINVAL) => real = next, // no link
                    Err(error) => {
                        let known = CString::new(next.as_os_str().as_bytes())?;
                        if below_given_folder(&known).is_some() {
                            return Err(error);
                        }
                        real = next;
                    }
                }
            }
            _ => {}
        }
    }
    fs::symlink_metadata(&real).map(|_| real)
}

pub fn set_permissions(fd: RawFd, mode: u32) -> io::Result<()> {
    ask_about(fd as u32, ask::SET_PERMISSIONS, mode & 0o777, [&[], &[]]).map(drop).map_err(unsupported)
}
