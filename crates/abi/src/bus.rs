//! The bus: how an instance on the device calls the host.
//!
//! The bus lies in memory that both sides see, and every access of the device to it is a round trip over PCIe. To make
//! a call, an instance takes a ticket (an atomic add in device memory) and writes a [`Request`] into the *ring* at that
//! ticket; the host reads the ring in order. The host answers with a [`Reply`]; every slot has a place for its reply
//! behind the ring. Arguments, input and output that do not fit request and reply go through the instance's *port*.
//!
//! ```text
//! device                                           host
//!   port: arguments beyond two, input  (few have any)  │
//!   ring[ticket & mask] = request ────────────────────▶ sees the entry at its own position
//!   sleeps, looks at its reply                         │  performs the call
//!   ◀───────────────────── port: output (few have any), then the reply
//! ```
//!
//! Requests and replies consist of tagged words ([`crate::tagged`]). A request's tag is the lap of the ring, a reply's
//! the packet's sequence number. Only the contents of the port must be written before the tagged words. Lanes that call
//! together get neighbouring tickets, so their requests lie side by side, and so do the replies: they travel together
//! without a lock or a vote.
//!
//! Input that is longer than the port's payload is sent in several packets, all but the last marked [`op::MORE`] and
//! answered at once. Longer output is fetched with [`op::PULL`] while the reply says [`Reply::MORE`]. An instance has
//! at most one packet under way, so a ring with one entry per instance never overflows. Tickets are counted on from
//! launch to launch.

use crate::tagged::{LOW, TAG_SHIFT, are_tagged, tag};
use core::mem::offset_of;

/// The most argument words of a call.
pub const ARGS: usize = 7;
/// How many argument words are in the request itself; the others are in the port.
pub const ARGS_AT_HAND: usize = 2;

/// The most bytes of input of a call, whatever a guest asks for: this bounds the memory that the host holds for an
/// instance.
pub const MAX_INPUT: usize = 1 << 20;

/// Device to host: one entry of the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub slot: u32,
    /// The host call's number, with flags of [`op`].
    pub op: u16,
    /// The first argument words.
    pub args: [u64; ARGS_AT_HAND],
}

impl Request {
    pub const WORDS: usize = 4;
    pub const BYTES: u64 = 8 * Self::WORDS as u64;
    /// Position of the operation in the first word; the slot is below it.
    pub const OP_SHIFT: u32 = 32;
    /// Positions in the last word of the upper 16 bits of each argument. The lower 48 bits of each argument have a word
    /// of their own.
    pub const HIGH_SHIFTS: [u32; ARGS_AT_HAND] = [0, 16];

    pub const fn pack(&self, lap: u16) -> [u64; Self::WORDS] {
        let ([a, b], tag) = (self.args, tag(lap));
        let high = a >> TAG_SHIFT << Self::HIGH_SHIFTS[0] | b >> TAG_SHIFT << Self::HIGH_SHIFTS[1];
        [self.slot as u64 | (self.op as u64) << Self::OP_SHIFT | tag, a & LOW | tag, b & LOW | tag, high | tag]
    }

    /// Returns the request, if all words carry this lap's tag.
    pub fn unpack(words: [u64; Self::WORDS], lap: u16) -> Option<Self> {
        if !are_tagged(&words, tag(lap)) {
            return None;
        }
        let [first, low_a, low_b, high] = words;
        let whole = |low: u64, shift: u32| low & LOW | (high >> shift) << TAG_SHIFT;
        let args = [whole(low_a, Self::HIGH_SHIFTS[0]), whole(low_b, Self::HIGH_SHIFTS[1])];
        Some(Self { slot: first as u32, op: (first >> Self::OP_SHIFT) as u16, args })
    }
}

pub mod op {
    /// More packets of the same call follow.
    pub const MORE: u16 = 1 << 15;
    /// Asks for the next packet of the last call's output.
    pub const PULL: u16 = 1 << 14;
    /// The port holds arguments or input of this packet.
    pub const PORT: u16 = 1 << 13;
    /// The instance has written to its outbox or read from its stdin since the last packet.
    pub const UNHEARD: u16 = 1 << 12;
    /// The call writes to the stdout or stderr that the instance was given, because the outbox had no space for the
    /// output.
    pub const OWN: u16 = 1 << 11;
    /// The bits that hold the host call's number.
    pub const NUMBER: u16 = (1 << 11) - 1;
}

