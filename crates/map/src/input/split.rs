//! Splits a stream of bytes into records: lines, JSON values (one per line), or rows of CSV.
//!
//! Bytes are passed on as they are. Records do not depend on how the bytes arrive: any division of the stream into
//! reads gives the same records. Memory holds one record at a time, and a record has a limit, so that a file without
//! newlines, or with a quote that is never closed, leads to a message and not to an exhausted machine.
//!
//! CSV is RFC 4180 as far as it concerns records: a field that begins with a quote ends with a quote that is not
//! doubled, and newlines in between belong to the field; a quote anywhere else is an ordinary character. The separator
//! of fields is the first of `,` `;` tab `|` in the header. Empty lines are no rows, as in every reader of CSV.

use super::chain::{Anchor, Chain};
use super::flaw::Flaw;
use bytes::{Buf, Bytes, BytesMut};
use gpu_run_objects::Reader as ObjectReader;
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};

/// Bytes of one record, at most.
pub(crate) const MAX_RECORD_BYTES: usize = 1 << 30;
/// Bytes that are read of a file at once. A record that lies wholly within them is not copied.
const MAX_FILE_READ: usize = 1 << 20;
/// Bytes that are read of a pipe at once, at most.
const MAX_PIPE_READ: usize = 64 << 10;

/// How a stream is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Lines,
    Jsonl,
    Csv,
}

/// A position between two records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Bytes before it.
    pub(crate) offset: u64,
    /// Lines before it.
    pub(crate) line: u64,
}

/// One record as it is in the stream.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The line in which it begins, from 1.
    pub(crate) line: u64,
    /// Always with a newline at the end, even if the stream's last line has none.
    pub(crate) bytes: Bytes,
    /// Why it is not what the rule demands.
    pub(crate) flaw: Option<Flaw>,
}

/// Why no more records can be read.
#[derive(Debug, thiserror::Error)]
pub enum SplitError {
    #[error("{0}")]
    Read(#[from] io::Error),
    #[error("the record in line {line} is longer than {limit} bytes{}", if *.csv { ": is a closing quote missing?" } else { "" })]
    TooLong { line: u64, limit: usize, csv: bool },
}

/// Where records are read from.
pub(crate) enum ByteSource {
    /// Can be sought.
    File(File),
    /// Can be sought, too.
    Object(Box<ObjectReader>),
    /// Can be read once, in order. What was read is hashed, so that it can be recognized.
    Stream(Box<dyn Read + Send>),
}

impl Read for ByteSource {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Object(object) => object.read(buffer),
            Self::Stream(stream) => stream.read(buffer),
        }
    }
}

impl ByteSource {
    /// Returns the length, if the source can be sought.
    fn length(&self) -> io::Result<Option<u64>> {
        match self {
            Self::File(file) => file.metadata().map(|metadata| Some(metadata.len())),
            Self::Object(object) => Ok(Some(object.state().bytes)),
            Self::Stream(_) => Ok(None),
        }
    }
}

/// A source, and bytes that were read ahead. Taking some of these copies nothing.
struct Ahead {
    source: ByteSource,
    held: BytesMut,
}

impl Ahead {
    fn new(source: ByteSource) -> Self {
        Self { source, held: BytesMut::new() }
    }

    /// Takes the next `length` of the held bytes.
    fn take_held(&mut self, length: usize) -> Bytes {
        self.held.split_to(length).freeze()
    }

