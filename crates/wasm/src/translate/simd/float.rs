//! Float lanes: each operator does with every lane what the scalar operator does.
//!
//! NaNs are handled as for scalar operators ([`crate::pass::nan`]); that pass looks through vectors being joined and
//! taken apart.

use super::{Translator, Words};
use crate::code::Code;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::FuncInstBuilder;
use wasmparser::Operator as Op;

pub(super) fn translate(t: &mut Translator<'_, '_>, op: &Op<'_>) -> bool {
    use FloatCC::*;
    match *op {
        Op::F32x4Add => t.each_float2(|i, a, b| i.fadd(a, b)),
        Op::F64x2Add => t.each_double2(|i, a, b| i.fadd(a, b)),
        Op::F32x4Sub => t.each_float2(|i, a, b| i.fsub(a, b)),
        Op::F64x2Sub => t.each_double2(|i, a, b| i.fsub(a, b)),
        Op::F32x4Mul => t.each_float2(|i, a, b| i.fmul(a, b)),
        Op::F64x2Mul => t.each_double2(|i, a, b| i.fmul(a, b)),
        Op::F32x4Div => t.each_float2(|i, a, b| i.fdiv(a, b)),
        Op::F64x2Div => t.each_double2(|i, a, b| i.fdiv(a, b)),
        // The relaxed forms leave NaN and the sign of zero open: here they are as in the strict forms.
        Op::F32x4Min | Op::F32x4RelaxedMin => t.each_float2(|i, a, b| i.fmin(a, b)),
        Op::F64x2Min | Op::F64x2RelaxedMin => t.each_double2(|i, a, b| i.fmin(a, b)),
        Op::F32x4Max | Op::F32x4RelaxedMax => t.each_float2(|i, a, b| i.fmax(a, b)),
        Op::F64x2Max | Op::F64x2RelaxedMax => t.each_double2(|i, a, b| i.fmax(a, b)),
        Op::F32x4PMin => t.choose_floats(|c, a, b| pseudo(c, b, a, a, b)),
        Op::F64x2PMin => t.choose_doubles(|c, a, b| pseudo(c, b, a, a, b)),
        Op::F32x4PMax => t.choose_floats(|c, a, b| pseudo(c, a, b, a, b)),
        Op::F64x2PMax => t.choose_doubles(|c, a, b| pseudo(c, a, b, a, b)),

        Op::F32x4Abs => t.each_float(|i, a| i.fabs(a)),
        Op::F64x2Abs => t.each_double(|i, a| i.fabs(a)),
        Op::F32x4Neg => t.each_float(|i, a| i.fneg(a)),
        Op::F64x2Neg => t.each_double(|i, a| i.fneg(a)),
        Op::F32x4Sqrt => t.each_float(|i, a| i.sqrt(a)),
        Op::F64x2Sqrt => t.each_double(|i, a| i.sqrt(a)),
        Op::F32x4Ceil => t.each_float(|i, a| i.ceil(a)),
        Op::F64x2Ceil => t.each_double(|i, a| i.ceil(a)),
        Op::F32x4Floor => t.each_float(|i, a| i.floor(a)),
        Op::F64x2Floor => t.each_double(|i, a| i.floor(a)),
        Op::F32x4Trunc => t.each_float(|i, a| i.trunc(a)),
        Op::F64x2Trunc => t.each_double(|i, a| i.trunc(a)),
        Op::F32x4Nearest => t.each_float(|i, a| i.nearest(a)),
        Op::F64x2Nearest => t.each_double(|i, a| i.nearest(a)),
        // The relaxed forms leave open whether the product is rounded: here it is not.
        Op::F32x4RelaxedMadd => t.fuse_floats(false),
        Op::F64x2RelaxedMadd => t.fuse_doubles(false),
        Op::F32x4RelaxedNmadd => t.fuse_floats(true),
        Op::F64x2RelaxedNmadd => t.fuse_doubles(true),

        Op::F32x4Eq => t.compare_float_lanes(Equal),
        Op::F32x4Ne => t.compare_float_lanes(NotEqual),
        Op::F32x4Lt => t.compare_float_lanes(LessThan),
        Op::F32x4Gt => t.compare_float_lanes(GreaterThan),
        Op::F32x4Le => t.compare_float_lanes(LessThanOrEqual),
        Op::F32x4Ge => t.compare_float_lanes(GreaterThanOrEqual),
        Op::F64x2Eq => t.compare_double_lanes(Equal),
        Op::F64x2Ne => t.compare_double_lanes(NotEqual),
        Op::F64x2Lt => t.compare_double_lanes(LessThan),
        Op::F64x2Gt => t.compare_double_lanes(GreaterThan),
        Op::F64x2Le => t.compare_double_lanes(LessThanOrEqual),
        Op::F64x2Ge => t.compare_double_lanes(GreaterThanOrEqual),

        // The relaxed forms leave NaN and numbers that do not fit open: here they saturate.
        Op::I32x4TruncSatF32x4S | Op::I32x4RelaxedTruncF32x4S => t.truncate_floats(true),
        Op::I32x4TruncSatF32x4U | Op::I32x4RelaxedTruncF32x4U => t.truncate_floats(false),
        Op::I32x4TruncSatF64x2SZero | Op::I32x4RelaxedTruncF64x2SZero => t.truncate_doubles(true),
        Op::I32x4TruncSatF64x2UZero | Op::I32x4RelaxedTruncF64x2UZero => t.truncate_doubles(false),
        Op::F32x4ConvertI32x4S => t.convert_words(true),
        Op::F32x4ConvertI32x4U => t.convert_words(false),
        Op::F64x2ConvertLowI32x4S => t.convert_low_words(true),
        Op::F64x2ConvertLowI32x4U => t.convert_low_words(false),
        Op::F32x4DemoteF64x2Zero => {
            let [a, b] = t.pop_doubles().map(|double| t.code.ins().fdemote(types::F32, double));
            let zero = t.code.ins().f32const(0.0);
            t.push_floats([a, b, zero, zero]);
        }
        Op::F64x2PromoteLowF32x4 => {
            let [a, b, ..] = t.pop_floats();
            let doubles = [a, b].map(|float| t.code.ins().fpromote(types::F64, float));
            t.push_doubles(doubles);
        }
        _ => return false,
    }
    true
}

