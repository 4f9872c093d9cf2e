//! Where a module's state lies in a slot, behind the header.
//!
//! Compiled code and host agree on these offsets through [`SlotLayout`]. Everything is known when the module is
//! compiled, except how far its memories may grow, so the memories come last: memory 0 at a known offset, the others
//! behind it, at offsets that words of the slot hold. All offsets are in bytes of the slot, multiples of a word, and
//! before [`gpu_run_abi::Layout::offset`] is applied.

use crate::constant::Constant;
use crate::decode::{ElementKind, Global, Memory, Module, Table};
use crate::error::Error;
use crate::types::{ValType, words};
use gpu_run_abi::gang::RECORD_BYTES;
use gpu_run_abi::layout::{GUARD, MAX_PAGES, PAGE, SLOT_ALIGN, WORD, field};
use gpu_run_abi::threads::{self, HotWord};
use gpu_run_abi::{Build, GangSizes, Placement};
use std::ops::Range;

/// The most elements by which a table may grow beyond its initial size; a declared maximum may allow fewer.
const TABLE_GROWTH: u64 = 1 << 16;

/// The most threads in a workgroup, and the most workgroups in a gang.
const MAX_WORKGROUP_THREADS: u32 = 1024;
const MAX_WORKGROUPS: u32 = 65535;

/// Bytes of the guest's stack that have memory in a slot of a speculative build; the rest of the stack has none.
const STACK_KEPT: u64 = 256 << 10;
/// The same for local memory, all of which is cleared for each instance: `LOCAL_STACK` bytes plus `LOCAL_FRAMES` times
/// the largest frame, up to `MAX_LOCAL_STACK`.
const LOCAL_STACK: u64 = 16 << 10;
const LOCAL_FRAMES: u64 = 4;
const MAX_LOCAL_STACK: u64 = 64 << 10;
/// The lowest guest address that has memory is a multiple of this.
const PLACE_ALIGN: u64 = 4 << 10;

/// One table: the offsets of its elements and of its length.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct TablePlace {
    /// Offset of the first element.
    pub at: u64,
    /// The most elements that fit here.
    pub capacity: u64,
    /// Offset of the word that holds the current number of elements.
    pub length: u64,
}

/// A passive segment: where its bytes are in the module's constants, and the word that holds its remaining length.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Segment {
    /// Offset in the constants.
    pub at: u64,
    /// Length: bytes of a data segment, elements of an element segment; 0 for a segment that is not passive.
    pub length: u64,
    /// Offset of the slot's word that holds the length; the word is 0 once the segment is dropped.
    pub cell: u64,
}

/// A memory other than the first: offsets of the words that describe it.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct MemoryPlace {
    /// Offset of its length in bytes.
    pub length: u64,
    /// Offset of the length in bytes that it can grow to in the slot.
    pub limit: u64,
    /// Offset of its distance from the instance pointer, in bytes on the device.
    pub base: u64,
}

/// Offsets of the words that a function writes before a tail call, see `runtime::tail`.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct TailPlace {
    /// The callee's index plus one; 0 if there is no tail call to make.
    pub next: u64,
    pub arguments: u64,
    pub results: u64,
}

/// Offsets of the words of the pending exception and of the exceptions that references were made to, see
/// `runtime::exception`.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct ExceptionPlace {
    /// The pending exception's tag plus one; 0 if no exception is pending.
    pub tag: u64,
    /// The pending exception's number, or 0 if it has none.
    pub number: u64,
    pub values: u64,
    /// How many exceptions were given a number.
    pub count: u64,
    /// The last [`KEPT_EXCEPTIONS`] numbered exceptions: number, tag and values of each.
    pub kept: u64,
}

/// How many of the last referenced exceptions are kept; an older reference cannot be thrown.
pub const KEPT_EXCEPTIONS: u64 = 256;

/// Offsets of the words that say which calls led to where the instance is, see `translate::backtrace`; 0 if calls are
/// not noted.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct CallsPlace {
    /// How many calls lead to the function that runs (32 bits).
    pub depth: u64,
    /// The places of the last [`KEPT_CALLS`] of them, 32 bits each: call `n` from outside, counted from 0, is at
    /// `n % KEPT_CALLS`.
    pub places: u64,
}

/// How many calls are kept, a power of two: of a longer chain, the innermost ones.
pub const KEPT_CALLS: u64 = 64;

