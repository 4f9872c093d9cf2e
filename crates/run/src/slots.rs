//! Slots on a device: memory for a number of instances that are set up, run and read back together.

use crate::allowance::{MIN_STACK, MemoryRoom, Sizes};
use crate::bus::{Bus, Callers};
use crate::common::CommonMemory;
use crate::own_calls::OwnCalls;
use gpu_run_abi::launch::{self, Ending};
use gpu_run_abi::layout::{GUARD, WARP, WORD, field};
use gpu_run_abi::{Header, Launch, Layout};
use gpu_run_compiler::{Compiled, Error, NotedCalls, Program, stack_limit};
use gpu_run_device::{Arg, Buffer, Device, Error as DeviceError, Grid, Module, Rows, Serve, Shared};
use gpu_run_wasi::Context;
use gpu_run_wasm::{ENDINGS, FRESH, KERNEL, START, THREADS, words};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use std::mem::offset_of;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Cells of an interleaved slot that are read at once.
const CELLS_PER_READ: usize = 1 << 14;
/// Warps that a multiprocessor runs at the same time; its other warps wait.
const SCHEDULERS: u64 = 4;

pub struct Slots {
    module: Arc<dyn Module>,
    compiled: Arc<Compiled>,
    capacity: u64,
    sizes: Sizes,
    slots: Arc<Buffer>,
    /// Kept alive because the image holds its address.
    _constants: Option<Buffer>,
    /// What fresh instances are made of.
    image: Image,
    /// The ring's ticket counter, which continues from launch to launch. Kept alive because the image holds its
    /// address.
    _ticket: Buffer,
    bus: Bus,
    stack_bytes: u32,
    lowers_stack: bool,
    processors: u64,
    /// Slots that a launch has used so far.
    used: u64,
    /// Threads of a workgroup, unless [`Slots::grid`] chooses.
    lanes: Option<u32>,
    /// Set if the slots are threads of one program.
    together: Option<Grid>,
    /// How long the last launch ran.
    ran: Duration,
}

/// The buffers of one launch. With two of these, the host prepares one launch while it reads the results of another.
pub struct LaunchBuffers {
    /// The `abi::Launch`.
    launch: Buffer,
    common: Arc<CommonMemory>,
    /// The instances' numbers, if they do not follow each other; only programs that ask for them need it.
    numbers: Option<Buffer>,
    endings: Buffer,
    /// Words of each ending that say which calls led there.
    call_words: usize,
    /// A copy of the endings that the host can read.
    seen: Shared,
    /// When the device's clock was last compared with the host's, and for how long that is good enough.
    clock_set: Mutex<Option<Instant>>,
    clock_lasts: Duration,
}

/// The image that `abi::launch` describes, and where in it the arguments are.
struct Image {
    buffer: Buffer,
    pieces: u64,
    arguments: u64,
}

/// What a launch does.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Index of the entry function; past the last one: no function is called.
    pub selector: u32,
    /// Make fresh instances in the slots first.
    pub fresh: bool,
    /// Call the module's start function before the entry function.
    pub start: bool,
    pub deadline: Option<Instant>,
}

impl Run {
    /// Fresh instances that call the entry function.
    pub fn fresh(selector: u32, deadline: Option<Instant>) -> Self {
        Self { selector, fresh: true, start: true, deadline }
    }
}

/// A bus, and when it was first asked: before, the launch may have waited for other launches.
struct Serving<'s> {
    bus: &'s Bus,
    began: &'s OnceLock<Instant>,
}

impl Serve for Serving<'_> {
    fn serve(&self) -> bool {
        self.began.get_or_init(Instant::now);
        self.bus.service()
    }

    fn rests_until(&self) -> Option<Instant> {
        self.bus.rests_until()
    }
}