/// Returns `b` if `x < y`, else `a`, with all bits unchanged.
fn pseudo(c: &mut Code<'_>, x: Value, y: Value, a: Value, b: Value) -> Value {
    let less = c.ins().fcmp(FloatCC::LessThan, x, y);
    c.ins().select(less, b, a)
}

fn each2<const N: usize>(a: [Value; N], b: [Value; N], mut make: impl FnMut(Value, Value) -> Value) -> [Value; N] {
    std::array::from_fn(|i| make(a[i], b[i]))
}

impl<'b> Translator<'_, 'b> {
    fn each_float(&mut self, make: impl Fn(FuncInstBuilder<'_, 'b>, Value) -> Value) {
        let floats = self.pop_floats().map(|a| make(self.code.ins(), a));
        self.push_floats(floats);
    }
    fn each_double(&mut self, make: impl Fn(FuncInstBuilder<'_, 'b>, Value) -> Value) {
        let doubles = self.pop_doubles().map(|a| make(self.code.ins(), a));
        self.push_doubles(doubles);
    }
    fn each_float2(&mut self, make: impl Fn(FuncInstBuilder<'_, 'b>, Value, Value) -> Value) {
        self.choose_floats(|c, a, b| make(c.ins(), a, b));
    }
    fn each_double2(&mut self, make: impl Fn(FuncInstBuilder<'_, 'b>, Value, Value) -> Value) {
        self.choose_doubles(|c, a, b| make(c.ins(), a, b));
    }
    fn choose_floats(&mut self, make: impl Fn(&mut Code<'b>, Value, Value) -> Value) {
        let (b, a) = (self.pop_floats(), self.pop_floats());
        let floats = each2(a, b, |a, b| make(&mut self.code, a, b));
        self.push_floats(floats);
    }
    fn choose_doubles(&mut self, make: impl Fn(&mut Code<'b>, Value, Value) -> Value) {
        let (b, a) = (self.pop_doubles(), self.pop_doubles());
        let doubles = each2(a, b, |a, b| make(&mut self.code, a, b));
        self.push_doubles(doubles);
    }

    fn fuse_floats(&mut self, negated: bool) {
        let (c, b, a) = (self.pop_floats(), self.pop_floats(), self.pop_floats());
        let floats = std::array::from_fn(|i| self.fuse(a[i], b[i], c[i], negated));
        self.push_floats(floats);
    }
    fn fuse_doubles(&mut self, negated: bool) {
        let (c, b, a) = (self.pop_doubles(), self.pop_doubles(), self.pop_doubles());
        let doubles = std::array::from_fn(|i| self.fuse(a[i], b[i], c[i], negated));
        self.push_doubles(doubles);
    }
    fn fuse(&mut self, a: Value, b: Value, c: Value, negated: bool) -> Value {
        let a = if negated { self.code.ins().fneg(a) } else { a };
        self.code.ins().fma(a, b, c)
    }

    fn compare_float_lanes(&mut self, condition: FloatCC) {
        let (b, a) = (self.pop_floats(), self.pop_floats());
        let words: Words = each2(a, b, |a, b| float_mask(&mut self.code, condition, a, b));
        self.push_words(words);
    }
    fn compare_double_lanes(&mut self, condition: FloatCC) {
        let (b, a) = (self.pop_doubles(), self.pop_doubles());
        let [low, high] = each2(a, b, |a, b| float_mask(&mut self.code, condition, a, b));
        self.push_words([low, low, high, high]);
    }

    fn truncate_lane(&mut self, value: Value, signed: bool) -> Value {
        match signed {
            true => self.code.ins().fcvt_to_sint_sat(types::I32, value),
            false => self.code.ins().fcvt_to_uint_sat(types::I32, value),
        }
    }
    fn truncate_floats(&mut self, signed: bool) {
        let words = self.pop_floats().map(|float| self.truncate_lane(float, signed));
        self.push_words(words);
    }
    fn truncate_doubles(&mut self, signed: bool) {
        let [a, b] = self.pop_doubles().map(|double| self.truncate_lane(double, signed));
        let zero = self.code.i32(0);
        self.push_words([a, b, zero, zero]);
    }
    fn convert(&mut self, to: types::Type, word: Value, signed: bool) -> Value {
        if signed { self.code.ins().fcvt_from_sint(to, word) } else { self.code.ins().fcvt_from_uint(to, word) }
    }
    fn convert_words(&mut self, signed: bool) {
        let floats = self.pop_words().map(|word| self.convert(types::F32, word, signed));
        self.push_floats(floats);
    }
    fn convert_low_words(&mut self, signed: bool) {
        let [a, b, ..] = self.pop_words();
        let doubles = [a, b].map(|word| self.convert(types::F64, word, signed));
        self.push_doubles(doubles);
    }
}

/// Returns a word of ones if the comparison holds, else 0.
fn float_mask(c: &mut Code<'_>, condition: FloatCC, a: Value, b: Value) -> Value {
    let flag = c.ins().fcmp(condition, a, b);
    c.ins().bmask(types::I32, flag)
}
