//! Instances that share what they import from each other.
//!
//! Modules are linked when they are compiled (`wasm::link`): instances that share something are one program in one
//! slot, a [`Home`]. A module that imports from existing instances makes a new home for them and itself: their state
//! moves there, with function references rewritten for the new program. (Exceptions that are kept for references do not
//! move: throwing such a reference afterwards is the trap `LostException`.) The exports of a module without state are
//! not shared but copied: no guest can tell the difference, and the modules that import them stay apart, each in a
//! small program.

use crate::instance::{Instance, Snapshot};
use crate::outcome::Outcome;
use gpu_run_abi::layout::PAGE;
use gpu_run_compiler::Error;
use gpu_run_compiler::State;
use gpu_run_compiler::Value;
use gpu_run_compiler::{CompileOptions, Compiled};
use gpu_run_compiler::{Program, Trap};
use gpu_run_device::Device;
use gpu_run_wasi::{Builder, Stdio};
use gpu_run_wasm::link::{Part, Target, link};
use gpu_run_wasm::{
    ExportKind, ImportKind, Module, Unlinked, ValType, WasmFeatures, decode_unlinked, function_reference,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

/// The settings that instances are made with.
#[derive(Clone, Debug)]
pub struct Settings {
    pub device: Arc<dyn Device>,
    pub compile: CompileOptions,
    pub features: WasmFeatures,
    /// Bytes that an instance's memories and tables may have together.
    pub max_memory: Option<u64>,
}

/// Makes instances, and knows the names under which modules can import from them.
#[derive(Debug)]
pub struct Linker {
    settings: Settings,
    homes: HashMap<usize, Home>,
    next_home: usize,
    members: Vec<Member>,
    registered: HashMap<String, InstanceId>,
    /// By module and name, for modules that no instance is registered for.
    provided: HashMap<(String, String), InstanceId>,
}

/// One of a linker's instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InstanceId(usize);

/// The home of an instance, and which of the home's modules it is.
#[derive(Clone, Copy, Debug)]
struct Member {
    home: usize,
    part: usize,
}

/// A program in a slot, and the modules it is linked from.
#[derive(Debug)]
struct Home {
    instance: Instance,
    parts: Vec<LinkedModule>,
    has_state: bool,
}

/// A module, and what its imports resolve to.
#[derive(Clone, Debug)]
struct LinkedModule {
    wasm: Arc<Vec<u8>>,
    targets: Vec<Option<Target>>,
    /// By the module's own indices.
    exports: Arc<Vec<(String, ExportKind)>>,
}

/// The modules that a program is to be linked from; the last one is the module that is instantiated.
#[derive(Debug)]
struct LinkPlan {
    sources: Vec<LinkedModule>,
    /// Homes whose modules are among the sources, and the index of each home's first module there.
    homes: BTreeMap<usize, usize>,
}

/// A program that was compiled ahead of its instantiation.
#[derive(Debug)]
pub struct Prepared {
    sources: Vec<LinkedModule>,
    pub program: Arc<Program>,
}

impl Prepared {
    /// Links a module to others, which are given with the names it imports from, and compiles it. Returns `None` if
    /// that cannot be done ahead: one of the others has state, or imports from another one.
    pub fn new(
        settings: &Settings,
        wasm: Arc<Vec<u8>>,
        exporters: &[(&str, Arc<Vec<u8>>)],
        inspect: impl FnOnce(&Compiled) -> Result<(), String>,
    ) -> Result<Option<Self>, Error> {
        let mut homes = Vec::new();
        for (_, exporter) in exporters {
            let module = decode_unlinked(exporter, settings.features)?;
            if module.has_state() || module.imports.iter().any(|import| exporters.iter().any(|e| e.0 == import.module))
            {
                return Ok(None);
            }
            let targets = vec![None; module.imports.len()];
            homes.push([LinkedModule { wasm: exporter.clone(), targets, exports: exports(&module) }]);
        }
        let find = |name: &str, _: &str| {
            let home = exporters.iter().position(|(exporter, _)| *exporter == name)?;
            // One module that has several names has one home.
            let home = exporters.iter().position(|(_, wasm)| Arc::ptr_eq(wasm, &exporters[home].1))?;
            Some((home, &homes[home][..], 0))
        };
        let plan = LinkPlan::new(&decode_unlinked(&wasm, settings.features)?, wasm.clone(), find)?;
        let compiled = plan.link(settings, &[], |module, state| plan.compiled(settings, module, state))?;
        inspect(&compiled).map_err(Error::Internal)?;
        let program = Arc::new(Program::load(settings.device.clone(), Arc::new(compiled))?);
        Ok(Some(Self { sources: plan.sources, program }))
    }
}

/// Modules of a home that move into another home: the index of the first one there, their places in the old program,
/// and their state.
type Moving<'a> = (usize, &'a [Part], Snapshot);

