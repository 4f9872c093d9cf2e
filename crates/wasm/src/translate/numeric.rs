//! Numbers: constants, arithmetic, comparisons, conversions.
//!
//! Where the hardware's result is undefined (division by zero, the smallest integer divided by -1, floats that fit no
//! integer), explicit traps here decide, so that a device never sees such operands.

use super::Translator;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use cranelift_frontend::FuncInstBuilder;
use gpu_run_abi::TrapCode;
use wasmparser::Operator as Op;

/// Translates `op` if it is a numeric operator.
pub(super) fn translate(t: &mut Translator<'_, '_>, op: &Op<'_>) -> bool {
    use types::{F32, F64, I8, I16, I32, I64};
    match *op {
        Op::I32Const { value } => t.constant(|t| t.code.i32(value.into())),
        Op::I64Const { value } => t.constant(|t| t.code.i64(value)),
        Op::F32Const { value } => t.constant(|t| t.code.ins().f32const(Ieee32::with_bits(value.bits()))),
        Op::F64Const { value } => t.constant(|t| t.code.ins().f64const(Ieee64::with_bits(value.bits()))),

        Op::I32Add | Op::I64Add => t.binary(|i, a, b| i.iadd(a, b)),
        Op::I32Sub | Op::I64Sub => t.binary(|i, a, b| i.isub(a, b)),
        Op::I32Mul | Op::I64Mul => t.binary(|i, a, b| i.imul(a, b)),
        Op::I32And | Op::I64And => t.binary(|i, a, b| i.band(a, b)),
        Op::I32Or | Op::I64Or => t.binary(|i, a, b| i.bor(a, b)),
        Op::I32Xor | Op::I64Xor => t.binary(|i, a, b| i.bxor(a, b)),
        Op::I32Shl | Op::I64Shl => t.binary(|i, a, b| i.ishl(a, b)),
        Op::I32ShrS | Op::I64ShrS => t.binary(|i, a, b| i.sshr(a, b)),
        Op::I32ShrU | Op::I64ShrU => t.binary(|i, a, b| i.ushr(a, b)),
        Op::I32Rotl | Op::I64Rotl => t.binary(|i, a, b| i.rotl(a, b)),
        Op::I32Rotr | Op::I64Rotr => t.binary(|i, a, b| i.rotr(a, b)),
        Op::I32Clz | Op::I64Clz => t.unary(|i, a| i.clz(a)),
        Op::I32Ctz | Op::I64Ctz => t.unary(|i, a| i.ctz(a)),
        Op::I32Popcnt | Op::I64Popcnt => t.unary(|i, a| i.popcnt(a)),

        Op::I32DivS => t.divide_signed(I32),
        Op::I64DivS => t.divide_signed(I64),
        Op::I32DivU | Op::I64DivU => t.divide(|i, a, b| i.udiv(a, b)),
        Op::I32RemS | Op::I64RemS => t.remainder_signed(),
        Op::I32RemU | Op::I64RemU => t.divide(|i, a, b| i.urem(a, b)),

        Op::I32Eqz | Op::I64Eqz => {
            let a = t.pop();
            let equal = t.code.ins().icmp_imm_s(IntCC::Equal, a, 0);
            t.push_flag(equal);
        }
        Op::I32Eq | Op::I64Eq => t.compare(IntCC::Equal),
        Op::I32Ne | Op::I64Ne => t.compare(IntCC::NotEqual),
        Op::I32LtS | Op::I64LtS => t.compare(IntCC::SignedLessThan),
        Op::I32LtU | Op::I64LtU => t.compare(IntCC::UnsignedLessThan),
        Op::I32GtS | Op::I64GtS => t.compare(IntCC::SignedGreaterThan),
        Op::I32GtU | Op::I64GtU => t.compare(IntCC::UnsignedGreaterThan),
        Op::I32LeS | Op::I64LeS => t.compare(IntCC::SignedLessThanOrEqual),
        Op::I32LeU | Op::I64LeU => t.compare(IntCC::UnsignedLessThanOrEqual),
        Op::I32GeS | Op::I64GeS => t.compare(IntCC::SignedGreaterThanOrEqual),
        Op::I32GeU | Op::I64GeU => t.compare(IntCC::UnsignedGreaterThanOrEqual),

        Op::F32Eq | Op::F64Eq => t.compare_floats(FloatCC::Equal),
        Op::F32Ne | Op::F64Ne => t.compare_floats(FloatCC::NotEqual),
        Op::F32Lt | Op::F64Lt => t.compare_floats(FloatCC::LessThan),
        Op::F32Gt | Op::F64Gt => t.compare_floats(FloatCC::GreaterThan),
        Op::F32Le | Op::F64Le => t.compare_floats(FloatCC::LessThanOrEqual),
        Op::F32Ge | Op::F64Ge => t.compare_floats(FloatCC::GreaterThanOrEqual),

        Op::F32Add | Op::F64Add => t.binary(|i, a, b| i.fadd(a, b)),
        Op::F32Sub | Op::F64Sub => t.binary(|i, a, b| i.fsub(a, b)),
        Op::F32Mul | Op::F64Mul => t.binary(|i, a, b| i.fmul(a, b)),
        Op::F32Div | Op::F64Div => t.binary(|i, a, b| i.fdiv(a, b)),
        Op::F32Min | Op::F64Min => t.binary(|i, a, b| i.fmin(a, b)),
        Op::F32Max | Op::F64Max => t.binary(|i, a, b| i.fmax(a, b)),
        Op::F32Copysign | Op::F64Copysign => t.binary(|i, a, b| i.fcopysign(a, b)),
        Op::F32Abs | Op::F64Abs => t.unary(|i, a| i.fabs(a)),
        Op::F32Neg | Op::F64Neg => t.unary(|i, a| i.fneg(a)),
        Op::F32Ceil | Op::F64Ceil => t.unary(|i, a| i.ceil(a)),
        Op::F32Floor | Op::F64Floor => t.unary(|i, a| i.floor(a)),
        Op::F32Trunc | Op::F64Trunc => t.unary(|i, a| i.trunc(a)),
        Op::F32Nearest | Op::F64Nearest => t.unary(|i, a| i.nearest(a)),
        Op::F32Sqrt | Op::F64Sqrt => t.unary(|i, a| i.sqrt(a)),

        Op::I32WrapI64 => t.unary(|i, a| i.ireduce(I32, a)),
        Op::I64ExtendI32S => t.unary(|i, a| i.sextend(I64, a)),
        Op::I64ExtendI32U => t.unary(|i, a| i.uextend(I64, a)),
        Op::I32Extend8S => t.extend(I8, I32),
        Op::I32Extend16S => t.extend(I16, I32),
        Op::I64Extend8S => t.extend(I8, I64),
        Op::I64Extend16S => t.extend(I16, I64),
        Op::I64Extend32S => t.extend(I32, I64),

        Op::I32TruncF32S | Op::I32TruncF64S => t.truncate(I32, true),
        Op::I32TruncF32U | Op::I32TruncF64U => t.truncate(I32, false),
        Op::I64TruncF32S | Op::I64TruncF64S => t.truncate(I64, true),
        Op::I64TruncF32U | Op::I64TruncF64U => t.truncate(I64, false),
        Op::I32TruncSatF32S | Op::I32TruncSatF64S => t.unary(|i, a| i.fcvt_to_sint_sat(I32, a)),
        Op::I32TruncSatF32U | Op::I32TruncSatF64U => t.unary(|i, a| i.fcvt_to_uint_sat(I32, a)),
        Op::I64TruncSatF32S | Op::I64TruncSatF64S => t.unary(|i, a| i.fcvt_to_sint_sat(I64, a)),
        Op::I64TruncSatF32U | Op::I64TruncSatF64U => t.unary(|i, a| i.fcvt_to_uint_sat(I64, a)),

        Op::F32ConvertI32S | Op::F32ConvertI64S => t.unary(|i, a| i.fcvt_from_sint(F32, a)),
        Op::F32ConvertI32U | Op::F32ConvertI64U => t.unary(|i, a| i.fcvt_from_uint(F32, a)),
        Op::F64ConvertI32S | Op::F64ConvertI64S => t.unary(|i, a| i.fcvt_from_sint(F64, a)),
        Op::F64ConvertI32U | Op::F64ConvertI64U => t.unary(|i, a| i.fcvt_from_uint(F64, a)),
        Op::F32DemoteF64 => t.unary(|i, a| i.fdemote(F32, a)),
        Op::F64PromoteF32 => t.unary(|i, a| i.fpromote(F64, a)),
        Op::I32ReinterpretF32 => t.unary(|i, a| i.bitcast(I32, MemFlagsData::new(), a)),
        Op::I64ReinterpretF64 => t.unary(|i, a| i.bitcast(I64, MemFlagsData::new(), a)),
        Op::F32ReinterpretI32 => t.unary(|i, a| i.bitcast(F32, MemFlagsData::new(), a)),
        Op::F64ReinterpretI64 => t.unary(|i, a| i.bitcast(F64, MemFlagsData::new(), a)),
        _ => return false,
    }
    true
}

