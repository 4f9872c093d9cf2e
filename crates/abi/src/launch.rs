//! What all instances of a launch have in common, in device memory, and the answers they get without calling the host.
//!
//! A launch has one [`Launch`]. A fresh instance makes its slot from the *image* that `Launch` points at: a list of
//! pieces, each of which is its offset in the slot, its length in words, and the words. Then the instance fills in the
//! fields of its own: number, port, stdin, outbox.
//!
//! Where the flags of [`answers`] say so, the calls that every program makes stay on the device. Arguments and
//! environment are copied from here, and stdin from device memory. Random bytes are computed (SipHash in counter mode,
//! under a key of the launch). The monotonic clock is the device's timer ([`answers::CLOCK`]).
//!
//! Output to stdout and stderr goes to the instance's *outbox*, memory that the host sees. An outbox begins with three
//! u32: bytes in use, bytes of the annex in use, and bytes of stdin left. Then come records, each a 4-byte head
//! ([`outbox::record`]) and the bytes written, padded to a multiple of 4. For programs that print much, the outbox
//! continues in its *annex*, device memory that holds records only: once a record did not fit the outbox, all later
//! ones go to the annex.
//!
//! The host empties both whenever the instance makes a host call, and when the instance stops. Output that fits neither
//! is sent as a host call marked [`crate::bus::op::OWN`].

use core::mem::offset_of;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Launch {
    /// Device address of the image.
    pub image: u64,
    /// Number of pieces in the image.
    pub pieces: u64,
    /// Guest addresses below this are already cleared in the first memory of every slot.
    pub cleared: u64,
    /// Device address of slot 0's port, and the bytes from one port to the next.
    pub ports: u64,
    pub port_bytes: u64,
    /// Which calls are answered on the device: flags of [`answers`].
    pub answers: u64,
    /// Number of the instance in slot 0, as `GPU_RUN_INSTANCE` shows it.
    pub first: u64,
    /// Device address of an array with an entry for each slot's stdin: address and length, 8 bytes each.
    pub stdin: u64,
    /// Device address of slot 0's outbox, and the bytes of one outbox.
    pub outbox: u64,
    pub outbox_bytes: u64,
    /// Device address of slot 0's annex, and the bytes of one annex.
    pub annex: u64,
    pub annex_bytes: u64,
    /// Arguments: how many; their total bytes, with a NUL behind each; and the device address of their starts (u32
    /// each), which the bytes follow.
    pub args_count: u64,
    pub args_bytes: u64,
    pub args: u64,
    /// The environment likewise. The last variable's value is the instance's number, whose bytes are not counted in
    /// `env_bytes`.
    pub env_count: u64,
    pub env_bytes: u64,
    pub env: u64,
    /// The key of the random bytes.
    pub key: [u64; 2],
    /// The host's monotonic clock just before the launch, in nanoseconds.
    pub clock_host: u64,
    /// The device's timer when the first thread began: all ones until then.
    pub clock_device: u64,
    /// Device address of guest byte 0 of the memory that threads share, see [`crate::threads`]; 0 in other programs.
    pub threads: u64,
    /// How many threads a program with threads can have.
    pub most_threads: u64,
    /// Device address of an array with each slot's [`crate::guest::GuestCall::instance`]; 0: slot `i` has `first + i`.
    pub numbers: u64,
    /// How many instances the program was started as; 0 if that is not known.
    pub instances: u64,
    /// Device address and bytes of the buffer that all instances share.
    pub shared: u64,
    pub shared_bytes: u64,
    /// Device address of the picture ([`crate::guest::PICTURE_HEAD`]), and the most pixels it has; 0 if nobody wants one.
    pub picture: u64,
    pub picture_pixels: u64,
    /// The bits of [`crate::guest::GuestCall::time`], an f64.
    pub time: u64,
}

impl Launch {
    pub const BYTES: u64 = size_of::<Self>() as u64;

    pub fn bytes(&self) -> &[u8] {
        bytemuck::bytes_of(self)
    }
}

/// Flags of [`Launch::answers`]. Each slot has a copy of them; when the guest closes a stream, the copy loses that
/// stream's flag.
pub mod answers {
    /// The three standard streams, by descriptor.
    pub const STREAMS: [u64; 3] = [1, 2, 4];
    pub const STRINGS: u64 = 8;
    pub const RANDOM: u64 = 16;
    /// The monotonic clock: the host's time at the launch, plus the time that the device's timer has counted since. It
    /// is behind the host's clock by the time between the host's reading of its clock and the first thread's reading of
    /// the timer.
    pub const CLOCK: u64 = 32;
}

/// The contents of an outbox: a head, then records.
pub mod outbox {
    /// The bit of a record's head that marks stderr; the other bits are the record's length.
    pub const STDERR: u32 = 1 << 31;

    /// Returns the head of a record.
    pub const fn record(stderr: bool, length: u32) -> u32 {
        length | if stderr { STDERR } else { 0 }
    }
    /// Bytes of a record's head.
    pub const RECORD_HEAD: u64 = 4;
    /// Offsets in an outbox's head: bytes in use (with the head), bytes of the annex in use, bytes of stdin left (u32
    /// each).
    pub const USED: u64 = 0;
    pub const ANNEX_USED: u64 = 4;
    pub const STDIN_LEFT: u64 = 8;
    /// Bytes of an outbox's head.
    pub const HEAD: u64 = 16;
    /// `USED` and `ANNEX_USED`, as one u64, of an outbox without records.
    pub const EMPTY: u64 = HEAD;
}

/// What the host reads of each slot when a launch is over. The entry's results follow, one word each.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Ending {
    pub status: u64,
    pub trap: u64,
    /// The exit code. If the status is [`crate::Status::Outgrown`]: the bytes that a memory asked to grow to, or 0.
    pub exit_code: u64,
    /// Length of memory 0 in bytes.
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
        CLOCK_HOST = clock_host, CLOCK_DEVICE = clock_device, THREADS = threads, MOST_THREADS = most_threads,
        NUMBERS = numbers, INSTANCES = instances, SHARED = shared, SHARED_BYTES = shared_bytes,
        PICTURE = picture, PICTURE_PIXELS = picture_pixels, TIME = time,
    }
}
