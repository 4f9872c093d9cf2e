//! The file format of an entry.
//!
//! ```text
//!   0   8  magic
//!   8  32  BLAKE3 of everything from the key up to the first piece
//!  40  32  key
//!  72   4  version of this format
//!  76   4  how the payload is packed: 0 not at all, 1 LZ4
//!  80   8  bytes of the payload as stored
//!  88   8  bytes of the payload, unpacked
//!  96   8  microseconds it took to make
//! 104   8  seconds since 1970 when it was made
//! 112   4  bytes of the label
//! 116   4  number of pieces
//! 120      label; for each piece 4 bytes of length and its BLAKE3; the pieces
//! ```
//!
//! Integers are little-endian. The payload is cut into pieces of [`PIECE`] bytes. Each piece is packed, summed, read
//! and unpacked on its own, so that several cores can share the work, each through a buffer that stays in its cache,
//! straight into the caller's memory. The file ends with the last piece. A file that is shorter, longer or differs in a
//! bit is [`Damage`], and no byte of a piece is interpreted before its sum was found right.

use crate::Destination;
use crate::key::{KEY_BYTES, Key};
use crate::pieces::share;
use crate::trust::Distrust;
use parking_lot::Mutex;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MAGIC: [u8; 8] = *b"GPURUN\x1a\n";
/// Version of the format. The context string for keys, `key::CONTEXT`, changes with it.
const VERSION: u32 = 2;
/// Bytes before the label.
pub(crate) const HEADER: usize = 120;
/// Where the sum is; it covers everything that follows it, up to the first piece.
const SUM: std::ops::Range<usize> = 8..40;
/// Bytes of payload in a piece.
const PIECE: usize = 256 << 10;
/// Bytes of a piece's row in the index: its length and its sum.
const ROW: usize = 4 + SUM_BYTES;
const SUM_BYTES: usize = 32;
/// Pieces that make another thread worth starting.
const PIECES_A_THREAD: usize = 4;
/// Bytes to read first: enough for most headers and indices, and for the whole of a small entry.
const FIRST: usize = 8 << 10;

const PLAIN: u32 = 0;
const LZ4: u32 = 1;

/// An entry's header, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) key: [u8; KEY_BYTES],
    pub(crate) label: String,
    /// Bytes of the payload as stored, and unpacked (`given`).
    pub(crate) stored: u64,
    pub(crate) given: u64,
    pub(crate) took: Duration,
    pub(crate) made: SystemTime,
    packing: u32,
    /// Offsets of the index and of the first piece.
    index: u64,
    head: u64,
}

/// Why a file is not the entry it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("it is not a cache entry: its magic number is wrong")]
    Magic,
    #[error("it has format version {0}, but this gpu-run uses version {VERSION}")]
    Version(u32),
    #[error("it has {found} bytes, but should have {expected}")]
    Length { found: u64, expected: u64 },
    #[error("its checksum is wrong")]
    Sum,
    #[error("it is the entry of another key")]
    Key,
    #[error("its payload cannot be unpacked")]
    Packing,
    #[error("it cannot be loaded")]
    Useless,
    #[error("its name is not that of an entry")]
    Foreign,
    #[error("it is not a regular file")]
    Irregular,
    #[error("{0}")]
    Distrusted(Distrust),
}

/// Why an entry could not be decoded: the file is damaged, or reading it failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Damage(Damage),
    Io(io::Error),
}

impl From<Damage> for Failure {
    fn from(damage: Damage) -> Self {
        Failure::Damage(damage)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Io(error)
    }
}

/// A file that several threads read an entry from.
pub(crate) trait Source: Sync {
    /// Fills `room` with the bytes at offset `at`. Too few bytes are an error: the source was longer a moment ago.
    fn read_at(&self, at: u64, room: &mut [u8]) -> io::Result<()>;
}

impl Source for File {
    fn read_at(&self, at: u64, room: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(room, at)
    }
}

