//! A compiled program as bytes: what is kept of it beside its machine code.
//!
//! A program that comes from the cache is neither decoded nor translated: all that running it takes is in here. Names and debug information are not; they
//! are looked up in the module itself, should something trap.

use crate::compile::{CompileOptions, Compiled, EntryFunction};
use crate::initial::Initial;
use gpu_run_abi::TrapCode;
use gpu_run_device::code::{Reader, Writer, not_ours};
use gpu_run_device::{Error as DeviceError, Result};
use gpu_run_wasm::slot::{Segment, SlotLayout, TablePlace};
use gpu_run_wasm::{FuncType, Memory, ValType, WasmFeatures};
use std::sync::{Arc, OnceLock};

/// The program and its machine code, in one piece.
pub(crate) fn write(compiled: &Compiled, code: &[u8]) -> Vec<u8> {
    let mut w = Writer::default();
    slots(&mut w, &compiled.slots);
    initial(&mut w, &compiled.initial);
    let memory = compiled.memory.map(|m| [m.minimum, u64::from(m.maximum.is_some()), m.maximum.unwrap_or_default()]);
    w.words(memory.as_ref().map_or(&[], |m| &m[..]));
    w.u8(u8::from(compiled.grows_memory));
    w.u8(u8::from(compiled.has_start));
    w.list(&compiled.entries, |w, entry| {
        w.bytes(entry.name.as_bytes());
        types(w, &entry.ty.params);
        types(w, &entry.ty.results);
    });
    w.list(&compiled.globals, |w, (name, index, ty)| {
        w.bytes(name.as_bytes());
        w.u32(*index);
        types(w, &[*ty]);
    });
    w.bytes(code);
    w.done()
}

/// Reads what [`write`] wrote of this module, and where the code is in it.
pub(crate) fn read<'a>(
    bytes: &'a [u8],
    wasm: Arc<Vec<u8>>,
    options: &CompileOptions,
    features: WasmFeatures,
) -> Result<(Compiled, &'a [u8]), DeviceError> {
    let mut r = Reader::new(bytes);
    let (slots, initial) = (read_slots(&mut r)?, read_initial(&mut r)?);
    let memory = match r.words()?[..] {
        [] => None,
        [minimum, bounded, maximum] => Some(Memory { minimum, maximum: (bounded != 0).then_some(maximum) }),
        _ => return Err(not_ours("a memory has other limits")),
    };
    let (grows_memory, has_start) = (r.u8()? != 0, r.u8()? != 0);
    let entries = r.list(|r| {
        let (name, params) = (r.string()?, read_types(r)?);
        Ok(EntryFunction { name, ty: FuncType { params, results: read_types(r)? } })
    })?;
    let globals = r.list(|r| {
        let (name, index) = (r.string()?, r.u32()?);
        let ty = read_types(r)?.first().copied().ok_or_else(|| not_ours("a global has no type"))?;
        Ok((name, index, ty))
    })?;
    let code = r.bytes()?;
    r.end()?;
    let compiled = Compiled {
        wasm,
        options: options.clone(),
        features,
        ptx: String::new(),
        layout: options.layout,
        slots,
        initial,
        memory,
        grows_memory,
        has_start,
        entries,
        globals,
        symbols: OnceLock::new(),
        timings: Vec::new(),
    };
    Ok((compiled, code))
}

fn slots(w: &mut Writer, slots: &SlotLayout) {
    let SlotLayout { globals, tables, data, elements, arguments, end, memory, low, constants } = slots;
    w.words(globals);
    w.list(tables, |w, TablePlace { at, capacity, length }| w.words(&[*at, *capacity, *length]));
    for segments in [data, elements] {
        w.list(segments, |w, Segment { at, length, cell }| w.words(&[*at, *length, *cell]));
    }
    w.words(&[*arguments, *end, *memory, *low, *constants]);
}

fn read_slots(r: &mut Reader<'_>) -> Result<SlotLayout> {
    let globals = r.words()?;
    let tables = r.list(|r| three(r).map(|[at, capacity, length]| TablePlace { at, capacity, length }))?;
    let segment = |r: &mut Reader<'_>| three(r).map(|[at, length, cell]| Segment { at, length, cell });
    let (data, elements) = (r.list(segment)?, r.list(segment)?);
    let [arguments, end, memory, low, constants] = r.words()?[..] else { return Err(not_ours("a slot is another")) };
    Ok(SlotLayout { globals, tables, data, elements, arguments, end, memory, low, constants })
}

fn three(r: &mut Reader<'_>) -> Result<[u64; 3]> {
    r.words()?.try_into().map_err(|_| not_ours("three words are not three"))
}

fn initial(w: &mut Writer, initial: &Initial) {
    let Initial { words, tables, memory, constants, references, trap } = initial;
    w.list(words, |w, (at, word)| w.words(&[*at, *word]));
    w.list(tables, |w, table| w.words(table));
    w.list(memory, |w, (at, words)| {
        w.u64(*at);
        w.words(words);
    });
    w.bytes(constants);
    w.words(references);
    w.words(trap.map(|code| code as u64).as_slice());
}

fn read_initial(r: &mut Reader<'_>) -> Result<Initial> {
    let words = r.list(|r| match r.words()?[..] {
        [at, word] => Ok((at, word)),
        _ => Err(not_ours("a word has no place")),
    })?;
    let tables = r.list(Reader::words)?;
    let memory = r.list(|r| Ok((r.u64()?, r.words()?)))?;
    let (constants, references) = (r.bytes()?.to_vec(), r.words()?);
    let trap = match r.words()?[..] {
        [] => None,
        [code] => Some(trap_code(code).ok_or_else(|| not_ours("a trap is unknown"))?),
        _ => return Err(not_ours("a trap is unknown")),
    };
    Ok(Initial { words, tables, memory, constants, references, trap })
}

fn trap_code(code: u64) -> Option<TrapCode> {
    [TrapCode::MemoryOutOfBounds, TrapCode::TableOutOfBounds].into_iter().find(|known| *known as u64 == code)
}

const TYPES: [ValType; 7] =
    [ValType::I32, ValType::I64, ValType::F32, ValType::F64, ValType::V128, ValType::FuncRef, ValType::ExternRef];

fn types(w: &mut Writer, types: &[ValType]) {
    let number = |ty: &ValType| TYPES.iter().position(|t| t == ty).unwrap_or_default() as u8;
    w.bytes(&types.iter().map(number).collect::<Vec<_>>());
}

fn read_types(r: &mut Reader<'_>) -> Result<Vec<ValType>> {
    let ty = |number: &u8| TYPES.get(*number as usize).copied().ok_or_else(|| not_ours("a type is unknown"));
    r.bytes()?.iter().map(ty).collect()
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
