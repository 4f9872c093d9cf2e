//! The instances of a launch, as far as the host hears of them: what they write, and what they see of the host if they ask.
//!
//! What instances write is kept in memory until the batch is done, and memory ends somewhere: of stdout each may keep
//! [`SHARE`] bytes whatever the others do, and what goes beyond that comes out of one [`POOL`] for the batch. Whoever finds it
//! empty is told that the write failed, and its record says so: `cut`. Of stderr the last [`STDERR_KEPT`] bytes are kept.
//!
//! Most instances write little and never ask: for those nothing is made here, what they wrote is read from their outbox at the end.

use crate::batch::Endings;
use crate::bus::Quiet;
use crate::compile::Compiled;
use crate::error::Error;
use crate::map::{Job, NUMBER};
use crate::outbox::{Outboxes, Record};
use crate::program::End;
use crate::results::Piece;
use crate::wave::stillborn;
use gpu_run_abi::{Status, TrapCode};
use gpu_run_wasi::stdio::{Input, Output};
use gpu_run_wasi::{Context, Stdio};
use rayon::prelude::*;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of stdout that every instance may write.
pub(crate) const SHARE: usize = 16 << 10;
/// Bytes of stdout beyond the shares, of all instances of a batch together.
pub const POOL: usize = 1 << 30;
/// Bytes of stderr kept, the last ones: a panic's message comes last.
pub(crate) const STDERR_KEPT: usize = 4 << 10;
/// Instances whose results one core reads at a time.
const CHUNK: usize = 1024;

/// The instances of a launch.
pub(crate) struct Wave {
    /// Those of the whole batch, and which of them these are.
    jobs: Arc<Vec<Job>>,
    range: Range<usize>,
    outboxes: Arc<Outboxes>,
    /// By slot, like everything that follows.
    kept: Vec<OnceLock<Box<Kept>>>,
    /// Who has asked the host for something.
    called: Vec<AtomicBool>,
    pool: Arc<AtomicUsize>,
}

/// Instances that are to run again, by slot.
#[derive(Debug, Default)]
pub(crate) struct Again {
    /// With exact checks: they trapped, or quick ones could not be sure, or they were asked to end.
    pub(crate) exact: Vec<usize>,
    /// With more memory than a thread has to itself.
    pub(crate) roomy: Vec<usize>,
}

/// What is kept of an instance that asked for something, or wrote more than its outbox holds.
struct Kept {
    stdout: Stdout,
    stderr: Stderr,
    /// How much of its stdin it has read.
    taken: Arc<AtomicUsize>,
}

impl Wave {
    pub(crate) fn new(
        jobs: Arc<Vec<Job>>,
        range: Range<usize>,
        outboxes: Arc<Outboxes>,
        pool: Arc<AtomicUsize>,
    ) -> Self {
        let kept = range.clone().map(|_| OnceLock::new()).collect();
        let called = range.clone().map(|_| AtomicBool::new(false)).collect();
        Self { jobs, range, outboxes, kept, called, pool }
    }

    pub(crate) fn jobs(&self) -> &[Job] {
        &self.jobs[self.range.clone()]
    }

    /// What became of them all, and those that their build could not finish: if nobody but the device heard of one, nothing of what it did is left,
    /// and it may run again. `stopped`: those that still ran were asked to end.
    pub(crate) fn results(
        &self,
        compiled: &Compiled,
        endings: &Endings<'_>,
        stopped: bool,
    ) -> Result<(Vec<Piece>, Again), Error> {
        let count = self.range.len();
        let chunks = (0..count.div_ceil(CHUNK)).into_par_iter();
        let pieces: Vec<_> = chunks
            .map(|chunk| self.piece(compiled, endings, stopped, chunk * CHUNK..count.min((chunk + 1) * CHUNK)))
            .collect::<Result<_, _>>()?;
        let (pieces, parts): (Vec<_>, Vec<Again>) = pieces.into_iter().unzip();
        let mut again = Again::default();
        for part in parts {
            again.exact.extend(part.exact);
            again.roomy.extend(part.roomy);
        }
        Ok((pieces, again))
    }

