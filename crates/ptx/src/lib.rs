//! Compiles Cranelift IR (CLIF) to PTX text.
//!
//! [`emit`] prints a whole program: a header, declarations of all functions that a kernel reaches, the function table,
//! and the functions themselves. Each function is printed on its own, so they are printed in parallel. `docs/ptx.md`
//! describes the dialect of PTX. The `cpu` device reads the text back; NVIDIA's ptxas is the judge of what it means.
//!
//! The crate has five layers. Each uses only the layers before it (`tests/layers.rs`):
//!
//! - `program`, `symbols`, `error`: the program to compile.
//! - `analysis`: everything that can be known about a function before it is printed, and the form in which each
//!   instruction is printed. Its results are plain data.
//! - `print`: turns CLIF instructions and their forms into lines of PTX, by a table.
//! - `guest`: accesses to guest memory, written with the functions of `print`.
//! - `block`, `function` and this file: the driver.
//!
//! The input is verified CLIF as `Context::optimize` leaves it. Values are scalars, except for vectors that carry four
//! words, and functions may have stack slots. Whatever this back end cannot express in PTX is an [`Error`] that names
//! the function and the instruction; no input that Cranelift's verifier accepts makes this crate panic.
//!
//! CLIF's alias regions ([`gpu_run_abi::intrinsic::region`]) tell three kinds of addresses apart:
//!
//! - `GUEST`: guest addresses. This crate checks bounds and alignment and computes the device address. The CLIF flag
//!   `aligned` means that the access is expected to be aligned.
//! - `FRAME`: device addresses of stack slots, in the thread's local memory (PTX's `.local`).
//! - All others: device addresses that are aligned and checked, in PTX's `.global` memory; a program with threads has
//!   copies of some words of a slot in `.shared` memory ([`Build::Threads`]). Where a speculative build
//!   keeps guest memory in the thread's local memory ([`Home::Local`]), addresses of `CELLS` are in `.local`, too.

mod analysis;
mod block;
mod error;
mod function;
mod guest;
mod print;
mod program;
mod symbols;

pub use error::Error;
pub(crate) use program::Atomics;
pub use program::{Build, Function, Home, Kind, Listing, Memory, Program, ReadOnly, Target};

use function::Emitted;
use guest::read_only;
use guest::slow_path::SlowPaths;
use print::{call, gang, hot, signature, step, text, wait};
use rayon::prelude::*;
use std::time::Instant;
use symbols::{Reachable, Symbols};

/// Prints a program: all its kernels and the functions they reach.
pub fn emit(program: &Program, target: &Target) -> Result<String, Error> {
    emit_until(program, target, None)
}

/// Like [`emit`], but returns [`Error::Late`] if a function's turn comes only after `until`.
pub fn emit_until(program: &Program, target: &Target, until: Option<Instant>) -> Result<String, Error> {
    let symbols = Symbols::new(program)?; // finds functions by their CLIF names
    let reachable = symbols.reachable()?; // from the kernels
    let emitted = emit_functions(&symbols, &reachable, until)?; // the functions, in parallel
    assemble(&symbols, &reachable, &emitted, target) // declarations and data, then the functions
}

fn emit_functions(symbols: &Symbols<'_>, reachable: &Reachable, until: Option<Instant>) -> Result<Vec<Emitted>, Error> {
    let emit = |&position: &usize| {
        let function = &symbols.program.functions[position];
        match until {
            Some(until) if Instant::now() >= until => Err(Error::Late(function.symbol.clone())),
            _ => function::emit(symbols, function, false),
        }
    };
    reachable.functions.par_iter().map(emit).collect()
}

/// Joins the header, the declarations, the data and the printed functions to one module.
fn assemble(
    symbols: &Symbols<'_>,
    reachable: &Reachable,
    emitted: &[Emitted],
    target: &Target,
) -> Result<String, Error> {
    let program = symbols.program;
    let slow_paths = emitted.iter().fold(SlowPaths::default(), |all, one| all.join(one.slow_paths));
    let size: usize = emitted.iter().map(|e| e.text.len() + 128).sum();
    let mut out = String::with_capacity(size + 8192);
    push_module_header(&mut out, target);
    if program.is_gang() {
        gang::declare(&mut out);
    }
    if program.is_threads() {
        step::declare(&mut out, hot::bytes(program));
        wait::declare(&mut out);
    }
    slow_paths.declare(&mut out);
    let functions = reachable.functions.iter().map(|&position| &program.functions[position]);
    for function in functions.filter(|f| f.kind == Kind::Device) {
        signature::push_header(&mut out, function)?;
        out.push_str(";\n");
    }
    if reachable.table {
        push_function_table(&mut out, symbols);
    }
    if emitted.iter().any(|function| function.reads_copy) {
        read_only::define(program.read_only(), &mut out);
    }
    slow_paths.define(&mut out, program);
    if let Some(region) = program.gang_region() {
        gang::define(&mut out, region);
    }
    if program.is_threads() {
        step::define(&mut out);
        wait::define(&mut out);
    }
    for function in emitted {
        out.push('\n');
        out.push_str(&function.text);
    }
    Ok(out)
}

/// Prints the function at `position` in the program's list, even if no kernel reaches it.
pub fn emit_function(program: &Program, position: usize) -> Result<Listing, Error> {
    let symbols = Symbols::new(program)?;
    let Some(function) = program.functions.get(position) else {
        return Err(Error::FunctionName { position, name: "nothing: there are fewer functions".to_string() });
    };
    let Emitted { text, marks, .. } = function::emit(&symbols, function, true)?;
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

/// Prints the array of code addresses for indirect calls. Code may refer to the array even if it is empty; it then gets
/// one absent entry.
fn push_function_table(out: &mut String, symbols: &Symbols<'_>) {
    let mut entries: Vec<_> = symbols.table().map(|symbol| symbol.unwrap_or("0")).collect();
    if entries.is_empty() {
        entries.push("0");
    }
    text::push_array(out, call::FUNCTION_TABLE, &entries, |out, symbol| out.push_str(symbol));
}