impl CallsPlace {
    /// Bytes of one call's place.
    pub(crate) const BYTES: u64 = 4;

    /// Returns the words that the host reads, from `depth` on: 0 if calls are not noted.
    pub fn words(&self) -> u64 {
        if self.is_noted() { 1 + KEPT_CALLS * Self::BYTES / WORD } else { 0 }
    }

    pub fn is_noted(&self) -> bool {
        self.depth > 0
    }
}

/// Where everything of a gang lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GangPlace {
    pub sizes: GangSizes,
    /// Bytes of the region with the record and the slots: a power of two. The region's address is a multiple of it.
    pub region: u64,
    /// Bytes from one slot to the next, a power of two. The record takes the place of one slot, and thread 0's slot
    /// follows it.
    pub slot_bytes: u64,
    /// Offset in the region of the threads' *hot* words: the words that functions use on entry. Each hot word lies side
    /// by side for all threads, so that lanes in step make one access.
    pub hot: u64,
    /// Bytes from one hot word to the next.
    pub hot_stride: u64,
    /// Bytes of the memory: image, stacks, and a guard, so that no stack is near the memory's end.
    pub memory_bytes: u64,
}

impl GangPlace {
    /// Returns the number of threads in the grid.
    pub fn threads(&self) -> u64 {
        u64::from(self.sizes.threads) * u64::from(self.sizes.groups)
    }

    /// Returns where a thread's slot begins in the region.
    pub fn slot(&self, thread: u64) -> u64 {
        (thread + 1) * self.slot_bytes
    }
}

/// Hot words of a gang's thread, see [`GangPlace::hot`].
pub(crate) mod hot {
    pub(crate) const STACK_FLOOR: u64 = 0;
    pub(crate) const FUEL: u64 = 1;
    /// Global `n` is hot word `GLOBALS + n`, if it is a mutable i32 whose initial value is a number.
    pub(crate) const GLOBALS: u64 = 2;
}

/// Bytes of a cache line.
const CACHE_LINE: u64 = 128;

/// Returns whether a global of a gang's thread is a hot word.
pub(crate) fn is_hot(global: &Global) -> bool {
    global.mutable && global.ty == ValType::I32 && matches!(global.init, Constant::Bits(_))
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct SlotLayout {
    /// Offset of each global: a word, or two for a v128.
    pub globals: Vec<u64>,
    pub tables: Vec<TablePlace>,
    /// The memories from the second on.
    pub memories: Vec<MemoryPlace>,
    pub tail: TailPlace,
    pub exception: ExceptionPlace,
    pub calls: CallsPlace,
    pub data: Vec<Segment>,
    pub elements: Vec<Segment>,
    /// Offset of the called function's arguments, which its results overwrite.
    pub arguments: u64,
    /// Where the fixed part ends; the tables' elements follow.
    pub end: u64,
    /// Where the memory begins in the slot, with the byte at guest address `low`.
    pub memory: u64,
    /// Guest addresses below this have no memory: they are the far end of the stack, which hardly any program reaches.
    pub low: u64,
    /// Where memory 0 is.
    pub home: MemoryHome,
    /// Guest addresses that are expected to be read-only: a speculative build stops an instance that stores there.
    #[serde(skip)] // only the compiler needs it
    pub read_only: Range<u64>,
    /// Offsets of the words that a thread of a program keeps in shared memory while it runs.
    #[serde(skip)] // only the compiler needs it
    pub hot_words: Vec<HotWord>,
    /// Bytes of the module's constants.
    pub constants: u64,
}

/// Where memory 0 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum MemoryHome {
    /// In the slot, at [`SlotLayout::memory`].
    Slot,
    /// In `bytes` of the thread's local memory.
    Local { bytes: u64 },
    /// Shared by all slots of a program's threads; the header's `memory_at` holds its address.
    Shared,
    /// Behind the region with all slots of a gang.
    Gang(GangPlace),
}

impl SlotLayout {
    /// Returns the slots of a build. A speculative build has no memory for the far end of the stack, see
    /// [`SlotLayout::low`]. `backtrace` asks for the words that note calls; linked modules, whose places are offsets in
    /// different files, and gangs do without.
    pub fn new(module: &Module<'_>, build: &Build, backtrace: bool) -> Result<Self, Error> {
        let calls = backtrace && module.parts.len() == 1;
        Ok(match build {
            Build::Exact(_) => Self::of_instance(module, calls),
            Build::Speculative(placement) => Self::speculative(module, *placement, calls),
            Build::Threads => Self::of_thread(module, calls)?,
            Build::Gang { sizes, .. } => Self::of_gang(module, *sizes)?,
        })
    }