impl Slots {
    /// Allocates slots for `capacity` instances.
    pub fn new(program: &Program, capacity: u64, sizes: Sizes, stack_bytes: u32) -> Result<Self, Error> {
        let (device, module, compiled) = (program.device(), program.module().clone(), program.compiled().clone());
        let properties = device.properties();
        let slots = Arc::new(device.allocate(compiled.layout().slots(capacity).saturating_mul(sizes.slot_bytes))?);
        let constants = match compiled.initial.constants.is_empty() {
            true => None,
            false => Some(device.allocate_filled(&compiled.initial.constants)?),
        };
        let own_calls = OwnCalls::new(&compiled, &slots, sizes.slot_bytes);
        let (ticket, bus) = (device.allocate(WORD)?, Bus::new(device, capacity)?.with_own_calls(own_calls));
        let memory_bytes = compiled.initial.memories.first().map_or(0, |memory| memory.length);
        let header = Header {
            memory_bytes,
            memory_fast: memory_bytes.saturating_sub(GUARD),
            memory_limit: sizes.memories.first().map_or(0, |room| compiled.slots.capped(room.limit)),
            growth_left: sizes.growth_left,
            stop: bus.stop_address(),
            ring: bus.ring_address(),
            ring_ticket: ticket.address(),
            ring_mask: bus.ring_mask(),
            port_payload: bus.payload(),
            constants: constants.as_ref().map_or(0, Buffer::address),
            memory_at: sizes.shared_memory.unwrap_or(0),
            ..Header::default()
        };
        let image = image(device, &compiled, &header, &sizes.memories)?;
        Ok(Self {
            module,
            capacity,
            sizes,
            slots,
            _constants: constants,
            image,
            _ticket: ticket,
            bus,
            stack_bytes,
            lowers_stack: false,
            used: 0,
            processors: u64::from(properties.processors),
            lanes: None,
            together: None,
            ran: Duration::ZERO,
            compiled,
        })
    }

    /// Limits the lanes of a warp that run an instance: programs whose lanes soon diverge are faster in more warps.
    pub fn set_lanes(&mut self, lanes: Option<u32>) {
        self.lanes = lanes;
    }

    /// The slots are threads of one program: launches run its kernel, with these lanes.
    pub fn run_together(&mut self, lanes: Grid) {
        self.together = Some(lanes);
    }

    /// Launches are stopped when the flag becomes true.
    pub fn stop_when(&mut self, flag: Option<Arc<AtomicBool>>) {
        self.bus.stop_when(flag);
    }

    pub fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// A launch that the device has no memory for gets a smaller stack from now on, instead of an error.
    pub fn lower_stack_if_need_be(&mut self) {
        self.lowers_stack = true;
    }

    /// Returns the stack of later launches, in bytes.
    pub fn stack(&self) -> u32 {
        self.stack_bytes
    }

    /// Sets the stack of later launches.
    pub fn set_stack(&mut self, stack_bytes: u32) {
        self.stack_bytes = stack_bytes;
    }

    /// Clears the memories of the next `count` instances up to a guest address, so that the instances need not: the
    /// device does it faster.
    pub fn clear(&self, count: u64, end: u64) -> Result<(), Error> {
        let layout = self.compiled.layout();
        let Some(MemoryRoom { at, limit, low }) = self.sizes.memories.first().copied() else { return Ok(()) };
        let used = layout.slots(count.min(self.used));
        let bytes = end.min(limit).saturating_sub(low);
        if used == 0 || bytes == 0 {
            return Ok(());
        }
        let spread = layout.spread();
        let rows =
            Rows { at: at * spread, len: bytes * spread, pitch: self.sizes.slot_bytes * spread, count: used / spread };
        Ok(self.slots.zero_rows(rows)?)
    }

    pub fn device_bytes(&self) -> u64 {
        self.slots.len()
    }

