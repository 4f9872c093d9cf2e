//! An instance's descriptors, and the calls that work on any kind of descriptor.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{FileType, Stat, fstat};

use crate::directory::Directory;
use crate::encode::{Filestat, Filetype, Out, Result, fdflags, flags, nanoseconds, put_fdstat, rights};
use crate::file::{File, Times};
use crate::pipe::PipeEnd;
use crate::socket::Socket;
use crate::stdio::{Input, Output};
use crate::{Access, Errno};

/// The most descriptors that an instance may have open, so that one guest cannot use up the host's.
pub(crate) const MAX_DESCRIPTORS: usize = 65536;

/// A standard stream, which descriptors of several processes may hold.
pub(crate) type Shared<T> = Arc<Mutex<Box<T>>>;

pub(crate) enum Descriptor {
    Input(Shared<dyn Input>),
    Output(Shared<dyn Output>),
    Pipe(PipeEnd),
    Directory(Directory),
    File(File),
    Socket(Socket),
}

impl Descriptor {
    pub(crate) fn input(input: Box<dyn Input>) -> Self {
        Self::Input(Arc::new(Mutex::new(input)))
    }

    pub(crate) fn output(output: Box<dyn Output>) -> Self {
        Self::Output(Arc::new(Mutex::new(output)))
    }

    /// Returns another descriptor of the same thing, for a process that this one starts.
    pub(crate) fn share(&self) -> Self {
        match self {
            Self::Input(input) => Self::Input(input.clone()),
            Self::Output(output) => Self::Output(output.clone()),
            Self::Pipe(end) => Self::Pipe(end.share()),
            Self::Directory(directory) => Self::Directory(directory.share()),
            Self::File(file) => Self::File(file.share()),
            Self::Socket(socket) => Self::Socket(socket.duplicate()),
        }
    }
}

/// The descriptors by number. A new descriptor gets the lowest free number.
#[derive(Default)]
pub(crate) struct Table {
    slots: Vec<Option<Descriptor>>,
    free: BTreeSet<u32>,
}

impl Table {
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self { slots: Vec::with_capacity(count), free: BTreeSet::new() }
    }

    /// Returns `mfile` if the table is full. Callers check this before they open something on the host that would then
    /// have no number.
    pub(crate) fn check_room(&self) -> Result {
        if self.slots.len() < MAX_DESCRIPTORS || !self.free.is_empty() { Ok(()) } else { Err(Errno::Mfile.into()) }
    }

    pub(crate) fn insert(&mut self, descriptor: Descriptor) -> Result<u32> {
        self.check_room()?;
        if let Some(fd) = self.free.pop_first() {
            self.slots[fd as usize] = Some(descriptor);
            return Ok(fd);
        }
        self.slots.push(Some(descriptor));
        Ok(self.slots.len() as u32 - 1)
    }

    pub(crate) fn get(&mut self, fd: u64) -> Result<&mut Descriptor> {
        let slot = usize::try_from(fd).ok().and_then(|fd| self.slots.get_mut(fd));
        slot.and_then(Option::as_mut).ok_or_else(|| Errno::Badf.into())
    }

    pub(crate) fn file(&mut self, fd: u64) -> Result<&mut File> {
        match self.get(fd)? {
            Descriptor::File(file) => Ok(file),
            _ => Err(Errno::Badf.into()),
        }
    }

    /// Returns a file with a position; `spipe` for a descriptor that has none.
    pub(crate) fn seekable(&mut self, fd: u64) -> Result<&mut File> {
        match self.get(fd)? {
            Descriptor::File(file) if file.stream => Err(Errno::Spipe.into()),
            Descriptor::File(file) => Ok(file),
            Descriptor::Directory(_) => Err(Errno::Badf.into()),
            Descriptor::Input(_) | Descriptor::Output(_) | Descriptor::Socket(_) | Descriptor::Pipe(_) => {
                Err(Errno::Spipe.into())
            }
        }
    }

    pub(crate) fn directory(&mut self, fd: u64) -> Result<&mut Directory> {
        match self.get(fd)? {
            Descriptor::Directory(directory) => Ok(directory),
            _ => Err(Errno::Badf.into()),
        }
    }

    /// Returns a directory in which the guest may change things, or `rofs`.
    pub(crate) fn changeable(&mut self, fd: u64) -> Result<&mut Directory> {
        let directory = self.directory(fd)?;
        directory.access.check_changes()?;
        Ok(directory)
    }

    pub(crate) fn directories(&self) -> impl Iterator<Item = &Directory> {
        self.slots.iter().filter_map(|slot| match slot {
            Some(Descriptor::Directory(directory)) => Some(directory),
            _ => None,
        })
    }

    pub(crate) fn socket(&mut self, fd: u64) -> Result<&mut Socket> {
        match self.get(fd)? {
            Descriptor::Socket(socket) => Ok(socket),
            _ => Err(Errno::Notsock.into()),
        }
    }

    fn remove(&mut self, fd: u64) -> Result<Descriptor> {
        self.get(fd)?;
        self.free.insert(fd as u32);
        self.slots[fd as usize].take().ok_or_else(|| Errno::Badf.into())
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("open", &(self.slots.len() - self.free.len())).finish_non_exhaustive()
    }
}