impl LinkPlan {
    /// For an import's module and name, `find` returns the home of the instance, the home's modules, and which of them
    /// the instance is.
    fn new<'s>(
        module: &Unlinked<'_>,
        wasm: Arc<Vec<u8>>,
        find: impl Fn(&str, &str) -> Option<(usize, &'s [LinkedModule], usize)>,
    ) -> Result<Self, Error> {
        let mut plan = Self { sources: Vec::new(), homes: BTreeMap::new() };
        let mut targets = Vec::new();
        for import in &module.imports {
            let Some((home, parts, part)) = find(import.module, import.name) else {
                targets.push(None);
                continue;
            };
            let first = *plan.homes.entry(home).or_insert_with(|| {
                let first = plan.sources.len();
                plan.sources.extend(parts.iter().map(|source| source.moved(first)));
                first
            });
            let export = parts[part].exports.iter().find(|(name, _)| name == import.name);
            let (_, item) = export.ok_or_else(|| gpu_run_wasm::Error::UnknownImport {
                module: import.module.into(),
                name: import.name.into(),
                kind: kind(import.kind).into(),
            })?;
            targets.push(Some(Target { part: first + part, item: *item }));
        }
        plan.sources.push(LinkedModule { wasm, targets, exports: exports(module) });
        Ok(plan)
    }

    fn is(&self, prepared: &Prepared) -> bool {
        let same = |(a, b): (&LinkedModule, &LinkedModule)| a.targets == b.targets && *a.wasm == *b.wasm;
        self.sources.len() == prepared.sources.len() && self.sources.iter().zip(&prepared.sources).all(same)
    }

