//! What the host keeps of one instance that makes host calls or prints more than its outbox holds: its three streams
//! and its transcript.

use bytes::Bytes;
use gpu_run_run::allowance::SHARE;
use gpu_run_run::transcript::Transcript;
use gpu_run_run::{INSTANCE, Job};
use gpu_run_wasi::stdio::{Input, Output};
use gpu_run_wasi::{Context, Stdio};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of stderr that are kept. They are the last ones, because a panic's message comes last.
pub(super) const MAX_STDERR_KEPT: usize = 4 << 10;

/// What the host keeps of one such instance.
pub(crate) struct Kept {
    pub(crate) stdout: Stdout,
    pub(crate) stderr: Stderr,
    /// How many bytes of its stdin it has read.
    pub(super) taken: Arc<AtomicUsize>,
    pub(super) transcript: Mutex<Transcript>,
    /// How many bytes it had written to stdout and to stderr before the present call.
    pub(super) before: Mutex<[usize; 2]>,
}

impl Kept {
    /// The instance may print so many bytes beyond its share.
    pub(crate) fn new(output_bytes: usize) -> Self {
        Self::out_of(Arc::new(AtomicUsize::new(output_bytes)))
    }

    /// What the instance prints beyond its share comes out of `pool`.
    pub(super) fn out_of(pool: Arc<AtomicUsize>) -> Self {
        Self {
            stdout: Stdout(Arc::new(Mutex::new(Text { bytes: Vec::new(), cut: false, pool }))),
            stderr: Stderr::default(),
            taken: Arc::default(),
            transcript: Mutex::default(),
            before: Mutex::default(),
        }
    }

    /// Returns the context of the instance.
    pub(crate) fn context(&self, job: &Job) -> Context {
        let stdio = Stdio {
            stdin: Box::new(Stdin { bytes: job.stdin.clone(), taken: self.taken.clone() }),
            stdout: Box::new(self.stdout.clone()),
            stderr: Box::new(self.stderr.clone()),
        };
        let mut builder = (*job.context).clone();
        // A number has no NUL, the only byte a variable may not contain.
        let _ = builder.env(INSTANCE, job.number.to_string());
        builder.number(job.number).build(stdio)
    }

    /// Returns how many bytes it has written to stdout and to stderr.
    pub(super) fn written(&self) -> [usize; 2] {
        [self.stdout.0.lock().bytes.len(), self.stderr.0.lock().1]
    }

    /// Returns how many bytes it had written to stdout when it was refused more.
    pub(super) fn printed_when_cut(&self) -> Option<u64> {
        let text = self.stdout.0.lock();
        text.cut.then_some(text.bytes.len() as u64)
    }

    /// Returns how many bytes the present call has added to stdout and to stderr.
    pub(super) fn grown(&self) -> [usize; 2] {
        let (before, now) = (*self.before.lock(), self.written());
        [now[0].saturating_sub(before[0]), now[1].saturating_sub(before[1])]
    }

    /// Prepares a rerun, which prints everything again, out of `pool`. Reads of stdin through the host continue behind
    /// what was read already.
    pub(super) fn begin_again(&self, pool: Arc<AtomicUsize>) {
        *self.stdout.0.lock() = Text { bytes: Vec::new(), cut: false, pool };
        *self.stderr.0.lock() = (Vec::new(), 0);
        self.transcript.lock().rewind();
    }
}

/// A job's stdin, from the position of the instance on.
struct Stdin {
    bytes: Bytes,
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

/// All that an instance prints, until it is refused more. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Stdout(pub(super) Arc<Mutex<Text>>);

#[derive(Debug)]
pub(crate) struct Text {
    pub(super) bytes: Vec<u8>,
    /// Whether a write was refused.
    pub(super) cut: bool,
    pub(super) pool: Arc<AtomicUsize>,
}

impl Stdout {
    pub(crate) fn take(&self) -> (Vec<u8>, bool) {
        let Text { bytes, cut, .. } = &mut *self.0.lock();
        (std::mem::take(bytes), std::mem::take(cut))
    }
}

impl Output for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Text { bytes: kept, cut, pool } = &mut *self.0.lock();
        let beyond = |length: usize| length.saturating_sub(SHARE);
        let wanted = beyond(kept.len() + bytes.len()) - beyond(kept.len());
        let take = |left: usize| left.checked_sub(wanted);
        if wanted > 0 && pool.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            *cut = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }
}

/// The end of what an instance writes, and how many bytes it wrote. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stderr(pub(super) Arc<Mutex<(Vec<u8>, usize)>>);

impl Stderr {
    pub(super) fn keep(&mut self, bytes: &[u8]) {
        let (kept, count) = &mut *self.0.lock();
        *count += bytes.len();
        kept.extend_from_slice(&bytes[bytes.len().saturating_sub(MAX_STDERR_KEPT)..]);
        // Not at every write: moving the kept bytes costs more than keeping twice as many.
        if kept.len() > 2 * MAX_STDERR_KEPT {
            forget(kept);
        }
    }

    pub(crate) fn take(&self) -> Vec<u8> {
        let (mut bytes, _) = std::mem::take(&mut *self.0.lock());
        forget(&mut bytes);
        bytes
    }
}

impl Output for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.keep(bytes);
        Ok(bytes.len())
    }
}

fn forget(bytes: &mut Vec<u8>) {
    bytes.drain(..bytes.len().saturating_sub(MAX_STDERR_KEPT));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_stderr_the_end_is_kept() {
        let mut stderr = Stderr::default();
        for i in 0..5000 {
            assert_eq!(stderr.write(format!("{i:04}\n").as_bytes()).unwrap(), 5);
        }
        let kept = stderr.take();
        assert_eq!(kept.len(), MAX_STDERR_KEPT);
        assert!(kept.ends_with(b"4998\n4999\n"));
        stderr.write(&[b'x'; 100_000]).unwrap();
        assert_eq!(stderr.take().len(), MAX_STDERR_KEPT);
    }
}
