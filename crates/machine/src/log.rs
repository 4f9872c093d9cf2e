//! The log of a machine: every event it took, with the tick that took it.
//!
//! A log is a header and records, each appended with one write: a tick, its events, and a checksum of all that plus the checksum before it. What a crash leaves of
//! the last record does not check, and the log ends before it; going on cuts it off. A machine that ended in good order leaves a last record with its tick
//! and the hash of its state, so that a replay knows what it should come to.
//!
//! The code that ticks ran with is in the log, too, the module itself: at its beginning, and wherever other code was loaded. A replay needs nothing else.

use crate::checkpoint::Hash;
use crate::error::{At, Error, Result};
use crate::event::Event;
use crate::image::Image;
use crate::layout::VERSION;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"GPRLOG2\n";
/// Of logs that know of one code only.
const OLD_MAGIC: &[u8; 8] = b"GPRLOG1\n";
/// Magic, version, tick it begins with, their checksum.
const HEADER: usize = 8 + 8 + 8 + CHECK;
/// Tick, and how many events; or [`END`], or [`CODE`].
const RECORD: usize = 8 + 8;
const EVENT: usize = 24;
const CHECK: usize = 16;
const END: u64 = u64::MAX;
/// From this tick on it is other code: its hash, the bytes of its module, and these, unless they are in the log already.
const CODE: u64 = u64::MAX - 1;
const CODE_HEADER: usize = 32 + 8;
const MOST_CODE: u64 = 1 << 28;
/// More than a tick ever takes.
const MOST: u64 = 1 << 20;

type Check = [u8; CHECK];

fn check(before: &Check, bytes: &[u8]) -> Check {
    let mut hasher = blake3::Hasher::new();
    hasher.update(before).update(bytes);
    let mut check = [0; CHECK];
    hasher.finalize_xof().fill(&mut check);
    check
}

/// Writes a log.
#[derive(Debug)]
pub struct Recorder {
    file: File,
    path: PathBuf,
    last: Check,
    record: Vec<u8>,
    /// Codes that are in the log.
    known: Vec<Hash>,
}

impl Recorder {
    /// Begins a log, over what was there.
    pub fn create(path: &Path, tick: u64) -> Result<Self> {
        let mut bytes = Vec::from(MAGIC);
        bytes.extend((VERSION as u64).to_le_bytes());
        bytes.extend(tick.to_le_bytes());
        let last = check(&[0; CHECK], &bytes);
        bytes.extend(last);
        let mut file = File::create(path).at(path)?;
        file.write_all(&bytes).at(path)?;
        file.sync_all().at(path)?;
        Ok(Self { file, path: path.to_owned(), last, record: Vec::new(), known: Vec::new() })
    }

    /// Goes on with a log that was read: what a crash left at its end is cut off, and so is its last record if it ended in good order.
    pub fn append(path: &Path, log: &Log) -> Result<Self> {
        let mut file = OpenOptions::new().write(true).open(path).at(path)?;
        file.set_len(log.length).at(path)?;
        file.seek(SeekFrom::End(0)).at(path)?;
        let known = log.modules.iter().map(|(hash, _)| *hash).collect();
        Ok(Self { file, path: path.to_owned(), last: log.last, record: Vec::new(), known })
    }

    /// Whether it says already with which code it begins.
    pub(crate) fn has_code(&self) -> bool {
        !self.known.is_empty()
    }

    /// From this tick on the machine runs this.
    pub(crate) fn code(&mut self, tick: u64, image: &Image) -> Result<()> {
        let hash = image.hash();
        let module: &[u8] = if self.known.contains(&hash) { &[] } else { image.wasm() };
        self.record.clear();
        self.record.extend(tick.to_le_bytes());
        self.record.extend(CODE.to_le_bytes());
        self.record.extend(hash.as_bytes());
        self.record.extend((module.len() as u64).to_le_bytes());
        self.record.extend(module);
        self.known.push(hash);
        self.finish()?;
        self.sync()
    }

    /// The events that a tick took.
    pub fn events(&mut self, tick: u64, events: &[Event]) -> Result<()> {
        self.record.clear();
        self.record.extend(tick.to_le_bytes());
        self.record.extend((events.len() as u64).to_le_bytes());
        for event in events {
            self.record.extend(event.words().iter().flat_map(|word| word.to_le_bytes()));
        }
        self.finish()
    }

    /// The machine has ended after this tick.
    pub fn end(&mut self, tick: u64, hash: &Hash) -> Result<()> {
        self.record.clear();
        self.record.extend(tick.to_le_bytes());
        self.record.extend(END.to_le_bytes());
        self.record.extend(hash.as_bytes());
        self.finish()?;
        self.sync()
    }

