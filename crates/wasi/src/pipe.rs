//! Pipes between guests: bytes in the host's memory, with ends that any number of descriptors may hold.
//!
//! As on Linux: a read of an empty pipe is the end once nobody can write to it, a write that nobody can read is `pipe`, and pipes
//! become smaller, and at last are refused, if there are very many.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::Errno;
use crate::encode::{Result, would_block};

/// How many bytes a pipe holds, as on Linux.
const CAPACITY: usize = 64 << 10;
/// A write of at most so many bytes is not divided (POSIX's `PIPE_BUF`).
const WHOLE: usize = 4096;
/// If all pipes of a run hold so many bytes, further ones hold [`WHOLE`] bytes.
const SOFT_LIMIT: usize = 64 << 20;
/// How many bytes all pipes of a run hold at most.
const HARD_LIMIT: usize = 256 << 20;

/// The host's memory for all pipes of a run.
#[derive(Debug, Default)]
pub(crate) struct PipeSpace(AtomicUsize);

impl PipeSpace {
    /// Takes what a new pipe may hold.
    fn take(&self) -> Result<usize> {
        let size = |taken: usize| if taken < SOFT_LIMIT { CAPACITY } else { WHOLE };
        let more = |taken: usize| (taken < HARD_LIMIT).then(|| taken + size(taken));
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(size).map_err(|_| Errno::Nfile.into())
    }
}

struct Pipe {
    bytes: VecDeque<u8>,
    capacity: usize,
    readers: usize,
    writers: usize,
    space: Arc<PipeSpace>,
}

/// One end of a pipe, as a descriptor holds it.
pub(crate) struct PipeEnd {
    pipe: Arc<Mutex<Pipe>>,
    pub(crate) reads: bool,
    /// All duplicates of a descriptor share this, as on Linux.
    nonblocking: Arc<AtomicBool>,
}

/// Makes a pipe: the end that reads, and the end that writes.
pub(crate) fn pipe(space: &Arc<PipeSpace>) -> Result<(PipeEnd, PipeEnd)> {
    let capacity = space.take()?;
    let pipe = Pipe { bytes: VecDeque::new(), capacity, readers: 1, writers: 1, space: space.clone() };
    let pipe = Arc::new(Mutex::new(pipe));
    let end = |reads| PipeEnd { pipe: pipe.clone(), reads, nonblocking: Arc::default() };
    Ok((end(true), end(false)))
}

impl Pipe {
    fn ends(&mut self, reads: bool) -> &mut usize {
        if reads { &mut self.readers } else { &mut self.writers }
    }

    fn room(&self) -> usize {
        self.capacity - self.bytes.len()
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.space.0.fetch_sub(self.capacity, Ordering::Relaxed);
    }
}

impl PipeEnd {
    pub(crate) fn share(&self) -> Self {
        *self.pipe.lock().ends(self.reads) += 1;
        Self { pipe: self.pipe.clone(), reads: self.reads, nonblocking: self.nonblocking.clone() }
    }

    pub(crate) fn is_nonblocking(&self) -> bool {
        self.nonblocking.load(Ordering::Relaxed)
    }