    fn seek(&mut self, offset: u64) -> io::Result<()> {
        self.held.clear();
        match &mut self.source {
            ByteSource::File(file) => file.seek(SeekFrom::Start(offset)).map(|_| ()),
            ByteSource::Object(object) => object.seek(SeekFrom::Start(offset)).map(|_| ()),
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
            // Reads into the rest of the last allocation while there is some: a slow pipe must not allocate for every
            // line.
            if self.held.capacity() < MAX_PIPE_READ {
                self.held.reserve(MAX_FILE_READ);
            }
            let length = if matches!(self.source, ByteSource::Stream(_)) { MAX_PIPE_READ } else { MAX_FILE_READ };
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
    /// Hash of the bytes before `at`, if the source is a stream.
    hasher: Option<Chain>,
    /// CSV's first row.
    header: Vec<u8>,
    separator: u8,
    /// Records that begin here, or after it, belong to other shards. Empty lines before a row of CSV belong to the row.
    end: u64,
}

impl Records {
    /// Begins to read. Of CSV, it reads the header.
    pub(crate) fn new(source: ByteSource, rule: Rule, limit: usize) -> Result<Self, SplitError> {
        let hasher = matches!(source, ByteSource::Stream(_)).then(Chain::new);
        let source = Ahead::new(source);
        let at = Position::default();
        let mut records = Self { source, rule, at, limit, hasher, header: Vec::new(), separator: b',', end: u64::MAX };
        if rule == Rule::Csv {
            // While the separator is unknown, a quote after any of the separators opens a field.
            records.separator = ANY;
            records.header = records.row()?.map_or_else(Vec::new, |piece| piece.bytes.to_vec());
            records.separator = separator(&records.header);
        }
        Ok(records)
    }

    /// Continues a stream that another process began, at an anchor before the records that process has done;
    /// [`Records::skip_to`] skips those.
    pub(crate) fn continued(source: ByteSource, rule: Rule, limit: usize, header: Vec<u8>, anchor: Anchor) -> Self {
        let (at, separator) = (Position { offset: anchor.offset, line: 0 }, separator(&header));
        let source = Ahead::new(source);
        Self { source, rule, at, limit, hasher: Some(anchor.into()), header, separator, end: u64::MAX }
    }

    /// Returns CSV's header; empty for other inputs.
    pub(crate) fn header(&self) -> &[u8] {
        &self.header
    }

    pub(crate) fn position(&self) -> Position {
        self.at
    }

    /// Returns the hash of a stream's bytes so far.
    pub(crate) fn seen(&self) -> Option<String> {
        self.hasher.as_ref().map(Chain::seen)
    }

    /// Returns where another process could continue a stream.
    pub(crate) fn anchor(&self) -> Option<Anchor> {
        self.hasher.as_ref().map(|hasher| hasher.anchor().clone())
    }

    /// Skips to a position that was reached before. Returns whether the input is that long.
    pub(crate) fn skip_to(&mut self, to: Position) -> io::Result<bool> {
        let Some(missing) = to.offset.checked_sub(self.at.offset) else { return Ok(false) };
        // A line has at least one byte.
        if to.line > to.offset || self.length()?.is_some_and(|length| to.offset > length) {
            return Ok(false);
        }
        let skipped = match &mut self.hasher {
            None => self.source.seek(to.offset).map(|()| missing)?,
            Some(hasher) => io::copy(&mut self.source.by_ref().take(missing), hasher)?,
        };
        self.at = to;
        Ok(skipped == missing)
    }

    /// Returns the length of the source, if it can be sought.
    pub(crate) fn length(&self) -> io::Result<Option<u64>> {
        self.source.source.length()
    }

    /// Ends before the record that begins at `offset` or after it.
    pub(crate) fn end_at(&mut self, offset: u64) {
        self.end = offset;
    }

    /// Skips the records that begin before `offset`. Returns how many they are.
    pub(crate) fn skip_before(&mut self, offset: u64) -> Result<u64, SplitError> {
        match self.rule {
            Rule::Lines | Rule::Jsonl => Ok(self.skip_lines_before(offset)?),
            // Only the quotes from the beginning on say where a row ends.
            Rule::Csv => {
                let mut count = 0;
                while self.at.offset < offset && self.row()?.is_some() {
                    count += 1;
                }
                Ok(count)
            }
        }
    }

    /// Lines are not looked at one by one: all newlines are counted but the last one, which is searched for.
    fn skip_lines_before(&mut self, offset: u64) -> io::Result<u64> {
        // The last line that is skipped has its first byte, and perhaps its newline, before `offset`.
        let Some(last) = offset.checked_sub(self.at.offset + 1) else { return Ok(0) };
        let mut newlines = NewlineCount(0);
        let before = io::copy(&mut self.source.by_ref().take(last), &mut newlines)?;
        let rest = self.source.skip_until(b'\n')? as u64;
        let lines = newlines.0 + u64::from(rest > 0);
        self.at = Position { offset: self.at.offset + before + rest, line: self.at.line + lines };
        Ok(lines)
    }

    pub(crate) fn next(&mut self) -> Result<Option<Piece>, SplitError> {
        if self.at.offset >= self.end {
            return Ok(None);
        }
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

    /// Returns the next line, if all of it was read already.
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
            scan = scan.line(&bytes[before..], self.separator);
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

    /// Reads to the next newline or the end of the input, and appends to `bytes`. Returns how many bytes that were.
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

/// Counts the newlines that are written to it.
struct NewlineCount(u64);

impl Write for NewlineCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // So many at once that their count fits a byte: compilers make vector instructions of that.
        let count = |bytes: &[u8]| bytes.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>();
        self.0 += bytes.chunks(usize::from(u8::MAX)).map(|bytes| u64::from(count(bytes))).sum::<u64>();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a record without the newline at its end.
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

/// Returns the message without its line number, which is always 1.
fn json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at line ") {
        Some((what, _)) if error.column() > 0 => format!("{what} at column {}", error.column()),
        Some((what, _)) => what.to_owned(),
        None => text,
    }
}

const SEPARATORS: &[u8] = b",;\t|";
/// Stands for every one of [`SEPARATORS`]; not a separator itself.
const ANY: u8 = 0;

/// Returns the first separator in a header that is not in quotes.
pub(crate) fn separator(header: &[u8]) -> u8 {
    let mut scan = Scan::FieldStart;
    for byte in header {
        if scan != Scan::Quoted && SEPARATORS.contains(byte) {
            return *byte;
        }
        scan = scan.step(*byte, ANY);
    }
    b','
}

/// The state within a row of CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scan {
    FieldStart,
    Bare,
    Quoted,
    /// After a quote that ends the field, or is the first of a doubled one.
    Quote,
}

impl Scan {
    /// Steps through a line.
    fn line(self, line: &[u8], separator: u8) -> Self {
        match self {
            // Most lines are whole rows without a quote.
            Self::FieldStart if !line.contains(&b'"') => Self::Bare,
            _ => line.iter().fold(self, |scan, byte| scan.step(*byte, separator)),
        }
    }

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
