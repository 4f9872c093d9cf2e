//! Every row of the instruction table, against what Rust computes.
//!
//! A case is an instruction, the classes of its operands (`r` b32, `d` b64, `f` f32, `g` f64, `p` predicate; the result first), and a
//! Rust function on the operands' bits. Each runs on all combinations of values that tend to go wrong.

#![allow(clippy::unwrap_used)]

mod support;

use gpu_run_device::Arg;
use std::fmt::Write;
use support::{buffer_of, grid, load, run, strict, words};

type Expected = fn(&[u64]) -> u64;

struct Case {
    /// With `{}` for the operands, or just the mnemonic.
    text: &'static str,
    classes: &'static str,
    expected: Expected,
}

const fn case(text: &'static str, classes: &'static str, expected: Expected) -> Case {
    Case { text, classes, expected }
}

const INT32: &[u64] =
    &[0, 1, 2, 5, 31, 32, 33, 0x7f, 0x80, 0xff80, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff, 0x1234_5678];
#[rustfmt::skip] // one a line otherwise
const INT64: &[u64] = &[
    0, 1, 3, 63, 64, 0x80, 0x7fff_ffff, 0xffff_ffff, 1 << 32, i64::MAX as u64, i64::MIN as u64, u64::MAX,
    0x0123_4567_89ab_cdef,
];
const AMOUNT: &[u64] = &[0, 1, 7, 16, 31, 32, 33, 63, 64, 65, 255, 256, 0x8000_0000, 0xffff_ffff];

fn float32() -> Vec<u64> {
    #[rustfmt::skip] // one a line otherwise
    let values = [
        0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3e9, -3e9, 5e9, 2e19, -1e19, 1e-40, f32::MAX, f32::INFINITY,
        -f32::INFINITY, f32::NAN, 2147483648.0, -2147483648.0,
    ];
    values.iter().map(|f| f.to_bits() as u64).collect()
}
fn float64() -> Vec<u64> {
    #[rustfmt::skip] // one a line otherwise
    let values = [
        0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -3.5, 4294967295.0, 4294967296.0, 2147483648.0, -2147483649.0, 9.3e18,
        1.9e19, -1e19, 1e-310, 1e300, f64::INFINITY, -f64::INFINITY, f64::NAN, 9007199254740993.0, 0.1,
    ];
    values.iter().map(|f| f.to_bits()).collect()
}

fn s(n: u64) -> i32 {
    n as u32 as i32
}
fn u(n: u64) -> u32 {
    n as u32
}
fn f(n: u64) -> f32 {
    f32::from_bits(n as u32)
}
fn g(n: u64) -> f64 {
    f64::from_bits(n)
}
fn fb(x: f32) -> u64 {
    x.to_bits() as u64
}
fn gb(x: f64) -> u64 {
    x.to_bits()
}
fn i(x: i32) -> u64 {
    x as u32 as u64
}
/// Exact: every f32 is an f64.
fn order32(a: f32, b: f32, less: bool) -> f32 {
    order64(a.into(), b.into(), less) as f32
}
fn order64(a: f64, b: f64, less: bool) -> f64 {
    if a.is_nan() {
        return b;
    }
    if b.is_nan() {
        return a;
    }
    let a_first = if a == b { a.is_sign_negative() } else { a < b };
    if a_first == less { a } else { b }
}
fn shl32(a: u64, n: u64) -> u64 {
    u(a).checked_shl(u(n)).unwrap_or(0) as u64
}
fn shl64(a: u64, n: u64) -> u64 {
    a.checked_shl(u(n)).unwrap_or(0)
}
fn field(bits: u32, signed: bool, a: u64, position: u64, length: u64) -> u64 {
    // The manual's loop.
    let (position, length) = (position & 0xff, length & 0xff);
    let msb = bits as u64 - 1;
    let bit = |n: u64| a >> n & 1;
    let sign = if !signed || length == 0 { 0 } else { bit((position + length - 1).min(msb)) };
    (0..bits as u64).fold(0, |d, n| d | (if n < length && position + n <= msb { bit(position + n) } else { sign }) << n)
}
fn permute(a: u64, b: u64, c: u64) -> u64 {
    let bytes = (b << 32 | a).to_le_bytes();
    let pick = |n: u64| {
        let byte = bytes[(n & 7) as usize];
        if n & 8 != 0 { (byte as i8 >> 7) as u8 } else { byte }
    };
    u32::from_le_bytes([pick(c), pick(c >> 4), pick(c >> 8), pick(c >> 12)]) as u64
}
fn funnel(v: &[u64], left: bool, n: u64) -> u64 {
    let both = v[1] << 32 | v[0];
    if left { (both as u128) << n >> 32 & 0xffff_ffff } else { both as u128 >> n & 0xffff_ffff }.try_into().unwrap()
}

