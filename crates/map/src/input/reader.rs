//! The input, read ahead: records, numbered and gathered into batches.
//!
//! A batch has a number of records and of bytes at most, whichever is reached first. It also goes out half full when the
//! device has nothing to do and the input comes slowly: a pipe that gives a line a second gets a line a second back.

use super::chain::Anchor;
use super::flaw::Flaw;
use super::links::InputFolder;
use super::split::{ByteSource, MAX_RECORD_BYTES, Position, Records, Rule, SplitError, trimmed};
use super::walk::{Found, Walk};
use crate::error::Error;
use crate::handover::Suspects;
use bytes::Bytes;
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

/// Bytes of input in a batch, a single record that is larger aside.
const MAX_BATCH_BYTES: usize = 64 << 20;
/// What a record counts besides its bytes: however short, a batch has no more than a million.
const RECORD_OVERHEAD_BYTES: usize = 64;
/// How old a batch gets before it is offered half full.
const MAX_BATCH_AGE: Duration = Duration::from_millis(100);

/// One record: an instance to be.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) location: Location,
    pub(crate) stdin: Bytes,
    /// Bytes of `stdin` before the record itself: CSV's header.
    lead: usize,
    /// Why it cannot be run.
    pub(crate) flaw: Option<Flaw>,
}

impl Record {
    /// What `{}` stands for.
    pub(crate) fn text(&self) -> &[u8] {
        match &self.location {
            Location::Line(_) => trimmed(&self.stdin[self.lead..]),
            Location::File(path) => path.as_os_str().as_bytes(),
        }
    }
}

/// Where a record is in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// The line it begins in, from 1.
    Line(u64),
    /// A path, from the input folder on.
    File(PathBuf),
}

/// How far the input has been read: between two records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) records: u64,
    pub(crate) offset: u64,
    pub(crate) line: u64,
    /// What the input so far hashes to, where it is no file that can be known by its size and time.
    pub(crate) seen: Option<String>,
    /// From where on another process needs a stream's bytes to go on here.
    #[serde(default)]
    pub(crate) anchor: Option<Anchor>,
}

/// Records that run together.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The number of its first record, from 0.
    pub(crate) first: u64,
    pub(crate) records: Vec<Record>,
    /// Behind its last.
    pub(crate) mark: Mark,
}

/// The input as records.
#[derive(Debug)]
pub(crate) struct Reader {
    source: RecordSource,
    /// Records that were read.
    records: u64,
    /// Already read, and sent before all others.
    first: Option<Batch>,
    /// These are sent a few at a time.
    suspects: Option<Suspects>,
}

#[derive(Debug)]
enum RecordSource {
    Stream(Box<Records>),
    Files { root: InputFolder, walk: Walk, seen: Box<blake3::Hasher> },
}

impl Reader {
    pub(crate) fn stream(source: ByteSource, rule: Rule) -> Result<Self, Error> {
        let records = Records::new(source, rule, MAX_RECORD_BYTES).map_err(Error::ReadHeader)?;
        Ok(Self::new(RecordSource::Stream(Box::new(records))))
    }

    /// Goes on with a stream that another process has begun.
    pub(crate) fn continued(source: ByteSource, rule: Rule, header: Vec<u8>, anchor: Anchor) -> Self {
        let records = Records::continued(source, rule, MAX_RECORD_BYTES, header, anchor);
        Self::new(RecordSource::Stream(Box::new(records)))
    }

    pub(crate) fn folder(root: InputFolder) -> Result<Self, Error> {
        let walk = Walk::new(&root)?;
        Ok(Self::new(RecordSource::Files { root, walk, seen: Box::default() }))
    }

    fn new(source: RecordSource) -> Self {
        Self { source, records: 0, first: None, suspects: None }
    }

    /// What every record of CSV comes after; empty for the others.
    pub(crate) fn header(&self) -> &[u8] {
        match &self.source {
            RecordSource::Stream(records) => records.header(),
            RecordSource::Files { .. } => &[],
        }
    }

    /// Goes on from where an earlier run was, if the input up to there is what it was then.
    pub(crate) fn skip_to(&mut self, mark: &Mark) -> Result<(), Error> {
        match &mut self.source {
            RecordSource::Stream(records) => {
                let to = Position { offset: mark.offset, line: mark.line };
                let there = records.skip_to(to).map_err(|error| Error::read("the input", error))?;
                // A record has a byte at least.
                if !there || mark.records > mark.offset || records.seen() != mark.seen {
                    return Err(Error::InputChanged);
                }
            }
            RecordSource::Files { root, walk, seen } => {
                for _ in 0..mark.records {
                    let found = walk.next(root).ok_or(Error::InputChanged)?;
                    let _ = open(root, found, seen);
                }
                if Some(seen.finalize().to_hex().as_str()) != mark.seen.as_deref() {
                    return Err(Error::InputChanged);
                }
            }
        }
        self.records = mark.records;
        Ok(())
    }

    /// These records are sent a few at a time: one of them does not end.
    pub(crate) fn suspect(&mut self, suspects: Option<Suspects>) {
        self.suspects = suspects;
    }

    /// Reads the first batch, which is sent later, before all others.
    pub(crate) fn read_first(&mut self, max_records: usize) -> Result<&Batch, Error> {
        let batch = self.take(max_records)?;
        Ok(self.first.insert(batch))
    }

    /// The batch that was read already.
    pub(crate) fn first(&self) -> Option<&Batch> {
        self.first.as_ref()
    }

