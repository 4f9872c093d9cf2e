//! Reads the input ahead, and gathers numbered records into batches.
//!
//! A batch is full when it has its maximum of records or of bytes. If a device is idle and the input comes slowly, a
//! batch is given before it is full: a pipe that gives a line a second gets a line a second back.

use super::chain::Anchor;
use super::files::{Files, content};
use super::flaw::Flaw;
use super::links::InputFolder;
use super::objects::ObjectFiles;
use super::split::{ByteSource, MAX_RECORD_BYTES, Position, Records, Rule, SplitError, trimmed};
use crate::dealer::{Dealer, Offered};
use crate::error::Error;
use crate::handover::Suspects;
use crate::shard::Shard;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Bytes of input in a batch, unless a single record is larger.
const MAX_BATCH_BYTES: usize = 64 << 20;
/// What a record counts besides its bytes: so a batch has at most about a million records, however short.
const RECORD_OVERHEAD_BYTES: usize = 64;
/// How old a batch gets before it is offered although it is not full.
const MAX_BATCH_AGE: Duration = Duration::from_millis(100);

/// One record: an instance to be.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) location: Location,
    pub(crate) stdin: Bytes,
    /// Bytes of `stdin` before the record itself: CSV's header.
    lead: usize,
    /// Why the record cannot be run.
    pub(crate) flaw: Option<Flaw>,
}

impl Record {
    /// Returns the record itself, without what all records have in front and the end of its line.
    pub(crate) fn content(&self) -> &[u8] {
        match &self.location {
            Location::Line(_) => self.text(),
            Location::File(_) => &self.stdin,
        }
    }

    /// Returns CSV's header.
    pub(crate) fn header(&self) -> &[u8] {
        &self.stdin[..self.lead]
    }

    /// Returns what `{}` stands for.
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
    /// The line in which it begins, from 1.
    Line(u64),
    /// A path below the input folder.
    File(PathBuf),
}

/// A position in the input, between two records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) records: u64,
    pub(crate) offset: u64,
    pub(crate) line: u64,
    /// Hash of the input so far, if it is not a file that its size and time identify.
    pub(crate) seen: Option<String>,
    /// Where another process must begin to read a stream's bytes, to continue here.
    #[serde(default)]
    pub(crate) anchor: Option<Anchor>,
}

/// Records that run together.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The number of its first record, from 0.
    pub(crate) first: u64,
    pub(crate) records: Vec<Record>,
    /// The position after its last record.
    pub(crate) mark: Mark,
}

/// The input as records.
#[derive(Debug)]
pub(crate) struct Reader {
    source: RecordSource,
    /// Records that were read.
    records: u64,
    /// A batch that was read already; it is given before all others.
    first: Option<Batch>,
    /// Records that are given a few at a time.
    suspects: Option<Suspects>,
}

#[derive(Debug)]
enum RecordSource {
    Stream(Box<Records>),
    Files(Box<Files>),
    Objects(Box<ObjectFiles>),
}

impl Reader {
    pub(crate) fn stream(source: ByteSource, rule: Rule) -> Result<Self, Error> {
        let records = Records::new(source, rule, MAX_RECORD_BYTES).map_err(Error::ReadHeader)?;
        Ok(Self::new(RecordSource::Stream(Box::new(records))))
    }

    /// Continues a stream that another process began.
    pub(crate) fn continued(source: ByteSource, rule: Rule, header: Vec<u8>, anchor: Anchor) -> Self {
        let records = Records::continued(source, rule, MAX_RECORD_BYTES, header, anchor);
        Self::new(RecordSource::Stream(Box::new(records)))
    }

    pub(crate) fn folder(root: InputFolder) -> Result<Self, Error> {
        Ok(Self::new(RecordSource::Files(Box::new(Files::new(root)?))))
    }

    pub(crate) fn objects(files: ObjectFiles) -> Self {
        Self::new(RecordSource::Objects(Box::new(files)))
    }

    fn new(source: RecordSource) -> Self {
        Self { source, records: 0, first: None, suspects: None }
    }

    /// Returns CSV's header; empty for other inputs.
    pub(crate) fn header(&self) -> &[u8] {
        match &self.source {
            RecordSource::Stream(records) => records.header(),
            RecordSource::Files(_) | RecordSource::Objects(_) => &[],
        }
    }

    /// Ends where the shard does. Returns the shard's share of the input.
    pub(crate) fn end_with(&mut self, shard: Shard) -> Result<Range<u64>, Error> {
        match &mut self.source {
            RecordSource::Stream(records) => {
                let length = records.length().map_err(|error| Error::read("the input", error))?;
                let share = shard.share(length.ok_or(Error::ShardOfStream)?);
                records.end_at(share.end);
                Ok(share)
            }
            RecordSource::Files(files) => {
                let share = shard.share(files.total()?);
                files.end_at(share.end);
                Ok(share)
            }
            RecordSource::Objects(files) => {
                let share = shard.share(files.total());
                files.end_at(share.end);
                Ok(share)
            }
        }
    }

    /// Skips the records that begin before `offset`, which are those of the shards before this one.
    pub(crate) fn skip_before(&mut self, offset: u64) -> Result<(), Error> {
        self.records = match &mut self.source {
            RecordSource::Stream(records) => records.skip_before(offset).map_err(unreadable)?,
            RecordSource::Files(files) => files.skip_before(offset),
            RecordSource::Objects(files) => files.skip_before(offset),
        };
        Ok(())
    }

