//! Writes a core dump: what a trapped instance left behind, as a file that debuggers read.
//!
//! The format is that of <https://github.com/WebAssembly/tool-conventions/blob/main/Coredump.md>, a module that nobody
//! instantiates: memories with data segments, globals, and custom sections for the instances and the stack of each
//! thread. A memory may be larger than ours, so it is read and written piece by piece, and what is zero is left out.

use crate::remains::Remains;
use gpu_run_abi::layout::PAGE;
use gpu_run_compiler::{Error, Value};
use std::io::{self, Seek, SeekFrom, Write};
use wasm_encoder::{
    ConstExpr, CoreDumpInstancesSection, CoreDumpModulesSection, CoreDumpSection, CoreDumpStackSection, CoreDumpValue,
    Encode, GlobalSection, GlobalType, Ieee32, Ieee64, MemorySection, MemoryType, Module, RefType, SectionId, ValType,
};

/// Bytes that are read from the device at once. A segment ends there, too: its length is written before its bytes.
const PIECE: usize = 1 << 20;
/// Zeros are left out in units of at least this many bytes.
const MIN_UNIT: u64 = 4096;
/// All memories together have at most this many units: readers accept 100,000 segments, and at most every second unit
/// begins one.
const MAX_UNITS: u64 = 1 << 17;
/// The most bytes of the section with the memories' content: a section's length has 32 bits.
const MAX_DATA: u64 = u32::MAX as u64;
/// The most bytes of a segment before its content: flags, memory, address and length.
const SEGMENT_HEAD: u64 = 32;

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenDump {
    pub bytes: u64,
    /// Whether the memories are whole. The format holds about 4 GiB of what is not zero.
    pub is_whole: bool,
}

/// Why a core dump could not be written.
#[derive(Debug)]
pub enum DumpError {
    Write(io::Error),
    /// The device could not be read.
    Read(Error),
}

impl From<io::Error> for DumpError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl From<Error> for DumpError {
    fn from(error: Error) -> Self {
        Self::Read(error)
    }
}

impl std::fmt::Display for DumpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Write(error) => write!(f, "{error}"),
            Self::Read(error) => write!(f, "the device's memory cannot be read: {error}"),
        }
    }
}

impl Remains<'_> {
    /// Writes a core dump of the program with this name.
    pub fn write_core_dump(&self, name: &str, mut out: impl Write + Seek) -> Result<WrittenDump, DumpError> {
        let mut module = Module::new();
        module.section(&CoreDumpSection::new(name));
        self.modules_and_stacks(name, &mut module);
        // A module's sections have an order: memories, globals, data. Custom sections are anywhere.
        module.section(&self.memory_section());
        module.section(&self.global_section());
        out.write_all(module.as_slice())?;
        let is_whole = self.write_data(&mut out)?;
        let bytes = out.stream_position()?;
        out.flush()?;
        Ok(WrittenDump { bytes, is_whole })
    }

    /// Every thread is an instance of its own: it has its own globals, and all have the same memories.
    fn modules_and_stacks(&self, name: &str, module: &mut Module) {
        let mut modules = CoreDumpModulesSection::new();
        modules.module(name);
        module.section(&modules);
        let mut instances = CoreDumpInstancesSection::new();
        let (mut first, memories) = (0, self.memories.len() as u32);
        for thread in &self.threads {
            let end = first + thread.globals.len() as u32;
            instances.instance(0, 0..memories, first..end);
            first = end;
        }
        module.section(&instances);
        for (instance, thread) in (0..).zip(&self.threads) {
            let mut stack = CoreDumpStackSection::new(&thread.name);
            for frame in &thread.frames {
                // The locals are in the device's registers, and gone.
                let (locals, operands): ([CoreDumpValue; 0], [CoreDumpValue; 0]) = ([], []);
                stack.frame(instance, frame.function, frame.offset, locals, operands);
            }
            module.section(&stack);
        }
    }

    fn memory_section(&self) -> MemorySection {
        let mut section = MemorySection::new();
        for (length, memory) in self.memories.iter().zip(&self.compiled.memories) {
            section.memory(MemoryType {
                minimum: length / PAGE,
                maximum: memory.maximum,
                memory64: memory.is_64,
                shared: memory.shared,
                page_size_log2: None,
            });
        }
        section
    }

    fn global_section(&self) -> GlobalSection {
        let mut section = GlobalSection::new();
        for (val_type, value) in self.threads.iter().flat_map(|thread| &thread.globals).map(|value| constant(*value)) {
            section.global(GlobalType { val_type, mutable: false, shared: false }, &value);
        }
        section
    }

    /// Writes what is not zero of all memories. Returns whether that is all of it.
    fn write_data(&self, out: &mut (impl Write + Seek)) -> Result<bool, DumpError> {
        out.write_all(&[SectionId::Data as u8])?;
        let length_at = out.stream_position()?;
        // The section's length and the number of segments are known in the end.
        out.write_all(&padded(0))?;
        let count_at = out.stream_position()?;
        out.write_all(&padded(0))?;
        let unit = (self.memories.iter().sum::<u64>() / MAX_UNITS).next_power_of_two().clamp(MIN_UNIT, PIECE as u64);
        let (mut count, mut end, mut is_whole) = (0, out.stream_position()?, true);
        let (mut piece, mut head) = (vec![0; PIECE], Vec::new());
        'all: for (index, length) in self.memories.iter().enumerate() {
            let is_64 = self.compiled.memories.get(index).is_some_and(|memory| memory.is_64);
            for at in (0..*length).step_by(PIECE) {
                let piece = &mut piece[..(length - at).min(PIECE as u64) as usize];
                (self.read)(index, at, piece)?;
                for (offset, bytes) in runs(piece, unit as usize) {
                    if end - count_at + SEGMENT_HEAD + bytes.len() as u64 > MAX_DATA {
                        is_whole = false;
                        break 'all;
                    }
                    head.clear();
                    segment_head(index as u32, is_64, at + offset as u64, bytes.len() as u32, &mut head);
                    out.write_all(&head)?;
                    out.write_all(bytes)?;
                    end += (head.len() + bytes.len()) as u64;
                    count += 1;
                }
            }
        }
        out.seek(SeekFrom::Start(length_at))?;
        out.write_all(&padded((end - count_at) as u32))?;
        out.write_all(&padded(count))?;
        out.seek(SeekFrom::Start(end))?;
        Ok(is_whole)
    }
}

