//! Where a thread is, in one line: the function, and the function of the program itself that called it.

use crate::backtrace::{NotedCalls, shown};
use crate::compile::Compiled;
use crate::symbols::Frame;
use gpu_run_wasm::printable;
use std::fmt;
use std::path::{Path, PathBuf};

/// A place in a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The function of a library that the program called, if the place is in a library.
    callee: Option<Frame>,
    /// The innermost function of the program itself, if that is known.
    own: Option<Frame>,
    /// Paths in this folder are shown without it.
    folder: Option<PathBuf>,
}

impl Compiled {
    /// Returns the place at an offset in the .wasm file, if that is known, with the calls that led there.
    pub fn place(&self, offset: Option<u32>, calls: Option<&NotedCalls>, folder: Option<&Path>) -> Option<Place> {
        let calls_at = calls.map_or(&[][..], NotedCalls::places);
        let places: Vec<_> = offset.iter().chain(calls_at).map(|offset| (*offset, None)).collect();
        let frames = self.symbols().frames(&places);
        let own = frames.iter().position(|frame| !is_of_library(frame));
        let callee = match own {
            Some(own) => frames[..own].last(),
            // Functions that were inlined there say less than the one they were inlined in.
            None => Some(frames.iter().find(|frame| frame.function.is_some()).or(frames.first())?),
        };
        let folder = folder.map(Path::to_owned);
        Some(Place { callee: callee.cloned(), own: own.map(|own| frames[own].clone()), folder })
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
        if let Some(callee) = &self.callee {
            write!(f, "in {}", name(callee))?;
        }
        let Some(own) = &self.own else { return Ok(()) };
        write!(f, "{}{}", if self.callee.is_some() { ", called by " } else { "in " }, name(own))?;
        match &own.source {
            Some(source) => write!(f, " at {}", shown(source, self.folder.as_deref())),
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
