//! A program with threads: each thread is an instance in a slot of its own, and all instances share one memory.
//!
//! ```text
//! slots     slot of thread 0 │ slot of thread 1 │ …
//! memory    mailboxes │ warps │ … │ Record │ guest byte 0 … up to the limit
//! ```
//!
//! A launch has more GPU threads than it needs at first: *lanes*, 32 of which are a *warp*. Lane 0 runs the program in slot
//! 0; the others are *parked*: each looks at its [`Mailbox`] now and then. To start a thread, the program takes a free slot
//! and a parked lane, and writes a message into the lane's mailbox. The lane runs the instance, makes its slot a fresh
//! instance, and parks again.
//!
//! Lanes of one warp share its instructions as long as they do the same, and take turns otherwise. So the first threads
//! get a warp each, and the others share warps. Lanes that start one by one never do the same at the same time; so a warp
//! is *filled* first: its lanes start together when all have a message, when the thread that fills it waits for something,
//! or when nothing was added for a while. A thread that finds no unused warp takes a parked lane of a warp in use.
//!
//! Every slot's header holds the address of guest byte 0 ([`crate::layout::Header::memory_at`]). The [`Record`] lies right
//! before guest byte 0.

use crate::layout::field;
use core::mem::offset_of;

/// What all threads share besides the memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Record {
    /// Length of the memory in bytes. It only grows.
    pub length: u64,
    /// Bytes that the memory may grow to; all of them are there, and zero.
    pub limit: u64,
    /// The slot plus one of the thread that ended the program; 0 while it runs.
    pub ended_by: u64,
    /// The free slots: the first one plus one (0: none), and above it a count that every change raises.
    pub free_slots: u64,
    /// Device address of the list of free slots: for each slot, the next one plus one.
    pub next_slots: u64,
    /// The unused warps, as the free slots; the list is in [`Warp::next`].
    pub free_warps: u64,
    /// Device address of a [`Warp`] for each warp, and how many there are.
    pub warps: u64,
    pub warp_count: u64,
    /// Device address of a [`Mailbox`] for each lane.
    pub mailboxes: u64,
    /// The warp plus one that is being filled (0: none), and above it how many of its lanes have a message or are about
    /// to get one.
    pub filling: u64,
    /// How many threads have a warp each, and how many may.
    pub alone: u64,
    pub most_alone: u64,
    /// The identifier that was given last.
    pub last_id: u64,
    /// Threads that were started, the ones that run, and the most that ran at once. The program's first thread is not
    /// counted.
    pub started: u64,
    pub running: u64,
    pub most_running: u64,
    /// Warps that were filled, and threads that started in them.
    pub fillings: u64,
    pub filled: u64,
    /// The warp where a parked lane was last found in a warp in use: the next search begins there.
    pub searched: u64,
    /// Device address of [`BUCKETS`] buckets of waiting threads, see [`Bucket`], and of a [`Waiter`] for each slot.
    pub buckets: u64,
    pub waiters: u64,
    pub reserved: [u64; 11],
}

/// A word of a slot that a thread keeps in shared memory while it runs, see `print/hot.rs` in the crate `gpu-run-ptx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotWord {
    /// Offset of the word in the slot.
    pub at: u64,
    /// The host reads the word in the slot while the thread runs, so it is stored there, too.
    pub is_watched: bool,
}

/// The fields of the header that are hot words, and the most globals that are.
pub const HOT_FIELDS: [u64; 6] =
    [field::STACK_FLOOR, field::MEMORY_AT, field::MEMORY_FAST, field::MEMORY_BYTES, field::STOP, field::FUEL];
pub const HOT_GLOBALS: usize = 4;

/// Lanes of a warp.
pub const LANES: u64 = 32;

/// A warp.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Warp {
    /// The lanes in use: one bit for each. 0 in an unused warp, and in one that is being filled.
    pub busy: u64,
    /// How many lanes start together; 0 until that is known.
    pub together: u64,
    /// When a lane of a warp that is being filled last got a message, by the device's timer.
    pub added: u64,
    /// The next unused warp plus one.
    pub next: u64,
}

