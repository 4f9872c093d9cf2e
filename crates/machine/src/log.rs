//! A machine's log: every event that the machine took, with the tick that took it.
//!
//! A log is a header followed by records, each appended with one write. A record is: a tick and a count of events,
//! which give its length; a checksum of these; the events; and a checksum of the whole record. Every checksum also
//! covers the checksum before it. A crash leaves a record that is cut short: the log then ends before it, and
//! [`Recorder::append`] cuts it off. Any other mismatch is damage, and the log is refused, because records behind the
//! damage could not be told from ones that were never written. A machine that was shut down in good order leaves a last
//! record with its tick and the hash of its state, so that a replay can check its result.
//!
//! The log also holds the code that ticks ran with, as whole wasm modules: at its beginning, and wherever other code
//! was loaded. A replay needs nothing else.

use crate::checkpoint::Hash;
use crate::error::{At, Error, Result};
use crate::event::Event;
use crate::kernel::Kernel;
use crate::layout::VERSION;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"GPRLOG3\n";
/// Older formats, which can still be read. Their records have no checksum of the beginning, so damage there looks like
/// a crash.
const OLD_MAGICS: [&[u8; 8]; 2] = [b"GPRLOG1\n", b"GPRLOG2\n"];
/// Magic, version, first tick, and a checksum of these.
const HEADER: usize = 8 + 8 + 8 + CHECK;
/// A tick, and a count of events or [`END`] or [`CODE`].
const RECORD: usize = 8 + 8;
/// The checksum of a record's beginning, which gives its length.
const RECORD_CHECK: usize = 8;
const EVENT: usize = 24;
const CHECK: usize = 16;
const END: u64 = u64::MAX;
/// From this tick on, other code runs. What follows is the code's hash, the length of its module, and the module;
/// length 0 if the module is in the log already.
const CODE: u64 = u64::MAX - 1;
const CODE_HEADER: usize = 32 + 8;
const MAX_CODE_BYTES: u64 = 1 << 28;
/// More than a tick ever takes.
const MAX_TICK_EVENTS: u64 = 1 << 20;

type Check = [u8; CHECK];

fn check(before: &Check, bytes: &[u8]) -> Check {
    let mut hasher = blake3::Hasher::new();
    hasher.update(before).update(bytes);
    let mut check = [0; CHECK];
    hasher.finalize_xof().fill(&mut check);
    check
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Without a checksum of a record's beginning.
    Old,
    Current,
}

impl Format {
    fn of(magic: &[u8]) -> Option<Self> {
        match magic {
            magic if magic == MAGIC => Some(Self::Current),
            magic if OLD_MAGICS.iter().any(|old| magic == *old) => Some(Self::Old),
            _ => None,
        }
    }

    fn record_check(self) -> usize {
        match self {
            Self::Old => 0,
            Self::Current => RECORD_CHECK,
        }
    }
}

fn record_check(last: &Check, begin: &[u8]) -> [u8; RECORD_CHECK] {
    let mut sum = [0; RECORD_CHECK];
    sum.copy_from_slice(&check(last, begin)[..RECORD_CHECK]);
    sum
}

/// Writes a log.
#[derive(Debug)]
pub struct Recorder {
    file: File,
    path: PathBuf,
    format: Format,
    last: Check,
    record: Vec<u8>,
    /// Hashes of the modules that are in the log.
    known: Vec<Hash>,
}

impl Recorder {
    /// Creates a log, over any file that is there.
    pub fn create(path: &Path, tick: u64) -> Result<Self> {
        let mut bytes = Vec::from(MAGIC);
        bytes.extend((VERSION as u64).to_le_bytes());
        bytes.extend(tick.to_le_bytes());
        let last = check(&[0; CHECK], &bytes);
        bytes.extend(last);
        let mut file = File::create(path).at(path)?;
        file.write_all(&bytes).at(path)?;
        file.sync_all().at(path)?;
        let (format, record, known) = (Format::Current, Vec::new(), Vec::new());
        Ok(Self { file, path: path.to_owned(), format, last, record, known })
    }

    /// Continues a log that was read. Cuts off what a crash left at its end, and the closing record of a machine that
    /// was shut down.
    pub fn append(path: &Path, log: &Log) -> Result<Self> {
        let mut file = OpenOptions::new().write(true).open(path).at(path)?;
        file.set_len(log.length).at(path)?;
        file.seek(SeekFrom::End(0)).at(path)?;
        let known = log.modules.iter().map(|(hash, _)| *hash).collect();
        let (format, last, record) = (log.format, log.last, Vec::new());
        Ok(Self { file, path: path.to_owned(), format, last, record, known })
    }

    /// Whether the log says which code it begins with.
    pub(crate) fn has_code(&self) -> bool {
        !self.known.is_empty()
    }

