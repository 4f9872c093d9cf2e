//! Functions as PTX sees them: signatures, calls, returns, addresses, and the intrinsics that look like calls.
//!
//! One result is a register; two and more lie in a parameter of 8-byte cells.

use crate::function::Emitter;
use crate::print::body::{Body, When};
use crate::print::register::{Class, Operand, Reg, plain};
use crate::print::text::{INDENT, push_unsigned};
use crate::symbols::Name;
use crate::{Error, Function, Kind};
use cranelift_codegen::ir::{
    self, AbiParam, ArgumentPurpose, FuncRef, GlobalValueData, Inst, InstructionData, SigRef, Signature, Value, types,
};
use cranelift_entity::PrimaryMap;
use gpu_run_abi::TrapCode;
use gpu_run_abi::intrinsic::{INTERVAL, Intrinsic};
use smallvec::SmallVec;

type Done = Result<(), Error>;

/// The space a result takes where there are several.
const RESULT_BYTES: u64 = 8;

// ---- signatures ----

/// `.b32`, `.f64`: the declarations of parameters or results. A vector is four.
fn declared(function: &Function, params: &[AbiParam]) -> Result<SmallVec<[&'static str; 8]>, Error> {
    let mut all = SmallVec::new();
    for param in params {
        match param.value_type {
            types::I32 | types::I64 | types::F32 | types::F64 if param.purpose == ArgumentPurpose::Normal => {
                all.push(plain(param.value_type));
            }
            types::I32X4 => all.extend([plain(types::I32); 4]),
            ty => return Err(Error::Signature { function: function.symbol.clone(), ty }),
        }
    }
    Ok(all)
}

/// `(.reg .b32 %out) name (.reg .b64 %a0, …)`, with `_` for the names in a prototype.
fn push_signature(out: &mut String, function: &Function, name: Option<&str>, signature: &Signature) -> Done {
    let result_name = if name.is_some() { "%out" } else { "_" };
    match declared(function, &signature.returns)?.as_slice() {
        [] => {}
        [result] => {
            out.push_str("(.reg ");
            out.push_str(result);
            out.push(' ');
            out.push_str(result_name);
            out.push_str(") ");
        }
        results => {
            out.push_str("(.param .align 8 .b8 ");
            out.push_str(result_name);
            out.push('[');
            push_unsigned(out, results.len() as u64 * RESULT_BYTES);
            out.push_str("]) ");
        }
    }
    out.push_str(name.unwrap_or("_"));
    out.push_str(" (");
    for (i, param) in declared(function, &signature.params)?.into_iter().enumerate() {
        out.push_str(if i == 0 { ".reg " } else { ", .reg " });
        out.push_str(param);
        if name.is_some() {
            out.push_str(" %a");
            push_unsigned(out, i as u64);
        } else {
            out.push_str(" _");
        }
    }
    out.push(')');
    Ok(())
}

/// What a function's declaration and definition begin with.
pub(crate) fn push_header(out: &mut String, function: &Function) -> Done {
    let signature = &function.clif.signature;
    if function.kind == Kind::Device {
        out.push_str(".func ");
        return push_signature(out, function, Some(&function.symbol), signature);
    }
    let error = || Error::KernelSignature { function: function.symbol.clone() };
    if !signature.returns.is_empty() {
        return Err(error());
    }
    out.push_str(".visible .entry ");
    out.push_str(&function.symbol);
    out.push_str(" (");
    for (i, param) in signature.params.iter().enumerate() {
        out.push_str(if i == 0 { ".param " } else { ", .param " });
        out.push_str(match param.value_type {
            types::I32 => ".u32 p",
            types::I64 => ".u64 p",
            _ => return Err(error()),
        });
        push_unsigned(out, i as u64);
    }
    out.push(')');
    Ok(())
}

/// The signatures of the function's indirect calls, each declared once.
#[derive(Debug, Default)]
pub(crate) struct Prototypes {
    signatures: Vec<SigRef>,
}

