//! Calls, branches, memory and what is refused.

#![allow(clippy::unwrap_used)]

mod branches;
mod calls;
mod frames;
mod memory;
mod refusals;
#[path = "../support/mod.rs"]
mod support;

use gpu_run_device::{Arg, Error};
use support::{HEADER, buffer_of, grid, load, run, strict, words};

/// Runs a kernel with one thread on `cells` of memory, passed as `p0`, and gives what is in them afterwards.
fn on_memory(ptx: &str, cells: &[u64]) -> Vec<u64> {
    let device = strict();
    let module = load(&device, ptx);
    let buffer = buffer_of(&device, cells);
    run(&module, "k", grid(1, 1), &[Arg::U64(buffer.address())]).unwrap();
    words(&buffer, cells.len())
}

/// A kernel around statements that find the memory's address in `%d0`.
fn kernel(statements: &str) -> String {
    format!(
        ".visible .entry k (.param .u64 p0)
{{
    .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .f32 %f<9>; .reg .f64 %g<9>; .reg .pred %p<9>;
    ld.param.u64 %d0, [p0];
    {statements}
    ret;
}}
"
    )
}

fn refused(body: &str) -> (usize, String, String) {
    match strict().load(&format!("{HEADER}{body}")) {
        Err(Error::Ptx { line, message, text }) => (line, message, text),
        other => panic!("{other:?}"),
    }
}