    /// Links the planned modules, with the state of those that move. Copied modules have no state to carry over.
    fn link<T>(
        &self,
        settings: &Settings,
        moving: &[Moving<'_>],
        then: impl FnOnce(Module<'_>, &State) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut modules = Vec::new();
        for source in &self.sources {
            modules.push((decode_unlinked(&source.wasm, settings.features)?, source.targets.clone()));
        }
        for (first, parts, snapshot) in moving {
            for (part, (module, _)) in parts.iter().zip(&mut modules[*first..]) {
                resize(module, part, snapshot);
            }
        }
        let module = link(modules, &settings.compile.embedder)?;
        let mut state = State::default();
        for (first, parts, snapshot) in moving {
            carry(&module, &module.parts[*first..], parts, snapshot, &mut state);
        }
        then(module, &state)
    }

    fn compiled(&self, settings: &Settings, module: Module<'_>, state: &State) -> Result<Compiled, Error> {
        let wasm = self.sources.last().map(|source| source.wasm.clone()).unwrap_or_default();
        Compiled::linked(module, wasm, &settings.compile, settings.features, state)
    }
}

impl Linker {
    pub fn new(settings: Settings) -> Self {
        let (homes, members) = (HashMap::new(), Vec::new());
        Self { settings, homes, next_home: 0, members, registered: HashMap::new(), provided: HashMap::new() }
    }

    /// Makes modules that import from `name` import from this instance, from now on.
    pub fn register(&mut self, name: &str, instance: InstanceId) {
        self.registered.insert(name.to_owned(), instance);
    }

    /// Makes modules that import `name` from `module` import it from this instance, from now on, unless an instance is
    /// registered as `module`.
    pub fn provide(&mut self, module: &str, name: &str, instance: InstanceId) {
        self.provided.insert((module.to_owned(), name.to_owned()), instance);
    }

    pub fn provides(&self, module: &str, name: &str) -> bool {
        self.provided.contains_key(&(module.to_owned(), name.to_owned()))
    }

    /// Instantiates a module, linked to the instances it imports from. The inner `Err` is a trap; what the module
    /// changed in other instances before it stays changed.
    pub fn instantiate(&mut self, wasm: Arc<Vec<u8>>) -> Result<Result<InstanceId, Trap>, Error> {
        self.instantiate_prepared(wasm, None, |_| Ok(()))
    }

    /// Like [`Linker::instantiate`], but uses `prepared` if it is the same program. `inspect` sees a program that is
    /// compiled here, and may refuse it.
    pub fn instantiate_prepared(
        &mut self,
        wasm: Arc<Vec<u8>>,
        prepared: Option<&Prepared>,
        inspect: impl FnOnce(&Compiled) -> Result<(), String>,
    ) -> Result<Result<InstanceId, Trap>, Error> {
        let module = decode_unlinked(&wasm, self.settings.features)?;
        let plan = self.plan(&module, wasm.clone())?;
        let moves = plan.homes.keys().any(|home| self.homes[home].has_state);
        let has_state = moves || module.has_state();
        let program = match prepared {
            Some(prepared) if !moves && plan.is(prepared) => prepared.program.clone(),
            _ => {
                let compile = |module: Module<'_>, state: &State| plan.compiled(&self.settings, module, state);
                let compiled = plan.link(&self.settings, &self.moving(&plan)?, compile)?;
                inspect(&compiled).map_err(Error::Internal)?;
                Arc::new(Program::load(self.settings.device.clone(), Arc::new(compiled))?)
            }
        };
        self.settle(program, plan, has_state)
    }

    /// Links a module as [`Linker::instantiate`] would. An error says what does not fit.
    pub fn check(&self, wasm: Arc<Vec<u8>>) -> Result<(), Error> {
        let plan = self.plan(&decode_unlinked(&wasm, self.settings.features)?, wasm.clone())?;
        plan.link(&self.settings, &self.moving(&plan)?, |_, _| Ok(()))
    }

    fn plan(&self, module: &Unlinked<'_>, wasm: Arc<Vec<u8>>) -> Result<LinkPlan, Error> {
        LinkPlan::new(module, wasm, |module, name| {
            let provided = || self.provided.get(&(module.to_owned(), name.to_owned()));
            let InstanceId(member) = self.registered.get(module).or_else(provided)?;
            let Member { home, part } = self.members[*member];
            Some((home, &self.homes[&home].parts[..], part))
        })
    }

    fn moving(&self, plan: &LinkPlan) -> Result<Vec<Moving<'_>>, Error> {
        let mut moving = Vec::new();
        for (home, first) in &plan.homes {
            let Home { instance, has_state: true, .. } = &self.homes[home] else { continue };
            moving.push((*first, &instance.program().compiled().parts[..], instance.snapshot()?));
        }
        Ok(moving)
    }

    /// Makes the plan's home, and moves the instances there whose state the new program holds.
    fn settle(
        &mut self,
        program: Arc<Program>,
        plan: LinkPlan,
        has_state: bool,
    ) -> Result<Result<InstanceId, Trap>, Error> {
        let context = Builder::new().build(Stdio::null());
        let (instance, trap) = Instance::begin(program, context, self.settings.max_memory)?;
        let (home, part) = (self.next_home, plan.sources.len() - 1);
        self.next_home += 1;
        for (old, first) in plan.homes {
            if self.homes.get(&old).is_some_and(|home| home.has_state) {
                self.homes.remove(&old);
                for member in self.members.iter_mut().filter(|member| member.home == old) {
                    *member = Member { home, part: first + member.part };
                }
            }
        }
        self.homes.insert(home, Home { instance, parts: plan.sources, has_state });
        self.members.push(Member { home, part });
        Ok(trap.map_or(Ok(InstanceId(self.members.len() - 1)), Err))
    }

    fn find(&mut self, InstanceId(member): InstanceId) -> Result<(&mut Instance, u32), Error> {
        let Member { home, part } = self.members[member];
        let home = self.homes.get_mut(&home).ok_or_else(|| Error::Internal("an instance has no home".into()))?;
        Ok((&mut home.instance, part as u32))
    }

    /// Calls a function that an instance exports.
    pub fn invoke(
        &mut self,
        instance: InstanceId,
        function: &str,
        args: &[Value],
        deadline: Option<Instant>,
    ) -> Result<Outcome, Error> {
        let (instance, part) = self.find(instance)?;
        instance.invoke_of(part, function, args, deadline)
    }

    /// Returns the value of a global that an instance exports.
    pub fn global(&mut self, instance: InstanceId, name: &str) -> Result<Option<Value>, Error> {
        let (instance, part) = self.find(instance)?;
        instance.global_of(part, name)
    }
}

impl LinkedModule {
    /// Returns the same source in a program where its home's modules begin at index `first`.
    fn moved(&self, first: usize) -> Self {
        let moved = |target: &Target| Target { part: first + target.part, item: target.item };
        Self { targets: self.targets.iter().map(|target| target.as_ref().map(moved)).collect(), ..self.clone() }
    }
}

fn exports(module: &Unlinked<'_>) -> Arc<Vec<(String, ExportKind)>> {
    Arc::new(module.exports.iter().map(|export| (export.name.to_owned(), export.kind)).collect())
}

fn kind(kind: ImportKind) -> &'static str {
    match kind {
        ImportKind::Function => "function",
        ImportKind::Table => "table",
        ImportKind::Memory => "memory",
        ImportKind::Global => "global",
        ImportKind::Tag => "tag",
    }
}

