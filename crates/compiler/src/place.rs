//! Where a thread is, in one line: the function, and the function of the program itself that called it.

use crate::backtrace::{NotedCalls, shown};
use crate::compile::Compiled;
use crate::symbols::Frame;
use gpu_run_wasm::printable;
use std::fmt;
use std::sync::Arc;

/// A place in a program, looked up in the module when it is printed: that may take a while.
#[derive(Clone)]
pub struct Place {
    compiled: Arc<Compiled>,
    /// Offset in the .wasm file, if that is known.
    offset: Option<u32>,
    /// The calls that led there, if these are noted.
    calls: Option<NotedCalls>,
}

impl Compiled {
    /// Returns the place at an offset in the .wasm file, or where the last of these calls leads to.
    pub fn place(self: &Arc<Self>, offset: Option<u32>, calls: Option<NotedCalls>) -> Option<Place> {
        let is_known = offset.is_some() || calls.as_ref().is_some_and(|calls| !calls.places().is_empty());
        is_known.then(|| Place { compiled: self.clone(), offset, calls })
    }
}

impl Place {
    /// Returns the function of a library that the program called, if the place is in a library, and the innermost function
    /// of the program itself, if that is known.
    fn frames(&self) -> (Option<Frame>, Option<Frame>) {
        let calls = self.calls.as_ref().map_or(&[][..], NotedCalls::places);
        let places: Vec<_> = self.offset.iter().chain(calls).map(|offset| (*offset, None)).collect();
        let frames = self.compiled.symbols().frames(&places);
        let own = frames.iter().position(|frame| !is_of_library(frame));
        let callee = match own {
            Some(own) => frames[..own].last(),
            // Functions that were inlined there say less than the one they were inlined in.
            None => frames.iter().find(|frame| frame.function.is_some()).or(frames.first()),
        };
        (callee.cloned(), own.map(|own| frames[own].clone()))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        (self.offset, &self.calls) == (other.offset, &other.calls)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("offset", &self.offset).field("calls", &self.calls).finish_non_exhaustive()
    }
}

/// Crates and prefixes of functions that programs do not write themselves: std's, and those of the C library below it.
const LIBRARIES: [&str; 8] = ["std::", "core::", "alloc::", "wasi::", "libc::", "__", "pthread_", "dlmalloc::"];
/// Functions of the C library that wait, and those that start a program or a thread.
const C_FUNCTIONS: [&str; 10] = [
    "nanosleep",
    "clock_nanosleep",
    "usleep",
    "sleep",
    "sched_yield",
    "poll",
    "read",
    "write",
    "_start",
    "wasi_thread_start",
];

fn is_of_library(frame: &Frame) -> bool {
    let Some(name) = &frame.name else { return false };
    // `<alloc::sync::Arc<T> as …>::drop` is a function of the library, too.
    let path = name.trim_start_matches(['<', '&', '*', '[', '(']);
    LIBRARIES.iter().any(|library| path.starts_with(library)) || C_FUNCTIONS.contains(&path)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |frame: &Frame| match (&frame.name, frame.function) {
            (Some(name), _) => printable::name(name).into_owned(),
            (None, Some(function)) => format!("function {function}"),
            (None, None) => "an unknown function".to_owned(),
        };
        let (callee, own) = self.frames();
        if let Some(callee) = &callee {
            write!(f, "in {}", name(callee))?;
        }
        let Some(own) = &own else { return Ok(()) };
        write!(f, "{}{}", if callee.is_some() { ", called by " } else { "in " }, name(own))?;
        match &own.source {
            // Paths in the present folder are shown without it.
            Some(source) => write!(f, " at {}", shown(source, std::env::current_dir().ok().as_deref())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_libraries_are_told_from_the_programs_own() {
        let is =
            |name: &str| is_of_library(&Frame { function: None, name: Some(name.into()), offset: 0, source: None });
        for name in ["std::thread::sleep", "<alloc::sync::Arc<T> as core::ops::Drop>::drop", "__wait", "pthread_join"] {
            assert!(is(name), "{name}");
        }
        for name in ["app::main", "<app::Lock as core::ops::Drop>::drop", "stdio", "main", "work"] {
            assert!(!is(name), "{name}");
        }
    }
}
