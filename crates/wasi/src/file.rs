//! Open files: reading, writing, positions.
//!
//! A regular file's position is kept here, and every access names its offset (`pread`, `pwrite`). A file without a
//! position, such as a FIFO or a terminal, is a *stream*: it is open in non-blocking mode, and a read that finds
//! nothing is repeated.

use std::io::IoSlice;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::PollFlags;
use rustix::fs::{
    Advice, FlockOperation, Mode, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, fadvise, fchmod, flock, fstat,
};
use rustix::io::{Errno as Os, ReadWriteFlags};

use cap_fs_ext::SystemTimeSpec;
use cap_std::time::SystemTime;

use crate::descriptor::{Descriptor, Table};
use crate::encode::{Out, Result, Stop, fdflags, flags, would_block};
use crate::extension::Lock;
use crate::socket;
use crate::stdio::is_ready;
use crate::{Access, Errno};

pub(crate) struct File {
    pub(crate) file: Arc<std::fs::File>,
    /// All duplicates of a descriptor share this, as on Linux.
    pub(crate) position: Arc<AtomicU64>,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    pub(crate) append: bool,
    pub(crate) nonblocking: bool,
    pub(crate) stream: bool,
    /// The access of the directory in which the file was opened.
    pub(crate) access: Access,
}

impl File {
    pub(crate) fn flags(&self) -> u64 {
        (if self.append { fdflags::APPEND } else { 0 }) | (if self.nonblocking { fdflags::NONBLOCK } else { 0 })
    }

    /// Returns another descriptor of the same open file.
    pub(crate) fn share(&self) -> Self {
        Self { file: self.file.clone(), position: self.position.clone(), ..*self }
    }

    pub(crate) fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    fn set_position(&self, position: u64) {
        self.position.store(position, Ordering::Relaxed);
    }

    pub(crate) fn size(&self) -> Result<u64> {
        Ok(fstat(&*self.file)?.st_size as u64)
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.stream {
            return self.read_stream(buffer);
        }
        let count = self.file.read_at(buffer, self.position())?;
        self.advance(count)
    }

    fn read_stream(&mut self, buffer: &mut [u8]) -> Result<usize> {
        // A FIFO that nobody has opened for writing yet reads as ended; `poll` knows the difference.
        if !is_ready(&*self.file, PollFlags::IN) {
            return Err(would_block(self.nonblocking));
        }
        match rustix::io::read(&*self.file, buffer) {
            Err(Os::AGAIN) => Err(would_block(self.nonblocking)),
            other => Ok(other?),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.access.check_changes()?;
        if self.stream {
            return match rustix::io::write(&*self.file, bytes) {
                Err(Os::AGAIN) => Err(would_block(self.nonblocking)),
                other => Ok(other?),
            };
        }
        if self.append {
            let count = self.append(bytes)?;
            self.set_position(self.size()?);
            return Ok(count);
        }
        let count = self.file.write_at(bytes, self.position())?;
        self.advance(count)
    }

    /// As on Linux, the offset is ignored if the file is in append mode.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<usize> {
        self.access.check_changes()?;
        if self.append { self.append(bytes) } else { Ok(self.file.write_at(bytes, offset)?) }
    }

    fn append(&self, bytes: &[u8]) -> Result<usize> {
        match rustix::io::pwritev2(&*self.file, &[IoSlice::new(bytes)], 0, ReadWriteFlags::APPEND) {
            // The file system cannot append in one step.
            Err(Os::NOSYS | Os::OPNOTSUPP) => Ok(self.file.write_at(bytes, self.size()?)?),
            other => Ok(other?),
        }
    }

    fn advance(&mut self, count: usize) -> Result<usize> {
        self.set_position(self.position().checked_add(count as u64).ok_or(Errno::Overflow)?);
        Ok(count)
    }
}