const CASES: &[Case] = &[
    // moves
    case("mov.b32", "rr", |v| v[0]),
    case("mov.b64", "dd", |v| v[0]),
    case("mov.f32", "ff", |v| v[0]),
    case("mov.f64", "gg", |v| v[0]),
    case("mov.pred", "pp", |v| v[0]),
    case("mov.b32", "rf", |v| v[0]),
    case("mov.b32", "fr", |v| v[0]),
    case("mov.b64", "dg", |v| v[0]),
    case("mov.b64", "gd", |v| v[0]),
    // integer
    case("add.u32", "rrr", |v| u(v[0]).wrapping_add(u(v[1])) as u64),
    case("sub.u32", "rrr", |v| u(v[0]).wrapping_sub(u(v[1])) as u64),
    case("mul.lo.u32", "rrr", |v| u(v[0]).wrapping_mul(u(v[1])) as u64),
    case("add.u64", "ddd", |v| v[0].wrapping_add(v[1])),
    case("sub.u64", "ddd", |v| v[0].wrapping_sub(v[1])),
    case("mul.lo.u64", "ddd", |v| v[0].wrapping_mul(v[1])),
    case("mul.hi.u32", "rrr", |v| (v[0] * v[1]) >> 32),
    case("mul.hi.s32", "rrr", |v| ((s(v[0]) as i64 * s(v[1]) as i64) >> 32) as u32 as u64),
    case("mul.hi.u64", "ddd", |v| ((v[0] as u128 * v[1] as u128) >> 64) as u64),
    case("mul.hi.s64", "ddd", |v| ((v[0] as i64 as i128 * v[1] as i64 as i128) >> 64) as u64),
    case("mul.wide.u32", "drr", |v| v[0] * v[1]),
    case("mad.lo.u32", "rrrr", |v| u(v[0]).wrapping_mul(u(v[1])).wrapping_add(u(v[2])) as u64),
    case("mad.lo.u64", "dddd", |v| v[0].wrapping_mul(v[1]).wrapping_add(v[2])),
    case("mad.wide.u32", "drrd", |v| (v[0] * v[1]).wrapping_add(v[2])),
    case("div.u32", "rrr", |v| u(v[0]).checked_div(u(v[1])).unwrap_or(u32::MAX) as u64),
    case("div.s32", "rrr", |v| if v[1] == 0 { 0xffff_ffff } else { i(s(v[0]).wrapping_div(s(v[1]))) }),
    case("div.u64", "ddd", |v| v[0].checked_div(v[1]).unwrap_or(u64::MAX)),
    case("div.s64", "ddd", |v| if v[1] == 0 { u64::MAX } else { (v[0] as i64).wrapping_div(v[1] as i64) as u64 }),
    case("rem.u32", "rrr", |v| u(v[0]).checked_rem(u(v[1])).unwrap_or(u(v[0])) as u64),
    case("rem.s32", "rrr", |v| if v[1] == 0 { v[0] } else { i(s(v[0]).wrapping_rem(s(v[1]))) }),
    case("rem.u64", "ddd", |v| v[0].checked_rem(v[1]).unwrap_or(v[0])),
    case("rem.s64", "ddd", |v| if v[1] == 0 { v[0] } else { (v[0] as i64).wrapping_rem(v[1] as i64) as u64 }),
    case("div.u32 {}, {}, 7", "rr", |v| (u(v[0]) / 7) as u64),
    case("div.s32 {}, {}, -1", "rr", |v| i(s(v[0]).wrapping_neg())),
    case("div.s64 {}, {}, -3", "dd", |v| (v[0] as i64 / -3) as u64),
    case("rem.u64 {}, {}, 10", "dd", |v| v[0] % 10),
    case("min.u32", "rrr", |v| v[0].min(v[1])),
    case("max.u32", "rrr", |v| v[0].max(v[1])),
    case("min.s32", "rrr", |v| i(s(v[0]).min(s(v[1])))),
    case("max.s32", "rrr", |v| i(s(v[0]).max(s(v[1])))),
    case("min.u64", "ddd", |v| v[0].min(v[1])),
    case("max.u64", "ddd", |v| v[0].max(v[1])),
    case("min.s64", "ddd", |v| (v[0] as i64).min(v[1] as i64) as u64),
    case("max.s64", "ddd", |v| (v[0] as i64).max(v[1] as i64) as u64),
    case("abs.s32", "rr", |v| i(s(v[0]).wrapping_abs())),
    case("abs.s64", "dd", |v| (v[0] as i64).wrapping_abs() as u64),
    case("neg.s32", "rr", |v| i(s(v[0]).wrapping_neg())),
    case("neg.s64", "dd", |v| v[0].wrapping_neg()),
    // bits
    case("and.b32", "rrr", |v| v[0] & v[1]),
    case("or.b32", "rrr", |v| v[0] | v[1]),
    case("xor.b32", "rrr", |v| v[0] ^ v[1]),
    case("and.b64", "ddd", |v| v[0] & v[1]),
    case("or.b64", "ddd", |v| v[0] | v[1]),
    case("xor.b64", "ddd", |v| v[0] ^ v[1]),
    case("and.pred", "ppp", |v| v[0] & v[1]),
    case("or.pred", "ppp", |v| v[0] | v[1]),
    case("xor.pred", "ppp", |v| v[0] ^ v[1]),
    case("not.b32", "rr", |v| !u(v[0]) as u64),
    case("not.b64", "dd", |v| !v[0]),
    case("not.pred", "pp", |v| v[0] ^ 1),
    case("shl.b32", "rrn", |v| shl32(v[0], v[1])),
    case("shl.b64", "ddn", |v| shl64(v[0], v[1])),
    case("shr.u32", "rrn", |v| u(v[0]).checked_shr(u(v[1])).unwrap_or(0) as u64),
    case("shr.s32", "rrn", |v| i(s(v[0]) >> u(v[1]).min(31))),
    case("shr.u64", "ddn", |v| v[0].checked_shr(u(v[1])).unwrap_or(0)),
    case("shr.s64", "ddn", |v| (v[0] as i64 >> u(v[1]).min(63)) as u64),
    case("shl.b32 {}, {}, 5", "rr", |v| shl32(v[0], 5)),
    case("shl.b32 {}, {}, 32", "rr", |_| 0),
    case("shr.s32 {}, {}, 40", "rr", |v| i(s(v[0]) >> 31)),
    case("shr.u64 {}, {}, 63", "dd", |v| v[0] >> 63),
    case("shf.l.wrap.b32", "rrrn", |v| funnel(v, true, v[2] & 31)),
    case("shf.r.wrap.b32", "rrrn", |v| funnel(v, false, v[2] & 31)),
    case("shf.l.clamp.b32", "rrrn", |v| funnel(v, true, v[2].min(32))),
    case("shf.r.clamp.b32", "rrrn", |v| funnel(v, false, v[2].min(32))),
    case("shf.l.wrap.b32 {}, %r1, %r1, %r2;//{}{}", "rrn", |v| u(v[0]).rotate_left(u(v[1])) as u64),
    case("shf.r.wrap.b32 {}, %r1, %r1, %r2;//{}{}", "rrn", |v| u(v[0]).rotate_right(u(v[1])) as u64),
    case("clz.b32", "rr", |v| u(v[0]).leading_zeros() as u64),
    case("clz.b64", "rd", |v| v[0].leading_zeros() as u64),
    case("popc.b32", "rr", |v| u(v[0]).count_ones() as u64),
    case("popc.b64", "rd", |v| v[0].count_ones() as u64),
    case("brev.b32", "rr", |v| u(v[0]).reverse_bits() as u64),
    case("brev.b64", "dd", |v| v[0].reverse_bits()),
    case("bfe.u32", "rrnn", |v| field(32, false, v[0], v[1], v[2])),
    case("bfe.s32", "rrnn", |v| field(32, true, v[0], v[1], v[2])),
    case("bfe.u64", "ddnn", |v| field(64, false, v[0], v[1], v[2])),
    case("bfe.s64", "ddnn", |v| field(64, true, v[0], v[1], v[2])),
    case("bfe.u32 {}, {}, 4, 8", "rr", |v| v[0] >> 4 & 0xff),
    case("bfe.s64 {}, {}, 60, 8", "dd", |v| (v[0] as i64 >> 60) as u64),
    case("prmt.b32", "rrrr", |v| permute(v[0], v[1], v[2])),
    case("prmt.b32 {}, {}, {}, 0x0123", "rrr", |v| u(v[0]).swap_bytes() as u64),
    case("prmt.b32 {}, {}, {}, 0xd914", "rrr", |v| permute(v[0], v[1], 0xd914)),
    // float
    case("add.rn.f32", "fff", |v| fb(f(v[0]) + f(v[1]))),
    case("sub.rn.f32", "fff", |v| fb(f(v[0]) - f(v[1]))),
    case("mul.rn.f32", "fff", |v| fb(f(v[0]) * f(v[1]))),
    case("div.rn.f32", "fff", |v| fb(f(v[0]) / f(v[1]))),
    case("add.rn.f64", "ggg", |v| gb(g(v[0]) + g(v[1]))),
    case("sub.rn.f64", "ggg", |v| gb(g(v[0]) - g(v[1]))),
    case("mul.rn.f64", "ggg", |v| gb(g(v[0]) * g(v[1]))),
    case("div.rn.f64", "ggg", |v| gb(g(v[0]) / g(v[1]))),
    case("add.rn.f32 {}, {}, 0f3F800000", "ff", |v| fb(f(v[0]) + 1.0)),
    case("mul.rn.f64 {}, {}, 0d4000000000000000", "gg", |v| gb(g(v[0]) * 2.0)),
    case("sqrt.rn.f32", "ff", |v| fb(f(v[0]).sqrt())),
    case("sqrt.rn.f64", "gg", |v| gb(g(v[0]).sqrt())),
    case("fma.rn.f32", "ffff", |v| fb(f(v[0]).mul_add(f(v[1]), f(v[2])))),
    case("fma.rn.f64", "gggg", |v| gb(g(v[0]).mul_add(g(v[1]), g(v[2])))),
    case("neg.f32", "ff", |v| fb(-f(v[0]))),
    case("neg.f64", "gg", |v| gb(-g(v[0]))),
    case("abs.f32", "ff", |v| fb(f(v[0]).abs())),
    case("abs.f64", "gg", |v| gb(g(v[0]).abs())),
    case("min.f32", "fff", |v| fb(order32(f(v[0]), f(v[1]), true))),
    case("max.f32", "fff", |v| fb(order32(f(v[0]), f(v[1]), false))),
    case("min.f64", "ggg", |v| gb(order64(g(v[0]), g(v[1]), true))),
    case("max.f64", "ggg", |v| gb(order64(g(v[0]), g(v[1]), false))),
    case("copysign.f32", "fff", |v| fb(f(v[1]).copysign(f(v[0])))),
    case("copysign.f64", "ggg", |v| gb(g(v[1]).copysign(g(v[0])))),
    // conversions
    case("cvt.u32.u64", "rd", |v| u(v[0]) as u64),
    case("cvt.u64.u32", "dr", |v| v[0]),
    case("cvt.s64.s32", "dr", |v| s(v[0]) as i64 as u64),
    case("cvt.u64.s32", "dr", |v| s(v[0]) as i64 as u64),
    case("cvt.s32.s8", "rr", |v| i(v[0] as i8 as i32)),
    case("cvt.s32.s16", "rr", |v| i(v[0] as i16 as i32)),
    case("cvt.u32.u8", "rr", |v| v[0] as u8 as u64),
    case("cvt.u32.u16", "rr", |v| v[0] as u16 as u64),
    case("cvt.s64.s8", "dr", |v| v[0] as i8 as u64),
    case("cvt.s64.s16", "dr", |v| v[0] as i16 as u64),
    case("cvt.u64.u8", "dr", |v| v[0] as u8 as u64),
    case("cvt.u8.u32", "rr", |v| v[0] as u8 as u64),
    case("cvt.s8.s32", "rr", |v| i(v[0] as i8 as i32)),
    case("cvt.u16.u32", "rr", |v| v[0] as u16 as u64),
    case("cvt.s16.s64", "rd", |v| i(v[0] as i16 as i32)),
    case("cvt.u16.s8", "rr", |v| v[0] as i8 as u16 as u64),
    case("cvt.u8.u64", "rd", |v| v[0] as u8 as u64),
    case("cvt.rn.f32.s32", "fr", |v| fb(s(v[0]) as f32)),
    case("cvt.rn.f32.u32", "fr", |v| fb(u(v[0]) as f32)),
    case("cvt.rn.f32.s64", "fd", |v| fb(v[0] as i64 as f32)),
    case("cvt.rn.f32.u64", "fd", |v| fb(v[0] as f32)),
    case("cvt.rn.f64.s32", "gr", |v| gb(s(v[0]) as f64)),
    case("cvt.rn.f64.u32", "gr", |v| gb(u(v[0]) as f64)),
    case("cvt.rn.f64.s64", "gd", |v| gb(v[0] as i64 as f64)),
    case("cvt.rn.f64.u64", "gd", |v| gb(v[0] as f64)),
    case("cvt.rzi.s32.f32", "rf", |v| i(f(v[0]) as i32)),
    case("cvt.rzi.u32.f32", "rf", |v| f(v[0]) as u32 as u64),
    case("cvt.rzi.s64.f32", "df", |v| f(v[0]) as i64 as u64),
    case("cvt.rzi.u64.f32", "df", |v| f(v[0]) as u64),
    case("cvt.rzi.s32.f64", "rg", |v| i(g(v[0]) as i32)),
    case("cvt.rzi.u32.f64", "rg", |v| g(v[0]) as u32 as u64),
    case("cvt.rzi.s64.f64", "dg", |v| g(v[0]) as i64 as u64),
    case("cvt.rzi.u64.f64", "dg", |v| g(v[0]) as u64),
    case("cvt.rni.f32.f32", "ff", |v| fb(f(v[0]).round_ties_even())),
    case("cvt.rzi.f32.f32", "ff", |v| fb(f(v[0]).trunc())),
    case("cvt.rmi.f32.f32", "ff", |v| fb(f(v[0]).floor())),
    case("cvt.rpi.f32.f32", "ff", |v| fb(f(v[0]).ceil())),
    case("cvt.rni.f64.f64", "gg", |v| gb(g(v[0]).round_ties_even())),
    case("cvt.rzi.f64.f64", "gg", |v| gb(g(v[0]).trunc())),
    case("cvt.rmi.f64.f64", "gg", |v| gb(g(v[0]).floor())),
    case("cvt.rpi.f64.f64", "gg", |v| gb(g(v[0]).ceil())),
    case("cvt.rn.f32.f64", "fg", |v| fb(g(v[0]) as f32)),
    case("cvt.f64.f32", "gf", |v| gb(f(v[0]) as f64)),
    // compare
    case("setp.eq.u32", "prr", |v| (v[0] == v[1]) as u64),
    case("setp.ne.b32", "prr", |v| (v[0] != v[1]) as u64),
    case("setp.lt.u32", "prr", |v| (v[0] < v[1]) as u64),
    case("setp.le.s32", "prr", |v| (s(v[0]) <= s(v[1])) as u64),
    case("setp.gt.s32", "prr", |v| (s(v[0]) > s(v[1])) as u64),
    case("setp.ge.u32", "prr", |v| (v[0] >= v[1]) as u64),
    case("setp.eq.b64", "pdd", |v| (v[0] == v[1]) as u64),
    case("setp.lt.s64", "pdd", |v| ((v[0] as i64) < v[1] as i64) as u64),
    case("setp.le.u64", "pdd", |v| (v[0] <= v[1]) as u64),
    case("setp.gt.u64", "pdd", |v| (v[0] > v[1]) as u64),
    case("setp.ge.s64", "pdd", |v| (v[0] as i64 >= v[1] as i64) as u64),
    case("setp.eq.f32", "pff", |v| (f(v[0]) == f(v[1])) as u64),
    case("setp.ne.f32", "pff", |v| (f(v[0]) < f(v[1]) || f(v[0]) > f(v[1])) as u64),
    case("setp.lt.f32", "pff", |v| (f(v[0]) < f(v[1])) as u64),
    case("setp.le.f64", "pgg", |v| (g(v[0]) <= g(v[1])) as u64),
    case("setp.gt.f64", "pgg", |v| (g(v[0]) > g(v[1])) as u64),
    case("setp.ge.f64", "pgg", |v| (g(v[0]) >= g(v[1])) as u64),
    case("setp.equ.f64", "pgg", |v| (g(v[0]).partial_cmp(&g(v[1])).is_none_or(|o| o.is_eq())) as u64),
    case("setp.neu.f32", "pff", |v| (f(v[0]) != f(v[1])) as u64),
    case("setp.ltu.f32", "pff", |v| (f(v[0]).partial_cmp(&f(v[1])).is_none_or(|o| o.is_lt())) as u64),
    case("setp.leu.f32", "pff", |v| (f(v[0]).partial_cmp(&f(v[1])).is_none_or(|o| o.is_le())) as u64),
    case("setp.gtu.f64", "pgg", |v| (g(v[0]).partial_cmp(&g(v[1])).is_none_or(|o| o.is_gt())) as u64),
    case("setp.geu.f64", "pgg", |v| (g(v[0]).partial_cmp(&g(v[1])).is_none_or(|o| o.is_ge())) as u64),
    case("setp.num.f32", "pff", |v| (f(v[0]).partial_cmp(&f(v[1])).is_some()) as u64),
    case("setp.nan.f64", "pgg", |v| (g(v[0]).partial_cmp(&g(v[1])).is_none()) as u64),
    case("selp.b32", "rrrp", |v| if v[2] != 0 { v[0] } else { v[1] }),
    case("selp.b64", "dddp", |v| if v[2] != 0 { v[0] } else { v[1] }),
    case("selp.f32", "fffp", |v| if v[2] != 0 { v[0] } else { v[1] }),
    case("selp.f64", "gggp", |v| if v[2] != 0 { v[0] } else { v[1] }),
    // predicated, and immediates
    case("mov.b32 {}, {};\n@%p2 mov.b32 %r0, 7;//{}", "rrp", |v| if v[1] != 0 { 7 } else { v[0] }),
    case("mov.b32 {}, {};\n@!%p2 add.u32 %r0, %r0, -1;//{}", "rrp", |v| {
        if v[1] != 0 { v[0] } else { u(v[0]).wrapping_sub(1) as u64 }
    }),
    case("mov.b64 {}, 0xFFFFFFFFFFFFFFFE;//{}", "dd", |_| u64::MAX - 1),
    case("mov.b64 {}, -5;//{}", "dd", |_| -5i64 as u64),
];

