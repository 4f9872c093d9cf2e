//! The calls that led to a trap, as Rust's standard library prints them.

use crate::dwarf::Source;
use crate::symbols::{Frame, Symbols};
use gpu_run_wasm::printable;
use gpu_run_wasm::slot::KEPT_CALLS;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many frames are printed: functions may be inlined in each other, at each of the calls.
const MAX_FRAMES: usize = 256;

/// The calls that a program noted, as its slot has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NotedCalls {
    /// Offsets in the .wasm file, the innermost call first.
    places: Vec<u32>,
    /// How many outer calls were not kept.
    lost: u32,
}

impl NotedCalls {
    /// Reads the words of a [`gpu_run_wasm::slot::CallsPlace`]; none if calls are not noted.
    pub fn of_words(words: &[u64]) -> Option<Self> {
        let (depth, places) = words.split_first()?;
        let depth = *depth as u32;
        let kept = depth.min(KEPT_CALLS as u32);
        let place = |n: u32| {
            let at = n as usize % KEPT_CALLS as usize;
            places.get(at / 2).map(|pair| (pair >> (at % 2 * 32)) as u32)
        };
        Some(Self { places: (depth - kept..depth).rev().filter_map(place).collect(), lost: depth - kept })
    }

    /// Returns the calls' offsets in the .wasm file, the innermost first.
    pub(crate) fn places(&self) -> &[u32] {
        &self.places
    }
}

/// What is known about the calls that led to a trap.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Calls {
    /// There were none, or the trap is not in a function.
    #[default]
    None,
    /// The program was compiled without noting calls.
    NotNoted,
    Noted(Arc<Chain>),
}

/// The place of a trap, and the calls that led there.
#[derive(Debug)]
pub struct Chain {
    /// Offset and function of the trap, if it is in a function.
    trap: Option<(u32, u32)>,
    calls: NotedCalls,
    symbols: Arc<Symbols>,
}

impl PartialEq for Chain {
    fn eq(&self, other: &Self) -> bool {
        (self.trap, &self.calls) == (other.trap, &other.calls)
    }
}

/// How much of a backtrace is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// `RUST_BACKTRACE=1`: without the functions that lead to `main`, and those that a panic goes through.
    Short,
    /// `RUST_BACKTRACE=full`: all functions, with their offsets.
    Full,
}

/// A backtrace, to be printed.
#[derive(Clone, Debug)]
pub struct Backtrace {
    frames: Vec<Frame>,
    /// How many outer calls are not known.
    lost: u32,
    /// Whether frames were left out because they are not interesting.
    is_short: bool,
    detail: Detail,
    /// Paths in this folder are shown without it.
    folder: Option<PathBuf>,
}

impl Chain {
    /// Returns the chain, if there is any function in it. `trap` is the offset and the function of the trap.
    pub(crate) fn new(trap: Option<(u32, u32)>, calls: NotedCalls, symbols: &Arc<Symbols>) -> Option<Self> {
        let is_empty = trap.is_none() && calls.places.is_empty();
        (!is_empty).then(|| Self { trap, calls, symbols: symbols.clone() })
    }

    /// Looks the functions and lines up in the module.
    pub fn backtrace(&self, detail: Detail, folder: Option<&Path>) -> Backtrace {
        let trap = self.trap.map(|(offset, function)| (offset, Some(function)));
        let places: Vec<_> = trap.into_iter().chain(self.calls.places.iter().map(|offset| (*offset, None))).collect();
        let all = self.symbols.frames(&places);
        let kept = match detail {
            Detail::Short => interesting(&all),
            Detail::Full => 0..all.len(),
        };
        let is_short = kept.len() < all.len();
        // Outside of a program's start there is nothing to miss.
        let lost = if kept.end < all.len() { 0 } else { self.calls.lost };
        let folder = folder.filter(|_| detail == Detail::Short).map(Path::to_owned);
        Backtrace { frames: all[kept].to_vec(), lost, is_short, detail, folder }
    }
}