impl<'b> Translator<'_, 'b> {
    fn constant(&mut self, make: impl FnOnce(&mut Self) -> Value) {
        let value = make(self);
        self.push(value);
    }
    fn unary(&mut self, make: impl FnOnce(FuncInstBuilder<'_, 'b>, Value) -> Value) {
        let a = self.pop();
        let value = make(self.code.ins(), a);
        self.push(value);
    }
    fn binary(&mut self, make: impl FnOnce(FuncInstBuilder<'_, 'b>, Value, Value) -> Value) {
        let (b, a) = (self.pop(), self.pop());
        let value = make(self.code.ins(), a, b);
        self.push(value);
    }
    fn extend(&mut self, from: Type, to: Type) {
        let a = self.pop();
        let narrow = self.code.ins().ireduce(from, a);
        let value = self.code.ins().sextend(to, narrow);
        self.push(value);
    }

    /// Pushes a comparison's result, which is a flag in CLIF and an i32 in wasm.
    pub(super) fn push_flag(&mut self, flag: Value) {
        let value = self.code.ins().uextend(types::I32, flag);
        self.push(value);
    }
    fn compare(&mut self, condition: IntCC) {
        let (b, a) = (self.pop(), self.pop());
        let flag = self.code.ins().icmp(condition, a, b);
        self.push_flag(flag);
    }
    fn compare_floats(&mut self, condition: FloatCC) {
        let (b, a) = (self.pop(), self.pop());
        let flag = self.code.ins().fcmp(condition, a, b);
        self.push_flag(flag);
    }

    fn divide(&mut self, make: impl FnOnce(FuncInstBuilder<'_, 'b>, Value, Value) -> Value) {
        let b = self.peek();
        self.code.trap_unless(b, TrapCode::IntegerDivisionByZero);
        self.binary(make);
    }
    fn divide_signed(&mut self, ty: Type) {
        let (b, a) = (self.pop(), self.pop());
        self.code.trap_unless(b, TrapCode::IntegerDivisionByZero);
        let smallest = if ty == types::I32 { i64::from(i32::MIN) } else { i64::MIN };
        let smallest = self.code.ins().icmp_imm_s(IntCC::Equal, a, smallest);
        let minus_one = self.code.ins().icmp_imm_s(IntCC::Equal, b, -1);
        let overflow = self.code.ins().band(smallest, minus_one);
        self.code.trap_if(overflow, TrapCode::IntegerOverflow);
        let value = self.code.ins().sdiv(a, b);
        self.push(value);
    }
    /// Emits a signed remainder. Any integer modulo -1 is 0, as it is modulo 1; so -1 is replaced by 1, which cannot
    /// overflow.
    fn remainder_signed(&mut self) {
        let (b, a) = (self.pop(), self.pop());
        self.code.trap_unless(b, TrapCode::IntegerDivisionByZero);
        let ty = self.code.b.func.dfg.value_type(b);
        let minus_one = self.code.ins().icmp_imm_s(IntCC::Equal, b, -1);
        let one = self.code.ins().iconst(ty, 1);
        let divisor = self.code.ins().select(minus_one, one, b);
        let value = self.code.ins().srem(a, divisor);
        self.push(value);
    }

    /// Converts a float to an integer, and traps unless it fits: unless it is strictly between the two nearest floats
    /// that do not.
    fn truncate(&mut self, to: Type, signed: bool) {
        let a = self.pop();
        let number = self.code.ins().fcmp(FloatCC::Equal, a, a);
        self.code.trap_unless(number, TrapCode::BadConversionToInteger);
        let from = self.code.b.func.dfg.value_type(a);
        let (low, low_fits, high) = limits(from, to, signed);
        let (low, high) = if from == types::F32 {
            (self.code.ins().f32const(low as f32), self.code.ins().f32const(high as f32))
        } else {
            (self.code.ins().f64const(low), self.code.ins().f64const(high))
        };
        let above = if low_fits { FloatCC::GreaterThanOrEqual } else { FloatCC::GreaterThan };
        let above = self.code.ins().fcmp(above, a, low);
        let below = self.code.ins().fcmp(FloatCC::LessThan, a, high);
        let fits = self.code.ins().band(above, below);
        self.code.trap_unless(fits, TrapCode::IntegerOverflow);
        let value =
            if signed { self.code.ins().fcvt_to_sint_sat(to, a) } else { self.code.ins().fcvt_to_uint_sat(to, a) };
        self.push(value);
    }
}

/// Returns the interval of floats that truncate to an integer of type `to`: its low end, whether that is included, and
/// its high end, which never is.
fn limits(from: Type, to: Type, signed: bool) -> (f64, bool, f64) {
    let high = 2f64.powi(to.bits() as i32 - i32::from(signed));
    match (signed, from == types::F64 && to == types::I32) {
        (false, _) => (-1.0, false, high),
        // f64 has numbers between -2^31 - 1 and -2^31; they truncate to -2^31.
        (true, true) => (-high - 1.0, false, high),
        (true, false) => (-high, true, high),
    }
}
