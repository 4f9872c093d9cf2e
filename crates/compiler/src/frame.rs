//! A compiled program as bytes: what is kept of it beside its machine code.
//!
//! A program that comes from the cache is neither decoded nor translated: all that running it takes is in here. Names and debug information are not; they
//! are looked up in the module itself, should something trap.

use crate::compile::{CompileOptions, Compiled, EntryFunction, ExportedGlobal};
use crate::image::{Initial, InitialMemory};
use gpu_run_abi::TrapCode;
use gpu_run_device::code::{Reader, Writer, not_ours};
use gpu_run_device::{CODE_ALIGN, Error as DeviceError, Result};
use gpu_run_wasm::slot::{
    ExceptionPlace, GangPlace, GangSizes, MemoryPlace, Segment, SlotLayout, TablePlace, TailPlace,
};
use gpu_run_wasm::{FuncType, Memory, ValType, WasmFeatures};
use std::sync::{Arc, OnceLock};

/// The program and its machine code, in one piece.
pub(crate) fn write(compiled: &Compiled, code: &[u8]) -> Vec<u8> {
    let mut w = Writer::default();
    slots(&mut w, &compiled.slots);
    initial(&mut w, &compiled.initial);
    w.list(&compiled.memories, |w, Memory { minimum, maximum, is_64, shared, grows }| {
        let (bounded, most) = (u64::from(maximum.is_some()), maximum.unwrap_or_default());
        w.words(&[*minimum, bounded, most, u64::from(*is_64), u64::from(*shared), u64::from(*grows)]);
    });
    w.u8(u8::from(compiled.has_start));
    w.list(&compiled.entries, |w, entry| {
        w.u32(entry.part);
        w.bytes(entry.name.as_bytes());
        types(w, &entry.ty.params);
        types(w, &entry.ty.results);
    });
    w.list(&compiled.globals, |w, ExportedGlobal { part, name, index, ty }| {
        w.u32(*part);
        w.bytes(name.as_bytes());
        w.u32(*index);
        types(w, &[*ty]);
    });
    w.aligned_bytes(code, CODE_ALIGN);
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
    let memories = r.list(|r| match r.words()?[..] {
        [minimum, bounded, most, is_64, shared, grows] => {
            let maximum = (bounded != 0).then_some(most);
            Ok(Memory { minimum, maximum, is_64: is_64 != 0, shared: shared != 0, grows: grows != 0 })
        }
        _ => Err(not_ours("a memory has other limits")),
    })?;
    let has_start = r.u8()? != 0;
    let entries = r.list(|r| {
        let (part, name, params) = (r.u32()?, r.string()?, read_types(r)?);
        Ok(EntryFunction { part, name, ty: FuncType { params, results: read_types(r)? } })
    })?;
    let globals = r.list(|r| {
        let (part, name, index) = (r.u32()?, r.string()?, r.u32()?);
        let ty = read_types(r)?.first().copied().ok_or_else(|| not_ours("a global has no type"))?;
        Ok(ExportedGlobal { part, name, index, ty })
    })?;
    let code = r.aligned_bytes()?;
    r.end()?;
    let compiled = Compiled {
        wasm,
        options: options.clone(),
        features,
        ptx: String::new(),
        layout: options.layout,
        slots,
        initial,
        memories,
        has_start,
        entries,
        globals,
        global_types: Vec::new(),
        parts: Vec::new(),
        symbols: OnceLock::new(),
        timings: Vec::new(),
    };
    Ok((compiled, code))
}

fn slots(w: &mut Writer, slots: &SlotLayout) {
    let SlotLayout {
        globals,
        tables,
        memories,
        tail,
        exception,
        data,
        elements,
        arguments,
        end,
        memory,
        low,
        own,
        fixed: _, // compiled code alone asks for it
        constants,
        gang,
    } = slots;
    w.words(globals);
    w.list(tables, |w, TablePlace { at, capacity, length }| w.words(&[*at, *capacity, *length]));
    w.list(memories, |w, MemoryPlace { length, limit, base }| w.words(&[*length, *limit, *base]));
    let TailPlace { next, arguments: passed, results } = tail;
    w.words(&[*next, *passed, *results]);
    let ExceptionPlace { tag, number, values, count, kept } = exception;
    w.words(&[*tag, *number, *values, *count, *kept]);
    for segments in [data, elements] {
        w.list(segments, |w, Segment { at, length, cell }| w.words(&[*at, *length, *cell]));
    }
    w.words(&[*arguments, *end, *memory, *low, *own, *constants]);
    w.list(gang.as_slice(), |w, GangPlace { sizes, region, slot_bytes, hot, hot_stride, memory_bytes }| {
        let GangSizes { threads, groups, image_bytes, stack_bytes, bus_bytes } = *sizes;
        let sizes = [threads.into(), groups.into(), image_bytes, stack_bytes, bus_bytes];
        w.words(&sizes);
        w.words(&[*region, *slot_bytes, *hot, *hot_stride, *memory_bytes]);
    });
}