/// An entry's file in memory.
impl Source for [u8] {
    fn read_at(&self, at: u64, room: &mut [u8]) -> io::Result<()> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..));
        let bytes = rest.and_then(|rest| rest.get(..room.len()));
        room.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Returns the bytes of an entry's file. The payload is packed if that saves at least an eighth; below that, unpacking
/// costs more than reading saves.
pub(crate) fn encode(key: &Key, payload: &[u8], took: Duration, made: SystemTime) -> Vec<u8> {
    let packed: Vec<Vec<u8>> = payload.chunks(PIECE).map(lz4_flex::block::compress).collect();
    let (packing, pieces): (u32, Vec<&[u8]>) = match packed.iter().map(Vec::len).sum::<usize>() < payload.len() / 8 * 7
    {
        true => (LZ4, packed.iter().map(|piece| &piece[..]).collect()),
        false => (PLAIN, payload.chunks(PIECE).collect()),
    };
    let stored: usize = pieces.iter().map(|piece| piece.len()).sum();
    let label = key.label().as_bytes();
    let mut file = Vec::with_capacity(HEADER + label.len() + ROW * pieces.len() + stored);
    file.extend(MAGIC);
    file.extend([0; SUM_BYTES]);
    file.extend(key.hash());
    file.extend(VERSION.to_le_bytes());
    file.extend(packing.to_le_bytes());
    file.extend((stored as u64).to_le_bytes());
    file.extend((payload.len() as u64).to_le_bytes());
    file.extend((took.as_micros() as u64).to_le_bytes());
    file.extend(made.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_le_bytes());
    file.extend((label.len() as u32).to_le_bytes());
    file.extend((pieces.len() as u32).to_le_bytes());
    file.extend(label);
    for piece in &pieces {
        file.extend((piece.len() as u32).to_le_bytes());
        file.extend(blake3::hash(piece).as_bytes());
    }
    let sum = *blake3::hash(&file[SUM.end..]).as_bytes();
    file[SUM].copy_from_slice(&sum);
    pieces.iter().for_each(|piece| file.extend(*piece));
    file
}

/// Returns header and payload of an entry's file, if the file is whole and belongs to `key`.
pub(crate) fn decode<R: Destination>(
    source: &(impl Source + ?Sized),
    length: u64,
    key: &[u8; KEY_BYTES],
) -> Result<(About, R), Failure> {
    let entry = Entry::open(source, length)?;
    if entry.about.key != *key {
        return Err(Damage::Key.into());
    }
    let given = usize::try_from(entry.about.given).map_err(|_| Damage::Packing)?;
    let mut room = R::with_length(given)?;
    let bytes = room.as_mut().get_mut(..given).ok_or(Damage::Packing)?;
    let rooms: Vec<_> = bytes.chunks_mut(PIECE).map(Mutex::new).collect();
    entry.each(|index, piece| {
        let room = &mut **rooms[index].lock();
        match entry.about.packing {
            PLAIN if piece.len() == room.len() => room.copy_from_slice(piece),
            LZ4 if lz4_flex::block::decompress_into(piece, room).is_ok_and(|count| count == room.len()) => {}
            _ => return Err(Damage::Packing),
        }
        Ok(())
    })?;
    drop(rooms);
    Ok((entry.about, room))
}

/// Checks all sums of an entry's file and returns its header.
pub(crate) fn check(source: &(impl Source + ?Sized), length: u64) -> Result<About, Failure> {
    let entry = Entry::open(source, length)?;
    entry.each(|_, _| Ok(()))?;
    Ok(entry.about)
}

/// An entry whose header and index were read and checked.
struct Entry<'a, S: ?Sized> {
    source: &'a S,
    about: About,
    /// The first bytes of the file: at least header and index, and the whole of a small entry.
    first: Vec<u8>,
    /// Offset, length and sum of each piece.
    pieces: Vec<(u64, usize, [u8; SUM_BYTES])>,
}

