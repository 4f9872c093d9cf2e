//! The bus: how an instance on the device asks the host for something.
//!
//! All of it lies in memory that both sides see. Each instance has a *port*; the device writes a request into it, then
//! takes a ticket (an atomic add in device memory) and writes the instance's number into the *ring* at that ticket. The
//! host reads the ring in order, which is one cache line however many instances there are. It answers in
//! the port, the reply's sequence number last. Lanes that call together get neighbouring tickets, so their ring
//! entries share a line and their ports are neighbours: they travel together without a lock or a vote.
//!
//! ```text
//! device                                         host
//!   port.request = op, arguments                    │
//!   port.payload = bytes of in-buffers              │
//!   ring[ticket & mask] = (ticket / size + 1, port) ─▶ sees the entry at its own position
//!   sleeps, looks at port.reply.sequence            │  performs the call
//!   ◀─ port.payload = bytes for out-buffers, port.reply = errno, lengths, then sequence
//! ```
//!
//! A call whose input is longer than the payload goes in several packets, all but the last marked [`op::MORE`] and
//! answered at once; output that is longer is fetched with [`op::PULL`] while `reply.remaining` is not 0. An
//! instance has at most one packet under way, so a ring with an entry per instance never overflows.

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

/// Host to device: one 64-byte line. `sequence` is written last; everything else is valid once it is.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Reply {
    /// Equal to the header's `port_sequence` once this reply is there.
    pub sequence: u32,
    /// The WASI errno, or one of [`reply`]'s words.
    pub errno: u32,
    /// Bytes of payload in this packet.
    pub payload: u32,
    /// Bytes of output still to be fetched after this packet.
    pub remaining: u32,
    /// Length of the output's first answer, where the host sets lengths ([`crate::hostcall::Move::Answer`]).
    pub split: u32,
    pub reserved: [u32; 11],
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

/// Values of `Reply::errno` that are not WASI errnos (which end at 76).
pub mod reply {
    /// The instance ends here; its `exit_code` is in `Reply::split`.
    pub const EXIT: u32 = 0x1_0000;
    /// The call cannot be answered: the instance traps with `TrapCode::HostCall`.
    pub const TRAP: u32 = 0x1_0001;
}

pub mod offset {
    use super::*;
    pub const REQUEST_OP: u64 = (offset_of!(Port, request) + offset_of!(Request, op)) as u64;
    pub const REQUEST_PAYLOAD: u64 = (offset_of!(Port, request) + offset_of!(Request, payload)) as u64;
    pub const REQUEST_ARGS: u64 = (offset_of!(Port, request) + offset_of!(Request, args)) as u64;
    pub const REPLY_SEQUENCE: u64 = (offset_of!(Port, reply) + offset_of!(Reply, sequence)) as u64;
    pub const REPLY_ERRNO: u64 = (offset_of!(Port, reply) + offset_of!(Reply, errno)) as u64;
    pub const REPLY_PAYLOAD: u64 = (offset_of!(Port, reply) + offset_of!(Reply, payload)) as u64;
    pub const REPLY_REMAINING: u64 = (offset_of!(Port, reply) + offset_of!(Reply, remaining)) as u64;
    pub const REPLY_SPLIT: u64 = (offset_of!(Port, reply) + offset_of!(Reply, split)) as u64;
    pub const PAYLOAD: u64 = size_of::<Port>() as u64;
}

const _: () = assert!(size_of::<Request>() == 64 && size_of::<Reply>() == 64 && size_of::<Port>() == 128);
const _: () = assert!(offset_of!(Reply, sequence) == 0 && offset_of!(Request, args) == 8);