/// The message to a parked lane.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Mailbox {
    /// The slot plus one of the thread to run, and [`message`]'s flags; 0: no message.
    pub slot: u64,
    /// The thread's identifier, and above it the argument of its start. Written first.
    pub start: u64,
}

/// Flags in a mailbox, above the slot.
pub mod message {
    /// The thread has a warp of its own.
    pub const ALONE: u64 = 1 << 32;
    /// The thread starts together with others of its warp.
    pub const TOGETHER: u64 = 1 << 33;
}

/// Number of buckets, a power of two: addresses that threads wait at are spread over them.
pub const BUCKETS: u64 = 1024;

/// The threads that wait at addresses of one bucket, in the order in which they came.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Bucket {
    /// 1 while a thread changes the bucket.
    pub lock: u64,
    /// The slot plus one of the first thread, and above it that of the last; 0 if there is none.
    pub ends: u64,
}

/// A thread that may wait, and what the host reads about it: the last words tell what the thread does, and nothing on the
/// device depends on them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Waiter {
    /// The guest address the thread waits at, and above it 1 while it waits.
    pub waits_at: u64,
    /// The slot plus one of the next thread in the bucket; 0 for the last.
    pub next: u64,
    /// The thread's identifier; 0 for the program's first thread.
    pub id: u64,
    /// What the thread does ([`doing`]), and below it where: an offset in the .wasm file, 0 if that is not known.
    pub doing: u64,
    /// The longest time that a wait or sleep takes, in nanoseconds; negative if it has no end.
    pub time: i64,
}

/// What a thread does, in the upper half of [`Waiter::doing`].
pub mod doing {
    pub const RUNS: u64 = 0;
    /// Waits at a guest address, see [`super::Waiter::waits_at`].
    pub const WAITS: u64 = 1;
    pub const SLEEPS: u64 = 2;
    /// Waits for the host's answer: this plus the number of the host call.
    pub const CALLS: u64 = 1 << 16;
}

impl Record {
    pub fn bytes(&self) -> &[u8] {
        bytemuck::bytes_of(self)
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::bytes_of_mut(self)
    }
}

/// Bytes from a record to guest byte 0.
pub const RECORD_BYTES: u64 = size_of::<Record>() as u64;
const _: () = assert!(RECORD_BYTES == 256);

/// The largest thread identifier: WASI's threads have 29 bits.
pub const MAX_ID: u32 = 0x1fff_ffff;

/// The module and the name of the import that starts a thread, and the export that the thread runs.
pub const MODULE: &str = "wasi";
pub const SPAWN: &str = "thread-spawn";
pub const START: &str = "wasi_thread_start";

/// Returns whether an import is the function that starts a thread.
pub fn is_spawn(module: &str, name: &str) -> bool {
    (module, name) == (MODULE, SPAWN)
}

/// Returns whether an import of a shared memory is the one that the threads of a program share.
pub fn is_memory(module: &str, name: &str) -> bool {
    (module, name) == ("env", "memory")
}

macro_rules! offsets {
    ($($name:ident = $field:ident),* $(,)?) => {
        /// Offsets of the record's fields from guest byte 0, which are negative.
        pub mod offset {
            use super::*;
            $(pub const $name: i32 = offset_of!(Record, $field) as i32 - RECORD_BYTES as i32;)*
        }
    };
}

offsets! {
    LENGTH = length, LIMIT = limit, ENDED_BY = ended_by, FREE_SLOTS = free_slots, NEXT_SLOTS = next_slots,
    FREE_WARPS = free_warps, WARPS = warps, WARP_COUNT = warp_count, MAILBOXES = mailboxes, FILLING = filling,
    ALONE = alone, MOST_ALONE = most_alone, LAST_ID = last_id, STARTED = started, RUNNING = running,
    MOST_RUNNING = most_running, FILLINGS = fillings, FILLED = filled, SEARCHED = searched, BUCKETS = buckets,
    WAITERS = waiters,
}