/// `fd_close`
pub(crate) fn close(table: &mut Table, fd: u64) -> Result {
    table.remove(fd).map(drop)
}

/// `fd_renumber`: both must be open; `to` is closed and becomes the descriptor that `from` was.
pub(crate) fn renumber(table: &mut Table, from: u64, to: u64) -> Result {
    table.get(to)?;
    table.get(from)?;
    if from != to {
        let moved = table.remove(from)?;
        table.slots[to as usize] = Some(moved);
    }
    Ok(())
}

/// The rights of a preopened directory; many guests' C libraries expect exactly these.
const PREOPEN: u64 = rights::PATH_CREATE_DIRECTORY
    | rights::PATH_CREATE_FILE
    | rights::PATH_LINK_SOURCE
    | rights::PATH_LINK_TARGET
    | rights::PATH_OPEN
    | rights::FD_READDIR
    | rights::PATH_READLINK
    | rights::PATH_RENAME_SOURCE
    | rights::PATH_RENAME_TARGET
    | rights::PATH_SYMLINK
    | rights::PATH_REMOVE_DIRECTORY
    | rights::PATH_UNLINK_FILE
    | rights::PATH_FILESTAT_GET
    | rights::PATH_FILESTAT_SET_TIMES
    | rights::FD_FILESTAT_GET
    | rights::FD_FILESTAT_SET_TIMES;

/// The rights of what is opened in a preopened directory.
const PREOPEN_INHERITING: u64 = PREOPEN
    | rights::FD_DATASYNC
    | rights::FD_READ
    | rights::FD_SEEK
    | rights::FD_FDSTAT_SET_FLAGS
    | rights::FD_SYNC
    | rights::FD_TELL
    | rights::FD_WRITE
    | rights::FD_ADVISE
    | rights::FD_ALLOCATE
    | rights::FD_FILESTAT_SET_SIZE
    | rights::POLL_FD_READWRITE;

const OPENED_DIRECTORY: u64 =
    rights::ALL & !(rights::FD_SEEK | rights::FD_FILESTAT_SET_SIZE | rights::PATH_FILESTAT_SET_SIZE | rights::FD_WRITE);

/// The rights to change something.
const CHANGES: u64 = rights::FD_WRITE
    | rights::FD_ALLOCATE
    | rights::FD_FILESTAT_SET_SIZE
    | rights::FD_FILESTAT_SET_TIMES
    | rights::PATH_CREATE_DIRECTORY
    | rights::PATH_CREATE_FILE
    | rights::PATH_LINK_SOURCE
    | rights::PATH_LINK_TARGET
    | rights::PATH_RENAME_SOURCE
    | rights::PATH_RENAME_TARGET
    | rights::PATH_SYMLINK
    | rights::PATH_REMOVE_DIRECTORY
    | rights::PATH_UNLINK_FILE
    | rights::PATH_FILESTAT_SET_SIZE
    | rights::PATH_FILESTAT_SET_TIMES;

