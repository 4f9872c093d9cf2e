//! One function as it passes through the compiler, for people to read.

use crate::compile::{CompileOptions, default_features, demangle, entries, ptx_program};
use crate::error::Error;
use gpu_run_ptx as ptx;
use gpu_run_wasm::{self as wasm, FunctionKind};
use wasmparser::Operator;

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
    let program = wasm::translate(
        &module,
        &wasm::Options {
            until: None,
            layout: options.layout,
            entries: functions,
            trims: false,
            own_memory: 0,
            shape: options.shape,
            optimize: true,
        },
    )?;
    let shown: Vec<_> = program
        .functions
        .iter()
        .enumerate()
        .filter(|(_, f)| f.kind == FunctionKind::Wasm && matches(f, filter))
        .map(|(i, f)| (i, f.index, demangle(&f.name), f.clif.display().to_string()))
        .collect();
    let program = ptx_program(program, options);
    let explain = |(i, index, name, clif): (usize, u32, String, String)| {
        let wasm = module.operators(index).into_iter().map(|(at, op)| (at as u32, text(&op))).collect();
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

/// An operator as the text format writes it, its immediates as plain numbers.
fn text(op: &Operator<'_>) -> String {
    macro_rules! names {
        ($( @$proposal:ident $op:ident $({ $($arg:ident: $argty:ty),* })? => $visit:ident ($($ann:tt)*) )*) => {
            match op { $(Operator::$op { .. } => stringify!($visit),)* _ => "" }
        };
    }
    let name = wasmparser::for_each_operator!(names).trim_start_matches("visit_");
    const GROUPS: [&str; 12] =
        ["i32", "i64", "f32", "f64", "v128", "local", "global", "memory", "table", "data", "elem", "ref"];
    let mut line = match name.split_once('_') {
        Some((group, rest)) if GROUPS.contains(&group) => format!("{group}.{rest}"),
        _ => name.to_owned(),
    };
    // `Debug` gives the immediates as `Name { field: value, … }`.
    let debug = format!("{op:?}");
    if let Some((_, fields)) = debug.split_once(" { ") {
        let fields = fields.trim_end_matches(" }");
        let plain: Vec<_> = fields.split(", ").map(|f| f.split_once(": ").map_or(f, |(_, value)| value)).collect();
        line = format!("{line} {}", plain.join(" "));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{Operator, text};

    #[test]
    fn operators_read_as_in_the_text_format() {
        assert_eq!(text(&Operator::I32Add), "i32.add");
        assert_eq!(text(&Operator::GlobalGet { global_index: 3 }), "global.get 3");
        assert_eq!(text(&Operator::BrIf { relative_depth: 1 }), "br_if 1");
        assert_eq!(text(&Operator::CallIndirect { type_index: 4, table_index: 0 }), "call_indirect 4 0");
    }
}
