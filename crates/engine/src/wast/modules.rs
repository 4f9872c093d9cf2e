//! A script's modules, compiled and loaded before its first call.
//!
//! They do not depend on each other, some scripts have hundreds of them, and assembling one for a GPU takes a hundred
//! thousand times as long as a call: here it is done on all cores.

use super::{Options, Problem};
use crate::compile::{CompileOptions, Compiled, Entry};
use crate::program::Program;
use rayon::prelude::*;
use std::sync::Arc;
use wast::{WastDirective, WastExecute};

/// A module on the device, or why it is not there.
pub(super) struct Loaded {
    pub(super) program: Result<Arc<Program>, Problem>,
    /// The modules it imports from.
    pub(super) imports: Vec<String>,
}

/// For each directive its module, where it has one that is to be run.
pub(super) fn load_all(directives: &mut [WastDirective<'_>], options: &Options<'_>) -> Vec<Option<Loaded>> {
    let encoded: Vec<_> = directives.iter_mut().map(encode).collect();
    let load = |bytes: Result<Vec<u8>, String>| match bytes {
        Ok(bytes) => Loaded { program: load(&bytes, options).map(Arc::new), imports: imports(&bytes) },
        Err(message) => Loaded { program: Err(message.into()), imports: Vec::new() },
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

fn load(bytes: &[u8], options: &Options<'_>) -> Result<Program, Problem> {
    let compile = CompileOptions {
        layout: options.layout,
        sm: 75,
        entry: Entry::Exports,
        checks: crate::Checks::Exact,
        own_memory: 0,
        registers: None,
    };
    let compiled = Compiled::with_features(bytes, &compile, options.features)?;
    if let Some(inspect) = options.inspect {
        inspect(compiled.ptx())?;
    }
    Ok(Program::load(options.device.clone(), Arc::new(compiled))?)
}

fn imports(bytes: &[u8]) -> Vec<String> {
    let sections = wasmparser::Parser::new(0).parse_all(bytes).map_while(Result::ok);
    let imports = sections.filter_map(|payload| match payload {
        wasmparser::Payload::ImportSection(imports) => Some(imports.into_imports()),
        _ => None,
    });
    imports.flatten().map_while(Result::ok).map(|import| import.module.to_owned()).collect()
}
