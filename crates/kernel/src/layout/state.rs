//! The layout of the state. After boot, nothing but ticks changes the state.

use core::mem::{offset_of, size_of};

/// Where the state begins in the machine's memory.
pub const STATE: u32 = 0x1_0000;
pub const STATE_END: u32 = STATE + size_of::<MachineState>() as u32;

/// The maximum number of events from the host in one tick.
pub const STAGED_MAX: u32 = 4096;
/// The maximum number of events in one tick: those from the host and those of fired timers.
pub const QUEUE_MAX: u32 = STAGED_MAX + TIMERS_MAX;
/// The number of objects that can exist: their keys are below this.
pub const OBJECTS_MAX: u32 = 1 << 14;
/// The maximum size of an object, in bytes.
pub const OBJECT_MAX: u32 = 1 << 20;
pub const TIMERS_MAX: u32 = 4096;
pub const WORK_MAX: u32 = 4096;
/// The maximum numbers of items and of words that one tick works on. A single item may have more words than that.
pub const WORK_ITEMS: u32 = 256;
pub const WORK_WORDS: u32 = 1 << 20;
/// The number of pages of the heap, and the bytes of a page.
pub const PAGES: u32 = 256;
pub const PAGE_BYTES: u32 = 1 << 16;
/// The number of size classes (64 B, 128 B, … 64 KiB), and the bytes of the smallest.
pub const CLASSES: u32 = 11;
pub const SMALLEST: u32 = 64;

/// The whole state, which begins at [`STATE`].
#[derive(Debug)]
#[repr(C)]
pub struct MachineState {
    pub header: Header,
    /// The events of the tick: those from the host, then those of timers.
    pub queue: [StoredEvent; QUEUE_MAX as usize],
    /// The object with key *k* is at index *k*.
    pub objects: [Object; OBJECTS_MAX as usize],
    pub timers: [Timer; TIMERS_MAX as usize],
    /// The work queue, a ring: item *n* is at index *n* mod [`WORK_MAX`].
    pub work: [WorkItem; WORK_MAX as usize],
    pub page_table: [PageEntry; PAGES as usize],
    /// For each page: one bit for each slot, set while the slot is in use.
    pub bitmaps: [Bitmap; PAGES as usize],
    pub arena: [Page; PAGES as usize],
}

/// The beginning of the state, on 4 KiB of its own.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct Header {
    /// [`MAGIC`](super::MAGIC) and [`VERSION`](super::VERSION).
    pub magic: u32,
    pub version: u32,
    /// Ticks done.
    pub tick: u64,
    /// Events that ticks took, including those of fired timers.
    pub events: u64,
    /// The tick in which the next timer is due; all ones if no timer is armed.
    pub deadline: u64,
    /// Objects that exist.
    pub objects: u32,
    /// Bytes of the heap in use, counted in whole slots and pages.
    pub heap_bytes: u32,
    /// Timers that are armed.
    pub timers: u32,
    /// The numbers of work items ever taken from and ever put into the queue; both wrap around at 2³².
    pub work_head: u32,
    pub work_tail: u32,
    /// Events that an object, the timers or the work queue refused.
    pub refused: u32,
    /// Words of objects that work items have changed; a word counts once for each change.
    pub worked: u64,
    /// The addresses of the state's parts in the machine's memory, for readers of a state: queue, objects, timers, work,
    /// page table, bitmaps, arena, end.
    pub parts: [u32; 8],
}

/// An event as the state stores it (`Event::words`).
#[derive(Debug)]
#[repr(C)]
pub struct StoredEvent {
    /// The kind in the lower 16 bits, the flags in the upper 16.
    pub kind_and_flags: u32,
    pub key: u32,
    pub a: u32,
    pub b: u32,
    pub id: u32,
    pub wait: u32,
}

#[derive(Debug)]
#[repr(C, align(16))]
pub struct Object {
    /// The address of the object's bytes; 0: there is no such object.
    pub address: u32,
    /// The size in bytes.
    pub size: u32,
    /// How many WRITE events have changed the object.
    pub writes: u32,
    pub unused: u32,
}

#[derive(Debug)]
#[repr(C)]
pub struct Timer {
    /// The tick in which the timer is due; 0: the timer is not armed.
    pub deadline: u64,
    pub event: StoredEvent,
}

#[derive(Debug)]
#[repr(C)]
pub struct WorkItem {
    /// The object's key.
    pub key: u32,
    pub seed: u32,
    /// The number of rounds left.
    pub rounds: u32,
    pub unused: u32,
}

#[derive(Debug)]
#[repr(C)]
pub struct PageEntry {
    /// What the page holds. 0: nothing; 1 + class: slots of that size class; or [`RUN`], [`RUN_ON`], [`CLAIMED`].
    pub holds: u32,
    /// The number of vacant slots; in the first page of an allocation of several pages, the number of those pages.
    pub vacant: u32,
}

/// The first page of an allocation of several pages, and each page after it.
pub const RUN: u32 = 32;
pub const RUN_ON: u32 = 33;
/// A warp in `heap::take` is preparing the page.
pub const CLAIMED: u32 = 34;

/// As many bits as a page has slots of the smallest size class.
#[derive(Debug)]
#[repr(C)]
pub struct Bitmap(pub [u32; (PAGE_BYTES / SMALLEST / 32) as usize]);

