//! The layout of the bus: memory that the machine and the host both see.

use core::mem::{offset_of, size_of};

/// The capacity of each ring, in messages.
pub const IN_CAPACITY: u32 = 16384;
pub const PONG_CAPACITY: u32 = 16384;
pub const OUT_CAPACITY: u32 = 16384;
pub const LEDGER_CAPACITY: u32 = 4096;
pub const DEBUG_CAPACITY: u32 = 1024;

/// The whole bus.
#[derive(Debug)]
#[repr(C)]
pub struct Bus {
    pub words: Words,
    /// Events from the host.
    pub in_ring: [RingLine; IN_CAPACITY as usize],
    /// The supervisor's answers to pings.
    pub pong_ring: [RingLine; PONG_CAPACITY as usize],
    /// The answers of ticks to other events.
    pub out_ring: [RingLine; OUT_CAPACITY as usize],
    /// For each tick that took events: one message that says how many.
    pub ledger: [RingLine; LEDGER_CAPACITY as usize],
    /// Messages of a kernel built with the feature `debug`.
    pub debug_ring: [RingLine; DEBUG_CAPACITY as usize],
}

/// The words in front of the rings, on 4 KiB of their own.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct Words {
    /// Written by the host.
    pub control: ControlWords,
    pub _behind_control: [u64; 16],
    /// Written by the device: a copy of the words at [`S_STATUS`](super::S_STATUS), made with each heartbeat.
    pub status: StatusWords,
    /// How many messages the device has taken from the ring of events.
    pub in_taken: u64,
    pub _behind_in_taken: [u64; 31],
    /// For the entries that measure (the feature `measure`), which run without a machine: `ping` is written by the host,
    /// `pong` by the device.
    pub ping: [u64; 16],
    pub pong: [u64; 16],
}

/// One message in a ring: four tagged words (`tagged`).
#[derive(Debug)]
#[repr(C)]
pub struct RingLine(pub [u64; 4]);

/// What the host asks of the machine, in words of 8 bytes. A warp reads all of them with one load.
#[derive(Debug)]
#[repr(C)]
pub struct ControlWords {
    /// Not 0: the launch leaves at the next tick boundary.
    pub shutdown: u64,
    /// The number of a launch, or 0. That launch and all before it leave right after their next tick, so that the launch
    /// that follows has the whole time until another tick is due. If no tick may begin, they leave at once.
    pub leave: u64,
    /// Only ticks with a number below this may begin; all ones: any tick.
    pub limit: u64,
    /// Nanoseconds from one tick to the next; 0: ticks follow each other without a pause.
    pub period: u64,
    /// Not 0: the machine holds at the next tick boundary. The value is the number of the request, which
    /// [`StatusWords::held`] repeats.
    pub hold: u64,
    /// Nanoseconds that the supervisor sleeps after a round in which it found nothing to do.
    pub sleep: u64,
    /// Microseconds that a launch may take; 0: no limit.
    pub time: u64,
    /// Ticks that a launch may run; 0: no limit.
    pub ticks: u64,
    /// How many messages the host has taken from the rings of pongs, of answers and of the ledger.
    pub pong_taken: u64,
    pub out_taken: u64,
    pub ledger_taken: u64,
    /// For tests. Not 0: the supervisor publishes no periodic heartbeat. Only a kernel built with `faults` reads this word.
    pub mute: u64,
    /// The number of the first launch of newly loaded code.
    pub fresh: u64,
    pub unused: [u64; 3],
}