    fn finish(&mut self) -> Result<()> {
        let last = check(&self.last, &self.record);
        self.record.extend(last);
        self.file.write_all(&self.record).at(&self.path)?;
        self.last = last;
        Ok(())
    }

    /// All that was written is on disk.
    pub fn sync(&mut self) -> Result<()> {
        self.file.sync_data().at(&self.path)
    }
}

/// A log, read.
#[derive(Clone, Debug)]
pub struct Log {
    /// The tick it begins with.
    pub from: u64,
    /// Ticks that took events, in order.
    pub ticks: Vec<(u64, Vec<Event>)>,
    /// Ticks from which on it was other code, in order, and which; the first is what the machine began with.
    pub codes: Vec<(u64, Hash)>,
    /// The modules of those.
    modules: Vec<(Hash, Vec<u8>)>,
    /// Where the machine ended, and what its state was.
    pub end: Option<(u64, Hash)>,
    /// Bytes behind the last good record: what a crash left.
    pub torn: u64,
    /// Bytes up to the last record of events.
    length: u64,
    last: Check,
}

impl Log {
    pub fn read(path: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        File::open(path).at(path)?.read_to_end(&mut bytes).at(path)?;
        Self::decode(&bytes).map_err(|refused| match refused {
            Refused::Version(theirs) => Error::Version { path: path.to_owned(), theirs, ours: VERSION },
            Refused::Foreign => Error::Damaged { path: path.to_owned(), why: "it is no log of a machine".to_owned() },
        })
    }

    /// The tick a replay comes to: where the machine ended, or behind the last that took events.
    pub fn last_tick(&self) -> u64 {
        let took = self.ticks.iter().map(|(tick, _)| tick + 1).max().unwrap_or(self.from);
        self.end.map_or(took, |(tick, _)| tick)
    }

    fn decode(bytes: &[u8]) -> Result<Self, Refused> {
        if bytes.len() < HEADER || ![MAGIC, OLD_MAGIC].iter().any(|magic| bytes[..8] == magic[..]) {
            return Err(Refused::Foreign);
        }
        let mut last = check(&[0; CHECK], &bytes[..HEADER - CHECK]);
        if number(bytes, 8) != Some(VERSION as u64) {
            return Err(Refused::Version(number(bytes, 8).unwrap_or(0) as u32));
        }
        if last != bytes[HEADER - CHECK..HEADER] {
            return Err(Refused::Foreign);
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
        };
        let mut at = HEADER;
        while let Some(length) = record_length(bytes, at) {
            let (record, stored) = bytes[at..at + length].split_at(length - CHECK);
            let expected = check(&last, record);
            if expected != stored {
                break;
            }
            (last, at) = (expected, at + length);
            let tick = number(record, 0).unwrap_or(0);
            let body = &record[RECORD..];
            if number(record, 8) == Some(END) {
                let hash = body.try_into().map(Hash::from_bytes);
                log.end = hash.ok().map(|hash| (tick, hash));
                continue;
            }
            if number(record, 8) == Some(CODE) {
                log.code(tick, body);
            } else {
                log.ticks.push((tick, body.chunks_exact(EVENT).map(event).collect()));
            }
            (log.end, log.length, log.last) = (None, at as u64, last);
        }
        log.torn = (bytes.len() - at) as u64;
        Ok(log)
    }

    fn code(&mut self, tick: u64, body: &[u8]) {
        let Some(Ok(hash)) = body.get(..32).map(|hash| hash.try_into().map(Hash::from_bytes)) else { return };
        let module = &body[CODE_HEADER..];
        if !module.is_empty() {
            self.modules.push((hash, module.to_vec()));
        }
        // A load that was taken back is none.
        self.codes.retain(|(since, _)| *since < tick);
        self.codes.push((tick, hash));
    }

    /// Code of this log.
    pub fn image(&self, hash: Hash) -> Result<Image> {
        let module = self.modules.iter().find(|(known, _)| *known == hash).map(|(_, module)| module.clone());
        let missing = || Error::Usage(format!("the log has ticks of the code {hash}, and not the code itself"));
        Image::named(&format!("the log's code {hash}"), module.ok_or_else(missing)?)
    }

