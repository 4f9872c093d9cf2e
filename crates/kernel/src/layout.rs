//! Where everything lies: in the machine's memory, and on the bus. Host and device both take it from here.
//!
//! The machine's memory is one flat range. Up to [`STATE`] lies what the linker put there, which belongs to the code and goes with it; [`STATE`]`..`[`STATE_END`] is the machine's state, what is
//! hashed, kept and resumed; above it lies *scratch*, which means nothing between two ticks or has to do with time.

/// First word of a state: `GPRM`.
pub const MAGIC: u32 = 0x4D52_5047;
/// Of the state's layout and of what ticks do with it.
pub const VERSION: u32 = 1;
/// Of scratch and of the bus: what code of one build leaves to code of another, and says to the host.
pub const INTERFACE: u32 = 1;
/// The custom section of a kernel's module that says which it was built with: [`VERSION`] and [`INTERFACE`], four bytes each.
pub const SECTION: &str = "gpu-run-machine";

pub const STATE: u32 = 0x1_0000;

// --- The header, at STATE: words --------------------------------------------------------------------------------------

pub const H_MAGIC: u32 = STATE;
pub const H_VERSION: u32 = STATE + 4;
/// Ticks done; 8 bytes.
pub const H_TICK: u32 = STATE + 8;
/// Events that had their effect; 8 bytes.
pub const H_EVENTS: u32 = STATE + 16;
/// When the next timer is due; 8 bytes, all ones if there is none.
pub const H_DEADLINE: u32 = STATE + 24;
pub const H_OBJECTS: u32 = STATE + 32;
/// Bytes of the heap in use, as slots.
pub const H_HEAP: u32 = STATE + 36;
pub const H_TIMERS: u32 = STATE + 40;
/// Work items taken from and put into the queue, ever.
pub const H_WORK_HEAD: u32 = STATE + 44;
pub const H_WORK_TAIL: u32 = STATE + 48;
/// Events that could not have their effect.
pub const H_REFUSED: u32 = STATE + 52;
/// Words of objects that work has changed; 8 bytes.
pub const H_WORKED: u32 = STATE + 56;
/// Offsets of the parts, for whoever reads an image: queue, objects, timers, work, pages, bitmaps, arena, end.
pub const H_PARTS: u32 = STATE + 64;

// --- The state's parts ------------------------------------------------------------------------------------------------

/// Events from outside in one tick at most.
pub const STAGED_MAX: u32 = 4096;
/// Events in one tick at most: those and fired timers.
pub const QUEUE_MAX: u32 = STAGED_MAX + TIMERS_MAX;
/// Words of an event.
pub const EVENT_WORDS: u32 = 6;
pub const QUEUE: u32 = STATE + 0x1000;

/// Keys of objects are below this.
pub const OBJECTS_MAX: u32 = 1 << 14;
/// An object: address, size in bytes, writes, 0.
pub const OBJECT_BYTES: u32 = 16;
pub const OBJECTS: u32 = QUEUE + QUEUE_MAX * EVENT_WORDS * 4;
/// Bytes of an object at most.
pub const OBJECT_MAX: u32 = 1 << 20;

pub const TIMERS_MAX: u32 = 4096;
/// A timer: deadline (8 bytes, 0: none), event.
pub const TIMER_BYTES: u32 = 32;
pub const TIMERS: u32 = OBJECTS + OBJECTS_MAX * OBJECT_BYTES;

pub const WORK_MAX: u32 = 4096;
/// A work item: key, seed, rounds to go, 0.
pub const WORK_BYTES: u32 = 16;
pub const WORK: u32 = TIMERS + TIMERS_MAX * TIMER_BYTES;
/// Items and words that one tick works on at most; one item always.
pub const WORK_ITEMS: u32 = 256;
pub const WORK_WORDS: u32 = 1 << 20;

/// Pages of the heap, and their bytes.
pub const PAGES: u32 = 256;
pub const PAGE_BYTES: u32 = 1 << 16;
/// Size classes: 64 B, 128 B, … 64 KiB.
pub const CLASSES: u32 = 11;
pub const SMALLEST: u32 = 64;
/// A page: what it holds (0: nothing, 1 + class, RUN, RUN_ON), free slots (of a run: its pages).
pub const PAGE_ENTRY: u32 = 8;
/// The first page of an allocation of several, and the others.
pub const RUN: u32 = 32;
pub const RUN_ON: u32 = 33;
/// Being made, by a warp that does not wait for others.
pub const CLAIMED: u32 = 34;
pub const PAGE_TABLE: u32 = WORK + WORK_MAX * WORK_BYTES;
/// 32 words for each page: a bit for each slot in use.
pub const BITMAPS: u32 = PAGE_TABLE + PAGES * PAGE_ENTRY;
pub const BITMAP_BYTES: u32 = 128;
pub const ARENA: u32 = (BITMAPS + PAGES * BITMAP_BYTES).next_multiple_of(PAGE_BYTES);
pub const STATE_END: u32 = ARENA + PAGES * PAGE_BYTES;