#[derive(Debug)]
#[repr(C, align(65536))]
pub struct Page(pub [u8; PAGE_BYTES as usize]);

// --- Addresses and offsets of the fields --------------------------------------------------------------------------------

pub const H_MAGIC: u32 = STATE + offset_of!(Header, magic) as u32;
pub const H_VERSION: u32 = STATE + offset_of!(Header, version) as u32;
pub const H_TICK: u32 = STATE + offset_of!(Header, tick) as u32;
pub const H_EVENTS: u32 = STATE + offset_of!(Header, events) as u32;
pub const H_DEADLINE: u32 = STATE + offset_of!(Header, deadline) as u32;
pub const H_OBJECTS: u32 = STATE + offset_of!(Header, objects) as u32;
pub const H_HEAP: u32 = STATE + offset_of!(Header, heap_bytes) as u32;
pub const H_TIMERS: u32 = STATE + offset_of!(Header, timers) as u32;
pub const H_WORK_HEAD: u32 = STATE + offset_of!(Header, work_head) as u32;
pub const H_WORK_TAIL: u32 = STATE + offset_of!(Header, work_tail) as u32;
pub const H_REFUSED: u32 = STATE + offset_of!(Header, refused) as u32;
pub const H_WORKED: u32 = STATE + offset_of!(Header, worked) as u32;
pub const H_PARTS: u32 = STATE + offset_of!(Header, parts) as u32;

pub const QUEUE: u32 = STATE + offset_of!(MachineState, queue) as u32;
pub const EVENT_BYTES: u32 = size_of::<StoredEvent>() as u32;

pub const OBJECTS: u32 = STATE + offset_of!(MachineState, objects) as u32;
pub const OBJECT_BYTES: u32 = size_of::<Object>() as u32;
pub const OBJECT_ADDRESS: u32 = offset_of!(Object, address) as u32;
pub const OBJECT_SIZE: u32 = offset_of!(Object, size) as u32;
pub const OBJECT_WRITES: u32 = offset_of!(Object, writes) as u32;

pub const TIMERS: u32 = STATE + offset_of!(MachineState, timers) as u32;
pub const TIMER_BYTES: u32 = size_of::<Timer>() as u32;
pub const TIMER_DEADLINE: u32 = offset_of!(Timer, deadline) as u32;
pub const TIMER_EVENT: u32 = offset_of!(Timer, event) as u32;

pub const WORK: u32 = STATE + offset_of!(MachineState, work) as u32;
pub const WORK_BYTES: u32 = size_of::<WorkItem>() as u32;
pub const WORK_KEY: u32 = offset_of!(WorkItem, key) as u32;
pub const WORK_SEED: u32 = offset_of!(WorkItem, seed) as u32;
pub const WORK_ROUNDS: u32 = offset_of!(WorkItem, rounds) as u32;

pub const PAGE_TABLE: u32 = STATE + offset_of!(MachineState, page_table) as u32;
pub const PAGE_ENTRY: u32 = size_of::<PageEntry>() as u32;
pub const PAGE_HOLDS: u32 = offset_of!(PageEntry, holds) as u32;
pub const PAGE_VACANT: u32 = offset_of!(PageEntry, vacant) as u32;

pub const BITMAPS: u32 = STATE + offset_of!(MachineState, bitmaps) as u32;
pub const BITMAP_BYTES: u32 = size_of::<Bitmap>() as u32;
pub const ARENA: u32 = STATE + offset_of!(MachineState, arena) as u32;

// --- The numbers that version 1 of the state fixes ----------------------------------------------------------------------

const _: () = {
    assert!(super::VERSION == 1);
    assert!(H_MAGIC == STATE && H_VERSION == STATE + 4 && H_TICK == STATE + 8 && H_EVENTS == STATE + 16);
    assert!(H_DEADLINE == STATE + 24 && H_OBJECTS == STATE + 32 && H_HEAP == STATE + 36 && H_TIMERS == STATE + 40);
    assert!(H_WORK_HEAD == STATE + 44 && H_WORK_TAIL == STATE + 48 && H_REFUSED == STATE + 52);
    assert!(H_WORKED == STATE + 56 && H_PARTS == STATE + 64);
    assert!(EVENT_BYTES == 24 && OBJECT_BYTES == 16 && TIMER_BYTES == 32 && WORK_BYTES == 16 && PAGE_ENTRY == 8);
    assert!(OBJECT_ADDRESS == 0 && OBJECT_SIZE == 4 && OBJECT_WRITES == 8);
    assert!(TIMER_DEADLINE == 0 && TIMER_EVENT == 8);
    assert!(WORK_KEY == 0 && WORK_SEED == 4 && WORK_ROUNDS == 8);
    assert!(PAGE_HOLDS == 0 && PAGE_VACANT == 4 && BITMAP_BYTES == 128);
    assert!(QUEUE == 0x1_1000 && OBJECTS == 0x4_1000 && TIMERS == 0x8_1000 && WORK == 0xA_1000);
    assert!(PAGE_TABLE == 0xB_1000 && BITMAPS == 0xB_1800 && ARENA == 0xC_0000 && STATE_END == 0x10C_0000);
};
