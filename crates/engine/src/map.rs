//! Many records through one program: bytes in, bytes out.
//!
//! A [`Mapper`] keeps a loaded program's slots between batches, so that the next batch costs a launch and nothing
//! else. A [`Job`] is one instance: what it is given, and its stdin. A [`Done`] is what became of it, and what it wrote.
//!
//! What instances write is kept in memory until the batch is done, and memory ends somewhere: of stdout each may keep
//! [`SHARE`] bytes whatever the others do, and what goes beyond that comes out of one [`POOL`] for the batch. Whoever finds it
//! empty is told that the write failed, and its record says so: `cut`. Of stderr the last [`STDERR_KEPT`] bytes are kept.

use crate::batch::filled;
use crate::bus::{Guests, Quiet};
use crate::error::Error;
use crate::outbox::Outboxes;
use crate::program::{End, Program, RunStats};
use crate::wave::{Waves, stillborn};
use gpu_run_abi::launch::local;
use gpu_run_abi::layout::WORD;
use gpu_run_abi::{Launch, TrapCode};
use gpu_run_device::{Buffer, Device, Error as DeviceError};
use gpu_run_wasi::stdio::{Input, Output};
use gpu_run_wasi::{Builder, Context, Stdio};
use rayon::prelude::*;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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
    /// Arguments, environment, directories: the same for all jobs that share it.
    pub context: Arc<Builder>,
    /// What the instance finds in `GPU_RUN_INSTANCE`.
    pub number: u64,
    pub stdin: Arc<[u8]>,
}

/// The variable that tells an instance which it is.
const NUMBER: &str = "GPU_RUN_INSTANCE";

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
    outboxes: Arc<Outboxes>,
    /// Arguments and environment on the device, and whose they are.
    strings: Option<(Arc<Builder>, Strings)>,
    /// Stdin of all instances; grows.
    inputs: Buffer,
    pool: usize,
    /// The same with exact checks, for the instances that need them.
    exact: Option<Box<Mapper>>,
}

/// Instances that run again at once: few are expected.
const AGAIN: usize = 1024;

impl std::fmt::Debug for Mapper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapper").field("program", &self.program).field("capacity", &self.capacity()).finish()
    }
}

impl Mapper {
    /// Sets aside room for `capacity` instances at once, or for as many as the device has memory for. Each calls `_start`.
    pub fn new(program: Arc<Program>, capacity: usize, max_memory: Option<u64>) -> Result<Self, Error> {
        let capacity = capacity.max(1);
        let waves = match program.compiled().initial.trap {
            Some(_) => None,
            None => Some(fitting(capacity, |capacity| Waves::new(&program, capacity, max_memory, "_start", &[]))?),
        };
        let room = waves.as_ref().map_or(1, Waves::capacity) as u64;
        let outboxes = Arc::new(Outboxes::new(program.device(), room)?);
        let inputs = program.device().allocate(room * 2 * WORD)?;
        Ok(Self { program, waves, outboxes, strings: None, inputs, pool: POOL, exact: None })
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
        let Some(waves) = &self.waves else {
            stats.instances = jobs.len() as u64;
            let code = self.program.compiled().initial.trap;
            let end = code.map_or(End::Returned, |code| stillborn(code).end);
            done.resize(jobs.len(), Done { end, stdout: Vec::new(), stderr: Vec::new(), cut: false });
            return Ok((done, stats));
        };
        let pool = Arc::new(AtomicUsize::new(self.pool));
        let capacity = waves.capacity();
        for wave in jobs.chunks(capacity) {
            let local = self.local(wave)?;
            let quiet = Arc::new(Wave::new(wave.to_vec(), self.outboxes.clone(), pool.clone()));
            let Some(waves) = &mut self.waves else { break };
            let guests = Guests::Quiet(wave.len(), quiet.clone());
            let outcomes = waves.run(&self.program, guests, local, deadline, &mut stats)?;
            let began = Instant::now();
            let first = done.len();
            done.par_extend(outcomes.into_par_iter().enumerate().map(|(slot, outcome)| quiet.done(slot, outcome.end)));
            stats.setup += began.elapsed();
            self.again(wave, &quiet, &mut done[first..], deadline, &mut stats)?;
        }
        Ok((done, stats))
    }

