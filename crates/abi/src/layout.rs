//! How instances lie in device memory.
//!
//! An instance is one *slot*: a [`Header`], then the globals, arguments and tables that its module declares, then its
//! linear memory. Everything before the memory consists of 8-byte *words*. The layout says where byte `a` of a slot is:
//!
//! - `linear`: slots lie one after the other. For few instances, and for threads that share a memory.
//! - `interleaved`: the slots of a warp's 32 lanes interleave in *cells* of 4 bytes, so that lanes in step make one
//!   coalesced access: byte `a` of lane `l` is at `(a / 4) * 128 + l * 4 + a % 4`. The cell is 4 bytes because a 32-bit
//!   program mostly accesses 4-byte values: such accesses fill whole sectors, their address takes one multiplication,
//!   and a wider value takes two accesses that are just as well coalesced.
//!
//! The *instance pointer*, the first parameter of every compiled function, is the device address of the slot's byte 0.
//! Every other address in the slot is the instance pointer plus [`Layout::offset`]. The formula is in this file; code for
//! the device computes the same from [`Layout::cell`] and [`Layout::spread`].

use std::fmt;

/// Lanes in a warp, on every NVIDIA GPU and on the `cpu` device.
pub const WARP: u64 = 32;
/// Bytes of a header field, a global, an argument or a table element.
pub const WORD: u64 = 8;
/// Bytes of a wasm page.
pub const PAGE: u64 = 65536;
/// The most pages an instance's memory can have. One less than wasm's 65,536, so that a length in bytes fits 32 bits
/// and a bounds check is one 32-bit comparison.
pub const MAX_PAGES: u64 = 65535;
/// Slots begin at multiples of this, so that the low bits of an instance pointer depend on the lane alone.
pub const SLOT_ALIGN: u64 = 256;
/// How many bytes past a checked guest address an access may reach without a check of its own.
pub const GUARD: u64 = 4096;
/// Bytes that a slot has past its memory's end: a misaligned load reads whole cells around its value.
pub const MEMORY_TAIL: u64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    Linear,
    Interleaved,
}

/// Prints the layout as `--layout` takes it.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layout::Linear => "linear",
            Layout::Interleaved => "interleaved",
        })
    }
}

impl Layout {
    /// Returns the layout that suits this number of instances: interleaved on a GPU from 32 on. Fewer than a warp's 32
    /// lanes have nothing to coalesce, and `cpu` never does.
    pub const fn suited(gpu: bool, instances: u32) -> Self {
        if gpu && instances as u64 >= WARP { Layout::Interleaved } else { Layout::Linear }
    }

    /// Returns the size of a cell: the widest naturally aligned access whose bytes lie together.
    pub const fn cell(self) -> u64 {
        match self {
            Layout::Linear => 8,
            Layout::Interleaved => 4,
        }
    }

    /// Returns by how much the layout spreads cells: two cells of a slot lie `spread` times as far apart as in a linear
    /// slot. The bytes within an aligned cell stay together.
    pub const fn spread(self) -> u64 {
        match self {
            Layout::Linear => 1,
            Layout::Interleaved => WARP,
        }
    }

    /// Returns the bytes from one cell of a slot to the next.
    pub const fn stride(self) -> u64 {
        self.cell() * self.spread()
    }

    /// Returns where byte `at` of a slot is, counted from the instance pointer.
    pub const fn offset(self, at: u64) -> u64 {
        (at / self.cell()) * self.stride() + at % self.cell()
    }

    /// Returns the instance pointer of slot `index`, counted from the first slot's; `slot_bytes` is a multiple of
    /// [`SLOT_ALIGN`].
    pub const fn slot(self, index: u64, slot_bytes: u64) -> u64 {
        match self {
            Layout::Linear => index * slot_bytes,
            Layout::Interleaved => (index / WARP) * WARP * slot_bytes + (index % WARP) * self.cell(),
        }
    }

    /// Returns how many slots to allocate for `count` instances: whole warps where slots interleave.
    pub const fn slots(self, count: u64) -> u64 {
        match self {
            Layout::Linear => count,
            Layout::Interleaved => count.next_multiple_of(WARP),
        }
    }
}

