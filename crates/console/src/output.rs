//! Where the guests' output goes: one [`Stream`] each for stdout and stderr, shared by all instances.
//!
//! *Ordered*, instance after instance: what the first unfinished instance writes goes straight out, what later ones write
//! waits. What waits is kept in memory up to [`MEMORY_LIMIT`], then in a temporary file, up to `--max-spill`. Where there is no room left, a write fails as
//! on a full disk, and so does the run, in the end. (An instance cannot be made to wait for those before it: of one that returns from `_start` nothing is
//! heard until all have ended.) *Unordered*, whole lines as they come; a line longer than [`LINE_LIMIT`] may be cut.
//!
//! Only the guests' bytes are written, in the order each wrote them: a last line without a newline stays without. Nothing here blocks, but for
//! [`Stream::close`]: what a full pipe does not take is offered to it again when an instance next writes.

use crate::failure::exit;
use crate::spill::Spill;
use crate::units::{count, show_size};
use gpu_run_wasi::stdio::Output;
use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

/// Bytes of waiting output kept in memory, of all instances together.
pub const MEMORY_LIMIT: usize = 64 << 20;
/// Bytes of an unfinished line kept for an instance when lines of several mix.
pub const LINE_LIMIT: usize = 64 << 10;
/// Bytes that are read back at once from where they wait.
const PIECE: usize = 1 << 20;

/// One of our standard streams, unbuffered. When nobody reads it any more the process ends, as SIGPIPE would end a native one:
/// there is no point in computing for a closed pipe, and no guest should print a panic about it.
#[derive(Debug)]
pub struct Standard(File);

impl Standard {
    pub fn stdout() -> io::Result<Self> {
        Ok(Self(io::stdout().as_fd().try_clone_to_owned()?.into()))
    }
    pub fn stderr() -> io::Result<Self> {
        Ok(Self(io::stderr().as_fd().try_clone_to_owned()?.into()))
    }
}

impl Write for Standard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(exit::BROKEN_PIPE.into()),
            result => result,
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits for whoever reads it; only for when no instance runs.
impl Output for Standard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    ByInstance,
    AsItComes,
}

/// A standard stream that many instances write to.
#[derive(Clone)]
pub struct Stream(Arc<Mutex<State>>);

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stream")
    }
}

impl Stream {
    /// `spill` is where ordered output waits that memory has no room for.
    pub fn new(out: impl Output + 'static, order: Order, instances: usize, spill: Spill) -> Self {
        let mixer = match order {
            Order::ByInstance => Mixer::Ordered(Ordered::new(instances, MEMORY_LIMIT, spill)),
            Order::AsItComes => Mixer::Unordered(vec![Vec::new(); instances]),
        };
        Self(Arc::new(Mutex::new(State { out: Outgoing::new(Box::new(out)), mixer })))
    }

    /// The end that one instance writes to; to drop it is to say that the instance has ended.
    pub fn writer(&self, instance: usize) -> InstanceWriter {
        InstanceWriter { stream: self.clone(), instance }
    }

    /// Writes what still waits, to a far end that takes all, however long that takes; for when all instances have ended. Also tells of output that
    /// was lost.
    pub fn close(&self, patient: impl Output + 'static) -> io::Result<()> {
        let State { out, mixer } = &mut *self.lock();
        out.to = Box::new(patient);
        match mixer {
            Mixer::Ordered(ordered) => ordered.waiting.iter_mut().for_each(|waiting| waiting.ended = true),
            Mixer::Unordered(tails) => tails.iter_mut().for_each(|tail| out.push(&std::mem::take(tail))),
        }
        mixer.advance(out);
        let refused = match mixer {
            Mixer::Ordered(ordered) => ordered.refused(),
            Mixer::Unordered(_) => None,
        };
        out.failure.take().or(refused).map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves whole writes behind: what is there is still good.
        self.0.lock()
    }
}