    /// Records that the machine runs this code from this tick on.
    pub(crate) fn code(&mut self, tick: u64, kernel: &Kernel) -> Result<()> {
        let hash = kernel.hash();
        let module: &[u8] = if self.known.contains(&hash) { &[] } else { kernel.wasm() };
        let length = (module.len() as u64).to_le_bytes();
        self.begin(tick, CODE, &[&hash.as_bytes()[..], &length].concat());
        self.record.extend(module);
        self.known.push(hash);
        self.finish()?;
        self.sync()
    }

    /// Records the events that a tick took.
    pub fn events(&mut self, tick: u64, events: &[Event]) -> Result<()> {
        self.begin(tick, events.len() as u64, &[]);
        for event in events {
            self.record.extend(event.words().iter().flat_map(|word| word.to_le_bytes()));
        }
        self.finish()
    }

    /// Records that the machine was shut down after this tick, with the hash of its state.
    pub fn end(&mut self, tick: u64, hash: &Hash) -> Result<()> {
        self.begin(tick, END, &[]);
        self.record.extend(hash.as_bytes());
        self.finish()?;
        self.sync()
    }

    fn begin(&mut self, tick: u64, what: u64, more: &[u8]) {
        self.record.clear();
        self.record.extend(tick.to_le_bytes());
        self.record.extend(what.to_le_bytes());
        self.record.extend(more);
        if self.format == Format::Current {
            let sum = record_check(&self.last, &self.record);
            self.record.extend(sum);
        }
    }

    fn finish(&mut self) -> Result<()> {
        let last = check(&self.last, &self.record);
        self.record.extend(last);
        self.file.write_all(&self.record).at(&self.path)?;
        self.last = last;
        Ok(())
    }

    /// Returns when everything that was written is on disk.
    pub fn sync(&mut self) -> Result<()> {
        self.file.sync_data().at(&self.path)
    }
}

/// A log that was read from a file.
#[derive(Clone, Debug)]
pub struct Log {
    /// The log's first tick.
    pub from: u64,
    /// Ticks that took events, in order.
    pub ticks: Vec<(u64, Vec<Event>)>,
    /// The ticks at which other code took over, in order, with its hash. The first is the code that the machine began
    /// with.
    pub codes: Vec<(u64, Hash)>,
    /// The modules that `codes` names.
    modules: Vec<(Hash, Vec<u8>)>,
    /// The tick at which the machine was shut down, and the hash of its state.
    pub end: Option<(u64, Hash)>,
    /// Bytes after the last good record: what a crash left.
    pub torn: u64,
    /// Bytes up to the end of the last record of events or code.
    length: u64,
    last: Check,
    format: Format,
}

impl Log {
    pub fn read(path: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        File::open(path).at(path)?.read_to_end(&mut bytes).at(path)?;
        Self::decode(&bytes).map_err(|refused| match refused {
            Refused::Version(theirs) => Error::Version { path: path.to_owned(), theirs, ours: VERSION },
            Refused::Foreign => Error::Foreign { path: path.to_owned(), why: "it is not a machine's log".to_owned() },
            Refused::Damaged { at, tick } => {
                let why = format!(
                    "its record at byte {at}, after tick {tick}, is damaged; `truncate -s {at}` keeps the intact part before it"
                );
                Error::Damaged { path: path.to_owned(), why }
            }
            Refused::Header => Error::Damaged { path: path.to_owned(), why: "its header is damaged".to_owned() },
        })
    }

    /// Returns the tick that a replay reaches: where the machine was shut down, else the tick after the last one that
    /// took events or the tick at which other code took over, whichever is later. Ticks in between that took no events
    /// count: without them, a machine that continues from the log would do them with other code than the log says.
    pub fn last_tick(&self) -> u64 {
        let took = self.ticks.iter().map(|(tick, _)| tick.saturating_add(1)).max().unwrap_or(self.from);
        let reached = self.codes.last().map_or(took, |(tick, _)| took.max(*tick));
        self.end.map_or(reached, |(tick, _)| tick)
    }

