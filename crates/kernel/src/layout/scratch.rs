//! Scratch: what the supervisor and the workers tell each other, what one launch leaves to the next, and room for the phases.

use super::bus::{RingLine, StatusWords};
use super::state::{PAGES, QUEUE_MAX, STAGED_MAX, STATE_END};
use core::mem::{offset_of, size_of};

/// Workgroups that work, at most.
pub const GROUPS_MAX: u32 = 1024;

/// All of it, as it lies at [`STATE_END`].
#[derive(Debug)]
#[repr(C)]
pub struct Scratch {
    pub shared: Shared,
    /// What each workgroup says to a scan or a reduction; twice, for while some still read the one, others write the other.
    pub sums: [[u32; GROUPS_MAX as usize]; 2],
    /// Events that wait for the next tick, as they were in the ring; twice, for while a tick reads the one, those of the next are staged in the other.
    pub staged: [[RingLine; STAGED_MAX as usize]; 2],
    /// What is sorted: keys of objects, each with the place of its event in the queue below it.
    pub sort: [u32; QUEUE_MAX as usize],
    /// Where runs of events for one object begin in what was sorted, and where the last one ends.
    pub heads: [u32; QUEUE_MAX as usize + 1],
    /// For each event of the queue: its result and a value.
    pub result: [u32; QUEUE_MAX as usize],
    pub value: [u32; QUEUE_MAX as usize],
    /// For each run: what to free, how many bytes to allocate, what was allocated, and which event makes the object. Work items that go on pass through the first three.
    pub free: [u32; QUEUE_MAX as usize],
    pub want: [u32; QUEUE_MAX as usize],
    pub got: [u32; QUEUE_MAX as usize],
    pub maker: [u32; QUEUE_MAX as usize],
    /// Ranks of requests, lists of indices.
    pub rank: [u32; QUEUE_MAX as usize + 1],
    pub list: [u32; QUEUE_MAX as usize],
    /// Vacant slots of a class before each page.
    pub pages: [u32; PAGES as usize + 1],
}

/// What all threads look at, on 4 KiB of its own. Words that some wait for while others write have 64 bytes for themselves.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct Shared {
    /// Commands given; the supervisor writes it.
    pub go: Lone,
    /// Commands done; the workers' leader writes it.
    pub done: Lone,
    pub command: Command,
    /// The barrier of the workers' workgroups: how many have arrived, and how often all had.
    pub arrived: Lone,
    pub generation: Lone,
    pub progress: Progress,
    pub left: Left,
    pub _behind_left: [u32; 16],
    /// What is published with each heartbeat.
    pub status: StatusWords,
}

/// A word on a line of its own.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Lone(pub u32);

/// What the supervisor commands.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Command {
    /// [`COMMAND_TICK`] or [`COMMAND_LEAVE`].
    pub what: u32,
    /// How many events are staged, how far the host has taken output, and where the staged events are.
    pub staged: u32,
    pub taken: u32,
    pub from: u32,
    /// The tick's number.
    pub number: u64,
}

pub const COMMAND_TICK: u32 = 1;
pub const COMMAND_LEAVE: u32 = 2;

/// What the workers say of where they are.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Progress {
    /// Changes with every phase that ends.
    pub count: u32,
    /// The phase they are in.
    pub phase: u32,
}

/// What a launch leaves to the next. The supervisor writes it when it leaves, but for what is said to change meanwhile.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Left {
    /// Messages taken from the ring.
    pub in_head: u32,
    /// Pongs, answers, ledger entries and debug messages written. Workers count answers and debug messages as they write them.
    pub pong_head: u32,
    pub out_head: u32,
    pub ledger_head: u32,
    pub debug_head: u32,
    /// Events staged for the next tick.
    pub staged: u32,
    /// When the next tick is due, and when the last heartbeat was.
    pub due: u64,
    pub beat: u64,
    /// Answers for which the ring had no room; workers count them in each tick.
    pub lost: u32,
    /// Which of the two places the next tick's events are staged in.
    pub side: u32,
    /// When the launch left its last tick boundary.
    pub when: u64,
}

// --- Where the fields are -----------------------------------------------------------------------------------------------