fn read_slots(r: &mut Reader<'_>) -> Result<SlotLayout> {
    let globals = r.words()?;
    let tables = r.list(|r| three(r).map(|[at, capacity, length]| TablePlace { at, capacity, length }))?;
    let memories = r.list(|r| three(r).map(|[length, limit, base]| MemoryPlace { length, limit, base }))?;
    let tail = three(r).map(|[next, arguments, results]| TailPlace { next, arguments, results })?;
    let [tag, number, values, count, kept] = r.words()?[..] else { return Err(not_ours("exceptions lie elsewhere")) };
    let exception = ExceptionPlace { tag, number, values, count, kept };
    let segment = |r: &mut Reader<'_>| three(r).map(|[at, length, cell]| Segment { at, length, cell });
    let (data, elements) = (r.list(segment)?, r.list(segment)?);
    let [arguments, end, memory, low, own, constants] = r.words()?[..] else {
        return Err(not_ours("a slot is another"));
    };
    let gang = r.list(|r| match r.words()?[..] {
        [threads, groups, image_bytes, stack_bytes, bus_bytes] => {
            let (threads, groups) = (threads as u32, groups as u32);
            let sizes = GangSizes { threads, groups, image_bytes, stack_bytes, bus_bytes };
            let [region, slot_bytes, hot, hot_stride, memory_bytes] = r.words()?[..] else {
                return Err(not_ours("a gang is another"));
            };
            Ok(GangPlace { sizes, region, slot_bytes, hot, hot_stride, memory_bytes })
        }
        _ => Err(not_ours("a gang is another")),
    })?;
    Ok(SlotLayout {
        globals,
        tables,
        memories,
        tail,
        exception,
        data,
        elements,
        arguments,
        end,
        memory,
        low,
        own,
        fixed: 0..0,
        constants,
        gang: gang.first().copied(),
    })
}

fn three(r: &mut Reader<'_>) -> Result<[u64; 3]> {
    r.words()?.try_into().map_err(|_| not_ours("three words are not three"))
}

fn initial(w: &mut Writer, initial: &Initial) {
    let Initial { words, tables, memories, constants, references, trap } = initial;
    w.list(words, |w, (at, word)| w.words(&[*at, *word]));
    w.list(tables, |w, table| w.words(table));
    w.list(memories, |w, InitialMemory { length, pieces }| {
        w.u64(*length);
        w.list(pieces, |w, (at, words)| {
            w.u64(*at);
            w.words(words);
        });
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
    let memories = r.list(|r| {
        let length = r.u64()?;
        Ok(InitialMemory { length, pieces: r.list(|r| Ok((r.u64()?, r.words()?)))? })
    })?;
    let (constants, references) = (r.bytes()?.to_vec(), r.words()?);
    let trap = match r.words()?[..] {
        [] => None,
        [code] => Some(trap_code(code).ok_or_else(|| not_ours("a trap is unknown"))?),
        _ => return Err(not_ours("a trap is unknown")),
    };
    Ok(Initial { words, tables, memories, constants, references, trap })
}

fn trap_code(code: u64) -> Option<TrapCode> {
    [TrapCode::MemoryOutOfBounds, TrapCode::TableOutOfBounds].into_iter().find(|known| *known as u64 == code)
}

const TYPES: [ValType; 9] = [
    ValType::I32,
    ValType::I64,
    ValType::F32,
    ValType::F64,
    ValType::V128,
    ValType::FuncRef,
    ValType::ExternRef,
    ValType::ExnRef,
    ValType::AnyRef,
];

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
