//! The bus: how an instance on the device asks the host for something.
//!
//! All of it lies in memory that both sides see, and every look of the device at it is a journey over PCIe. Each instance has a *port*; the device
//! writes a request into it, takes a ticket (an atomic add in device memory) and writes the instance's number into the
//! *ring* at that ticket. The host reads the ring in order, which is one cache line however many instances there are. It answers with
//! one word, in an array of [`ReplyWord`]s behind the ring: what comes with it in the port was written before. So one look tells that the reply is there,
//! how the call ended and how much to fetch; and the words of a warp's lanes share two lines. Lanes that call together get neighbouring
//! tickets, so their ring entries share a line and their ports are neighbours: they travel together without a lock or a
//! vote.
//!
//! ```text
//! device                                         host
//!   port.request = op, arguments                    │
//!   port.payload = bytes of in-buffers              │
//!   ring[ticket & mask] = (ticket / size + 1, port) ─▶ sees the entry at its own position
//!   sleeps, looks at its reply word                 │  performs the call
//!   ◀─ port.payload = bytes for out-buffers, then the word: sequence, errno, lengths
//! ```
//!
//! A call whose input is longer than the payload goes in several packets, all but the last marked [`op::MORE`] and
//! answered at once; output that is longer is fetched with [`op::PULL`] while the reply says [`ReplyWord::MORE`]. An
//! instance has at most one packet under way, so a ring with an entry per instance never overflows. Tickets are counted on from launch to
//! launch.

use core::mem::offset_of;

/// Argument words in a request.
pub const ARGS: usize = 7;

/// Device to host: one 64-byte line.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// The hostcall's number, with [`op`]'s flags.
    pub op: u32,
    /// Bytes of payload that belong to this packet.
    pub payload: u32,
    pub args: [u64; ARGS],
}

/// Host to device: one 64-byte line of what few replies have.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Reply {
    /// Length of the output's first answer, where the host sets lengths ([`crate::hostcall::Move::Answer`]); the code of an [`ReplyWord::EXIT`].
    pub split: u32,
    pub reserved: [u32; 15],
}

/// Host to device: one word, written last; what belongs to it is valid once it is there.
///
/// The low half is the sequence number, equal to the header's `port_sequence` once this reply is there. The high half says how the call ended:
/// 8 bits of errno, three flags, and from [`ReplyWord::PAYLOAD_SHIFT`] on the bytes of payload in this packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyWord {
    pub sequence: u32,
    pub status: u32,
}

impl ReplyWord {
    pub const BYTES: u64 = 8;
    pub const ERRNO: u32 = 0xff;
    /// The instance ends here; its exit code is in [`Reply::split`].
    pub const EXIT: u32 = 1 << 8;
    /// The call cannot be answered: the instance traps with `TrapCode::HostCall`.
    pub const TRAP: u32 = 1 << 9;
    /// There is more output to be fetched after this packet.
    pub const MORE: u32 = 1 << 10;
    pub const PAYLOAD_SHIFT: u32 = 12;
    /// Bytes of payload in a packet at most.
    pub const PAYLOAD_MOST: u64 = (1 << (32 - Self::PAYLOAD_SHIFT)) - 1;

    pub const fn pack(self) -> u64 {
        ((self.status as u64) << 32) | self.sequence as u64
    }
}

/// What a port begins with; `payload` bytes follow.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Port {
    pub request: Request,
    pub reply: Reply,
}

/// One word of the ring: 32 bits of lap number (from 1), 32 bits of instance slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingEntry {
    pub lap: u32,
    pub slot: u32,
}

impl RingEntry {
    pub const BYTES: u64 = 8;

    pub const fn pack(self) -> u64 {
        ((self.lap as u64) << 32) | self.slot as u64
    }
    pub const fn unpack(word: u64) -> Self {
        Self { lap: (word >> 32) as u32, slot: word as u32 }
    }
}

pub mod op {
    /// More packets of the same call follow.
    pub const MORE: u32 = 1 << 31;
    /// Asks for the next packet of the last call's output.
    pub const PULL: u32 = 1 << 30;
    /// The bits that hold the hostcall's number.
    pub const NUMBER: u32 = (1 << 16) - 1;
}

pub mod offset {
    use super::*;
    pub const REQUEST_OP: u64 = (offset_of!(Port, request) + offset_of!(Request, op)) as u64;
    pub const REQUEST_PAYLOAD: u64 = (offset_of!(Port, request) + offset_of!(Request, payload)) as u64;
    pub const REQUEST_ARGS: u64 = (offset_of!(Port, request) + offset_of!(Request, args)) as u64;
    pub const REPLY_SPLIT: u64 = (offset_of!(Port, reply) + offset_of!(Reply, split)) as u64;
    pub const PAYLOAD: u64 = size_of::<Port>() as u64;
}

const _: () = assert!(size_of::<Request>() == 64 && size_of::<Reply>() == 64 && size_of::<Port>() == 128);
const _: () =
    assert!(offset_of!(Request, op) == 0 && offset_of!(Request, payload) == 4 && offset_of!(Request, args) == 8);