// --- Scratch: what the supervisor and the workers tell each other -----------------------------------------------------

/// Commands given and commands done.
pub const S_GO: u32 = STATE_END;
pub const S_DONE: u32 = STATE_END + 64;
/// The command: what, events staged, how far the host has taken output.
pub const S_COMMAND: u32 = STATE_END + 128;
pub const S_COMMAND_STAGED: u32 = STATE_END + 132;
pub const S_COMMAND_TAKEN: u32 = STATE_END + 136;
/// Where the staged events are.
pub const S_COMMAND_FROM: u32 = STATE_END + 140;
/// The tick's number; 8 bytes.
pub const S_COMMAND_NUMBER: u32 = STATE_END + 144;
pub const COMMAND_TICK: u32 = 1;
pub const COMMAND_LEAVE: u32 = 2;
/// The barrier of all groups: arrivals, generation.
pub const S_ARRIVED: u32 = STATE_END + 192;
pub const S_GENERATION: u32 = STATE_END + 256;
/// Changes whenever the workers get on; the phase they are in.
pub const S_PROGRESS: u32 = STATE_END + 320;
pub const S_PHASE: u32 = STATE_END + 324;
/// Events taken from the ring; pongs, outputs, ledger entries, debug messages written.
pub const S_IN_HEAD: u32 = STATE_END + 384;
pub const S_PONG_HEAD: u32 = STATE_END + 388;
pub const S_OUT_HEAD: u32 = STATE_END + 392;
pub const S_LEDGER_HEAD: u32 = STATE_END + 396;
pub const S_DEBUG_HEAD: u32 = STATE_END + 400;
/// Events staged for the next tick.
pub const S_STAGED: u32 = STATE_END + 404;
/// When the next tick is due, and when the last heartbeat was; 8 bytes each.
pub const S_DUE: u32 = STATE_END + 408;
pub const S_BEAT: u32 = STATE_END + 416;
/// Which of the two places the next tick's events are staged in.
pub const S_SIDE: u32 = STATE_END + 428;
/// Outputs nobody had room for.
pub const S_LOST: u32 = STATE_END + 424;
/// When the last launch left its last tick boundary; 8 bytes.
pub const S_LEFT: u32 = STATE_END + 432;

/// What is published with each heartbeat: 64 words of 8 bytes, by their numbers below.
pub const S_STATUS: u32 = STATE_END + 512;
pub const STATUS_WORDS: u32 = 64;
pub const STATUS_CLOCK: u32 = 0;
pub const STATUS_ITERATIONS: u32 = 1;
pub const STATUS_TICK: u32 = 2;
/// The longest time between two heartbeats, in nanoseconds.
pub const STATUS_GAP: u32 = 3;
/// 1 + the phase in which the workers have not moved for [`STUCK_NS`].
pub const STATUS_STUCK: u32 = 4;
/// The machine's answer to a wish to hold: the wish's number.
pub const STATUS_HELD: u32 = 5;
pub const STATUS_HEAP: u32 = 6;
pub const STATUS_OBJECTS: u32 = 7;
pub const STATUS_TIMERS: u32 = 8;
pub const STATUS_WORK: u32 = 9;
pub const STATUS_EVENTS: u32 = 10;
pub const STATUS_LOST: u32 = 11;
/// Launches whose end was a time limit.
pub const STATUS_LIMITS: u32 = 12;
pub const STATUS_REFUSED: u32 = 13;
/// Launches that have begun.
pub const STATUS_LAUNCHES: u32 = 14;
/// Ticks that began later than half a period after they were due.
pub const STATUS_LATE: u32 = 15;
/// For each phase: lanes that had something to do, lanes that there were, nanoseconds; 16 words each.
pub const STATUS_ACTIVE: u32 = 16;
pub const STATUS_SLOTS: u32 = 24;
pub const STATUS_TIME: u32 = 32;

/// Of the launch that the host called fresh ([`C_FRESH`]): when the one before it left, when it took its first look, and when its first tick began (0: it has not).
pub const STATUS_LEFT: u32 = 40;
pub const STATUS_BACK: u32 = 41;
pub const STATUS_FIRST: u32 = 42;

pub const PHASE_NAMES: [&str; 6] = ["wait", "input", "objects", "timers", "work", "frame end"];
pub const PHASE_WAIT: u32 = 0;
pub const PHASE_INPUT: u32 = 1;
pub const PHASE_OBJECTS: u32 = 2;
pub const PHASE_TIMERS: u32 = 3;
pub const PHASE_WORK: u32 = 4;
pub const PHASE_FRAME_END: u32 = 5;

pub const STUCK_NS: u64 = 1_000_000_000;
pub const BEAT_NS: u64 = 1_000_000;

// --- Scratch of the helpers and phases --------------------------------------------------------------------------------