    /// Stretches of ticks that ran with one code, from a tick on: that, the first tick, and the tick behind the last.
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

#[derive(Debug)]
enum Refused {
    Version(u32),
    Foreign,
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

/// Bytes of the record that begins here, if there can be one.
fn record_length(bytes: &[u8], at: usize) -> Option<usize> {
    let body = match number(bytes, at + 8)? {
        END => 32,
        CODE => CODE_HEADER + number(bytes, at + RECORD + 32).filter(|module| *module <= MOST_CODE)? as usize,
        count if count <= MOST => count as usize * EVENT,
        _ => return None,
    };
    Some(RECORD + body + CHECK).filter(|length| at + length <= bytes.len())
}

fn event(bytes: &[u8]) -> Event {
    let mut words = [0; 6];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = bytes.try_into().map_or(0, u32::from_le_bytes);
    }
    Event::from_words(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(id: u32) -> Event {
        Event { kind: 4, flags: 1, key: 9, a: 2, b: u32::MAX, id, wait: 0 }
    }

    fn written(path: &Path) -> Vec<u8> {
        let mut recorder = Recorder::create(path, 3).unwrap();
        recorder.events(5, &[sample(1), sample(2)]).unwrap();
        recorder.events(9, &[sample(3)]).unwrap();
        std::fs::read(path).unwrap()
    }

    #[test]
    fn what_was_recorded_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        written(&path);
        let log = Log::read(&path).unwrap();
        assert_eq!((log.from, log.torn, log.last_tick()), (3, 0, 10));
        assert_eq!(log.ticks, [(5, vec![sample(1), sample(2)]), (9, vec![sample(3)])]);
    }

    #[test]
    fn the_code_of_every_tick_is_in_the_log_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (first, second) = (Image::built_in(), Image::named("debug", crate::KERNEL_DEBUG.to_vec()).unwrap());
        let mut recorder = Recorder::create(&path, 0).unwrap();
        recorder.code(0, &first).unwrap();
        recorder.events(5, &[sample(1)]).unwrap();
        recorder.code(7, &second).unwrap();
        recorder.code(9, &first).unwrap();
        recorder.code(9, &second).unwrap();
        let log = Log::read(&path).unwrap();
        assert_eq!(log.codes, [(0, first.hash()), (7, second.hash()), (9, second.hash())]);
        assert_eq!(log.modules.len(), 2);
        assert_eq!(log.image(second.hash()).unwrap(), second);
        Recorder::append(&path, &log).unwrap().code(12, &first).unwrap();
        Recorder::append(&path, &Log::read(&path).unwrap()).unwrap().events(20, &[]).unwrap();
        let log = Log::read(&path).unwrap();
        assert_eq!((log.modules.len(), log.torn, log.last_tick()), (2, 0, 21));
        let hashes = [Some(second.hash()), Some(second.hash()), Some(first.hash())];
        assert_eq!(log.stretches(8), [(hashes[0], 8, 9), (hashes[1], 9, 12), (hashes[2], 12, 21)]);
        assert_eq!(log.stretches(30), [(hashes[2], 30, 30)]);
    }

    #[test]
    fn whatever_a_crash_leaves_of_the_last_record_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let bytes = written(&path);
        for length in HEADER..bytes.len() {
            let log = Log::decode(&bytes[..length]).unwrap();
            let whole = if length >= bytes.len() - (RECORD + EVENT + CHECK) { 1 } else { 0 };
            assert_eq!(log.ticks.len(), whole, "{length} bytes");
            assert_eq!(log.length + log.torn, length as u64);
        }
    }

    #[test]
    fn a_changed_byte_ends_the_log_there() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = written(&folder.path().join("log"));
        for at in HEADER..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x40;
            assert!(Log::decode(&bad).unwrap().ticks.len() < 2, "byte {at}");
        }
        assert!(Log::decode(&bytes[..HEADER - 1]).is_err());
    }

    #[test]
    fn going_on_cuts_off_what_was_torn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let bytes = written(&path);
        std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
        let mut recorder = Recorder::append(&path, &Log::read(&path).unwrap()).unwrap();
        recorder.events(11, &[sample(4)]).unwrap();
        recorder.end(20, &Hash::from_bytes([7; 32])).unwrap();
        let log = Log::read(&path).unwrap();
        assert_eq!(log.ticks.iter().map(|(tick, _)| *tick).collect::<Vec<_>>(), [5, 11]);
        assert_eq!((log.end, log.last_tick()), (Some((20, Hash::from_bytes([7; 32]))), 20));
        // And again: the end is no more.
        Recorder::append(&path, &log).unwrap().events(30, &[]).unwrap();
        assert_eq!(Log::read(&path).unwrap().last_tick(), 31);
    }
}