    pub(crate) fn set_nonblocking(&self, on: bool) {
        self.nonblocking.store(on, Ordering::Relaxed);
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> Result<usize> {
        if !self.reads {
            return Err(Errno::Badf.into());
        }
        let mut pipe = self.pipe.lock();
        let count = pipe.bytes.len().min(buffer.len());
        if count == 0 && !buffer.is_empty() && pipe.writers > 0 {
            return Err(would_block(self.is_nonblocking()));
        }
        let (first, then) = pipe.bytes.as_slices();
        let in_first = first.len().min(count);
        buffer[..in_first].copy_from_slice(&first[..in_first]);
        buffer[in_first..count].copy_from_slice(&then[..count - in_first]);
        pipe.bytes.drain(..count);
        Ok(count)
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> Result<usize> {
        if self.reads {
            return Err(Errno::Badf.into());
        }
        let mut pipe = self.pipe.lock();
        if pipe.readers == 0 {
            return Err(Errno::Pipe.into());
        }
        let count = pipe.room().min(bytes.len());
        if count < bytes.len() && (count == 0 || bytes.len() <= WHOLE) {
            return Err(would_block(self.is_nonblocking()));
        }
        pipe.bytes.extend(&bytes[..count]);
        Ok(count)
    }

    /// Returns how many bytes can be read, and whether a read would not wait.
    pub(crate) fn readable(&self) -> (usize, bool) {
        let pipe = self.pipe.lock();
        (pipe.bytes.len(), !pipe.bytes.is_empty() || pipe.writers == 0)
    }

    /// Returns whether a small write would not wait.
    pub(crate) fn writable(&self) -> bool {
        let pipe = self.pipe.lock();
        pipe.room() >= WHOLE || pipe.readers == 0
    }

    /// Whether somebody holds the other end.
    pub(crate) fn has_peer(&self) -> bool {
        *self.pipe.lock().ends(!self.reads) > 0
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        *self.pipe.lock().ends(self.reads) -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Stop;

    fn errno(result: Result<usize>) -> Errno {
        match result {
            Err(Stop::Errno(errno)) => errno,
            Err(Stop::Again(_)) => Errno::Again,
            _ => Errno::Success,
        }
    }

    fn new() -> (PipeEnd, PipeEnd) {
        pipe(&Arc::default()).unwrap_or_else(|_| panic!("there is room"))
    }

    #[test]
    fn many_pipes_are_small_and_more_are_refused() {
        let space = Arc::new(PipeSpace::default());
        let mut pipes = Vec::new();
        while let Ok(pipe) = pipe(&space) {
            pipes.push(pipe);
        }
        assert_eq!(pipes.len(), SOFT_LIMIT / CAPACITY + (HARD_LIMIT - SOFT_LIMIT) / WHOLE);
        assert_eq!(pipe(&space).err().map(|stop| errno(Err(stop))), Some(Errno::Nfile));
        let (_, small) = &pipes[pipes.len() - 1];
        assert_eq!(errno(small.write(&[1; WHOLE]).map(|_| 0)), Errno::Success);
        assert_eq!(errno(small.write(b"x")), Errno::Again);
        drop(pipes);
        assert_eq!(space.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn bytes_come_out_in_the_order_they_went_in() {
        let (reader, writer) = new();
        let mut seen = Vec::new();
        for round in 0..100u32 {
            let bytes: Vec<u8> = (0..1000).map(|at| (round * 7 + at) as u8).collect();
            assert_eq!(writer.write(&bytes).ok(), Some(1000));
            let mut buffer = [0; 700];
            while reader.readable().0 > 500 {
                let count = reader.read(&mut buffer).unwrap_or(0);
                seen.extend_from_slice(&buffer[..count]);
            }
        }
        for (at, byte) in seen.iter().enumerate() {
            assert_eq!(*byte, ((at / 1000) * 7 + at % 1000) as u8);
        }
    }

    #[test]
    fn an_empty_pipe_ends_when_its_last_writer_is_gone() {
        let (reader, writer) = new();
        let other = writer.share();
        drop(writer);
        assert_eq!(errno(reader.read(&mut [0; 8])), Errno::Again);
        assert_eq!(other.write(b"x").ok(), Some(1));
        drop(other);
        assert_eq!(reader.read(&mut [0; 8]).ok(), Some(1));
        assert_eq!(reader.read(&mut [0; 8]).ok(), Some(0));
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_broken() {
        let (reader, writer) = new();
        drop(reader);
        assert_eq!(errno(writer.write(b"x")), Errno::Pipe);
        assert!(writer.writable());
    }

    #[test]
    fn a_full_pipe_takes_nothing_and_a_small_write_is_whole() {
        let (reader, writer) = new();
        assert_eq!(writer.write(&[1; CAPACITY + 5]).ok(), Some(CAPACITY));
        assert_eq!(errno(writer.write(b"x")), Errno::Again);
        assert!(!writer.writable());
        assert_eq!(reader.read(&mut [0; 100]).ok(), Some(100));
        assert_eq!(errno(writer.write(&[2; 101])), Errno::Again, "a part of a small write");
        assert_eq!(writer.write(&[2; 5000]).ok(), Some(100));
    }
}
