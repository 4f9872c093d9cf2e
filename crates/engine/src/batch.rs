//! Slots on a device: room for a number of instances, set up, run and read back together.

use crate::bus::Bus;
use crate::compile::Compiled;
use crate::error::Error;
use gpu_run_abi::layout::{CELL, MAX_PAGES, PAGE, SLOT_ALIGN, WARP, field};
use gpu_run_abi::{Header, Layout};
use gpu_run_device::{Arg, Buffer, Device, Grid, Module, Properties};
use gpu_run_wasi::Context;
use gpu_run_wasm::{KERNEL, Table};
use std::sync::Arc;
use std::time::Instant;

/// What part of a thread's stack is kept for frames that do not look how much is left.
const STACK_RESERVE: u32 = 16;
/// Elements a table may get beyond those it begins with, if it has no maximum of its own.
const TABLE_GROWTH: u64 = 1 << 16;
/// Address space that a batch may take on a device whose memory costs nothing until it is touched.
const RESERVATION: u64 = 1 << 42;
/// Threads of a block at most.
const BLOCK: u64 = WARP;

pub(crate) struct Batch {
    module: Arc<dyn Module>,
    compiled: Arc<Compiled>,
    capacity: u64,
    place: Place,
    slots: Buffer,
    constants: Option<Buffer>,
    ticket: Buffer,
    bus: Bus,
    stack_bytes: u32,
    processors: u64,
}

/// Where in a slot tables and memory are.
#[derive(Clone, Debug)]
struct Place {
    /// Offset and capacity of each table.
    tables: Vec<(u64, u64)>,
    memory: u64,
    /// Bytes the memory may grow to.
    memory_limit: u64,
    slot_bytes: u64,
}

impl Place {
    fn new(compiled: &Compiled, memory_limit: u64) -> Self {
        let mut at = compiled.slots.end;
        let mut tables = Vec::new();
        for table in &compiled.tables {
            let capacity = table_capacity(table, compiled.grows_tables);
            tables.push((at, capacity));
            at += capacity * CELL;
        }
        // One cell past the end can always be read: a misaligned load looks at two.
        Self { tables, memory: at, memory_limit, slot_bytes: (at + memory_limit + CELL).next_multiple_of(SLOT_ALIGN) }
    }
}

fn table_capacity(table: &Table, grows: bool) -> u64 {
    let most = if grows { table.minimum + TABLE_GROWTH } else { table.minimum };
    most.min(table.maximum.unwrap_or(u64::MAX)).max(table.minimum)
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
        let place = Place::new(&compiled, memory_limit(&compiled, properties, capacity, max_memory)?);
        let slots = device.allocate(compiled.layout.slots(capacity) * place.slot_bytes)?;
        let constants = match compiled.initial.constants.is_empty() {
            true => None,
            false => {
                let buffer = device.allocate(compiled.initial.constants.len() as u64)?;
                buffer.write(0, &compiled.initial.constants)?;
                Some(buffer)
            }
        };
        let (ticket, bus) = (device.allocate(CELL)?, Bus::new(device, capacity)?);
        let (stack_bytes, processors) = (properties.stack_bytes, u64::from(properties.processors));
        Ok(Self { module, compiled, capacity, place, slots, constants, ticket, bus, stack_bytes, processors })
    }

    pub(crate) fn device_bytes(&self) -> u64 {
        self.slots.len()
    }

    /// Makes slots 0 to `count` fresh instances.
    pub(crate) fn set_up(&self, count: u64) -> Result<(), Error> {
        let mut fresh = Header {
            memory_bytes: self.compiled.memory.map_or(0, |m| m.minimum * PAGE),
            memory_limit: self.place.memory_limit,
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
            let mut cells = vec![vec![0u64; (self.compiled.slots.end / CELL) as usize]; lanes as usize];
            for (lane, cells) in cells.iter_mut().enumerate() {
                let slot = first + lane as u64;
                fresh.index = slot;
                fresh.memory_base = self.address(slot, self.place.memory);
                fresh.port = self.bus.port_address(slot);
                cells[..fresh.cells().len()].copy_from_slice(fresh.cells());
                for (at, word) in &initial.words {
                    cells[(at / CELL) as usize] = *word;
                }
                for ((at, capacity), (described, elements)) in
                    self.place.tables.iter().zip(self.compiled.slots.tables.iter().zip(&initial.tables))
                {
                    cells[(described.base / CELL) as usize] = self.address(slot, *at);
                    cells[(described.length / CELL) as usize] = elements.len() as u64;
                    cells[(described.limit / CELL) as usize] = *capacity;
                }
            }
            self.write_cells(first, 0, &cells)?;
            for ((at, _), elements) in self.place.tables.iter().zip(&initial.tables) {
                self.write_same(first, lanes, *at, elements)?;
            }
            for (at, words) in &initial.memory {
                self.write_same(first, lanes, self.place.memory + at, words)?;
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
        self.ticket.write(0, &[0; CELL as usize])?;
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
            Arg::U64(self.place.slot_bytes),
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
        self.compiled.layout.slot(slot, self.place.slot_bytes) + self.compiled.layout.offset(at)
    }

    fn address(&self, slot: u64, at: u64) -> u64 {
        self.slots.address() + self.offset(slot, at)
    }

    /// Writes cells of neighbouring slots, from offset `at` on. Where slots interleave, `first` is a warp's first.
    fn write_cells(&self, first: u64, at: u64, cells: &[Vec<u64>]) -> Result<(), Error> {
        let width = (self.compiled.layout.stride() / CELL) as usize;
        let length = cells.first().map_or(0, Vec::len);
        let mut bytes = vec![0u8; length * width * CELL as usize];
        for (lane, cells) in cells.iter().enumerate() {
            for (i, word) in cells.iter().enumerate() {
                bytes[(i * width + lane) * CELL as usize..][..CELL as usize].copy_from_slice(&word.to_le_bytes());
            }
        }
        Ok(self.slots.write(self.offset(first, at), &bytes)?)
    }

    fn write_same(&self, first: u64, lanes: u64, at: u64, words: &[u64]) -> Result<(), Error> {
        match words.is_empty() {
            true => Ok(()),
            false => self.write_cells(first, at, &vec![words.to_vec(); lanes as usize]),
        }
    }

    pub(crate) fn write_word(&self, slot: u64, at: u64, word: u64) -> Result<(), Error> {
        Ok(self.slots.write(self.offset(slot, at), &word.to_le_bytes())?)
    }

    pub(crate) fn read_word(&self, slot: u64, at: u64) -> Result<u64, Error> {
        let mut bytes = [0; CELL as usize];
        self.slots.read(self.offset(slot, at), &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// The memory of the instance in `slot`, as far as it reaches now.
    pub(crate) fn read_memory(&self, slot: u64) -> Result<Vec<u8>, Error> {
        let length = self.read_word(slot, field::MEMORY_BYTES)?.min(self.place.memory_limit);
        let mut memory = vec![0; length as usize];
        match self.compiled.layout {
            Layout::Linear => self.slots.read(self.offset(slot, self.place.memory), &mut memory)?,
            Layout::Interleaved => {
                for (i, cell) in memory.chunks_mut(CELL as usize).enumerate() {
                    let word = self.read_word(slot, self.place.memory + i as u64 * CELL)?;
                    cell.copy_from_slice(&word.to_le_bytes()[..cell.len()]);
                }
            }
        }
        Ok(memory)
    }
}