/// `fd_read`
pub(crate) fn read(table: &mut Table, fd: u64, room: u64, out: &mut Out) -> Result {
    match table.get(fd)? {
        Descriptor::Input(input) => out.fill(4, room, |buffer| {
            // A read of zero bytes must not start the reader thread.
            if buffer.is_empty() { Ok(0) } else { input.lock().read(buffer).map_err(stdio_error) }
        }),
        Descriptor::Pipe(end) => out.fill(4, room, |buffer| end.read(buffer)),
        Descriptor::File(file) => out.fill(4, room, |buffer| file.read(buffer)),
        Descriptor::Socket(socket) => out.fill(4, room, |buffer| Ok(socket.receive(buffer, 0)?.0)),
        Descriptor::Output(_) | Descriptor::Directory(_) => Err(Errno::Badf.into()),
    }
}

/// `fd_pread`
pub(crate) fn read_at(table: &mut Table, fd: u64, room: u64, offset: u64, out: &mut Out) -> Result {
    match table.get(fd)? {
        Descriptor::File(file) if file.stream => Err(Errno::Spipe.into()),
        Descriptor::File(file) => out.fill(4, room, |buffer| Ok(file.file.read_at(buffer, offset)?)),
        Descriptor::Input(_) | Descriptor::Socket(_) | Descriptor::Pipe(_) => Err(Errno::Spipe.into()),
        Descriptor::Output(_) | Descriptor::Directory(_) => Err(Errno::Badf.into()),
    }
}

/// `fd_write`
pub(crate) fn write(table: &mut Table, fd: u64, bytes: &[u8], out: &mut Out) -> Result {
    let count = match table.get(fd)? {
        Descriptor::Output(output) => output.lock().write(bytes).map_err(stdio_error)?,
        Descriptor::Pipe(end) => end.write(bytes)?,
        Descriptor::File(file) => file.write(bytes)?,
        Descriptor::Socket(socket) => socket::send_bytes(socket, bytes)?,
        Descriptor::Input(_) | Descriptor::Directory(_) => return Err(Errno::Badf.into()),
    };
    out.put_u32(count as u32);
    Ok(())
}

/// `fd_pwrite`
pub(crate) fn write_at(table: &mut Table, fd: u64, bytes: &[u8], offset: u64, out: &mut Out) -> Result {
    let count = match table.get(fd)? {
        Descriptor::File(file) if file.stream => return Err(Errno::Spipe.into()),
        Descriptor::File(file) => file.write_at(bytes, offset)?,
        Descriptor::Output(_) | Descriptor::Socket(_) | Descriptor::Pipe(_) => return Err(Errno::Spipe.into()),
        Descriptor::Input(_) | Descriptor::Directory(_) => return Err(Errno::Badf.into()),
    };
    out.put_u32(count as u32);
    Ok(())
}

/// Standard streams cannot be made non-blocking: the guest waits for what has not arrived yet.
fn stdio_error(error: std::io::Error) -> Stop {
    if error.kind() == std::io::ErrorKind::WouldBlock { would_block(false) } else { error.into() }
}

/// `fd_seek`
pub(crate) fn seek(table: &mut Table, fd: u64, offset: i64, whence: u64, out: &mut Out) -> Result {
    if whence > 2 {
        return Err(Errno::Inval.into());
    }
    let file = table.seekable(fd)?;
    let from = match whence {
        0 => 0,
        1 => file.position(),
        _ => file.size()?,
    };
    let position = from.checked_add_signed(offset).ok_or(Errno::Inval)?;
    file.set_position(position);
    out.put_u64(position);
    Ok(())
}

/// `fd_tell`
pub(crate) fn tell(table: &mut Table, fd: u64, out: &mut Out) -> Result {
    out.put_u64(table.seekable(fd)?.position());
    Ok(())
}

/// `fd_advise`
pub(crate) fn advise(table: &mut Table, fd: u64, offset: u64, length: u64, advice: u64) -> Result {
    let advice = match advice {
        0 => Advice::Normal,
        1 => Advice::Sequential,
        2 => Advice::Random,
        3 => Advice::WillNeed,
        4 => Advice::DontNeed,
        5 => Advice::NoReuse,
        _ => return Err(Errno::Inval.into()),
    };
    Ok(fadvise(&*table.file(fd)?.file, offset, std::num::NonZeroU64::new(length), advice)?)
}

