//! What stands in an instruction's operand position for a CLIF value.
//!
//! Constants stand for themselves, a sum goes into the address that uses it, a condition is looked up where it was
//! compared. What an operand position demands (a register, defined upper bits, a predicate) is made here, at the use.

use super::Printer;
use super::register::{Class, Operand, Reg, plain, unsigned};
use crate::Error;
use crate::analysis::values;
use cranelift_codegen::ir::{Inst, Type, Value, types};

/// What an operand position asks of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// Nothing: the result's low bits depend on its low bits alone.
    AsIs,
    /// The upper bits of an i8 or i16: zero-extended, sign-extended.
    Zero,
    Sign,
    /// A shift's amount, modulo the width of what is shifted.
    Amount,
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

    /// The value as an instruction on values of type `ty` needs it.
    pub(crate) fn operand(&mut self, value: Value, need: Need, ty: Type) -> Operand {
        match need {
            Need::AsIs => self.number(value),
            Need::Zero => self.zero_extended(value),
            Need::Sign => self.sign_extended(value),
            Need::Amount => self.amount(value, ty),
        }
    }

    /// The same in a register, for instructions on the value alone.
    pub(crate) fn operand_in_register(&mut self, value: Value, need: Need) -> Reg {
        let ty = self.ty(value);
        let operand = self.operand(value, need, ty);
        self.load_operand(operand, ty)
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
            operand if width < 32 && !self.analysis.is_zero_above(self.func, value) => {
                self.body.op_to_temp(Class::B32, "and", ".b32", &[operand, mask.into()]).into()
            }
            operand => operand,
        }
    }

    /// A shift's amount modulo the width of the type that is shifted, in 32 bits.
    pub(crate) fn amount(&mut self, value: Value, ty: Type) -> Operand {
        let mask = i64::from(ty.bits()) - 1;
        if let Some(n) = self.constant(value) {
            return (n & mask).into();
        }
        let low = self.low_word(value);
        self.body.op_to_temp(Class::B32, "and", ".b32", &[low, mask.into()]).into()
    }

    /// The value's low 32 bits.
    pub(crate) fn low_word(&mut self, value: Value) -> Operand {
        match self.number(value) {
            Operand::Int(n) => i64::from(n as i32).into(),
            operand if self.ty(value) == types::I64 => {
                self.body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[operand]).into()
            }
            operand => operand,
        }
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

    /// A condition that is no constant, in a predicate.
    pub(crate) fn condition(&mut self, value: Value) -> Reg {
        let value = values::condition(self.func, value);
        match self.value(value) {
            Operand::Reg(predicate) if predicate.class == Class::Pred => predicate,
            _ => {
                let ty = self.ty(value);
                let number = self.zero_extended(value);
                self.body.op_to_temp(Class::Pred, "setp.ne", unsigned(ty), &[number, 0.into()])
            }
        }
    }
}
