//! One module, five runs: Wasmtime, and four builds of gpu-run on `cpu`. They must agree on every result, every trap, the memory and
//! the exported globals.
//!
//! Both sides canonicalise NaN, so bits are compared. What is not compared: function references beyond being null (their
//! numbers are an engine's own), and anything after a stack overflow, whose depth the specification leaves open.

use crate::random::Random;
use gpu_run_abi::{Layout, TrapCode};
use gpu_run_compiler::{Build, CompileOptions, Compiled, Entry, Placement, Program, Value, WasmFeatures};
use gpu_run_device::{Device, cpu};
use gpu_run_run::{End, Instance};
use gpu_run_wasi::{Builder, Stdio};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use wasmtime::{Config, Engine, Extern, ExternType, Module, Store, Trap, Val, ValType};

/// Argument sets each function is called with.
const CALLS: usize = 5;
/// A module's calls are short; this is for those that never end.
const LIMIT: Duration = Duration::from_secs(120);

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let mut config = Config::new();
    config.cranelift_nan_canonicalization(true).max_wasm_stack(1 << 20);
    config.wasm_exceptions(true).wasm_memory64(true).wasm_multi_memory(true).wasm_tail_call(true);
    config.wasm_relaxed_simd(true).relaxed_simd_deterministic(true).wasm_function_references(true);
    crate::configure(&mut config);
    Engine::new(&config).expect("Wasmtime takes its own settings")
});
static DEVICE: LazyLock<Arc<dyn Device>> = LazyLock::new(cpu::open);

/// What was compared, and what was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compared {
    /// Modules that ran on all sides.
    pub(crate) modules: u64,
    /// Of those: nothing could be called, as they export no function, or trap when they are instantiated.
    pub(crate) silent: u64,
    pub(crate) calls: u64,
    /// Calls that trapped.
    pub(crate) traps: u64,
    /// Seeds that gave no module.
    pub(crate) unmade: u64,
    /// Modules Wasmtime has a limit for.
    pub(crate) refused: u64,
    /// Modules gpu-run has a limit for.
    pub(crate) limited: u64,
}

impl Compared {
    /// Seeds that nothing was compared for.
    pub(crate) fn skipped(&self) -> u64 {
        self.unmade + self.refused + self.limited
    }
}

impl std::ops::AddAssign for Compared {
    fn add_assign(&mut self, other: Self) {
        self.modules += other.modules;
        self.silent += other.silent;
        self.calls += other.calls;
        self.traps += other.traps;
        self.unmade += other.unmade;
        self.refused += other.refused;
        self.limited += other.limited;
    }
}

/// How a call, or an instantiation, ended.
#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    Values(Vec<Value>),
    Trapped(TrapCode),
}

/// Compares the runs of a module, of which Wasmtime gets a version of its own; an `Err` says how they differ.
pub(crate) fn compare(wasm: &[u8], theirs: &[u8], random: &mut Random) -> Result<Compared, String> {
    let Ok(module) = Module::new(&ENGINE, theirs) else {
        return Ok(Compared { refused: 1, ..Compared::default() });
    };
    let programs = BUILDS.map(|(_, build)| load(wasm, build));
    let mut ours = Vec::new();
    for program in programs {
        match program {
            Ok(program) => ours.push(program),
            Err(gpu_run_compiler::Error::Limit(_)) => return Ok(Compared { limited: 1, ..Compared::default() }),
            Err(error) => return Err(format!("Wasmtime takes the module, gpu-run does not: {error}")),
        }
    }
    let mut compared = Compared { modules: 1, silent: 1, ..Compared::default() };
    let mut side = match Sides::new(&module, wasm, &ours)? {
        Some(sides) => sides,
        None => return Ok(compared),
    };
    for (function, params) in functions(&module) {
        for _ in 0..CALLS {
            let args: Vec<Value> = params.iter().map(|ty| argument(ty, random)).collect();
            compared.calls += 1;
            compared.silent = 0;
            if side.call(&function, &args)? {
                continue;
            }
            // A trap leaves things as they were at that moment, fuel included: compare, and go on with fresh instances.
            compared.traps += 1;
            side.compare_state().map_err(|difference| format!("after {function}{args:?}: {difference}"))?;
            side = match Sides::new(&module, wasm, &ours)? {
                Some(sides) => sides,
                None => return Ok(compared),
            };
        }
    }
    side.compare_state()?;
    Ok(compared)
}