/// The fixed part of a slot: one word per field.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Header {
    /// [`crate::Status`], written by the device when the instance stops.
    pub status: u64,
    /// [`crate::TrapRecord`], packed: 0 while the instance has not trapped.
    pub trap: u64,
    /// The exit code given to `proc_exit`. With [`crate::Status::Outgrown`], see [`crate::launch::Ending::exit_code`].
    pub exit_code: u64,
    /// The number of the instance's slot, from 0.
    pub index: u64,
    /// Length of memory 0 in bytes.
    pub memory_bytes: u64,
    /// Guest addresses below this have [`GUARD`] more bytes of memory behind them: `memory_bytes` minus `GUARD`, or 0.
    pub memory_fast: u64,
    /// Bytes that memory 0 can grow to in the slot. An instance that may grow further stops with
    /// [`crate::Status::Outgrown`]. If threads share the memory: the device address of the thread's [`crate::threads::Warp`],
    /// if it shares that; 0 otherwise.
    pub memory_limit: u64,
    /// Bytes by which all memories and tables together may still grow.
    pub growth_left: u64,
    /// The memory size in bytes that the last refused `memory.grow` asked for; 0 if none was refused.
    pub growth_refused: u64,
    /// The lowest value the stack pointer may take (32 bits); written by the kernel's entry.
    pub stack_floor: u64,
    /// How much work functions that can reach themselves may still do before they check the stop word, in units of
    /// `wasm/src/work.rs`.
    pub fuel: u64,
    /// Device address of the stop word (u32): not 0 means "stop now". Shared by all instances of a launch.
    pub stop: u64,
    /// Device address of this instance's [`crate::bus::Port`].
    pub port: u64,
    /// Device address of the ring's entries ([`crate::bus::Request`]).
    pub ring: u64,
    /// Device address of the ring's ticket counter (u32), in device memory.
    pub ring_ticket: u64,
    /// Entries in the ring, less one; the number of entries is a power of two.
    pub ring_mask: u64,
    /// Bytes of payload that the port holds.
    pub port_payload: u64,
    /// Number of packets that this instance has sent: the sequence number that the next reply carries.
    pub port_sequence: u64,
    /// The device's read or write position in the port's payload.
    pub port_cursor: u64,
    /// Payload bytes of the last packet that the device has not taken yet; bit 31 says that more packets follow.
    pub port_left: u64,
    /// The last reply's [`crate::bus::Reply::result`].
    pub port_result: u64,
    /// Device address of the module's constant data: its passive segments, one after the other.
    pub constants: u64,
    /// Device address of the launch's [`crate::Launch`].
    pub launch: u64,
    /// The calls that the device answers by itself: flags of [`crate::launch::answers`].
    pub answers: u64,
    /// Device address and length of the unread part of stdin.
    pub stdin: u64,
    pub stdin_left: u64,
    /// Device address of this slot's outbox, and how many of its bytes are in use.
    pub outbox: u64,
    pub outbox_used: u64,
    /// How many bytes of the slot's annex are in use.
    pub annex_used: u64,
    /// Flags to set in the next packet's operation, [`crate::bus::op::UNHEARD`] among them (32 bits).
    pub unheard: u64,
    /// How many random words the instance has drawn.
    pub drawn: u64,
    /// If the guest's memory is in the thread's local memory: where guest byte 0 is or would be there (32 bits);
    /// written by the kernel's entry. If threads share the memory: the device address of guest byte 0.
    pub memory_at: u64,
}

impl Header {
    /// The header's words, in order.
    pub fn words(&self) -> &[u64] {
        bytemuck::cast_slice(std::slice::from_ref(self))
    }
}

/// Byte offsets of the header's fields in a slot, before [`Layout::offset`].
pub mod field {
    use super::Header;
    use core::mem::offset_of;

    macro_rules! fields {
        ($($name:ident = $field:ident),* $(,)?) => { $(pub const $name: u64 = offset_of!(Header, $field) as u64;)* };
    }
    fields! {
        STATUS = status, TRAP = trap, EXIT_CODE = exit_code, INDEX = index,
        MEMORY_BYTES = memory_bytes, MEMORY_FAST = memory_fast, MEMORY_LIMIT = memory_limit,
        GROWTH_LEFT = growth_left, GROWTH_REFUSED = growth_refused, STACK_FLOOR = stack_floor, FUEL = fuel, STOP = stop,
        PORT = port, RING = ring, RING_TICKET = ring_ticket, RING_MASK = ring_mask, PORT_PAYLOAD = port_payload,
        PORT_SEQUENCE = port_sequence, PORT_CURSOR = port_cursor, PORT_LEFT = port_left, PORT_RESULT = port_result, CONSTANTS = constants,
        LAUNCH = launch, ANSWERS = answers, STDIN = stdin, STDIN_LEFT = stdin_left, OUTBOX = outbox, OUTBOX_USED = outbox_used, ANNEX_USED = annex_used,
        UNHEARD = unheard,        DRAWN = drawn, MEMORY_AT = memory_at,
    }
    /// Of a program with threads, see [`Header::memory_limit`].
    pub const WARP: u64 = MEMORY_LIMIT;
    pub const HEADER_BYTES: u64 = size_of::<Header>() as u64;
}

const _: () = assert!(size_of::<Header>().is_multiple_of(WORD as usize) && field::STATUS == 0);
