//! The layout of scratch: what the supervisor and the workers tell each other, what one launch leaves to the next, and
//! working memory of the phases.

use super::bus::{RingLine, StatusWords};
use super::state::{PAGES, QUEUE_MAX, STAGED_MAX, STATE_END};
use core::mem::{offset_of, size_of};

/// The maximum number of workgroups of workers.
pub const GROUPS_MAX: u32 = 1024;

/// The whole of scratch, which begins at [`STATE_END`].
#[derive(Debug)]
#[repr(C)]
pub struct Scratch {
    pub shared: Shared,
    /// The value of each workgroup in a scan or a reduction. There are two copies, because some workgroups may still read
    /// one copy while others already write the other.
    pub sums: [[u32; GROUPS_MAX as usize]; 2],
    /// Events for the next tick, as they were in the ring but without tags. There are two copies, because a tick reads one
    /// copy while the supervisor stages the events of the next tick in the other.
    pub staged: [[RingLine; STAGED_MAX as usize]; 2],
    /// The words that are sorted: the key of an object in the upper bits, the index of its event in the queue in the lower
    /// bits. A *run* is a sequence of sorted words with the same key.
    pub sort: [u32; QUEUE_MAX as usize],
    /// The index in `sort` where each run begins, and then the index where the last run ends.
    pub heads: [u32; QUEUE_MAX as usize + 1],
    /// For each event of the queue: its result, and the value that is returned with it.
    pub result: [u32; QUEUE_MAX as usize],
    pub value: [u32; QUEUE_MAX as usize],
    /// For each run: the address to free, the number of bytes to allocate, the address that was allocated, and the event
    /// that makes the object. The work phase uses the first three to move work items that have rounds left.
    pub free: [u32; QUEUE_MAX as usize],
    pub want: [u32; QUEUE_MAX as usize],
    pub got: [u32; QUEUE_MAX as usize],
    pub maker: [u32; QUEUE_MAX as usize],
    /// Ranks or sums, and lists of indices; each phase uses them for its own purposes.
    pub rank: [u32; QUEUE_MAX as usize + 1],
    pub list: [u32; QUEUE_MAX as usize],
    /// For each page: the number of vacant slots of a size class in all pages before it.
    pub pages: [u32; PAGES as usize + 1],
}

/// Words that both the supervisor and the workers use, on 4 KiB of their own. A word that some threads poll while others
/// write it has 64 bytes to itself.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct Shared {
    /// The number of commands given; written by the supervisor.
    pub go: Lone,
    /// The number of commands done; written by the workers' leader.
    pub done: Lone,
    pub command: Command,
    /// The barrier of the workers' workgroups: how many workgroups have arrived, and how often all of them had.
    pub arrived: Lone,
    pub generation: Lone,
    pub progress: Progress,
    pub left: Left,
    pub _behind_left: [u32; 16],
    /// The words that each heartbeat copies to the bus.
    pub status: StatusWords,
}

/// A word with 64 bytes to itself.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Lone(pub u32);

/// The supervisor's command to the workers.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Command {
    /// [`COMMAND_TICK`] or [`COMMAND_LEAVE`].
    pub what: u32,
    /// The number of events that are staged for the tick.
    pub staged: u32,
    /// How many messages the host has taken from the ring of answers.
    pub taken: u32,
    /// The address of the staged events.
    pub from: u32,
    /// The tick's number.
    pub number: u64,
}

pub const COMMAND_TICK: u32 = 1;
pub const COMMAND_LEAVE: u32 = 2;

/// What the workers report about their progress.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Progress {
    /// Changes whenever a phase ends.
    pub count: u32,
    /// The phase that the workers are in.
    pub phase: u32,
}

/// What a launch leaves to the next. The supervisor writes these words at the end of the launch; the workers write
/// `out_head`, `debug_head` and `lost` during ticks.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Left {
    /// The number of messages taken from the ring of events.
    pub in_head: u32,
    /// The numbers of pongs, answers, ledger entries and debug messages written.
    pub pong_head: u32,
    pub out_head: u32,
    pub ledger_head: u32,
    pub debug_head: u32,
    /// The number of events staged for the next tick.
    pub staged: u32,
    /// When the next tick is due, and when the last heartbeat was published, in nanoseconds of the device's clock.
    pub due: u64,
    pub beat: u64,
    /// The number of answers that were dropped because the ring was full.
    pub lost: u32,
    /// Which of the two copies of [`Scratch::staged`] holds the events of the next tick.
    pub side: u32,
    /// When the launch left, at its last tick boundary, in nanoseconds of the device's clock.
    pub when: u64,
}

// --- Addresses of the fields --------------------------------------------------------------------------------------------

/// The address of a field of [`Shared`].
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

/// The address of a field of [`Scratch`]: working memory of the phases.
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

// --- The numbers that interface 1 fixes: new code finds there what the code before it left ------------------------------

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