fn load(wasm: &[u8], build: Build) -> Result<Arc<Program>, gpu_run_compiler::Error> {
    let options = CompileOptions::new(build, Entry::Exports);
    let compiled = Compiled::with_features(wasm, &options, WasmFeatures::WASM3 | WasmFeatures::THREADS, None)?;
    crate::judge(compiled.ptx()).map_err(gpu_run_compiler::Error::Internal)?;
    Ok(Arc::new(Program::load(DEVICE.clone(), Arc::new(compiled))?))
}

/// Exported memories and their numbers.
fn memories(wasm: &[u8]) -> HashMap<String, usize> {
    let sections = wasmparser::Parser::new(0).parse_all(wasm).map_while(Result::ok);
    let exports = sections.filter_map(|payload| match payload {
        wasmparser::Payload::ExportSection(exports) => Some(exports),
        _ => None,
    });
    let memories = exports.flatten().map_while(Result::ok).filter(|e| e.kind == wasmparser::ExternalKind::Memory);
    memories.map(|export| (export.name.to_owned(), export.index as usize)).collect()
}

/// Exported functions that can be called from outside, and their parameters.
fn functions(module: &Module) -> Vec<(String, Vec<ValType>)> {
    let can_be_made = |ty: &ValType| ty.as_ref().is_none_or(|reference| reference.is_nullable());
    let function = |export: wasmtime::ExportType<'_>| match export.ty() {
        ExternType::Func(ty) if ty.params().all(|ty| can_be_made(&ty)) => {
            Some((export.name().to_owned(), ty.params().collect()))
        }
        _ => None,
    };
    module.exports().filter_map(function).collect()
}

fn argument(ty: &ValType, random: &mut Random) -> Value {
    match ty {
        ValType::I32 => Value::I32(random.i32()),
        ValType::I64 => Value::I64(random.i64()),
        ValType::F32 => Value::F32(random.f32()),
        ValType::F64 => Value::F64(random.f64()),
        ValType::V128 => Value::V128(random.v128()),
        ty if ty.is_externref() => Value::ExternRef(None),
        ValType::Ref(ty) if ty.heap_type().is_exn() => Value::ExnRef(None),
        _ => Value::FuncRef(None),
    }
}

/// gpu-run's builds. A speculative one may stop an instance; what it says before must be right.
const BUILDS: [(&str, Build); 4] = [
    ("linear", Build::Exact(Layout::Linear)),
    ("interleaved", Build::Exact(Layout::Interleaved)),
    ("speculative", Build::Speculative(Placement::Interleaved)),
    ("speculative linear", Build::Speculative(Placement::Linear)),
];

/// The same instance in Wasmtime and in gpu-run's builds.
struct Sides {
    store: Store<()>,
    theirs: wasmtime::Instance,
    ours: Vec<(&'static str, Instance)>,
    /// Numbers of exported memories.
    memories: HashMap<String, usize>,
}

impl Sides {
    /// Instantiates on all sides; `None` if all of them trapped alike.
    fn new(module: &Module, wasm: &[u8], programs: &[Arc<Program>]) -> Result<Option<Self>, String> {
        let mut store = Store::new(&ENGINE, ());
        let theirs = wasmtime::Instance::new(&mut store, module, &[]);
        let expected = match &theirs {
            Ok(_) => Outcome::Values(Vec::new()),
            Err(error) => Outcome::Trapped(trap(error)?),
        };
        let mut ours = Vec::new();
        for ((name, build), program) in BUILDS.into_iter().zip(programs) {
            let instance = Instance::new(program.clone(), Builder::new().build(Stdio::null()), None);
            let got = match instance.map_err(|error| format!("{name}: {error}"))? {
                Ok(instance) => {
                    ours.push((name, instance));
                    Outcome::Values(Vec::new())
                }
                Err(trap) if trap.code == TrapCode::Inexact && build.is_speculative() => continue,
                Err(trap) => Outcome::Trapped(comparable(trap.code)),
            };
            same(name, "instantiation", &expected, &got)?;
        }
        let memories = memories(wasm);
        Ok(theirs.ok().filter(|_| !ours.is_empty()).map(|theirs| Self { store, theirs, ours, memories }))
    }

