//! What all instances of a launch have in common, in device memory, and the answers they get without asking the host.
//!
//! A launch has one [`Launch`]. A fresh instance makes its slot from the *image* it points at: pieces of words, each with its place in the slot and its
//! length before it. Then it takes what is its own: number, port, stdin, room for output.
//!
//! Where [`answers`]'s flags say so, the calls every program makes stay on the device: arguments and environment are copied from here, stdin from device memory,
//! random bytes are computed (SipHash in counter mode, under a key of the launch), the monotonic clock is the device's timer ([`answers::CLOCK`]), and what is written to stdout and stderr goes to the instance's
//! *outbox*, memory the host sees: 4 bytes that say how many of it are in use, 4 for the annex, 4 that say how much of stdin is left, then records, each 4 bytes ([`outbox::record`]) and what
//! was written, padded to a multiple of 4. Where programs print much, an outbox goes on in its *annex*, memory of the device with records only: once one did not fit before it, all do.
//! The host empties both whenever the instance asks for something else, and at the end. What fits neither is sent as a call that says so ([`crate::bus::op::OWN`]).

use core::mem::offset_of;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Launch {
    /// Device address of the image.
    pub image: u64,
    /// Its pieces.
    pub pieces: u64,
    /// Of each slot's first memory, guest addresses below this have been cleared.
    pub cleared: u64,
    /// Device address of slot 0's port, and how far the next is.
    pub ports: u64,
    pub port_bytes: u64,
    /// Which calls are answered on the device: [`answers`]'s flags.
    pub answers: u64,
    /// Number of the instance in slot 0: `GPU_RUN_INSTANCE`.
    pub first: u64,
    /// Device address of each slot's stdin: address and length, 8 bytes each.
    pub stdin: u64,
    /// Device address of slot 0's outbox, and the size of one.
    pub outbox: u64,
    pub outbox_bytes: u64,
    /// Device address of slot 0's annex, and the size of one.
    pub annex: u64,
    pub annex_bytes: u64,
    /// Arguments: how many, their bytes with a NUL behind each, and the device address of their starts (u32 each); the bytes follow.
    pub args_count: u64,
    pub args_bytes: u64,
    pub args: u64,
    /// The environment likewise; the last variable's value is the instance's number, which is not counted in.
    pub env_count: u64,
    pub env_bytes: u64,
    pub env: u64,
    /// The key of random bytes.
    pub key: [u64; 2],
    /// What the host's monotonic clock said just before the launch, in nanoseconds.
    pub clock_host: u64,
    /// What the device's timer said when the first thread began: all ones until then.
    pub clock_device: u64,
}

impl Launch {
    pub const BYTES: u64 = size_of::<Self>() as u64;

    pub fn bytes(&self) -> &[u8] {
        bytemuck::bytes_of(self)
    }
}

/// Flags of [`Launch::answers`], and a slot's own copy, in which what the guest closes is taken out.
pub mod answers {
    /// The three standard streams, by descriptor.
    pub const STREAMS: [u64; 3] = [1, 2, 4];
    pub const STRINGS: u64 = 8;
    pub const RANDOM: u64 = 16;
    /// The monotonic clock: the host's time at the launch, and what the device's timer has counted since. It is behind the host's by the time that passes
    /// between the host's look at its clock and the first thread's at the timer.
    pub const CLOCK: u64 = 32;
}

/// What lies in an outbox: a head, then records.
pub mod outbox {
    /// The bit of a record's first word that says it is stderr's; the rest is its length.
    pub const STDERR: u32 = 1 << 31;

    /// What a record begins with.
    pub const fn record(stderr: bool, length: u32) -> u32 {
        length | if stderr { STDERR } else { 0 }
    }
    /// Bytes of a record's head.
    pub const RECORD_HEAD: u64 = 4;
    /// What an outbox begins with: bytes in use, the annex's bytes in use, and bytes of stdin left (u32 each).
    pub const USED: u64 = 0;
    pub const ANNEX_USED: u64 = 4;
    pub const STDIN_LEFT: u64 = 8;
    pub const HEAD: u64 = 16;
    /// The first two of them in one word, where nothing is in use.
    pub const EMPTY: u64 = HEAD;
}

/// What the host reads of each slot when a launch is over: so many words.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Ending {
    pub status: u64,
    pub trap: u64,
    /// Where the status is [`crate::Status::Outgrown`]: the bytes that a memory wanted to grow to, or 0.
    pub exit_code: u64,
    /// Bytes of memory 0.
    pub memory_bytes: u64,
    /// See [`crate::layout::Header::growth_refused`].
    pub growth_refused: u64,
}

macro_rules! offsets {
    ($($name:ident = $field:ident),* $(,)?) => { $(pub const $name: u64 = offset_of!(Launch, $field) as u64;)* };
}

pub mod offset {
    use super::*;
    offsets! {
        IMAGE = image, PIECES = pieces, CLEARED = cleared, PORTS = ports, PORT_BYTES = port_bytes, ANSWERS = answers, FIRST = first, STDIN = stdin,
        OUTBOX = outbox, OUTBOX_BYTES = outbox_bytes, ANNEX = annex, ANNEX_BYTES = annex_bytes, ARGS_COUNT = args_count, ARGS_BYTES = args_bytes, ARGS = args,
        ENV_COUNT = env_count, ENV_BYTES = env_bytes, ENV = env, KEY = key,
        CLOCK_HOST = clock_host, CLOCK_DEVICE = clock_device,
    }
}
