//! Instructions that compute, with PTX's meaning where it differs from CLIF's.
//!
//! It differs in shifts (PTX clamps the amount, CLIF wraps it), division (nothing traps on a GPU), minimum and maximum
//! (PTX returns the operand that is not NaN), and in instructions that CLIF does not have. Constant amounts and
//! divisors get shorter code.

use super::clif_type;
use super::host::Host;
use super::translate::Translator;
use crate::Result;
use crate::cpu::ast::{Binary, Compare, Operand, Round, Type, Unary};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};

impl<'u> Translator<'u, '_> {
    pub(super) fn binary(&mut self, op: Binary, ty: Type, o: &[Operand<'u>]) -> Result<()> {
        let a = self.read(o[1], ty)?;
        let is_shift = matches!(op, Binary::ShiftLeft | Binary::ShiftRight);
        let b = self.read(o[2], if is_shift { Type::U32 } else { ty })?;
        let value = if ty.is_float() { self.float_binary(op, a, b) } else { self.int_binary(op, ty, a, b) };
        self.write(o[0], ty, value)
    }

    fn float_binary(&mut self, op: Binary, a: Value, b: Value) -> Value {
        match op {
            Binary::Add => self.b.ins().fadd(a, b),
            Binary::Sub => self.b.ins().fsub(a, b),
            Binary::Mul => self.b.ins().fmul(a, b),
            Binary::Div => self.b.ins().fdiv(a, b),
            Binary::CopySign => self.b.ins().fcopysign(b, a), // PTX takes the sign first
            Binary::Min => {
                let least = self.b.ins().fmin(a, b);
                self.unless_nan(a, b, least)
            }
            _ => {
                let most = self.b.ins().fmax(a, b);
                self.unless_nan(a, b, most)
            }
        }
    }

    /// Returns the other operand if one is NaN.
    fn unless_nan(&mut self, a: Value, b: Value, otherwise: Value) -> Value {
        let a_nan = self.b.ins().fcmp(FloatCC::Unordered, a, a);
        let b_nan = self.b.ins().fcmp(FloatCC::Unordered, b, b);
        let value = self.b.ins().select(b_nan, a, otherwise);
        self.b.ins().select(a_nan, b, value)
    }

    fn int_binary(&mut self, op: Binary, ty: Type, a: Value, b: Value) -> Value {
        let signed = ty.is_signed();
        match op {
            Binary::Add => self.b.ins().iadd(a, b),
            Binary::Sub => self.b.ins().isub(a, b),
            Binary::Mul => self.b.ins().imul(a, b),
            Binary::MulHigh if signed => self.b.ins().smulhi(a, b),
            Binary::MulHigh => self.b.ins().umulhi(a, b),
            Binary::Min if signed => self.b.ins().smin(a, b),
            Binary::Min => self.b.ins().umin(a, b),
            Binary::Max if signed => self.b.ins().smax(a, b),
            Binary::Max => self.b.ins().umax(a, b),
            Binary::And => self.b.ins().band(a, b),
            Binary::Or => self.b.ins().bor(a, b),
            Binary::Xor => self.b.ins().bxor(a, b),
            Binary::ShiftLeft => self.shift_left(ty, a, b),
            Binary::ShiftRight => self.shift_right(ty, a, b),
            Binary::Div if signed => self.signed_divide(ty, a, b),
            Binary::Div => self.unsigned_divide(ty, a, b),
            Binary::Rem => self.remainder(ty, a, b),
            Binary::CopySign => a, // only for floats: the instruction table has no other
        }
    }

    // Halves.

    pub(super) fn pack(&mut self, o: &[Operand<'u>]) -> Result<()> {
        let (low, high) = (self.read(o[1], Type::B32)?, self.read(o[2], Type::B32)?);
        let value = self.both(low, high);
        self.write(o[0], Type::B64, value)
    }

    pub(super) fn unpack(&mut self, o: &[Operand<'u>]) -> Result<()> {
        let value = self.read(o[2], Type::B64)?;
        let low = self.b.ins().ireduce(types::I32, value);
        let half = self.int(types::I64, 32);
        let high = self.b.ins().ushr(value, half);
        let high = self.b.ins().ireduce(types::I32, high);
        self.write(o[0], Type::B32, low)?;
        self.write(o[1], Type::B32, high)
    }

    /// Joins two words to one of 64 bits.
    fn both(&mut self, low: Value, high: Value) -> Value {
        let low = self.b.ins().uextend(types::I64, low);
        let high = self.b.ins().uextend(types::I64, high);
        let half = self.int(types::I64, 32);
        let high = self.b.ins().ishl(high, half);
        self.b.ins().bor(high, low)
    }

    // Shifts.

    /// Whether the amount is known to be less than the width.
    fn in_range(&self, ty: Type, amount: Value) -> bool {
        let bits = ty.bits() as u64;
        self.constant(amount).or_else(|| self.mask_of(amount)).is_some_and(|n| n < bits)
    }

    pub(super) fn shift_left(&mut self, ty: Type, a: Value, amount: Value) -> Value {
        let shifted = self.b.ins().ishl(a, amount);
        self.or_zero(ty, amount, shifted)
    }

    pub(super) fn shift_right(&mut self, ty: Type, a: Value, amount: Value) -> Value {
        if !ty.is_signed() {
            let shifted = self.b.ins().ushr(a, amount);
            return self.or_zero(ty, amount, shifted);
        }
        let mut clamped = amount;
        if !self.in_range(ty, amount) {
            let most = self.int(types::I32, ty.bits() as i64 - 1);
            clamped = self.b.ins().umin(amount, most);
        }
        self.b.ins().sshr(a, clamped)
    }

    /// Returns zero if the amount is at least the width.
    fn or_zero(&mut self, ty: Type, amount: Value, shifted: Value) -> Value {
        if self.in_range(ty, amount) {
            return shifted;
        }
        let zero = self.int(clif_type(ty), 0);
        let bits = self.int(types::I32, ty.bits() as i64);
        let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, amount, bits);
        self.b.ins().select(inside, shifted, zero)
    }

    /// Shifts two joined words and keeps one of them.
    pub(super) fn funnel(&mut self, left: bool, wrap: bool, o: &[Operand<'u>]) -> Result<()> {
        let low = self.read(o[1], Type::B32)?;
        let high = self.read(o[2], Type::B32)?;
        let mut amount = self.read(o[3], Type::U32)?;
        let value = if wrap && o[1] == o[2] {
            match left {
                true => self.b.ins().rotl(low, amount),
                false => self.b.ins().rotr(low, amount),
            }
        } else {
            if self.constant(amount).is_none_or(|n| n >= 32) {
                let limit = self.int(types::I32, if wrap { 31 } else { 32 });
                amount = match wrap {
                    true => self.b.ins().band(amount, limit),
                    false => self.b.ins().umin(amount, limit),
                };
            }
            let both = self.both(low, high);
            let kept = if left {
                let half = self.int(types::I64, 32);
                let shifted = self.b.ins().ishl(both, amount);
                self.b.ins().ushr(shifted, half)
            } else {
                self.b.ins().ushr(both, amount)
            };
            self.b.ins().ireduce(types::I32, kept)
        };
        self.write(o[0], Type::B32, value)
    }

    /// `bfe d, a, position, length`: both are taken modulo 256; bits beyond the width are zero, or the sign.
    pub(super) fn bit_field(&mut self, ty: Type, o: &[Operand<'u>]) -> Result<()> {
        let bits = ty.bits();
        let a = self.read(o[1], ty)?;
        let position = self.read(o[2], Type::U32)?;
        let position = self.low_byte(position);
        let length = self.read(o[3], Type::U32)?;
        let length = self.low_byte(length);
        let shifted = self.shift_right(ty, a, position);
        let all = self.int(types::I32, bits as i64);
        let length = self.b.ins().umin(length, all);
        // Shift the field to the top and back. With length 0, PTX's clamping shifts remove the whole word.
        let spare = self.b.ins().isub(all, length);
        let top = self.shift_left(ty, shifted, spare);
        let value = self.shift_right(ty, top, spare);
        self.write(o[0], ty, value)
    }

    fn low_byte(&mut self, value: Value) -> Value {
        if let Some(n) = self.constant(value) {
            return self.int(types::I32, n as u8 as i64);
        }
        let mask = self.int(types::I32, 0xff);
        self.b.ins().band(value, mask)
    }

    /// `prmt d, a, b, selector`: picks four of the eight bytes in `b:a`. A nibble of the selector picks each byte; with
    /// its top bit set, the result is the byte's sign, repeated.
    pub(super) fn permute(&mut self, o: &[Operand<'u>]) -> Result<()> {
        let a = self.read(o[1], Type::B32)?;
        let b = self.read(o[2], Type::B32)?;
        let selector = self.read(o[3], Type::B32)?;
        let value = match self.constant(selector).map(|s| s & 0xffff) {
            Some(0x3210) => a,
            Some(0x7654) => b,
            Some(0x0123) => self.b.ins().bswap(a),
            _ => self.permute_bytes(a, b, selector),
        };
        self.write(o[0], Type::B32, value)
    }

    fn permute_bytes(&mut self, a: Value, b: Value, selector: Value) -> Value {
        let low = self.b.ins().uextend(types::I64, a);
        let high = self.b.ins().uextend(types::I64, b);
        let half = self.int(types::I64, 32);
        let high = self.b.ins().ishl(high, half);
        let both = self.b.ins().bor(high, low);
        let mut value = self.int(types::I32, 0);
        for byte in 0..4 {
            let at = self.int(types::I32, byte * 4);
            let nibble = self.b.ins().ushr(selector, at);
            let seven = self.int(types::I32, 7);
            let index = self.b.ins().band(nibble, seven);
            let three = self.int(types::I32, 3);
            let amount = self.b.ins().ishl(index, three);
            let picked = self.b.ins().ushr(both, amount);
            let picked = self.b.ins().ireduce(types::I8, picked);
            let sign = self.b.ins().sshr(picked, seven);
            let eight = self.int(types::I32, 8);
            let wants_sign = self.b.ins().band(nibble, eight);
            let picked = self.b.ins().select(wants_sign, sign, picked);
            let picked = self.b.ins().uextend(types::I32, picked);
            let place = self.int(types::I32, byte * 8);
            let placed = self.b.ins().ishl(picked, place);
            value = self.b.ins().bor(value, placed);
        }
        value
    }

    // Division: the result a GPU gives where the host's instruction would trap. A divisor that would trap is replaced
    // by 1.

    /// Whether the divisor is a constant other than 0 and -1.
    fn safe_divisor(&self, ty: Type, b: Value) -> bool {
        let minus_one = if ty.bits() == 32 { u32::MAX as u64 } else { u64::MAX };
        self.constant(b).is_some_and(|n| n != 0 && n != minus_one)
    }

    fn unsigned_divide(&mut self, ty: Type, a: Value, b: Value) -> Value {
        if self.safe_divisor(ty, b) {
            return self.b.ins().udiv(a, b);
        }
        let (is_zero, divisor) = self.not_zero(ty, b);
        let quotient = self.b.ins().udiv(a, divisor);
        let ones = self.int(clif_type(ty), -1);
        self.b.ins().select(is_zero, ones, quotient)
    }

    fn not_zero(&mut self, ty: Type, b: Value) -> (Value, Value) {
        let zero = self.int(clif_type(ty), 0);
        let one = self.int(clif_type(ty), 1);
        let is_zero = self.b.ins().icmp(IntCC::Equal, b, zero);
        let divisor = self.b.ins().select(is_zero, one, b);
        (is_zero, divisor)
    }

    fn signed_divide(&mut self, ty: Type, a: Value, b: Value) -> Value {
        if self.safe_divisor(ty, b) {
            return self.b.ins().sdiv(a, b);
        }
        // The host traps only for 0 and -1: one comparison finds both.
        let clif = clif_type(ty);
        let (zero, one, ones) = (self.int(clif, 0), self.int(clif, 1), self.int(clif, -1));
        let next = self.b.ins().iadd(b, one);
        let is_odd_one = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, next, one);
        let divisor = self.b.ins().select(is_odd_one, one, b);
        let quotient = self.b.ins().sdiv(a, divisor);
        let negated = self.b.ins().ineg(a);
        let is_zero = self.b.ins().icmp(IntCC::Equal, b, zero);
        let odd = self.b.ins().select(is_zero, ones, negated);
        self.b.ins().select(is_odd_one, odd, quotient)
    }

    /// The remainder of a division by 0 is the dividend, as multiplying back gives.
    fn remainder(&mut self, ty: Type, a: Value, b: Value) -> Value {
        let signed = ty.is_signed();
        if self.safe_divisor(ty, b) {
            return if signed { self.b.ins().srem(a, b) } else { self.b.ins().urem(a, b) };
        }
        let (is_zero, divisor) = self.not_zero(ty, b);
        // CLIF's `srem` by -1 is 0, whatever the dividend.
        let rest = if signed { self.b.ins().srem(a, divisor) } else { self.b.ins().urem(a, divisor) };
        self.b.ins().select(is_zero, a, rest)
    }

    pub(super) fn multiply_wide(&mut self, o: &[Operand<'u>], addend: Option<Operand<'u>>) -> Result<()> {
        let a = self.read(o[1], Type::U32)?;
        let b = self.read(o[2], Type::U32)?;
        let a = self.b.ins().uextend(types::I64, a);
        let b = self.b.ins().uextend(types::I64, b);
        let mut value = self.b.ins().imul(a, b);
        if let Some(addend) = addend {
            let addend = self.read(addend, Type::U64)?;
            value = self.b.ins().iadd(value, addend);
        }
        self.write(o[0], Type::U64, value)
    }

    pub(super) fn multiply_add(&mut self, ty: Type, o: &[Operand<'u>]) -> Result<()> {
        let a = self.read(o[1], ty)?;
        let b = self.read(o[2], ty)?;
        let c = self.read(o[3], ty)?;
        let product = self.b.ins().imul(a, b);
        let value = self.b.ins().iadd(product, c);
        self.write(o[0], ty, value)
    }

    pub(super) fn fused_multiply_add(&mut self, ty: Type, o: &[Operand<'u>]) -> Result<()> {
        let a = self.read(o[1], ty)?;
        let b = self.read(o[2], ty)?;
        let c = self.read(o[3], ty)?;
        let value = self.b.ins().fma(a, b, c);
        self.write(o[0], ty, value)
    }

    pub(super) fn unary(&mut self, op: Unary, ty: Type, o: &[Operand<'u>]) -> Result<()> {
        let a = self.read(o[1], ty)?;
        let value = match op {
            Unary::Neg if ty.is_float() => self.b.ins().fneg(a),
            Unary::Abs if ty.is_float() => self.b.ins().fabs(a),
            Unary::SquareRoot => self.b.ins().sqrt(a),
            Unary::AboutInverse | Unary::AboutInverseRoot => self.about_inverse(op, a),
            Unary::Sine => self.host(Host::Sine, &[a], Some(types::F32)),
            Unary::Cosine => self.host(Host::Cosine, &[a], Some(types::F32)),
            Unary::Exp2 => self.host(Host::Exp2, &[a], Some(types::F32)),
            Unary::Log2 => self.host(Host::Log2, &[a], Some(types::F32)),
            Unary::InverseRoot => self.host(Host::InverseRoot, &[a], Some(types::F32)),
            Unary::Neg => self.b.ins().ineg(a),
            Unary::Abs => self.b.ins().iabs(a),
            Unary::Not if ty == Type::Pred => {
                let zero = self.int(types::I8, 0);
                self.b.ins().icmp(IntCC::Equal, a, zero)
            }
            Unary::Not => self.b.ins().bnot(a),
            Unary::Reverse => self.b.ins().bitrev(a),
            Unary::LeadingZeros | Unary::Ones => {
                let count = if op == Unary::Ones { self.b.ins().popcnt(a) } else { self.b.ins().clz(a) };
                let count = if ty.bits() == 64 { self.b.ins().ireduce(types::I32, count) } else { count };
                return self.write(o[0], Type::U32, count);
            }
        };
        self.write(o[0], ty, value)
    }

    /// Approximates as a GPU does, which computes only the high word and treats subnormal inputs and results as 0.
    fn about_inverse(&mut self, op: Unary, a: Value) -> Value {
        let mut of = self.flushed(a);
        if op == Unary::AboutInverseRoot {
            of = self.b.ins().sqrt(of);
        }
        let one = self.b.ins().f64const(1.0);
        let inverse = self.b.ins().fdiv(one, of);
        let bits = self.bits_as(inverse, types::I64);
        let high = self.b.ins().band_imm_s(bits, !0xffff_ffff);
        let about = self.bits_as(high, types::F64);
        self.flushed(about)
    }

    fn flushed(&mut self, a: Value) -> Value {
        let (zero, least) = (self.b.ins().f64const(0.0), self.b.ins().f64const(f64::MIN_POSITIVE));
        let magnitude = self.b.ins().fabs(a);
        let is_small = self.b.ins().fcmp(FloatCC::LessThan, magnitude, least);
        let nothing = self.b.ins().fcopysign(zero, a);
        self.b.ins().select(is_small, nothing, a)
    }

    // Comparison and choice.

    pub(super) fn compare(&mut self, condition: Compare, ty: Type, o: &[Operand<'u>]) -> Result<()> {
        let a = self.read(o[1], ty)?;
        let b = self.read(o[2], ty)?;
        let value = if ty.is_float() {
            self.b.ins().fcmp(float_condition(condition), a, b)
        } else {
            self.b.ins().icmp(int_condition(condition, ty.is_signed()), a, b)
        };
        self.write(o[0], Type::Pred, value)
    }

    pub(super) fn select(&mut self, ty: Type, o: &[Operand<'u>]) -> Result<()> {
        let a = self.read(o[1], ty)?;
        let b = self.read(o[2], ty)?;
        let predicate = self.read(o[3], Type::Pred)?;
        let value = self.b.ins().select(predicate, a, b);
        self.write(o[0], ty, value)
    }

    // Conversions.

    pub(super) fn convert(&mut self, to: Type, from: Type, round: Round, o: &[Operand<'u>]) -> Result<()> {
        if to.is_integer() && from.is_integer() {
            return self.convert_integer(to, from, o);
        }
        let a = self.read(o[1], from)?;
        let clif = clif_type(to);
        let value = match (from.is_float(), to.is_float()) {
            (false, _) if from.is_signed() => self.b.ins().fcvt_from_sint(clif, a),
            (false, _) => self.b.ins().fcvt_from_uint(clif, a),
            (true, false) if to.is_signed() => self.b.ins().fcvt_to_sint_sat(clif, a),
            (true, false) => self.b.ins().fcvt_to_uint_sat(clif, a),
            (true, true) => match round {
                Round::Exact => self.b.ins().fpromote(clif, a),
                Round::Nearest => self.b.ins().fdemote(clif, a),
                Round::NearestInteger => self.b.ins().nearest(a),
                Round::Zero => self.b.ins().trunc(a),
                Round::Down => self.b.ins().floor(a),
                Round::Up => self.b.ins().ceil(a),
            },
        };
        self.write(o[0], to, value)
    }

    /// Takes the source's low bits, extended by the source's type; of these the result's bits, extended to the register
    /// by the result's type.
    fn convert_integer(&mut self, to: Type, from: Type, o: &[Operand<'u>]) -> Result<()> {
        let value = self.read_low(o[1], from)?;
        let Operand::Register(register) = o[0] else { return self.set(o[0], value) };
        let wide = self.type_of(register);
        if !wide.is_bits() || wide.bytes() < to.bytes() {
            return Err(self.error(format!("a register of type {wide:?} does not hold a {to:?}")));
        }
        let register = clif_type(wide);
        // The narrower of the two types decides which bits are kept, and its sign how they are extended.
        let kept = if to.bytes() < from.bytes() { to } else { from };
        let mut value = self.extend(value, kept, register);
        if kept != to {
            value = self.extend(value, to, register); // s8 to u16 in a 32-bit register
        }
        self.set(o[0], value)
    }

    /// Extends the low bits that `ty` has to `wide`, by the sign of `ty`.
    pub(super) fn extend(&mut self, value: Value, ty: Type, wide: types::Type) -> Value {
        let narrow = match ty.bytes() {
            1 => types::I8,
            2 => types::I16,
            4 => types::I32,
            _ => types::I64,
        };
        let has = self.b.func.dfg.value_type(value);
        let value = if has.bits() > narrow.bits() { self.b.ins().ireduce(narrow, value) } else { value };
        if narrow.bits() >= wide.bits() {
            return value;
        }
        if ty.is_signed() { self.b.ins().sextend(wide, value) } else { self.b.ins().uextend(wide, value) }
    }
}

fn int_condition(condition: Compare, signed: bool) -> IntCC {
    match (condition, signed) {
        (Compare::Eq, _) => IntCC::Equal,
        (Compare::Lt, true) => IntCC::SignedLessThan,
        (Compare::Lt, false) => IntCC::UnsignedLessThan,
        (Compare::Le, true) => IntCC::SignedLessThanOrEqual,
        (Compare::Le, false) => IntCC::UnsignedLessThanOrEqual,
        (Compare::Gt, true) => IntCC::SignedGreaterThan,
        (Compare::Gt, false) => IntCC::UnsignedGreaterThan,
        (Compare::Ge, true) => IntCC::SignedGreaterThanOrEqual,
        (Compare::Ge, false) => IntCC::UnsignedGreaterThanOrEqual,
        _ => IntCC::NotEqual, // float conditions, which the instruction table excludes
    }
}

fn float_condition(condition: Compare) -> FloatCC {
    match condition {
        Compare::Eq => FloatCC::Equal,
        Compare::Ne => FloatCC::OrderedNotEqual,
        Compare::Lt => FloatCC::LessThan,
        Compare::Le => FloatCC::LessThanOrEqual,
        Compare::Gt => FloatCC::GreaterThan,
        Compare::Ge => FloatCC::GreaterThanOrEqual,
        Compare::Equ => FloatCC::UnorderedOrEqual,
        Compare::Neu => FloatCC::NotEqual,
        Compare::Ltu => FloatCC::UnorderedOrLessThan,
        Compare::Leu => FloatCC::UnorderedOrLessThanOrEqual,
        Compare::Gtu => FloatCC::UnorderedOrGreaterThan,
        Compare::Geu => FloatCC::UnorderedOrGreaterThanOrEqual,
        Compare::Num => FloatCC::Ordered,
        Compare::Nan => FloatCC::Unordered,
    }
}