    /// Returns what is the same in every build: everything except where the memory is.
    fn of_instance(module: &Module<'_>, calls: bool) -> Self {
        let mut at = field::HEADER_BYTES;
        let mut take = |words: u64| {
            at += WORD * words;
            at - WORD * words
        };
        let globals = module.globals.iter().map(|global| take(global.ty.words())).collect();
        let place = |_| MemoryPlace { length: take(1), limit: take(1), base: take(1) };
        let memories = module.memories.iter().skip(1).map(place).collect();
        let tail = tail(module, &mut take);
        let exception = exception(module, &mut take);
        let calls = match calls {
            true => CallsPlace { depth: take(1), places: take(KEPT_CALLS * CallsPlace::BYTES / WORD) },
            false => CallsPlace::default(),
        };
        let mut word = || take(1);
        let lengths: Vec<_> = module.tables.iter().map(|_| word()).collect();
        let mut constants = 0u64;
        let mut segment = |length: u64, bytes: u64, cell: u64| {
            let segment = Segment { at: constants, length, cell };
            constants += bytes.next_multiple_of(WORD);
            segment
        };
        let data = module.data.iter().map(|d| {
            let length = if d.place.is_none() { d.bytes.len() as u64 } else { 0 };
            segment(length, length, word())
        });
        let data = data.collect();
        let elements = module.elements.iter().map(|e| {
            let length = if e.kind == ElementKind::Passive { e.items.len() as u64 } else { 0 };
            segment(length, length * WORD, word())
        });
        let elements = elements.collect();
        let arguments = word();
        let widest = module.types.iter().map(|t| words(&t.params).max(words(&t.results))).max().unwrap_or(0);
        let end = arguments + WORD * widest.max(1);
        let mut memory = end;
        let grows = module.grows_tables();
        let place = |(table, length): (&Table, u64)| {
            let (at, capacity) = (memory, capacity(table, grows));
            memory += capacity * WORD;
            TablePlace { at, capacity, length }
        };
        let tables = module.tables.iter().zip(lengths).map(place).collect();
        // Data that a program aligns is then aligned in the slot, too.
        let memory = memory.next_multiple_of(CACHE_LINE);
        Self {
            globals,
            tables,
            memories,
            tail,
            exception,
            calls,
            data,
            elements,
            arguments,
            end,
            memory,
            low: 0,
            home: MemoryHome::Slot,
            read_only: 0..0,
            hot_words: Vec::new(),
            constants,
        }
    }

    fn speculative(module: &Module<'_>, placement: Placement, calls: bool) -> Self {
        let least = module.memories.first().map_or(0, |m| m.minimum * PAGE);
        let near = low(module, (LOCAL_STACK + LOCAL_FRAMES * module.largest_frame()).min(MAX_LOCAL_STACK));
        let is_alone = matches!(module.memories[..], [memory] if !memory.shared);
        let fits = |bytes: u32| is_alone && least > 0 && least - near <= bytes.into();
        let (low, home) = match placement {
            Placement::Local { bytes } if fits(bytes) => (near, MemoryHome::Local { bytes: bytes.into() }),
            _ => (low(module, STACK_KEPT), MemoryHome::Slot),
        };
        let read_only = read_only(module).unwrap_or_default();
        Self { low, home, read_only, ..Self::of_instance(module, calls) }
    }

    /// Returns the slot of a program's thread, which holds no memory.
    fn of_thread(module: &Module<'_>, calls: bool) -> Result<Self, Error> {
        let limit = |message: String| Err(Error::Limit(message));
        match module.memories[..] {
            [Memory { shared: true, is_64: false, .. }] => {
                let mut slots = Self::of_instance(module, calls);
                slots.home = MemoryHome::Shared;
                let changes = |(_, global): &(_, &Global)| global.mutable && global.ty.words() == 1;
                let globals = slots.globals.iter().zip(&module.globals).filter(changes).map(|(at, _)| *at);
                let fields = threads::HOT_FIELDS.map(|at| HotWord { at, is_watched: false });
                // The first is the stack pointer. The others hardly change; one of them leads the host to a thread's name.
                let globals = globals.take(threads::HOT_GLOBALS).enumerate();
                let globals = globals.map(|(index, at)| HotWord { at, is_watched: index > 0 });
                slots.hot_words = fields.into_iter().chain(globals).collect();
                if slots.calls.is_noted() {
                    slots.hot_words.push(HotWord { at: slots.calls.depth, is_watched: true });
                }
                Ok(slots)
            }
            [Memory { shared: true, .. }] => limit("its memory has 64-bit addresses; threads share one with 32".into()),
            [_] => limit("its memory is not shared; threads need a shared memory".into()),
            _ => limit(format!("it has {} memories; threads share one", module.memories.len())),
        }
    }

