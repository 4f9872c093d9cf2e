//! The encoding of calls on the bus: argument words in, little-endian results out.
//!
//! Nothing here trusts a length from the guest: words are checked against the bytes that came with them, and a call
//! gets a buffer of at most [`MAX_TRANSFER`] bytes, however much it asks for.

use std::time::Instant;

use gpu_run_abi::hostcall::{Call, Move};

use crate::Errno;

/// The most bytes that one `fd_read` or `sock_recv` returns. A guest that asks for 4 GiB gets a short read, which WASI
/// allows.
pub(crate) const MAX_TRANSFER: usize = 1 << 20;

/// The output of a call: results first, in the row's order, then the output bytes.
///
/// Keep one and pass it to every call: its memory is reused, so that the usual calls allocate nothing.
#[derive(Debug, Default)]
pub struct Out {
    pub bytes: Vec<u8>,
    /// Length of the first of two answers ([`Move::Answer`]).
    pub split: u32,
}

/// Why a call did not simply succeed.
#[derive(Debug)]
pub(crate) enum Stop {
    Errno(Errno),
    Again(Option<Instant>),
    Exit(u32),
    Refused,
}

pub(crate) type Result<T = ()> = std::result::Result<T, Stop>;

impl<E: Into<Errno>> From<E> for Stop {
    fn from(error: E) -> Self {
        Stop::Errno(error.into())
    }
}

/// Returns how a call stops if its descriptor would block: with the errno `again`, or to be repeated.
pub(crate) fn would_block(nonblocking: bool) -> Stop {
    if nonblocking { Stop::Errno(Errno::Again) } else { Stop::Again(None) }
}

impl Out {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.split = 0;
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    pub(crate) fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    /// Lets `fill` write into a buffer of `room` bytes behind `results` bytes of results. The first four bytes of the
    /// results are set to how many bytes `fill` wrote.
    pub(crate) fn fill(
        &mut self,
        results: usize,
        room: u64,
        fill: impl FnOnce(&mut [u8]) -> Result<usize>,
    ) -> Result<()> {
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(MAX_TRANSFER);
        self.bytes.resize(results + room, 0);
        let filled = fill(&mut self.bytes[results..])?.min(room);
        self.bytes.truncate(results + filled);
        self.bytes[..4].copy_from_slice(&(filled as u32).to_le_bytes());
        Ok(())
    }
}

/// Returns a call's argument words, if their number is right.
pub(crate) fn exactly<const N: usize>(words: &[u64]) -> Result<[u64; N]> {
    words.try_into().map_err(|_| Errno::Inval.into())
}

/// Checks that the input is as long as the words say.
pub(crate) fn check_input(call: Call, words: &[u64], input: &[u8]) -> Result {
    let moves = call.function().moves.iter().filter(|m| m.has_word());
    let mut expected = 0u64;
    for (kind, &word) in moves.zip(words) {
        if matches!(kind, Move::Input { .. } | Move::Gather { .. }) {
            expected = expected.checked_add(word).ok_or(Errno::Inval)?;
        }
    }
    if expected == input.len() as u64 { Ok(()) } else { Err(Errno::Inval.into()) }
}

/// Returns a word of flags, or `inval` if it has unknown ones.
pub(crate) fn flags(word: u64, known: u64) -> Result<u64> {
    if word & !known == 0 { Ok(word) } else { Err(Errno::Inval.into()) }
}