    /// Calls a function on all sides. False if it trapped.
    fn call(&mut self, function: &str, args: &[Value]) -> Result<bool, String> {
        let expected = self.call_theirs(function, args)?;
        let what = format!("{function}{args:?}");
        let mut ended = Vec::new();
        for (name, instance) in &mut self.ours {
            let outcome = instance.invoke(function, args, Some(Instant::now() + LIMIT));
            let outcome = outcome.map_err(|error| format!("{name}: {what}: {error}"))?;
            let got = match outcome.end {
                End::Trapped(trap) if trap.code == TrapCode::Inexact && name.starts_with("speculative") => {
                    ended.push(*name);
                    continue;
                }
                End::Trapped(trap) => Outcome::Trapped(comparable(trap.code)),
                End::Returned => Outcome::Values(outcome.results.into_iter().map(anonymous).collect()),
                End::Exited(code) => {
                    return Err(format!("{name}: {what} exited with {code}, but nothing was imported"));
                }
            };
            same(name, &what, &expected, &got)?;
        }
        self.ours.retain(|(name, _)| !ended.contains(name));
        Ok(matches!(expected, Outcome::Values(_)))
    }

    fn call_theirs(&mut self, function: &str, args: &[Value]) -> Result<Outcome, String> {
        let function = self.theirs.get_func(&mut self.store, function).ok_or("Wasmtime does not export it")?;
        let args: Vec<Val> = args.iter().map(|arg| to_wasmtime(*arg)).collect();
        let mut results = vec![Val::I32(0); function.ty(&self.store).results().len()];
        match function.call(&mut self.store, &args, &mut results) {
            Ok(()) => Ok(Outcome::Values(results.iter().map(from_wasmtime).collect::<Result<_, _>>()?)),
            Err(error) => Ok(Outcome::Trapped(trap(&error)?)),
        }
    }