/// How a register of this class is called.
fn register(class: char, n: usize) -> String {
    match class {
        'n' => format!("%r{n}"),
        class => format!("%{class}{n}"),
    }
}

/// A kernel that loads a case's operands for each thread, does the instruction and stores the result.
fn kernel(name: usize, case: &Case, ptx: &mut String) {
    let classes: Vec<char> = case.classes.chars().collect();
    writeln!(ptx, ".visible .entry k{name} (.param .u64 in, .param .u64 out, .param .u32 n)\n{{").unwrap();
    ptx.push_str(
        ".reg .b32 %r<16>; .reg .b64 %d<16>; .reg .f32 %f<16>; .reg .f64 %g<16>; .reg .pred %p<16>;
        ld.param.u64 %d10, [in];
        ld.param.u64 %d11, [out];
        ld.param.u32 %r10, [n];
        mov.u32 %r11, %tid.x;
        mov.u32 %r12, %ntid.x;
        mov.u32 %r13, %ctaid.x;
        mad.lo.u32 %r11, %r12, %r13, %r11;
        setp.ge.u32 %p10, %r11, %r10;
        @%p10 ret;
        mad.wide.u32 %d10, %r11, 32, %d10;
        mad.wide.u32 %d11, %r11, 8, %d11;\n",
    );
    for (n, class) in classes.iter().enumerate().skip(1) {
        let at = (n - 1) * 8;
        match class {
            'r' | 'n' => writeln!(ptx, "ld.global.u32 %r{n}, [%d10+{at}];"),
            'd' => writeln!(ptx, "ld.global.u64 %d{n}, [%d10+{at}];"),
            'f' => writeln!(ptx, "ld.global.f32 %f{n}, [%d10+{at}];"),
            'g' => writeln!(ptx, "ld.global.f64 %g{n}, [%d10+{at}];"),
            _ => writeln!(ptx, "ld.global.u64 %d{n}, [%d10+{at}];\nsetp.ne.u64 %p{n}, %d{n}, 0;"),
        }
        .unwrap();
    }
    let registers: Vec<String> = classes.iter().enumerate().map(|(n, c)| register(*c, n)).collect();
    if case.text.contains("{}") {
        let mut text = case.text.to_owned();
        for register in &registers {
            text = text.replacen("{}", register, 1);
        }
        writeln!(ptx, "{}", if text.contains(';') { text } else { text + ";" }).unwrap();
    } else {
        writeln!(ptx, "{} {};", case.text, registers.join(", ")).unwrap();
    }
    ptx.push_str(match classes[0] {
        'r' => "cvt.u64.u32 %d0, %r0;\nst.global.u64 [%d11], %d0;\n",
        'd' => "st.global.u64 [%d11], %d0;\n",
        'f' => "st.global.f32 [%d11], %f0;\n",
        'g' => "st.global.f64 [%d11], %g0;\n",
        _ => "selp.b64 %d0, 1, 0, %p0;\nst.global.u64 [%d11], %d0;\n",
    });
    ptx.push_str("ret;\n}\n");
}