/// `rights`: what may be done with a descriptor, as reported to the guest.
pub(crate) mod rights {
    pub(crate) const FD_DATASYNC: u64 = 1 << 0;
    pub(crate) const FD_READ: u64 = 1 << 1;
    pub(crate) const FD_SEEK: u64 = 1 << 2;
    pub(crate) const FD_FDSTAT_SET_FLAGS: u64 = 1 << 3;
    pub(crate) const FD_SYNC: u64 = 1 << 4;
    pub(crate) const FD_TELL: u64 = 1 << 5;
    pub(crate) const FD_WRITE: u64 = 1 << 6;
    pub(crate) const FD_ADVISE: u64 = 1 << 7;
    pub(crate) const FD_ALLOCATE: u64 = 1 << 8;
    pub(crate) const PATH_CREATE_DIRECTORY: u64 = 1 << 9;
    pub(crate) const PATH_CREATE_FILE: u64 = 1 << 10;
    pub(crate) const PATH_LINK_SOURCE: u64 = 1 << 11;
    pub(crate) const PATH_LINK_TARGET: u64 = 1 << 12;
    pub(crate) const PATH_OPEN: u64 = 1 << 13;
    pub(crate) const FD_READDIR: u64 = 1 << 14;
    pub(crate) const PATH_READLINK: u64 = 1 << 15;
    pub(crate) const PATH_RENAME_SOURCE: u64 = 1 << 16;
    pub(crate) const PATH_RENAME_TARGET: u64 = 1 << 17;
    pub(crate) const PATH_FILESTAT_GET: u64 = 1 << 18;
    pub(crate) const PATH_FILESTAT_SET_SIZE: u64 = 1 << 19;
    pub(crate) const PATH_FILESTAT_SET_TIMES: u64 = 1 << 20;
    pub(crate) const FD_FILESTAT_GET: u64 = 1 << 21;
    pub(crate) const FD_FILESTAT_SET_SIZE: u64 = 1 << 22;
    pub(crate) const FD_FILESTAT_SET_TIMES: u64 = 1 << 23;
    pub(crate) const PATH_SYMLINK: u64 = 1 << 24;
    pub(crate) const PATH_REMOVE_DIRECTORY: u64 = 1 << 25;
    pub(crate) const PATH_UNLINK_FILE: u64 = 1 << 26;
    pub(crate) const POLL_FD_READWRITE: u64 = 1 << 27;
    pub(crate) const SOCK_SHUTDOWN: u64 = 1 << 28;
    pub(crate) const SOCK_ACCEPT: u64 = 1 << 29;
    pub(crate) const ALL: u64 = (1 << 30) - 1;
}

pub(crate) mod fdflags {
    pub(crate) const APPEND: u64 = 1;
    pub(crate) const DSYNC: u64 = 2;
    pub(crate) const NONBLOCK: u64 = 4;
    pub(crate) const RSYNC: u64 = 8;
    pub(crate) const SYNC: u64 = 16;
    pub(crate) const ALL: u64 = 31;
}

/// `filetype`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Filetype {
    Unknown = 0,
    BlockDevice = 1,
    CharacterDevice = 2,
    Directory = 3,
    RegularFile = 4,
    SocketDgram = 5,
    SocketStream = 6,
    SymbolicLink = 7,
}

impl From<rustix::fs::FileType> for Filetype {
    fn from(kind: rustix::fs::FileType) -> Self {
        use rustix::fs::FileType as Os;
        match kind {
            Os::RegularFile => Self::RegularFile,
            Os::Directory => Self::Directory,
            Os::Symlink => Self::SymbolicLink,
            Os::CharacterDevice => Self::CharacterDevice,
            Os::BlockDevice => Self::BlockDevice,
            Os::Socket => Self::SocketStream,
            // Preview 1 has no name for a FIFO.
            Os::Fifo | Os::Unknown => Self::Unknown,
        }
    }
}

/// `fdstat`, 24 bytes.
pub(crate) fn put_fdstat(out: &mut Out, kind: Filetype, flags: u64, base: u64, inheriting: u64) {
    out.put(&[kind as u8, 0, flags as u8, 0, 0, 0, 0, 0]);
    out.put_u64(base);
    out.put_u64(inheriting);
}

/// `filestat`, 64 bytes. Times are nanoseconds since 1970.
pub(crate) struct Filestat {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) kind: Filetype,
    /// As on Unix. They lie in what is padding in WASI, for gpu-run's own std (`gpu_run_abi::extension`).
    pub(crate) permissions: u16,
    pub(crate) links: u64,
    pub(crate) size: u64,
    pub(crate) accessed: u64,
    pub(crate) modified: u64,
    pub(crate) changed: u64,
}

impl Filestat {
    /// Returns the stat of something that has only a type.
    pub(crate) fn only(kind: Filetype) -> Self {
        Self { dev: 0, ino: 0, kind, permissions: 0, links: 0, size: 0, accessed: 0, modified: 0, changed: 0 }
    }

    pub(crate) fn put(&self, out: &mut Out) {
        out.put_u64(self.dev);
        out.put_u64(self.ino);
        let [low, high] = self.permissions.to_le_bytes();
        out.put(&[self.kind as u8, 0, low, high, 0, 0, 0, 0]);
        for field in [self.links, self.size, self.accessed, self.modified, self.changed] {
            out.put_u64(field);
        }
    }
}

/// Returns a time in WASI's nanoseconds since 1970. Times before 1970 or after 2554 cannot be represented and are
/// clamped.
pub(crate) fn nanoseconds(seconds: i64, nanoseconds: i64) -> u64 {
    let total = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    total.clamp(0, i128::from(u64::MAX)) as u64
}
