//! Links several modules into one program.
//!
//! Modules are linked when they are compiled, not when they run. The functions, tables, memories, globals and tags of
//! all modules lie in common index spaces, and an import is the exported item's index there. Compiled code then knows
//! nothing of linking: a call into another module is an ordinary call, another module's memory an ordinary memory of
//! the slot. [`Part`] maps a module's own indices to the program's.
//!
//! The host's functions come first, as in a module, then those of the modules, one module after the other.

use crate::callgraph;
use crate::canonical::Canonical;
use crate::constant::Constant;
use crate::decode::{
    DataSegment, ElementKind, ElementSegment, Export, ExportKind, Import, ImportKind, Memory, Module, Table, Unlinked,
};
use crate::embedder::EmbedderFunctions;
use crate::error::Error;
use crate::provided::{self, Imported};
use crate::translate::guest;
use crate::types::ValType;
use crate::work::Work;
use gpu_run_abi::layout::MAX_PAGES;
use gpu_run_abi::threads;

/// Where an import leads: to an item that an earlier module exports, by that module's own index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub part: usize,
    pub item: ExportKind,
}

/// Where a module's index spaces lie in its program's.
#[derive(Clone, Debug, Default)]
pub struct Part {
    pub functions: Vec<u32>,
    pub tables: Vec<u32>,
    pub memories: Vec<u32>,
    pub globals: Vec<u32>,
    pub tags: Vec<u32>,
    /// The program's indices of the module's first type, first data segment and first element segment.
    pub types: u32,
    pub data: u32,
    pub elements: u32,
}

impl Part {
    /// Returns the program's index of an item, given the module's.
    pub fn item(&self, item: ExportKind) -> ExportKind {
        match item {
            ExportKind::Function(i) => ExportKind::Function(self.functions[i as usize]),
            ExportKind::Table(i) => ExportKind::Table(self.tables[i as usize]),
            ExportKind::Memory(i) => ExportKind::Memory(self.memories[i as usize]),
            ExportKind::Global(i) => ExportKind::Global(self.globals[i as usize]),
            ExportKind::Tag(i) => ExportKind::Tag(self.tags[i as usize]),
        }
    }
}

/// Links modules into a program. Each module comes with the targets of its imports; `None` means that the host or
/// the embedder provides the import.
pub fn link<'a>(
    modules: Vec<(Unlinked<'a>, Vec<Option<Target>>)>,
    embedder: &EmbedderFunctions,
) -> Result<Module<'a>, Error> {
    let mut linker = Linker::default();
    linker.program.embedder = embedder.clone();
    let hosted = |(module, targets): &(Unlinked<'_>, Vec<Option<Target>>)| {
        let all = module.imports.iter().zip(targets);
        all.filter(|(import, target)| import.kind == ImportKind::Function && target.is_none()).count() as u32
    };
    linker.next_function = modules.iter().map(hosted).sum();
    for (module, targets) in modules {
        linker.add(module, &targets)?;
    }
    Ok(linker.finish())
}

/// The name under which an adapter imports from the module that it adapts.
pub const ADAPTED: &str = "guest";
/// The adapter's name for the module's first memory, whether it is exported or not.
const MEMORY: &str = "memory";

/// Links a module with an adapter, which imports the module's functions by their exported names, and its first memory. Places in the
/// program are places in the module's file.
pub fn adapt<'a>(
    module: Unlinked<'a>,
    mut adapter: Unlinked<'a>,
    embedder: &EmbedderFunctions,
) -> Result<Module<'a>, Error> {
    let target = |import: &Import<'_>| match (import.module, import.kind, import.name) {
        (ADAPTED, ImportKind::Memory, MEMORY) => Some(ExportKind::Memory(0)),
        (ADAPTED, ..) => module.exports.iter().find(|export| export.name == import.name).map(|export| export.kind),
        _ => None,
    };
    let target = |import| target(import).map(|item| Target { part: 0, item });
    let targets = adapter.imports.iter().map(target).collect();
    // Its names for what it imports are not the module's.
    adapter.names.clear();
    let (own, start) = (vec![None; module.imports.len()], module.start);
    let (debug_sections, code_start) = (module.debug_sections.clone(), module.code_start);
    let mut program = link(vec![(module, own), (adapter, targets)], embedder)?;
    program.start = start.map(|start| program.parts[0].functions[start as usize]);
    (program.debug_sections, program.code_start, program.is_adapted) = (debug_sections, code_start, true);
    Ok(program)
}

