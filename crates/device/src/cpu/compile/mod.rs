//! Compiles PTX to native code.
//!
//! Every function becomes CLIF (`translate`), and CLIF becomes machine code, in parallel and independently of the
//! others. `link` then puts the code of all functions side by side. The result is an [`Object`], which can be kept; it
//! gets its addresses when it is placed in memory.

mod arithmetic;
mod calls;
mod helpers;
mod host;
mod late;
mod link;
mod memory;
mod object;
mod registers;
mod threads;
mod translate;

pub(super) use object::Object;

use super::ast;
use super::ast::Function;
use super::mapping::Mapping;
use super::parse::{Map, Text, at_line, parse};
use super::stack::FRAME;
use crate::{CodeOptions, Error, Result};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, Signature, UserExternalName, types};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{CompiledCode, Context};
use cranelift_frontend::FunctionBuilderContext;
use object::{Fixup, LateObject, Target};
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    /// Whether every memory access checks its alignment and stops the launch where a GPU would.
    pub(super) strict: bool,
    /// Bytes of PTX from which on functions are compiled when they are first called.
    pub(super) late_from: u64,
}

#[cfg(test)]
impl Default for Options {
    fn default() -> Self {
        Self { strict: false, late_from: u64::MAX }
    }
}

/// A loaded module: where its kernels are. The mappings live as long as it does.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) kernels: HashMap<String, Kernel>,
    /// Bytes of shared memory in a workgroup.
    pub(super) shared_bytes: usize,
    /// Functions that are compiled when they are first called.
    late: Option<late::Called>,
    _code: Mapping,
    _data: Arc<Mapping>,
}

impl Program {
    /// Compiles a function that was called and is not compiled yet.
    pub(super) fn make(&self, function: u32) -> Result<()> {
        match &self.late {
            Some(late) => late.make(function),
            None => Err(Error::Codegen(format!("function {function} is not one that is compiled when it is called"))),
        }
    }

    /// Returns the module's bytes, to be kept, if functions were compiled since it was loaded.
    pub(super) fn grown(&self) -> Option<Vec<u8>> {
        self.late.as_ref()?.grown()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Kernel {
    /// The address of an `extern "C" fn(*const u8)`, whose argument points to the parameters.
    pub(super) address: usize,
    pub(super) parameters: Vec<ast::Type>,
}

pub(super) fn compile(ptx: &str, options: Options, how: CodeOptions) -> Result<Object<'static>> {
    let start = Instant::now();
    let (module, bodies) = parse(ptx)?;
    tracing::debug!(bytes = ptx.len(), functions = bodies.len(), time = ?start.elapsed(), "functions found");
    let isa = host()?;
    let unit = lay_out(ptx, &module, isa, options)?;
    let compiled = module
        .functions
        .par_iter()
        .zip(bodies)
        .enumerate()
        .map_init(Default::default, |scratch, (index, (function, text))| {
            how.check(|| format!("`{}` of the PTX", function.name))?;
            match unit.is_late(index as u32) {
                true => late::stub(&unit, index as u32, scratch),
                false => native(&unit, function, &text, scratch),
            }
        })
        .collect::<Result<Vec<_>>>()?;
    let (code, offsets, code_fixups) = link::link(&compiled)?;
    let mut object = Object { code: code.into(), code_fixups, data_bytes: unit.data_bytes, ..Object::default() };
    object.shared_bytes = unit.shared_bytes;
    for global in &module.globals {
        initialize(&unit, global, &offsets, &mut object)?;
    }
    for index in (0..offsets.len() as u32).filter(|index| unit.is_late(*index)) {
        object.data_fixups.push(Fixup { at: unit.slot(index), target: Target::Late(index), addend: 0 });
    }
    let kernels = module.functions.iter().zip(&offsets).filter(|(f, _)| f.entry);
    let kernels = kernels.map(|(f, &at)| object::KernelPlace {
        name: f.name.to_owned(),
        at,
        parameters: f.signature.parameters.clone(),
    });
    object.kernels = kernels.collect();
    object.late = unit.late.map(|_| LateObject { text: ptx.to_owned().into(), offsets, made: Vec::new() });
    Ok(object)
}

/// What this machine's code depends on besides the PTX.
pub(super) fn target(options: Options) -> Result<String> {
    let isa = host()?;
    let features: Vec<_> = isa.isa_flags().iter().map(ToString::to_string).collect();
    Ok(format!("{} {} {features:?} {options:?}", isa.triple(), isa.flags()))
}

/// Does everything but generate machine code.
#[cfg(test)]
pub(super) fn compile_only(ptx: &str) -> Result<()> {
    let (module, bodies) = parse(ptx)?;
    let unit = lay_out(ptx, &module, host()?, Options { strict: true, late_from: u64::MAX })?;
    let mut scratch = Scratch::default();
    module.functions.iter().zip(bodies).try_for_each(|(function, text)| {
        let body = text.read(function)?;
        scratch.context.clear();
        scratch.context.func.signature = unit.function_signature(function);
        translate::translate(&unit, function, &body, &mut scratch.context.func, &mut scratch.builder)
    })
}

/// Namespaces of names in CLIF. The index of a name is a function's index, a number of `host`, or an offset in the
/// data.
const FUNCTION: u32 = 0;
const HOST: u32 = 1;
const DATA: u32 = 2;

/// What every function needs to know about its module.
pub(super) struct Unit<'a> {
    source: &'a str,
    module: &'a ast::Module<'a>,
    /// Index in `module.functions`, by name.
    functions: Map<'a, u32>,
    /// Offset in the module's data, by name.
    data: Map<'a, u32>,
    data_bytes: u64,
    /// Offset in a workgroup's shared memory, by name.
    shared: Map<'a, u32>,
    shared_bytes: u64,
    isa: OwnedTargetIsa,
    options: Options,
    /// Offset in the data of the slots of functions that are compiled when they are called, if there are any.
    late: Option<u32>,
}