/// Host to device. A reply has arrived when its tag is the header's `port_sequence`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The call's outcome: 8 bits of errno, three flags, and from [`Reply::PAYLOAD_SHIFT`] on the bytes of payload in
    /// this packet.
    pub status: u32,
    /// The first 8 bytes of the results of fixed size ([`crate::hostcall::Move::Result`]). In calls without such
    /// results: the length of the first answer in the output, where the host decides lengths
    /// ([`crate::hostcall::Move::Answer`]); or the exit code of an [`Reply::EXIT`].
    pub result: u64,
}

impl Reply {
    pub const WORDS: usize = 2;
    pub const BYTES: u64 = 8 * Self::WORDS as u64;
    /// Position of the status in the first word. Below it are the upper 16 bits of the result; the lower 48 are the
    /// second word.
    pub const STATUS_SHIFT: u32 = 16;

    pub const ERRNO: u32 = 0xff;
    /// The instance exits.
    pub const EXIT: u32 = 1 << 8;
    /// The call cannot be answered: the instance traps with `TrapCode::HostCall`.
    pub const TRAP: u32 = 1 << 9;
    /// There is more output to fetch after this packet.
    pub const MORE: u32 = 1 << 10;
    pub const PAYLOAD_SHIFT: u32 = 12;
    /// The most bytes of payload in a packet.
    pub const MAX_PAYLOAD: u64 = (1 << (32 - Self::PAYLOAD_SHIFT)) - 1;

    pub const fn pack(&self, sequence: u16) -> [u64; Self::WORDS] {
        let tag = tag(sequence);
        let first = (self.status as u64) << Self::STATUS_SHIFT | self.result >> TAG_SHIFT;
        [first | tag, self.result & LOW | tag]
    }

    /// Returns the reply, if both words carry this packet's tag.
    pub fn unpack(words: [u64; Self::WORDS], sequence: u16) -> Option<Self> {
        let result = (words[0] & 0xffff) << TAG_SHIFT | words[1] & LOW;
        are_tagged(&words, tag(sequence)).then_some(Self { status: (words[0] >> Self::STATUS_SHIFT) as u32, result })
    }
}

/// The head of a port; the payload follows.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Port {
    /// Bytes of payload in this packet, device to host.
    pub length: u64,
    /// The call's argument words. The first [`ARGS_AT_HAND`] are unused: those words are in the request.
    pub args: [u64; ARGS],
}

pub mod offset {
    use super::*;
    pub const LENGTH: u64 = offset_of!(Port, length) as u64;
    pub const ARGS: u64 = offset_of!(Port, args) as u64;
    pub const PAYLOAD: u64 = size_of::<Port>() as u64;
}

const _: () = assert!(size_of::<Port>() == 64);

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: Request =
        Request { slot: 0xdead_beef, op: 0x8123, args: [0xfedc_ba98_7654_3210, 0x0123_4567_89ab_cdef] };
    const REPLY: Reply = Reply { status: 0x8765_4321, result: 0xfedc_ba98_7654_3210 };

    #[test]
    fn requests_and_replies_come_out_as_they_went_in() {
        for tag in [0, 1, 0x8000, 0xffff] {
            assert_eq!(Request::unpack(REQUEST.pack(tag), tag), Some(REQUEST));
            assert_eq!(Reply::unpack(REPLY.pack(tag), tag), Some(REPLY));
        }
    }

    #[test]
    fn with_one_word_of_the_lap_before_they_are_not_there() {
        for word in 0..Request::WORDS {
            let mut words = REQUEST.pack(7);
            words[word] = REQUEST.pack(6)[word];
            assert_eq!(Request::unpack(words, 7), None);
        }
        for word in 0..Reply::WORDS {
            let mut words = REPLY.pack(0);
            words[word] = REPLY.pack(0xffff)[word];
            assert_eq!(Reply::unpack(words, 0), None);
        }
    }

    #[test]
    fn no_call_needs_the_reply_for_two_things_at_once() {
        use crate::hostcall::{Call, Move};
        for call in Call::ALL {
            let has = |kind: fn(&Move) -> bool| call.function().moves.iter().any(kind);
            let both = has(|m| matches!(m, Move::Result { .. })) && has(|m| matches!(m, Move::Answer { .. }));
            assert!(!both, "{call:?} has results and answers");
            assert!(*call as u32 <= u32::from(op::NUMBER));
        }
    }
}