    /// Memory and exported globals.
    fn compare_state(&mut self) -> Result<(), String> {
        let exports: Vec<(String, Extern)> = self
            .theirs
            .exports(&mut self.store)
            .map(|export| (export.name().to_owned(), export.into_extern()))
            .collect();
        for (export, what) in exports {
            let shared = match &what {
                Extern::SharedMemory(memory) => Some(copied(memory)?),
                _ => None,
            };
            for (name, instance) in &self.ours {
                match &what {
                    Extern::Memory(_) | Extern::SharedMemory(_) => {
                        let theirs = match &what {
                            Extern::Memory(memory) => memory.data(&self.store),
                            _ => shared.as_deref().unwrap_or_default(),
                        };
                        let index = self.memories.get(&export).copied().unwrap_or(0);
                        let ours = instance.memory(index).map_err(|error| error.to_string())?;
                        compare_memory(theirs, &ours).map_err(|at| format!("{name}: memory {index}: {at}"))?;
                    }
                    Extern::Global(global) => {
                        let expected = from_wasmtime(&global.get(&mut self.store))?;
                        let got = instance.global(&export).map_err(|error| error.to_string())?.map(anonymous);
                        if got != Some(expected) {
                            return Err(format!(
                                "{name}: global {export}: Wasmtime has {expected:x?}, gpu-run {got:x?}"
                            ));
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn same(side: &str, what: &str, expected: &Outcome, got: &Outcome) -> Result<(), String> {
    let overflow = Outcome::Trapped(TrapCode::StackOverflow);
    // So many exceptions are kept, and no more.
    let lost = Outcome::Trapped(TrapCode::LostException);
    match expected == got || *expected == overflow || *got == overflow || *got == lost {
        true => Ok(()),
        false => Err(format!("{side}: {what}: Wasmtime gives {expected:x?}, gpu-run {got:x?}")),
    }
}

/// What is in a shared memory. Wasmtime gives no bytes of one that could change meanwhile: a module copies them to a memory of its own.
fn copied(memory: &wasmtime::SharedMemory) -> Result<Vec<u8>, String> {
    let (ty, pages) = (memory.ty(), memory.size());
    let index = if ty.is_64() { "i64" } else { "i32" };
    let limits = format!("{} {}", ty.minimum(), ty.maximum().ok_or("a shared memory has a maximum")?);
    let text = format!(
        "(module
  (import \"\" \"\" (memory $shared {index} {limits} shared))
  (memory $copy (export \"copy\") {index} {pages})
  (func (export \"\") (memory.copy $copy $shared
    ({index}.const 0) ({index}.const 0) ({index}.mul (memory.size $copy) ({index}.const 65536)))))"
    );
    let copy = || -> wasmtime::Result<Vec<u8>> {
        let mut store = Store::new(&ENGINE, ());
        let module = Module::new(&ENGINE, text)?;
        let instance = wasmtime::Instance::new(&mut store, &module, &[memory.clone().into()])?;
        instance.get_typed_func::<(), ()>(&mut store, "")?.call(&mut store, ())?;
        Ok(instance.get_memory(&mut store, "copy").map(|memory| memory.data(&store).to_vec()).unwrap_or_default())
    };
    copy().map_err(|error| format!("a shared memory of Wasmtime's cannot be read: {error}"))
}

fn compare_memory(theirs: &[u8], ours: &[u8]) -> Result<(), String> {
    if theirs.len() != ours.len() {
        return Err(format!("Wasmtime has {} bytes, gpu-run {}", theirs.len(), ours.len()));
    }
    match theirs.iter().zip(ours).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => {
            let end = (at + 8).min(theirs.len());
            Err(format!("at {at:#x} Wasmtime has {:02x?}, gpu-run {:02x?}", &theirs[at..end], &ours[at..end]))
        }
    }
}

/// Wasmtime's trap as ours.
fn trap(error: &wasmtime::Error) -> Result<TrapCode, String> {
    Ok(match error.downcast_ref::<Trap>() {
        Some(Trap::UnreachableCodeReached) => TrapCode::Unreachable,
        Some(Trap::MemoryOutOfBounds) => TrapCode::MemoryOutOfBounds,
        Some(Trap::TableOutOfBounds) => TrapCode::TableOutOfBounds,
        Some(Trap::IndirectCallToNull) => TrapCode::IndirectCallToNull,
        Some(Trap::BadSignature) => TrapCode::BadSignature,
        Some(Trap::IntegerDivisionByZero) => TrapCode::IntegerDivisionByZero,
        Some(Trap::IntegerOverflow) => TrapCode::IntegerOverflow,
        Some(Trap::BadConversionToInteger) => TrapCode::BadConversionToInteger,
        Some(Trap::StackOverflow) => TrapCode::StackOverflow,
        Some(Trap::NullReference) => TrapCode::NullReference,
        Some(Trap::HeapMisaligned | Trap::AtomicWaitNonSharedMemory) => TrapCode::Unreachable,
        None if error.is::<wasmtime::ThrownException>() => TrapCode::UncaughtException,
        _ => return Err(format!("Wasmtime failed: {error}")),
    })
}

/// Wasmtime does not tell an index outside a table in an indirect call from any other, nor one null reference from another.
fn comparable(code: TrapCode) -> TrapCode {
    match code {
        TrapCode::UndefinedElement => TrapCode::TableOutOfBounds,
        TrapCode::NullException | TrapCode::NullFunction => TrapCode::NullReference,
        // See `atomics.rs`; and below.
        TrapCode::UnalignedAtomic | TrapCode::WaitOnUnshared => TrapCode::Unreachable,
        other => other,
    }
}

/// References without the number that only their engine knows.
fn anonymous(value: Value) -> Value {
    match value {
        Value::FuncRef(index) => Value::FuncRef(index.map(|_| 0)),
        Value::ExternRef(number) => Value::ExternRef(number.map(|_| 0)),
        Value::ExnRef(number) => Value::ExnRef(number.map(|_| 0)),
        number => number,
    }
}

fn to_wasmtime(value: Value) -> Val {
    match value {
        Value::I32(v) => Val::I32(v),
        Value::I64(v) => Val::I64(v),
        Value::F32(bits) => Val::F32(bits),
        Value::F64(bits) => Val::F64(bits),
        Value::V128(bits) => Val::V128(bits.into()),
        Value::FuncRef(_) => Val::FuncRef(None),
        Value::ExternRef(_) => Val::ExternRef(None),
        Value::ExnRef(_) => Val::ExnRef(None),
        Value::AnyRef => Val::AnyRef(None),
    }
}

fn from_wasmtime(value: &Val) -> Result<Value, String> {
    Ok(match value {
        Val::I32(v) => Value::I32(*v),
        Val::I64(v) => Value::I64(*v),
        Val::F32(bits) => Value::F32(*bits),
        Val::F64(bits) => Value::F64(*bits),
        Val::V128(bits) => Value::V128(bits.as_u128()),
        Val::FuncRef(function) => Value::FuncRef(function.as_ref().map(|_| 0)),
        Val::ExternRef(reference) => Value::ExternRef(reference.as_ref().map(|_| 0)),
        Val::ExnRef(reference) => Value::ExnRef(reference.as_ref().map(|_| 0)),
        other => return Err(format!("Wasmtime gives {other:?}, which no module of ours has")),
    })
}