/// One instance's end of a [`Stream`].
#[derive(Debug)]
pub struct InstanceWriter {
    stream: Stream,
    instance: usize,
}

impl Output for InstanceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let State { out, mixer } = &mut *self.stream.lock();
        let is_out = mixer.advance(out);
        match mixer {
            Mixer::Ordered(ordered) if self.instance > ordered.current => ordered.keep(self.instance, bytes),
            // What came before it must go first.
            _ if !is_out => Err(io::ErrorKind::WouldBlock.into()),
            Mixer::Ordered(_) => out.write(bytes),
            Mixer::Unordered(tails) => write_lines(out, &mut tails[self.instance], bytes),
        }
    }

    fn ready(&mut self) -> bool {
        let State { out, mixer } = &mut *self.stream.lock();
        let is_out = mixer.advance(out);
        match mixer {
            Mixer::Ordered(ordered) if self.instance > ordered.current => true,
            _ => is_out && out.to.ready(),
        }
    }
}

impl Drop for InstanceWriter {
    fn drop(&mut self) {
        let State { out, mixer } = &mut *self.stream.lock();
        match mixer {
            Mixer::Ordered(ordered) => ordered.waiting[self.instance].ended = true,
            Mixer::Unordered(tails) => out.push(&std::mem::take(&mut tails[self.instance])),
        }
        mixer.advance(out);
    }
}

struct State {
    out: Outgoing,
    mixer: Mixer,
}

enum Mixer {
    Ordered(Ordered),
    /// Each instance's unfinished line.
    Unordered(Vec<Vec<u8>>),
}

impl Mixer {
    /// Writes what can be written now. Says whether all went out that was to.
    fn advance(&mut self, out: &mut Outgoing) -> bool {
        match self {
            Self::Ordered(ordered) => ordered.advance(out),
            Self::Unordered(_) => out.flush(),
        }
    }
}

/// The far end, and what it has not taken yet.
struct Outgoing {
    to: Box<dyn Output>,
    bytes: VecDeque<u8>,
    /// The first write that failed with nobody to be told. What comes after it is dropped.
    failure: Option<io::Error>,
}

impl Outgoing {
    fn new(to: Box<dyn Output>) -> Self {
        Self { to, bytes: VecDeque::new(), failure: None }
    }

    /// For bytes of instances that are no longer there, or have been told that they are written.
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Says whether nothing is left.
    fn flush(&mut self) -> bool {
        while !self.bytes.is_empty() && self.failure.is_none() {
            match self.to.write(self.bytes.as_slices().0) {
                Ok(count) => drop(self.bytes.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) => self.failure = Some(error),
            }
        }
        self.bytes.clear();
        true
    }

    /// For an instance that is there to be told. Nothing else waits.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.failure {
            Some(error) => Err(io::Error::from(error.kind())),
            None => self.to.write(bytes),
        }
    }
}

/// Writes whole lines at once and keeps the rest.
fn write_lines(out: &mut Outgoing, tail: &mut Vec<u8>, bytes: &[u8]) -> io::Result<usize> {
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    if whole > 0 {
        // One write for the line's beginning and its end: another process may share the terminal.
        tail.extend_from_slice(&bytes[..whole]);
        out.push(&std::mem::take(tail));
    }
    tail.extend_from_slice(&bytes[whole..]);
    if tail.len() > LINE_LIMIT {
        out.push(&std::mem::take(tail));
    }
    out.flush();
    match &out.failure {
        Some(error) => Err(io::Error::from(error.kind())),
        None => Ok(bytes.len()),
    }
}

/// Output in instance order.
struct Ordered {
    /// The first instance that has not ended: it writes straight out.
    current: usize,
    waiting: Vec<Waiting>,
    /// Bytes in all `Waiting::memory`.
    in_memory: usize,
    memory_limit: usize,
    spill: Spill,
    /// Why there is no spill file.
    broken: Option<io::Error>,
}

