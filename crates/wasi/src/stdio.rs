//! Standard input and output: anything that gives or takes bytes without blocking.
//!
//! An instance's first three descriptors are an [`Input`] and two [`Output`]s. [`inherit`] has those of the process
//! itself; a batch of instances gets a [`Buffer`] each, or [`Null`].
//!
//! If another process reads from the same pipe or terminal, it can take the bytes that `poll` announced. So a thread
//! reads the process's standard input ([`Pipe`]), one read at a time and only after an instance asked: bytes that no
//! instance asked for stay in the pipe for its next reader.

use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};

use crate::watch;

/// Where an instance's standard input comes from.
pub trait Input: Send {
    /// Reads what is available, at most `buffer`. `Ok(0)` is the end. [`io::ErrorKind::WouldBlock`] means that nothing
    /// has arrived yet; the call may have started a read, so a later call may find bytes.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;
    /// Whether [`Input::read`] would return bytes, the end or an error.
    fn ready(&mut self) -> bool {
        true
    }
    fn is_terminal(&self) -> bool {
        false
    }
}

/// Where an instance's standard output or error goes.
pub trait Output: Send {
    /// Writes as many of the bytes as it can without blocking. [`io::ErrorKind::WouldBlock`] means none for now.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Whether [`Output::write`] would write something or fail.
    fn ready(&mut self) -> bool {
        true
    }
    fn is_terminal(&self) -> bool {
        false
    }
}

/// An instance's three standard streams.
pub struct Stdio {
    pub stdin: Box<dyn Input>,
    pub stdout: Box<dyn Output>,
    pub stderr: Box<dyn Output>,
}

impl Stdio {
    /// Returns the process's own streams.
    pub fn inherit() -> Self {
        Self {
            stdin: Box::new(inherit::stdin()),
            stdout: Box::new(inherit::stdout()),
            stderr: Box::new(inherit::stderr()),
        }
    }

    /// Returns an input without bytes, and outputs that drop everything.
    pub fn null() -> Self {
        Self { stdin: Box::new(Null), stdout: Box::new(Null), stderr: Box::new(Null) }
    }
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio").finish_non_exhaustive()
    }
}

/// An input without bytes; an output that drops everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

impl Input for Null {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

impl Output for Null {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
}

/// Input from bytes in memory, which any number of instances can share.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    bytes: Arc<[u8]>,
    position: usize,
}

impl<T: Into<Arc<[u8]>>> From<T> for Bytes {
    fn from(bytes: T) -> Self {
        Self { bytes: bytes.into(), position: 0 }
    }
}

impl Input for Bytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.bytes[self.position..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.position += count;
        Ok(count)
    }
}

/// Output into memory. Clones share one buffer: give one to the instance and keep one.
#[derive(Clone, Debug, Default)]
pub struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns and clears what was written.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Output for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
}

/// Input from a descriptor that may block: a pipe, a terminal. Clones read from the same descriptor.
///
/// A thread, started by the first read that finds nothing, does one blocking read for each time that an instance wanted
/// bytes and there were none.
#[derive(Clone)]
pub struct Pipe(Arc<PipeEnd>);

struct PipeEnd {
    shared: Arc<PipeShared>,
    terminal: bool,
}

struct PipeShared {
    source: OwnedFd,
    state: Mutex<PipeState>,
    wake: Condvar,
}

#[derive(Default)]
struct PipeState {
    started: bool,
    wanted: bool,
    closed: bool,
    bytes: Vec<u8>,
    position: usize,
    /// Set once the source reached its end (`Some(None)`) or failed (`Some(Some(error))`).
    ended: Option<Option<rustix::io::Errno>>,
}

impl Pipe {
    pub fn new(source: impl Into<OwnedFd>) -> Self {
        let source = source.into();
        let terminal = source.is_terminal();
        let shared = PipeShared { source, state: Mutex::default(), wake: Condvar::new() };
        Self(Arc::new(PipeEnd { shared: Arc::new(shared), terminal }))
    }
}

impl Input for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let shared = &self.0.shared;
        let mut state = shared.state.lock();
        let rest = &state.bytes[state.position..];
        if !rest.is_empty() {
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            state.position += count;
            return Ok(count);
        }
        match state.ended {
            Some(None) => return Ok(0),
            Some(Some(error)) => return Err(error.into()),
            None => {}
        }
        state.wanted = true;
        if !state.started {
            state.started = true;
            let shared = shared.clone();
            std::thread::Builder::new().name("wasi-stdin".into()).spawn(move || shared.run())?;
        }
        shared.wake.notify_one();
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn ready(&mut self) -> bool {
        let shared = &self.0.shared;
        let state = shared.state.lock();
        if state.position < state.bytes.len() || state.ended.is_some() {
            return true;
        }
        // While the thread reads, it takes the bytes that the source has: they are not ready here yet.
        !state.wanted && is_ready(&shared.source, PollFlags::IN)
    }

    fn is_terminal(&self) -> bool {
        self.0.terminal
    }
}

