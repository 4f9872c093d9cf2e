//! A program with threads: each thread is an instance in a slot of its own, and all instances share one memory.
//!
//! ```text
//! slots     slot of thread 0 │ slot of thread 1 │ …
//! memory    Record │ mailbox of each thread │ … │ guest byte 0 … up to the limit
//! ```
//!
//! A launch has a GPU thread for every thread the program may start. Thread 0 runs the program; the others are *parked*:
//! each looks at its mailbox now and then. To start a thread, the program takes a parked one and writes an identifier and
//! an argument into its mailbox. The parked thread makes its slot a fresh instance, runs it, and parks again.
//!
//! Every slot's header holds the address of guest byte 0 ([`crate::layout::Header::memory_at`]). The [`Record`] lies right
//! before guest byte 0.

use core::mem::offset_of;

/// What all threads share besides the memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Record {
    /// Length of the memory in bytes. It only grows.
    pub length: u64,
    /// Bytes that the memory may grow to; all of them are there, and zero.
    pub limit: u64,
    /// Slots, and with them threads, including thread 0.
    pub threads: u64,
    /// Device address of the mailboxes: a word for each slot, 0 while nobody has written.
    pub mailboxes: u64,
    /// The parked threads: the slot plus one of the first (0: none), and above it a count that every change raises.
    pub parked: u64,
    /// Device address of the list of parked threads: for each slot, the slot plus one of the next.
    pub next_parked: u64,
    /// The slot plus one of the thread that ended the program; 0 while it runs.
    pub ended_by: u64,
    /// The identifier that was given last.
    pub last_id: u64,
    /// Threads that were started, and the most that ran at once.
    pub started: u64,
    pub running: u64,
    pub most_running: u64,
    /// Device address of [`BUCKETS`] buckets of waiting threads, see [`Bucket`], and of a [`Waiter`] for each slot.
    pub buckets: u64,
    pub waiters: u64,
    pub reserved: [u64; 3],
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

/// A thread that may wait.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Waiter {
    /// The guest address the thread waits at, and above it 1 while it waits.
    pub waits_at: u64,
    /// The slot plus one of the next thread in the bucket; 0 for the last.
    pub next: u64,
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
const _: () = assert!(RECORD_BYTES == 128);

/// The largest thread identifier: WASI's threads have 29 bits.
pub const MAX_ID: u32 = 0x1fff_ffff;

/// The module and the name of the import that starts a thread, and the export that the thread runs.
pub const MODULE: &str = "wasi";
pub const SPAWN: &str = "thread-spawn";
pub const START: &str = "wasi_thread_start";

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
    LENGTH = length, LIMIT = limit, THREADS = threads, MAILBOXES = mailboxes, PARKED = parked, NEXT_PARKED = next_parked,
    ENDED_BY = ended_by, LAST_ID = last_id, STARTED = started, RUNNING = running, MOST_RUNNING = most_running,
    BUCKETS = buckets, WAITERS = waiters,
}