    /// Sends batches until the input ends, or nobody takes them any more.
    pub(crate) fn run(mut self, max_records: usize, send: &SyncSender<Batch>) -> Result<(), Error> {
        let first = self.first.take();
        if !send_if_any(first, send) {
            return Ok(());
        }
        while let Some(suspects) = self.suspects {
            let batch = self.take(suspects.batch as usize)?;
            if batch.records.is_empty() || batch.mark.records >= suspects.until {
                self.suspects = None;
            }
            if !send_if_any(Some(batch), send) {
                return Ok(());
            }
        }
        self.send_rest(max_records, send)
    }

    /// The next batch, whole: as many records as there may be, or are.
    fn take(&mut self, max_records: usize) -> Result<Batch, Error> {
        let mut gathered = Gathered::new(self.records);
        while gathered.records.len() < max_records && gathered.bytes < MAX_BATCH_BYTES {
            match self.next()? {
                Some(record) => gathered.add(record),
                None => break,
            }
        }
        Ok(gathered.take(self.mark()))
    }

    /// What was read before an error is sent.
    fn send_rest(mut self, max_records: usize, send: &SyncSender<Batch>) -> Result<(), Error> {
        let mut gathered = Gathered::new(self.records);
        let ended = loop {
            match self.next() {
                Ok(Some(record)) => gathered.add(record),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
            let full = gathered.records.len() >= max_records || gathered.bytes >= MAX_BATCH_BYTES;
            if !full && gathered.since.elapsed() < MAX_BATCH_AGE {
                continue;
            }
            let batch = gathered.take(self.mark());
            if full {
                if send.send(batch).is_err() {
                    return Ok(());
                }
                continue;
            }
            match send.try_send(batch) {
                Ok(()) => {}
                Err(TrySendError::Full(batch)) => gathered.put_back(batch),
                Err(TrySendError::Disconnected(_)) => return Ok(()),
            }
        };
        send_if_any(Some(gathered.take(self.mark())), send);
        ended
    }

    fn next(&mut self) -> Result<Option<Record>, Error> {
        let record = match &mut self.source {
            RecordSource::Stream(records) => records.next().map_err(unreadable)?.map(|piece| {
                let header = records.header();
                let stdin = if header.is_empty() { piece.bytes } else { [header, &piece.bytes].concat().into() };
                Record { location: Location::Line(piece.line), stdin, lead: header.len(), flaw: piece.flaw }
            }),
            RecordSource::Files { root, walk, seen } => walk.next(root).map(|found| {
                let (path, opened) = open(root, found, seen);
                let (stdin, flaw) = match opened.and_then(|(file, stat)| content(file, &stat)) {
                    Ok(bytes) => (bytes.into(), None),
                    Err(flaw) => (Bytes::new(), Some(flaw)),
                };
                Record { location: Location::File(path), stdin, lead: 0, flaw }
            }),
        };
        self.records += u64::from(record.is_some());
        Ok(record)
    }

    fn mark(&self) -> Mark {
        match &self.source {
            RecordSource::Stream(records) => {
                let Position { offset, line } = records.position();
                Mark { records: self.records, offset, line, seen: records.seen(), anchor: records.anchor() }
            }
            RecordSource::Files { seen, .. } => {
                Mark { records: self.records, seen: Some(seen.finalize().to_hex().to_string()), ..Mark::default() }
            }
        }
    }
}

/// Sends a batch that has records; says whether anybody takes more.
fn send_if_any(batch: Option<Batch>, send: &SyncSender<Batch>) -> bool {
    batch.filter(|batch| !batch.records.is_empty()).is_none_or(|batch| send.send(batch).is_ok())
}

/// A batch in the making.
struct Gathered {
    first: u64,
    records: Vec<Record>,
    bytes: usize,
    /// When it was begun, or offered last.
    since: Instant,
}

impl Gathered {
    fn new(first: u64) -> Self {
        Self { first, records: Vec::new(), bytes: 0, since: Instant::now() }
    }

    fn add(&mut self, record: Record) {
        self.bytes += record.stdin.len() + RECORD_OVERHEAD_BYTES;
        self.records.push(record);
    }

    fn take(&mut self, mark: Mark) -> Batch {
        let taken = std::mem::replace(self, Self::new(mark.records));
        Batch { first: taken.first, records: taken.records, mark }
    }

    fn put_back(&mut self, batch: Batch) {
        *self = Self::new(batch.first);
        batch.records.into_iter().for_each(|record| self.add(record));
    }
}

/// Opens what was found, or says why it cannot be read. What tells a file from another is hashed, without reading it.
fn open(root: &InputFolder, found: Found, seen: &mut blake3::Hasher) -> (PathBuf, Result<(File, Stat), Flaw>) {
    let opened = match found.flaw {
        Some(flaw) => Err(flaw),
        None => root.open(&found.path),
    };
    let state = opened.as_ref().map(|(_, stat)| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec)).unwrap_or_default();
    seen.update(found.path.as_os_str().as_bytes());
    seen.update(format!("\0{state:?}\0").as_bytes());
    (found.path, opened)
}

fn content(file: File, stat: &Stat) -> Result<Vec<u8>, Flaw> {
    let too_long = || Flaw::TooLong(MAX_RECORD_BYTES);
    let length = usize::try_from(stat.st_size).ok().filter(|length| *length <= MAX_RECORD_BYTES);
    let mut bytes = Vec::with_capacity(length.ok_or_else(too_long)? + 1);
    // It may have grown since.
    file.take(MAX_RECORD_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(Flaw::unreadable)?;
    if bytes.len() > MAX_RECORD_BYTES { Err(too_long()) } else { Ok(bytes) }
}

fn unreadable(error: SplitError) -> Error {
    match error {
        SplitError::Read(error) => Error::read("the input", error),
        too_long => Error::RecordTooLong(too_long),
    }
}