#[derive(Default)]
struct Linker<'a> {
    program: Module<'a>,
    types: Canonical,
    /// For each module, the numbers of its types.
    numbers: Vec<Vec<u32>>,
    /// Which module declared each table and each global: its type indices are that module's.
    table_parts: Vec<usize>,
    global_parts: Vec<usize>,
    /// Types of the functions that have bodies.
    bodies: Vec<u32>,
    next_function: u32,
}

impl<'a> Linker<'a> {
    fn add(&mut self, mut module: Unlinked<'a>, targets: &[Option<Target>]) -> Result<(), Error> {
        self.numbers.push(self.types.add(&module.groups));
        let program = &self.program;
        let mut part = Part {
            types: program.types.len() as u32,
            data: program.data.len() as u32,
            elements: program.elements.len() as u32,
            ..Part::default()
        };
        for (import, target) in module.imports.iter().zip(targets) {
            match target {
                Some(target) => self.linked(&mut part, &module, import, *target)?,
                None => self.hosted(&mut part, &module, import)?,
            }
        }
        self.declared(&mut part, &mut module)?;
        self.definitions(&part, module);
        self.program.parts.push(part);
        Ok(())
    }

    /// Returns the type of the function import that is resolved next.
    fn function_type(&self, part: &Part, module: &Unlinked<'_>) -> u32 {
        module.functions[part.functions.len()]
    }

    /// Resolves an import that leads to another module.
    fn linked(&mut self, part: &mut Part, module: &Unlinked<'_>, import: &Import<'_>, to: Target) -> Result<(), Error> {
        let numbers = &self.numbers[self.numbers.len() - 1];
        let item = self.program.parts[to.part].item(to.item);
        let program = &self.program;
        let mismatch = |found: String, expected: String| Err(mismatch(import, found, expected));
        match (import.kind, item) {
            (ImportKind::Function, ExportKind::Function(index)) => {
                let wanted = self.function_type(part, module);
                let (number, wanted_number) = (self.number_of(index), numbers[wanted as usize]);
                let chain = std::iter::successors(Some(number), |ty| self.types.supertypes[*ty as usize]);
                if !chain.into_iter().any(|ty| ty == wanted_number) {
                    let ty = self.type_of(index);
                    return mismatch(module.types[wanted as usize].to_string(), program.types[ty as usize].to_string());
                }
                part.functions.push(index);
            }
            (ImportKind::Table, ExportKind::Table(index)) => {
                let (wanted, table) = (&module.tables[part.tables.len()], &program.tables[index as usize]);
                let theirs = &self.numbers[self.table_parts[index as usize]];
                let is = |a: wasmparser::RefType, a_types: &[u32], b: wasmparser::RefType, b_types: &[u32]| {
                    self.types.matches(wasmparser::ValType::Ref(a), a_types, wasmparser::ValType::Ref(b), b_types)
                };
                let same = is(table.declared, theirs, wanted.declared, numbers)
                    && is(wanted.declared, numbers, table.declared, theirs);
                let fits = fits((table.minimum, table.maximum), (wanted.minimum, wanted.maximum));
                if !same || !fits || table.is_64 != wanted.is_64 {
                    return mismatch(show_table(wanted), show_table(table));
                }
                part.tables.push(index);
            }
            (ImportKind::Memory, ExportKind::Memory(index)) => {
                let (wanted, memory) = (&module.memories[part.memories.len()], &program.memories[index as usize]);
                let fits = fits((memory.minimum, memory.maximum), (wanted.minimum, wanted.maximum));
                if !fits || memory.is_64 != wanted.is_64 || memory.shared != wanted.shared {
                    return mismatch(show_memory(wanted), show_memory(memory));
                }
                part.memories.push(index);
            }
            (ImportKind::Global, ExportKind::Global(index)) => {
                let (wanted, global) = (&module.globals[part.globals.len()], &program.globals[index as usize]);
                let theirs = &self.numbers[self.global_parts[index as usize]];
                let is = self.types.matches(global.declared, theirs, wanted.declared, numbers)
                    && (!global.mutable || self.types.matches(wanted.declared, numbers, global.declared, theirs));
                if !is || global.mutable != wanted.mutable {
                    let show = |mutable: bool, ty: ValType| format!("{}{ty}", if mutable { "mutable " } else { "" });
                    return mismatch(show(wanted.mutable, wanted.ty), show(global.mutable, global.ty));
                }
                part.globals.push(index);
            }
            (ImportKind::Tag, ExportKind::Tag(index)) => {
                let wanted = numbers[module.tags[part.tags.len()] as usize];
                if program.signatures[program.tags[index as usize] as usize] != wanted {
                    return mismatch("a tag".into(), "a tag of another type".into());
                }
                part.tags.push(index);
            }
            (wanted, item) => return mismatch(format!("a {wanted:?}").to_lowercase(), show_kind(item).into()),
        }
        Ok(())
    }