/// Sums of groups, twice.
pub const GROUPS_MAX: u32 = 1024;
pub const X_SUMS: u32 = STATE_END + 0x1000;
/// Events that wait for the next tick, as they were in the ring: twice, for while a tick reads them, those of the next are staged.
pub const X_STAGED: u32 = X_SUMS + 2 * GROUPS_MAX * 4;
pub const X_SORT: u32 = X_STAGED + 2 * STAGED_MAX * RING_LINE;
/// Where runs of events for one object begin in what was sorted.
pub const X_HEADS: u32 = X_SORT + QUEUE_MAX * 4;
/// For each event: its result and a value.
pub const X_RESULT: u32 = X_HEADS + (QUEUE_MAX + 1) * 4;
pub const X_VALUE: u32 = X_RESULT + QUEUE_MAX * 4;
/// For each object that something happens to: what to free, what to allocate, which event makes it.
pub const X_FREE: u32 = X_VALUE + QUEUE_MAX * 4;
pub const X_WANT: u32 = X_FREE + QUEUE_MAX * 4;
pub const X_GOT: u32 = X_WANT + QUEUE_MAX * 4;
pub const X_MAKER: u32 = X_GOT + QUEUE_MAX * 4;
/// Ranks of requests, lists of indices.
pub const X_RANK: u32 = X_MAKER + QUEUE_MAX * 4;
pub const X_LIST: u32 = X_RANK + (QUEUE_MAX + 1) * 4;
/// Sums up to each page.
pub const X_PAGES: u32 = X_LIST + QUEUE_MAX * 4;
pub const X_END: u32 = X_PAGES + (PAGES + 1) * 4;

/// Bytes of the machine's memory: what it is linked with (.cargo/config.toml).
pub const MEMORY_BYTES: u32 = 19_922_944;
const _: () = assert!(X_END <= MEMORY_BYTES && MEMORY_BYTES.is_multiple_of(65536));
const _: () = assert!(STATE_END.is_multiple_of(64) && X_STAGED.is_multiple_of(64) && OBJECTS.is_multiple_of(16));

// --- The bus ----------------------------------------------------------------------------------------------------------

/// What the host says: 16 words of 8 bytes, which one look brings.
pub const CONTROL: u32 = 0;
pub const CONTROL_WORDS: u32 = 16;
pub const C_SHUTDOWN: u32 = 0;
/// The number of a launch that shall end right behind its next tick, and all before it: at once where no tick may begin. Whoever comes after it then has the whole
/// time until the next is due.
pub const C_LEAVE: u32 = 1;
/// Ticks that may begin are below this.
pub const C_LIMIT: u32 = 2;
/// Nanoseconds from one tick to the next; 0: as fast as it goes.
pub const C_PERIOD: u32 = 3;
/// A wish to hold at a tick boundary: its number, or 0.
pub const C_HOLD: u32 = 4;
/// Nanoseconds the supervisor sleeps when it found nothing to do.
pub const C_SLEEP: u32 = 5;
/// Microseconds a launch may take; 0: any.
pub const C_TIME: u32 = 6;
/// Ticks of a launch; 0: any.
pub const C_TICKS: u32 = 7;
/// How far the host has read the rings.
pub const C_PONG_TAKEN: u32 = 8;
pub const C_OUT_TAKEN: u32 = 9;
pub const C_LEDGER_TAKEN: u32 = 10;
/// For tests: milliseconds without a heartbeat.
pub const C_MUTE: u32 = 11;
/// The number of the launch that is the first of new code.
pub const C_FRESH: u32 = 12;

/// What the device says: the words of [`S_STATUS`], and how far it has read the ring.
pub const STATUS: u32 = 256;
pub const IN_TAKEN: u32 = STATUS + STATUS_WORDS * 8;
/// The bare ping-pong's two words.
pub const PING_WORD: u32 = 1024;
pub const PONG_WORD: u32 = 1152;

/// One message in a ring: four tagged words (`tagged`).
pub const RING_LINE: u32 = 32;
pub const IN_RING: u32 = 4096;
pub const IN_CAPACITY: u32 = 16384;
pub const PONG_RING: u32 = IN_RING + IN_CAPACITY * RING_LINE;
pub const PONG_CAPACITY: u32 = 16384;
pub const OUT_RING: u32 = PONG_RING + PONG_CAPACITY * RING_LINE;
pub const OUT_CAPACITY: u32 = 16384;
/// Which tick took how many events: one message for each tick that took some.
pub const LEDGER: u32 = OUT_RING + OUT_CAPACITY * RING_LINE;
pub const LEDGER_CAPACITY: u32 = 4096;
pub const DEBUG_RING: u32 = LEDGER + LEDGER_CAPACITY * RING_LINE;
pub const DEBUG_CAPACITY: u32 = 1024;
pub const BUS_BYTES: u32 = DEBUG_RING + DEBUG_CAPACITY * RING_LINE;