impl Unit<'_> {
    fn error(&self, line: u32, message: impl Into<String>) -> Error {
        at_line(self.source, line, message)
    }

    /// Whether a function is compiled when it is first called.
    fn is_late(&self, index: u32) -> bool {
        let function = &self.module.functions[index as usize];
        self.late.is_some() && !function.entry && !is_cold(function.name)
    }

    /// Offset in the data of the function's slot, which holds its address.
    fn slot(&self, index: u32) -> u32 {
        self.late.unwrap_or_default() + 8 * index
    }

    fn call_conv(&self) -> CallConv {
        self.isa.default_call_conv()
    }

    /// The CLIF signature of a function. A kernel takes the address of its parameters. A cold function preserves all
    /// registers of its caller, and so returns its result through a pointer. Other functions are as in
    /// [`Unit::signature`].
    fn function_signature(&self, function: &ast::Function<'_>) -> Signature {
        let mut signature = Signature::new(self.call_conv());
        let pointer = AbiParam::new(types::I64);
        if function.entry {
            signature.params.push(pointer);
        } else if is_cold(function.name) {
            signature.call_conv = CallConv::PreserveAll;
            signature.params.extend((function.signature.result != ast::Returns::Nothing).then_some(pointer));
            signature.params.extend(function.signature.parameters.iter().map(|t| AbiParam::new(clif_type(*t))));
        } else {
            return self.signature(&function.signature);
        }
        signature
    }

    /// Whether the module is a program with threads.
    fn has_threads(&self) -> bool {
        self.functions.contains_key(host::LOOK)
    }

    /// The CLIF signature for a PTX signature. Results in cells go through a pointer that the caller passes first, so
    /// that a function and a caller through a prototype agree without knowing the types in the cells.
    fn signature(&self, ptx: &ast::Signature) -> Signature {
        let mut signature = Signature::new(self.call_conv());
        if let ast::Returns::Cells(_) = ptx.result {
            signature.params.push(AbiParam::new(types::I64));
        }
        signature.params.extend(ptx.parameters.iter().map(|t| AbiParam::new(clif_type(*t))));
        if let ast::Returns::Register(ty) = ptx.result {
            signature.returns.push(AbiParam::new(clif_type(ty)));
        }
        signature
    }
}

/// Whether a function is a slow path: one is called, very rarely, after each load and store. If such a call were an
/// ordinary one, nothing could stay in a register across any access.
fn is_cold(name: &str) -> bool {
    name.starts_with("cold_")
}

/// The CLIF type that holds a value of this type; narrow integers are held in 32 bits.
fn clif_type(ty: ast::Type) -> types::Type {
    match ty {
        ast::Type::F32 => types::F32,
        ast::Type::F64 => types::F64,
        ast::Type::Pred => types::I8,
        _ if ty.bytes() == 8 => types::I64,
        _ => types::I32,
    }
}

/// Returns the code generator for this machine; set up once.
fn host() -> Result<OwnedTargetIsa> {
    static HOST: OnceLock<OwnedTargetIsa> = OnceLock::new();
    if let Some(isa) = HOST.get() {
        return Ok(isa.clone());
    }
    let failed = |e: &dyn std::fmt::Display| Error::Codegen(format!("no code generator for this machine: {e}"));
    let mut flags = settings::builder();
    let verifier = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [
        ("opt_level", "none"),
        ("enable_verifier", verifier),
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
        ("unwind_info", "false"),
    ] {
        flags.set(name, value).map_err(|e| failed(&e))?;
    }
    let isa = cranelift_native::builder().map_err(|e| failed(&e))?;
    let isa = isa.finish(settings::Flags::new(flags)).map_err(|e| failed(&e))?;
    Ok(HOST.get_or_init(|| isa).clone())
}