/// Sets the minimum of a module's own tables and memories to the size they have grown to.
fn resize(module: &mut Unlinked<'_>, part: &Part, snapshot: &Snapshot) {
    let kinds: Vec<_> = module.imports.iter().map(|import| import.kind).collect();
    let imported = |kind: ImportKind| kinds.iter().filter(|k| **k == kind).count();
    let (tables, memories) = (imported(ImportKind::Table), imported(ImportKind::Memory));
    for (table, index) in module.tables.iter_mut().zip(&part.tables).skip(tables) {
        table.minimum = snapshot.tables[*index as usize].len() as u64;
    }
    for (memory, index) in module.memories.iter_mut().zip(&part.memories).skip(memories) {
        memory.minimum = snapshot.memories[*index as usize].len() as u64 / PAGE;
    }
}

/// Carries the state of a home's instances over into a program that their modules are part of.
fn carry(program: &Module<'_>, new: &[Part], old: &[Part], snapshot: &Snapshot, state: &mut State) {
    let pairs = || old.iter().zip(new);
    let functions: HashMap<u32, u32> =
        pairs().flat_map(|(old, new)| old.functions.iter().copied().zip(new.functions.iter().copied())).collect();
    let word = |ty: ValType, word: u64| match ((word as u32).checked_sub(1), ty) {
        (Some(index), ValType::FuncRef) => functions.get(&index).map_or(0, |new| function_reference(program, *new)),
        _ => word,
    };
    for (old, new) in pairs() {
        for (from, to) in old.globals.iter().zip(&new.globals) {
            let ty = program.globals[*to as usize].ty;
            let bits = snapshot.globals[*from as usize];
            let bits = if ty == ValType::FuncRef { word(ty, bits as u64).into() } else { bits };
            state.globals.insert(*to, bits);
        }
        for (from, to) in old.tables.iter().zip(&new.tables) {
            let ty = program.tables[*to as usize].element;
            let elements = snapshot.tables[*from as usize].iter().map(|element| word(ty, *element));
            state.tables.insert(*to, elements.collect());
        }
        for (from, to) in old.memories.iter().zip(&new.memories) {
            state.memories.insert(*to, snapshot.memories[*from as usize].clone());
        }
    }
    state.exceptions = state.exceptions.max(snapshot.exceptions);
    // Segments are numbered in order, part by part.
    let bounds = |first: fn(&Part) -> u32, parts: &[Part], end: usize| {
        parts.iter().map(first).skip(1).chain([end as u32]).collect::<Vec<_>>()
    };
    for (first, left, into) in [
        ((|part| part.data) as fn(&Part) -> u32, &snapshot.data, &mut state.data),
        (|part| part.elements, &snapshot.elements, &mut state.elements),
    ] {
        for ((old, end), new) in old.iter().zip(bounds(first, old, left.len())).zip(new) {
            for (i, index) in (first(old)..end).enumerate() {
                into.insert(first(new) + i as u32, left[index as usize]);
            }
        }
    }
}