impl Prototypes {
    fn number(&mut self, signature: SigRef, all: &PrimaryMap<SigRef, Signature>) -> u64 {
        let same = |s: &SigRef| {
            *s == signature || (all[*s].params == all[signature].params && all[*s].returns == all[signature].returns)
        };
        let number = self.signatures.iter().position(same).unwrap_or(self.signatures.len());
        if number == self.signatures.len() {
            self.signatures.push(signature);
        }
        number as u64
    }

    pub(crate) fn declare(&self, out: &mut String, function: &Function, all: &PrimaryMap<SigRef, Signature>) -> Done {
        for (i, &signature) in self.signatures.iter().enumerate() {
            out.push_str("$P");
            push_unsigned(out, i as u64);
            out.push_str(": .callprototype ");
            push_signature(out, function, None, &all[signature])?;
            out.push_str(";\n");
        }
        Ok(())
    }
}

// ---- calls ----

/// What is called.
enum Callee<'s> {
    Symbol(&'s str),
    /// An address, and the number of its prototype.
    Address(Reg, u64),
}

/// What is called, with which arguments, and as what.
type Call<'a> = (Callee<'a>, &'a [Value], SigRef);

/// `call (results), callee, (arguments);`
fn push_call(body: &mut Body, results: &[Reg], is_param: bool, callee: &Callee<'_>, arguments: &[Operand]) {
    body.begin("call", "");
    if is_param {
        body.out.push_str("(%ret), ");
    } else if let [result] = results {
        body.out.push('(');
        body.operand(*result);
        body.out.push_str("), ");
    }
    match *callee {
        Callee::Symbol(name) => body.out.push_str(name),
        Callee::Address(register, _) => body.operand(register),
    }
    body.out.push_str(", (");
    for (i, &argument) in arguments.iter().enumerate() {
        if i > 0 {
            body.out.push_str(", ");
        }
        body.operand(argument);
    }
    body.out.push(')');
    if let Callee::Address(_, prototype) = *callee {
        body.out.push_str(", $P");
        push_unsigned(&mut body.out, prototype);
    }
    body.end();
}

impl Emitter<'_> {
    pub(crate) fn call_helper(&mut self, result: Option<Reg>, name: &str, arguments: &[Operand]) {
        push_call(&mut self.body, result.as_slice(), false, &Callee::Symbol(name), arguments);
    }

    fn call(&mut self, callee: &Callee<'_>, arguments: &[Value], results: &[Reg]) {
        self.guest_call();
        let arguments = self.operands(arguments);
        if results.len() < 2 {
            return push_call(&mut self.body, results, false, callee, &arguments);
        }
        self.body.out.push_str(INDENT);
        self.body.out.push_str("{\n");
        self.body.begin(".param .align 8 .b8", "");
        self.body.out.push_str("%ret[");
        push_unsigned(&mut self.body.out, results.len() as u64 * RESULT_BYTES);
        self.body.out.push(']');
        self.body.end();
        push_call(&mut self.body, results, true, callee, &arguments);
        for (i, &result) in results.iter().enumerate() {
            self.body.begin("ld.param", result.class.suffix());
            self.body.operand(result);
            self.body.out.push_str(", [%ret");
            push_cell(&mut self.body.out, i);
            self.body.out.push(']');
            self.body.end();
        }
        self.body.out.push_str(INDENT);
        self.body.out.push_str("}\n");
    }

    /// What stands for values that are passed or returned: a vector's words one after the other.
    fn operands(&mut self, values: &[Value]) -> SmallVec<[Operand; 16]> {
        let mut all = SmallVec::new();
        for &value in values {
            match self.ty(value).is_vector() {
                true => all.extend(self.lanes(value)),
                false => all.push(self.number(value)),
            }
        }
        all
    }
}

/// `+8`: where result `i` lies.
fn push_cell(out: &mut String, i: usize) {
    if i > 0 {
        out.push('+');
        push_unsigned(out, i as u64 * RESULT_BYTES);
    }
}