    /// Returns the slot of a gang's thread, which holds no memory.
    fn of_gang(module: &Module<'_>, sizes: GangSizes) -> Result<Self, Error> {
        let limit = |message: String| Err(Error::Limit(message));
        let GangSizes { threads, groups, image_bytes, stack_bytes, bus_bytes } = sizes;
        let [memory] = module.memories[..] else {
            return limit(format!("it has {} memories; a gang shares one", module.memories.len()));
        };
        if memory.is_64 {
            return limit("its memory has 64-bit addresses; a gang's has 32".into());
        }
        if module.start.is_some() {
            return limit("it has a start function; a gang has entries that every thread runs".into());
        }
        let counts = (1..=MAX_WORKGROUP_THREADS).contains(&threads) && (1..=MAX_WORKGROUPS).contains(&groups);
        if !counts || !stack_bytes.is_multiple_of(16) || !bus_bytes.is_multiple_of(16) {
            return limit(format!(
                "{sizes:?}: a gang has 1 to {MAX_WORKGROUP_THREADS} threads in 1 to {MAX_WORKGROUPS} workgroups, and sizes that are multiples of 16"
            ));
        }
        if image_bytes < memory.minimum * PAGE || !image_bytes.is_multiple_of(PAGE) {
            let least = memory.minimum * PAGE;
            return limit(format!("an image of {image_bytes} bytes: it must be whole pages, at least {least} bytes"));
        }
        let slots = Self::of_instance(module, false);
        let count = u64::from(threads) * u64::from(groups);
        let slot_bytes = slots.memory.max(SLOT_ALIGN).max(RECORD_BYTES).next_power_of_two();
        let stacks = count.saturating_mul(stack_bytes);
        // The cap keeps the sum below from overflowing; it is still above every limit.
        let wanted = image_bytes.saturating_add(stacks).min(1 << 40);
        let memory_bytes = (wanted + GUARD).next_multiple_of(GUARD);
        if memory_bytes > MAX_PAGES * PAGE || bus_bytes > 1 << 31 {
            return limit(format!(
                "an image of {image_bytes} bytes and {count} stacks of {stack_bytes} are {memory_bytes} bytes; a memory has at most {}",
                MAX_PAGES * PAGE
            ));
        }
        // Thread `t`'s hot word is `t + 1` words (of 4 bytes) behind `hot`: so thread 0's begins a cache line.
        let hot = ((count + 1) * slot_bytes).next_multiple_of(CACHE_LINE) + CACHE_LINE - 4;
        let hot_stride = (4 * (count + 1)).next_multiple_of(CACHE_LINE);
        let words = hot::GLOBALS + module.globals.len() as u64;
        let region = (hot + words * hot_stride + CACHE_LINE).next_power_of_two();
        if region > 1 << 31 {
            return limit(format!("{count} threads of {slot_bytes} bytes each are more than a gang has room for"));
        }
        let home = MemoryHome::Gang(GangPlace { sizes, region, slot_bytes, hot, hot_stride, memory_bytes });
        Ok(Self { home, ..slots })
    }

    /// Returns the bytes that a memory limited to `limit` bytes can have in this build.
    pub fn capped(&self, limit: u64) -> u64 {
        match self.home {
            MemoryHome::Local { bytes } => limit.min(self.low + bytes),
            _ => limit,
        }
    }

    /// Returns the bytes of local memory that the guest's memory has; 0 if the guest's memory is elsewhere.
    pub fn local_bytes(&self) -> u64 {
        match self.home {
            MemoryHome::Local { bytes } => bytes,
            _ => 0,
        }
    }

    /// Whether threads share the memory, see [`gpu_run_abi::threads`].
    pub fn is_shared(&self) -> bool {
        matches!(self.home, MemoryHome::Shared)
    }

