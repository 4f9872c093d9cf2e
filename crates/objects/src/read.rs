//! Reads an object as a file: in order, or from any place on.

use crate::error::Error;
use crate::folder::Entry;
use crate::store::Object;
use crate::{State, state};
use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use object_store::{GetOptions, GetRange, ObjectMeta};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use tokio::task::JoinHandle;

/// Bytes of one request.
const PIECE: u64 = 8 << 20;
/// Requests that are made before their bytes are wanted.
const AHEAD: usize = 3;

/// Reads an object, some requests ahead.
pub struct Reader {
    object: Object,
    state: State,
    wanted: Wanted,
    /// The bytes at hand, and where they begin.
    held: Bytes,
    at: u64,
    /// The requests for what follows, in order, and where the next one begins.
    pieces: VecDeque<Fetch>,
    next: u64,
}

/// What an object must be, or it has changed.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    State(State),
    Entry(Entry),
}

impl Wanted {
    fn is(&self, meta: &ObjectMeta) -> bool {
        match self {
            Self::State(wanted) => state(meta) == *wanted,
            Self::Entry(wanted) => wanted.is_of(meta),
        }
    }
}

/// Bytes that were asked for.
pub struct Fetch {
    object: Object,
    bytes: JoinHandle<Result<Bytes, Error>>,
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.bytes.abort();
    }
}

impl Fetch {
    pub(crate) fn begin(object: Object, wanted: Wanted, range: Range<u64>) -> Self {
        let bytes = object.spawn(fetch(object.clone(), wanted, range));
        Self { object, bytes }
    }

    /// Waits for the bytes.
    pub fn wait(self) -> Result<Bytes, Error> {
        let object = self.object.clone();
        object.wait(self.done())
    }

    async fn done(mut self) -> Result<Bytes, Error> {
        match (&mut self.bytes).await {
            Ok(bytes) => bytes,
            Err(error) => Err(Error::Failed { object: self.object.name().to_owned(), message: error.to_string() }),
        }
    }
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fetch").field(&self.object).finish()
    }
}

impl Reader {
    pub(crate) fn new(object: Object, state: State) -> Self {
        let wanted = Wanted::State(state.clone());
        Self { object, state, wanted, held: Bytes::new(), at: 0, pieces: VecDeque::new(), next: 0 }
    }

    pub(crate) fn listed(object: Object, entry: Entry) -> Self {
        let state = State { bytes: entry.bytes, version: entry.version.clone() };
        Self { wanted: Wanted::Entry(entry), ..Self::new(object, state) }
    }

    pub fn object(&self) -> &Object {
        &self.object
    }

    /// What was found when it was opened. If it changes, reading fails.
    pub fn state(&self) -> &State {
        &self.state
    }

    fn fill(&mut self) -> Result<(), Error> {
        while self.pieces.len() < AHEAD && self.next < self.state.bytes {
            let range = self.next..self.state.bytes.min(self.next + PIECE);
            self.next = range.end;
            self.pieces.push_back(Fetch::begin(self.object.clone(), self.wanted.clone(), range));
        }
        let Some(piece) = self.pieces.pop_front() else { return Ok(()) };
        self.held = piece.wait()?;
        Ok(())
    }
}

/// Asks for a range, and for the rest of it where an answer breaks off.
async fn fetch(object: Object, wanted: Wanted, range: Range<u64>) -> Result<Bytes, Error> {
    let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
    let mut failures = 0;
    loop {
        let start = range.start + bytes.len() as u64;
        if start == range.end {
            return Ok(bytes.into());
        }
        let before = bytes.len();
        let failure = match append(&object, &wanted, start..range.end, &mut bytes).await {
            Ok(true) => continue,
            Ok(false) => return Err(Error::Changed(object.name().to_owned())),
            Err(error) => error,
        };
        // Whoever gets on has not failed.
        if bytes.len() > before {
            failures = 0;
        }
        object.after_failure(&failure, &mut failures).await?;
    }
}

/// Appends what one request gives. Returns false if the object has changed.
async fn append(
    object: &Object,
    wanted: &Wanted,
    range: Range<u64>,
    bytes: &mut Vec<u8>,
) -> object_store::Result<bool> {
    let options = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
    let answer = object.site.store.get_opts(&object.path, options).await?;
    if !wanted.is(&answer.meta) || answer.range != range {
        return Ok(false);
    }
    let (before, wanted) = (bytes.len(), range.end - range.start);
    let mut stream = answer.into_stream();
    while let Some(chunk) = stream.next().await {
        bytes.extend_from_slice(&chunk?);
        if (bytes.len() - before) as u64 > wanted {
            bytes.truncate(before);
            return Err(other_length());
        }
    }
    // The rest of an answer that breaks off is asked for again. One that never begins would be asked for without end.
    if bytes.len() == before { Err(other_length()) } else { Ok(true) }
}

fn other_length() -> object_store::Error {
    object_store::Error::Generic { store: "objects", source: "the answer is not as long as its head says".into() }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.held.is_empty() && !buffer.is_empty() {
            self.fill()?;
        }
        let count = buffer.len().min(self.held.len());
        self.held.copy_to_slice(&mut buffer[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Reader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(to) => Some(to),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.state.bytes.checked_add_signed(by),
        };
        let to = to.ok_or(io::ErrorKind::InvalidInput)?;
        if to != self.at {
            self.pieces.clear();
            self.held = Bytes::new();
            (self.at, self.next) = (to, to);
        }
        Ok(to)
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("object", &self.object).field("at", &self.at).finish_non_exhaustive()
    }
}
