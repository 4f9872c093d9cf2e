//! What a program is told when it asks for its own calls: functions, files and lines.

use crate::backtrace::NotedCalls;
use crate::compile::Compiled;
use crate::dwarf::{Source, computed};
use std::time::Duration;

/// A function at a place in a program. What is not known is empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacedFunction {
    /// Demangled.
    pub name: String,
    pub file: String,
    pub line: u32,
    pub column: u32,
}

impl Compiled {
    /// Returns the places of the calls, the innermost first, without those of std's `Backtrace` itself.
    pub fn own_calls<'a>(&self, calls: &'a NotedCalls) -> &'a [u32] {
        let symbols = self.symbols();
        let name = |place: &u32| symbols.function_at(*place).and_then(|function| symbols.name(function));
        let captures = calls.places().iter().position(|place| name(place).is_some_and(|name| is_capture(&name)));
        &calls.places()[captures.map_or(0, |at| at + 1)..]
    }

    /// Returns the functions at each of these places, each inlined in the one that follows, and how long that was computed. After
    /// `time`, lines and inlined functions are left out.
    pub fn functions_at(&self, places: &[u32], time: Duration) -> (Vec<Vec<PlacedFunction>>, Duration) {
        let symbols = self.symbols();
        let began = computed();
        let places: Vec<_> = places.iter().map(|place| (*place, None)).collect();
        let frames = symbols.frames_within(&places, time);
        let took = computed().saturating_sub(began);
        let functions = frames.into_iter().map(|frames| {
            let function = |frame: crate::symbols::Frame| {
                let name = frame.name.unwrap_or_default();
                let Some(Source { file, line, column }) = frame.source else {
                    return PlacedFunction { name, ..PlacedFunction::default() };
                };
                PlacedFunction { name, file, line, column: column.unwrap_or(0) }
            };
            frames.into_iter().map(function).collect()
        });
        (functions.collect(), took)
    }
}

/// Whether this is one of the functions by which a program asks. They are not inlined.
fn is_capture(name: &str) -> bool {
    let path = name.replace(['<', '>'], "");
    ["std::backtrace::Backtrace::capture", "std::backtrace::Backtrace::force_capture"].contains(&&*path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_that_ask_are_known_in_either_mangling() {
        for name in [
            "std::backtrace::Backtrace::capture",
            "std::backtrace::Backtrace::force_capture",
            "<std::backtrace::Backtrace>::capture",
        ] {
            assert!(is_capture(name), "{name}");
        }
        for name in ["std::backtrace::Backtrace::create", "app::Backtrace::capture", "app::main"] {
            assert!(!is_capture(name), "{name}");
        }
    }
}
