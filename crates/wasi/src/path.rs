//! Calls that take a path.
//!
//! cap-std resolves a guest's path beneath the directory it is relative to: `..`, absolute paths and symbolic links
//! never lead out, not even while another process swaps them. No path of a guest reaches `std::fs` or a plain system
//! call.

use std::borrow::Cow;
use std::sync::Arc;

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, FileTypeExt, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use rustix::fs::{FileType, OFlags, fstat, futimens};
use rustix::io::Errno as Os;

use crate::Errno;
use crate::descriptor::{Descriptor, Table};
use crate::directory::Directory;
use crate::encode::{Filestat, Out, Result, Stop, fdflags, flags, nanoseconds, rights, would_block};
use crate::file::{File, Times};

const SYMLINK_FOLLOW: u64 = 1;

mod oflags {
    pub(super) const CREAT: u64 = 1;
    pub(super) const DIRECTORY: u64 = 2;
    pub(super) const EXCL: u64 = 4;
    pub(super) const TRUNC: u64 = 8;
    pub(super) const ALL: u64 = 15;
}

/// Checks that a guest's path is UTF-8, as WASI's paths are.
fn utf8(path: &[u8]) -> Result<&str> {
    std::str::from_utf8(path).map_err(|_| Errno::Ilseq.into())
}

fn follow(word: u64) -> Result<bool> {
    Ok(flags(word, SYMLINK_FOLLOW)? != 0)
}

/// Splits the input into two paths; `first` is the length of the first.
pub(crate) fn split(input: &[u8], first: u64) -> Result<(&[u8], &[u8])> {
    usize::try_from(first).ok().and_then(|first| input.split_at_checked(first)).ok_or_else(|| Errno::Inval.into())
}

/// `path_open`'s arguments besides the directory and the path.
pub(crate) struct Open {
    pub(crate) dirflags: u64,
    pub(crate) oflags: u64,
    pub(crate) base: u64,
    pub(crate) inheriting: u64,
    pub(crate) fdflags: u64,
}

/// `path_open`
pub(crate) fn open(table: &mut Table, fd: u64, path: &[u8], how: &Open, out: &mut Out) -> Result {
    let follow = follow(how.dirflags)?;
    let oflags = flags(how.oflags, oflags::ALL)?;
    let base = flags(how.base, rights::ALL)?;
    flags(how.inheriting, rights::ALL)?;
    let fdflags = flags(how.fdflags, fdflags::ALL)?;
    let path = utf8(path)?;
    table.check_room()?;
    let (dir, access) = match table.get(fd)? {
        Descriptor::Directory(directory) => (&directory.dir, directory.access),
        Descriptor::File(_) => return Err(Errno::Notdir.into()),
        _ => return Err(Errno::Badf.into()),
    };
    if fdflags & (fdflags::SYNC | fdflags::DSYNC | fdflags::RSYNC) != 0 {
        return Err(Errno::Notsup.into());
    }
    if oflags & oflags::DIRECTORY != 0 && oflags != oflags::DIRECTORY {
        return Err(Errno::Inval.into());
    }

    let create = oflags & oflags::CREAT != 0;
    let truncate = oflags & oflags::TRUNC != 0;
    let nonblocking = fdflags & fdflags::NONBLOCK != 0;
    let writable = base & rights::FD_WRITE != 0 || create || truncate;
    if writable {
        access.check_changes()?;
    }
    // A file that is not opened for writing is opened for reading, because it must be opened for something.
    let readable = base & rights::FD_READ != 0 || base & rights::FD_WRITE == 0;
    let mut options = waitless(follow);
    options.read(readable).write(writable).truncate(truncate);
    if create {
        if oflags & oflags::EXCL != 0 {
            options.create_new(true)
        } else {
            options.create(true)
        };
    }
    let opened = match dir.open_with(path, &options) {
        // Nobody reads this FIFO yet. A blocking open would wait for a reader; this one fails.
        Err(error) if Os::from_io_error(&error) == Some(Os::NXIO) && is_fifo(dir, path, follow) => {
            return Err(would_block(nonblocking));
        }
        other => other?.into_std(),
    };

    let kind = FileType::from_raw_mode(fstat(&opened)?.st_mode);
    let descriptor = if kind == FileType::Directory {
        Descriptor::Directory(Directory::new(Dir::from_std_file(opened).into(), None, access))
    } else if oflags & oflags::DIRECTORY != 0 {
        return Err(Errno::Notdir.into());
    } else {
        let append = fdflags & fdflags::APPEND != 0;
        let stream = matches!(kind, FileType::Fifo | FileType::CharacterDevice | FileType::Socket);
        Descriptor::File(File {
            file: Arc::new(opened),
            position: Arc::default(),
            readable,
            writable,
            append,
            nonblocking,
            stream,
            access,
        })
    };
    out.put_u32(table.insert(descriptor)?);
    Ok(())
}

/// Options that make opening neither block nor acquire a controlling terminal.
fn waitless(follow: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.follow(FollowSymlinks::follow(follow)).nonblock(true).custom_flags(OFlags::NOCTTY.bits() as i32);
    options
}

fn metadata(dir: &Dir, path: &str, follow: bool) -> Result<Metadata> {
    Ok(if follow { dir.metadata(path)? } else { dir.symlink_metadata(path)? })
}

