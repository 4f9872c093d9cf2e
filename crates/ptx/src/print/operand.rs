//! What stands in an instruction's operand position for a CLIF value.
//!
//! Constants stand for themselves, a sum goes into the address that uses it, a condition is looked up where it was
//! compared. What an operand position demands (a register, defined upper bits, a predicate) is made here, at the use.

use super::Printer;
use super::register::{Class, Operand, Reg, plain, unsigned};
use crate::Error;
use crate::analysis::values;
use cranelift_codegen::ir::{Inst, Opcode, Type, Value, types};

/// A condition, as a branch sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Truth {
    Always,
    Never,
    If(Reg),
}

impl Printer<'_> {
    /// The value's operand as it is: perhaps a predicate.
    pub(crate) fn value(&self, value: Value) -> Operand {
        self.operands.scalars[self.func.dfg.resolve_aliases(value)]
    }

    pub(crate) fn ty(&self, value: Value) -> Type {
        self.func.dfg.value_type(value)
    }

    /// The register of the instruction's only result.
    pub(crate) fn result(&self, inst: Inst) -> Result<Reg, Error> {
        match self.func.dfg.inst_results(inst) {
            [result] => self.register(*result).ok_or_else(|| self.unsupported(inst)),
            _ => Err(self.unsupported(inst)),
        }
    }

    pub(crate) fn register(&self, value: Value) -> Option<Reg> {
        self.value(value).register()
    }

    /// The value as a number; an i8's or i16's upper bits are undefined.
    pub(crate) fn number(&mut self, value: Value) -> Operand {
        match self.value(value) {
            Operand::Reg(predicate) if predicate.class == Class::Pred => {
                self.body.op_to_temp(Class::B32, "selp", ".b32", &[1.into(), 0.into(), predicate.into()]).into()
            }
            other => other,
        }
    }

    /// The value in a register, for operand positions that take no constant.
    pub(crate) fn in_register(&mut self, value: Value) -> Reg {
        let operand = self.number(value);
        let ty = self.ty(value);
        self.load_operand(operand, ty)
    }

    /// The operand in a register of the type's class.
    pub(crate) fn load_operand(&mut self, operand: Operand, ty: Type) -> Reg {
        match operand {
            Operand::Reg(reg) => reg,
            constant => {
                let class = Class::of(ty).unwrap_or(Class::B32);
                self.body.op_to_temp(class, "mov", plain(ty), &[constant])
            }
        }
    }

    /// The value with defined upper bits: zero-extended to 32 bits where it is narrower.
    pub(crate) fn zero_extended(&mut self, value: Value) -> Operand {
        let width = self.ty(value).bits();
        let mask = (1i64 << width.min(32)) - 1;
        match self.number(value) {
            Operand::Int(n) if width < 32 => (n & mask).into(),
            operand if width < 32 && !self.has_clean_upper_bits(value) => {
                self.body.op_to_temp(Class::B32, "and", ".b32", &[operand, mask.into()]).into()
            }
            operand => operand,
        }
    }

    /// Narrow loads extend, and so do predicates that became numbers.
    fn has_clean_upper_bits(&self, value: Value) -> bool {
        if matches!(self.value(value), Operand::Reg(Reg { class: Class::Pred, .. })) {
            return true;
        }
        let value = self.func.dfg.resolve_aliases(value);
        self.func.dfg.value_def(value).inst().is_some_and(|inst| self.func.dfg.insts[inst].opcode() == Opcode::Load)
    }

    /// The value sign-extended to 32 bits where it is narrower.
    pub(crate) fn sign_extended(&mut self, value: Value) -> Operand {
        let suffix = match self.ty(value) {
            types::I8 => ".s32.s8",
            types::I16 => ".s32.s16",
            _ => return self.number(value),
        };
        match self.number(value) {
            Operand::Int(n) => n.into(),
            operand => self.body.op_to_temp(Class::B32, "cvt", suffix, &[operand]).into(),
        }
    }

    /// The constant a value is.
    pub(crate) fn constant(&self, value: Value) -> Option<i64> {
        values::constant(self.func, value)
    }

    /// A condition in a predicate.
    pub(crate) fn truth(&mut self, value: Value) -> Truth {
        let value = values::condition(self.func, value);
        match self.value(value) {
            Operand::Reg(predicate) if predicate.class == Class::Pred => Truth::If(predicate),
            Operand::Int(0) => Truth::Never,
            Operand::Int(_) => Truth::Always,
            _ => {
                let ty = self.ty(value);
                let number = self.zero_extended(value);
                Truth::If(self.body.op_to_temp(Class::Pred, "setp.ne", unsigned(ty), &[number, 0.into()]))
            }
        }
    }
}