/// A field of what all threads look at.
macro_rules! shared {
    ($($field:ident).+) => { STATE_END + (offset_of!(Scratch, shared) + offset_of!(Shared, $($field).+)) as u32 };
}

pub const S_GO: u32 = shared!(go);
pub const S_DONE: u32 = shared!(done);
pub const S_COMMAND: u32 = shared!(command.what);
pub const S_COMMAND_STAGED: u32 = shared!(command.staged);
pub const S_COMMAND_TAKEN: u32 = shared!(command.taken);
pub const S_COMMAND_FROM: u32 = shared!(command.from);
pub const S_COMMAND_NUMBER: u32 = shared!(command.number);
pub const S_ARRIVED: u32 = shared!(arrived);
pub const S_GENERATION: u32 = shared!(generation);
pub const S_PROGRESS: u32 = shared!(progress.count);
pub const S_PHASE: u32 = shared!(progress.phase);
pub const S_IN_HEAD: u32 = shared!(left.in_head);
pub const S_PONG_HEAD: u32 = shared!(left.pong_head);
pub const S_OUT_HEAD: u32 = shared!(left.out_head);
pub const S_LEDGER_HEAD: u32 = shared!(left.ledger_head);
pub const S_DEBUG_HEAD: u32 = shared!(left.debug_head);
pub const S_STAGED: u32 = shared!(left.staged);
pub const S_DUE: u32 = shared!(left.due);
pub const S_BEAT: u32 = shared!(left.beat);
pub const S_LOST: u32 = shared!(left.lost);
pub const S_SIDE: u32 = shared!(left.side);
pub const S_LEFT: u32 = shared!(left.when);
pub const S_STATUS: u32 = shared!(status);

/// Room for the phases.
macro_rules! room {
    ($field:ident) => {
        STATE_END + offset_of!(Scratch, $field) as u32
    };
}

pub const X_SUMS: u32 = room!(sums);
pub const X_STAGED: u32 = room!(staged);
pub const X_SORT: u32 = room!(sort);
pub const X_HEADS: u32 = room!(heads);
pub const X_RESULT: u32 = room!(result);
pub const X_VALUE: u32 = room!(value);
pub const X_FREE: u32 = room!(free);
pub const X_WANT: u32 = room!(want);
pub const X_GOT: u32 = room!(got);
pub const X_MAKER: u32 = room!(maker);
pub const X_RANK: u32 = room!(rank);
pub const X_LIST: u32 = room!(list);
pub const X_PAGES: u32 = room!(pages);
pub const SCRATCH_END: u32 = STATE_END + size_of::<Scratch>() as u32;

// --- What interface 1 says: new code finds what the code before it left ---------------------------------------------------

const _: () = {
    assert!(super::INTERFACE == 1);
    assert!(S_GO == STATE_END && S_DONE == STATE_END + 64);
    assert!(S_COMMAND == STATE_END + 128 && S_COMMAND_STAGED == STATE_END + 132 && S_COMMAND_TAKEN == STATE_END + 136);
    assert!(S_COMMAND_FROM == STATE_END + 140 && S_COMMAND_NUMBER == STATE_END + 144);
    assert!(S_ARRIVED == STATE_END + 192 && S_GENERATION == STATE_END + 256);
    assert!(S_PROGRESS == STATE_END + 320 && S_PHASE == STATE_END + 324);
    assert!(S_IN_HEAD == STATE_END + 384 && S_PONG_HEAD == STATE_END + 388 && S_OUT_HEAD == STATE_END + 392);
    assert!(S_LEDGER_HEAD == STATE_END + 396 && S_DEBUG_HEAD == STATE_END + 400 && S_STAGED == STATE_END + 404);
    assert!(S_DUE == STATE_END + 408 && S_BEAT == STATE_END + 416 && S_LOST == STATE_END + 424);
    assert!(S_SIDE == STATE_END + 428 && S_LEFT == STATE_END + 432 && S_STATUS == STATE_END + 512);
    assert!(X_SUMS == STATE_END + 0x1000 && X_STAGED == STATE_END + 0x3000 && X_SORT == STATE_END + 0x4_3000);
};
