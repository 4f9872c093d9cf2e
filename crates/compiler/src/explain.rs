//! Shows a function at each stage of the compiler, for people to read.

use crate::compile::{CompileOptions, chosen_entries, default_features, demangle, ptx_program};
use crate::error::Error;
use crate::limit;
use gpu_run_ptx as ptx;
use gpu_run_wasm::{self as wasm, FunctionKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub struct Explained {
    pub index: u32,
    /// The function's name, demangled; `function N` if it has none.
    pub name: String,
    /// (offset in the file, a line of the text format)
    pub wasm: Vec<(usize, String)>,
    /// Optimised CLIF, as text; lines carry `@offset` source locations.
    pub clif: String,
    pub ptx: String,
}

/// Explains the functions whose name contains `filter` or whose index is `filter`; all functions if it is `None`.
pub fn explain(bytes: &[u8], options: &CompileOptions, filter: Option<&str>) -> Result<Vec<Explained>, Error> {
    explain_until(bytes, options, filter, None)
}

/// Like [`explain`], within this time. `name` is the module's name in errors.
pub fn explain_within(
    name: &str,
    bytes: Arc<Vec<u8>>,
    options: &CompileOptions,
    filter: Option<&str>,
    limit: Duration,
) -> Result<Vec<Explained>, Error> {
    let (options, filter) = (options.clone(), filter.map(str::to_owned));
    limit::within(name, Some(limit), move |until| explain_until(&bytes, &options, filter.as_deref(), until))
}

fn explain_until(
    bytes: &[u8],
    options: &CompileOptions,
    filter: Option<&str>,
    until: Option<Instant>,
) -> Result<Vec<Explained>, Error> {
    let mut module = wasm::decode(bytes, default_features(), &options.embedder)?;
    let functions = chosen_entries(&mut module, options)?.into_iter().map(|(index, _)| index).collect();
    let program = wasm::translate(&module, &wasm::Options { until, ..options.translation(functions) })?;
    let shown: Vec<_> = program
        .functions
        .iter()
        .enumerate()
        .filter(|(_, f)| f.kind == FunctionKind::Wasm && matches(f, filter))
        .map(|(i, f)| (i, f.index, demangle(&f.name), f.clif.display().to_string()))
        .collect();
    let program = ptx_program(program, options);
    let lines = lines(bytes)?;
    let explain = |(i, index, name, clif): (usize, u32, String, String)| {
        let wasm = lines.range(module.body_range(index)).map(|(offset, line)| (*offset, line.clone())).collect();
        Ok(Explained { index, name, wasm, clif, ptx: ptx::emit_function(&program, i)?.text })
    };
    shown.into_iter().map(explain).collect()
}

fn matches(function: &wasm::Function, filter: Option<&str>) -> bool {
    filter.is_none_or(|wanted| {
        let name = demangle(&function.name);
        wanted.parse() == Ok(function.index) || name.contains(wanted) || function.name.contains(wanted)
    })
}

/// Returns the module in the text format: each line under the file offset of what it shows.
fn lines(bytes: &[u8]) -> Result<BTreeMap<usize, String>, Error> {
    const INDENT: &str = "  ";
    let mut text = String::new();
    let lines = wasmprinter::Config::new()
        .indent_text(INDENT)
        .offsets_and_lines(bytes, &mut text)
        .map_err(|error| Error::Internal(format!("the module cannot be printed: {error}")))?;
    // All lines are indented once, by the module's own parentheses.
    let inner = |line: &str| line.strip_prefix(INDENT).unwrap_or(line).trim_end().to_owned();
    Ok(lines.filter_map(|(offset, line)| Some((offset?, inner(line)))).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in a test, that is an assertion
mod tests {
    use super::*;
    use crate::compile::Entry;
    use gpu_run_abi::{Build, Layout};

    fn explained(build: Build) -> Explained {
        let bytes = wat::parse_str(include_str!("../tests/wat/explained.wat")).unwrap();
        let options = CompileOptions::new(build, Entry::Start);
        explain(&bytes, &options, None).unwrap().remove(0)
    }

    #[test]
    fn wasm_is_printed_as_wasmprinter_does() {
        let wasm = explained(Build::Exact(Layout::Linear)).wasm;
        let text: Vec<&str> = wasm.iter().map(|(_, line)| line.as_str()).collect();
        assert_eq!(text, include_str!("../tests/wat/explained.printed").lines().collect::<Vec<_>>());
        assert!(wasm.windows(2).all(|pair| pair[0].0 < pair[1].0), "{wasm:?}");
    }

    #[test]
    fn the_build_that_map_runs_is_another_one() {
        let [run, map] =
            [Build::Exact(Layout::Linear), Build::speculative(Layout::Interleaved, 256 << 10)].map(explained);
        assert_eq!(run.wasm, map.wasm);
        assert_ne!(run.ptx, map.ptx);
        // A mapped build keeps the memory in the thread's local memory.
        assert!(map.ptx.contains(".local.u32") && !run.ptx.contains(".local.u32"), "{}", map.ptx);
    }
}
