//! A stream of bytes becomes records: lines, JSON values one a line, or rows of CSV.
//!
//! Bytes are passed on as they are. Nothing depends on how they arrive: any cutting of the stream into reads gives the
//! same records. Memory holds one record at a time, and a record has a limit, so that a file without newlines or a quote
//! that is never closed ends with a message and not with an exhausted machine.
//!
//! CSV is RFC 4180 as far as records need it: a field that begins with a quote ends with one that is not doubled, and newlines
//! in between belong to it; a quote anywhere else is a character like others. What separates fields is the first
//! of `,` `;` tab `|` in the header. Empty lines are no rows, as every reader of CSV has it.

use super::chain::{Anchor, Chain};
use super::flaw::Flaw;
use bytes::{Buf, Bytes, BytesMut};
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};

/// Bytes of one record at most.
pub(crate) const MAX_RECORD_BYTES: usize = 1 << 30;
/// What is read of a file at once. A record that lies in it whole stays there.
const MAX_FILE_READ: usize = 1 << 20;
/// What a pipe gives at once, at most.
const MAX_PIPE_READ: usize = 64 << 10;

/// How a stream is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Lines,
    Jsonl,
    Csv,
}

/// Between two records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Bytes before it.
    pub(crate) offset: u64,
    /// Lines before it.
    pub(crate) line: u64,
}

/// One record as it stands in the stream.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The line it begins in, from 1.
    pub(crate) line: u64,
    /// With a newline at its end, also if the stream's last line has none.
    pub(crate) bytes: Bytes,
    /// Why it is not what the rule asks for.
    pub(crate) flaw: Option<Flaw>,
}

/// Why no more records can be read.
#[derive(Debug, thiserror::Error)]
pub enum SplitError {
    #[error("{0}")]
    Read(#[from] io::Error),
    #[error("the record in line {line} is longer than {limit} bytes{}", if *.csv { ": is a quote never closed?" } else { "" })]
    TooLong { line: u64, limit: usize, csv: bool },
}

/// What records are read from.
pub(crate) enum ByteSource {
    /// Can be sought.
    File(File),
    /// Comes once, in order. What was read is hashed, so that it can be known again.
    Stream(Box<dyn Read + Send>),
}

impl Read for ByteSource {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Stream(stream) => stream.read(buffer),
        }
    }
}

/// A source, and what was read of it ahead. What is taken of that is not copied.
struct Ahead {
    source: ByteSource,
    held: BytesMut,
}

impl Ahead {
    fn new(source: ByteSource) -> Self {
        Self { source, held: BytesMut::new() }
    }

    /// The next so many bytes of what is held.
    fn take_held(&mut self, length: usize) -> Bytes {
        self.held.split_to(length).freeze()
    }

    fn seek(&mut self, offset: u64) -> io::Result<()> {
        self.held.clear();
        match &mut self.source {
            ByteSource::File(file) => file.seek(SeekFrom::Start(offset)).map(|_| ()),
            ByteSource::Stream(_) => Err(io::ErrorKind::NotSeekable.into()),
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Ahead {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.held.is_empty() {
            // Behind what was taken of the last stretch, while something of it is free: a slow pipe must not have one for each line.
            if self.held.capacity() < MAX_PIPE_READ {
                self.held.reserve(MAX_FILE_READ);
            }
            let length = if matches!(self.source, ByteSource::File(_)) { MAX_FILE_READ } else { MAX_PIPE_READ };
            self.held.resize(self.held.capacity().min(length), 0);
            let read = self.source.read(&mut self.held);
            self.held.truncate(*read.as_ref().unwrap_or(&0));
            read?;
        }
        Ok(&self.held)
    }

    fn consume(&mut self, count: usize) {
        self.held.advance(count);
    }
}

/// The records of a stream, one after the other.
pub(crate) struct Records {
    source: Ahead,
    rule: Rule,
    at: Position,
    limit: usize,
    /// Of the bytes before `at`, where the source is a stream.
    hasher: Option<Chain>,
    /// CSV's first row.
    header: Vec<u8>,
    separator: u8,
}

impl Records {
    /// Begins; of CSV, the header is read.
    pub(crate) fn new(source: ByteSource, rule: Rule, limit: usize) -> Result<Self, SplitError> {
        let hasher = matches!(source, ByteSource::Stream(_)).then(Chain::new);
        let source = Ahead::new(source);
        let at = Position::default();
        let mut records = Self { source, rule, at, limit, hasher, header: Vec::new(), separator: b',' };
        if rule == Rule::Csv {
            // While the separator is not known, quotes that open a field are found behind any of them.
            records.separator = ANY;
            records.header = records.row()?.map_or_else(Vec::new, |piece| piece.bytes.to_vec());
            records.separator = separator(&records.header);
        }
        Ok(records)
    }

    /// Goes on with a stream that another process has begun, at an anchor before what it has done: [`Records::skip_to`] leads there.
    pub(crate) fn continued(source: ByteSource, rule: Rule, limit: usize, header: Vec<u8>, anchor: Anchor) -> Self {
        let (at, separator) = (Position { offset: anchor.offset, line: 0 }, separator(&header));
        let source = Ahead::new(source);
        Self { source, rule, at, limit, hasher: Some(anchor.into()), header, separator }
    }

    /// What every row of CSV comes after; empty for the others.
    pub(crate) fn header(&self) -> &[u8] {
        &self.header
    }

    pub(crate) fn position(&self) -> Position {
        self.at
    }

    /// What a stream's bytes so far hash to.
    pub(crate) fn seen(&self) -> Option<String> {
        self.hasher.as_ref().map(Chain::seen)
    }

    /// From where another process could go on with a stream.
    pub(crate) fn anchor(&self) -> Option<Anchor> {
        self.hasher.as_ref().map(|hasher| hasher.anchor().clone())
    }

    /// Goes on from where another has been. Says whether there is that much.
    pub(crate) fn skip_to(&mut self, to: Position) -> io::Result<bool> {
        let Some(missing) = to.offset.checked_sub(self.at.offset) else { return Ok(false) };
        // A line has a byte at least.
        if to.line > to.offset
            || matches!(&self.source.source, ByteSource::File(file) if to.offset > file.metadata()?.len())
        {
            return Ok(false);
        }
        let skipped = match &mut self.hasher {
            None => self.source.seek(to.offset).map(|()| missing)?,
            Some(hasher) => io::copy(&mut self.source.by_ref().take(missing), hasher)?,
        };
        self.at = to;
        Ok(skipped == missing)
    }

    pub(crate) fn next(&mut self) -> Result<Option<Piece>, SplitError> {
        match self.rule {
            Rule::Lines => self.line(),
            Rule::Jsonl => Ok(self.line()?.map(|mut piece| {
                let json = serde_json::from_slice::<serde::de::IgnoredAny>(&piece.bytes);
                piece.flaw = json.err().map(|error| Flaw::NotJson(json_error(&error)));
                piece
            })),
            Rule::Csv => self.row(),
        }
    }

    fn line(&mut self) -> Result<Option<Piece>, SplitError> {
        let line = self.at.line + 1;
        if let Some(bytes) = self.line_at_hand()? {
            return Ok(Some(Piece { line, bytes, flaw: None }));
        }
        let mut bytes = Vec::new();
        if self.read_line(&mut bytes, line)? == 0 {
            return Ok(None);
        }
        Ok(Some(Piece { line, bytes: ended(bytes).into(), flaw: None }))
    }

    /// The next line, if all of it was read already.
    fn line_at_hand(&mut self) -> Result<Option<Bytes>, SplitError> {
        let held = &self.source.held;
        let length = (&mut &held[..]).skip_until(b'\n')?;
        if length > self.limit || !held[..length].ends_with(b"\n") {
            return Ok(None);
        }
        let bytes = self.source.take_held(length);
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&bytes);
        }
        self.at.offset += length as u64;
        self.at.line += 1;
        Ok(Some(bytes))
    }

