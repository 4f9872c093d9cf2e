//! Stdin for several instances: each sees the same bytes, as they arrive.
//!
//! So a program that is run 64 times with `< data` does the same 64 times. The bytes read are kept for the instances
//! that have not reached them yet, so they take as much memory as the input is long. A single instance reads our stdin
//! directly.

use gpu_run_wasi::stdio::Input;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;

/// What instances have read from a source so far.
#[derive(Clone)]
pub(crate) struct SharedInput(Arc<Mutex<Tape>>);

struct Tape {
    source: Box<dyn Input>,
    bytes: Vec<u8>,
    /// The source's end or error, which every instance gets.
    ended: Option<Result<(), io::ErrorKind>>,
}

/// One instance's position in a [`SharedInput`].
pub(crate) struct InstanceInput {
    input: SharedInput,
    at: usize,
}

impl SharedInput {
    pub(crate) fn new(source: impl Input + 'static) -> Self {
        Self(Arc::new(Mutex::new(Tape { source: Box::new(source), bytes: Vec::new(), ended: None })))
    }

    /// Returns a new reader, at the beginning.
    pub(crate) fn reader(&self) -> InstanceInput {
        InstanceInput { input: self.clone(), at: 0 }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Tape) -> T) -> T {
        act(&mut self.0.lock())
    }
}

impl Tape {
    /// Reads more from the source; only for a reader that has seen everything.
    fn advance(&mut self) -> io::Result<()> {
        const CHUNK: usize = 64 << 10;
        let length = self.bytes.len();
        self.bytes.resize(length + CHUNK, 0);
        let result = self.source.read(&mut self.bytes[length..]);
        self.bytes.truncate(length + result.as_ref().map_or(0, |count| *count));
        match result {
            Ok(0) => self.ended = Some(Ok(())),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Err(error);
            }
            Err(error) => self.ended = Some(Err(error.kind())),
        }
        Ok(())
    }
}

impl Input for InstanceInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let at = self.at;
        let count = self.input.with(|tape| {
            if at == tape.bytes.len() && tape.ended.is_none() {
                tape.advance()?;
            }
            let rest = &tape.bytes[at..];
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            match tape.ended {
                Some(Err(kind)) if rest.is_empty() => Err(io::Error::from(kind)),
                _ => Ok(count),
            }
        })?;
        self.at += count;
        Ok(count)
    }

    fn ready(&mut self) -> bool {
        self.input.with(|tape| self.at < tape.bytes.len() || tape.ended.is_some() || tape.source.ready())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one scripted answer for each read.
    struct Script(Vec<io::Result<&'static [u8]>>);

    impl Input for Script {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let bytes = if self.0.is_empty() { Ok(&b""[..]) } else { self.0.remove(0) }?;
            buffer[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        }
    }

    fn read(input: &mut InstanceInput) -> io::Result<Vec<u8>> {
        let mut room = [0; 4];
        input.read(&mut room).map(|count| room[..count].to_vec())
    }

    #[test]
    fn every_instance_reads_the_same_bytes_from_the_start() {
        let input = SharedInput::new(Script(vec![Ok(b"abcdef"), Ok(b"gh")]));
        let (mut a, mut b) = (input.reader(), input.reader());
        assert_eq!(read(&mut a).unwrap(), b"abcd");
        assert_eq!(read(&mut b).unwrap(), b"abcd");
        for expected in [&b"ef"[..], b"gh", b"", b""] {
            assert_eq!(read(&mut a).unwrap(), expected);
        }
        assert_eq!(read(&mut b).unwrap(), b"efgh", "what another has read on is there too");
        assert_eq!(read(&mut b).unwrap(), b"");
    }

    #[test]
    fn nothing_yet_is_not_the_end() {
        let input = SharedInput::new(Script(vec![Err(io::ErrorKind::WouldBlock.into()), Ok(b"x")]));
        let mut reader = input.reader();
        assert_eq!(read(&mut reader).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(read(&mut reader).unwrap(), b"x");
    }

    #[test]
    fn an_error_comes_after_the_bytes_before_it_and_stays() {
        let input = SharedInput::new(Script(vec![Ok(b"x"), Err(io::ErrorKind::PermissionDenied.into())]));
        for _ in 0..2 {
            let mut reader = input.reader();
            assert_eq!(read(&mut reader).unwrap(), b"x");
            assert_eq!(read(&mut reader).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
    }
}
