//! Slots on a device: room for a number of instances, set up, run and read back together.

use crate::bus::Bus;
use crate::compile::Compiled;
use crate::error::Error;
use gpu_run_abi::layout::{GUARD, MAX_PAGES, MEMORY_TAIL, PAGE, SLOT_ALIGN, WARP, WORD, field};
use gpu_run_abi::{Header, Layout};
use gpu_run_device::{Arg, Buffer, Device, Grid, Module, Properties};
use gpu_run_wasi::Context;
use gpu_run_wasm::KERNEL;
use std::sync::Arc;
use std::time::Instant;

/// What part of a thread's stack is kept for frames that do not look how much is left.
const STACK_RESERVE: u32 = 16;
/// Address space that a batch may take on a device whose memory costs nothing until it is touched.
const RESERVATION: u64 = 1 << 42;
/// Threads of a block at most.
const BLOCK: u64 = WARP;

pub(crate) struct Batch {
    module: Arc<dyn Module>,
    compiled: Arc<Compiled>,
    capacity: u64,
    /// Bytes an instance's memory may grow to.
    memory_limit: u64,
    slot_bytes: u64,
    slots: Buffer,
    constants: Option<Buffer>,
    ticket: Buffer,
    bus: Bus,
    stack_bytes: u32,
    processors: u64,
}

/// What an instance's memory may grow to, in bytes, if `count` of them are to fit on the device.
fn memory_limit(
    compiled: &Compiled,
    properties: &Properties,
    count: u64,
    max_memory: Option<u64>,
) -> Result<u64, Error> {
    let Some(memory) = compiled.memory else { return Ok(0) };
    let least = memory.minimum * PAGE;
    if let Some(most) = max_memory.filter(|most| *most < least) {
        return Err(Error::Limit(format!("its memory begins with {least} bytes, and --max-memory allows {most}")));
    }
    if !compiled.grows_memory {
        return Ok(least);
    }
    let declared = memory.maximum.unwrap_or(MAX_PAGES).min(MAX_PAGES) * PAGE;
    // Memory that is really taken is shared fairly, and some is left for stacks and code.
    let room = if properties.overcommits { RESERVATION } else { properties.memory_bytes / 4 * 3 };
    let fair = room / compiled.layout.slots(count.max(1)) / PAGE * PAGE;
    let wanted = max_memory.map_or(u64::MAX, |most| most / PAGE * PAGE).min(declared);
    Ok(wanted.min(fair).max(least))
}

impl Batch {
    /// Room for `capacity` instances.
    pub(crate) fn new(
        device: &dyn Device,
        module: Arc<dyn Module>,
        compiled: Arc<Compiled>,
        capacity: u64,
        max_memory: Option<u64>,
    ) -> Result<Self, Error> {
        let properties = device.properties();
        let memory_limit = memory_limit(&compiled, properties, capacity, max_memory)?;
        let slot_bytes = (compiled.slots.memory + memory_limit + MEMORY_TAIL).next_multiple_of(SLOT_ALIGN);
        let slots = device.allocate(compiled.layout.slots(capacity) * slot_bytes)?;
        let constants = match compiled.initial.constants.is_empty() {
            true => None,
            false => {
                let buffer = device.allocate(compiled.initial.constants.len() as u64)?;
                buffer.write(0, &compiled.initial.constants)?;
                Some(buffer)
            }
        };
        let (ticket, bus) = (device.allocate(WORD)?, Bus::new(device, capacity)?);
        let (stack_bytes, processors) = (properties.stack_bytes, u64::from(properties.processors));
        Ok(Self {
            module,
            compiled,
            capacity,
            memory_limit,
            slot_bytes,
            slots,
            constants,
            ticket,
            bus,
            stack_bytes,
            processors,
        })
    }

    pub(crate) fn device_bytes(&self) -> u64 {
        self.slots.len()
    }

    /// Makes slots 0 to `count` fresh instances.
    pub(crate) fn set_up(&self, count: u64) -> Result<(), Error> {
        let memory_bytes = self.compiled.memory.map_or(0, |m| m.minimum * PAGE);
        let mut fresh = Header {
            memory_bytes,
            memory_fast: memory_bytes.saturating_sub(GUARD),
            memory_limit: self.memory_limit,
            stop: self.bus.stop_address(),
            ring: self.bus.ring_address(),
            ring_ticket: self.ticket.address(),
            ring_mask: self.bus.ring_mask(),
            port_payload: self.bus.payload(),
            constants: self.constants.as_ref().map_or(0, Buffer::address),
            ..Header::default()
        };
        let initial = &self.compiled.initial;
        let group = self.group();
        for first in (0..count).step_by(group as usize) {
            let lanes = group.min(count - first);
            let mut words = vec![vec![0u64; (self.compiled.slots.end / WORD) as usize]; lanes as usize];
            for (lane, words) in words.iter_mut().enumerate() {
                let slot = first + lane as u64;
                fresh.index = slot;
                fresh.port = self.bus.port_address(slot);
                words[..fresh.words().len()].copy_from_slice(fresh.words());
                for (at, word) in &initial.words {
                    words[(at / WORD) as usize] = *word;
                }
                for (place, elements) in self.compiled.slots.tables.iter().zip(&initial.tables) {
                    words[(place.length / WORD) as usize] = elements.len() as u64;
                }
            }
            self.write_words(first, 0, &words)?;
            for (place, elements) in self.compiled.slots.tables.iter().zip(&initial.tables) {
                self.write_same(first, lanes, place.at, elements)?;
            }
            for (at, words) in &initial.memory {
                self.write_same(first, lanes, self.compiled.slots.memory + at, words)?;
            }
        }
        Ok(())
    }