    /// Sets the arguments of the entry function, for instances that are made from now on.
    pub fn set_arguments(&self, words: &[u64]) -> Result<(), Error> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        match bytes.is_empty() {
            true => Ok(()),
            false => Ok(self.image.buffer.write(self.image.arguments, &bytes)?),
        }
    }

    /// Adds to `local`, which says what the device does by itself, what all launches in these slots have in common.
    pub fn describe(&self, local: Launch) -> Launch {
        let (image, pieces) = (self.image.buffer.address(), self.image.pieces);
        let (ports, port_bytes) = (self.bus.ports_address(), self.bus.port_bytes());
        Launch { image, pieces, ports, port_bytes, ..local }
    }

    /// Runs the instances in the first slots and collects how they ended. `buffers` already say what to do. Returns the
    /// contexts and the number of host calls.
    pub fn launch(&mut self, run: Run, guests: Callers, buffers: &LaunchBuffers) -> Result<(Vec<Context>, u64), Error> {
        let count = guests.count() as u64;
        assert!(count <= self.capacity, "{count} instances in {} slots", self.capacity);
        self.bus.begin(guests, run.deadline)?;
        let flags = if run.fresh { FRESH } else { 0 } | if run.start && self.compiled.has_start { START } else { 0 };
        self.used = self.used.max(count);
        buffers.set_clock()?;
        let (stack_bytes, ran, result) = self.run_kernel(count, (run.selector, flags), buffers);
        (self.stack_bytes, self.ran) = (stack_bytes, ran);
        let ended = self.bus.end();
        result?;
        let args = [
            Arg::U64(self.slots.address()),
            Arg::U64(self.sizes.slot_bytes),
            Arg::U32(count as u32),
            Arg::U64(buffers.endings.address()),
            Arg::U32(words(self.compiled.results(run.selector)) as u32),
        ];
        self.module.run(ENDINGS, self.grid(count, self.stack_bytes), &args, &|| false)?;
        Ok(ended)
    }

    /// Makes the first slot a fresh instance, and returns a copy of what is not zero in it. After this launch, the device has
    /// reserved the stack and the local memory that later launches take.
    pub fn fresh(&mut self, device: &dyn Device, buffers: &LaunchBuffers) -> Result<FreshCopy, Error> {
        assert_eq!(self.compiled.layout(), Layout::Linear);
        self.make_fresh(buffers)?;
        // Only now: a kernel's first launch takes long, and the clocks are compared as if a launch took no time.
        buffers.set_clock()?;
        self.run_without_entry(0, buffers)?;
        let data = self.compiled.initial.memories.first().map_or(0, |memory| {
            let ends = memory.pieces.iter().map(|piece| piece.at + WORD * piece.words.len() as u64);
            ends.max().unwrap_or(0)
        });
        let bytes = match self.sizes.memories.first() {
            Some(room) => room.at + data.saturating_sub(room.low),
            None => self.compiled.slots.end,
        };
        let copy = device.allocate_uncleared(bytes)?;
        copy.copy_from(0, &self.slots, 0, bytes)?;
        Ok(FreshCopy(copy))
    }

    /// Makes the first slot a fresh instance again, after one whose first memory had so many bytes.
    pub fn renew(&mut self, fresh: &FreshCopy, used: u64, buffers: &LaunchBuffers) -> Result<(), Error> {
        if self.sizes.memories.len() > 1 {
            // The kernel knows where memories and tables grew.
            return self.make_fresh(buffers);
        }
        let copied = fresh.0.len();
        if let Some(room) = self.sizes.memories.first() {
            let end = room.at + used.min(room.limit).saturating_sub(room.low);
            if end > copied {
                self.slots.zero(copied, end - copied)?;
            }
        }
        Ok(self.slots.copy_from(0, &fresh.0, 0, copied)?)
    }

    fn make_fresh(&mut self, buffers: &LaunchBuffers) -> Result<(), Error> {
        self.run_without_entry(FRESH, buffers)
    }

    /// Launches the first slot's thread, which calls no function.
    fn run_without_entry(&mut self, flags: u32, buffers: &LaunchBuffers) -> Result<(), Error> {
        let (stack_bytes, _, result) = self.run_kernel(1, (u32::MAX, flags), buffers);
        self.stack_bytes = stack_bytes;
        result?;
        self.write_word(0, field::STATUS, 0)
    }

    /// Runs the program's kernel for the first slots, and answers the instances meanwhile. Returns the stack that each thread
    /// had, and how long it took.
    fn run_kernel(
        &self,
        count: u64,
        (selector, flags): (u32, u32),
        buffers: &LaunchBuffers,
    ) -> (u32, Duration, Result<(), DeviceError>) {
        let (bus, began) = (&self.bus, OnceLock::new());
        let serve = Serving { bus, began: &began };
        let mut stack_bytes = self.stack_bytes;
        let result = loop {
            let args = [
                Arg::U64(self.slots.address()),
                Arg::U64(self.sizes.slot_bytes),
                Arg::U32(count as u32),
                Arg::U32(selector),
                Arg::U32(flags),
                Arg::U32(stack_limit(stack_bytes)),
                Arg::U64(buffers.launch.address()),
            ];
            let launched = match self.together {
                None => self.module.run(KERNEL, self.grid(count, stack_bytes), &args, &serve),
                Some(lanes) => self.module.run_together(THREADS, Grid { stack_bytes, ..lanes }, &args, &serve),
            };
            match launched {
                Err(DeviceError::OutOfMemory { .. }) if self.lowers_stack && stack_bytes > MIN_STACK => {
                    stack_bytes /= 2
                }
                result => break result,
            }
        };
        (stack_bytes, began.get().map_or(Duration::ZERO, Instant::elapsed), result)
    }

    pub fn ran(&self) -> Duration {
        self.ran
    }

    /// One thread per instance, for the first `count` slots.
    fn grid(&self, count: u64, stack_bytes: u32) -> Grid {
        // Few instances are spread over the processors, at best one in each of the warps that run at the same time:
        // diverging lanes of one warp take turns.
        let threads = (count / (SCHEDULERS * self.processors).max(1)).clamp(1, WARP);
        let threads = self.lanes.map_or(threads, |lanes| u64::from(lanes).clamp(1, WARP));
        let stack_bytes = stack_bytes + self.compiled.slots.local_bytes() as u32;
        Grid { workgroups: count.div_ceil(threads) as u32, threads: threads as u32, stack_bytes }
    }

    pub fn stopped(&self) -> bool {
        self.bus.stopped()
    }

    /// Returns what reads the slots, which must be linear, also while they run.
    pub fn reader(&self) -> SlotReader {
        assert_eq!(self.compiled.layout(), Layout::Linear);
        SlotReader { slots: self.slots.clone(), slot_bytes: self.sizes.slot_bytes, capacity: self.capacity }
    }

    fn offset(&self, slot: u64, at: u64) -> u64 {
        self.compiled.layout().slot(slot, self.sizes.slot_bytes) + self.compiled.layout().offset(at)
    }

    pub fn write_word(&self, slot: u64, at: u64, word: u64) -> Result<(), Error> {
        let cell = self.compiled.layout().cell();
        for (at, bytes) in (at..).step_by(cell as usize).zip(word.to_le_bytes().chunks(cell as usize)) {
            self.slots.write(self.offset(slot, at), bytes)?;
        }
        Ok(())
    }

    pub fn read_word(&self, slot: u64, at: u64) -> Result<u64, Error> {
        let mut bytes = [0; WORD as usize];
        self.read(slot, at, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads bytes of a slot, from the beginning of a cell on.
    fn read(&self, slot: u64, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
        read(self.compiled.layout(), &self.slots, |at| self.offset(slot, at), at, bytes)
    }

    /// Reads words of a slot.
    pub fn read_words(&self, slot: u64, at: u64, count: usize) -> Result<Vec<u64>, Error> {
        read_words(&self.compiled, &self.slots, self.sizes.slot_bytes, slot, at, count as u64)
    }

    /// Reads a memory of the instance in `slot`, at its present length.
    pub fn read_memory(&self, slot: u64, index: usize) -> Result<Vec<u8>, Error> {
        let mut memory = vec![0; self.memory_length(slot, index)? as usize];
        self.read_memory_part(slot, index, 0, &mut memory)?;
        Ok(memory)
    }

    /// Returns the present length of a memory of the instance in `slot`, in bytes.
    pub fn memory_length(&self, slot: u64, index: usize) -> Result<u64, Error> {
        let Some(room) = self.sizes.memories.get(index) else { return Ok(0) };
        let side = index.checked_sub(1).and_then(|side| self.compiled.slots.memories.get(side));
        Ok(self.read_word(slot, side.map_or(field::MEMORY_BYTES, |place| place.length))?.min(room.limit))
    }

    /// Reads a part of a memory, which must be there, from the beginning of a cell on.
    pub fn read_memory_part(&self, slot: u64, index: usize, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let Some(room) = self.sizes.memories.get(index) else { return Ok(()) };
        let below = room.low.saturating_sub(at).min(bytes.len() as u64) as usize;
        let (below, bytes) = bytes.split_at_mut(below);
        below.fill(0);
        let at = (at + below.len() as u64).saturating_sub(room.low);
        if bytes.is_empty() { Ok(()) } else { self.read(slot, room.at + at, bytes) }
    }

    /// Writes a part of a memory, which must be there, in a linear slot. Returns `false` if it lies where the program never is: before
    /// all of its data.
    pub fn write_memory_part(&self, slot: u64, index: usize, at: u64, bytes: &[u8]) -> Result<bool, Error> {
        assert_eq!(self.compiled.layout(), Layout::Linear);
        let Some(room) = self.sizes.memories.get(index) else { return Ok(bytes.is_empty()) };
        let Some(at) = at.checked_sub(room.low) else { return Ok(bytes.is_empty()) };
        self.slots.write(self.offset(slot, room.at + at), bytes)?;
        Ok(true)
    }
}

/// Reads words of a slot, also while it is used.
pub(crate) fn read_words(
    compiled: &Compiled,
    slots: &Buffer,
    slot_bytes: u64,
    slot: u64,
    at: u64,
    count: u64,
) -> Result<Vec<u64>, Error> {
    let layout = compiled.layout();
    let mut bytes = vec![0; (count * WORD) as usize];
    read(layout, slots, |at| layout.slot(slot, slot_bytes) + layout.offset(at), at, &mut bytes)?;
    Ok(bytes.as_chunks::<{ WORD as usize }>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Reads bytes of a slot, from the beginning of a cell on. `offset` says where in the buffer a byte of the slot is.
fn read(layout: Layout, slots: &Buffer, offset: impl Fn(u64) -> u64, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
    if layout.spread() == 1 {
        return Ok(slots.read(offset(at), bytes)?);
    }
    // The cells of other slots in between are read, too: a transfer takes longer than its bytes.
    let (cell, stride) = (layout.cell() as usize, layout.stride() as usize);
    let mut seen = Vec::new();
    for (i, part) in bytes.chunks_mut(CELLS_PER_READ * cell).enumerate() {
        let from = offset(at + (i * CELLS_PER_READ * cell) as u64);
        seen.resize((part.len().div_ceil(cell) - 1) * stride + cell, 0);
        slots.read(from, &mut seen)?;
        for (to, from) in part.chunks_mut(cell).zip(seen.chunks(stride)) {
            to.copy_from_slice(&from[..to.len()]);
        }
    }
    Ok(())
}

/// A copy of a slot that holds a fresh instance.
pub struct FreshCopy(Buffer);

/// Reads linear slots.
pub struct SlotReader {
    slots: Arc<Buffer>,
    slot_bytes: u64,
    capacity: u64,
}

impl SlotReader {
    pub fn read_word(&self, slot: u64, at: u64) -> Result<u64, Error> {
        Ok(self.read_words(slot, at, 1)?[0])
    }

    pub fn read_words(&self, slot: u64, at: u64, count: usize) -> Result<Vec<u64>, Error> {
        assert!(slot < self.capacity, "slot {slot} of {}", self.capacity);
        let mut words = vec![0; count];
        self.slots.read(slot * self.slot_bytes + at, bytemuck::cast_slice_mut(&mut words))?;
        Ok(words)
    }
}

impl LaunchBuffers {
    /// Allocates buffers for launches of `capacity` instances.
    pub fn new(
        device: &dyn Device,
        compiled: &Compiled,
        capacity: usize,
        common: Arc<CommonMemory>,
    ) -> Result<Self, Error> {
        let numbers = match compiled.asks_device {
            true => Some(device.allocate(capacity as u64 * WORD)?),
            false => None,
        };
        let results = compiled.entries.iter().map(|e| words(&e.ty.results)).max().unwrap_or(0) as usize;
        let call_words = compiled.slots.calls.words() as usize;
        let bytes = capacity as u64 * ending_bytes(results + call_words);
        let (launch, endings) = (device.allocate(Launch::BYTES)?, device.allocate(bytes)?);
        let (seen, clock_set) = (device.share(bytes)?, Mutex::default());
        let clock_lasts = Duration::ZERO;
        Ok(Self { launch, common, numbers, endings, call_words, seen, clock_set, clock_lasts })
    }

    pub fn write(&self, launch: &Launch) -> Result<(), Error> {
        Ok(self.launch.write(0, self.common.describe(launch).bytes())?)
    }

    /// Gives the instances their numbers, one for each slot.
    pub fn set_numbers(&self, launch: &mut Launch, numbers: &[u64]) -> Result<(), Error> {
        let follow = (launch.first..).zip(numbers).all(|(expected, number)| expected == *number);
        if let Some(buffer) = self.numbers.as_ref().filter(|_| !follow) {
            buffer.write(0, bytemuck::cast_slice(numbers))?;
            launch.numbers = buffer.address();
        }
        Ok(())
    }

    /// From here on, the clocks are compared only in a launch that comes so long after the last comparison. They drift apart by
    /// some 50 µs a second.
    pub fn compare_clocks_after(&mut self, time: Duration) {
        self.clock_lasts = time;
    }

    /// Has the launch that comes next compare the clocks: writes the present time into the `Launch`.
    fn set_clock(&self) -> Result<(), Error> {
        let mut set = self.clock_set.lock();
        if set.is_some_and(|set| set.elapsed() < self.clock_lasts) {
            return Ok(());
        }
        *set = Some(Instant::now());
        let now = clock_gettime(ClockId::Monotonic);
        let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        const { assert!(launch::offset::CLOCK_DEVICE == launch::offset::CLOCK_HOST + WORD) };
        let words = [now, u64::MAX].map(u64::to_le_bytes);
        Ok(self.launch.write(launch::offset::CLOCK_HOST, words.as_flattened())?)
    }

    /// Reads how the instances in the first `count` slots ended, each with `results` words of results. The launch must
    /// be over.
    pub fn endings(&self, count: usize, results: usize) -> Result<Endings<'_>, Error> {
        let bytes = ending_bytes(results + self.call_words);
        self.endings.read_to(0, &self.seen, 0, count as u64 * bytes)?;
        Ok(Endings { seen: &self.seen, bytes, results, call_words: self.call_words })
    }
}

/// Returns the bytes of an ending with this many words behind it.
fn ending_bytes(words: usize) -> u64 {
    size_of::<Ending>() as u64 + WORD * words as u64
}

/// How instances ended, by slot.
pub struct Endings<'a> {
    seen: &'a Shared,
    bytes: u64,
    results: usize,
    call_words: usize,
}

impl Endings<'_> {
    pub fn get(&self, slot: usize) -> Ending {
        let word = |at: usize| self.seen.load_u64(slot as u64 * self.bytes + at as u64);
        Ending {
            status: word(offset_of!(Ending, status)),
            trap: word(offset_of!(Ending, trap)),
            exit_code: word(offset_of!(Ending, exit_code)),
            memory_bytes: word(offset_of!(Ending, memory_bytes)),
            growth_refused: word(offset_of!(Ending, growth_refused)),
        }
    }

    /// Returns a word of the entry function's results.
    pub fn result(&self, slot: usize, index: usize) -> u64 {
        self.seen.load_u64(slot as u64 * self.bytes + ending_bytes(index))
    }

    /// Returns the calls that led to where the instance ended, if the program notes them.
    pub fn calls(&self, slot: usize) -> Option<NotedCalls> {
        let words: Vec<u64> = (0..self.call_words).map(|i| self.result(slot, self.results + i)).collect();
        NotedCalls::of_words(&words)
    }
}

