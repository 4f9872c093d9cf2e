//! Legalisation: the form in which each instruction is printed.
//!
//! The table of `print` has a row for each opcode and form, and decides nothing. Whatever depends on the build, on
//! constants, on types or on the instructions before is decided here.
//!
//! What an operation asks of its operands, a sign-extension for instance, is no data of an instruction but a column of
//! the row: all instructions of a row ask for the same. Only whether a value needs to be zero-extended at all depends
//! on where it comes from, and is found here.

use super::division::{self, Nonzero};
use super::values;
use crate::symbols::{Name, Symbols};
use crate::{Function, Program};
use cranelift_codegen::ir::{self, Inst, InstructionData, MemFlags, Opcode, Type, Value, types};
use cranelift_entity::{EntitySet, SecondaryMap};
use gpu_run_abi::intrinsic::region;

/// How an instruction is printed, where its opcode does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// As the opcode says. Where other widths have a form, this is the one of 32 bits.
    #[default]
    Plain,
    /// The operand is an i8 or i16, computed in 32 bits.
    Narrow,
    /// The operand is an i64.
    Wide,
    /// The operand is a predicate.
    Predicate,
    /// `bxor` of a predicate and 1.
    NotPredicate,
    /// The operand is a constant.
    Constant,
    /// The condition is a constant.
    Always,
    Never,
    /// An integer division with a test of its divisor, of its quotient, or of both.
    Tested {
        zero: bool,
        overflow: bool,
    },
    /// A division of f64 without a branch, and which operands it tests: constants are known to be between the edges.
    BranchlessDivision {
        tests_dividend: bool,
        tests_divisor: bool,
    },
    BranchlessRoot,
    /// A conversion to an integer that saturates. PTX's does it for 32 bits at least, and makes 0 of NaN only from f32
    /// to 32 bits.
    Saturating {
        clamps: bool,
        tests_nan: bool,
    },
    /// An access by a device address to the thread's local memory.
    Local,
    /// A call of a function that calls this one in turn.
    Recursive,
    /// The result has the operand's registers.
    Renaming,
}

/// The forms of a function's instructions.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    by_inst: SecondaryMap<Inst, Form>,
    /// Values of i8 and i16 whose registers are 0 above: others have undefined bits there.
    zero_above: EntitySet<Value>,
}

impl Forms {
    /// `predicates` are the values that live in predicates.
    pub(crate) fn find(symbols: &Symbols<'_>, function: &Function, predicates: &EntitySet<Value>) -> Forms {
        let func = &function.clif;
        let legalizer = Legalizer { program: symbols.program, symbols, function, func, predicates };
        let mut forms = Forms::default();
        forms.by_inst.resize(func.dfg.num_insts());
        for block in func.layout.blocks() {
            let mut nonzero = Nonzero::default();
            for inst in func.layout.block_insts(block) {
                nonzero.see(func, inst);
                forms.by_inst[inst] = legalizer.form(inst, &nonzero);
                for &result in func.dfg.inst_results(inst) {
                    if legalizer.is_zero_above(inst, result) {
                        forms.zero_above.insert(result);
                    }
                }
            }
        }
        forms
    }

    pub(crate) fn of(&self, inst: Inst) -> Form {
        self.by_inst[inst]
    }

    /// Whether a value of i8 or i16 is zero-extended already. Aliases have no answer: resolve them first.
    pub(crate) fn is_zero_above(&self, value: Value) -> bool {
        self.zero_above.contains(value)
    }
}

/// Whatever forms depend on.
struct Legalizer<'a> {
    program: &'a Program,
    symbols: &'a Symbols<'a>,
    function: &'a Function,
    func: &'a ir::Function,
    predicates: &'a EntitySet<Value>,
}