    /// Runs those again, with exact checks, that quick ones ended: if nobody but the device heard of them, nothing of what they did is left.
    fn again(
        &mut self,
        wave: &[Job],
        quiet: &Wave,
        done: &mut [Done],
        deadline: Option<Instant>,
        stats: &mut RunStats,
    ) -> Result<(), Error> {
        let inexact = stillborn(TrapCode::Inexact).end;
        let ended = |slot: &usize| done[*slot].end == inexact && !quiet.called[*slot].load(Ordering::Relaxed);
        let slots: Vec<usize> = (0..done.len()).filter(ended).collect();
        if slots.is_empty() {
            return Ok(());
        }
        tracing::debug!(count = slots.len(), "run again with exact checks");
        let exact = match self.exact.take() {
            Some(exact) => exact,
            // It may have as much memory as here, so that it does the same.
            None => {
                let most = self.waves.as_ref().map(Waves::memory_limit);
                Box::new(Mapper::new(Arc::new(self.program.exact()?), AGAIN, most)?)
            }
        };
        let exact = self.exact.insert(exact);
        let jobs: Vec<_> = slots.iter().map(|slot| wave[*slot].clone()).collect();
        let (results, more) = exact.run(&jobs, deadline)?;
        stats.launches += more.launches;
        stats.hostcalls += more.hostcalls;
        stats.run += more.run;
        stats.again += jobs.len() as u64;
        for (slot, result) in slots.into_iter().zip(results) {
            done[slot] = result;
        }
        Ok(())
    }

    /// What the device needs to answer by itself.
    fn local(&mut self, wave: &[Job]) -> Result<Launch, Error> {
        let (outbox, outbox_bytes) = self.outboxes.place();
        let mut launch = Launch { outbox, outbox_bytes, local: local::STREAMS.iter().sum(), ..Launch::default() };
        launch.stdin = self.upload(wave)?;
        let mut key = [0; 16];
        if getrandom::fill(&mut key).is_ok() {
            launch.key = bytemuck::cast(key);
            launch.local |= local::RANDOM;
        }
        let Some(first) = wave.first() else { return Ok(launch) };
        let alike = |(job, number): (&Job, u64)| Arc::ptr_eq(&job.context, &first.context) && job.number == number;
        if wave.iter().zip(first.number..).all(alike) {
            if self.strings.as_ref().is_none_or(|(builder, _)| !Arc::ptr_eq(builder, &first.context)) {
                self.strings = Some((first.context.clone(), Strings::new(self.program.device(), &first.context)?));
            }
            if let Some((_, strings)) = &self.strings {
                launch.local |= local::STRINGS;
                launch.first = first.number;
                strings.describe(&mut launch);
            }
        }
        Ok(launch)
    }

    /// Puts the wave's stdin on the device: an address and a length for each, then the bytes.
    fn upload(&mut self, wave: &[Job]) -> Result<u64, Error> {
        let padded = |job: &Job| (job.stdin.len() as u64).next_multiple_of(WORD);
        let head = wave.len() as u64 * 2 * WORD;
        let total = head + wave.iter().map(padded).sum::<u64>();
        if self.inputs.len() < total {
            self.inputs = self.program.device().allocate(total.next_power_of_two())?;
        }
        let mut bytes = Vec::with_capacity(total as usize);
        let mut at = self.inputs.address() + head;
        for job in wave {
            bytes.extend_from_slice(&at.to_le_bytes());
            bytes.extend_from_slice(&(job.stdin.len() as u64).to_le_bytes());
            at += padded(job);
        }
        for job in wave {
            bytes.extend_from_slice(&job.stdin);
            bytes.resize(bytes.len().next_multiple_of(WORD as usize), 0);
        }
        self.inputs.write(0, &bytes)?;
        Ok(self.inputs.address())
    }
}

/// Arguments and environment in device memory.
struct Strings {
    buffer: Buffer,
    args: (u64, u64),
    env: (u64, u64),
    env_at: u64,
}

impl Strings {
    fn new(device: &dyn Device, builder: &Builder) -> Result<Self, Error> {
        let block = |(starts, bytes): (&[u32], &[u8])| {
            let starts = starts.iter().flat_map(|start| start.to_le_bytes());
            starts.chain(bytes.iter().copied()).collect::<Vec<u8>>()
        };
        let sizes = |(starts, bytes): (&[u32], &[u8])| (starts.len() as u64, bytes.len() as u64);
        // The number is the last variable: its value is not here.
        let (starts, bytes) = builder.env_strings();
        let starts = [starts, &[bytes.len() as u32]].concat();
        let bytes = [bytes, NUMBER.as_bytes(), b"="].concat();
        let env = (starts.as_slice(), bytes.as_slice());
        let mut all = block(builder.arg_strings());
        all.resize(all.len().next_multiple_of(WORD as usize), 0);
        let env_at = all.len() as u64;
        all.extend(block(env));
        Ok(Self { buffer: filled(device, &all)?, args: sizes(builder.arg_strings()), env: sizes(env), env_at })
    }