    fn row(&mut self) -> Result<Option<Piece>, SplitError> {
        let (mut line, mut bytes, mut scan) = (self.at.line + 1, Vec::new(), Scan::FieldStart);
        loop {
            let before = bytes.len();
            let read = self.read_line(&mut bytes, line)?;
            scan = bytes[before..].iter().fold(scan, |scan, byte| scan.step(*byte, self.separator));
            if read == 0 || scan != Scan::Quoted {
                if !bytes.is_empty() && trimmed(&bytes).is_empty() {
                    // An empty line between rows.
                    (line, scan) = (self.at.line + 1, Scan::FieldStart);
                    bytes.clear();
                    continue;
                }
                let flaw = (scan == Scan::Quoted).then_some(Flaw::UnclosedQuote);
                return Ok((!bytes.is_empty()).then(|| Piece { line, bytes: ended(bytes).into(), flaw }));
            }
        }
    }

    /// Reads on to the next newline or the end, behind what is there. Says how much that was.
    fn read_line(&mut self, bytes: &mut Vec<u8>, line: u64) -> Result<usize, SplitError> {
        let before = bytes.len();
        let rest = (self.limit - before) as u64 + 1;
        let read = self.source.by_ref().take(rest).read_until(b'\n', bytes)?;
        if bytes.len() > self.limit {
            return Err(SplitError::TooLong { line, limit: self.limit, csv: self.rule == Rule::Csv });
        }
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&bytes[before..]);
        }
        self.at.offset += read as u64;
        self.at.line += u64::from(read > 0);
        Ok(read)
    }
}

/// A record without the newline at its end.
pub(crate) fn trimmed(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

fn ended(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.last().is_some_and(|last| *last != b'\n') {
        bytes.push(b'\n');
    }
    bytes
}

/// The message, without a line number that is always 1.
fn json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at line ") {
        Some((what, _)) if error.column() > 0 => format!("{what} at column {}", error.column()),
        Some((what, _)) => what.to_owned(),
        None => text,
    }
}

const SEPARATORS: &[u8] = b",;\t|";
/// Stands for every one of [`SEPARATORS`]; no separator itself.
const ANY: u8 = 0;

/// The first separator in a header that is not in quotes.
fn separator(header: &[u8]) -> u8 {
    let mut scan = Scan::FieldStart;
    for byte in header {
        if scan != Scan::Quoted && SEPARATORS.contains(byte) {
            return *byte;
        }
        scan = scan.step(*byte, ANY);
    }
    b','
}

/// Where in a row of CSV we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scan {
    FieldStart,
    Bare,
    Quoted,
    /// Behind a quote that ends the field, or is the first of a doubled one.
    Quote,
}

impl Scan {
    fn step(self, byte: u8, separator: u8) -> Self {
        let separates = byte == separator || separator == ANY && SEPARATORS.contains(&byte);
        match (self, byte) {
            (Self::Quoted, b'"') => Self::Quote,
            (Self::Quoted, _) | (Self::FieldStart | Self::Quote, b'"') => Self::Quoted,
            _ if separates => Self::FieldStart,
            _ => Self::Bare,
        }
    }
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").field("rule", &self.rule).field("at", &self.at).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