    pub fn is_local(&self) -> bool {
        matches!(self.home, MemoryHome::Local { .. })
    }

    /// Returns where everything of a gang lies, if this is the slot of a gang's thread.
    pub fn gang(&self) -> Option<GangPlace> {
        match self.home {
            MemoryHome::Gang(place) => Some(place),
            _ => None,
        }
    }
}

/// Returns the most words that any of these lists of values takes, at least 1.
fn most<'a>(types: impl Iterator<Item = &'a [ValType]>) -> u64 {
    types.map(words).max().unwrap_or(0).max(1)
}

fn tail(module: &Module<'_>, take: &mut dyn FnMut(u64) -> u64) -> TailPlace {
    let targets = &module.traits.tail_targets;
    if targets.is_empty() {
        return TailPlace::default();
    }
    let types = || targets.iter().map(|f| module.function_type(*f));
    let (params, results) = (most(types().map(|ty| &ty.params[..])), most(types().map(|ty| &ty.results[..])));
    TailPlace { next: take(1), arguments: take(params), results: take(results) }
}

fn exception(module: &Module<'_>, take: &mut dyn FnMut(u64) -> u64) -> ExceptionPlace {
    if !module.surveys.iter().any(|survey| survey.throws) {
        return ExceptionPlace::default();
    }
    let values = exception_words(module);
    let kept = module.surveys.iter().any(|survey| survey.keeps_exceptions);
    ExceptionPlace {
        tag: take(1),
        number: take(1),
        values: take(values),
        count: take(1),
        kept: if kept { take(KEPT_EXCEPTIONS * (2 + values)) } else { 0 },
    }
}

/// Returns the most words that an exception's values take.
pub(crate) fn exception_words(module: &Module<'_>) -> u64 {
    most(module.tags.iter().map(|ty| &module.types[*ty as usize].params[..]))
}

/// Returns the guest addresses that are constant in programs built by LLVM: the first of several data segments. If that
/// segment is not the lowest, or another one overlaps it, no address is taken to be constant.
fn read_only(module: &Module<'_>) -> Option<Range<u64>> {
    let [Memory { minimum, shared: false, is_64: false, .. }, ..] = module.memories[..] else { return None };
    let mut placed = module.data.iter().filter_map(|segment| match &segment.place {
        Some((0, Constant::Bits(at))) => Some(*at..*at + segment.bytes.len() as u64),
        Some((0, _)) => Some(0..u64::MAX),
        _ => None,
    });
    let first = placed.next().filter(|first| first.end <= minimum * PAGE && module.parts.len() == 1)?;
    let others: Vec<_> = placed.collect();
    (!others.is_empty() && others.iter().all(|other| other.start >= first.end)).then_some(first)
}

/// Returns the initial bytes of the read-only range.
pub(crate) fn read_only_bytes(module: &Module<'_>, read_only: &Range<u64>) -> Vec<u8> {
    let starts = |place: &(u32, Constant)| matches!(place, (0, Constant::Bits(at)) if *at == read_only.start);
    let found = module.data.iter().find(|segment| segment.place.as_ref().is_some_and(starts));
    found.filter(|_| !read_only.is_empty()).map_or_else(Vec::new, |segment| segment.bytes.to_vec())
}

/// Returns the lowest guest address that has memory if only `kept` bytes of stack do. Programs built by LLVM have their
/// stack below all data, growing down from the initial value of the first global.
fn low(module: &Module<'_>, kept: u64) -> u64 {
    let address = |constant: &Constant| match constant {
        Constant::Bits(bits) => *bits,
        _ => 0,
    };
    let Some(Global { init: Constant::Bits(top), ty: ValType::I32, .. }) = module.globals.first() else { return 0 };
    let placed = module.data.iter().filter_map(|segment| segment.place.as_ref());
    let first_data = placed.filter(|(memory, _)| *memory == 0).map(|(_, offset)| address(offset)).min();
    let least = module.memories.first().map_or(0, |m| m.minimum * PAGE);
    match *top <= first_data.unwrap_or(least) && *top <= least {
        true => top.saturating_sub(kept) / PLACE_ALIGN * PLACE_ALIGN,
        false => 0,
    }
}

fn capacity(table: &Table, grows: bool) -> u64 {
    let most = if grows { table.minimum + TABLE_GROWTH } else { table.minimum };
    most.min(table.maximum.unwrap_or(u64::MAX)).max(table.minimum)
}
