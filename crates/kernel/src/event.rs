//! Events, from the host and to the host: their kinds and their encodings.
//!
//! In a ring, an event is four tagged words (`tagged`).

use crate::tagged::LOW;

/// Asks the supervisor for a reply, without a tick.
pub const PING: u16 = 1;
/// Makes the object `key` with `a` bytes, all zero.
pub const CREATE: u16 = 2;
pub const DESTROY: u16 = 3;
/// Sets the word at byte `a` of the object `key` to `b`.
pub const WRITE: u16 = 4;
/// Asks for the word at byte `a` of the object `key`.
pub const READ: u16 = 5;
/// Adds numbers made from the seed `a` to all words of the object `key`, in `b` ticks.
pub const WORK: u16 = 6;
/// Stalls the workers for `a` milliseconds. For tests: only a kernel built with `faults` knows this kind.
#[cfg(feature = "faults")]
pub const STALL: u16 = 7;
/// Not an event: the events behind it in the ring are for tick `a` or later.
pub const MARK: u16 = 15;
/// An entry of the ledger: the tick with the number `a` + 2³² `b` took `key` events from the host.
pub const TOOK: u16 = 16;
/// A reply to an event of the kind in the lower bits: `a` is the result, `b` a value, `wait` the lower half of the tick's
/// number. A reply to a ping has the fields of the ping instead.
pub const REPLY: u16 = 0x100;

/// A flag: the event asks for a reply.
pub const ANSWER: u16 = 1;
/// A flag: the event takes effect every `wait` ticks, not only once.
pub const REPEAT: u16 = 2;

// Results of events.
pub const DONE: u32 = 0;
/// There is no object with this key.
pub const MISSING: u32 = 1;
/// There already is an object with this key.
pub const EXISTS: u32 = 2;
/// The heap, the timers or the work queue are full.
pub const NO_ROOM: u32 = 3;
/// The key, the size or the place in the object is not allowed.
pub const OUTSIDE: u32 = 4;
/// There is no such kind of event.
pub const UNKNOWN: u32 = 5;

/// One event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub kind: u16,
    pub flags: u16,
    pub key: u32,
    pub a: u32,
    pub b: u32,
    /// Chosen by the sender; the reply has the same value.
    pub id: u32,
    /// Ticks until the event takes effect; 0: it takes effect in the tick that takes it.
    pub wait: u32,
}

impl Event {
    /// Returns the four words of the event in a ring, without tags.
    pub const fn pack(&self) -> [u64; 4] {
        [
            self.kind as u64 | (self.flags as u64) << 16 | (self.key as u64 & 0xFFFF) << 32,
            (self.key >> 16) as u64 | (self.a as u64) << 16,
            self.b as u64 | (self.id as u64 & 0xFFFF) << 32,
            (self.id >> 16) as u64 | (self.wait as u64) << 16,
        ]
    }

    /// Returns the event in four words of a ring; ignores their tags.
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

    /// Returns the six words of the event in the state.
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
