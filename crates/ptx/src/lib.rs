//! Cranelift IR to PTX text: the only place that knows PTX's syntax.
//!
//! [`emit`] prints a whole program: a header, the declarations of all functions that a kernel reaches, the function
//! table, and the functions, each printed on its own ([`function`]) and so in parallel. A CLIF value is a virtual
//! register, an instruction a row of [`table`], a block a label. The dialect is described in `docs/ptx.md`; the `cpu`
//! device reads it back, NVIDIA's ptxas is the judge of what it means.
//!
//! The input is verified CLIF as `Context::optimize` leaves it, without stack slots, and scalar but for vectors that carry four words ([`vector`]). Anything this back end has no
//! words for is an [`Error`] that names the function and the instruction; there is no panic on any input that Cranelift's
//! verifier accepts.
//!
//! Accesses in the alias region [`gpu_run_abi::intrinsic::region::GUEST`] are the guest's, and their addresses are the guest's own: bounds, alignment and
//! the device's address are this crate's business ([`guest`]). The CLIF flag `aligned` means that it is expected to be. All other addresses are the
//! device's, aligned and checked.

mod analysis;
mod error;
mod function;
mod guest;
mod print;
mod program;
mod symbols;

pub use error::Error;

pub use program::{Atomics, Checks, Fixed, Function, Kind, Listing, Memory, Program, Target};

use guest::slow_path::Cold;
use print::{call, gang, text};
use rayon::prelude::*;
use std::time::Instant;
use symbols::Symbols;

/// The name of the address table in PTX.
const FUNCTION_TABLE: &str = "function_table";

/// Prints a program: all its kernels and what they reach.
pub fn emit(program: &Program, target: &Target) -> Result<String, Error> {
    emit_until(program, target, None)
}

/// The same, which has to end by `until`.
pub fn emit_until(program: &Program, target: &Target, until: Option<Instant>) -> Result<String, Error> {
    let symbols = Symbols::new(program)?;
    let reachable = symbols.reachable()?;
    let functions = || reachable.functions.iter().map(|&position| &program.functions[position]);
    let emitted: Vec<function::Emitted> = reachable
        .functions
        .par_iter()
        .map(|&position| {
            let function = &program.functions[position];
            match until {
                Some(until) if Instant::now() >= until => Err(Error::Late(function.symbol.clone())),
                _ => function::emit(&symbols, function, false),
            }
        })
        .collect::<Result<_, _>>()?;
    let cold = emitted.iter().fold(Cold::default(), |all, one| all.join(one.cold));

    let size: usize = emitted.iter().map(|e| e.text.len() + 128).sum();
    let mut out = String::with_capacity(size + 8192);
    push_module_header(&mut out, target);
    if program.memory.region > 0 {
        gang::declare(&mut out);
    }
    cold.declare(&mut out);
    for function in functions().filter(|f| f.kind == Kind::Device) {
        call::push_header(&mut out, function)?;
        out.push_str(";\n");
    }
    if reachable.table {
        push_function_table(&mut out, &symbols);
    }
    if emitted.iter().any(|function| function.reads_fixed) {
        program.fixed.define(&mut out);
    }
    cold.define(&mut out, program.layout, program.memory);
    for function in &emitted {
        out.push('\n');
        out.push_str(&function.text);
    }
    Ok(out)
}

/// Prints the function at `position` of the program's list, whether a kernel reaches it or not.
pub fn emit_function(program: &Program, position: usize) -> Result<Listing, Error> {
    let symbols = Symbols::new(program)?;
    let Some(function) = program.functions.get(position) else {
        return Err(Error::FunctionName { position, name: "nothing: there are fewer functions".to_string() });
    };
    let function::Emitted { text, marks, .. } = function::emit(&symbols, function, true)?;
    let mut sources = Vec::with_capacity(marks.len());
    let (mut line, mut from) = (0, 0);
    for (at, offset) in marks {
        line += text[from..at].bytes().filter(|&b| b == b'\n').count();
        from = at;
        sources.push((line, offset));
    }
    Ok(Listing { text, sources })
}

fn push_module_header(out: &mut String, target: &Target) {
    out.push_str(".version ");
    text::push_unsigned(out, u64::from(target.version.0));
    out.push('.');
    text::push_unsigned(out, u64::from(target.version.1));
    out.push_str("\n.target sm_");
    text::push_unsigned(out, u64::from(target.sm));
    out.push_str("\n.address_size 64\n\n");
}

/// Code addresses for indirect calls. An empty table still has a name that code refers to: it gets one absent entry.
fn push_function_table(out: &mut String, symbols: &Symbols<'_>) {
    let mut entries: Vec<_> = symbols.table().map(|symbol| symbol.unwrap_or("0")).collect();
    if entries.is_empty() {
        entries.push("0");
    }
    text::push_array(out, FUNCTION_TABLE, &entries, |out, symbol| out.push_str(symbol));
}

fn push_comment(out: &mut String, comment: &str) {
    for line in comment.lines() {
        out.push_str("// ");
        out.push_str(line);
        out.push('\n');
    }
}