    fn describe(&self, launch: &mut Launch) {
        (launch.args_count, launch.args_bytes) = self.args;
        (launch.env_count, launch.env_bytes) = self.env;
        launch.args = self.buffer.address();
        launch.env = self.buffer.address() + self.env_at;
    }
}

/// The instances of a launch, as far as the host hears of them.
struct Wave {
    jobs: Vec<Job>,
    outboxes: Arc<Outboxes>,
    kept: Vec<OnceLock<Kept>>,
    /// Who has asked the host for something.
    called: Vec<AtomicBool>,
    pool: Arc<AtomicUsize>,
}

/// What is kept of an instance that wrote something, or called.
struct Kept {
    stdout: Stdout,
    stderr: Stderr,
    /// How much of its stdin it has read.
    taken: Arc<AtomicUsize>,
}

impl Wave {
    fn new(jobs: Vec<Job>, outboxes: Arc<Outboxes>, pool: Arc<AtomicUsize>) -> Self {
        let kept = jobs.iter().map(|_| OnceLock::new()).collect();
        let called = jobs.iter().map(|_| AtomicBool::new(false)).collect();
        Self { jobs, outboxes, kept, called, pool }
    }

    fn kept(&self, slot: usize) -> &Kept {
        self.kept[slot].get_or_init(|| Kept {
            stdout: Stdout { kept: Arc::default(), pool: self.pool.clone() },
            stderr: Stderr::default(),
            taken: Arc::default(),
        })
    }

    fn done(&self, slot: usize, end: End) -> Done {
        let Some(kept) = self.kept[slot].get() else {
            // Nothing was written but what is in the outbox, which is less than anyone's share.
            let mut done = Done { end, stdout: Vec::new(), stderr: Vec::new(), cut: false };
            self.outboxes.empty(slot as u64, |is_stderr, bytes| {
                let kept = if is_stderr { &mut done.stderr } else { &mut done.stdout };
                kept.extend_from_slice(bytes);
            });
            forget(&mut done.stderr);
            return done;
        };
        self.heard(slot as u32);
        let (stdout, cut) = kept.stdout.take();
        Done { end, stdout, stderr: kept.stderr.take(), cut }
    }
}

impl Quiet for Wave {
    fn heard(&self, slot: u32) {
        self.outboxes.empty(slot.into(), |is_stderr, bytes| {
            let kept = self.kept(slot as usize);
            // What does not fit is told by `cut`: the guest has gone on long ago.
            let _ = if is_stderr { kept.stderr.clone().write(bytes) } else { kept.stdout.clone().write(bytes) };
        });
        if let Some(kept) = self.kept[slot as usize].get() {
            let length = self.jobs[slot as usize].stdin.len();
            let left = (self.outboxes.stdin_left(slot.into()) as usize).min(length);
            kept.taken.store(length - left, Ordering::Relaxed);
        }
    }

    fn context(&self, slot: u32) -> Context {
        let (job, kept) = (&self.jobs[slot as usize], self.kept(slot as usize));
        self.called[slot as usize].store(true, Ordering::Relaxed);
        self.heard(slot);
        let stdin = Stdin { bytes: job.stdin.clone(), taken: kept.taken.clone() };
        let stdio = Stdio {
            stdin: Box::new(stdin),
            stdout: Box::new(kept.stdout.clone()),
            stderr: Box::new(kept.stderr.clone()),
        };
        let mut builder = (*job.context).clone();
        // A number has no NUL, the only thing a variable may not have.
        let _ = builder.env(NUMBER, job.number.to_string());
        builder.build(stdio)
    }
}

/// A job's stdin, from where the instance is.
struct Stdin {
    bytes: Arc<[u8]>,
    taken: Arc<AtomicUsize>,
}

impl Input for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let taken = self.taken.load(Ordering::Relaxed);
        let rest = &self.bytes[taken.min(self.bytes.len())..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.taken.store(taken + count, Ordering::Relaxed);
        Ok(count)
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