/// Assigns every name its place.
fn lay_out<'a>(
    source: &'a str,
    module: &'a ast::Module<'a>,
    isa: OwnedTargetIsa,
    options: Options,
) -> Result<Unit<'a>> {
    let twice = |line, name: &str| at_line(source, line, format!("`{name}` is defined twice"));
    let mut functions = Map::default();
    for (index, f) in module.functions.iter().enumerate() {
        if functions.insert(f.name, index as u32).is_some() {
            return Err(twice(f.line, f.name));
        }
    }
    let mut bytes = 0u64;
    let mut data = Map::default();
    for global in &module.globals {
        bytes = bytes.next_multiple_of(global.align as u64);
        if bytes + global.bytes > u32::MAX as u64 {
            return Err(at_line(source, global.line, "the module's data is too large in total"));
        }
        if data.insert(global.name, bytes as u32).is_some() || functions.contains_key(global.name) {
            return Err(twice(global.line, global.name));
        }
        bytes += global.bytes;
    }
    let late = (source.len() as u64 >= options.late_from).then(|| bytes.next_multiple_of(8));
    if let Some(at) = late {
        bytes = at + 8 * module.functions.len() as u64;
        if bytes > u32::MAX as u64 {
            return Err(at_line(source, 1, "the module has too many functions and too much data"));
        }
    }
    let late = late.map(|at| at as u32);
    let mut shared_bytes = 0u64;
    let mut shared = Map::default();
    for array in &module.shared {
        shared_bytes = shared_bytes.next_multiple_of(array.align as u64);
        if shared_bytes + array.bytes > i32::MAX as u64 {
            return Err(at_line(source, array.line, "the shared arrays are too large in total"));
        }
        if shared.insert(array.name, shared_bytes as u32).is_some() || data.contains_key(array.name) {
            return Err(twice(array.line, array.name));
        }
        shared_bytes += array.bytes;
    }
    Ok(Unit { source, module, functions, data, data_bytes: bytes, shared, shared_bytes, isa, options, late })
}

/// Writes a global's initial values. Values that are addresses become fixups.
fn initialize(unit: &Unit<'_>, global: &ast::Global<'_>, functions: &[u32], object: &mut Object<'_>) -> Result<()> {
    let data = object.data.to_mut();
    let first = unit.data[global.name] as usize;
    let element = global.element as usize;
    let end = first + global.initial.len() * element;
    if data.len() < end {
        data.resize(end, 0);
    }
    for (n, initial) in global.initial.iter().enumerate() {
        let at = first + n * element;
        let target = match *initial {
            ast::Initial::Bits(bits) => {
                data[at..at + element].copy_from_slice(&bits.to_le_bytes()[..element]);
                continue;
            }
            ast::Initial::Symbol(name) => match (unit.functions.get(name), unit.data.get(name)) {
                (Some(&index), _) if unit.is_late(index) => Target::Late(index),
                (Some(&index), _) => Target::Code(functions[index as usize]),
                (_, Some(&offset)) => Target::Data(offset),
                _ => return Err(unit.error(global.line, format!("`{name}` is not defined in this module"))),
            },
        };
        if element != 8 {
            return Err(unit.error(global.line, "an address has 64 bits"));
        }
        object.data_fixups.push(Fixup { at: at as u32, target, addend: 0 });
    }
    Ok(())
}

/// Allocations that a worker reuses from one function to the next.
struct Scratch {
    context: Context,
    builder: FunctionBuilderContext,
}

impl Default for Scratch {
    fn default() -> Self {
        Self { context: Context::new(), builder: FunctionBuilderContext::new() }
    }
}

/// A function's machine code, and the names in its relocations.
pub(super) struct Native {
    code: CompiledCode,
    /// By `UserExternalNameRef`.
    names: Vec<UserExternalName>,
}

fn native<'a>(unit: &Unit<'a>, ptx: &ast::Function<'a>, text: &Text<'a>, scratch: &mut Scratch) -> Result<Native> {
    let Scratch { context, builder } = scratch;
    context.clear();
    context.func.signature = unit.function_signature(ptx);
    translate::translate(unit, ptx, &text.read(ptx)?, &mut context.func, builder)?;
    finished(unit, ptx, context)
}

/// Compiles the CLIF in `context` to machine code.
fn finished(unit: &Unit<'_>, ptx: &ast::Function<'_>, context: &mut Context) -> Result<Native> {
    let compiled = context
        .compile(&*unit.isa, &mut ControlPlane::default())
        .map_err(|e| Error::Codegen(format!("`{}`, PTX line {}: {:?}", ptx.name, ptx.line, e.inner)));
    compiled?;
    let names = context.func.params.user_named_funcs().values().cloned().collect();
    match context.take_compiled_code() {
        Some(code) => {
            let frame = code.buffer.frame_layout().map_or(0, |layout| layout.frame_to_fp_offset as usize);
            if frame > FRAME {
                let Function { name, line, .. } = ptx;
                let message =
                    format!("`{name}`, PTX line {line}, takes {frame} bytes of stack; a function may take {FRAME}");
                return Err(Error::Codegen(message));
            }
            Ok(Native { code, names })
        }
        None => Err(Error::Codegen(format!("`{}` compiled to no code", ptx.name))),
    }
}