/// What the device reports about itself, in words of 8 bytes. All times are in nanoseconds of the device's clock.
#[derive(Debug)]
#[repr(C)]
pub struct StatusWords {
    /// The time of this heartbeat.
    pub clock: u64,
    /// Rounds of the supervisor's loop.
    pub iterations: u64,
    /// Ticks done.
    pub tick: u64,
    /// The longest time between two heartbeats.
    pub gap: u64,
    /// 1 + the phase in which the workers have made no progress for [`STUCK_NS`]; 0: the workers are not stuck.
    pub stuck: u64,
    /// The number of the request that the machine holds for ([`ControlWords::hold`]), or 0.
    pub held: u64,
    /// This word, `objects`, `timers`, `events` and `refused` are copied from the state's header.
    pub heap_bytes: u64,
    pub objects: u64,
    pub timers: u64,
    /// Work items in the queue.
    pub work: u64,
    pub events: u64,
    /// Answers that were dropped because the ring was full.
    pub lost: u64,
    /// Launches that left because of their time limit.
    pub limits: u64,
    pub refused: u64,
    /// Launches that have begun.
    pub launches: u64,
    /// Ticks that began more than half a period after they were due.
    pub late: u64,
    /// For each phase: the number of lanes that had work. Only the lower 32 bits are counted, and they wrap around.
    pub active: [u64; 8],
    /// For each phase: the number of all lanes, with and without work. Only the lower 32 bits are counted, and they wrap
    /// around.
    pub slots: [u64; 8],
    /// For each phase: the time spent in it.
    pub time: [u64; 8],
    /// About the launch that the host named in [`ControlWords::fresh`]: when the launch before it left, when it began, and
    /// when its first tick began (0: not yet).
    pub left: u64,
    pub back: u64,
    pub first: u64,
    pub unused: [u64; 21],
}

pub const PHASE_NAMES: [&str; 6] = ["wait", "input", "objects", "timers", "work", "frame end"];
pub const PHASE_WAIT: u32 = 0;
pub const PHASE_INPUT: u32 = 1;
pub const PHASE_OBJECTS: u32 = 2;
pub const PHASE_TIMERS: u32 = 3;
pub const PHASE_WORK: u32 = 4;
pub const PHASE_FRAME_END: u32 = 5;

/// Workers that have made no progress for this many nanoseconds are stuck.
pub const STUCK_NS: u64 = 1_000_000_000;
/// Nanoseconds from one heartbeat to the next.
pub const BEAT_NS: u64 = 1_000_000;

// --- Offsets of the fields ----------------------------------------------------------------------------------------------

pub const CONTROL: u32 = offset_of!(Words, control) as u32;
pub const CONTROL_WORDS: u32 = size_of::<ControlWords>() as u32 / 8;

/// The index of a field among the control words.
macro_rules! control {
    ($field:ident) => {
        offset_of!(ControlWords, $field) as u32 / 8
    };
}

pub const C_SHUTDOWN: u32 = control!(shutdown);
pub const C_LEAVE: u32 = control!(leave);
pub const C_LIMIT: u32 = control!(limit);
pub const C_PERIOD: u32 = control!(period);
pub const C_HOLD: u32 = control!(hold);
pub const C_SLEEP: u32 = control!(sleep);
pub const C_TIME: u32 = control!(time);
pub const C_TICKS: u32 = control!(ticks);
pub const C_PONG_TAKEN: u32 = control!(pong_taken);
pub const C_OUT_TAKEN: u32 = control!(out_taken);
pub const C_LEDGER_TAKEN: u32 = control!(ledger_taken);
#[cfg(feature = "faults")]
pub const C_MUTE: u32 = control!(mute);
pub const C_FRESH: u32 = control!(fresh);

pub const STATUS: u32 = offset_of!(Words, status) as u32;
pub const STATUS_WORDS: u32 = size_of::<StatusWords>() as u32 / 8;

/// The index of a field among the status words; of an array, the index of its first word.
macro_rules! status {
    ($field:ident) => {
        offset_of!(StatusWords, $field) as u32 / 8
    };
}