#[derive(Default)]
struct Waiting {
    /// Pieces of the spill file, (offset, length); older than `memory`.
    spilled: VecDeque<(u64, u64)>,
    memory: Vec<u8>,
    /// Whether something it wrote could not be kept.
    refused: bool,
    ended: bool,
}

impl Ordered {
    fn new(instances: usize, memory_limit: usize, spill: Spill) -> Self {
        let waiting = std::iter::repeat_with(Waiting::default).take(instances).collect();
        Self { current: 0, waiting, in_memory: 0, memory_limit, spill, broken: None }
    }

    /// Takes bytes of an instance that has to wait, as far as there is room. Once there was none, it gets none any more: what it wrote has no gap.
    fn keep(&mut self, instance: usize, bytes: &[u8]) -> io::Result<usize> {
        if self.waiting[instance].refused || !self.has_room() {
            self.waiting[instance].refused = true;
            return Err(Errno::NOSPC.into());
        }
        let taken = bytes.len().min(self.memory_limit - self.in_memory);
        self.waiting[instance].memory.extend_from_slice(&bytes[..taken]);
        self.in_memory += taken;
        Ok(taken)
    }

    fn has_room(&mut self) -> bool {
        if self.in_memory < self.memory_limit {
            return true;
        }
        let spilled = self.spill();
        if let Err(error) = spilled {
            self.broken = Some(error);
            return false;
        }
        matches!(spilled, Ok(true))
    }

    /// Says for how many instances there was no room, and why.
    fn refused(&self) -> Option<io::Error> {
        let instances = self.waiting.iter().filter(|waiting| waiting.refused).count() as u64;
        let memory = show_size(self.memory_limit as u64);
        let why = match &self.broken {
            Some(error) => format!("no temporary file takes it: {error}"),
            None => format!("--max-spill lets {} wait on disk", show_size(self.spill.limit())),
        };
        let hint = "--max-spill SIZE lets more wait, in TMPDIR; with --unordered none has to";
        (instances > 0).then(|| {
            io::Error::other(format!(
                "output that waited for its turn filled {memory} of memory, and {why}; that of {} is not complete\n  hint: {hint}",
                count(instances, "instance")
            ))
        })
    }

    /// Writes what may go out by now. Says whether all of it did.
    fn advance(&mut self, out: &mut Outgoing) -> bool {
        while out.flush() {
            let Some(waiting) = self.waiting.get_mut(self.current) else { return true };
            if let Some((offset, length)) = waiting.spilled.pop_front() {
                let count = length.min(PIECE as u64);
                if length > count {
                    waiting.spilled.push_front((offset + count, length - count));
                }
                match self.spill.take(offset, count as usize) {
                    Ok(bytes) => out.push(&bytes),
                    Err(error) => out.failure = out.failure.take().or(Some(error)),
                }
            } else if !waiting.memory.is_empty() {
                let bytes = std::mem::take(&mut waiting.memory);
                self.in_memory -= bytes.len();
                out.bytes = bytes.into();
            } else if waiting.ended {
                self.current += 1;
            } else {
                return true;
            }
        }
        false
    }

    /// Moves all that waits in memory to the spill file. Says whether there was room for it.
    fn spill(&mut self) -> io::Result<bool> {
        if !self.spill.has_room(self.in_memory) {
            return Ok(false);
        }
        let mut bytes = Vec::with_capacity(self.in_memory);
        self.waiting.iter().for_each(|waiting| bytes.extend_from_slice(&waiting.memory));
        let Some(mut offset) = self.spill.keep(&bytes)? else { return Ok(false) };
        for waiting in self.waiting.iter_mut().filter(|w| !w.memory.is_empty()) {
            let length = std::mem::take(&mut waiting.memory).len() as u64;
            waiting.spilled.push_back((offset, length));
            offset += length;
        }
        self.in_memory = 0;
        Ok(true)
    }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