    fn piece(
        &self,
        compiled: &Compiled,
        endings: &Endings<'_>,
        stopped: bool,
        slots: Range<usize>,
    ) -> Result<(Piece, Again), Error> {
        let (mut piece, mut again, mut outbox) = (Piece::with_capacity(slots.len()), Again::default(), Vec::new());
        for slot in slots {
            let ending = endings.get(slot);
            let mut end = compiled.end(slot, &ending)?;
            if matches!(&end, End::Trapped(trap) if trap.code == TrapCode::Inexact) {
                match self.called[slot].load(Ordering::Relaxed) {
                    false if ending.status == Status::Outgrown as u64 => again.roomy.push(slot),
                    false => again.exact.push(slot),
                    // Who was asked to end did.
                    true if stopped => end = stillborn(TrapCode::Interrupted),
                    true => {}
                }
            }
            let Some(kept) = self.kept[slot].get() else {
                // Nothing was written but what is in the outbox, which is less than anyone's share.
                let records = self.outboxes.read(slot as u64, &mut outbox);
                let parts = |is_stderr| {
                    records.clone().filter(move |record| record.is_stderr == is_stderr).map(|record| record.bytes)
                };
                let extra = parts(true).map(<[u8]>::len).sum::<usize>().saturating_sub(STDERR_KEPT);
                piece.push(end, parts(false), without_first(parts(true), extra), false);
                continue;
            };
            self.heard(slot as u32);
            let (stdout, cut) = kept.stdout.take();
            piece.push_apart(end, stdout, kept.stderr.take(), cut);
        }
        Ok((piece, again))
    }

    fn kept(&self, slot: usize) -> &Kept {
        self.kept[slot].get_or_init(|| {
            Box::new(Kept {
                stdout: Stdout { kept: Arc::default(), pool: self.pool.clone() },
                stderr: Stderr::default(),
                taken: Arc::default(),
            })
        })
    }
}

/// Parts of something, without its first bytes.
fn without_first<'a>(parts: impl Iterator<Item = &'a [u8]>, mut count: usize) -> impl Iterator<Item = &'a [u8]> {
    parts.map(move |part| {
        let skipped = part.len().min(count);
        count -= skipped;
        &part[skipped..]
    })
}

impl Quiet for Wave {
    fn heard(&self, slot: u32) {
        let mut outbox = Vec::new();
        for Record { is_stderr, bytes } in self.outboxes.read(slot.into(), &mut outbox) {
            let kept = self.kept(slot as usize);
            // What does not fit is told by `cut`: the guest has gone on long ago.
            let _ = if is_stderr { kept.stderr.clone().write(bytes) } else { kept.stdout.clone().write(bytes) };
        }
        if !outbox.is_empty() {
            self.outboxes.clear(slot.into());
        }
        if let Some(kept) = self.kept[slot as usize].get() {
            let length = self.jobs()[slot as usize].stdin.len();
            let left = (self.outboxes.stdin_left(slot.into()) as usize).min(length);
            kept.taken.store(length - left, Ordering::Relaxed);
        }
    }

    fn context(&self, slot: u32) -> Context {
        let (job, kept) = (&self.jobs()[slot as usize], self.kept(slot as usize));
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
#[allow(clippy::unwrap_used)] // in a test, that is an assertion
mod tests {
    use super::*;

    #[test]
    fn of_stderr_the_end_is_kept() {
        let mut stderr = Stderr::default();
        for i in 0..5000 {
            assert_eq!(stderr.write(format!("{i:04}\n").as_bytes()).unwrap(), 5);
        }
        let kept = stderr.take();
        assert_eq!(kept.len(), STDERR_KEPT);
        assert!(kept.ends_with(b"4998\n4999\n"));
        stderr.write(&[b'x'; 100_000]).unwrap();
        assert_eq!(stderr.take().len(), STDERR_KEPT);
    }

    #[test]
    fn parts_lose_their_first_bytes_together() {
        let parts = [&b"ab"[..], b"cd", b"ef"];
        let left = |count| without_first(parts.into_iter(), count).collect::<Vec<_>>().concat();
        assert_eq!([left(0), left(1), left(3), left(9)], [&b"abcdef"[..], b"bcdef", b"def", b""]);
    }
}
