//! What an app and the desktop say to each other, over a stream of bytes: records of six words, as the desktop's events. For those who
//! write an app in another language, and for the desktop's own side.
//!
//! An app chooses the numbers of its widgets; 0 is none. It sends commands (`CREATE`, `DESTROY`, `SET`, `TEXT`, `PIXELS`, `POINT`) and
//! what is below; the desktop sends what its owners are told (`CLICKED` and so on) and answers.

use crate::event::*;

/// The environment variable that says which descriptor the stream is.
pub const VARIABLE: &str = "GPU_RUN_DESKTOP";
/// Bytes of a record.
pub const BYTES: usize = 24;
/// The most bytes that follow a record.
pub const MAX_FOLLOWING: usize = 1 << 20;

/// To the desktop: asks for the text of the widget `key`. From the desktop: `a` bytes of UTF-8 follow.
pub const TEXT_OF: u16 = 128;
/// To the desktop: asks how the desktop is. From the desktop: `a` bytes follow, lines with a name, a space, and a number.
pub const STATUS: u16 = 129;
/// To the desktop: asks for one tick, in `a` microseconds. From the desktop: the tick.
pub const TICK: u16 = 130;
/// To the desktop: starts an app. `a` bytes follow: its name and its arguments, each with a zero byte behind it.
pub const START: u16 = 131;
/// To the desktop: what came so far was read, and the app waits for more.
pub const ALIVE: u16 = 132;

/// A record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// What it is about.
    pub kind: u16,
    /// Depends on the kind, as everything else.
    pub flags: u16,
    /// Mostly a widget.
    pub key: u32,
    /// The first word.
    pub a: u32,
    /// The second word.
    pub b: u32,
    /// The third word.
    pub id: u32,
    /// The fourth word.
    pub wait: u32,
}

impl Record {
    /// Returns the bytes that stand for the record.
    pub fn to_bytes(&self) -> [u8; BYTES] {
        let words = [self.kind as u32 | (self.flags as u32) << 16, self.key, self.a, self.b, self.id, self.wait];
        let mut bytes = [0; BYTES];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Returns the record that the bytes stand for.
    pub fn from_bytes(bytes: &[u8; BYTES]) -> Self {
        let word = |n: usize| u32::from_le_bytes([bytes[n * 4], bytes[n * 4 + 1], bytes[n * 4 + 2], bytes[n * 4 + 3]]);
        let head = word(0);
        let (kind, flags) = (head as u16, (head >> 16) as u16);
        Self { kind, flags, key: word(1), a: word(2), b: word(3), id: word(4), wait: word(5) }
    }

    /// How many bytes follow a record of the app's.
    pub fn following(&self) -> usize {
        if self.kind == START { self.a as usize } else { 0 }
    }

    /// How many bytes follow a record of the desktop's.
    pub fn following_answer(&self) -> usize {
        if matches!(self.kind, TEXT_OF | STATUS) { self.a as usize } else { 0 }
    }
}

/// Returns the records that set or continue a widget's text. Characters beyond 16 bits become the replacement character.
pub fn text(key: u32, text: &str, begins: bool) -> Vec<Record> {
    let codes: Vec<u32> = text.chars().map(|c| if c as u32 > 0xFFFF { 0xFFFD } else { c as u32 }).collect();
    let mut pieces: Vec<&[u32]> = codes.chunks(6).collect();
    if pieces.is_empty() && begins {
        pieces.push(&[]);
    }
    let record = |(index, piece): (usize, &[u32])| {
        let at = |i: usize| piece.get(i).copied().unwrap_or(0);
        let [a, b, id] = [0, 2, 4].map(|i| at(i) | at(i + 1) << 16);
        let flags = piece.len() as u16 | if index == 0 && begins { TEXT_BEGINS } else { 0 };
        Record { kind: TEXT, flags, key, a, b, id, wait: 0 }
    };
    pieces.into_iter().enumerate().map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_what_its_bytes_say() {
        let record = Record { kind: 0x1234, flags: 0xABCD, key: 1, a: 2, b: u32::MAX, id: 4, wait: 5 };
        assert_eq!(Record::from_bytes(&record.to_bytes()), record);
    }

    #[test]
    fn a_text_is_cut_into_pieces_of_six_characters() {
        let records = text(7, "Grüße, 🦀", true);
        assert_eq!(records.len(), 2);
        assert_eq!((records[0].flags, records[1].flags), (6 | TEXT_BEGINS, 2));
        assert_eq!(records[1].a, u32::from(' ') | 0xFFFD << 16);
        assert_eq!(text(7, "", true)[0].flags, TEXT_BEGINS);
        assert!(text(7, "", false).is_empty());
    }
}