    /// Returns the type of a function of the program so far.
    fn type_of(&self, function: u32) -> u32 {
        let own = (function as usize).checked_sub(self.stubs_total());
        match own {
            Some(body) => self.bodies[body],
            None => self.program.functions[function as usize],
        }
    }

    fn number_of(&self, function: u32) -> u32 {
        self.program.signatures[self.type_of(function) as usize]
    }

    /// Returns how many functions of the whole program are the host's.
    fn stubs_total(&self) -> usize {
        self.next_function as usize - self.bodies.len()
    }

    /// Resolves an import that the host provides, or returns an error if the host does not.
    fn hosted(&mut self, part: &mut Part, module: &Unlinked<'_>, import: &Import<'_>) -> Result<(), Error> {
        let current = self.numbers.len() - 1;
        let unknown = |kind: &str| match provided::kind(import.module, import.name) {
            Some(other) => mismatch(import, kind.into(), other.into()),
            None => Error::UnknownImport { module: import.module.into(), name: import.name.into(), kind: kind.into() },
        };
        match import.kind {
            ImportKind::Function => {
                let ty = self.function_type(part, module);
                let found = &module.types[ty as usize];
                let embedder = &self.program.embedder;
                let call = Imported::find(import.module, import.name, embedder)
                    .ok_or_else(|| unknown(&format!("function, type {found}")))?;
                let expected = call.ty(embedder);
                if *found != expected {
                    return Err(mismatch(import, found.to_string(), expected.to_string()));
                }
                part.functions.push(self.program.imports.len() as u32);
                self.program.imports.push(call);
                self.program.functions.push(part.types + ty);
            }
            ImportKind::Global => {
                let global = module.globals[part.globals.len()].clone();
                let mutable = if global.mutable { "mutable " } else { "" };
                let (ty, bits) = provided::global(import.module, import.name)
                    .ok_or_else(|| unknown(&format!("global, type {mutable}{}", global.ty)))?;
                if ty != global.ty || global.mutable {
                    return Err(mismatch(import, format!("{mutable}{}", global.ty), ty.to_string()));
                }
                part.globals.push(self.program.globals.len() as u32);
                self.program.globals.push(crate::decode::Global { init: Constant::Bits(bits), ..global });
                self.global_parts.push(current);
            }
            ImportKind::Memory => {
                let wanted = module.memories[part.memories.len()];
                // The memory that the threads of a program share is provided with the limits that the module asks for.
                if wanted.shared && threads::is_memory(import.module, import.name) {
                    part.memories.push(self.program.memories.len() as u32);
                    self.program.memories.push(wanted);
                    return Ok(());
                }
                let (minimum, maximum, shared) =
                    provided::memory(import.module, import.name).ok_or_else(|| unknown("memory"))?;
                let memory = Memory { minimum, maximum: Some(maximum), is_64: false, shared, grows: false };
                if !fits((minimum, Some(maximum)), (wanted.minimum, wanted.maximum))
                    || wanted.is_64
                    || wanted.shared != shared
                {
                    return Err(mismatch(import, show_memory(&wanted), show_memory(&memory)));
                }
                part.memories.push(self.program.memories.len() as u32);
                self.program.memories.push(memory);
            }
            ImportKind::Table => {
                let wanted = &module.tables[part.tables.len()];
                let (minimum, maximum, is_64) =
                    provided::table(import.module, import.name).ok_or_else(|| unknown(&show_table(wanted)))?;
                let table = Table { minimum, maximum: Some(maximum), is_64, ..wanted.clone() };
                let is_plain = wanted.declared == wasmparser::RefType::FUNCREF && wanted.is_64 == is_64;
                if !is_plain || !fits((minimum, Some(maximum)), (wanted.minimum, wanted.maximum)) {
                    return Err(mismatch(import, show_table(wanted), show_table(&table)));
                }
                part.tables.push(self.program.tables.len() as u32);
                self.program.tables.push(table);
                self.table_parts.push(current);
            }
            ImportKind::Tag => return Err(unknown("tag")),
        }
        Ok(())
    }

