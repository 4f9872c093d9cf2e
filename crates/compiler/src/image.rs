//! The initial contents of an instance.
//!
//! All of it is known when the module is compiled: globals, table elements, data segments, and also whether an active
//! segment lies outside its memory or table, in which case every instance traps before it begins. If modules are linked
//! to others that have already run, part of it is the state of those ([`State`]); the segments before the one that
//! traps still write their contents there.

use crate::error::Error;
use crate::stored::words;
use gpu_run_abi::TrapCode;
use gpu_run_abi::layout::{PAGE, WORD};
use gpu_run_wasm::slot::SlotLayout;
use gpu_run_wasm::{Constant, ElementKind, Module, function_reference};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The initial state of an instance's slot, in pieces of whole words.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Initial {
    /// Words of the fixed part, behind the header: offset in the slot, and value.
    pub words: Vec<(u64, u64)>,
    /// The elements of each table.
    pub tables: Vec<Vec<u64>>,
    pub memories: Vec<InitialMemory>,
    /// Passive segments, for `memory.init` and `table.init`.
    pub constants: Vec<u8>,
    /// The reference to each function, for references that the host passes.
    #[serde(with = "words")]
    pub references: Vec<u64>,
    /// Set if an active segment is out of bounds: the trap that every instance starts with.
    pub trap: Option<TrapCode>,
}

/// Words of a memory, and the address of the first: a multiple of a word.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InitialPiece {
    pub at: u64,
    #[serde(with = "words")]
    pub words: Vec<u64>,
}

/// A memory's length in bytes, and the pieces of it that are not zero.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InitialMemory {
    pub length: u64,
    pub pieces: Vec<InitialPiece>,
}

/// The state that a program's modules already have because they ran as parts of another program: by index, in this
/// program's words.
#[derive(Debug, Default)]
pub struct State {
    pub globals: HashMap<u32, u128>,
    pub tables: HashMap<u32, Vec<u64>>,
    pub memories: HashMap<u32, Vec<u8>>,
    /// Remaining length of each data segment and each element segment.
    pub data: HashMap<u32, u64>,
    pub elements: HashMap<u32, u64>,
    /// How many exceptions were given a number: those numbers are taken.
    pub exceptions: u64,
}

/// The most elements that all tables of a program may begin with, together.
const MAX_ELEMENTS: u64 = 1 << 26;

impl Initial {
    pub fn new(module: &Module<'_>, slots: &SlotLayout, state: &State) -> Result<Self, Error> {
        let mut globals: Vec<u128> = Vec::new();
        for (index, global) in (0..).zip(&module.globals) {
            globals.push(match state.globals.get(&index) {
                Some(bits) => *bits,
                None => bits(module, &globals, &global.init),
            });
        }
        let mut this = Self { constants: vec![0; slots.constants as usize], ..Self::default() };
        for ((at, bits), global) in slots.globals.iter().zip(&globals).zip(&module.globals) {
            let words = [(*at, *bits as u64), (at + WORD, (bits >> 64) as u64)];
            this.words.extend(&words[..global.ty.words() as usize]);
        }
        if slots.exception.count > 0 {
            this.words.push((slots.exception.count, state.exceptions));
        }
        let elements = module.tables.iter().map(|table| table.minimum).fold(0, u64::saturating_add);
        if elements > MAX_ELEMENTS {
            let message = format!("its tables begin with {elements} elements; the limit is {MAX_ELEMENTS}");
            return Err(Error::Limit(message));
        }
        for (index, table) in (0..).zip(&module.tables) {
            this.tables.push(match state.tables.get(&index) {
                Some(elements) => elements.clone(),
                None => vec![word(module, &globals, &table.init); table.minimum as usize],
            });
        }
        this.references = (0..module.functions.len() as u32).map(|f| function_reference(module, f)).collect();
        this.elements(module, slots, &globals, state);
        this.data(module, slots, &globals, state);
        Ok(this)
    }

    fn elements(&mut self, module: &Module<'_>, slots: &SlotLayout, globals: &[u128], state: &State) {
        for ((index, segment), place) in (0..).zip(&module.elements).zip(&slots.elements) {
            let left = state.elements.get(&index).copied();
            self.words.push((place.cell, left.unwrap_or(place.length)));
            let items = segment.items.iter().map(|item| word(module, globals, item));
            match &segment.kind {
                ElementKind::Active { table, offset } if self.trap.is_none() && left.is_none() => {
                    let at = word(module, globals, offset) as usize;
                    let table = &mut self.tables[*table as usize];
                    match at.checked_add(segment.items.len()).and_then(|end| table.get_mut(at..end)) {
                        Some(room) => room.iter_mut().zip(items).for_each(|(cell, item)| *cell = item),
                        None => self.trap = Some(TrapCode::TableOutOfBounds),
                    }
                }
                ElementKind::Passive => {
                    let bytes: Vec<u8> = items.flat_map(u64::to_le_bytes).collect();
                    self.constants[place.at as usize..][..bytes.len()].copy_from_slice(&bytes);
                }
                ElementKind::Active { .. } | ElementKind::Declared => {}
            }
        }
    }

