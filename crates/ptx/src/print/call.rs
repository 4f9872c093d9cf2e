//! Intrinsics, which are calls only in CLIF, are in [`super::intrinsic`].

use super::Printer;
use super::body::Body;
use super::intrinsic;
use super::register::{Class, Operand, Reg};
use super::signature::{RESULT_BYTES, declared, push_cell};
use super::text::{INDENT, push_unsigned};
use crate::analysis::legalize::Form;
use crate::symbols::Name;
use crate::{Error, Kind};
use cranelift_codegen::ir::{FuncRef, GlobalValueData, Inst, InstructionData, SigRef, Value};
use smallvec::SmallVec;

type Done = Result<(), Error>;

/// The name of the function table in PTX.
pub(crate) const FUNCTION_TABLE: &str = "function_table";

// ---- calls ----

/// The target of a call.
pub(crate) enum Callee<'s> {
    Symbol(&'s str),
    /// A register with the function's address, and the number of its prototype.
    Address(Reg, u64),
}

/// The target of a call, the arguments, and the signature.
type Call<'a> = (Callee<'a>, &'a [Value], SigRef);

/// Prints `call (results), callee, (arguments);`. With `is_param`, the results are in the parameter `%ret`.
pub(crate) fn push_call(body: &mut Body, results: &[Reg], is_param: bool, callee: &Callee<'_>, arguments: &[Operand]) {
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

impl Printer<'_> {
    /// Calls one of the functions that this crate itself defines in a module.
    pub(crate) fn call_helper(&mut self, result: Option<Reg>, name: &str, arguments: &[Operand]) {
        push_call(&mut self.body, result.as_slice(), false, &Callee::Symbol(name), arguments);
    }

    fn call(&mut self, callee: &Callee<'_>, arguments: &[Value], results: &[Reg]) {
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

    /// Returns the operands of values that are passed or returned: the four words of a vector one after the other.
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

impl<'a> Printer<'a> {
    /// Returns the meaning of a function reference. A kernel is an error: kernels cannot be called.
    fn symbol(&self, callee: FuncRef) -> Result<Name<'a>, Error> {
        let name = self.symbols.resolve(self.function, &self.func.dfg.ext_funcs[callee].name)?;
        match name {
            Name::Function(f) if f.kind == Kind::Kernel => {
                Err(Error::CallsKernel { function: self.function.symbol.clone(), kernel: f.symbol.clone() })
            }
            name => Ok(name),
        }
    }

    /// Returns a callee whose address no assembler can see through. Into a function that ptxas finds to be recursive,
    /// it puts no points where lanes meet again (`BSSY`, `BSYNC`): lanes that have diverged would run one by one
    /// through a whole parser or sort.
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

    /// Returns the target, arguments and signature of a call instruction; or `None` for an intrinsic, after printing
    /// it.
    fn callee(&mut self, inst: Inst) -> Result<Option<Call<'a>>, Error> {
        let func = self.func;
        let args = func.dfg.inst_args(inst);
        match func.dfg.insts[inst] {
            InstructionData::Call { func_ref, .. } => match self.symbol(func_ref)? {
                Name::Function(f) => {
                    let signature = func.dfg.ext_funcs[func_ref].signature;
                    let callee = match self.form(inst) {
                        Form::Recursive => self.hidden(&f.symbol, signature),
                        _ => Callee::Symbol(&f.symbol),
                    };
                    Ok(Some((callee, args, signature)))
                }
                Name::Intrinsic(i) => intrinsic::print(self, i, inst).map(|()| None),
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
pub(crate) fn call(p: &mut Printer<'_>, inst: Inst) -> Done {
    let Some((callee, args, _)) = p.callee(inst)? else { return Ok(()) };
    let results = p.operands(p.func.dfg.inst_results(inst));
    let results: SmallVec<[Reg; 4]> = results.into_iter().filter_map(Operand::register).collect();
    p.call(&callee, args, &results);
    Ok(())
}

/// `return_call`, `return_call_indirect`: prints a call, then a return. So the stack grows, which CLIF's tail call
/// would avoid.
pub(crate) fn tail_call(p: &mut Printer<'_>, inst: Inst) -> Done {
    let Some((callee, args, signature)) = p.callee(inst)? else { return Err(p.unsupported(inst)) };
    let mut results: SmallVec<[Reg; 4]> = SmallVec::new();
    for result in &p.func.dfg.signatures[signature].returns {
        let class = Class::of(result.value_type);
        results.extend((0..if class.is_none() { 4 } else { 1 }).map(|_| p.body.temp(class.unwrap_or(Class::B32))));
    }
    p.call(&callee, args, &results);
    let results: SmallVec<[Operand; 4]> = results.iter().map(|&r| r.into()).collect();
    push_return(p, &results)
}

pub(crate) fn return_(p: &mut Printer<'_>, inst: Inst) -> Done {
    let results = p.operands(p.func.dfg.inst_args(inst));
    push_return(p, &results)
}

fn push_return(p: &mut Printer<'_>, results: &[Operand]) -> Done {
    let returns = declared(p.function, &p.func.signature.returns)?;
    match (results, returns.as_slice()) {
        ([result], [ty]) => p.body.op("mov", ty, &[Operand::Name("%out"), *result]),
        _ => {
            for (i, (&result, ty)) in results.iter().zip(returns).enumerate() {
                p.body.begin("st.param", ty);
                p.body.out.push_str("[%out");
                push_cell(&mut p.body.out, i);
                p.body.out.push_str("], ");
                p.body.operand(result);
                p.body.end();
            }
        }
    }
    p.body.op("ret", "", &[]);
    Ok(())
}

// ---- addresses ----

pub(crate) fn address(p: &mut Printer<'_>, inst: Inst) -> Done {
    let InstructionData::FuncAddr { func_ref, .. } = p.func.dfg.insts[inst] else { return Err(p.unsupported(inst)) };
    match p.symbol(func_ref)? {
        Name::Function(f) => push_symbol(p, inst, &f.symbol),
        _ => Err(p.unsupported(inst)),
    }
}

pub(crate) fn symbol_value(p: &mut Printer<'_>, inst: Inst) -> Done {
    let InstructionData::UnaryGlobalValue { global_value, .. } = p.func.dfg.insts[inst] else {
        return Err(p.unsupported(inst));
    };
    let GlobalValueData::Symbol { name, offset, .. } = &p.func.global_values[global_value] else {
        return Err(p.unsupported(inst));
    };
    match p.symbols.resolve(p.function, name)? {
        Name::FunctionTable => push_symbol(p, inst, FUNCTION_TABLE)?,
        Name::Function(f) => push_symbol(p, inst, &f.symbol)?,
        Name::Intrinsic(_) => return Err(p.unsupported(inst)),
    }
    if offset.bits() != 0 {
        let result = p.result(inst)?;
        p.body.op("add", ".u64", &[result.into(), result.into(), offset.bits().into()]);
    }
    Ok(())
}

fn push_symbol(p: &mut Printer<'_>, inst: Inst, symbol: &str) -> Done {
    let result = p.result(inst)?;
    p.body.begin("mov", ".u64");
    p.body.operand(result);
    p.body.out.push_str(", ");
    p.body.out.push_str(symbol);
    p.body.end();
    Ok(())
}

/// `get_stack_pointer`: PTX's stack pointer is a 32-bit number in an address window of its own; only differences are
/// meaningful.
pub(crate) fn stack_pointer(p: &mut Printer<'_>, inst: Inst) -> Done {
    let result = p.result(inst)?;
    let low = p.body.op_to_temp(Class::B32, "stacksave", ".u32", &[]);
    p.body.op("cvt", ".u64.u32", &[result.into(), low.into()]);
    Ok(())
}
