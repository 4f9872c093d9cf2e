//! Types, and the operators, loads and stores of each.

use crate::vectors;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ty {
    I32,
    I64,
    F32,
    F64,
    V128,
}

use Ty::{F32, F64, I32, I64, V128};

pub(super) const TYPES: [Ty; 5] = [I32, I64, F32, F64, V128];
pub(super) const SCALARS: [Ty; 4] = [I32, I64, F32, F64];

impl Ty {
    pub(super) fn name(self) -> &'static str {
        match self {
            I32 => "i32",
            I64 => "i64",
            F32 => "f32",
            F64 => "f64",
            V128 => "v128",
        }
    }

    /// The number in `$p0`, `$l0`, `$g0` and their like.
    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// (operator, type of the operand)
    #[rustfmt::skip] // a table
    pub(super) fn unary(self) -> &'static [(&'static str, Ty)] {
        match self {
            I32 => &[
                ("i32.clz", I32),
                ("i32.ctz", I32),
                ("i32.popcnt", I32),
                ("i32.eqz", I32),
                ("i64.eqz", I64),
                ("i32.extend8_s", I32),
                ("i32.extend16_s", I32),
                ("i32.wrap_i64", I64),
                ("i32.reinterpret_f32", F32),
                ("i32.trunc_sat_f32_s", F32),
                ("i32.trunc_sat_f32_u", F32),
                ("i32.trunc_sat_f64_s", F64),
                ("i32.trunc_sat_f64_u", F64),
                ("i32.trunc_f32_s", F32),
                ("i32.trunc_f32_u", F32),
                ("i32.trunc_f64_s", F64),
                ("i32.trunc_f64_u", F64),
            ],
            I64 => &[
                ("i64.clz", I64),
                ("i64.ctz", I64),
                ("i64.popcnt", I64),
                ("i64.extend8_s", I64),
                ("i64.extend16_s", I64),
                ("i64.extend32_s", I64),
                ("i64.extend_i32_s", I32),
                ("i64.extend_i32_u", I32),
                ("i64.reinterpret_f64", F64),
                ("i64.trunc_sat_f32_s", F32),
                ("i64.trunc_sat_f32_u", F32),
                ("i64.trunc_sat_f64_s", F64),
                ("i64.trunc_sat_f64_u", F64),
                ("i64.trunc_f32_s", F32),
                ("i64.trunc_f32_u", F32),
                ("i64.trunc_f64_s", F64),
                ("i64.trunc_f64_u", F64),
            ],
            F32 => &[
                ("f32.abs", F32),
                ("f32.neg", F32),
                ("f32.ceil", F32),
                ("f32.floor", F32),
                ("f32.trunc", F32),
                ("f32.nearest", F32),
                ("f32.sqrt", F32),
                ("f32.convert_i32_s", I32),
                ("f32.convert_i32_u", I32),
                ("f32.convert_i64_s", I64),
                ("f32.convert_i64_u", I64),
                ("f32.demote_f64", F64),
                ("f32.reinterpret_i32", I32),
            ],
            F64 => &[
                ("f64.abs", F64),
                ("f64.neg", F64),
                ("f64.ceil", F64),
                ("f64.floor", F64),
                ("f64.trunc", F64),
                ("f64.nearest", F64),
                ("f64.sqrt", F64),
                ("f64.convert_i32_s", I32),
                ("f64.convert_i32_u", I32),
                ("f64.convert_i64_s", I64),
                ("f64.convert_i64_u", I64),
                ("f64.promote_f32", F32),
                ("f64.reinterpret_i64", I64),
            ],
            V128 => &[
                ("i8x16.splat", I32),
                ("i16x8.splat", I32),
                ("i32x4.splat", I32),
                ("i64x2.splat", I64),
                ("f32x4.splat", F32),
                ("f64x2.splat", F64),
            ],
        }
    }

    /// Operators on two values of this type.
    #[rustfmt::skip]
    pub(super) fn binary(self) -> &'static [&'static str] {
        match self {
            I32 | I64 => &[
                "add", "sub", "mul", "and", "or", "xor", "shl", "shr_s", "shr_u", "rotl", "rotr", "div_s", "div_u",
                "rem_s", "rem_u",
            ],
            F32 | F64 => &["add", "sub", "mul", "div", "min", "max", "copysign"],
            V128 => vectors::BINARY,
        }
    }

    pub(super) fn comparisons(self) -> &'static [&'static str] {
        match self {
            I32 | I64 => &["eq", "ne", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u"],
            F32 | F64 => &["eq", "ne", "lt", "gt", "le", "ge"],
            V128 => &[],
        }
    }

    /// (instruction, log2 of its width)
    #[rustfmt::skip]
    pub(super) fn loads(self) -> &'static [(&'static str, usize)] {
        match self {
            I32 => &[("i32.load", 2), ("i32.load8_s", 0), ("i32.load8_u", 0), ("i32.load16_s", 1), ("i32.load16_u", 1)],
            I64 => &[
                ("i64.load", 3),
                ("i64.load8_s", 0),
                ("i64.load8_u", 0),
                ("i64.load16_s", 1),
                ("i64.load16_u", 1),
                ("i64.load32_s", 2),
                ("i64.load32_u", 2),
            ],
            F32 => &[("f32.load", 2)],
            F64 => &[("f64.load", 3)],
            V128 => vectors::LOADS,
        }
    }

    #[rustfmt::skip]
    pub(super) fn stores(self) -> &'static [(&'static str, usize)] {
        match self {
            I32 => &[("i32.store", 2), ("i32.store8", 0), ("i32.store16", 1)],
            I64 => &[("i64.store", 3), ("i64.store8", 0), ("i64.store16", 1), ("i64.store32", 2)],
            F32 => &[("f32.store", 2)],
            F64 => &[("f64.store", 3)],
            V128 => &[("v128.store", 4)],
        }
    }
}
