//! One entry as a file.
//!
//! ```text
//!   0   8  magic
//!   8  32  BLAKE3 of all that follows
//!  40  32  key
//!  72   4  version of this format
//!  76   4  how the payload is packed: 0 as it is, 1 LZ4 in pieces
//!  80   8  bytes of the payload as it is stored
//!  88   8  bytes of the payload as it was given
//!  96   8  microseconds it took to make
//! 104   8  seconds since 1970 when it was made
//! 112   4  bytes of the label
//! 116   4  zero
//! 120      label, payload
//! ```
//!
//! Integers are little-endian. The file ends with the payload: whatever is shorter, longer or differs in a bit is [`Damage`], and no
//! byte of the payload is looked at before the sum was found right.

use crate::key::{KEY_BYTES, Key};
use crate::pieces;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MAGIC: [u8; 8] = *b"GPURUN\x1a\n";
/// Version of the format. Also part of how keys are made, see `key`.
const VERSION: u32 = 1;
/// Bytes before the label.
pub(crate) const HEADER: usize = 120;
/// Where the sum is; it is of all that follows.
const SUM: std::ops::Range<usize> = 8..40;

const PLAIN: u32 = 0;
const LZ4: u32 = 1;

/// What an entry says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) key: [u8; KEY_BYTES],
    pub(crate) label: String,
    /// Bytes as stored, and as given.
    pub(crate) stored: u64,
    pub(crate) given: u64,
    pub(crate) took: Duration,
    pub(crate) made: SystemTime,
    packing: u32,
}

/// Why a file is not the entry it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("it is no entry: its magic number is another")]
    Magic,
    #[error("it has version {0} of the format, this is version {VERSION}")]
    Version(u32),
    #[error("it has {found} bytes and should have {expected}")]
    Length { found: u64, expected: u64 },
    #[error("its checksum is wrong")]
    Sum,
    #[error("it is the entry of another key")]
    Key,
    #[error("its payload does not unpack")]
    Packing,
    #[error("its user found it of no use")]
    Useless,
    #[error("it is not named like an entry")]
    Foreign,
}

/// An entry's file. Packed where that makes it smaller by an eighth: below that, unpacking costs more than reading saves.
pub(crate) fn encode(key: &Key, payload: &[u8], took: Duration, made: SystemTime) -> Vec<u8> {
    let packed = pieces::pack(payload);
    let (packing, stored) = match packed.len() < payload.len() / 8 * 7 {
        true => (LZ4, &packed[..]),
        false => (PLAIN, payload),
    };
    let label = key.label().as_bytes();
    let mut file = Vec::with_capacity(HEADER + label.len() + stored.len());
    file.extend(MAGIC);
    file.extend([0; SUM.end - SUM.start]);
    file.extend(key.hash());
    file.extend(VERSION.to_le_bytes());
    file.extend(packing.to_le_bytes());
    file.extend((stored.len() as u64).to_le_bytes());
    file.extend((payload.len() as u64).to_le_bytes());
    file.extend((took.as_micros() as u64).to_le_bytes());
    file.extend(made.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_le_bytes());
    file.extend((label.len() as u32).to_le_bytes());
    file.extend([0; 4]);
    file.extend(label);
    file.extend(stored);
    let sum = pieces::sum(&file[SUM.end..]);
    file[SUM].copy_from_slice(&sum);
    file
}

/// The payload of an entry's file, and what it says of itself, if it is whole and the one of this key.
pub(crate) fn decode(file: &[u8], key: &[u8; KEY_BYTES]) -> Result<(About, Vec<u8>), Damage> {
    let about = check(file)?;
    if about.key != *key {
        return Err(Damage::Key);
    }
    let payload = &file[file.len() - about.stored as usize..];
    let payload = match about.packing {
        PLAIN => payload.to_vec(),
        _ => pieces::unpack(payload, about.given as usize).ok_or(Damage::Packing)?,
    };
    match payload.len() as u64 == about.given {
        true => Ok((about, payload)),
        false => Err(Damage::Packing),
    }
}

/// What a whole file says of itself, its sum found right.
pub(crate) fn check(file: &[u8]) -> Result<About, Damage> {
    let about = read_header(file, file.len() as u64)?;
    match pieces::sum(&file[SUM.end..])[..] == file[SUM] {
        true => Ok(about),
        false => Err(Damage::Sum),
    }
}

/// What the beginning of a file says; `length` is the whole file's. Nothing is believed but that it is consistent.
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
    let expected = (HEADER as u64).saturating_add(label).saturating_add(stored);
    if expected != length {
        return Err(Damage::Length { found: length, expected });
    }
    if packing > LZ4 || u32_at(116) != 0 {
        return Err(Damage::Packing);
    }
    let mut key = [0; KEY_BYTES];
    key.copy_from_slice(&header[40..40 + KEY_BYTES]);
    // A header read without the rest may lack its label.
    let label = start.get(HEADER..HEADER + label as usize).unwrap_or_default();
    let made = UNIX_EPOCH.checked_add(Duration::from_secs(u64_at(104))).unwrap_or(UNIX_EPOCH);
    let (took, label) = (Duration::from_micros(u64_at(96)), String::from_utf8_lossy(label).into_owned());
    Ok(About { key, label, stored, given, took, made, packing })
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