impl<'a> Emitter<'a> {
    /// The symbol of a function that can be called.
    fn symbol(&self, callee: FuncRef) -> Result<Name<'a>, Error> {
        let name = self.symbols.resolve(self.function, &self.func.dfg.ext_funcs[callee].name)?;
        match name {
            Name::Function(f) if f.kind == Kind::Kernel => {
                Err(Error::CallsKernel { function: self.function.symbol.clone(), kernel: f.symbol.clone() })
            }
            name => Ok(name),
        }
    }

    /// Whether an instruction calls a function, and is no intrinsic that looks as if it did.
    pub(crate) fn calls(&self, inst: Inst) -> bool {
        match self.func.dfg.insts[inst] {
            InstructionData::Call { func_ref, .. } => matches!(self.symbol(func_ref), Ok(Name::Function(_))),
            ref data => data.opcode().is_call(),
        }
    }

    /// A function that is called by its address, which no assembler can tell. ptxas puts no place for lanes to meet again (`BSSY`, `BSYNC`) into
    /// a function that it finds to be recursive: once parted, they would go alone through the whole of a parser or a sort.
    fn hidden(&mut self, symbol: &'a str, signature: SigRef) -> Callee<'a> {
        let address = self.body.temp(Class::B64);
        self.body.begin("mov", ".u64");
        self.body.operand(address);
        self.body.out.push_str(", ");
        self.body.out.push_str(symbol);
        self.body.end();
        let one = self.body.hidden_one();
        let one = self.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[one.into()]);
        let above = self.body.op_to_temp(Class::B64, "add", ".u64", &[address.into(), one.into()]);
        let address = self.body.op_to_temp(Class::B64, "sub", ".u64", &[above.into(), 1.into()]);
        Callee::Address(address, self.prototypes.number(signature, &self.func.dfg.signatures))
    }

    /// What a call instruction calls, with which arguments and signature; `None` for an intrinsic, which is then done.
    fn callee(&mut self, inst: Inst) -> Result<Option<Call<'a>>, Error> {
        let func = self.func;
        let args = func.dfg.inst_args(inst);
        match func.dfg.insts[inst] {
            InstructionData::Call { func_ref, .. } => match self.symbol(func_ref)? {
                Name::Function(f) => {
                    let signature = func.dfg.ext_funcs[func_ref].signature;
                    let callee = match f.cycle.is_some() && f.cycle == self.function.cycle {
                        true => self.hidden(&f.symbol, signature),
                        false => Callee::Symbol(&f.symbol),
                    };
                    Ok(Some((callee, args, signature)))
                }
                Name::Intrinsic(i) => intrinsic(self, i, inst).map(|()| None),
                Name::FunctionTable => Err(self.unsupported(inst)),
            },
            InstructionData::CallIndirect { sig_ref, .. } => {
                let [address, args @ ..] = args else { return Err(self.unsupported(inst)) };
                let prototype = self.prototypes.number(sig_ref, &func.dfg.signatures);
                Ok(Some((Callee::Address(self.in_register(*address), prototype), args, sig_ref)))
            }
            _ => Err(self.unsupported(inst)),
        }
    }
}

/// `call`, `call_indirect`
pub(crate) fn call(e: &mut Emitter<'_>, inst: Inst) -> Done {
    let Some((callee, args, _)) = e.callee(inst)? else { return Ok(()) };
    let results = e.operands(e.func.dfg.inst_results(inst));
    let results: SmallVec<[Reg; 4]> = results.into_iter().filter_map(Operand::register).collect();
    e.call(&callee, args, &results);
    e.fast_length()
}

/// `return_call`, `return_call_indirect`: a call, then a return. The stack grows where CLIF's would not.
pub(crate) fn tail_call(e: &mut Emitter<'_>, inst: Inst) -> Done {
    let Some((callee, args, signature)) = e.callee(inst)? else { return Err(e.unsupported(inst)) };
    let mut results: SmallVec<[Reg; 4]> = SmallVec::new();
    for result in &e.func.dfg.signatures[signature].returns {
        let class = Class::of(result.value_type);
        results.extend((0..if class.is_none() { 4 } else { 1 }).map(|_| e.body.temp(class.unwrap_or(Class::B32))));
    }
    e.call(&callee, args, &results);
    let results: SmallVec<[Operand; 4]> = results.iter().map(|&r| r.into()).collect();
    push_return(e, &results)
}