    fn data(&mut self, module: &Module<'_>, slots: &SlotLayout, globals: &[u128], state: &State) {
        let length = |index: u32, least: u64| state.memories.get(&index).map_or(least, |bytes| bytes.len() as u64);
        let least = (0..).zip(&module.memories).map(|(index, memory)| length(index, memory.minimum * PAGE));
        let lengths: Vec<u64> = least.collect();
        let mut pieces: Vec<Vec<(u64, &[u8])>> = (0..lengths.len() as u32)
            .map(|index| state.memories.get(&index).map_or_else(Vec::new, |m| used(m)))
            .collect();
        for ((index, segment), place) in (0..).zip(&module.data).zip(&slots.data) {
            let left = state.data.get(&index).copied();
            self.words.push((place.cell, left.unwrap_or(place.length)));
            match &segment.place {
                None => self.constants[place.at as usize..][..segment.bytes.len()].copy_from_slice(segment.bytes),
                Some((memory, offset)) if self.trap.is_none() && left.is_none() => {
                    let at = word(module, globals, offset);
                    let end = at.checked_add(segment.bytes.len() as u64);
                    match end.is_some_and(|end| end <= lengths[*memory as usize]) {
                        true => pieces[*memory as usize].push((at, segment.bytes)),
                        false => self.trap = Some(TrapCode::MemoryOutOfBounds),
                    }
                }
                Some(_) => {}
            }
        }
        let memory = |(length, pieces): (u64, &Vec<_>)| InitialMemory { length, pieces: in_cells(pieces) };
        self.memories = lengths.into_iter().zip(&pieces).map(memory).collect();
    }
}

/// Returns the parts of a memory that are not zero.
fn used(memory: &[u8]) -> Vec<(u64, &[u8])> {
    const PART: usize = 4096;
    let parts = (0..).step_by(PART).zip(memory.chunks(PART));
    parts.filter(|(_, part)| part.iter().any(|byte| *byte != 0)).collect()
}

/// Returns a constant's word in the slot.
fn word(module: &Module<'_>, globals: &[u128], constant: &Constant) -> u64 {
    bits(module, globals, constant) as u64
}

/// Returns a constant's bits in the slot: two words for a v128, one for anything else.
fn bits(module: &Module<'_>, globals: &[u128], constant: &Constant) -> u128 {
    constant.bits(&|function| function_reference(module, function), &|global| globals[global as usize])
}

/// Converts pieces of bytes, where later ones overwrite earlier ones, to disjoint pieces of whole words in ascending
/// order.
fn in_cells(pieces: &[(u64, &[u8])]) -> Vec<InitialPiece> {
    let ends = |at: u64, len: usize| (at / WORD, (at + len as u64).div_ceil(WORD));
    let mut spans: Vec<(u64, u64)> =
        pieces.iter().filter(|p| !p.1.is_empty()).map(|(at, bytes)| ends(*at, bytes.len())).collect();
    spans.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (start, end) in spans {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    let mut result: Vec<(u64, Vec<u8>)> =
        merged.iter().map(|(s, e)| (s * WORD, vec![0; ((e - s) * WORD) as usize])).collect();
    for (at, bytes) in pieces.iter().filter(|p| !p.1.is_empty()) {
        let index = result.partition_point(|(start, _)| start <= at) - 1;
        let (start, room) = &mut result[index];
        room[(at - *start) as usize..][..bytes.len()].copy_from_slice(bytes);
    }
    let words = |bytes: Vec<u8>| bytes.as_chunks::<8>().0.iter().map(|c| u64::from_le_bytes(*c)).collect();
    result.into_iter().map(|(at, bytes)| InitialPiece { at, words: words(bytes) }).collect()
}

#[cfg(test)]
mod tests {
    use super::in_cells;

    #[test]
    fn overlapping_and_unaligned_pieces_merge_in_order() {
        let pieces: [(u64, &[u8]); 4] = [(3, &[1; 6]), (20, b""), (5, &[2, 2]), (32, &[7])];
        let cells = in_cells(&pieces);
        assert_eq!((cells.len(), cells[0].at), (2, 0));
        let bytes: Vec<u8> = cells[0].words.iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(bytes, [0, 0, 0, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((cells[1].at, &cells[1].words), (32, &vec![7]));
    }
}
