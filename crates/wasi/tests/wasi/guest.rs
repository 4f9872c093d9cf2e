//! A guest without a program: makes calls, decodes what comes back.

use std::path::{Path, PathBuf};

use gpu_run_abi::hostcall::Call;
use gpu_run_wasi::stdio::{Buffer, Bytes, Input, Null};
use gpu_run_wasi::{Builder, Context, Errno, Out, Reply, Stdio};
use tempfile::TempDir;

pub(crate) const READ: u64 = 1 << 1;
pub(crate) const WRITE: u64 = 1 << 6;
pub(crate) const CREAT: u64 = 1;
pub(crate) const DIRECTORY: u64 = 2;
pub(crate) const EXCL: u64 = 4;
pub(crate) const TRUNC: u64 = 8;
pub(crate) const APPEND: u64 = 1;
pub(crate) const NONBLOCK: u64 = 4;
pub(crate) const FOLLOW: u64 = 1;
/// The descriptor of the first preopened directory.
pub(crate) const ROOT: u64 = 3;

pub(crate) struct Guest {
    pub(crate) context: Context,
    pub(crate) out: Out,
    pub(crate) stdout: Buffer,
    directory: TempDir,
}

impl Guest {
    /// With one preopened directory, `/`, that is empty.
    pub(crate) fn new() -> Self {
        Self::with(Null, |_| {})
    }

    pub(crate) fn reading(stdin: impl Input + 'static) -> Self {
        Self::with(stdin, |_| {})
    }

    pub(crate) fn with(stdin: impl Input + 'static, more: impl FnOnce(&mut Builder)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("root")).unwrap();
        let mut builder = Builder::new();
        builder.preopen(&directory.path().join("root"), "/").unwrap();
        more(&mut builder);
        let stdout = Buffer::new();
        let stdio = Stdio { stdin: Box::new(stdin), stdout: Box::new(stdout.clone()), stderr: Box::new(Null) };
        Self { context: builder.build(stdio), out: Out::default(), stdout, directory }
    }

    /// The host's path of something in the preopened directory.
    pub(crate) fn host(&self, path: &str) -> PathBuf {
        self.directory.path().join("root").join(path)
    }