pub(crate) fn return_(e: &mut Emitter<'_>, inst: Inst) -> Done {
    let results = e.operands(e.func.dfg.inst_args(inst));
    push_return(e, &results)
}

fn push_return(e: &mut Emitter<'_>, results: &[Operand]) -> Done {
    let returns = declared(e.function, &e.func.signature.returns)?;
    match (results, returns.as_slice()) {
        ([result], [ty]) => e.body.op("mov", ty, &[Operand::Name("%out"), *result]),
        _ => {
            for (i, (&result, ty)) in results.iter().zip(returns).enumerate() {
                e.body.begin("st.param", ty);
                e.body.out.push_str("[%out");
                push_cell(&mut e.body.out, i);
                e.body.out.push_str("], ");
                e.body.operand(result);
                e.body.end();
            }
        }
    }
    e.body.op("ret", "", &[]);
    Ok(())
}

// ---- what looks like a call ----

fn intrinsic(e: &mut Emitter<'_>, intrinsic: Intrinsic, inst: Inst) -> Done {
    match intrinsic {
        Intrinsic::ThreadInBlock => special_register(e, inst, ".u32", "%tid.x")?,
        Intrinsic::Block => special_register(e, inst, ".u32", "%ctaid.x")?,
        Intrinsic::BlockThreads => special_register(e, inst, ".u32", "%ntid.x")?,
        Intrinsic::Lane => special_register(e, inst, ".u32", "%laneid")?,
        Intrinsic::GlobalTimer => special_register(e, inst, ".u64", "%globaltimer")?,
        Intrinsic::NanoSleep => {
            let [nanoseconds] = *e.func.dfg.inst_args(inst) else { return Err(e.unsupported(inst)) };
            let nanoseconds = e.number(nanoseconds);
            e.body.op("nanosleep.u32", "", &[nanoseconds]);
        }
        Intrinsic::Exit => {
            e.body.op("exit", "", &[]);
            e.here.ended = true;
        }
        Intrinsic::Tick => tick(e, inst)?,
        Intrinsic::FenceSystem => e.body.op("membar.sys", "", &[]),
        Intrinsic::Barrier => e.body.op("bar.sync", "", &[0.into()]),
        Intrinsic::ActiveMask => {
            let result = e.result(inst)?;
            e.body.op("activemask.b32", "", &[result.into()]);
        }
        Intrinsic::Glance => {
            let [address] = *e.func.dfg.inst_args(inst) else { return Err(e.unsupported(inst)) };
            let (result, address) = (e.result(inst)?, e.in_register(address));
            e.body.load("ld.global.L1::no_allocate", ".u32", result, address, 0);
        }
        Intrinsic::GridBlocks => special_register(e, inst, ".u32", "%nctaid.x")?,
        Intrinsic::Processor => special_register(e, inst, ".u32", "%smid")?,
        Intrinsic::Cycles => special_register(e, inst, ".u64", "%clock64")?,
        Intrinsic::Ticket => {
            let [address] = *e.func.dfg.inst_args(inst) else { return Err(e.unsupported(inst)) };
            let (result, address) = (e.result(inst)?, e.in_register(address));
            e.body.begin("atom.relaxed.gpu.global.add", ".u32");
            e.body.operand(result);
            e.body.out.push_str(", ");
            crate::print::text::push_address(&mut e.body.out, address, 0);
            e.body.out.push_str(", 1");
            e.body.end();
        }
        Intrinsic::FenceDevice => e.body.op("fence.acq_rel.gpu", "", &[]),
        Intrinsic::FenceHost => e.body.op("fence.acq_rel.sys", "", &[]),
        other => return crate::print::gang::intrinsic(e, other, inst),
    }
    Ok(())
}

fn special_register(e: &mut Emitter<'_>, inst: Inst, suffix: &str, name: &'static str) -> Done {
    let result = e.result(inst)?;
    e.body.op("mov", suffix, &[result.into(), Operand::Name(name)]);
    Ok(())
}

