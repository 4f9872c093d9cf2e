//! Legalisation: finds the form in which each instruction is printed.
//!
//! The table of `print` has a row for each opcode and form, and decides nothing. Everything that depends on the build,
//! on constants, on types or on earlier instructions is decided here.
//!
//! What an operation requires of its operands, for instance a sign-extension, is a column of the table's row, because
//! it is the same for all instructions of that row. Whether a value already meets the requirement depends on where the
//! value comes from: see [`super::Analysis::is_zero_above`].

use super::division::{self, Nonzero};
use super::values;
use crate::Function;
use crate::symbols::{Name, Symbols};
use cranelift_codegen::ir::{self, AliasRegion, FuncRef, Inst, InstructionData, MemFlags, Opcode, Type, Value, types};
use cranelift_entity::{EntitySet, SecondaryMap};
use gpu_run_abi::intrinsic::region;

/// How an instruction is printed, where the opcode alone does not decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// The usual form of the opcode. Where other widths have forms of their own, this is the form for 32 bits.
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
    /// The condition is a constant: it always holds, or never.
    Always,
    Never,
    /// An integer division that tests for a divisor of 0, for an overflow of the quotient, or for both.
    Tested {
        zero: bool,
        overflow: bool,
    },
    /// A branchless division of f64, and which operands it has to test for being too large or too small: constants are
    /// known to be neither.
    BranchlessDivision {
        tests_dividend: bool,
        tests_divisor: bool,
    },
    BranchlessRoot,
    /// A saturating conversion to an integer. PTX's conversions saturate to 32 or 64 bits only, so a narrower result is
    /// clamped; they turn NaN into 0 only from f32 to 32 bits, so others test for NaN.
    Saturating {
        clamps: bool,
        tests_nan: bool,
    },
    /// An access to the thread's local memory, by a device address.
    Local,
    /// A call of a function in the same call cycle.
    Recursive,
    /// The result is another name for the operand's registers.
    Renaming,
}

/// The forms of a function's instructions.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    by_inst: SecondaryMap<Inst, Form>,
}

impl Forms {
    /// Finds the forms of a function's instructions. `predicates` are the values that live in predicate registers.
    pub(crate) fn find(symbols: &Symbols<'_>, function: &Function, predicates: &EntitySet<Value>) -> Forms {
        let func = &function.clif;
        let regions = &func.dfg.alias_regions;
        let cells = if symbols.program.is_local() { regions.get(region::CELLS) } else { None };
        let local = [regions.get(region::FRAME), cells];
        let legalizer = Legalizer { symbols, function, func, predicates, local };
        let mut forms = Forms::default();
        forms.by_inst.resize(func.dfg.num_insts());
        for block in func.layout.blocks() {
            let mut nonzero = Nonzero::default();
            for inst in func.layout.block_insts(block) {
                let form = legalizer.form(inst, &mut nonzero);
                if form != Form::Plain {
                    forms.by_inst[inst] = form;
                }
            }
        }
        forms
    }

    pub(crate) fn of(&self, inst: Inst) -> Form {
        self.by_inst[inst]
    }
}

/// Everything that the forms depend on.
struct Legalizer<'a> {
    symbols: &'a Symbols<'a>,
    function: &'a Function,
    func: &'a ir::Function,
    predicates: &'a EntitySet<Value>,
    /// The alias regions in the thread's local memory: stack slots, and guest memory where that is local.
    local: [Option<AliasRegion>; 2],
}

impl Legalizer<'_> {
    #[rustfmt::skip]
    fn form(&self, inst: Inst, nonzero: &mut Nonzero) -> Form {
        let dfg = &self.func.dfg;
        let data = &dfg.insts[inst];
        let arg = |at: usize| dfg.inst_args(inst)[at];
        match data.opcode() {
            Opcode::Umulhi | Opcode::Smulhi | Opcode::Rotl | Opcode::Rotr | Opcode::Clz | Opcode::Cls | Opcode::Ctz
            | Opcode::Popcnt | Opcode::Bitrev | Opcode::Bswap | Opcode::Ireduce => width(dfg.value_type(arg(0))),
            Opcode::Select | Opcode::SelectSpectreGuard | Opcode::Bmask | Opcode::Brif | Opcode::Trapnz => {
                self.condition(arg(0))
            }
            Opcode::Trapz => {
                nonzero.add(self.func, arg(0));
                self.condition(arg(0))
            }
            Opcode::Uextend | Opcode::Sextend if self.is_predicate(arg(0)) => Form::Predicate,
            Opcode::Band | Opcode::Bor | Opcode::Bxor if self.is_predicate(dfg.first_result(inst)) => {
                if values::constant(self.func, arg(1)).is_some() { Form::NotPredicate } else { Form::Predicate }
            }
            opcode @ (Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem) => {
                match nonzero.tests(self.func, opcode, arg(1)) {
                    (false, false) => Form::Plain,
                    (zero, overflow) => Form::Tested { zero, overflow },
                }
            }
            Opcode::Fdiv if self.has_branchless_form(inst) => Form::BranchlessDivision {
                tests_dividend: values::float_bits(self.func, arg(0)).is_none(),
                tests_divisor: values::float_bits(self.func, arg(1)).is_none(),
            },
            Opcode::Sqrt if self.has_branchless_form(inst) => Form::BranchlessRoot,
            Opcode::FcvtToSintSat | Opcode::FcvtToUintSat => {
                let (from, to) = (dfg.value_type(arg(0)), dfg.ctrl_typevar(inst));
                Form::Saturating { clamps: to.bits() < 32, tests_nan: from != types::F32 || to == types::I64 }
            }
            Opcode::Bitcast => self.bitcast(arg(0)),
            _ => match *data {
                InstructionData::Load { flags, .. } | InstructionData::Store { flags, .. } => self.access(flags),
                InstructionData::Call { func_ref, .. } => self.call(func_ref),
                _ => Form::Plain,
            },
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

    /// Whether a division or square root has a branchless form. Only those of f64 in speculative builds do, which stop
    /// the instance at operands that are too large or too small. A constant operand of that kind would stop every
    /// instance.
    fn has_branchless_form(&self, inst: Inst) -> bool {
        let dfg = &self.func.dfg;
        let is_at_edge =
            |arg: &Value| values::float_bits(self.func, *arg).is_some_and(|bits| !division::is_inside(bits));
        self.symbols.program.is_speculative()
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

    fn access(&self, flags: MemFlags) -> Form {
        let region = self.func.dfg.mem_flags[flags].alias_region();
        if region.is_some() && self.local.contains(&region) { Form::Local } else { Form::Plain }
    }

    fn call(&self, callee: FuncRef) -> Form {
        let Some(cycle) = self.function.cycle else { return Form::Plain };
        match self.symbols.resolve(self.function, &self.func.dfg.ext_funcs[callee].name) {
            Ok(Name::Function(callee)) if callee.cycle == Some(cycle) => Form::Recursive,
            _ => Form::Plain,
        }
    }
}

fn width(ty: Type) -> Form {
    match ty {
        types::I8 | types::I16 => Form::Narrow,
        types::I64 => Form::Wide,
        _ => Form::Plain,
    }
}
