//! Modules from wasm-smith: valid ones of every shape.

use crate::random::Random;
use arbitrary::Unstructured;
use wasm_smith::{Config, Module};
use wasmparser::{Operator, Parser, Payload, Validator, WasmFeatures};

/// Loop iterations and calls, before the module traps.
const FUEL: u32 = 300;

/// How often a module with typed function references is asked for: wasm-smith knows them with a garbage collector only, and what uses that is thrown away.
const ATTEMPTS: u64 = 40;

/// What a module is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    canonicalize_nans: bool,
    threads: bool,
    typed_references: bool,
}

/// The module of a seed; `None` where wasm-smith made none.
pub(crate) fn module(seed: u64) -> Option<Vec<u8>> {
    let mut random = Random::new(!seed);
    let threads = crate::ATOMICS && random.one_in(3);
    let wanted = Wanted { canonicalize_nans: false, threads, typed_references: false };
    if random.one_in(3) {
        let wanted = Wanted { typed_references: true, ..wanted };
        let seeds = (0..ATTEMPTS).map(|attempt| seed ^ (attempt + 1) << 48);
        if let Some(module) =
            seeds.filter_map(|seed| comparable(seed, wanted)).find(|module| takes_no_collector(module))
        {
            return Some(module);
        }
    }
    comparable(seed, wanted)
}

/// A module that does the same under any host.
fn comparable(seed: u64, mut wanted: Wanted) -> Option<Vec<u8>> {
    let mut module = generate(seed, wanted)?;
    // Whoever waits for a time that was made up at random waits for ever; `atomics.rs` has these two.
    let waits =
        |op: &Operator<'_>| matches!(op, Operator::MemoryAtomicWait32 { .. } | Operator::MemoryAtomicWait64 { .. });
    if wanted.threads && uses(&module, waits) {
        wanted.threads = false;
        module = generate(seed, wanted)?;
    }
    // Wasmtime leaves the NaNs of these two as the machine makes them: let the module itself canonicalise.
    let promotes = |op: &Operator<'_>| {
        use Operator::{F32DemoteF64, F32x4DemoteF64x2Zero, F64PromoteF32, F64x2PromoteLowF32x4};
        matches!(op, F64PromoteF32 | F32DemoteF64 | F32x4DemoteF64x2Zero | F64x2PromoteLowF32x4)
    };
    if uses(&module, promotes) {
        module = generate(seed, Wanted { canonicalize_nans: true, ..wanted })?;
    }
    Some(module)
}

fn generate(seed: u64, wanted: Wanted) -> Option<Vec<u8>> {
    let mut random = Random::new(seed);
    let config = config(&mut random, wanted);
    let length = 1000 + random.below(12_000);
    let bytes = random.bytes(length);
    let mut module = Module::new(config, &mut Unstructured::new(&bytes)).ok()?;
    module.ensure_termination(FUEL).ok()?;
    Some(module.to_bytes())
}

fn takes_no_collector(module: &[u8]) -> bool {
    let features = (WasmFeatures::WASM3 | WasmFeatures::THREADS) - WasmFeatures::GC;
    Validator::new_with_features(features).validate_all(module).is_ok()
}

/// What WebAssembly 3.0 has, less garbage collection; sizes that keep a run short.
fn config(random: &mut Random, wanted: Wanted) -> Config {
    let reference_types = random.one_in(3) || wanted.typed_references;
    // Most random addresses and divisors trap: half of the modules avoid them, so that something is computed.
    let disallow_traps = random.one_in(2);
    // A segment at a random place of a memory or a table is mostly outside of it, and the module then does nothing at all.
    let segments = if disallow_traps || random.one_in(8) { 4 } else { 0 };
    Config {
        canonicalize_nans: wanted.canonicalize_nans,
        reference_types_enabled: reference_types,
        disallow_traps,
        export_everything: true,
        allow_start_export: random.one_in(8),
        bulk_memory_enabled: true,
        multi_value_enabled: true,
        saturating_float_to_int_enabled: true,
        sign_extension_ops_enabled: true,
        custom_page_sizes_enabled: false,
        exceptions_enabled: reference_types && random.one_in(2),
        extended_const_enabled: random.one_in(2),
        gc_enabled: wanted.typed_references,
        memory64_enabled: random.one_in(4),
        relaxed_simd_enabled: true,
        simd_enabled: true,
        tail_call_enabled: random.one_in(3),
        threads_enabled: wanted.threads,
        wide_arithmetic_enabled: false,
        min_funcs: 2,
        max_funcs: 6,
        max_instructions: 40 + random.below(300),
        max_imports: 0,
        min_memories: u32::from(!random.one_in(4)),
        max_memories: if random.one_in(4) { 3 } else { 1 },
        max_memory32_bytes: 3 << 16,
        max_memory64_bytes: 3 << 16,
        memory_max_size_required: true,
        min_tables: u32::from(random.one_in(2)),
        max_tables: if reference_types { 3 } else { 1 },
        max_table_elements: 40,
        table_max_size_required: true,
        max_element_segments: segments,
        max_elements: 8,
        max_data_segments: segments,
        max_globals: 8,
        max_tags: 4,
        // A module without a type has no function.
        min_types: 3,
        max_types: if wanted.typed_references { 5 } else { 12 },
        ..Config::default()
    }
}

fn uses(module: &[u8], is: impl Fn(&Operator<'_>) -> bool) -> bool {
    let bodies = Parser::new(0).parse_all(module).filter_map(|payload| match payload {
        Ok(Payload::CodeSectionEntry(body)) => body.get_operators_reader().ok(),
        _ => None,
    });
    bodies.flat_map(|operators| operators.into_iter()).any(|op| op.is_ok_and(|op| is(&op)))
}
