//! Many records through one program: bytes in, bytes out.
//!
//! A [`Mapper`] keeps a loaded program's slots between batches, so that the next batch costs a launch and nothing
//! else. A [`Job`] is one instance: what it is given, and its stdin. A [`Done`] is what became of it, and what it wrote.
//!
//! What instances write is kept in memory until the batch is done, and memory ends somewhere: of stdout each may keep
//! [`SHARE`] bytes whatever the others do, and what goes beyond that comes out of one [`POOL`] for the batch. Whoever finds it
//! empty is told that the write failed, and its record says so: `cut`. Of stderr the last [`STDERR_KEPT`] bytes are kept.

use crate::error::Error;
use crate::program::{End, Program, RunStats};
use crate::wave::{Waves, stillborn};
use gpu_run_device::Error as DeviceError;
use gpu_run_wasi::stdio::{Bytes, Output};
use gpu_run_wasi::{Builder, Context, Stdio};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Bytes of stdout that every instance may write.
const SHARE: usize = 16 << 10;
/// Bytes of stdout beyond the shares, of all instances of a batch together.
pub const POOL: usize = 1 << 30;
/// Bytes of stderr kept, the last ones: a panic's message comes last.
const STDERR_KEPT: usize = 4 << 10;

/// One instance to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Arguments, environment, directories.
    pub context: Builder,
    pub stdin: Arc<[u8]>,
}

/// What became of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    pub end: End,
    pub stdout: Vec<u8>,
    /// The end of it, if it is long.
    pub stderr: Vec<u8>,
    /// Whether a write to stdout was refused because there was too much of it.
    pub cut: bool,
}

/// A loaded program, and room for a number of instances of it.
pub struct Mapper {
    program: Arc<Program>,
    /// `None`: the module's segments do not fit, and no instance ever begins.
    waves: Option<Waves>,
    pool: usize,
}

impl std::fmt::Debug for Mapper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapper").field("program", &self.program).field("capacity", &self.capacity()).finish()
    }
}

impl Mapper {
    /// Sets aside room for `capacity` instances at once, or for as many as the device has memory for. Each calls `_start`.
    pub fn new(program: Arc<Program>, capacity: usize, max_memory: Option<u64>) -> Result<Self, Error> {
        // A power of two: for other numbers the bus counts less memory than its ports, rounded to lines, take.
        let capacity = capacity.max(1).next_power_of_two();
        let waves = match program.compiled().initial.trap {
            Some(_) => None,
            None => Some(fitting(capacity, |capacity| Waves::new(&program, capacity, max_memory, "_start", &[]))?),
        };
        Ok(Self { program, waves, pool: POOL })
    }

    /// How many instances run at once. A batch may have more: they go one launch after the other.
    pub fn capacity(&self) -> usize {
        self.waves.as_ref().map_or(usize::MAX, Waves::capacity)
    }

    /// Runs one instance for each job and says what became of each, in order. What still runs at the deadline is ended. After
    /// an error nothing is known of any of them.
    pub fn run(&mut self, jobs: &[Job], deadline: Option<Instant>) -> Result<(Vec<Done>, RunStats), Error> {
        let mut stats = RunStats::default();
        let mut done = Vec::with_capacity(jobs.len());
        let Some(waves) = &mut self.waves else {
            stats.instances = jobs.len() as u64;
            let code = self.program.compiled().initial.trap;
            let end = code.map_or(End::Returned, |code| stillborn(code).end);
            done.resize(jobs.len(), Done { end, stdout: Vec::new(), stderr: Vec::new(), cut: false });
            return Ok((done, stats));
        };
        let pool = Arc::new(AtomicUsize::new(self.pool));
        for wave in jobs.chunks(waves.capacity()) {
            let (contexts, kept): (Vec<_>, Vec<_>) = wave.iter().map(|job| context(job, &pool)).unzip();
            let outcomes = waves.run(&self.program, contexts, deadline, &mut stats)?;
            done.extend(outcomes.into_iter().zip(kept).map(|(outcome, (stdout, stderr))| {
                let (stdout, cut) = stdout.take();
                Done { end: outcome.end, stdout, stderr: stderr.take(), cut }
            }));
        }
        Ok((done, stats))
    }
}

/// Makes it with half as much room, and half of that, until the device has the memory.
fn fitting<T>(capacity: usize, mut make: impl FnMut(usize) -> Result<T, Error>) -> Result<T, Error> {
    let mut room = capacity;
    loop {
        match make(room) {
            Err(Error::Device(DeviceError::OutOfMemory { .. })) if room > 1 => room = room.div_ceil(2),
            made => {
                if room < capacity {
                    tracing::info!(capacity, room, "the device has memory for fewer instances at once");
                }
                return made;
            }
        }
    }
}

/// An instance's view of the host, and what is kept of what it writes.
fn context(job: &Job, pool: &Arc<AtomicUsize>) -> (Context, (Stdout, Stderr)) {
    let stdout = Stdout { kept: Arc::default(), pool: pool.clone() };
    let stderr = Stderr::default();
    let stdio = Stdio {
        stdin: Box::new(Bytes::from(job.stdin.clone())),
        stdout: Box::new(stdout.clone()),
        stderr: Box::new(stderr.clone()),
    };
    (job.context.build(stdio), (stdout, stderr))
}

/// All that an instance writes, as far as there is room. Clones are the same.
#[derive(Clone, Debug)]
struct Stdout {
    /// The bytes, and whether some were refused.
    kept: Arc<Mutex<(Vec<u8>, bool)>>,
    pool: Arc<AtomicUsize>,
}

impl Stdout {
    fn take(&self) -> (Vec<u8>, bool) {
        std::mem::take(&mut *held(&self.kept))
    }
}

impl Output for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (kept, cut) = &mut *held(&self.kept);
        let beyond = |length: usize| length.saturating_sub(SHARE);
        let wanted = beyond(kept.len() + bytes.len()) - beyond(kept.len());
        let take = |left: usize| left.checked_sub(wanted);
        if wanted > 0 && self.pool.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            *cut = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }
}

/// The end of what an instance writes. Clones are the same.
#[derive(Clone, Debug, Default)]
struct Stderr(Arc<Mutex<Vec<u8>>>);

impl Stderr {
    fn take(&self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut *held(&self.0));
        forget(&mut bytes);
        bytes
    }
}

impl Output for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = held(&self.0);
        kept.extend_from_slice(&bytes[bytes.len().saturating_sub(STDERR_KEPT)..]);
        // Not at every write: moving what is kept costs more than keeping twice as much.
        if kept.len() > 2 * STDERR_KEPT {
            forget(&mut kept);
        }
        Ok(bytes.len())
    }
}

fn forget(bytes: &mut Vec<u8>) {
    bytes.drain(..bytes.len().saturating_sub(STDERR_KEPT));
}

/// A panic elsewhere leaves whole writes behind: what is there is still good.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;