/// Returns the frames of the program itself: not those that a panic goes through, and not those that lead to `main`.
fn interesting(frames: &[Frame]) -> std::ops::Range<usize> {
    let name = |frame: &Frame| frame.name.clone().unwrap_or_default();
    let marked = |mark: &str| frames.iter().position(|frame| name(frame).contains(mark));
    let panic = marked("__rust_end_short_backtrace").map_or(0, |at| at + 1);
    let begin = panic + frames[panic..].iter().take_while(|frame| is_panic(&name(frame))).count();
    let is_start = |frame: &Frame| name(frame).contains("std::rt::lang_start");
    let main = marked("__rust_begin_short_backtrace").or_else(|| frames.iter().position(is_start));
    let is_outside = |frame: &&Frame| OUTSIDE.contains(&name(frame).as_str());
    let mut end = main.unwrap_or(frames.len() - frames.iter().rev().take_while(is_outside).count());
    // The standard library calls `main` through this.
    if main.is_some() && end > 0 && last_part(&name(&frames[end - 1])) == "call_once" {
        end -= 1;
    }
    if begin < end { begin..end } else { 0..frames.len() }
}

/// Functions that call `main`, whatever the language.
const OUTSIDE: [&str; 3] = ["_start", "__main_void", "_initialize"];

/// Functions that a panic goes through; their crates and modules change with the version of Rust.
const PANIC: [&str; 12] = [
    "rust_begin_unwind",
    "__rust_start_panic",
    "__rust_abort",
    "rust_panic",
    "rust_panic_with_hook",
    "begin_panic_handler",
    "__rust_end_short_backtrace",
    "__rust_drop_panic",
    "__rust_foreign_exception",
    "abort_internal",
    "abort",
    "panic_cold_explicit",
];

fn is_panic(name: &str) -> bool {
    let modules = ["core::panicking::", "std::panicking::", "std::sys::backtrace::", "panic_abort::"];
    modules.iter().any(|module| name.starts_with(module)) || PANIC.contains(&last_part(name))
}

/// Returns the last part of a path, without type parameters behind it: `a::b::<C>` gives `b`.
fn last_part(name: &str) -> &str {
    let mut open = 0;
    let begins = |(_, c): &(usize, char)| {
        open += i32::from(*c == '>') - i32::from(*c == '<');
        open == 0
    };
    let parameters = name.ends_with('>').then(|| name.char_indices().rev().find(begins)).flatten();
    let path = parameters.map_or(name, |(at, _)| name[..at].trim_end_matches("::"));
    path.rsplit("::").next().unwrap_or(path)
}

impl fmt::Display for Backtrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stack backtrace:")?;
        for (number, frame) in self.frames.iter().take(MAX_FRAMES).enumerate() {
            write!(f, "\n{number:4}: ")?;
            if self.detail == Detail::Full {
                write!(f, "{:#010x} - ", frame.offset)?;
            }
            match (&frame.name, frame.function) {
                (Some(name), _) => write!(f, "{}", printable::name(name))?,
                (None, Some(function)) => write!(f, "<unknown> (function {function})")?,
                (None, None) => write!(f, "<unknown>")?,
            }
            if let Some(source) = &frame.source {
                write!(f, "\n             at {}", shown(source, self.folder.as_deref()))?;
            }
        }
        let more = self.frames.len().saturating_sub(MAX_FRAMES) as u32 + self.lost;
        if more > 0 {
            write!(f, "\n      [... {more} outer calls are not shown ...]")?;
        }
        if self.is_short {
            write!(f, "\nnote: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.")?;
        }
        Ok(())
    }
}

/// `src/main.rs:42:13`, where the file is in `folder`.
pub(crate) fn shown(source: &Source, folder: Option<&Path>) -> String {
    let inside = folder.and_then(|folder| Path::new(&source.file).strip_prefix(folder).ok());
    let file = printable::path(inside.unwrap_or(Path::new(&source.file)));
    let column = source.column.map_or_else(String::new, |column| format!(":{column}"));
    format!("{file}:{}{column}", source.line)
}

#[cfg(test)]
#[path = "backtrace_tests.rs"]
mod tests;