/// Returns the rights that remain with this access.
fn within(access: Access, rights: u64) -> u64 {
    if access == Access::ReadOnly { rights & !CHANGES } else { rights }
}

/// Returns the inheriting rights that remain with this access. `FD_WRITE` stays among them: wasi-libc masks the rights
/// it asks for with these when it opens a file. Without `FD_WRITE`, opening a file for writing would succeed with a
/// read-only descriptor instead of failing with `rofs`.
fn within_inheriting(access: Access, rights: u64) -> u64 {
    within(access, rights) | rights & rights::FD_WRITE
}

const SOCKET: u64 = rights::FD_READ
    | rights::FD_WRITE
    | rights::FD_FDSTAT_SET_FLAGS
    | rights::FD_FILESTAT_GET
    | rights::POLL_FD_READWRITE
    | rights::SOCK_SHUTDOWN;

/// `fd_fdstat_get`
pub(crate) fn fdstat(table: &mut Table, fd: u64, out: &mut Out) -> Result {
    match table.get(fd)? {
        Descriptor::Input(input) => {
            put_fdstat(out, stdio_type(input.lock().is_terminal()), 0, rights::FD_READ, rights::FD_READ)
        }
        Descriptor::Output(output) => {
            put_fdstat(out, stdio_type(output.lock().is_terminal()), 0, rights::FD_WRITE, rights::FD_WRITE)
        }
        Descriptor::Pipe(end) => {
            let set = if end.is_nonblocking() { fdflags::NONBLOCK } else { 0 };
            let own = if end.reads { rights::FD_READ } else { rights::FD_WRITE };
            let base = own | rights::FD_FDSTAT_SET_FLAGS | rights::FD_FILESTAT_GET | rights::POLL_FD_READWRITE;
            put_fdstat(out, Filetype::Unknown, set, base, base);
        }
        Descriptor::Directory(directory) if directory.preopen.is_some() => {
            let access = directory.access;
            let inheriting = within_inheriting(access, PREOPEN_INHERITING);
            put_fdstat(out, Filetype::Directory, 0, within(access, PREOPEN), inheriting)
        }
        Descriptor::Directory(directory) => {
            let base = within(directory.access, OPENED_DIRECTORY);
            put_fdstat(out, Filetype::Directory, 0, base, base);
        }
        Descriptor::File(file) => {
            let mut base = within(file.access, rights::ALL);
            if !file.readable {
                base &= !(rights::FD_READ | rights::FD_READDIR);
            }
            if !file.writable {
                base &= !rights::FD_WRITE;
            }
            let kind = FileType::from_raw_mode(fstat(&*file.file)?.st_mode);
            put_fdstat(out, kind.into(), file.flags(), base, base);
        }
        Descriptor::Socket(socket) => {
            let base = SOCKET | if socket.listening { rights::SOCK_ACCEPT } else { 0 };
            let set = if socket.is_nonblocking() { fdflags::NONBLOCK } else { 0 };
            put_fdstat(out, socket.filetype(), set, base, SOCKET);
        }
    }
    Ok(())
}

/// A terminal is a character device. Guests use this to decide whether to buffer by lines and to print colours.
fn stdio_type(terminal: bool) -> Filetype {
    if terminal { Filetype::CharacterDevice } else { Filetype::Unknown }
}

/// `fd_fdstat_set_flags`: only `append` and `nonblock` can be changed.
pub(crate) fn set_flags(table: &mut Table, fd: u64, word: u64) -> Result {
    let word = flags(word, fdflags::ALL)?;
    match table.get(fd)? {
        Descriptor::File(_) | Descriptor::Socket(_) | Descriptor::Pipe(_)
            if word & (fdflags::DSYNC | fdflags::RSYNC | fdflags::SYNC) != 0 =>
        {
            return Err(Errno::Inval.into());
        }
        Descriptor::File(file) => {
            file.append = word & fdflags::APPEND != 0;
            file.nonblocking = word & fdflags::NONBLOCK != 0;
        }
        Descriptor::Socket(socket) => socket.set_nonblocking(word & fdflags::NONBLOCK != 0),
        Descriptor::Pipe(end) => end.set_nonblocking(word & fdflags::NONBLOCK != 0),
        _ => return Err(Errno::Badf.into()),
    }
    Ok(())
}

