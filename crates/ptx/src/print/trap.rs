//! Traps: the thread stores a record in the instance's header and exits.
//!
//! The checks branch to blocks at the function's end, one for each pair of trap code and wasm offset. Each block stores
//! its record and exits by itself: a shared tail would be shorter, but has made CUDA 13.0's ptxas crash.

use super::Printer;
use super::body::{Body, Label, When};
use super::call::{self, Callee};
use super::gang;
use super::integer::one;
use super::register::{Class, Operand, Reg};
use super::text::{push_address, push_hex};
use super::wait;
use crate::{Error, Program};
use cranelift_codegen::ir::{self, Inst};
use gpu_run_abi::layout::{WORD, field};
use gpu_run_abi::{Layout, TrapCode, TrapRecord, threads};

/// The function's trap records. Each has a block of its own.
#[derive(Debug, Default)]
pub(crate) struct Traps {
    records: Vec<u64>,
}

impl Traps {
    /// How many records back to look for an equal one. Only neighbouring checks of one wasm instruction make equal
    /// records.
    const LOOK_BACK: usize = 8;

    fn label(&mut self, record: u64) -> Label {
        let start = self.records.len().saturating_sub(Self::LOOK_BACK);
        let at = self.records[start..].iter().position(|&r| r == record).map_or(self.records.len(), |i| start + i);
        if at == self.records.len() {
            self.records.push(record);
        }
        Label::Trap(at as u32)
    }
}

/// Returns the abi's code for a CLIF trap. The front end's own codes already are the abi's.
fn abi_code(code: ir::TrapCode) -> Option<TrapCode> {
    match code {
        ir::TrapCode::STACK_OVERFLOW => Some(TrapCode::StackOverflow),
        ir::TrapCode::INTEGER_OVERFLOW => Some(TrapCode::IntegerOverflow),
        ir::TrapCode::HEAP_OUT_OF_BOUNDS => Some(TrapCode::MemoryOutOfBounds),
        ir::TrapCode::INTEGER_DIVISION_BY_ZERO => Some(TrapCode::IntegerDivisionByZero),
        ir::TrapCode::BAD_CONVERSION_TO_INTEGER => Some(TrapCode::BadConversionToInteger),
        user => TrapCode::from_u8(user.as_raw().get()),
    }
}

impl Printer<'_> {
    fn trap_label(&mut self, code: ir::TrapCode, inst: Inst) -> Result<Label, Error> {
        let code = abi_code(code).ok_or_else(|| Error::TrapCode { function: self.function.symbol.clone(), code })?;
        let record = TrapRecord { code, function: self.function.trap_id, offset: self.source_offset(inst) };
        Ok(self.traps.label(record.pack()))
    }

    /// Traps if `predicate` has the value `when`. In a speculative build the instance stops without a record instead,
    /// and the exact build finds out why. A predicated exit is no branch, so the assembler needs no point where lanes
    /// meet again.
    pub(crate) fn trap_if(&mut self, predicate: Reg, when: When, code: ir::TrapCode, inst: Inst) -> Result<(), Error> {
        if self.program.is_speculative() {
            self.body.exit_if(predicate, when);
            return Ok(());
        }
        let label = self.trap_label(code, inst)?;
        self.body.branch_if(predicate, when, label);
        Ok(())
    }

    /// Prints the blocks that the checks branch to.
    pub(crate) fn trap_blocks(&mut self) -> Result<(), Error> {
        let records = std::mem::take(&mut self.traps.records);
        if records.is_empty() {
            return Ok(());
        }
        let instance = self.instance()?;
        let word = self.body.temp(Class::B64);
        for (i, &record) in records.iter().enumerate() {
            self.body.place(Label::Trap(i as u32));
            self.body.begin("mov", ".b64");
            self.body.operand(word);
            self.body.out.push_str(", 0x");
            push_hex(&mut self.body.out, record, 16);
            self.body.end();
            end(&mut self.body, self.program, instance, word);
        }
        Ok(())
    }
}

/// Prints code that stores the record and exits.
pub(crate) fn end(body: &mut Body, program: &Program, instance: Reg, record: Reg) {
    match program.gang_region() {
        None => store_word(body, program.layout(), instance, field::TRAP, record.into()),
        Some(_) => gang::end(body, instance, record),
    }
    if program.is_threads() {
        end_program(body, instance);
    }
    body.op("exit", "", &[]);
}

/// Notes which thread ended the program, if it is the first, and stops all others.
fn end_program(body: &mut Body, instance: Reg) {
    let [memory, index, stop] = [field::MEMORY_AT, field::INDEX, field::STOP].map(|at| {
        let word = body.temp(Class::B64);
        body.load("ld.global", ".u64", word, instance, at as i64);
        word
    });
    let own = body.op_to_temp(Class::B64, "add", ".u64", &[index.into(), 1.into()]);
    let before = body.temp(Class::B64);
    body.begin("atom.relaxed.gpu.global.cas", ".b64");
    body.operand(before);
    body.out.push_str(", ");
    push_address(&mut body.out, memory, threads::offset::ENDED_BY.into());
    body.out.push_str(", 0, ");
    body.operand(own);
    body.end();
    body.store("st.relaxed.gpu.global", ".u32", stop, 0, 1.into());
    let end = body.op_to_temp(Class::B64, "add", ".u64", &[memory.into(), i64::from(threads::offset::ENDED_BY).into()]);
    call::push_call(body, &[], false, &Callee::Symbol(wait::WAKE), &[end.into()]);
}

/// Stores a word at offset `at` of the slot.
fn store_word(body: &mut Body, layout: Layout, instance: Reg, at: u64, word: Operand) {
    if layout.cell() == WORD {
        return body.store("st.global", ".u64", instance, layout.offset(at) as i64, word);
    }
    let [low, high] = body.unpack(word);
    body.store("st.global", ".u32", instance, layout.offset(at) as i64, low);
    body.store("st.global", ".u32", instance, layout.offset(at + layout.cell()) as i64, high);
}

fn code(p: &Printer<'_>, inst: Inst) -> Result<ir::TrapCode, Error> {
    p.func.dfg.insts[inst].trap_code().ok_or_else(|| p.unsupported(inst))
}

/// Prints a trap without a condition, or with a condition that always holds.
pub(crate) fn trap(p: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    let label = p.trap_label(code(p, inst)?, inst)?;
    p.body.branch(label);
    p.block.ended = true;
    Ok(())
}

/// `trapnz`
pub(crate) fn trap_when(p: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    conditional(p, inst, When::True)
}
/// `trapz`
pub(crate) fn trap_unless(p: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    conditional(p, inst, When::False)
}
fn conditional(p: &mut Printer<'_>, inst: Inst, when: When) -> Result<(), Error> {
    let (condition, code) = (one(p, inst)?, code(p, inst)?);
    let predicate = p.condition(condition);
    p.trap_if(predicate, when, code, inst)
}