impl PipeShared {
    fn run(&self) {
        const CHUNK: usize = 64 << 10;
        loop {
            let mut bytes = {
                let mut state = self.state.lock();
                while !state.wanted && !state.closed {
                    self.wake.wait(&mut state);
                }
                if state.closed {
                    return;
                }
                // The buffer is the thread's while it reads; an instance that reads meanwhile finds no bytes.
                state.position = 0;
                std::mem::take(&mut state.bytes)
            };
            bytes.resize(CHUNK, 0);
            // The lock is not held here: this is the only place that may block.
            let result = rustix::io::retry_on_intr(|| rustix::io::read(&self.source, &mut bytes[..]));
            let mut state = self.state.lock();
            state.wanted = false;
            state.position = 0;
            match result {
                Ok(0) => state.ended = Some(None),
                Ok(count) => {
                    bytes.truncate(count);
                    state.bytes = bytes;
                    drop(state);
                    watch::ring_all();
                    continue;
                }
                Err(rustix::io::Errno::AGAIN) => {
                    // Someone made the source non-blocking: wait until it has bytes, as if it were not.
                    state.wanted = true;
                    drop(state);
                    let _ = poll(&mut [PollFd::new(&self.source, PollFlags::IN)], None);
                    continue;
                }
                Err(error) => state.ended = Some(Some(error)),
            }
            drop(state);
            watch::ring_all();
            return;
        }
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.wake.notify_one();
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe").field("source", &self.0.shared.source).finish_non_exhaustive()
    }
}

/// The process's own streams.
pub mod inherit {
    use super::*;

    /// Returns the process's standard input: read directly if it is a regular file, otherwise through one shared
    /// [`Pipe`].
    pub fn stdin() -> impl Input {
        static STDIN: OnceLock<Option<Source>> = OnceLock::new();
        STDIN.get_or_init(|| Source::new(io::stdin().as_fd().try_clone_to_owned().ok()?)).clone()
    }

    /// Returns the process's standard output, unbuffered.
    pub fn stdout() -> impl Output {
        static STDOUT: OnceLock<Option<Sink>> = OnceLock::new();
        STDOUT.get_or_init(|| Sink::new(io::stdout().as_fd().try_clone_to_owned().ok()?)).clone()
    }

    /// Returns the process's standard error.
    pub fn stderr() -> impl Output {
        static STDERR: OnceLock<Option<Sink>> = OnceLock::new();
        STDERR.get_or_init(|| Sink::new(io::stderr().as_fd().try_clone_to_owned().ok()?)).clone()
    }

    #[derive(Clone)]
    enum Source {
        File(Arc<OwnedFd>),
        Pipe(Pipe),
    }

    impl Source {
        fn new(fd: OwnedFd) -> Option<Self> {
            Some(if is_regular(&fd) { Self::File(Arc::new(fd)) } else { Self::Pipe(Pipe::new(fd)) })
        }
    }

    /// `None` means that the process was started with this stream closed.
    impl Input for Option<Source> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self {
                None => Ok(0),
                Some(Source::File(file)) => Ok(rustix::io::read(&**file, buffer)?),
                Some(Source::Pipe(pipe)) => pipe.read(buffer),
            }
        }
        fn ready(&mut self) -> bool {
            match self {
                Some(Source::Pipe(pipe)) => pipe.ready(),
                _ => true,
            }
        }
        fn is_terminal(&self) -> bool {
            matches!(self, Some(Source::Pipe(pipe)) if pipe.is_terminal())
        }
    }
}

/// A descriptor of the process to write to. Other processes share its open file description, so its flags are left
/// alone.
#[derive(Clone)]
struct Sink {
    /// Locked from the `poll` to the write, so that no other instance fills the pipe in between.
    fd: Arc<Mutex<OwnedFd>>,
    regular: bool,
    terminal: bool,
}

impl Sink {
    fn new(fd: OwnedFd) -> Option<Self> {
        Some(Self { regular: is_regular(&fd), terminal: fd.is_terminal(), fd: Arc::new(Mutex::new(fd)) })
    }
}

impl Output for Option<Sink> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// A pipe that `poll` reports as writable takes this many bytes (POSIX's `PIPE_BUF`) without blocking.
        const ROOM: usize = 4096;
        let Some(sink) = self else { return Ok(bytes.len()) };
        let fd = sink.fd.lock();
        if sink.regular {
            return Ok(rustix::io::write(&*fd, bytes)?);
        }
        if !is_ready(&*fd, PollFlags::OUT) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(rustix::io::write(&*fd, &bytes[..bytes.len().min(ROOM)])?)
    }
    fn ready(&mut self) -> bool {
        self.as_ref().is_none_or(|sink| sink.regular || is_ready(&*sink.fd.lock(), PollFlags::OUT))
    }
    fn is_terminal(&self) -> bool {
        self.as_ref().is_some_and(|sink| sink.terminal)
    }
}

fn is_regular(fd: &OwnedFd) -> bool {
    fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

/// Whether an operation would not block now. A descriptor that cannot be polled does not block.
pub(crate) fn is_ready(fd: impl AsFd, flags: PollFlags) -> bool {
    let mut fds = [PollFd::new(&fd, flags)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::io::retry_on_intr(|| poll(&mut fds, Some(&now))).map_or(true, |count| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_full_pipe_takes_nothing_and_does_not_block() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let mut sink = Sink::new(writer.into());
        let mut written = 0;
        let error = loop {
            match sink.write(&[7; 10_000]) {
                Ok(count) => written += count,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(!sink.ready());
        reader.read_exact(&mut vec![0; written]).expect("what was written");
        assert!(sink.ready());
        assert_eq!(sink.write(b"more").ok(), Some(4));
        drop(reader);
        assert_eq!(sink.write(b"lost").map_err(|error| error.kind()), Err(io::ErrorKind::BrokenPipe));
    }
}
