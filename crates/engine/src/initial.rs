//! What a fresh instance holds.
//!
//! All of it is known when the module is compiled: globals, table elements, data segments, and also whether an active segment lies outside its
//! memory or table, in which case every instance traps before it begins.

use gpu_run_abi::TrapCode;
use gpu_run_abi::layout::{PAGE, WORD};
use gpu_run_wasm::slot::SlotLayout;
use gpu_run_wasm::{Constant, ElementKind, Module, function_reference};

/// The initial state of an instance's slot, in pieces of whole cells.
#[derive(Debug, Default)]
pub(crate) struct Initial {
    /// Cells of the fixed part, beside the header: offset in the slot, word.
    pub(crate) words: Vec<(u64, u64)>,
    /// Each table's elements.
    pub(crate) tables: Vec<Vec<u64>>,
    /// Pieces of memory that are not zero: offset in the memory (a multiple of a cell), words.
    pub(crate) memory: Vec<(u64, Vec<u64>)>,
    /// Passive segments, for `memory.init` and `table.init`.
    pub(crate) constants: Vec<u8>,
    /// What a reference to each function looks like, for those the host passes.
    pub(crate) references: Vec<u64>,
    pub(crate) trap: Option<TrapCode>,
}

impl Initial {
    pub(crate) fn new(module: &Module<'_>, slots: &SlotLayout) -> Self {
        let mut globals: Vec<u128> = Vec::new();
        for global in &module.globals {
            globals.push(bits(module, &globals, global.init));
        }
        let mut this = Self { constants: vec![0; slots.constants as usize], ..Self::default() };
        for ((at, bits), global) in slots.globals.iter().zip(&globals).zip(&module.globals) {
            let words = [(*at, *bits as u64), (at + WORD, (bits >> 64) as u64)];
            this.words.extend(&words[..global.ty.words() as usize]);
        }
        for table in &module.tables {
            this.tables.push(vec![word(module, &globals, table.init); table.minimum as usize]);
        }
        this.references = (0..module.functions.len() as u32).map(|f| function_reference(module, f)).collect();
        this.elements(module, slots, &globals);
        this.data(module, slots, &globals);
        this
    }

    fn elements(&mut self, module: &Module<'_>, slots: &SlotLayout, globals: &[u128]) {
        for (segment, place) in module.elements.iter().zip(&slots.elements) {
            self.words.push((place.cell, place.length));
            let items = segment.items.iter().map(|item| word(module, globals, *item));
            match segment.kind {
                ElementKind::Active { table, offset } if self.trap.is_none() => {
                    let at = word(module, globals, offset) as usize;
                    let table = &mut self.tables[table as usize];
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

    fn data(&mut self, module: &Module<'_>, slots: &SlotLayout, globals: &[u128]) {
        let memory_bytes = module.memory.map_or(0, |m| m.minimum * PAGE);
        let mut pieces: Vec<(u64, &[u8])> = Vec::new();
        for (segment, place) in module.data.iter().zip(&slots.data) {
            self.words.push((place.cell, place.length));
            match segment.offset {
                None => self.constants[place.at as usize..][..segment.bytes.len()].copy_from_slice(segment.bytes),
                Some(offset) if self.trap.is_none() => {
                    let at = word(module, globals, offset);
                    if at + segment.bytes.len() as u64 > memory_bytes {
                        self.trap = Some(TrapCode::MemoryOutOfBounds);
                    } else {
                        pieces.push((at, segment.bytes));
                    }
                }
                Some(_) => {}
            }
        }
        self.memory = in_cells(&pieces);
    }
}

/// A constant's word in the slot.
fn word(module: &Module<'_>, globals: &[u128], constant: Constant) -> u64 {
    bits(module, globals, constant) as u64
}

/// A constant's words, of which all but a v128 have one.
fn bits(module: &Module<'_>, globals: &[u128], constant: Constant) -> u128 {
    match constant {
        Constant::Bits(bits) => bits.into(),
        Constant::Vector(bits) => bits,
        Constant::Null => 0,
        Constant::Function(index) => function_reference(module, index).into(),
        Constant::Global(index) => globals[index as usize],
    }
}

/// Pieces of bytes, later ones over earlier ones, as disjoint pieces of whole cells in ascending order.
fn in_cells(pieces: &[(u64, &[u8])]) -> Vec<(u64, Vec<u64>)> {
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
    result.into_iter().map(|(at, bytes)| (at, words(bytes))).collect()
}

#[cfg(test)]
mod tests {
    use super::in_cells;

    #[test]
    fn overlapping_and_unaligned_pieces_merge_in_order() {
        let pieces: [(u64, &[u8]); 4] = [(3, &[1; 6]), (20, b""), (5, &[2, 2]), (32, &[7])];
        let cells = in_cells(&pieces);
        assert_eq!((cells.len(), cells[0].0), (2, 0));
        let bytes: Vec<u8> = cells[0].1.iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(bytes, [0, 0, 0, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(cells[1], (32, vec![7]));
    }
}
