//! A stream that can be read again: what was taken from a pipe is kept until its output is written.
//!
//! When the device is lost, another process continues the input. It gets the pipe, and the records that were read from
//! it but not written: a [`Tape`] has them. Once the tape is [stopped](Tape::stop), nothing more is taken from the
//! pipe, so that no byte is lost between the two processes.

use crate::error::Error;
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// What is kept of a stream. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Tape(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    from: Arc<File>,
    /// What was read, piece by piece.
    kept: VecDeque<Vec<u8>>,
    /// The offset in the stream where `kept` begins.
    start: u64,
    /// Bytes before this offset are not needed any more.
    needed: u64,
    stopped: bool,
}

impl State {
    fn trim(&mut self) {
        while let Some(piece) = self.kept.pop_front() {
            let end = self.start + piece.len() as u64;
            if end > self.needed {
                return self.kept.push_front(piece);
            }
            self.start = end;
        }
    }
}

/// Reads the stream.
#[derive(Debug)]
pub(crate) struct TapeReader {
    tape: Tape,
    from: Arc<File>,
    /// What another process has read before.
    again: io::Cursor<Vec<u8>>,
}

impl Tape {
    /// The stream's bytes from `start` on are `again`, followed by what comes out of `from`.
    pub(crate) fn new(from: File, start: u64, again: Vec<u8>) -> (Self, TapeReader) {
        let from = Arc::new(from);
        let kept = VecDeque::from([again.clone()]);
        let tape = Self(Arc::new(Mutex::new(State { from: from.clone(), kept, start, needed: 0, stopped: false })));
        let reader = TapeReader { tape: tape.clone(), from, again: io::Cursor::new(again) };
        (tape, reader)
    }

    /// Drops what lies before `offset`: it will not be needed again.
    pub(crate) fn forget(&self, offset: u64) {
        let mut state = self.lock();
        state.needed = offset;
        state.trim();
    }

    /// Takes nothing more from the stream. Returns what was read of it from `offset` on.
    pub(crate) fn stop(&self, offset: u64) -> Vec<u8> {
        let mut state = self.lock();
        state.stopped = true;
        let mut kept = Vec::new();
        let mut skip = offset.saturating_sub(state.start) as usize;
        for piece in &state.kept {
            let from = skip.min(piece.len());
            skip -= from;
            kept.extend_from_slice(&piece[from..]);
        }
        kept
    }

    /// Keeps the stream open when another program replaces this one. Returns the descriptor under which that program
    /// finds it.
    pub(crate) fn keep_open(&self) -> Result<RawFd, Error> {
        let from = self.lock().from.clone();
        fcntl_setfd(&*from, FdFlags::empty()).map_err(|error| Error::GiveInput(error.into()))?;
        Ok(from.as_raw_fd())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl Read for TapeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let again = self.again.read(buffer)?;
        if again > 0 || buffer.is_empty() {
            return Ok(again);
        }
        self.again = io::Cursor::default();
        // Waits here, and not in `read` below, which holds the lock.
        while let Err(error) = poll(&mut [PollFd::new(&*self.from, PollFlags::IN)], None) {
            if error != Errno::INTR {
                return Err(error.into());
            }
        }
        let mut state = self.tape.lock();
        while state.stopped {
            drop(state);
            std::thread::park(); // until another program replaces this one
            state = self.tape.lock();
        }
        let count = (&*self.from).read(buffer)?;
        state.kept.push_back(buffer[..count].to_vec());
        state.trim();
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom, Write};

    fn file(content: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file
    }

    #[test]
    fn what_was_read_and_not_forgotten_is_there_again() {
        let (tape, mut reader) = Tape::new(file(b"0123456789"), 100, b"abc".to_vec());
        let mut buffer = [0; 4];
        for expected in [&b"abc"[..], b"0123", b"4567"] {
            let count = reader.read(&mut buffer).unwrap();
            assert_eq!(&buffer[..count], expected);
        }
        tape.forget(102);
        tape.forget(105); // within a piece, which stays
        assert_eq!(tape.stop(105), b"234567");
        tape.forget(107);
        assert_eq!(tape.stop(107), b"4567");
        assert_eq!(tape.stop(200), b"");
    }

    #[test]
    fn a_stopped_tape_takes_nothing_more() {
        let (tape, mut reader) = Tape::new(file(b"0123456789"), 0, Vec::new());
        reader.read_exact(&mut [0; 3]).unwrap();
        assert_eq!(tape.stop(0), b"012");
        std::thread::spawn(move || reader.read(&mut [0; 3])); // parks
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert_eq!(tape.stop(0), b"012");
    }
}
