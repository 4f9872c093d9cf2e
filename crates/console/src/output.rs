//! Where the guests' output goes: one [`Stream`] each for stdout and stderr, shared by all instances.
//!
//! *Ordered* output appears instance after instance: bytes of the first unfinished instance go straight out, and bytes
//! of later instances wait. Waiting bytes are kept in memory up to [`MEMORY_LIMIT`], then in a temporary file up to
//! `--max-spill`. When both are full, a write fails as on a full disk, and so does the run in the end. (An instance
//! cannot be made to wait for those before it: the host learns that an instance returned from `_start` only after all
//! instances have.) *Unordered* output appears in whole lines as they come; a line longer than [`LINE_LIMIT`] may be
//! split.
//!
//! Only the guests' bytes are written, in the order in which each guest wrote them: a last line without a newline stays
//! without. Nothing here blocks except [`Stream::close`]: bytes that a full pipe does not take are offered again at an
//! instance's next write.

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

/// Bytes of waiting output kept in memory, for all instances together.
pub const MEMORY_LIMIT: usize = 64 << 20;
/// Bytes of an unfinished line kept per instance in unordered output.
pub const LINE_LIMIT: usize = 64 << 10;
/// How many bytes of waiting output are read back from the spill file at once.
const PIECE: usize = 1 << 20;

/// A standard stream of the process, unbuffered. If nobody reads it any more, the process exits, as SIGPIPE would
/// terminate a native program: there is no point in computing for a closed pipe, and no guest should print a panic
/// about it.
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

/// Blocks until the reader takes the bytes: only for use when no instance runs.
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
    /// Makes a stream. Ordered output that does not fit in memory waits in `spill`.
    pub fn new(out: impl Output + 'static, order: Order, instances: usize, spill: Spill) -> Self {
        let mixer = match order {
            Order::ByInstance => Mixer::Ordered(Ordered::new(instances, MEMORY_LIMIT, spill)),
            Order::AsItComes => Mixer::Unordered(vec![Vec::new(); instances]),
        };
        Self(Arc::new(Mutex::new(State { out: Outgoing::new(Box::new(out)), mixer })))
    }

    /// Returns the end that one instance writes to. Dropping it means that the instance has finished.
    pub fn writer(&self, instance: usize) -> InstanceWriter {
        InstanceWriter { stream: self.clone(), instance }
    }

    /// Writes everything that still waits to `patient`, which may block until it takes all. Call it when all instances
    /// have finished. Returns an error if output was lost.
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
        // Writes are whole even after a panic elsewhere, so the state is still good.
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
            // Bytes written earlier must go out first.
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
    /// The unfinished line of each instance.
    Unordered(Vec<Vec<u8>>),
}

impl Mixer {
    /// Writes what can be written now. Returns whether everything that may go out did.
    fn advance(&mut self, out: &mut Outgoing) -> bool {
        match self {
            Self::Ordered(ordered) => ordered.advance(out),
            Self::Unordered(_) => out.flush(),
        }
    }
}

/// The stream's target, and the bytes that it has not taken yet.
struct Outgoing {
    to: Box<dyn Output>,
    bytes: VecDeque<u8>,
    /// The first error of a write that no instance waited for. Everything after it is dropped.
    failure: Option<io::Error>,
}

impl Outgoing {
    fn new(to: Box<dyn Output>) -> Self {
        Self { to, bytes: VecDeque::new(), failure: None }
    }

    /// Adds bytes of an instance that has finished, or that was told that they are written.
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Writes the waiting bytes. Returns whether none are left.
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

    /// Writes bytes of an instance that waits for the result. No other bytes wait.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.failure {
            Some(error) => Err(io::Error::from(error.kind())),
            None => self.to.write(bytes),
        }
    }
}

/// Writes whole lines and keeps the rest in `tail`.
fn write_lines(out: &mut Outgoing, tail: &mut Vec<u8>, bytes: &[u8]) -> io::Result<usize> {
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    if whole > 0 {
        // One write for the beginning and the end of a line: another process may share the terminal.
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
    /// The first unfinished instance: it writes straight out.
    current: usize,
    waiting: Vec<Waiting>,
    /// The total length of all `Waiting::memory`.
    in_memory: usize,
    memory_limit: usize,
    spill: Spill,
    /// Why there is no spill file.
    broken: Option<io::Error>,
}

#[derive(Default)]
struct Waiting {
    /// Pieces of the spill file as (offset, length); they are older than `memory`.
    spilled: VecDeque<(u64, u64)>,
    memory: Vec<u8>,
    /// Whether some of the instance's output could not be kept.
    refused: bool,
    ended: bool,
}

impl Ordered {
    fn new(instances: usize, memory_limit: usize, spill: Spill) -> Self {
        let waiting = std::iter::repeat_with(Waiting::default).take(instances).collect();
        Self { current: 0, waiting, in_memory: 0, memory_limit, spill, broken: None }
    }

    /// Takes as many bytes of a waiting instance as fit. Once an instance's bytes did not fit, none of its later ones
    /// are taken, so that its output has no gap.
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

    /// Returns an error that says for how many instances output was lost, and why.
    fn refused(&self) -> Option<io::Error> {
        let instances = self.waiting.iter().filter(|waiting| waiting.refused).count() as u64;
        let memory = show_size(self.memory_limit as u64);
        let why = match &self.broken {
            Some(error) => format!("it cannot be written to a temporary file: {error}"),
            None => format!("--max-spill allows no more than {} on disk", show_size(self.spill.limit())),
        };
        let hint = "raise --max-spill (the file is in TMPDIR), or write output as it comes with --unordered";
        (instances > 0).then(|| {
            io::Error::other(format!(
                "output that waited for its turn filled {memory} of memory, and {why}; the output of {} is incomplete\n  hint: {hint}",
                count(instances, "instance")
            ))
        })
    }

    /// Writes what may go out by now. Returns whether all of it did.
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

    /// Moves all waiting bytes from memory to the spill file. Returns whether they fit.
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
