//! Events, in and out: what they are, and how they travel.
//!
//! In a ring an event is four tagged words (`tagged`).

use crate::tagged::LOW;

pub const PING: u16 = 1;
/// Makes the object `key` of `a` bytes, zeroed.
pub const CREATE: u16 = 2;
pub const DESTROY: u16 = 3;
/// Sets the word at byte `a` of the object `key` to `b`.
pub const WRITE: u16 = 4;
/// Asks for the word at byte `a` of the object `key`.
pub const READ: u16 = 5;
/// Adds numbers made from the seed `a` to all words of the object `key`, in `b` ticks.
pub const WORK: u16 = 6;
/// Keeps the workers busy for `a` milliseconds. For tests: other kernels do not know it.
#[cfg(feature = "faults")]
pub const STALL: u16 = 7;
/// Not an event: those behind it are for the tick `a` or later.
pub const MARK: u16 = 15;
/// In the ledger: `a` and `b` are the tick, `key` is how many events it took.
pub const TOOK: u16 = 16;
/// An answer to the kind in its lower bits: `a` is the result, `b` a value, `wait` the tick.
pub const REPLY: u16 = 0x100;

/// Asks for a reply.
pub const ANSWER: u16 = 1;
/// With `wait`: again and again.
pub const REPEAT: u16 = 2;

pub const DONE: u32 = 0;
pub const MISSING: u32 = 1;
pub const EXISTS: u32 = 2;
pub const NO_ROOM: u32 = 3;
pub const OUTSIDE: u32 = 4;
pub const UNKNOWN: u32 = 5;

/// One event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub kind: u16,
    pub flags: u16,
    pub key: u32,
    pub a: u32,
    pub b: u32,
    /// Whatever who posted it likes; replies carry it.
    pub id: u32,
    /// Ticks until it has its effect.
    pub wait: u32,
}

impl Event {
    /// The four words it travels in, without tags.
    pub const fn pack(&self) -> [u64; 4] {
        [
            self.kind as u64 | (self.flags as u64) << 16 | (self.key as u64 & 0xFFFF) << 32,
            (self.key >> 16) as u64 | (self.a as u64) << 16,
            self.b as u64 | (self.id as u64 & 0xFFFF) << 32,
            (self.id >> 16) as u64 | (self.wait as u64) << 16,
        ]
    }

    /// From four words, whatever their tags.
    pub const fn unpack(words: [u64; 4]) -> Self {
        let [first, second, third, fourth] = [words[0] & LOW, words[1] & LOW, words[2] & LOW, words[3] & LOW];
        Self {
            kind: first as u16,
            flags: (first >> 16) as u16,
            key: (first >> 32) as u32 | ((second & 0xFFFF) as u32) << 16,
            a: (second >> 16) as u32,
            b: third as u32,
            id: (third >> 32) as u32 | ((fourth & 0xFFFF) as u32) << 16,
            wait: (fourth >> 16) as u32,
        }
    }

    /// As it lies in the state.
    pub const fn words(&self) -> [u32; 6] {
        [self.kind as u32 | (self.flags as u32) << 16, self.key, self.a, self.b, self.id, self.wait]
    }

    pub const fn from_words(words: [u32; 6]) -> Self {
        Self {
            kind: words[0] as u16,
            flags: (words[0] >> 16) as u16,
            key: words[1],
            a: words[2],
            b: words[3],
            id: words[4],
            wait: words[5],
        }
    }
}