    /// Gives memory and tables back to the device as zeros, for the next instances.
    pub(crate) fn wipe(&self) -> Result<(), Error> {
        Ok(self.slots.zero(0, self.slots.len())?)
    }

    /// Calls an entry (a selector past the last one: none) in slots 0 to `contexts.len()`, after the start function if
    /// `start`. Gives back the contexts, and the number of host calls.
    pub(crate) fn launch(
        &mut self,
        selector: u32,
        start: bool,
        contexts: Vec<Context>,
        deadline: Option<Instant>,
    ) -> Result<(Vec<Context>, u64), Error> {
        let count = contexts.len() as u64;
        assert!(count <= self.capacity, "{count} instances in {} slots", self.capacity);
        self.ticket.write(0, &[0; WORD as usize])?;
        self.bus.begin(contexts, deadline);
        // Few instances spread over the processors; interleaved ones stay with their warp.
        let threads = match self.compiled.layout {
            Layout::Linear => (count / self.processors.max(1)).clamp(1, BLOCK),
            Layout::Interleaved => WARP,
        };
        let grid =
            Grid { blocks: count.div_ceil(threads) as u32, threads: threads as u32, stack_bytes: self.stack_bytes };
        let args = [
            Arg::U64(self.slots.address()),
            Arg::U64(self.slot_bytes),
            Arg::U32(count as u32),
            Arg::U32(selector),
            Arg::U32(u32::from(start && self.compiled.has_start)),
            Arg::U32(self.stack_bytes - self.stack_bytes / STACK_RESERVE),
        ];
        let bus = &self.bus;
        let result = self.module.run(KERNEL, grid, &args, &|| bus.service());
        let ended = self.bus.end();
        result?;
        Ok(ended)
    }

    pub(crate) fn stopped(&self) -> bool {
        self.bus.stopped()
    }

    /// Slots written together: a warp's where they interleave.
    fn group(&self) -> u64 {
        match self.compiled.layout {
            Layout::Linear => 1,
            Layout::Interleaved => WARP,
        }
    }

    fn offset(&self, slot: u64, at: u64) -> u64 {
        self.compiled.layout.slot(slot, self.slot_bytes) + self.compiled.layout.offset(at)
    }

    /// Writes words of neighbouring slots, from offset `at` on. Where slots interleave, `first` is a warp's first.
    fn write_words(&self, first: u64, at: u64, words: &[Vec<u64>]) -> Result<(), Error> {
        let (cell, spread) = (self.compiled.layout.cell() as usize, self.compiled.layout.spread() as usize);
        let length = words.first().map_or(0, Vec::len);
        let mut bytes = vec![0u8; length * spread * WORD as usize];
        for (lane, words) in words.iter().enumerate() {
            let cells = words.iter().flat_map(|word| word.to_le_bytes());
            for (i, byte) in cells.enumerate() {
                bytes[(i / cell * spread + lane) * cell + i % cell] = byte;
            }
        }
        Ok(self.slots.write(self.offset(first, at), &bytes)?)
    }

    fn write_same(&self, first: u64, lanes: u64, at: u64, words: &[u64]) -> Result<(), Error> {
        match words.is_empty() {
            true => Ok(()),
            false => self.write_words(first, at, &vec![words.to_vec(); lanes as usize]),
        }
    }

    pub(crate) fn write_word(&self, slot: u64, at: u64, word: u64) -> Result<(), Error> {
        let cell = self.compiled.layout.cell();
        for (at, bytes) in (at..).step_by(cell as usize).zip(word.to_le_bytes().chunks(cell as usize)) {
            self.slots.write(self.offset(slot, at), bytes)?;
        }
        Ok(())
    }

    pub(crate) fn read_word(&self, slot: u64, at: u64) -> Result<u64, Error> {
        let mut bytes = [0; WORD as usize];
        self.read(slot, at, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Bytes of a slot, from the beginning of a cell on.
    fn read(&self, slot: u64, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let layout = self.compiled.layout;
        if layout.spread() == 1 {
            return Ok(self.slots.read(self.offset(slot, at), bytes)?);
        }
        for (at, cell) in (at..).step_by(layout.cell() as usize).zip(bytes.chunks_mut(layout.cell() as usize)) {
            self.slots.read(self.offset(slot, at), cell)?;
        }
        Ok(())
    }

    /// The memory of the instance in `slot`, as far as it reaches now.
    pub(crate) fn read_memory(&self, slot: u64) -> Result<Vec<u8>, Error> {
        let length = self.read_word(slot, field::MEMORY_BYTES)?.min(self.memory_limit);
        let mut memory = vec![0; length as usize];
        self.read(slot, self.compiled.slots.memory, &mut memory)?;
        Ok(memory)
    }
}