    fn decode(bytes: &[u8]) -> Result<Self, Refused> {
        let magic = bytes.get(..MAGIC.len()).ok_or(Refused::Foreign)?;
        let unknown = if is_nearly(magic, MAGIC) { Refused::Header } else { Refused::Foreign };
        let format = Format::of(magic).ok_or(unknown)?;
        let (head, stored) = bytes.get(..HEADER).ok_or(Refused::Header)?.split_at(HEADER - CHECK);
        let last = check(&[0; CHECK], head);
        if last != stored {
            return Err(Refused::Header);
        }
        if number(bytes, 8) != Some(VERSION as u64) {
            return Err(Refused::Version(number(bytes, 8).unwrap_or(0) as u32));
        }
        let mut log = Self {
            from: number(bytes, 16).unwrap_or(0),
            ticks: Vec::new(),
            codes: Vec::new(),
            modules: Vec::new(),
            end: None,
            torn: 0,
            length: HEADER as u64,
            last,
            format,
        };
        let mut at = HEADER;
        let mut last = last;
        loop {
            let rest = &bytes[at..];
            let damaged = Refused::Damaged { at: at as u64, tick: log.last_tick() };
            let (begin, length) = match record_length(rest, format, &last) {
                Found::Whole { begin, length } if log.end.is_none() => (begin, length),
                Found::Nothing => break,
                Found::Torn if log.end.is_none() => break,
                _ => return Err(damaged),
            };
            let (record, stored) = rest[..length].split_at(length - CHECK);
            let expected = check(&last, record);
            if expected != stored {
                return Err(damaged);
            }
            (last, at) = (expected, at + length);
            let tick = number(record, 0).unwrap_or(0);
            let (begin, body) = (&record[..begin], &record[begin + format.record_check()..]);
            match number(record, 8) {
                Some(END) => {
                    log.end = body.try_into().ok().map(|hash| (tick, Hash::from_bytes(hash)));
                    continue;
                }
                Some(CODE) => log.code(tick, &begin[RECORD..], body),
                _ => log.ticks.push((tick, body.chunks_exact(EVENT).map(event).collect())),
            }
            (log.length, log.last) = (at as u64, last);
        }
        log.torn = (bytes.len() - at) as u64;
        Ok(log)
    }

    fn code(&mut self, tick: u64, about: &[u8], module: &[u8]) {
        let Some(hash) = about.first_chunk().map(|hash| Hash::from_bytes(*hash)) else { return };
        if !module.is_empty() {
            self.modules.push((hash, module.to_vec()));
        }
        // New code at the same or an earlier tick: the load before was taken back.
        self.codes.retain(|(since, _)| *since < tick);
        self.codes.push((tick, hash));
    }

    /// Returns a module of this log by its hash.
    pub fn kernel(&self, hash: Hash) -> Result<Kernel> {
        let module = self.modules.iter().find(|(known, _)| *known == hash).map(|(_, module)| module.clone());
        let missing = || Error::Usage(format!("the log has ticks of the code {hash}, but not the code itself"));
        let kernel = Kernel::named(&format!("the log's code {hash}"), module.ok_or_else(missing)?)?;
        if kernel.hash() != hash {
            return Err(Error::Usage(format!(
                "the log's code {hash} does not match its hash: it has {}",
                kernel.hash()
            )));
        }
        Ok(kernel)
    }

    /// Returns stretches of ticks that ran with the same code, from a tick on: the code's hash, the first tick, and the
    /// tick after the last.
    pub(crate) fn stretches(&self, from: u64) -> Vec<(Option<Hash>, u64, u64)> {
        let end = self.last_tick().max(from);
        let before = self.codes.iter().rev().find(|(tick, _)| *tick <= from).map(|(_, hash)| *hash);
        let mut stretches = vec![(before, from, end)];
        for (tick, hash) in self.codes.iter().filter(|(tick, _)| (from + 1..=end).contains(tick)) {
            if let Some(last) = stretches.last_mut() {
                last.2 = *tick;
            }
            stretches.push((Some(*hash), *tick, end));
        }
        stretches
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Refused {
    Version(u32),
    Foreign,
    Header,
    /// The record at byte `at` is damaged; the log is good up to `tick`.
    Damaged {
        at: u64,
        tick: u64,
    },
}

/// Whether these bytes are the magic number but for slight damage: at least six of eight match.
pub(crate) fn is_nearly(magic: &[u8], expected: &[u8; 8]) -> bool {
    magic.iter().zip(expected).filter(|(a, b)| a == b).count() >= 6
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

/// What follows the last good record.
enum Found {
    Nothing,
    /// A whole record: the length of its beginning, and its full length.
    Whole {
        begin: usize,
        length: usize,
    },
    /// What a crash leaves: a record that is cut short, or space that was allocated and never written.
    Torn,
    Damage,
}

fn record_length(rest: &[u8], format: Format, last: &Check) -> Found {
    if rest.is_empty() {
        return Found::Nothing;
    }
    let Some(what) = number(rest, 8) else { return Found::Torn };
    let begin = RECORD + if what == CODE { CODE_HEADER } else { 0 };
    let Some(head) = rest.get(..begin + format.record_check()) else { return Found::Torn };
    let (said, sum) = head.split_at(begin);
    if format == Format::Current && sum != record_check(last, said) {
        return if rest.iter().all(|byte| *byte == 0) { Found::Torn } else { Found::Damage };
    }
    let body = match what {
        END => 32,
        CODE => match number(said, RECORD + 32) {
            Some(module) if module <= MAX_CODE_BYTES => module as usize,
            _ => return Found::Damage,
        },
        count if count <= MAX_TICK_EVENTS => count as usize * EVENT,
        _ => return Found::Damage,
    };
    let length = head.len() + body + CHECK;
    if length <= rest.len() { Found::Whole { begin, length } } else { Found::Torn }
}

fn event(bytes: &[u8]) -> Event {
    let mut words = [0; 6];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = bytes.try_into().map_or(0, u32::from_le_bytes);
    }
    Event::from_words(words)
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
