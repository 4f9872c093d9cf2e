//! Where a module's state lies in a slot, behind the header.
//!
//! Compiled code and host agree on these offsets through [`SlotLayout`]; sizes that are only known when a
//! program runs (how far a memory or a table may grow) are not here: they are reached through addresses in the slot.
//! All offsets are in bytes of the slot and multiples of 8, before [`gpu_run_abi::Layout::offset`] is applied.

use crate::decode::{ElementKind, Module};
use gpu_run_abi::layout::{CELL, field};

/// The cells that describe one table.
#[derive(Clone, Copy, Debug)]
pub struct TableCells {
    /// Device address of the first element.
    pub base: u64,
    /// Elements there are.
    pub length: u64,
    /// Elements there may be.
    pub limit: u64,
}

/// A passive segment: its bytes in the module's constants, and the cell that says how much of it is left.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    /// Offset in the constants.
    pub at: u64,
    /// Length: bytes of a data segment, elements of an element segment; 0 for one that is not passive.
    pub length: u64,
    /// The slot's cell with the length; 0 once dropped.
    pub cell: u64,
}

#[derive(Clone, Debug)]
pub struct SlotLayout {
    pub globals: Vec<u64>,
    pub tables: Vec<TableCells>,
    pub data: Vec<Segment>,
    pub elements: Vec<Segment>,
    /// Arguments of the function called, and its results, a cell each.
    pub arguments: u64,
    /// Where the fixed part ends; tables and memory follow.
    pub end: u64,
    /// Bytes of constants.
    pub constants: u64,
}

impl SlotLayout {
    pub fn new(module: &Module<'_>) -> Self {
        let mut at = field::HEADER_BYTES;
        let mut cell = || {
            at += CELL;
            at - CELL
        };
        let globals = module.globals.iter().map(|_| cell()).collect();
        let tables = module.tables.iter().map(|_| TableCells { base: cell(), length: cell(), limit: cell() }).collect();
        let mut constants = 0u64;
        let mut segment = |length: u64, bytes: u64, cell: u64| {
            let segment = Segment { at: constants, length, cell };
            constants += bytes.next_multiple_of(CELL);
            segment
        };
        let data = module.data.iter().map(|d| {
            let length = if d.offset.is_none() { d.bytes.len() as u64 } else { 0 };
            segment(length, length, cell())
        });
        let data = data.collect();
        let elements = module.elements.iter().map(|e| {
            let length = if e.kind == ElementKind::Passive { e.items.len() as u64 } else { 0 };
            segment(length, length * CELL, cell())
        });
        let elements = elements.collect();
        let arguments = cell();
        let widest = module.types.iter().map(|t| t.params.len().max(t.results.len())).max().unwrap_or(0) as u64;
        Self { globals, tables, data, elements, arguments, end: arguments + CELL * widest.max(1), constants }
    }
}