/// `fd_allocate`: not supported, because not every file system can do it.
pub(crate) fn allocate(table: &mut Table, fd: u64) -> Result {
    table.file(fd)?.access.check_changes()?;
    Err(Errno::Notsup.into())
}

/// `fd_datasync`
pub(crate) fn datasync(table: &mut Table, fd: u64) -> Result {
    Ok(table.file(fd)?.file.sync_data()?)
}

/// `fd_sync`
pub(crate) fn sync(table: &mut Table, fd: u64) -> Result {
    Ok(table.file(fd)?.file.sync_all()?)
}

/// Locks the file, or takes its lock back. A lock that nobody else can have along with it is a change.
pub(crate) fn lock(table: &mut Table, fd: u64, lock: Lock, waits: bool, out: &mut Out) -> Result {
    let file = table.file(fd)?;
    let operation = match lock {
        Lock::None => FlockOperation::NonBlockingUnlock,
        Lock::Shared => FlockOperation::NonBlockingLockShared,
        Lock::Exclusive => {
            file.access.check_changes()?;
            FlockOperation::NonBlockingLockExclusive
        }
    };
    match flock(&*file.file, operation) {
        Err(Os::AGAIN) => return Err(would_block(!waits)),
        other => other?,
    }
    out.put_u32(0);
    Ok(())
}

/// Changes who may read and write a file on the host.
pub(crate) fn set_permissions(table: &mut Table, fd: u64, mode: u32, out: &mut Out) -> Result {
    let mode = Mode::from_raw_mode(mode);
    match table.get(fd)? {
        Descriptor::File(file) => {
            file.access.check_changes()?;
            fchmod(&*file.file, mode)?;
        }
        Descriptor::Directory(directory) => {
            directory.access.check_changes()?;
            fchmod(&*directory.dir, mode)?;
        }
        _ => return Err(Errno::Badf.into()),
    }
    out.put_u32(0);
    Ok(())
}

/// `fd_filestat_set_size`
pub(crate) fn set_size(table: &mut Table, fd: u64, size: u64) -> Result {
    let file = table.file(fd)?;
    file.access.check_changes()?;
    Ok(file.file.set_len(size)?)
}

/// What `*_filestat_set_times` sets a file's two times to.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    accessed: Time,
    modified: Time,
}

#[derive(Clone, Copy)]
enum Time {
    Keep,
    Now,
    At(u64),
}

impl Times {
    pub(crate) fn new(accessed: u64, modified: u64, word: u64) -> Result<Self> {
        let word = flags(word, 0b1111)?;
        let time = |set: bool, now: bool, at: u64| match (set, now) {
            (true, true) => Err(Errno::Inval),
            (true, false) => Ok(Time::At(at)),
            (false, true) => Ok(Time::Now),
            (false, false) => Ok(Time::Keep),
        };
        Ok(Self {
            accessed: time(word & 1 != 0, word & 2 != 0, accessed)?,
            modified: time(word & 4 != 0, word & 8 != 0, modified)?,
        })
    }

    /// Returns the times in the form that the system call takes.
    pub(crate) fn timestamps(self) -> Timestamps {
        let time = |time| match time {
            Time::Keep => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            Time::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
            Time::At(at) => Timespec { tv_sec: (at / 1_000_000_000) as i64, tv_nsec: (at % 1_000_000_000) as _ },
        };
        Timestamps { last_access: time(self.accessed), last_modification: time(self.modified) }
    }

    /// Returns the times in the form that cap-std takes.
    pub(crate) fn specs(self) -> (Option<SystemTimeSpec>, Option<SystemTimeSpec>) {
        let time = |time| match time {
            Time::Keep => None,
            Time::Now => Some(SystemTimeSpec::SymbolicNow),
            Time::At(at) => {
                let at = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_nanos(at);
                Some(SystemTimeSpec::Absolute(SystemTime::from_std(at)))
            }
        };
        (time(self.accessed), time(self.modified))
    }
}