/// See [`Intrinsic::Tick`]. A loop that ends soon by itself need not look whether it should.
///
/// The look is a branch and no load under a predicate: a GPU's loads come back in order, also those that are not done, so that each round would wait
/// for what others have asked memory for.
fn tick(e: &mut Emitter<'_>, inst: Inst) -> Done {
    let [left, stop] = *e.func.dfg.inst_args(inst) else { return Err(e.unsupported(inst)) };
    let (result, left) = (e.result(inst)?, e.number(left));
    if e.ends_soon(inst) {
        e.body.op("mov", ".b32", &[result.into(), left]);
        return Ok(());
    }
    let stop = e.in_register(stop);
    e.body.op("add", ".u32", &[result.into(), left, (-1).into()]);
    // Calls may have been charged to it, too.
    let spent = e.body.op_to_temp(Class::Pred, "setp.le", ".s32", &[result.into(), 0.into()]);
    let (look, on) = (e.body.local(), e.body.local());
    e.body.branch_if(spent, When::True, look);
    e.body.place(on);
    e.out_of_line(|e| {
        e.body.place(look);
        let word = e.body.temp(Class::B32);
        e.body.load("ld.global.L1::no_allocate", ".u32", word, stop, 0);
        if e.symbols.memory().region > 0 {
            // Who waits in such a loop for another thread may be in that one's way, on `cpu`.
            e.body.op("nanosleep.u32", "", &[0.into()]);
        }
        let ends = e.body.op_to_temp(Class::Pred, "setp.ne", ".u32", &[word.into(), 0.into()]);
        e.trap_if(ends, When::True, ir::TrapCode::unwrap_user(TrapCode::Interrupted as u8), inst)?;
        e.body.op("mov", ".b32", &[result.into(), INTERVAL.into()]);
        e.body.branch(on);
        Ok(())
    })
}

// ---- addresses ----

pub(crate) fn address(e: &mut Emitter<'_>, inst: Inst) -> Done {
    let InstructionData::FuncAddr { func_ref, .. } = e.func.dfg.insts[inst] else { return Err(e.unsupported(inst)) };
    match e.symbol(func_ref)? {
        Name::Function(f) => push_symbol(e, inst, &f.symbol),
        _ => Err(e.unsupported(inst)),
    }
}

pub(crate) fn symbol_value(e: &mut Emitter<'_>, inst: Inst) -> Done {
    let InstructionData::UnaryGlobalValue { global_value, .. } = e.func.dfg.insts[inst] else {
        return Err(e.unsupported(inst));
    };
    let GlobalValueData::Symbol { name, offset, .. } = &e.func.global_values[global_value] else {
        return Err(e.unsupported(inst));
    };
    match e.symbols.resolve(e.function, name)? {
        Name::FunctionTable => push_symbol(e, inst, crate::FUNCTION_TABLE)?,
        Name::Function(f) => push_symbol(e, inst, &f.symbol)?,
        Name::Intrinsic(_) => return Err(e.unsupported(inst)),
    }
    if offset.bits() != 0 {
        let result = e.result(inst)?;
        e.body.op("add", ".u64", &[result.into(), result.into(), offset.bits().into()]);
    }
    Ok(())
}

fn push_symbol(e: &mut Emitter<'_>, inst: Inst, symbol: &str) -> Done {
    let result = e.result(inst)?;
    e.body.begin("mov", ".u64");
    e.body.operand(result);
    e.body.out.push_str(", ");
    e.body.out.push_str(symbol);
    e.body.end();
    Ok(())
}

/// The stack pointer is a 32-bit number in a window of its own; only differences mean something.
pub(crate) fn stack_pointer(e: &mut Emitter<'_>, inst: Inst) -> Done {
    let result = e.result(inst)?;
    let low = e.body.op_to_temp(Class::B32, "stacksave", ".u32", &[]);
    e.body.op("cvt", ".u64.u32", &[result.into(), low.into()]);
    Ok(())
}