/// Makes the image of a fresh instance: pieces, each with its place in the slot, its number of words, and the words.
fn image(device: &dyn Device, compiled: &Compiled, header: &Header, rooms: &[MemoryRoom]) -> Result<Image, Error> {
    let (initial, slots) = (&compiled.initial, &compiled.slots);
    let mut fixed = vec![0u64; (slots.end / WORD) as usize];
    fixed[..header.words().len()].copy_from_slice(header.words());
    let mut set = |at: u64, word: u64| fixed[(at / WORD) as usize] = word;
    for (at, word) in &initial.words {
        set(*at, *word);
    }
    for (place, elements) in slots.tables.iter().zip(&initial.tables) {
        set(place.length, elements.len() as u64);
    }
    let beside = rooms.iter().zip(&initial.memories).skip(1);
    for (place, (room, memory)) in slots.memories.iter().zip(beside) {
        set(place.length, memory.length);
        set(place.limit, room.limit);
        set(place.base, compiled.layout().offset(room.at));
    }
    let tables = slots.tables.iter().zip(&initial.tables).map(|(place, elements)| (place.at, elements));
    let memories = rooms
        .iter()
        .zip(&initial.memories)
        .flat_map(|(room, memory)| memory.pieces.iter().map(|piece| (room.at + piece.at - room.low, &piece.words)));
    let pieces: Vec<_> = std::iter::once((0, &fixed)).chain(tables).chain(memories).collect();
    let words =
        pieces.iter().flat_map(|(at, words)| [*at, words.len() as u64].into_iter().chain(words.iter().copied()));
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    // The fixed part is the first piece, after that piece's two words for place and length.
    Ok(Image {
        buffer: device.allocate_filled(&bytes)?,
        pieces: pieces.len() as u64,
        arguments: 2 * WORD + slots.arguments,
    })
}