impl Legalizer<'_> {
    #[rustfmt::skip]
    fn form(&self, inst: Inst, nonzero: &Nonzero) -> Form {
        let dfg = &self.func.dfg;
        match (dfg.insts[inst].opcode(), dfg.inst_args(inst)) {
            (Opcode::Umulhi | Opcode::Smulhi | Opcode::Rotl | Opcode::Rotr | Opcode::Clz | Opcode::Cls | Opcode::Ctz
                | Opcode::Popcnt | Opcode::Bitrev | Opcode::Bswap | Opcode::Ireduce, &[x, ..]) => {
                width(dfg.value_type(x))
            }
            (Opcode::Select | Opcode::SelectSpectreGuard | Opcode::Bmask | Opcode::Brif | Opcode::Trapz
                | Opcode::Trapnz, &[condition, ..]) => self.condition(condition),
            (Opcode::Uextend | Opcode::Sextend, &[x]) if self.is_predicate(x) => Form::Predicate,
            (Opcode::Band | Opcode::Bor | Opcode::Bxor, &[_, b]) if self.is_predicate(dfg.first_result(inst)) => {
                if values::constant(self.func, b).is_some() { Form::NotPredicate } else { Form::Predicate }
            }
            (opcode @ (Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem), &[_, divisor]) => {
                match nonzero.tests(self.func, opcode, divisor) {
                    (false, false) => Form::Plain,
                    (zero, overflow) => Form::Tested { zero, overflow },
                }
            }
            (Opcode::Fdiv, &[a, b]) if self.has_branchless_form(inst) => Form::BranchlessDivision {
                tests_dividend: values::float_bits(self.func, a).is_none(),
                tests_divisor: values::float_bits(self.func, b).is_none(),
            },
            (Opcode::Sqrt, _) if self.has_branchless_form(inst) => Form::BranchlessRoot,
            (Opcode::FcvtToSintSat | Opcode::FcvtToUintSat, &[x]) => {
                let (from, to) = (dfg.value_type(x), dfg.ctrl_typevar(inst));
                Form::Saturating { clamps: to.bits() < 32, tests_nan: from != types::F32 || to == types::I64 }
            }
            (Opcode::Bitcast, &[x]) => self.bitcast(x),
            _ => self.access_or_call(inst),
        }
    }

    fn access_or_call(&self, inst: Inst) -> Form {
        match self.func.dfg.insts[inst] {
            InstructionData::Load { flags, .. } | InstructionData::Store { flags, .. } if self.is_local(flags) => {
                Form::Local
            }
            InstructionData::Call { func_ref, .. } if self.function.cycle.is_some() => {
                match self.symbols.resolve(self.function, &self.func.dfg.ext_funcs[func_ref].name) {
                    Ok(Name::Function(callee)) if callee.cycle == self.function.cycle => Form::Recursive,
                    _ => Form::Plain,
                }
            }
            _ => Form::Plain,
        }
    }

    fn is_predicate(&self, value: Value) -> bool {
        self.predicates.contains(self.func.dfg.resolve_aliases(value))
    }

    fn condition(&self, value: Value) -> Form {
        match values::constant(self.func, values::condition(self.func, value)) {
            None => Form::Plain,
            Some(0) => Form::Never,
            Some(_) => Form::Always,
        }
    }

    /// Whether a division or root of floats has a form without a branch: only in speculative builds, which stop at the
    /// edges. A constant at an edge would always stop there.
    fn has_branchless_form(&self, inst: Inst) -> bool {
        let dfg = &self.func.dfg;
        let is_at_edge =
            |arg: &Value| values::float_bits(self.func, *arg).is_some_and(|bits| !division::is_inside(bits));
        self.program.is_speculative()
            && dfg.ctrl_typevar(inst) == types::F64
            && !dfg.inst_args(inst).iter().any(is_at_edge)
    }

    fn bitcast(&self, value: Value) -> Form {
        if self.func.dfg.value_type(value).is_vector() {
            return Form::Renaming;
        }
        let is_constant =
            values::constant(self.func, value).is_some() || values::float_bits(self.func, value).is_some();
        if is_constant { Form::Constant } else { Form::Plain }
    }

    /// Whether an access by a device address is to the thread's local memory: its stack slots, or guest memory where
    /// that is local.
    fn is_local(&self, flags: MemFlags) -> bool {
        let dfg = &self.func.dfg;
        let is =
            |id| dfg.mem_flags[flags].alias_region().is_some_and(|region| dfg.alias_regions.get(id) == Some(region));
        is(region::FRAME) || (self.program.is_local() && is(region::CELLS))
    }

    /// Narrow loads extend, and so do predicates that become numbers.
    fn is_zero_above(&self, inst: Inst, result: Value) -> bool {
        self.func.dfg.value_type(result).bits() < 32
            && (self.func.dfg.insts[inst].opcode() == Opcode::Load || self.predicates.contains(result))
    }
}

fn width(ty: Type) -> Form {
    match ty {
        types::I8 | types::I16 => Form::Narrow,
        types::I64 => Form::Wide,
        _ => Form::Plain,
    }
}
