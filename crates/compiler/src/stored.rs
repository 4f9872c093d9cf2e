//! A compiled program as bytes: its machine code, and everything else that running it needs.
//!
//! A program that comes from the cache is neither decoded nor translated. Names and debug information are not stored:
//! they are looked up in the module itself when something traps.

use crate::compile::{CompileOptions, Compiled, EntryFunction, ExportedGlobal};
use crate::image::Initial;
use gpu_run_device::code::{pack, unpack};
use gpu_run_device::{CODE_ALIGN, Result};
use gpu_run_wasm::slot::SlotLayout;
use gpu_run_wasm::{Memory, WasmFeatures};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// What is stored beside the code.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    slots: Cow<'a, SlotLayout>,
    initial: Cow<'a, Initial>,
    memories: Cow<'a, [Memory]>,
    has_start: bool,
    asks_device: bool,
    entries: Cow<'a, [EntryFunction]>,
    globals: Cow<'a, [ExportedGlobal]>,
}

/// Returns the program and its machine code as one piece.
pub(crate) fn write(compiled: &Compiled, code: &[u8]) -> Result<Vec<u8>> {
    let stored = Stored {
        slots: Cow::Borrowed(&compiled.slots),
        initial: Cow::Borrowed(&compiled.initial),
        memories: Cow::Borrowed(&compiled.memories),
        has_start: compiled.has_start,
        asks_device: compiled.asks_device,
        entries: Cow::Borrowed(&compiled.entries),
        globals: Cow::Borrowed(&compiled.globals),
    };
    pack(&stored, code, CODE_ALIGN)
}

/// Reads what [`write`] wrote for this module; returns the program and its machine code.
pub(crate) fn read<'a>(
    bytes: &'a [u8],
    wasm: Arc<Vec<u8>>,
    options: &CompileOptions,
    features: WasmFeatures,
) -> Result<(Compiled, &'a [u8])> {
    let (stored, code) = unpack::<Stored<'_>>(bytes, CODE_ALIGN)?;
    let compiled = Compiled {
        wasm,
        options: options.clone(),
        features,
        ptx: String::new(),
        slots: stored.slots.into_owned(),
        initial: stored.initial.into_owned(),
        memories: stored.memories.into_owned(),
        has_start: stored.has_start,
        asks_device: stored.asks_device,
        entries: stored.entries.into_owned(),
        globals: stored.globals.into_owned(),
        global_types: OnceLock::new(),
        parts: Vec::new(),
        symbols: OnceLock::new(),
        timings: Vec::new(),
    };
    Ok((compiled, code))
}

/// Serializes words as bytes, for fields with many of them: they are copied in one piece.
pub(crate) mod words {
    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};
    use std::fmt;

    pub(crate) fn serialize<S: Serializer>(words: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytemuck::cast_slice(words))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
        struct Words;
        impl Visitor<'_> for Words {
            type Value = Vec<u64>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("whole words")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u64>, E> {
                let (words, rest) = bytes.as_chunks();
                match rest.is_empty() {
                    true => Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect()),
                    false => Err(E::invalid_length(bytes.len(), &self)),
                }
            }
        }
        deserializer.deserialize_bytes(Words)
    }
}

#[cfg(test)]
#[path = "stored_tests.rs"]
mod tests;