/// All combinations of the operands' values, four cells each.
fn inputs(classes: &str) -> Vec<[u64; 4]> {
    let (float32, float64) = (float32(), float64());
    let values = |class: char| match class {
        'r' => INT32,
        'n' => AMOUNT,
        'd' => INT64,
        'f' => &float32,
        'g' => &float64,
        _ => &[0, 1],
    };
    let mut all = vec![[0; 4]];
    for (n, class) in classes.chars().skip(1).enumerate() {
        let extended = all.iter().flat_map(|cells| {
            values(class).iter().map(move |v| {
                let mut cells = *cells;
                cells[n] = *v;
                cells
            })
        });
        all = extended.collect();
    }
    all
}

fn same(class: char, a: u64, b: u64) -> bool {
    match class {
        'f' => a == b || (f(a).is_nan() && f(b).is_nan()),
        'g' => a == b || (g(a).is_nan() && g(b).is_nan()),
        _ => a == b,
    }
}

#[test]
fn every_instruction_computes_what_rust_computes() {
    let device = strict();
    let mut ptx = String::new();
    for (n, case) in CASES.iter().enumerate() {
        kernel(n, case, &mut ptx);
    }
    let module = load(&device, &ptx);
    let mut wrong = String::new();
    for (n, case) in CASES.iter().enumerate() {
        let inputs = inputs(case.classes);
        let input = buffer_of(&device, inputs.as_flattened());
        let output = device.allocate(inputs.len() as u64 * 8).unwrap();
        let blocks = inputs.len().div_ceil(256) as u32;
        let args = [Arg::U64(input.address()), Arg::U64(output.address()), Arg::U32(inputs.len() as u32)];
        run(&module, &format!("k{n}"), grid(blocks, 256), &args).unwrap();
        let operands = case.classes.len() - 1;
        let class = case.classes.chars().next().unwrap();
        for (cells, found) in inputs.iter().zip(words(&output, inputs.len())) {
            let expected = (case.expected)(&cells[..operands]);
            if !same(class, found, expected) {
                writeln!(wrong, "{} {:x?}: {found:#x}, not {expected:#x}", case.text, &cells[..operands]).unwrap();
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
