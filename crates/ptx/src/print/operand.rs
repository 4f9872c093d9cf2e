//! Turns CLIF values into operands of PTX instructions.
//!
//! Constants become immediates, a sum is folded into the address that uses it, and an extended condition is replaced by
//! the comparison it extends. Whatever else an operand position requires (a register, defined upper bits, a predicate)
//! is made here, at the use.

use super::Printer;
use super::register::{Class, Operand, Reg, plain, unsigned};
use crate::Error;
use crate::analysis::values;
use cranelift_codegen::ir::{Inst, Type, Value, types};

/// What an operand position requires of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// Nothing: the low bits of the result depend only on the low bits of the value.
    AsIs,
    /// An i8 or i16 must be zero-extended.
    Zero,
    /// An i8 or i16 must be sign-extended.
    Sign,
    /// The value is a shift's amount, to be taken modulo the width of the shifted type.
    Amount,
}

impl Printer<'_> {
    /// Returns the value's operand unchanged; it may be a predicate.
    pub(crate) fn value(&self, value: Value) -> Operand {
        self.operands.scalars[self.func.dfg.resolve_aliases(value)]
    }

    pub(crate) fn ty(&self, value: Value) -> Type {
        self.func.dfg.value_type(value)
    }

    /// Returns the register of the instruction's only result.
    pub(crate) fn result(&self, inst: Inst) -> Result<Reg, Error> {
        match self.func.dfg.inst_results(inst) {
            [result] => self.register(*result).ok_or_else(|| self.unsupported(inst)),
            _ => Err(self.unsupported(inst)),
        }
    }

    pub(crate) fn register(&self, value: Value) -> Option<Reg> {
        self.value(value).register()
    }

    /// Returns the value as a number; the upper bits of an i8 or i16 are undefined.
    pub(crate) fn number(&mut self, value: Value) -> Operand {
        match self.value(value) {
            Operand::Reg(predicate) if predicate.class == Class::Pred => {
                self.body.op_to_temp(Class::B32, "selp", ".b32", &[1.into(), 0.into(), predicate.into()]).into()
            }
            other => other,
        }
    }

    /// Returns the value in the way that `need` describes, for an instruction on values of type `ty`.
    pub(crate) fn operand(&mut self, value: Value, need: Need, ty: Type) -> Operand {
        match need {
            Need::AsIs => self.number(value),
            Need::Zero => self.zero_extended(value),
            Need::Sign => self.sign_extended(value),
            Need::Amount => self.amount(value, ty),
        }
    }

    /// Returns the value in the way that `need` describes, in a register, for instructions on this value alone.
    pub(crate) fn operand_in_register(&mut self, value: Value, need: Need) -> Reg {
        let ty = self.ty(value);
        let operand = self.operand(value, need, ty);
        self.load_operand(operand, ty)
    }

    /// Returns the value in a register, for operand positions that take no constant.
    pub(crate) fn in_register(&mut self, value: Value) -> Reg {
        let operand = self.number(value);
        let ty = self.ty(value);
        self.load_operand(operand, ty)
    }

    /// Returns a register of the type's class that holds the operand.
    pub(crate) fn load_operand(&mut self, operand: Operand, ty: Type) -> Reg {
        match operand {
            Operand::Reg(reg) => reg,
            constant => {
                let class = Class::of(ty).unwrap_or(Class::B32);
                self.body.op_to_temp(class, "mov", plain(ty), &[constant])
            }
        }
    }

    /// Returns the value, zero-extended to 32 bits if it is narrower.
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

    /// Returns a shift's amount modulo the width of the shifted type, in 32 bits.
    pub(crate) fn amount(&mut self, value: Value, ty: Type) -> Operand {
        let mask = i64::from(ty.bits()) - 1;
        if let Some(n) = self.constant(value) {
            return (n & mask).into();
        }
        let low = self.low_word(value);
        self.body.op_to_temp(Class::B32, "and", ".b32", &[low, mask.into()]).into()
    }

    /// Returns the value's low 32 bits.
    pub(crate) fn low_word(&mut self, value: Value) -> Operand {
        match self.number(value) {
            Operand::Int(n) => i64::from(n as i32).into(),
            operand if self.ty(value) == types::I64 => {
                self.body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[operand]).into()
            }
            operand => operand,
        }
    }

    /// Returns the value, sign-extended to 32 bits if it is narrower.
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

    /// Returns the integer that a value is, if it is constant.
    pub(crate) fn constant(&self, value: Value) -> Option<i64> {
        values::constant(self.func, value)
    }

    /// Returns a predicate for a condition that is not constant.
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
