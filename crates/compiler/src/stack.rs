//! The functions that led to a trap, as a core dump has them: by their numbers.

use crate::backtrace::NotedCalls;
use crate::compile::Compiled;
use gpu_run_wasm::ValType;

/// A function on the way to a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// Index in the module's function space.
    pub function: u32,
    /// Where in the function's body; 0 if that is not known.
    pub offset: u32,
}

impl Compiled {
    /// Returns the functions at a place and at the calls that led there, the innermost first. The place is an offset in
    /// the .wasm file, and its function, if that is known already.
    pub fn stack(&self, place: Option<(u32, Option<u32>)>, calls: Option<&NotedCalls>) -> Vec<StackFrame> {
        let calls = calls.map_or(&[][..], NotedCalls::places).iter().map(|offset| (*offset, None));
        let frame = |(offset, known): (u32, Option<u32>)| {
            let function = known.or_else(|| self.symbols().function_at(offset))?;
            // Code that stands for an import has no body.
            let start = self.symbols().body_start(function).unwrap_or(offset);
            Some(StackFrame { function, offset: offset.saturating_sub(start) })
        };
        place.into_iter().chain(calls).filter_map(frame).collect()
    }

    /// Returns the types of all globals, also of a program that came from the cache: they are looked up in the module.
    /// This takes as long as decoding it, once.
    pub fn types_of_globals(&self) -> &[ValType] {
        self.global_types.get_or_init(|| {
            self.decoded().map_or_else(|_| Vec::new(), |module| module.globals.iter().map(|global| global.ty).collect())
        })
    }
}