impl<'a, S: Source + ?Sized> Entry<'a, S> {
    fn open(source: &'a S, length: u64) -> Result<Self, Failure> {
        let mut first = vec![0; length.min(FIRST as u64) as usize];
        source.read_at(0, &mut first)?;
        let head = read_header(&first, length)?.head as usize;
        if head > first.len() {
            let read = first.len();
            first.resize(head, 0);
            source.read_at(read as u64, &mut first[read..])?;
        }
        if blake3::hash(&first[SUM.end..head]).as_bytes()[..] != first[SUM] {
            return Err(Damage::Sum.into());
        }
        let about = read_header(&first, length)?;
        let rows = first[about.index as usize..head].chunks_exact(ROW);
        let mut at = about.head;
        let pieces: Vec<_> = rows
            .map(|row| {
                let (length, sum) = row.split_at(4);
                let length = u32::from_le_bytes(length.try_into().unwrap_or_default()) as usize;
                at = at.saturating_add(length as u64);
                (at.saturating_sub(length as u64), length, sum.try_into().unwrap_or_default())
            })
            .collect();
        if at != length || pieces.len() as u64 != about.given.div_ceil(PIECE as u64) {
            return Err(Damage::Packing.into());
        }
        Ok(Self { source, about, first, pieces })
    }

    /// Calls `work` with every piece whose sum is right, on several threads. Returns the first failure.
    fn each(&self, work: impl Fn(usize, &[u8]) -> Result<(), Damage> + Sync) -> Result<(), Failure> {
        let failure = Mutex::new(None);
        share(self.pieces.len(), self.pieces.len() / PIECES_A_THREAD, |index| {
            let done = self.with_piece(index, |piece| work(index, piece));
            if let Err(new) = done {
                failure.lock().get_or_insert(new);
            }
        });
        failure.into_inner().map_or(Ok(()), Err)
    }

    fn with_piece(&self, index: usize, work: impl FnOnce(&[u8]) -> Result<(), Damage>) -> Result<(), Failure> {
        thread_local! { static BUFFER: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) } }
        let (at, length, sum) = self.pieces[index];
        let checked = |piece: &[u8]| match *blake3::hash(piece).as_bytes() == sum {
            true => Ok(work(piece)?),
            false => Err(Damage::Sum.into()),
        };
        if let Some(piece) = self.first.get(at as usize..).and_then(|rest| rest.get(..length)) {
            return checked(piece);
        }
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < length {
                buffer.resize(length, 0);
            }
            let piece = &mut buffer[..length];
            self.source.read_at(at, piece)?;
            checked(piece)
        })
    }
}

/// Decodes the header from the first bytes of a file that is `length` bytes long. Checks only that the header is
/// consistent, not its sum.
pub(crate) fn read_header(start: &[u8], length: u64) -> Result<About, Damage> {
    let short = Damage::Length { found: length, expected: HEADER as u64 };
    let header: &[u8; HEADER] = start
        .first_chunk()
        .ok_or(if start.starts_with(&MAGIC) || MAGIC.starts_with(start) { short } else { Damage::Magic })?;
    let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
    if header[..8] != MAGIC {
        return Err(Damage::Magic);
    }
    if u32_at(72) != VERSION {
        return Err(Damage::Version(u32_at(72)));
    }
    let (packing, stored, given, label) = (u32_at(76), u64_at(80), u64_at(88), u64::from(u32_at(112)));
    let index = HEADER as u64 + label;
    let head = index + u64::from(u32_at(116)) * ROW as u64;
    let expected = head.saturating_add(stored);
    if expected != length {
        return Err(Damage::Length { found: length, expected });
    }
    if packing > LZ4 {
        return Err(Damage::Packing);
    }
    let mut key = [0; KEY_BYTES];
    key.copy_from_slice(&header[40..40 + KEY_BYTES]);
    // `start` may be too short to contain the label.
    let label = start.get(HEADER..HEADER + label as usize).unwrap_or_default();
    let made = UNIX_EPOCH.checked_add(Duration::from_secs(u64_at(104))).unwrap_or(UNIX_EPOCH);
    let (took, label) = (Duration::from_micros(u64_at(96)), String::from_utf8_lossy(label).into_owned());
    Ok(About { key, label, stored, given, took, made, packing, index, head })
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
