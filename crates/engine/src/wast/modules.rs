//! A script's modules, compiled and loaded before its first call.
//!
//! Most do not depend on each other, some scripts have hundreds of them, and assembling one for a GPU takes a hundred
//! thousand times as long as a call: here it is done on all cores. Those that import from others are compiled when their turn comes.

use super::{Options, Problem};
use crate::compile::{CompileOptions, Compiled, Entry};
use crate::program::Program;
use rayon::prelude::*;
use std::sync::Arc;
use wast::{WastDirective, WastExecute};

/// What scripts import from that is no instance of theirs.
const HOST: [&str; 2] = ["spectest", "wasi_snapshot_preview1"];

/// A module of the script.
#[derive(Clone)]
pub(super) struct Loaded {
    pub(super) wasm: Arc<Vec<u8>>,
    /// The module on the device, or why it is not there; `None` if it is to be linked to others.
    pub(super) program: Option<Result<Arc<Program>, Problem>>,
}

/// For each directive its module, where it has one that is to be run.
pub(super) fn load_all(directives: &mut [WastDirective<'_>], options: &Options<'_>) -> Vec<Option<Loaded>> {
    let encoded: Vec<_> = directives.iter_mut().map(encode).collect();
    let load = |bytes: Result<Vec<u8>, String>| match bytes {
        Ok(bytes) => {
            let program = is_alone(&bytes).then(|| load(&bytes, options).map(Arc::new));
            Loaded { wasm: Arc::new(bytes), program }
        }
        Err(message) => Loaded { wasm: Arc::default(), program: Some(Err(message.into())) },
    };
    encoded.into_par_iter().with_max_len(1).map(|bytes| bytes.map(load)).collect()
}

/// The bytes of the module a directive runs.
fn encode(directive: &mut WastDirective<'_>) -> Option<Result<Vec<u8>, String>> {
    let bytes = match directive {
        WastDirective::Module(module) | WastDirective::ModuleDefinition(module) => module.encode(),
        WastDirective::AssertTrap { exec: WastExecute::Wat(module), .. }
        | WastDirective::AssertReturn { exec: WastExecute::Wat(module), .. } => module.encode(),
        _ => return None,
    };
    Some(bytes.map_err(|error| error.to_string()))
}

pub(super) fn compile_options(options: &Options<'_>) -> CompileOptions {
    CompileOptions {
        layout: options.layout,
        sm: 75,
        entry: Entry::Exports,
        checks: crate::Checks::Exact,
        registers: None,
    }
}

fn load(bytes: &[u8], options: &Options<'_>) -> Result<Program, Problem> {
    let compiled = Compiled::with_features(bytes, &compile_options(options), options.features)?;
    if let Some(inspect) = options.inspect {
        inspect(compiled.ptx())?;
    }
    Ok(Program::load(options.device.clone(), Arc::new(compiled))?)
}

/// Whether it imports nothing, or from the host alone.
fn is_alone(bytes: &[u8]) -> bool {
    let sections = wasmparser::Parser::new(0).parse_all(bytes).map_while(Result::ok);
    let imports = sections.filter_map(|payload| match payload {
        wasmparser::Payload::ImportSection(imports) => Some(imports.into_imports()),
        _ => None,
    });
    imports.flatten().map_while(Result::ok).all(|import| HOST.contains(&import.module))
}