    /// The directory that the preopened one is in: out of reach.
    pub(crate) fn outside(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn try_call(&mut self, call: Call, words: &[u64], input: &[u8]) -> Reply {
        self.context.call(call, words, input, &mut self.out)
    }

    pub(crate) fn call(&mut self, call: Call, words: &[u64], input: &[u8]) -> Result<&[u8], Errno> {
        match self.try_call(call, words, input) {
            Reply::Done(Errno::Success) => Ok(&self.out.bytes),
            Reply::Done(errno) => Err(errno),
            other => panic!("{call:?} is not done: {other:?}"),
        }
    }

    /// A call with one path.
    pub(crate) fn path(&mut self, call: Call, fd: u64, path: &str) -> Result<&[u8], Errno> {
        self.call(call, &[fd, path.len() as u64], path.as_bytes())
    }

    pub(crate) fn open(&mut self, path: &str, oflags: u64, rights: u64) -> Result<u64, Errno> {
        self.open_at(ROOT, path, FOLLOW, oflags, rights, 0)
    }

    pub(crate) fn open_at(
        &mut self,
        fd: u64,
        path: &str,
        dirflags: u64,
        oflags: u64,
        rights: u64,
        fdflags: u64,
    ) -> Result<u64, Errno> {
        let words = [fd, dirflags, path.len() as u64, oflags, rights, 0, fdflags];
        self.call(Call::path_open, &words, path.as_bytes()).map(|bytes| u64::from(u32_at(bytes, 0)))
    }

    /// A file with these contents, opened for reading and writing.
    pub(crate) fn file(&mut self, name: &str, contents: &str) -> u64 {
        std::fs::write(self.host(name), contents).unwrap();
        self.open(name, 0, READ | WRITE).unwrap()
    }

    pub(crate) fn read(&mut self, fd: u64, room: u64) -> Result<Vec<u8>, Errno> {
        self.call(Call::fd_read, &[fd, room], b"").map(counted)
    }

    pub(crate) fn pread(&mut self, fd: u64, room: u64, offset: u64) -> Result<Vec<u8>, Errno> {
        self.call(Call::fd_pread, &[fd, room, offset], b"").map(counted)
    }

    pub(crate) fn write(&mut self, fd: u64, bytes: &[u8]) -> Result<u32, Errno> {
        self.call(Call::fd_write, &[fd, bytes.len() as u64], bytes).map(|out| u32_at(out, 0))
    }

    pub(crate) fn pwrite(&mut self, fd: u64, bytes: &[u8], offset: u64) -> Result<u32, Errno> {
        self.call(Call::fd_pwrite, &[fd, bytes.len() as u64, offset], bytes).map(|out| u32_at(out, 0))
    }

    pub(crate) fn seek(&mut self, fd: u64, offset: i64, whence: u64) -> Result<u64, Errno> {
        self.call(Call::fd_seek, &[fd, offset as u64, whence], b"").map(|out| u64_at(out, 0))
    }

    pub(crate) fn tell(&mut self, fd: u64) -> Result<u64, Errno> {
        self.call(Call::fd_tell, &[fd], b"").map(|out| u64_at(out, 0))
    }

    pub(crate) fn close(&mut self, fd: u64) -> Result<(), Errno> {
        self.call(Call::fd_close, &[fd], b"").map(|_| ())
    }

    pub(crate) fn two_paths(&mut self, call: Call, from: (u64, &str), to: (u64, &str)) -> Result<(), Errno> {
        let input = [from.1, to.1].concat();
        let (old, new) = (from.1.len() as u64, to.1.len() as u64);
        let words: &[u64] = match call {
            Call::path_rename => &[from.0, old, to.0, new],
            Call::path_link => &[from.0, 0, old, to.0, new],
            Call::path_symlink => &[old, to.0, new],
            other => panic!("{other:?} has no two paths"),
        };
        self.call(call, words, input.as_bytes()).map(|_| ())
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        self.two_paths(Call::path_rename, (ROOT, from), (ROOT, to))
    }

    pub(crate) fn link(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        self.two_paths(Call::path_link, (ROOT, from), (ROOT, to))
    }

    pub(crate) fn symlink(&mut self, target: &str, name: &str) -> Result<(), Errno> {
        self.two_paths(Call::path_symlink, (ROOT, target), (ROOT, name))
    }

    pub(crate) fn readlink(&mut self, path: &str, room: u64) -> Result<Vec<u8>, Errno> {
        self.call(Call::path_readlink, &[ROOT, path.len() as u64, room], path.as_bytes()).map(counted)
    }

    pub(crate) fn filestat(&mut self, fd: u64) -> Result<Filestat, Errno> {
        self.call(Call::fd_filestat_get, &[fd], b"").map(Filestat::decode)
    }

    pub(crate) fn path_filestat(&mut self, path: &str, flags: u64) -> Result<Filestat, Errno> {
        let words = [ROOT, flags, path.len() as u64];
        self.call(Call::path_filestat_get, &words, path.as_bytes()).map(Filestat::decode)
    }

    pub(crate) fn fdstat(&mut self, fd: u64) -> Result<Fdstat, Errno> {
        self.call(Call::fd_fdstat_get, &[fd], b"").map(|out| {
            assert_eq!(out.len(), 24);
            Fdstat { kind: out[0], flags: out[2], base: u64_at(out, 8), inheriting: u64_at(out, 16) }
        })
    }
}

/// Output that begins with its own length.
fn counted(out: &[u8]) -> Vec<u8> {
    assert_eq!(u32_at(out, 0) as usize, out.len() - 4, "the count is that of the bytes");
    out[4..].to_vec()
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

pub(crate) fn stdin(bytes: &[u8]) -> Bytes {
    Bytes::from(bytes)
}

#[derive(Debug, PartialEq)]
pub(crate) struct Fdstat {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) base: u64,
    pub(crate) inheriting: u64,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Filestat {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) kind: u8,
    pub(crate) links: u64,
    pub(crate) size: u64,
    pub(crate) accessed: u64,
    pub(crate) modified: u64,
    pub(crate) changed: u64,
}

impl Filestat {
    fn decode(out: &[u8]) -> Self {
        assert_eq!(out.len(), 64);
        let word = |at| u64_at(out, at);
        Self {
            dev: word(0),
            ino: word(8),
            kind: out[16],
            links: word(24),
            size: word(32),
            accessed: word(40),
            modified: word(48),
            changed: word(56),
        }
    }
}
