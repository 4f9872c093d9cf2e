//! Where the guests' output goes: one [`Stream`] each for stdout and stderr, shared by all instances.
//!
//! *Ordered*, instance after instance: what the first unfinished instance writes goes straight out, what later ones write
//! waits. What waits is kept in memory up to [`MEMORY_LIMIT`], then in one temporary file, so a chatty instance
//! 63 costs disk, not memory. *Unordered*, whole lines as they come; a line longer than [`LINE_LIMIT`] may be cut.
//!
//! Only the guests' bytes are written, in the order each wrote them: a last line without a newline stays without.

use crate::failure::exit;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of waiting output kept in memory, of all instances together.
pub(crate) const MEMORY_LIMIT: usize = 64 << 20;
/// Bytes of an unfinished line kept for an instance when lines of several mix.
pub(crate) const LINE_LIMIT: usize = 64 << 10;

/// One of our standard streams, unbuffered. When nobody reads it any more the process ends, as SIGPIPE would end a native one:
/// there is no point in computing for a closed pipe, and no guest should print a panic about it.
#[derive(Debug)]
pub(crate) struct Standard(File);

impl Standard {
    pub(crate) fn stdout() -> io::Result<Self> {
        Ok(Self(io::stdout().as_fd().try_clone_to_owned()?.into()))
    }
    pub(crate) fn stderr() -> io::Result<Self> {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    ByInstance,
    AsItComes,
}

/// A standard stream that many instances write to.
#[derive(Clone)]
pub(crate) struct Stream(Arc<Mutex<State>>);

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stream")
    }
}

impl Stream {
    pub(crate) fn new(out: impl Write + Send + 'static, order: Order, instances: usize) -> Self {
        let mixer = match order {
            Order::ByInstance => Mixer::Ordered(Ordered::new(instances, MEMORY_LIMIT)),
            Order::AsItComes => Mixer::Unordered(vec![Vec::new(); instances]),
        };
        Self(Arc::new(Mutex::new(State { out: Box::new(out), mixer })))
    }

    /// The end that one instance writes to; to drop it is to say that the instance has ended.
    pub(crate) fn writer(&self, instance: usize) -> InstanceWriter {
        InstanceWriter { stream: self.clone(), instance }
    }

    /// Writes what still waits; for when all instances have ended, however they did.
    pub(crate) fn close(&self) -> io::Result<()> {
        let State { out, mixer } = &mut *self.lock();
        match mixer {
            Mixer::Ordered(ordered) => ordered.end_all(out),
            Mixer::Unordered(tails) => tails.iter_mut().try_for_each(|tail| out.write_all(&std::mem::take(tail))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves whole writes behind: what is there is still good.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One instance's end of a [`Stream`].
#[derive(Debug)]
pub(crate) struct InstanceWriter {
    stream: Stream,
    instance: usize,
}

impl InstanceWriter {
    /// Takes all of `bytes`.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let State { out, mixer } = &mut *self.stream.lock();
        match mixer {
            Mixer::Ordered(ordered) => ordered.write(out, self.instance, bytes),
            Mixer::Unordered(tails) => write_lines(out, &mut tails[self.instance], bytes),
        }
    }
}

impl Drop for InstanceWriter {
    fn drop(&mut self) {
        let State { out, mixer } = &mut *self.stream.lock();
        // An error here has nobody left to be told: the instance is gone.
        let _ = match mixer {
            Mixer::Ordered(ordered) => ordered.end(out, self.instance),
            Mixer::Unordered(tails) => out.write_all(&std::mem::take(&mut tails[self.instance])),
        };
    }
}

struct State {
    out: Box<dyn Write + Send>,
    mixer: Mixer,
}

enum Mixer {
    Ordered(Ordered),
    /// Each instance's unfinished line.
    Unordered(Vec<Vec<u8>>),
}

/// Writes whole lines at once and keeps the rest.
fn write_lines(out: &mut dyn Write, tail: &mut Vec<u8>, bytes: &[u8]) -> io::Result<()> {
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    if whole > 0 {
        // One write for the line's beginning and its end: another process may share the terminal.
        tail.extend_from_slice(&bytes[..whole]);
        out.write_all(&std::mem::take(tail))?;
    }
    tail.extend_from_slice(&bytes[whole..]);
    if tail.len() > LINE_LIMIT { out.write_all(&std::mem::take(tail)) } else { Ok(()) }
}

/// Output in instance order.
struct Ordered {
    /// The first instance that has not ended: it writes straight out.
    current: usize,
    waiting: Vec<Waiting>,
    /// Bytes in all `Waiting::memory`.
    in_memory: usize,
    memory_limit: usize,
    spill: Option<File>,
}

#[derive(Default)]
struct Waiting {
    /// Pieces of the spill file, (offset, length); older than `memory`.
    spilled: Vec<(u64, u64)>,
    memory: Vec<u8>,
    ended: bool,
}

impl Ordered {
    fn new(instances: usize, memory_limit: usize) -> Self {
        let waiting = std::iter::repeat_with(Waiting::default).take(instances).collect();
        Self { current: 0, waiting, in_memory: 0, memory_limit, spill: None }
    }

    fn write(&mut self, out: &mut dyn Write, instance: usize, bytes: &[u8]) -> io::Result<()> {
        if instance <= self.current {
            return out.write_all(bytes);
        }
        self.waiting[instance].memory.extend_from_slice(bytes);
        self.in_memory += bytes.len();
        if self.in_memory > self.memory_limit { self.spill() } else { Ok(()) }
    }

    fn end(&mut self, out: &mut dyn Write, instance: usize) -> io::Result<()> {
        self.waiting[instance].ended = true;
        while self.waiting.get(self.current).is_some_and(|w| w.ended) {
            self.current += 1;
            self.release(out, self.current)?;
        }
        Ok(())
    }

    fn end_all(&mut self, out: &mut dyn Write) -> io::Result<()> {
        (self.current..self.waiting.len()).try_for_each(|instance| self.end(out, instance))
    }

    /// Writes what an instance wrote while it had to wait.
    fn release(&mut self, out: &mut dyn Write, instance: usize) -> io::Result<()> {
        let Some(waiting) = self.waiting.get_mut(instance) else { return Ok(()) };
        if let Some(file) = &mut self.spill {
            for (offset, length) in std::mem::take(&mut waiting.spilled) {
                file.seek(SeekFrom::Start(offset))?;
                io::copy(&mut (&*file).take(length), out)?;
            }
        }
        let bytes = std::mem::take(&mut waiting.memory);
        self.in_memory -= bytes.len();
        out.write_all(&bytes)
    }

    /// Moves all that waits in memory to the end of the spill file, in one write.
    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.spill {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        let mut offset = file.seek(SeekFrom::End(0))?;
        let mut bytes = Vec::with_capacity(self.in_memory);
        for waiting in self.waiting.iter_mut().filter(|w| !w.memory.is_empty()) {
            let length = waiting.memory.len() as u64;
            waiting.spilled.push((offset, length));
            offset += length;
            bytes.append(&mut waiting.memory);
        }
        self.in_memory = 0;
        file.write_all(&bytes)
    }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