/// `fd_fdstat_set_rights`: rights are only reported, so they cannot be changed.
pub(crate) fn set_rights(table: &mut Table, fd: u64, base: u64, inheriting: u64) -> Result {
    flags(base | inheriting, rights::ALL)?;
    match table.get(fd)? {
        Descriptor::Input(_) | Descriptor::Output(_) => Err(Errno::Badf.into()),
        _ => Err(Errno::Notsup.into()),
    }
}

/// `fd_filestat_get`
pub(crate) fn filestat(table: &mut Table, fd: u64, out: &mut Out) -> Result {
    let stat = match table.get(fd)? {
        Descriptor::Input(input) => Filestat::only(stdio_type(input.lock().is_terminal())),
        Descriptor::Output(output) => Filestat::only(stdio_type(output.lock().is_terminal())),
        Descriptor::Pipe(_) => Filestat::only(Filetype::Unknown),
        Descriptor::Socket(socket) => Filestat::only(socket.filetype()),
        Descriptor::Directory(directory) => fstat(&*directory.dir)?.into(),
        Descriptor::File(file) => fstat(&*file.file)?.into(),
    };
    stat.put(out);
    Ok(())
}

impl From<Stat> for Filestat {
    #[allow(clippy::unnecessary_cast)] // Some of these are narrower on other architectures.
    fn from(stat: Stat) -> Self {
        Self {
            dev: stat.st_dev as u64,
            ino: stat.st_ino as u64,
            kind: FileType::from_raw_mode(stat.st_mode).into(),
            permissions: (stat.st_mode & 0o777) as u16,
            links: stat.st_nlink as u64,
            size: stat.st_size as u64,
            accessed: nanoseconds(stat.st_atime, stat.st_atime_nsec as i64),
            modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }
}

/// `fd_filestat_set_times`
pub(crate) fn set_times(table: &mut Table, fd: u64, times: Times) -> Result {
    match table.get(fd)? {
        Descriptor::File(file) => {
            file.access.check_changes()?;
            Ok(rustix::fs::futimens(&*file.file, &times.timestamps())?)
        }
        // Preopened directories are opened with `O_PATH`, which does not suffice for `futimens`.
        Descriptor::Directory(directory) => {
            directory.access.check_changes()?;
            crate::path::set_times_in(&directory.dir, ".", false, times)
        }
        _ => Err(Errno::Badf.into()),
    }
}

/// `fd_prestat_get`: the tag 0, which means a directory, and the length of the name.
pub(crate) fn prestat(table: &mut Table, fd: u64, out: &mut Out) -> Result {
    match table.get(fd)? {
        Descriptor::Directory(Directory { preopen: Some(name), .. }) => {
            out.put_u32(0);
            out.put_u32(u32::try_from(name.len()).map_err(|_| Errno::Overflow)?);
            Ok(())
        }
        _ => Err(Errno::Badf.into()),
    }
}

/// `fd_prestat_dir_name`
pub(crate) fn prestat_name(table: &mut Table, fd: u64, room: u64, out: &mut Out) -> Result {
    match table.get(fd)? {
        Descriptor::Directory(Directory { preopen: Some(name), .. }) if name.len() as u64 > room => {
            Err(Errno::Nametoolong.into())
        }
        Descriptor::Directory(Directory { preopen: Some(name), .. }) => {
            out.put(name.as_bytes());
            Ok(())
        }
        _ => Err(Errno::Notdir.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Stop;
    use crate::stdio::Null;

    #[test]
    fn an_instance_cannot_have_all_the_hosts_descriptors() {
        let mut table = Table::default();
        for _ in 0..MAX_DESCRIPTORS {
            assert!(table.insert(Descriptor::input(Box::new(Null))).is_ok());
        }
        assert!(matches!(table.insert(Descriptor::input(Box::new(Null))), Err(Stop::Errno(Errno::Mfile))));
        assert!(close(&mut table, 1000).is_ok());
        assert!(matches!(table.insert(Descriptor::input(Box::new(Null))), Ok(1000)));
        assert!(table.check_room().is_err());
    }
}
