//! Expressions of operators.

use super::*;
use crate::vectors;

impl Function<'_> {
    pub(super) fn unary(&mut self, ty: Ty, depth: usize) -> String {
        let (op, from) = self.random.pick(ty.unary());
        let operand = self.expression(from, depth);
        match op {
            // Wasmtime leaves these NaNs as the machine makes them; a multiplication canonicalises.
            "f32.demote_f64" | "f64.promote_f32" => format!("({0}.mul ({op} {operand}) ({0}.const 1))", ty.name()),
            // Most floats are out of range. What is left of them here is between -0.5 and 2e9; a NaN is compared away.
            _ if op.contains("trunc_f") && !self.risk(6) => {
                let name = from.name();
                let number = format!("(select {operand} ({name}.const 7) ({name}.lt {operand} ({name}.const inf)))");
                format!("({op} ({name}.min ({name}.max {number} ({name}.const -0.5)) ({name}.const 2e9)))")
            }
            _ => format!("({op} {operand})"),
        }
    }

    pub(super) fn binary(&mut self, ty: Ty, depth: usize) -> String {
        let (op, name) = (self.random.pick(ty.binary()), ty.name());
        if ty == V128 {
            return format!("({op} {} {})", self.expression(V128, depth), self.expression(V128, depth));
        }
        let (a, mut b) = (self.expression(ty, depth), self.expression(ty, depth));
        let divides = op.starts_with("div_") || op.starts_with("rem_");
        if divides && !self.risk(8) {
            b = format!("({name}.or {b} ({name}.const {}))", self.random.pick(&[1, 2, 3, 5, 16, 128]));
        }
        format!("({name}.{op} {a} {b})")
    }

    /// A v128 from anything but two of them.
    pub(super) fn vector(&mut self, depth: usize) -> String {
        let operand = self.expression(V128, depth);
        match self.random.below(9) {
            0 => self.unary(V128, depth),
            1..=2 => {
                let op = self.random.pick(vectors::UNARY);
                let canonical = |ty: &str, ones: &str| format!("({ty}.mul ({op} {operand}) (v128.const {ty} {ones}))");
                match op {
                    // As with scalars: a multiplication canonicalises.
                    "f32x4.demote_f64x2_zero" => canonical("f32x4", "1 1 1 1"),
                    "f64x2.promote_low_f32x4" => canonical("f64x2", "1 1"),
                    _ => format!("({op} {operand})"),
                }
            }
            3 => format!("({} {operand} {})", self.random.pick(vectors::SHIFTS), self.expression(I32, depth)),
            4 => {
                let (b, c) = (self.expression(V128, depth), self.expression(V128, depth));
                format!("({} {operand} {b} {c})", self.random.pick(vectors::TERNARY))
            }
            5..=6 => format!("({} {operand} {})", vectors::shuffle(self.random), self.expression(V128, depth)),
            7 => {
                let (shape, lane) = vectors::lane(self.random);
                let scalar = match shape {
                    "i64x2" => I64,
                    "f32x4" => F32,
                    "f64x2" => F64,
                    _ => I32,
                };
                format!("({shape}.replace_lane {lane} {operand} {})", self.expression(scalar, depth))
            }
            _ => {
                let (bits, log2) = self.random.pick(&vectors::LANES);
                let (place, lane) = (self.offset_and_alignment(log2), self.random.below(128 / bits));
                format!("(v128.load{bits}_lane {place} {lane} {} {operand})", self.address(depth))
            }
        }
    }

    /// A scalar of a v128.
    pub(super) fn lane(&mut self, ty: Ty, depth: usize) -> String {
        let operand = self.expression(V128, depth);
        let lane = self.random.below(16);
        match ty {
            I32 => match self.random.below(4) {
                0 => format!("({} {operand})", self.random.pick(vectors::TESTS)),
                1 => format!("(i8x16.extract_lane_{} {lane} {operand})", self.random.pick(&["s", "u"])),
                2 => format!("(i16x8.extract_lane_{} {} {operand})", self.random.pick(&["s", "u"]), lane % 8),
                _ => format!("(i32x4.extract_lane {} {operand})", lane % 4),
            },
            I64 => format!("(i64x2.extract_lane {} {operand})", lane % 2),
            F32 => format!("(f32x4.extract_lane {} {operand})", lane % 4),
            _ => format!("(f64x2.extract_lane {} {operand})", lane % 2),
        }
    }

    pub(super) fn comparison(&mut self, depth: usize) -> String {
        let ty = self.random.pick(&SCALARS);
        let op = self.random.pick(ty.comparisons());
        format!("({}.{op} {} {})", ty.name(), self.expression(ty, depth), self.expression(ty, depth))
    }

    pub(super) fn condition(&mut self, depth: usize) -> String {
        if self.random.one_in(3) { self.expression(I32, depth) } else { self.comparison(depth.saturating_sub(1)) }
    }
}