pub const STATUS_CLOCK: u32 = status!(clock);
pub const STATUS_ITERATIONS: u32 = status!(iterations);
pub const STATUS_TICK: u32 = status!(tick);
pub const STATUS_GAP: u32 = status!(gap);
pub const STATUS_STUCK: u32 = status!(stuck);
pub const STATUS_HELD: u32 = status!(held);
pub const STATUS_HEAP: u32 = status!(heap_bytes);
pub const STATUS_OBJECTS: u32 = status!(objects);
pub const STATUS_TIMERS: u32 = status!(timers);
pub const STATUS_WORK: u32 = status!(work);
pub const STATUS_EVENTS: u32 = status!(events);
pub const STATUS_LOST: u32 = status!(lost);
pub const STATUS_LIMITS: u32 = status!(limits);
pub const STATUS_REFUSED: u32 = status!(refused);
pub const STATUS_LAUNCHES: u32 = status!(launches);
pub const STATUS_LATE: u32 = status!(late);
pub const STATUS_ACTIVE: u32 = status!(active);
pub const STATUS_SLOTS: u32 = status!(slots);
pub const STATUS_TIME: u32 = status!(time);
pub const STATUS_LEFT: u32 = status!(left);
pub const STATUS_BACK: u32 = status!(back);
pub const STATUS_FIRST: u32 = status!(first);

pub const IN_TAKEN: u32 = offset_of!(Words, in_taken) as u32;
pub const PING_WORD: u32 = offset_of!(Words, ping) as u32;
pub const PONG_WORD: u32 = offset_of!(Words, pong) as u32;

pub const RING_LINE: u32 = size_of::<RingLine>() as u32;
pub const IN_RING: u32 = offset_of!(Bus, in_ring) as u32;
pub const PONG_RING: u32 = offset_of!(Bus, pong_ring) as u32;
pub const OUT_RING: u32 = offset_of!(Bus, out_ring) as u32;
pub const LEDGER: u32 = offset_of!(Bus, ledger) as u32;
pub const DEBUG_RING: u32 = offset_of!(Bus, debug_ring) as u32;
pub const BUS_BYTES: u32 = DEBUG_RING + DEBUG_CAPACITY * RING_LINE;

// --- The numbers that interface 1 fixes ---------------------------------------------------------------------------------

const _: () = {
    assert!(super::INTERFACE == 1);
    assert!(CONTROL == 0 && CONTROL_WORDS == 16 && STATUS == 256 && STATUS_WORDS == 64 && IN_TAKEN == 768);
    assert!(C_SHUTDOWN == 0 && C_LEAVE == 1 && C_LIMIT == 2 && C_PERIOD == 3 && C_HOLD == 4 && C_SLEEP == 5);
    assert!(C_TIME == 6 && C_TICKS == 7 && C_PONG_TAKEN == 8 && C_OUT_TAKEN == 9 && C_LEDGER_TAKEN == 10);
    assert!(control!(mute) == 11 && C_FRESH == 12);
    assert!(STATUS_CLOCK == 0 && STATUS_ITERATIONS == 1 && STATUS_TICK == 2 && STATUS_GAP == 3 && STATUS_STUCK == 4);
    assert!(STATUS_HELD == 5 && STATUS_HEAP == 6 && STATUS_OBJECTS == 7 && STATUS_TIMERS == 8 && STATUS_WORK == 9);
    assert!(STATUS_EVENTS == 10 && STATUS_LOST == 11 && STATUS_LIMITS == 12 && STATUS_REFUSED == 13);
    assert!(STATUS_LAUNCHES == 14 && STATUS_LATE == 15 && STATUS_ACTIVE == 16 && STATUS_SLOTS == 24);
    assert!(STATUS_TIME == 32 && STATUS_LEFT == 40 && STATUS_BACK == 41 && STATUS_FIRST == 42);
    assert!(PHASE_NAMES.len() <= (STATUS_SLOTS - STATUS_ACTIVE) as usize);
    assert!(PING_WORD == 1024 && PONG_WORD == 1152 && RING_LINE == 32);
    assert!(IN_RING == 0x1000 && PONG_RING == 0x8_1000 && OUT_RING == 0x10_1000 && LEDGER == 0x18_1000);
    assert!(DEBUG_RING == 0x1A_1000 && BUS_BYTES == 0x1A_9000 && BUS_BYTES as usize == size_of::<Bus>());
};
