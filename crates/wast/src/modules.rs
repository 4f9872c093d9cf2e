//! A script's modules, compiled and loaded before its first call.
//!
//! Most modules do not depend on each other, some scripts have hundreds, and assembling one for a GPU takes a hundred
//! thousand times as long as a call: so this is done on all cores. It is also done for modules that import from others
//! without state. If the exporting modules have state, or a module imports a memory or a table of `spectest`, the
//! imports are known only when the script reaches the module.

use super::{Options, Problem, spectest};
use gpu_run_compiler::Error;
use gpu_run_compiler::{Build, CompileOptions, Compiled, Entry};
use gpu_run_run::{Prepared, Settings};
use gpu_run_wasm::Error::{ImportType, UnknownImport};
use rayon::prelude::*;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use wast::{WastDirective, WastExecute};

/// A module of the script.
#[derive(Clone)]
pub(super) struct Loaded {
    pub(super) wasm: Arc<Vec<u8>>,
    /// The program on the device, or why there is none; `None` if it depends on what runs before.
    pub(super) program: Option<Result<Arc<Prepared>, Problem>>,
}

/// A module before it is compiled, with the registered modules that it imports from at its place in the script.
struct Encoded {
    wasm: Arc<Vec<u8>>,
    exporters: Vec<(String, Arc<Vec<u8>>)>,
}

/// Compiles and loads the module of each directive that has one to run.
pub(super) fn load_all(
    directives: &mut [WastDirective<'_>],
    options: &Options<'_>,
    settings: &Settings,
) -> Vec<Option<Loaded>> {
    let encoded = encode_all(directives);
    let load = |encoded: Result<Encoded, String>| match encoded {
        Ok(Encoded { wasm, exporters }) => {
            let program = load(&wasm, &exporters, options, settings).transpose();
            Loaded { wasm, program }
        }
        Err(message) => Loaded { wasm: Arc::default(), program: Some(Err(message.into())) },
    };
    encoded.into_par_iter().with_max_len(1).map(|module| module.map(load)).collect()
}

/// Encodes the modules of a script, each with the modules registered before it.
fn encode_all(directives: &mut [WastDirective<'_>]) -> Vec<Option<Result<Encoded, String>>> {
    let mut registered: HashMap<String, Arc<Vec<u8>>> = HashMap::new();
    // By name; `None` is the last module.
    let mut instances: HashMap<Option<String>, Arc<Vec<u8>>> = HashMap::new();
    let mut all = Vec::new();
    for directive in directives {
        let encoded = encode(directive).map(|bytes| {
            bytes.map(|bytes| {
                let names: BTreeSet<String> = imports(&bytes).into_iter().map(|(module, _)| module).collect();
                let exporters =
                    names.into_iter().filter_map(|name| Some((name.clone(), registered.get(&name)?.clone())));
                Encoded { exporters: exporters.collect(), wasm: Arc::new(bytes) }
            })
        });
        match (directive, &encoded) {
            (WastDirective::Module(module), Some(Ok(encoded))) => {
                instances.insert(module.name().map(|id| id.name().to_owned()), encoded.wasm.clone());
                instances.insert(None, encoded.wasm.clone());
            }
            (WastDirective::Register { name, module, .. }, _) => {
                if let Some(wasm) = instances.get(&module.map(|id| id.name().to_owned())) {
                    registered.insert((*name).to_owned(), wasm.clone());
                }
            }
            _ => {}
        }
        all.push(encoded);
    }
    all
}

/// Encodes the module that a directive runs.
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
    CompileOptions::new(Build::Exact(options.layout), Entry::Exports)
}

fn load(
    wasm: &Arc<Vec<u8>>,
    exporters: &[(String, Arc<Vec<u8>>)],
    options: &Options<'_>,
    settings: &Settings,
) -> Result<Option<Arc<Prepared>>, Problem> {
    if spectest::is_among(&imports(wasm)) {
        return Ok(None);
    }
    let exporters: Vec<_> = exporters.iter().map(|(name, wasm)| (name.as_str(), wasm.clone())).collect();
    let inspect = |compiled: &Compiled| options.inspect.map_or(Ok(()), |inspect| inspect(compiled.ptx()));
    match Prepared::new(settings, wasm.clone(), &exporters, inspect) {
        // The exporters are only a guess here; the real link may succeed.
        Err(Error::Module(UnknownImport { .. } | ImportType { .. })) => Ok(None),
        made => Ok(made?.map(Arc::new)),
    }
}

/// Returns a module's imports as (module, name).
pub(super) fn imports(bytes: &[u8]) -> BTreeSet<(String, String)> {
    let sections = wasmparser::Parser::new(0).parse_all(bytes).map_while(Result::ok);
    let imports = sections.filter_map(|payload| match payload {
        wasmparser::Payload::ImportSection(imports) => Some(imports.into_imports()),
        _ => None,
    });
    imports.flatten().map_while(Result::ok).map(|import| (import.module.to_owned(), import.name.to_owned())).collect()
}
