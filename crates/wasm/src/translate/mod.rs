//! Translates wasm functions to CLIF, one operator at a time.
//!
//! A function's operands live on a stack of CLIF values, its locals in frontend variables or in its frame ([`locals`]),
//! its control structure in a stack of [`control::Frame`]s. Each operator is one arm of one table: [`numeric`],
//! [`memory`], [`table`], [`control`], [`calls`], [`exception`], [`simd`], [`atomic`].
//!
//! Operators carry the indices of their own module; [`crate::link::Part`] maps them to the program's.

mod atomic;
mod backtrace;
mod calls;
mod control;
pub(crate) mod device;
mod exception;
pub(crate) mod guest;
mod locals;
mod memory;
mod numeric;
mod pace;
mod side;
mod simd;
mod table;

pub use table::function_reference;

use crate::callgraph::Survey;
use crate::code::{Code, signature};
use crate::declared::unsupported;
use crate::decode::Module;
use crate::error::Error;
use crate::link::Part;
use crate::runtime;
use crate::slot::{SlotLayout, hot, is_hot};
use crate::types::{FuncType, ValType};
use crate::work::Sum;
use control::Frame;
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, Block, InstBuilder, SigRef, Signature, SourceLoc, UserExternalName, UserFuncName, Value, types,
};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_control::ControlPlane;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use gpu_run_abi::guest::GuestCall;
use gpu_run_abi::intrinsic::{namespace, region};
use gpu_run_abi::layout::{PAGE, field};
use gpu_run_abi::{Build, Layout, TrapCode, TrapRecord};
use rayon::prelude::*;
use std::collections::HashMap;
use std::time::Instant;
use wasmparser::{FunctionBody, Operator};

#[derive(Clone, Debug)]
pub struct Options {
    pub build: Build,
    /// Exported functions that the host may call, by function index, in the order of the kernel's selectors.
    pub entries: Vec<u32>,
    /// When compiling has to stop.
    pub until: Option<Instant>,
    /// Whether functions note their calls, for backtraces.
    pub backtrace: bool,
    /// Whether to run Cranelift's optimiser. Without it, the CLIF follows the operators one by one, for people to read.
    pub optimize: bool,
}

