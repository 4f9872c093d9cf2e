//! One function as it passes through the compiler, for people to read.

use crate::compile::{CompileOptions, default_features, demangle, entries, ptx_program};
use crate::error::Error;
use gpu_run_ptx as ptx;
use gpu_run_wasm::{self as wasm, FunctionKind};

#[derive(Clone, Debug)]
pub struct Explained {
    pub index: u32,
    /// Demangled, where there is a name.
    pub name: String,
    /// (offset in the file, instruction text)
    pub wasm: Vec<(u32, String)>,
    /// Optimised CLIF, as text; lines carry `@offset` source locations.
    pub clif: String,
    pub ptx: String,
}

/// Explains the functions whose name contains, or whose index is, `filter` (all, if `None`).
pub fn explain(bytes: &[u8], options: &CompileOptions, filter: Option<&str>) -> Result<Vec<Explained>, Error> {
    let module = wasm::decode(bytes, default_features())?;
    let functions = entries(&module, &options.entry)?.into_iter().map(|(index, _)| index).collect();
    let program = wasm::translate(&module, &wasm::Options { layout: options.layout, entries: functions, optimize: true })?;
    let shown: Vec<_> = program
        .functions
        .iter()
        .enumerate()
        .filter(|(_, f)| f.kind == FunctionKind::Wasm && matches(f, filter))
        .map(|(i, f)| (i, f.index, demangle(&f.name), f.clif.display().to_string()))
        .collect();
    let program = ptx_program(program, options.layout);
    let explain = |(i, index, name, clif): (usize, u32, String, String)| {
        let wasm = module.operators(index).into_iter().map(|(at, op)| (at as u32, format!("{op:?}"))).collect();
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
