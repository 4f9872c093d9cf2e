//! The bus: how an instance on the device asks the host for something.
//!
//! All of it lies in memory that both sides see, and every look of the device at it is a journey over PCIe. To ask, an instance takes a ticket (an atomic add
//! in device memory) and writes a [`Request`] into the *ring* at that ticket; the host reads the ring in order. It answers with a [`Reply`], which has its
//! place behind the ring. What does not fit into these, the instance's *port* has room for.
//!
//! ```text
//! device                                           host
//!   port: arguments beyond two, input  (few have any)  │
//!   ring[ticket & mask] = request ────────────────────▶ sees the entry at its own position
//!   sleeps, looks at its reply                         │  performs the call
//!   ◀───────────────────── port: output (few have any), then the reply
//! ```
//!
//! Both consist of tagged words ([`crate::tagged`]): the tag is the lap of the ring, or the packet's sequence number. Only what is in the port must be there before the words are. Lanes that call together get neighbouring tickets, so what they ask
//! lies side by side, and so do the replies: they travel together without a lock or a vote.
//!
//! A call whose input is longer than the payload goes in several packets, all but the last marked [`op::MORE`] and
//! answered at once; output that is longer is fetched with [`op::PULL`] while the reply says [`Reply::MORE`]. An
//! instance has at most one packet under way, so a ring with an entry per instance never overflows. Tickets are counted on from launch to
//! launch.

use crate::tagged::{LOW, TAG_SHIFT, are_tagged, tag};
use core::mem::offset_of;

/// Argument words of a call.
pub const ARGS: usize = 7;
/// Those that are in the request itself.
pub const ARGS_AT_HAND: usize = 2;

/// Bytes of input that a call has at most, whatever a guest asks for: it bounds what the host holds for an instance.
pub const MAX_INPUT: usize = 1 << 20;

/// Device to host: an entry of the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub slot: u32,
    /// The hostcall's number, with [`op`]'s flags.
    pub op: u16,
    /// The first arguments.
    pub args: [u64; ARGS_AT_HAND],
}

impl Request {
    pub const WORDS: usize = 4;
    pub const BYTES: u64 = 8 * Self::WORDS as u64;
    /// Where the first word has the operation; below it is the slot.
    pub const OP_SHIFT: u32 = 32;
    /// Where the last word has the upper 16 bits of each argument, whose lower 48 have a word of their own.
    pub const HIGH_SHIFTS: [u32; ARGS_AT_HAND] = [0, 16];

    pub const fn pack(&self, lap: u16) -> [u64; Self::WORDS] {
        let ([a, b], tag) = (self.args, tag(lap));
        let high = a >> TAG_SHIFT << Self::HIGH_SHIFTS[0] | b >> TAG_SHIFT << Self::HIGH_SHIFTS[1];
        [self.slot as u64 | (self.op as u64) << Self::OP_SHIFT | tag, a & LOW | tag, b & LOW | tag, high | tag]
    }

    /// What the words say, if all are of this lap.
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
    /// There is something in the port.
    pub const PORT: u16 = 1 << 13;
    /// The instance has written to its outbox or read of its stdin since the last packet.
    pub const UNHEARD: u16 = 1 << 12;
    /// What is written goes to the instance's own stdout or stderr, as it was given them: the outbox had no room for it.
    pub const OWN: u16 = 1 << 11;
    /// The bits that hold the hostcall's number.
    pub const NUMBER: u16 = (1 << 11) - 1;
}

/// Host to device: its tag is the header's `port_sequence` once it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// How the call ended: 8 bits of errno, three flags, and from [`Reply::PAYLOAD_SHIFT`] on the bytes of payload in this packet.
    pub status: u32,
    /// The first 8 bytes of the results of fixed size ([`crate::hostcall::Move::Result`]). Calls that have none: the length of the output's first answer, where
    /// the host sets lengths ([`crate::hostcall::Move::Answer`]); the code of an [`Reply::EXIT`].
    pub result: u64,
}

impl Reply {
    pub const WORDS: usize = 2;
    pub const BYTES: u64 = 8 * Self::WORDS as u64;
    /// Where the first word has the status; below it are the upper 16 bits of the result, whose lower 48 are the second word.
    pub const STATUS_SHIFT: u32 = 16;

    pub const ERRNO: u32 = 0xff;
    /// The instance ends here.
    pub const EXIT: u32 = 1 << 8;
    /// The call cannot be answered: the instance traps with `TrapCode::HostCall`.
    pub const TRAP: u32 = 1 << 9;
    /// There is more output to be fetched after this packet.
    pub const MORE: u32 = 1 << 10;
    pub const PAYLOAD_SHIFT: u32 = 12;
    /// Bytes of payload in a packet at most.
    pub const MAX_PAYLOAD: u64 = (1 << (32 - Self::PAYLOAD_SHIFT)) - 1;

    pub const fn pack(&self, sequence: u16) -> [u64; Self::WORDS] {
        let tag = tag(sequence);
        let first = (self.status as u64) << Self::STATUS_SHIFT | self.result >> TAG_SHIFT;
        [first | tag, self.result & LOW | tag]
    }

    /// What the words say, if both are of this packet.
    pub fn unpack(words: [u64; Self::WORDS], sequence: u16) -> Option<Self> {
        let result = (words[0] & 0xffff) << TAG_SHIFT | words[1] & LOW;
        are_tagged(&words, tag(sequence)).then_some(Self { status: (words[0] >> Self::STATUS_SHIFT) as u32, result })
    }
}

/// What a port begins with; `payload` bytes follow.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Port {
    /// Bytes of payload that belong to this packet, device to host.
    pub length: u64,
    /// All arguments have a place here, but [`ARGS_AT_HAND`] of them are elsewhere.
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
