//! The input, read ahead: records, numbered and gathered into batches.
//!
//! A batch has a number of records and of bytes at most, whichever is reached first. It also goes out half full when the
//! device has nothing to do and the input comes slowly: a pipe that gives a line a second gets a line a second back.

use super::chain::Anchor;
use super::links::InputFolder;
use super::split::{self, LONGEST, Position, Records, Rule, Source, trimmed};
use super::walk::{Found, Walk};
use anyhow::{Context, Result};
use bytes::Bytes;
use gpu_run_console::failure::Failure;
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

/// Bytes of input in a batch, a single record that is larger aside.
const BATCH_BYTES: usize = 64 << 20;
/// What a record counts besides its bytes: however short, a batch has no more than a million.
const RECORD_BYTES: usize = 64;
/// How old a batch gets before it is offered half full.
const PATIENCE: Duration = Duration::from_millis(100);

/// One record: an instance to be.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) place: Place,
    pub(crate) stdin: Bytes,
    /// Bytes of `stdin` before the record itself: CSV's header.
    lead: usize,
    /// Why it cannot be run.
    pub(crate) flaw: Option<String>,
}

impl Record {
    /// What `{}` stands for.
    pub(crate) fn text(&self) -> &[u8] {
        match &self.place {
            Place::Line(_) => trimmed(&self.stdin[self.lead..]),
            Place::File(path) => path.as_os_str().as_bytes(),
        }
    }
}

/// Where a record is in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
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
    feed: Feed,
    records: u64,
}

#[derive(Debug)]
enum Feed {
    Stream(Box<Records>),
    Files { root: InputFolder, walk: Walk, seen: Box<blake3::Hasher> },
}

impl Reader {
    pub(crate) fn stream(source: Source, rule: Rule) -> Result<Self> {
        let records = Records::new(source, rule, LONGEST).context("cannot read the input")?;
        Ok(Self { feed: Feed::Stream(Box::new(records)), records: 0 })
    }

    /// Goes on with a stream that another process has begun.
    pub(crate) fn continued(source: Source, rule: Rule, header: Vec<u8>, anchor: Anchor) -> Self {
        let records = Records::continued(source, rule, LONGEST, header, anchor);
        Self { feed: Feed::Stream(Box::new(records)), records: 0 }
    }

    /// What every record of CSV comes after; empty for the others.
    pub(crate) fn header(&self) -> &[u8] {
        match &self.feed {
            Feed::Stream(records) => records.header(),
            Feed::Files { .. } => &[],
        }
    }

    pub(crate) fn folder(root: InputFolder) -> Result<Self> {
        let walk = Walk::new(&root)?;
        Ok(Self { feed: Feed::Files { root, walk, seen: Box::default() }, records: 0 })
    }

    /// Goes on from where an earlier run was, if the input up to there is what it was then.
    pub(crate) fn skip_to(&mut self, mark: &Mark) -> Result<()> {
        match &mut self.feed {
            Feed::Stream(records) => {
                let to = Position { offset: mark.offset, line: mark.line };
                let there = records.skip_to(to).context("cannot read the input")?;
                // A record has a byte at least.
                if !there || mark.records > mark.offset || records.seen() != mark.seen {
                    return Err(changed());
                }
            }
            Feed::Files { root, walk, seen } => {
                for _ in 0..mark.records {
                    let found = walk.next(root).ok_or_else(changed)?;
                    note(seen, &found, &open(root, &found));
                }
                if Some(seen.finalize().to_hex().as_str()) != mark.seen.as_deref() {
                    return Err(changed());
                }
            }
        }
        self.records = mark.records;
        Ok(())
    }

    pub(crate) fn mark(&self) -> Mark {
        match &self.feed {
            Feed::Stream(records) => {
                let Position { offset, line } = records.position();
                Mark { records: self.records, offset, line, seen: records.seen(), anchor: records.anchor() }
            }
            Feed::Files { seen, .. } => {
                Mark { records: self.records, seen: Some(seen.finalize().to_hex().to_string()), ..Mark::default() }
            }
        }
    }

    fn next(&mut self) -> Result<Option<Record>> {
        let record = match &mut self.feed {
            Feed::Stream(records) => records.next().map_err(unreadable)?.map(|piece| {
                let header = records.header();
                let stdin = if header.is_empty() { piece.bytes } else { [header, &piece.bytes].concat().into() };
                Record { place: Place::Line(piece.line), stdin, lead: header.len(), flaw: piece.flaw }
            }),
            Feed::Files { root, walk, seen } => walk.next(root).map(|found| {
                let opened = open(root, &found);
                note(seen, &found, &opened);
                let (stdin, flaw) = match opened.and_then(|(file, stat)| content(file, &stat)) {
                    Ok(bytes) => (bytes.into(), None),
                    Err(flaw) => (Bytes::new(), Some(flaw)),
                };
                Record { place: Place::File(found.path), stdin, lead: 0, flaw }
            }),
        };
        self.records += u64::from(record.is_some());
        Ok(record)
    }

    /// The next batch, whole: as many records as there may be, or are.
    pub(crate) fn take(&mut self, most: usize) -> Result<Batch> {
        let mut gathered = Gathered::new(self.records);
        while gathered.records.len() < most && gathered.bytes < BATCH_BYTES {
            match self.next()? {
                Some(record) => gathered.add(record),
                None => break,
            }
        }
        Ok(gathered.take(self.mark()))
    }

    /// Sends batches until the input ends, or nobody takes them any more. What was read before an error is sent.
    pub(crate) fn run(mut self, most: usize, send: &SyncSender<Batch>) -> Result<()> {
        let mut gathered = Gathered::new(self.records);
        let ended = loop {
            match self.next() {
                Ok(Some(record)) => gathered.add(record),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
            let full = gathered.records.len() >= most || gathered.bytes >= BATCH_BYTES;
            if !full && gathered.since.elapsed() < PATIENCE {
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
        if !gathered.records.is_empty() {
            let _ = send.send(gathered.take(self.mark()));
        }
        ended
    }
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
        self.bytes += record.stdin.len() + RECORD_BYTES;
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

/// Opens what was found, or says why it cannot be read.
fn open(root: &InputFolder, found: &Found) -> Result<(File, Stat), String> {
    match &found.flaw {
        Some(flaw) => Err(flaw.clone()),
        None => root.open(&found.path),
    }
}

fn content(file: File, stat: &Stat) -> Result<Vec<u8>, String> {
    let too_long = || format!("is longer than {LONGEST} bytes");
    let length = usize::try_from(stat.st_size).ok().filter(|length| *length <= LONGEST).ok_or_else(too_long)?;
    let mut bytes = Vec::with_capacity(length + 1);
    // It may have grown since.
    file.take(LONGEST as u64 + 1).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() > LONGEST { Err(too_long()) } else { Ok(bytes) }
}

/// Hashes what tells a file from another, without reading it.
fn note(seen: &mut blake3::Hasher, found: &Found, opened: &Result<(File, Stat), String>) {
    let state = opened.as_ref().map(|(_, stat)| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec)).unwrap_or_default();
    seen.update(found.path.as_os_str().as_bytes());
    seen.update(format!("\0{state:?}\0").as_bytes());
}

fn unreadable(error: split::Error) -> anyhow::Error {
    match error {
        split::Error::Read(error) => anyhow::Error::from(error).context("cannot read the input"),
        long => Failure::usage(format!("cannot read on: {long}")).into(),
    }
}

pub(crate) fn changed() -> anyhow::Error {
    Failure::usage("--resume: the input is not the one that the unfinished output was made from")
        .hint("resume with the same input, or begin anew with --force")
        .into()
}