    /// Adds what the module itself declares.
    fn declared(&mut self, part: &mut Part, module: &mut Unlinked<'a>) -> Result<(), Error> {
        let current = self.numbers.len() - 1;
        let program = &mut self.program;
        program.signatures.extend(&self.numbers[current]);
        for ty in module.functions.drain(part.functions.len()..) {
            part.functions.push(self.next_function);
            self.bodies.push(part.types + ty);
            self.next_function += 1;
        }
        for memory in module.memories.drain(part.memories.len()..) {
            if memory.minimum > MAX_PAGES {
                return Err(Error::Limit(format!(
                    "its memory begins with {} pages; the limit is {MAX_PAGES}",
                    memory.minimum
                )));
            }
            part.memories.push(program.memories.len() as u32);
            program.memories.push(memory);
        }
        for tag in module.tags.drain(part.tags.len()..) {
            part.tags.push(program.tags.len() as u32);
            program.tags.push(part.types + tag);
        }
        for mut global in module.globals.drain(part.globals.len()..) {
            // The initial value may name globals before this one.
            global.init = global.init.renumbered(&part.functions, &part.globals);
            part.globals.push(program.globals.len() as u32);
            program.globals.push(global);
            self.global_parts.push(current);
        }
        for mut table in module.tables.drain(part.tables.len()..) {
            table.init = table.init.renumbered(&part.functions, &part.globals);
            part.tables.push(program.tables.len() as u32);
            program.tables.push(table);
            self.table_parts.push(current);
        }
        Ok(())
    }