/// Returns the parts of a piece of memory that have no whole unit of zeros in them, without the zeros at their ends.
fn runs(piece: &[u8], unit: usize) -> impl Iterator<Item = (usize, &[u8])> {
    // Without a way out of the loop, the compiler looks at many bytes at once.
    let is_zero = |unit: &[u8]| unit.iter().fold(0, |all, byte| all | byte) == 0;
    let units: Vec<_> = piece.chunks(unit).map(|unit| (unit.len(), is_zero(unit))).collect();
    let mut at = 0;
    let mut found = Vec::new();
    for run in units.chunk_by(|a, b| a.1 == b.1) {
        let length = run.iter().map(|(length, _)| length).sum::<usize>();
        if run[0].1 {
            at += length;
            continue;
        }
        let bytes = &piece[at..at + length];
        if let (Some(first), Some(last)) = (bytes.iter().position(|b| *b != 0), bytes.iter().rposition(|b| *b != 0)) {
            found.push((at + first, &bytes[first..=last]));
        }
        at += length;
    }
    found.into_iter()
}

/// What stands before the bytes of a segment.
fn segment_head(memory: u32, is_64: bool, at: u64, length: u32, head: &mut Vec<u8>) {
    match memory {
        0 => head.push(0),
        memory => {
            head.push(2);
            memory.encode(head);
        }
    }
    let address = if is_64 { ConstExpr::i64_const(at as i64) } else { ConstExpr::i32_const(at as u32 as i32) };
    address.encode(head);
    length.encode(head);
}

/// A number in the longest form that WebAssembly allows, so that another one fits in its place.
fn padded(value: u32) -> [u8; 5] {
    let part = |i: u32| (value >> (7 * i)) as u8 & 0x7f | if i < 4 { 0x80 } else { 0 };
    [part(0), part(1), part(2), part(3), part(4)]
}

/// Returns a global's type and value. References are null: they mean nothing outside of the instance.
fn constant(value: Value) -> (ValType, ConstExpr) {
    let null = |ty: RefType| (ValType::Ref(ty), ConstExpr::ref_null(ty.heap_type));
    match value {
        Value::I32(v) => (ValType::I32, ConstExpr::i32_const(v)),
        Value::I64(v) => (ValType::I64, ConstExpr::i64_const(v)),
        Value::F32(bits) => (ValType::F32, ConstExpr::f32_const(Ieee32::new(bits))),
        Value::F64(bits) => (ValType::F64, ConstExpr::f64_const(Ieee64::new(bits))),
        Value::V128(bits) => (ValType::V128, ConstExpr::v128_const(bits as i128)),
        Value::FuncRef(_) => null(RefType::FUNCREF),
        Value::ExternRef(_) => null(RefType::EXTERNREF),
        Value::ExnRef(_) => null(RefType::EXNREF),
        Value::AnyRef => null(RefType::ANYREF),
    }
}

#[cfg(test)]
#[path = "core_dump_tests.rs"]
mod tests;
