//! Turns guest addresses into device addresses.

use super::{CELL, Guest, find};
use crate::Error;
use crate::print::gang;
use crate::print::memory::Address;
use crate::print::register::{Class, Operand, Reg};
use cranelift_codegen::ir::{Value, types};
use gpu_run_abi::layout::{WORD, field};

/// Offsets in a GPU's loads and stores are signed numbers of 24 bits: they are below this.
const MAX_OFFSET: i64 = 1 << 23;

impl Guest<'_> {
    /// Computes the device address of guest byte 0, at the function's entry.
    pub(super) fn find_memory(&mut self) -> Result<(), Error> {
        let instance = self.print.instance()?;
        let (program, body) = (self.print.program, &mut self.print.body);
        let (layout, memory) = (program.layout(), program.memory);
        let at = memory.offset(layout);
        self.memory = Some(if program.is_local() {
            let [low, high] = [0, WORD / 2].map(|half| {
                let word = body.temp(Class::B32);
                let at = layout.offset(field::MEMORY_AT + half) as i64;
                body.load("ld.global", ".u32", word, instance, at);
                word
            });
            let memory = body.temp(Class::B64);
            body.pack(memory, low.into(), high.into());
            memory
        } else if program.is_threads() {
            let (memory, at) = (body.temp(Class::B64), layout.offset(field::MEMORY_AT) as i64);
            self.print.slot_load(".u64", memory, Address { base: instance, offset: at });
            memory
        } else if let Some(region) = program.gang_region() {
            gang::memory(body, instance, region)
        } else if at > -MAX_OFFSET {
            body.op_to_temp(Class::B64, "add", ".u64", &[instance.into(), at.into()])
        } else {
            // If the assembler knew the constant, it would add the part that does not fit an instruction's offset to
            // every address. So the constant is hidden in a product.
            let one = body.hidden_one();
            let below = body.op_to_temp(Class::B64, "mul.wide", ".u32", &[one.into(), (-at).into()]);
            body.op_to_temp(Class::B64, "sub", ".u64", &[instance.into(), below.into()])
        });
        Ok(())
    }

    /// Returns the bytes on the device from one cell of guest memory to the next.
    pub(super) fn stride(&self) -> i64 {
        if self.print.program.is_flat() { CELL } else { self.print.program.layout().stride() as i64 }
    }

    /// Returns the instruction that reads guest memory.
    pub(super) fn ld(&self) -> &'static str {
        match self.print.program.is_local() {
            true => "ld.local",
            false if self.waits => "ld.relaxed.gpu.global",
            false => "ld.global",
        }
    }

    /// Returns the instruction that writes guest memory.
    pub(super) fn st(&self) -> &'static str {
        if self.print.program.is_local() { "st.local" } else { "st.global" }
    }

    /// Returns a 32-bit register with the root.
    pub(crate) fn root_word(&mut self, root: Value) -> Reg {
        if self.print.ty(root) == types::I32 {
            return self.print.in_register(root);
        }
        if let Some(known) = find(&self.known.words, root) {
            return known;
        }
        let word = self.print.low_word(root);
        let word = self.print.load_operand(word, types::I32);
        self.known.words.push((root, word));
        word
    }

    pub(super) fn memory_register(&mut self) -> Reg {
        // The prologue has set the register: a function with a guest access has one.
        self.memory.unwrap_or_else(|| self.print.body.temp(Class::B64))
    }

    /// Returns a base and an offset that PTX accepts, for the byte `offset` bytes from guest byte 0 on the device.
    pub(super) fn displaced(&mut self, offset: u64) -> (Reg, i64) {
        let memory = self.memory_register();
        match i32::try_from(offset) {
            Ok(offset) => (memory, offset.into()),
            Err(_) => {
                let offset = Operand::Int(offset as i64);
                (self.print.body.op_to_temp(Class::B64, "add", ".u64", &[memory.into(), offset]), 0)
            }
        }
    }

    /// Returns the device address of the cell that contains guest address `word`, and the offset from there to the cell
    /// that is `cells` guest bytes further on.
    pub(super) fn cell_of(&mut self, word: Reg, cells: u64) -> (Reg, i64) {
        let layout = self.print.program.layout();
        let (memory, mask) = (self.memory_register(), -(layout.cell() as i64));
        let body = &mut self.print.body;
        let first = body.op_to_temp(Class::B32, "and", ".b32", &[word.into(), mask.into()]);
        let operands = [first.into(), (layout.spread() as i64).into(), memory.into()];
        (body.op_to_temp(Class::B64, "mad.wide", ".u32", &operands), layout.offset(cells) as i64)
    }

    /// Returns the device address of the byte at guest address `word`, whose cell is at `cell`.
    pub(super) fn byte_in(&mut self, cell: Reg, word: Reg) -> Reg {
        let mask = self.print.program.layout().cell() as i64 - 1;
        let body = &mut self.print.body;
        let byte = body.op_to_temp(Class::B32, "and", ".b32", &[word.into(), mask.into()]);
        let byte = body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[byte.into()]);
        body.op_to_temp(Class::B64, "or", ".b64", &[cell.into(), byte.into()])
    }

    /// Returns the device address that a root leads to in an interleaved layout. The root is aligned to cells.
    pub(super) fn cells_address(&mut self, root: Value) -> Reg {
        if let Some(known) = find(&self.known.addresses, root) {
            return known;
        }
        let (word, memory) = (self.root_word(root), self.memory_register());
        let spread = self.print.program.layout().spread() as i64;
        let operands = [word.into(), spread.into(), memory.into()];
        let address = self.print.body.op_to_temp(Class::B64, "mad.wide", ".u32", &operands);
        self.known.addresses.push((root, address));
        address
    }

    /// Returns the device address that a root leads to where bytes lie one after the other.
    pub(super) fn linear_address(&mut self, root: Value) -> Reg {
        if let Some(known) = find(&self.known.addresses, root) {
            return known;
        }
        let (word, memory) = (self.root_word(root), self.memory_register());
        let wide = self.print.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[word.into()]);
        let address = self.print.body.op_to_temp(Class::B64, "add", ".u64", &[memory.into(), wide.into()]);
        self.known.addresses.push((root, address));
        address
    }
}
