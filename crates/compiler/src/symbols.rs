//! Names and source lines for traps.

use crate::compile::demangle;
use crate::dwarf::{Dwarf, MAX_TIME, Source, SourceFrame};
use gpu_run_wasm::{ExportKind, Module};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

/// How many characters of a name or path are shown: a module may have names of any length.
const MAX_SHOWN: usize = 1000;
/// Bytes of a name that is demangled: a longer one is shown as it is.
const MAX_MANGLED: usize = 64 << 10;

/// Names and debug information of a module's functions, for trap messages.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    names: HashMap<u32, String>,
    /// Exported functions.
    exports: HashMap<String, u32>,
    /// Number of imported functions; those of the module follow.
    imports: u32,
    /// Where the bodies of the module's functions are in the file, in order.
    bodies: Vec<Range<usize>>,
    dwarf: Dwarf,
    /// What was found for an offset: records of a map often trap at the same place.
    sources: Mutex<HashMap<u32, Option<Source>>>,
    code_start: u64,
}

/// A function on the way to a trap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Index in the module's function space; `None` if it was inlined in the frame that follows.
    pub(crate) function: Option<u32>,
    /// The function's name, demangled.
    pub(crate) name: Option<String>,
    /// Offset in the .wasm file.
    pub(crate) offset: u32,
    pub(crate) source: Option<Source>,
}

impl Symbols {
    pub(crate) fn new(module: &Module<'_>) -> Self {
        let (imports, functions) = (module.imports.len() as u32, module.functions.len() as u32);
        let names = (0..functions).filter_map(|f| Some((f, module.function_name(f)?.to_owned())));
        let exports = module.exports.iter().filter_map(|export| match export.kind {
            ExportKind::Function(index) => Some((export.name.to_owned(), index)),
            _ => None,
        });
        Self {
            names: names.collect(),
            exports: exports.collect(),
            imports,
            bodies: (imports..functions).map(|f| module.body_range(f)).collect(),
            dwarf: Dwarf::new(module.debug_sections.iter().copied()),
            sources: Mutex::default(),
            code_start: module.code_start as u64,
        }
    }

    pub(crate) fn name(&self, function: u32) -> Option<String> {
        self.names.get(&function).map(|name| shown(name))
    }

    /// Returns the function that is exported under a name.
    pub(crate) fn export(&self, name: &str) -> Option<u32> {
        self.exports.get(name).copied()
    }

    /// Returns file and line for an offset in the .wasm file, if the module has debug information.
    pub(crate) fn source(&self, offset: u32) -> Option<(String, u32)> {
        let mut sources = self.sources.lock();
        let find = || self.address(offset).and_then(|address| self.dwarf.source(address));
        let source = sources.entry(offset).or_insert_with(find).as_ref()?;
        Some((source.file.clone(), source.line))
    }

    /// Returns the functions at these places, each an offset and the function it is in, if that is known already.
    /// Functions that were inlined there come before the function they were inlined in.
    pub(crate) fn frames(&self, places: &[(u32, Option<u32>)]) -> Vec<Frame> {
        self.frames_within(places, MAX_TIME).into_iter().flatten().collect()
    }

    /// Like [`Symbols::frames`], for each place by itself. If that would take longer than `time`, there are no lines and no functions
    /// that were inlined.
    pub(crate) fn frames_within(&self, places: &[(u32, Option<u32>)], time: Duration) -> Vec<Vec<Frame>> {
        let places: Vec<_> =
            places.iter().map(|(offset, f)| (*offset, f.or_else(|| self.function_at(*offset)))).collect();
        let addresses: Vec<_> = places.iter().map(|(offset, _)| self.address(*offset)).collect();
        let found = self.dwarf.frames(&addresses, time);
        places.iter().zip(found).map(|((offset, f), found)| self.frames_at(*offset, *f, found)).collect()
    }

    fn frames_at(&self, offset: u32, function: Option<u32>, mut found: Vec<SourceFrame>) -> Vec<Frame> {
        // Nothing is inlined in the code that stands for an import.
        if found.is_empty() || function.is_some_and(|f| f < self.imports) {
            found = vec![SourceFrame::default()];
        }
        let last = found.len() - 1;
        let frame = |(i, SourceFrame { name, source }): (usize, SourceFrame)| Frame {
            function: function.filter(|_| i == last),
            // The name section has a function's whole path; DWARF that is for lines only has the last part.
            name: function.filter(|_| i == last).and_then(|f| self.name(f)).or_else(|| name.as_deref().map(shown)),
            offset,
            source: source.map(|source| Source { file: cut(source.file), ..source }),
        };
        found.into_iter().enumerate().map(frame).collect()
    }

    /// Returns the function whose body an offset is in.
    pub(crate) fn function_at(&self, offset: u32) -> Option<u32> {
        let offset = offset as usize;
        let at = self.bodies.partition_point(|body| body.end <= offset);
        let is_there = self.bodies.get(at).is_some_and(|body| body.contains(&offset));
        is_there.then_some(self.imports + at as u32)
    }

    /// Returns the offset in the .wasm file where a function's body begins; none for an imported function.
    pub(crate) fn body_start(&self, function: u32) -> Option<u32> {
        let body = self.bodies.get(function.checked_sub(self.imports)? as usize)?;
        u32::try_from(body.start).ok()
    }

    fn address(&self, offset: u32) -> Option<u64> {
        u64::from(offset).checked_sub(self.code_start)
    }
}

fn shown(name: &str) -> String {
    cut(if name.len() > MAX_MANGLED { name.to_owned() } else { demangle(name) })
}

fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_SHOWN) {
        text.truncate(end);
        text.push('…');
    }
    text
}