    /// Skips to the mark of an earlier run, if the input up to there is still the same.
    pub(crate) fn skip_to(&mut self, mark: &Mark) -> Result<(), Error> {
        match &mut self.source {
            RecordSource::Stream(records) => {
                let to = Position { offset: mark.offset, line: mark.line };
                let there = records.skip_to(to).map_err(|error| Error::read("the input", error))?;
                // A record has at least one byte.
                if !there || mark.records > mark.offset || records.seen() != mark.seen {
                    return Err(Error::InputChanged);
                }
            }
            RecordSource::Files(files) => {
                for _ in 0..mark.records {
                    let _ = files.next().ok_or(Error::InputChanged)?;
                }
                if Some(files.seen()) != mark.seen {
                    return Err(Error::InputChanged);
                }
            }
            RecordSource::Objects(files) => {
                if !files.skip_count(mark.records) || Some(files.seen()) != mark.seen {
                    return Err(Error::InputChanged);
                }
            }
        }
        self.records = mark.records;
        Ok(())
    }

    /// Makes these records be given a few at a time: one of them hangs.
    pub(crate) fn suspect(&mut self, suspects: Option<Suspects>) {
        self.suspects = suspects;
    }

    /// Reads the first batch; it is given later, before all others.
    pub(crate) fn read_first(&mut self, max_records: usize) -> Result<&Batch, Error> {
        let batch = self.take(max_records)?;
        Ok(self.first.insert(batch))
    }

    /// Returns the batch that was read already.
    pub(crate) fn first(&self) -> Option<&Batch> {
        self.first.as_ref()
    }

    /// Gives batches to the dealer until the input ends or nobody takes them any more.
    pub(crate) fn run(mut self, max_records: usize, dealer: &Dealer) -> Result<(), Error> {
        let first = self.first.take();
        if !give_if_any(first, dealer) {
            return Ok(());
        }
        while let Some(suspects) = self.suspects {
            let batch = self.take(suspects.batch as usize)?;
            if batch.records.is_empty() || batch.mark.records >= suspects.until {
                self.suspects = None;
            }
            if !give_if_any(Some(batch), dealer) {
                return Ok(());
            }
        }
        self.give_rest(max_records, dealer)
    }

    /// Returns the next full batch, or the rest of the input.
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

    /// Gives the rest of the input. Records that were read before an error are given, too.
    fn give_rest(mut self, max_records: usize, dealer: &Dealer) -> Result<(), Error> {
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
                if !dealer.give(batch) {
                    return Ok(());
                }
                continue;
            }
            match dealer.offer(batch) {
                Offered::Taken => {}
                Offered::Busy(batch) => gathered.put_back(batch),
                Offered::Over => return Ok(()),
            }
        };
        give_if_any(Some(gathered.take(self.mark())), dealer);
        ended
    }

    fn next(&mut self) -> Result<Option<Record>, Error> {
        let record = match &mut self.source {
            RecordSource::Stream(records) => records.next().map_err(unreadable)?.map(|piece| {
                let header = records.header();
                let stdin = if header.is_empty() { piece.bytes } else { [header, &piece.bytes].concat().into() };
                Record { location: Location::Line(piece.line), stdin, lead: header.len(), flaw: piece.flaw }
            }),
            RecordSource::Files(files) => files.next().map(|(path, opened)| {
                file(path, opened.and_then(|(file, stat)| content(file, &stat)).map(Bytes::from))
            }),
            RecordSource::Objects(files) => files.next()?.map(|(path, content)| file(path, content)),
        };
        self.records += u64::from(record.is_some());
        Ok(record)
    }

    /// Returns the position after the records that were read.
    pub(crate) fn mark(&self) -> Mark {
        match &self.source {
            RecordSource::Stream(records) => {
                let Position { offset, line } = records.position();
                Mark { records: self.records, offset, line, seen: records.seen(), anchor: records.anchor() }
            }
            RecordSource::Files(files) => Mark { records: self.records, seen: Some(files.seen()), ..Mark::default() },
            RecordSource::Objects(files) => Mark { records: self.records, seen: Some(files.seen()), ..Mark::default() },
        }
    }
}

fn file(path: PathBuf, content: Result<Bytes, Flaw>) -> Record {
    let (stdin, flaw) = match content {
        Ok(bytes) => (bytes, None),
        Err(flaw) => (Bytes::new(), Some(flaw)),
    };
    Record { location: Location::File(path), stdin, lead: 0, flaw }
}

/// Gives a batch to the dealer, if it has records. Returns whether anybody takes more.
fn give_if_any(batch: Option<Batch>, dealer: &Dealer) -> bool {
    batch.filter(|batch| !batch.records.is_empty()).is_none_or(|batch| dealer.give(batch))
}

/// A batch in the making.
struct Gathered {
    first: u64,
    records: Vec<Record>,
    bytes: usize,
    /// When its first record was read, or it was last offered.
    since: Instant,
}

impl Gathered {
    fn new(first: u64) -> Self {
        Self { first, records: Vec::new(), bytes: 0, since: Instant::now() }
    }

    fn add(&mut self, record: Record) {
        // Not when the batch before was given: that may have waited for long.
        if self.records.is_empty() {
            self.since = Instant::now();
        }
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

fn unreadable(error: SplitError) -> Error {
    match error {
        SplitError::Read(error) => Error::read("the input", error),
        too_long => Error::RecordTooLong(too_long),
    }
}
