//! A temporary file, with a size limit, for output that must wait for its turn.
//!
//! Pieces are appended, and each is read back once. When all are read, the file is emptied. A full disk counts as the
//! limit: bytes that cannot be written stay with the caller.

use parking_lot::{Mutex, MutexGuard};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Clones share one file.
#[derive(Clone, Debug)]
pub struct Spill(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// An unnamed file, created when it is first needed.
    file: Option<File>,
    length: u64,
    /// Bytes that have not been read back yet.
    waiting: u64,
    limit: u64,
}

impl Spill {
    pub fn new(limit: u64) -> Self {
        Self(Arc::new(Mutex::new(State { file: None, length: 0, waiting: 0, limit })))
    }

    pub fn limit(&self) -> u64 {
        self.lock().limit
    }

    /// Whether this many bytes fit below the limit.
    pub fn has_room(&self, count: usize) -> bool {
        let state = self.lock();
        count as u64 <= state.limit.saturating_sub(state.length)
    }

    /// Appends bytes and returns their offset, or `None` if they exceed the limit.
    pub fn keep(&self, bytes: &[u8]) -> io::Result<Option<u64>> {
        let state = &mut *self.lock();
        let (offset, count) = (state.length, bytes.len() as u64);
        if count > state.limit.saturating_sub(offset) {
            return Ok(None);
        }
        let file = match &mut state.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile().inspect_err(|_| state.limit = 0)?),
        };
        if let Err(error) = file.write_all_at(bytes, offset) {
            // Truncating gives back the space of a partial write. From now on the file may not grow beyond this length.
            let _ = file.set_len(offset);
            state.limit = offset;
            return Err(error);
        }
        state.length += count;
        state.waiting += count;
        Ok(Some(offset))
    }

    /// Returns bytes that were kept, and forgets them.
    pub fn take(&self, offset: u64, count: usize) -> io::Result<Vec<u8>> {
        let state = &mut *self.lock();
        let mut bytes = vec![0; count];
        state.waiting -= count as u64;
        if let Some(file) = &state.file {
            file.read_exact_at(&mut bytes, offset)?;
            if state.waiting == 0 {
                file.set_len(0)?;
                state.length = 0;
            }
        }
        Ok(bytes)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_as_much_as_it_may_and_again_when_it_is_empty() {
        let spill = Spill::new(10);
        assert_eq!(spill.keep(b"123456").unwrap(), Some(0));
        assert_eq!(spill.keep(b"12345").unwrap(), None, "that would be eleven");
        assert_eq!(spill.keep(b"abcd").unwrap(), Some(6));
        assert_eq!(spill.take(0, 6).unwrap(), b"123456");
        assert_eq!(spill.keep(b"1").unwrap(), None, "the file is as long as before");
        assert_eq!(spill.take(6, 4).unwrap(), b"abcd");
        assert_eq!(spill.keep(b"0123456789").unwrap(), Some(0));
        assert_eq!(Spill::new(0).keep(b"1").unwrap(), None);
    }
}