    /// Adds the module's segments, bodies, exports and names, all with the program's indices.
    fn definitions(&mut self, part: &Part, module: Unlinked<'a>) {
        let (number, program) = (self.program.parts.len() as u32, &mut self.program);
        let constant = |constant: &Constant| constant.renumbered(&part.functions, &part.globals);
        program.types.extend(module.types);
        program.elements.extend(module.elements.into_iter().map(|segment| ElementSegment {
            kind: match segment.kind {
                ElementKind::Active { table, offset } => {
                    ElementKind::Active { table: part.tables[table as usize], offset: constant(&offset) }
                }
                other => other,
            },
            items: segment.items.iter().map(constant).collect(),
        }));
        program.data.extend(module.data.into_iter().map(|segment| DataSegment {
            place: segment.place.map(|(memory, offset)| (part.memories[memory as usize], constant(&offset))),
            bytes: segment.bytes,
        }));
        program.exports.extend(module.exports.into_iter().map(|export| Export {
            kind: part.item(export.kind),
            part: number,
            ..export
        }));
        program
            .names
            .extend(module.names.into_iter().filter_map(|(f, name)| Some((*part.functions.get(f as usize)?, name))));
        program.start = module.start.map(|start| part.functions[start as usize]);
        program.bodies.extend(module.bodies.into_iter().map(|body| (number, body)));
        for mut survey in module.surveys {
            survey.renumber(part);
            for memory in &survey.grows_memories {
                program.memories[*memory as usize].grows = true;
            }
            program.surveys.push(survey);
        }
        // With several files, an offset does not say which file it belongs to, so debug information is dropped.
        let alone = number == 0;
        program.debug_sections = if alone { module.debug_sections } else { Vec::new() };
        program.code_start = if alone { module.code_start } else { 0 };
    }

    fn finish(self) -> Module<'a> {
        let mut program = self.program;
        program.functions.extend(self.bodies);
        program.supertypes = self.types.supertypes;
        program.address_taken = address_taken(&program);
        for export in &program.exports {
            if let ExportKind::Function(function) = export.kind {
                program.exported_names.entry(function).or_insert(export.name);
            }
        }
        program.guest_calls = guest::calls(&program);
        let graph = callgraph::Graph::new(&program);
        program.work = Work::new(&program, &graph);
        program.cycles = callgraph::cycles_of_names(&program);
        program.traits = graph.traits(&program);
        program
    }
}

/// Returns for each function whether a table, a global, an element segment or `ref.func` may refer to it.
fn address_taken(program: &Module<'_>) -> Vec<bool> {
    let mut taken = vec![false; program.functions.len()];
    let constants = program.elements.iter().flat_map(|e| &e.items).chain(program.globals.iter().map(|g| &g.init));
    for constant in constants.chain(program.tables.iter().map(|t| &t.init)) {
        constant.each(&mut |constant| {
            if let Constant::Function(index) = constant {
                taken[*index as usize] = true;
            }
        });
    }
    for index in program.surveys.iter().flat_map(|s| &s.references) {
        taken[*index as usize] = true;
    }
    taken
}

/// Returns whether an item's limits satisfy the limits that an import asks for.
fn fits((minimum, maximum): (u64, Option<u64>), (wanted, most): (u64, Option<u64>)) -> bool {
    minimum >= wanted && most.is_none_or(|most| maximum.is_some_and(|maximum| maximum <= most))
}

fn mismatch(import: &Import<'_>, found: String, expected: String) -> Error {
    Error::ImportType { module: import.module.into(), name: import.name.into(), found, expected }
}

fn show_table(table: &Table) -> String {
    let wide = if table.is_64 { "64-bit " } else { "" };
    format!("a {wide}table of {}{} {}", table.minimum, show_maximum(table.maximum), table.element)
}

fn show_memory(memory: &Memory) -> String {
    let wide = if memory.is_64 { "64-bit " } else { "" };
    let shared = if memory.shared { "shared " } else { "" };
    format!("a {shared}{wide}memory of {}{} pages", memory.minimum, show_maximum(memory.maximum))
}

fn show_maximum(maximum: Option<u64>) -> String {
    maximum.map_or_else(|| " or more".into(), |most| format!(" to {most}"))
}

fn show_kind(item: ExportKind) -> &'static str {
    match item {
        ExportKind::Function(_) => "a function",
        ExportKind::Table(_) => "a table",
        ExportKind::Memory(_) => "a memory",
        ExportKind::Global(_) => "a global",
        ExportKind::Tag(_) => "a tag",
    }
}