impl Options {
    /// Returns an error if there is no time left for another function.
    fn check(&self, function: u32) -> Result<(), Error> {
        match self.until {
            Some(until) if Instant::now() >= until => Err(Error::Late(format!("function {function}"))),
            _ => Ok(()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    Wasm,
    /// An import's stub.
    Stub,
    Runtime,
    Kernel,
}

#[derive(Clone, Debug)]
pub struct Function {
    /// For trap records: the index in the module, or [`TrapRecord::NO_FUNCTION`].
    pub index: u32,
    pub kind: FunctionKind,
    /// A name for people; not unique.
    pub name: String,
    /// Functions with the same number call each other in a cycle.
    pub cycle: Option<u32>,
    pub clif: ir::Function,
}

/// Everything that runs on the device, as CLIF.
#[derive(Debug)]
pub struct Program {
    pub functions: Vec<Function>,
    pub slots: SlotLayout,
    /// Bytes that memory 0 always has, at least.
    pub least_memory: u64,
    /// The bytes at [`SlotLayout::read_only`].
    pub read_only: Vec<u8>,
    /// By function index: whether the function needs a code address.
    pub address_taken: Vec<bool>,
}

/// What the translation of every function needs.
pub(crate) struct Env<'a> {
    pub(crate) module: &'a Module<'a>,
    pub(crate) slots: &'a SlotLayout,
    pub(crate) layout: Layout,
    /// Whether atomic operations are relaxed, see [`Build::Gang`].
    pub(crate) relaxed: bool,
    /// Whether the build may stop an instance that is then rerun.
    pub(crate) is_speculative: bool,
}

impl Env<'_> {
    /// Returns the operation that a function stands for.
    pub(crate) fn guest_call(&self, function: u32) -> Option<GuestCall> {
        // A gang has operations of its own.
        let call = self.module.guest_calls.get(&function).copied();
        call.filter(|_| self.slots.gang().is_none())
    }
}

/// Translates and optimises every function, in parallel.
pub fn translate(module: &Module<'_>, options: &Options) -> Result<Program, Error> {
    let isa = optimizer("speed")?;
    let slots = SlotLayout::new(module, &options.build, options.backtrace)?;
    device::check_imports(module, &options.build)?;
    let relaxed = matches!(options.build, Build::Gang { relaxed: true, .. });
    let env = Env {
        module,
        slots: &slots,
        layout: options.build.layout(),
        relaxed,
        is_speculative: options.build.is_speculative(),
    };
    let mut functions = runtime::functions(&env, &options.entries, &isa);
    let imports = module.imports.len() as u32;
    let bodies: Vec<_> = module
        .bodies
        .par_iter()
        .zip(&module.surveys)
        .enumerate()
        .map_init(FunctionBuilderContext::new, |context, (i, ((part, body), survey))| {
            let index = imports + i as u32;
            options.check(index)?;
            let part = &module.parts[*part as usize];
            translate_function(&env, index, part, body, survey, context, &isa).map(|clif| {
                let name = module.function_name(index).map_or_else(|| format!("function {index}"), str::to_owned);
                Function { index, kind: FunctionKind::Wasm, name, cycle: module.cycles[index as usize], clif }
            })
        })
        .collect::<Result<_, _>>()?;
    functions.extend(bodies);
    if options.optimize {
        let plain = optimizer("none")?;
        functions.par_iter_mut().try_for_each(|function| {
            let survey =
                (function.kind == FunctionKind::Wasm).then(|| &module.surveys[(function.index - imports) as usize]);
            options.check(function.index)?;
            let isa = if survey.is_some_and(|survey| survey.deep) { &plain } else { &isa };
            optimize(function, isa, &options.build)
        })?;
    }
    let declared = || module.memories.first().map_or(0, |m| m.minimum * PAGE);
    let least_memory = slots.gang().map_or_else(declared, |place| place.memory_bytes);
    let read_only = crate::slot::read_only_bytes(module, &slots.read_only);
    Ok(Program { functions, slots, least_memory, read_only, address_taken: module.address_taken.clone() })
}

/// Returns Cranelift's optimiser. It wants a target but uses only the target's settings: the same module gives the same
/// CLIF on every host. With level "none" it only removes unreachable code; moving operators out of loops takes time
/// with the square of the loops' depth.
fn optimizer(level: &str) -> Result<OwnedTargetIsa, Error> {
    let internal = |message: String| Error::Internal { function: 0, message };
    let mut flags = settings::builder();
    for (name, value) in
        [("opt_level", level), ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" })]
    {
        flags.set(name, value).map_err(|e| internal(e.to_string()))?;
    }
    let builder = cranelift_native::builder().map_err(|e| internal(e.to_string()))?;
    builder.finish(settings::Flags::new(flags)).map_err(|e| internal(e.to_string()))
}

fn optimize(function: &mut Function, isa: &OwnedTargetIsa, build: &Build) -> Result<(), Error> {
    crate::pass::nan::run(&mut function.clif);
    let clif = std::mem::replace(&mut function.clif, ir::Function::new());
    let mut context = Context::for_function(clif);
    let result = context.optimize(&**isa, &mut ControlPlane::default());
    function.clif = context.func;
    crate::pass::wide::run(&mut function.clif);
    if build.is_speculative() {
        crate::pass::unroll::run(&mut function.clif);
    }
    result.map_err(|e| Error::Internal { function: function.index, message: format!("{e:?}") })
}

/// Returns the CLIF signature of a wasm function: the instance pointer comes first.
pub(crate) fn clif_signature(ty: &FuncType) -> Signature {
    let params = std::iter::once(types::I64).chain(ty.params.iter().map(|t| t.clif()));
    signature(params, ty.results.iter().map(|t| t.clif()))
}

struct Translator<'a, 'b> {
    env: &'a Env<'a>,
    part: &'a Part,
    index: u32,
    code: Code<'b>,
    stack: Vec<Value>,
    frames: Vec<Frame>,
    /// Indices in `frames` of the frames that catch exceptions.
    catching: Vec<usize>,
    locals: Vec<locals::Local>,
    /// Iterations until the next check of the stop word; declared before the first loop.
    ticks: Option<Variable>,
    /// Number of open loops.
    loops: u32,
    /// Whether the function has an atomic operation, so far.
    synchronises: bool,
    pace: pace::Pace,
    /// The work of the text translated so far.
    done: Sum,
    /// Whether the operator being translated is a call that never returns: `unreachable` follows it.
    last: bool,
    signatures: HashMap<u32, SigRef>,
    /// The lanes that v128 values are made of.
    views: simd::Views,
    /// Where a tail call of the function to itself jumps to.
    again: Option<Block>,
    /// The block that returns when an exception passes through the function.
    unwind: Option<Block>,
    /// How many calls led to the function, if it notes its own.
    depth: Option<Value>,
    /// File offset of the operator being translated.
    offset: usize,
}

fn translate_function(
    env: &Env<'_>,
    index: u32,
    part: &Part,
    body: &FunctionBody<'_>,
    survey: &Survey,
    context: &mut FunctionBuilderContext,
    isa: &OwnedTargetIsa,
) -> Result<ir::Function, Error> {
    let ty = env.module.function_type(index);
    // If the function makes tail calls, callers call a runtime function in its place, which makes those calls.
    let name = match env.module.traits.tails[index as usize] {
        true => runtime::body_name(index),
        false => UserExternalName { namespace: namespace::WASM, index },
    };
    let mut function = ir::Function::with_name_signature(UserFuncName::User(name), clif_signature(ty));
    let mut code = Code::new(FunctionBuilder::new(&mut function, context), env.layout, env.slots);
    if let Some(call) = env.guest_call(index) {
        code.b.set_srcloc(SourceLoc::new(body.range().start as u32));
        guest::body(&mut code, call, env.is_speculative);
        code.b.finalize(isa.frontend_config());
        return Ok(function);
    }
    let mut translator = Translator {
        env,
        part,
        index,
        code,
        stack: Vec::new(),
        frames: Vec::new(),
        catching: Vec::new(),
        locals: Vec::new(),
        ticks: None,
        loops: 0,
        synchronises: false,
        pace: pace::Pace::default(),
        done: Sum::default(),
        last: false,
        signatures: HashMap::new(),
        views: simd::Views::default(),
        again: None,
        unwind: None,
        depth: None,
        offset: body.range().start,
    };
    translator.function(ty, body, survey)?;
    translator.code.b.finalize(isa.frontend_config());
    Ok(function)
}

impl<'b> Translator<'_, 'b> {
    fn function(&mut self, ty: &FuncType, body: &FunctionBody<'_>, survey: &Survey) -> Result<(), Error> {
        let frame = self.declare_locals(ty, body, survey)?;
        self.set_location();
        let is_real =
            |function: &u32| !device::is_device(self.env.module, *function) && self.env.guest_call(*function).is_none();
        let calls = survey.calls.iter().any(is_real) || !survey.indirect.is_empty();
        self.prologue(calls, frame);
        if calls {
            self.begin_noting();
        }
        if survey.tails.contains(&self.index) {
            self.begin_again(ty, body)?;
        }
        self.push_function_frame(ty);
        let mut reader = body.get_operators_reader()?;
        while !reader.eof() {
            self.offset = reader.original_position();
            let op = reader.read()?;
            let calls = matches!(op, Operator::Call { .. } | Operator::CallIndirect { .. } | Operator::CallRef { .. });
            self.last = calls && matches!(reader.clone().read(), Ok(Operator::Unreachable));
            self.set_location();
            self.operator(&op)?;
        }
        self.unwinding(ty);
        if let Some(again) = self.again {
            self.code.b.seal_block(again);
        }
        Ok(())
    }

    fn set_location(&mut self) {
        self.code.b.set_srcloc(SourceLoc::new(self.offset as u32));
    }

    fn zero(&mut self, ty: ValType) -> Value {
        match ty {
            ValType::I32 => self.code.i32(0),
            ValType::I64 => self.code.i64(0),
            ValType::V128 => self.code.vector_constant([0; 16]),
            ty if ty.is_reference() => self.code.i64(0),
            ValType::F32 => self.code.ins().f32const(0.0),
            _ => self.code.ins().f64const(0.0),
        }
    }

    /// Emits the checks at a function's entry. A function that calls others first checks that there is enough stack. A
    /// function that may reach itself counts its entries as a loop counts iterations, so that endless recursion of
    /// bounded depth can be stopped too.
    fn prologue(&mut self, calls: bool, frame: u64) {
        // A frame may have to save its locals (`frame` bytes) and some temporaries in memory. Small leaf frames fit the
        // reserve below the floor.
        if calls || frame > 512 {
            let floor = self.code.header(types::I32, field::STACK_FLOOR);
            let pointer = self.code.ins().get_stack_pointer(types::I64);
            let pointer = self.code.ins().ireduce(types::I32, pointer);
            let pointer = self.code.ins().iadd_imm_s(pointer, -(frame as i64));
            let exhausted = self.code.ins().icmp(IntCC::UnsignedLessThan, pointer, floor);
            self.code.trap_if(exhausted, TrapCode::StackOverflow);
        }
        self.pay(self.env.module.work.of_entry(self.index));
    }

    /// Translates one operator. Unreachable operators are skipped, except those that open or close a frame.
    fn operator(&mut self, op: &Operator<'_>) -> Result<(), Error> {
        if self.unreachable() {
            return self.skip(op);
        }
        self.spend(op);
        if numeric::translate(self, op)
            || memory::translate(self, op)
            || table::translate(self, op)
            || self.control(op)?
            || self.calls(op)
            || self.exceptions(op)?
            || self.variables(op)
            || simd::translate(self, op)
            || atomic::translate(self, op)
        {
            return Ok(());
        }
        Err(self.unsupported(feature(op)))
    }

    fn variables(&mut self, op: &Operator<'_>) -> bool {
        match *op {
            Operator::LocalGet { local_index } => {
                let value = self.local(local_index as usize);
                self.push(value);
            }
            Operator::LocalSet { local_index } => {
                let value = self.pop();
                self.set_local(local_index as usize, value);
            }
            Operator::LocalTee { local_index } => {
                let value = self.peek();
                self.set_local(local_index as usize, value);
            }
            Operator::GlobalGet { global_index } => {
                let global_index = self.part.globals[global_index as usize];
                let value = self.global(global_index);
                self.push(value);
            }
            Operator::GlobalSet { global_index } => {
                let global_index = self.part.globals[global_index as usize];
                let value = self.pop();
                self.set_global(global_index, value);
            }
            Operator::Drop => {
                self.pop();
            }
            Operator::Select | Operator::TypedSelect { .. } => {
                let (condition, b, a) = (self.pop(), self.pop(), self.pop());
                self.select(condition, a, b);
            }
            Operator::Nop => {}
            _ => return false,
        }
        true
    }

    fn global(&mut self, index: u32) -> Value {
        let global = &self.env.module.globals[index as usize];
        match self.code.gang {
            Some(place) if is_hot(global) => {
                self.code.hot_load(&place, region::GLOBALS + index, hot::GLOBALS + u64::from(index))
            }
            _ => {
                let at = self.env.slots.globals[index as usize];
                self.code.slot_load(global.ty.clif(), region::GLOBALS + index, at)
            }
        }
    }

    fn set_global(&mut self, index: u32, value: Value) {
        match self.code.gang {
            Some(place) if is_hot(&self.env.module.globals[index as usize]) => {
                self.code.hot_store(&place, value, region::GLOBALS + index, hot::GLOBALS + u64::from(index));
            }
            _ => {
                let at = self.env.slots.globals[index as usize];
                self.code.slot_store(value, region::GLOBALS + index, at);
            }
        }
    }

    fn select(&mut self, condition: Value, a: Value, b: Value) {
        if self.code.b.func.dfg.value_type(a).is_vector() {
            return self.select_vector(condition, a, b);
        }
        let value = self.code.ins().select(condition, a, b);
        self.push(value);
    }

    fn push(&mut self, value: Value) {
        self.stack.push(value);
    }
    fn pop(&mut self) -> Value {
        self.stack.pop().expect("validated: the operand stack is not empty")
    }
    fn peek(&self) -> Value {
        *self.stack.last().expect("validated: the operand stack is not empty")
    }
    fn pop_many(&mut self, count: usize) -> Vec<Value> {
        self.stack.split_off(self.stack.len() - count)
    }
    fn unsupported(&self, feature: &str) -> Error {
        let place =
            self.env.module.function_name(self.index).map_or_else(|| format!("function {}", self.index), str::to_owned);
        unsupported(feature, &place, self.offset)
    }
}

/// Returns the name that people use for the proposal of an operator.
pub(crate) fn feature(op: &Operator<'_>) -> &'static str {
    macro_rules! proposal {
        ($( @$proposal:ident $op:ident $({ $($arg:ident: $argty:ty),* })? => $visit:ident ($($ann:tt)*) )*) => {
            match op { $(Operator::$op { .. } => stringify!($proposal),)* _ => "this instruction" }
        };
    }
    match wasmparser::for_each_operator!(proposal) {
        "simd" | "relaxed_simd" => "SIMD",
        "threads" | "shared_everything_threads" => "threads (atomic instructions)",
        "tail_call" => "tail calls",
        "exceptions" | "legacy_exceptions" => "exception handling",
        "gc" => "garbage collection",
        "function_references" => "typed function references",
        other => other,
    }
}

impl Function {
    /// Returns the function's number in trap records.
    pub fn trap_id(&self) -> u32 {
        if self.kind == FunctionKind::Wasm || self.kind == FunctionKind::Stub {
            self.index
        } else {
            TrapRecord::NO_FUNCTION
        }
    }
}