fn is_fifo(dir: &Dir, path: &str, follow: bool) -> bool {
    metadata(dir, path, follow).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// `path_create_directory`
pub(crate) fn create_directory(table: &mut Table, fd: u64, path: &[u8]) -> Result {
    let dir = &table.changeable(fd)?.dir;
    Ok(dir.create_dir(utf8(path)?)?)
}

/// `path_filestat_get`
pub(crate) fn filestat(table: &mut Table, fd: u64, word: u64, path: &[u8], out: &mut Out) -> Result {
    let follow = follow(word)?;
    let dir = &table.directory(fd)?.dir;
    let metadata = metadata(dir, utf8(path)?, follow)?;
    let stat = Filestat {
        dev: metadata.dev(),
        ino: metadata.ino(),
        kind: FileType::from_raw_mode(metadata.mode()).into(),
        permissions: (metadata.mode() & 0o777) as u16,
        links: metadata.nlink(),
        size: metadata.size(),
        accessed: nanoseconds(metadata.atime(), metadata.atime_nsec()),
        modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
    };
    stat.put(out);
    Ok(())
}

/// `path_filestat_set_times`
pub(crate) fn set_times(table: &mut Table, fd: u64, word: u64, path: &[u8], times: Times) -> Result {
    let follow = follow(word)?;
    let dir = &table.changeable(fd)?.dir;
    set_times_in(dir, utf8(path)?, follow, times)
}

pub(crate) fn set_times_in(dir: &Dir, path: &str, follow: bool, times: Times) -> Result {
    let (accessed, modified) = times.specs();
    if !follow {
        return Ok(dir.set_symlink_times(path, accessed, modified)?);
    }
    // cap-std would open the file in blocking mode and wait for the other end of a FIFO. So try to open it here first,
    // without blocking. Where neither writing nor reading is permitted, cap-std cannot block either.
    for write in [true, false] {
        let mut options = waitless(true);
        match dir.open_with(path, options.write(write).read(!write)) {
            Ok(file) => return Ok(futimens(&file, &times.timestamps())?),
            Err(error) if matches!(Os::from_io_error(&error), Some(Os::ACCESS | Os::ISDIR | Os::NXIO)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(dir.set_times(path, accessed, modified)?)
}

/// `path_link`
pub(crate) fn link(table: &mut Table, from: (u64, &[u8]), word: u64, to: (u64, &[u8])) -> Result {
    let follow = follow(word)?;
    let (old, new) = both(table, from.0, to.0)?;
    let (old_path, new_path) = (utf8(from.1)?, utf8(to.1)?);
    if follow {
        return Err(Errno::Inval.into());
    }
    Ok(old.hard_link(old_path, &new, new_path)?)
}

/// `path_rename`
pub(crate) fn rename(table: &mut Table, from: (u64, &[u8]), to: (u64, &[u8])) -> Result {
    let (old, new) = both(table, from.0, to.0)?;
    let (old_path, new_path) = (utf8(from.1)?, utf8(to.1)?);
    // A slash at the end of the new name means that a directory is renamed; cap-std checks only the old name for one.
    let directory = new_path.ends_with('/') && !old_path.is_empty();
    let old_path = if directory { Cow::Owned(format!("{old_path}/")) } else { Cow::Borrowed(old_path) };
    Ok(old.rename(&*old_path, &new, new_path)?)
}

/// Returns two directories, in both of which the guest may change things. A hard link needs both, too: through a name
/// in a writable directory, the guest could write a file that it may only read.
fn both(table: &mut Table, first: u64, second: u64) -> Result<(std::sync::Arc<Dir>, std::sync::Arc<Dir>)> {
    table.directory(second)?;
    let first = table.changeable(first)?.dir.clone();
    Ok((first, table.changeable(second)?.dir.clone()))
}

/// `path_symlink`: a target that begins with `/` is refused (`perm`), so that no program outside the sandbox follows it
/// either.
pub(crate) fn symlink(table: &mut Table, target: &[u8], fd: u64, path: &[u8]) -> Result {
    let dir = &table.changeable(fd)?.dir;
    Ok(DirExt::symlink(&**dir, utf8(target)?, utf8(path)?)?)
}

/// `path_readlink`: returns the target, cut off to `room` bytes.
pub(crate) fn readlink(table: &mut Table, fd: u64, path: &[u8], room: u64, out: &mut Out) -> Result {
    let dir = &table.directory(fd)?.dir;
    let target = dir.read_link(utf8(path)?)?;
    let target = target.to_str().ok_or(Stop::Errno(Errno::Ilseq))?.as_bytes();
    let used = target.len().min(usize::try_from(room).unwrap_or(usize::MAX));
    out.put_u32(used as u32);
    out.put(&target[..used]);
    Ok(())
}

/// `path_remove_directory`
pub(crate) fn remove_directory(table: &mut Table, fd: u64, path: &[u8]) -> Result {
    let dir = &table.changeable(fd)?.dir;
    Ok(dir.remove_dir(utf8(path)?)?)
}

/// `path_unlink_file`
pub(crate) fn unlink_file(table: &mut Table, fd: u64, path: &[u8]) -> Result {
    let dir = &table.changeable(fd)?.dir;
    Ok(dir.remove_file_or_symlink(utf8(path)?)?)
}
