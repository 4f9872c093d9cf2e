//! Branchless division and square root of f64, for speculative builds.
//!
//! A GPU has an instruction for neither. Its assembler emits an approximation, some multiplications that refine it, and
//! a call for operands with a very large or very small exponent. The calls are hardly ever taken, but the assembler
//! moves nothing past them, so independent computations run one after the other instead of side by side. This file
//! prints the same multiplications without the call. If an operand is *at an edge*, that is, beyond the limits of
//! [`crate::analysis::division`], the instance stops and the host reruns it with the exact build.
//!
//! The tests of a block are joined to one predicate, which is tested once, before the block ends or calls a function.
//! Results computed until then may be wrong, but they have no effect outside: they can only reach the instance's own
//! memory, and a rerun starts with new memory.

use super::Printer;
use super::body::When;
use super::integer::{one, two};
use super::register::{Class, Operand, Reg};
use crate::Error;
use crate::analysis::division::{EXPONENT_BIT, EXPONENTS, MIN_EXPONENT};
use crate::analysis::legalize::Form;
use cranelift_codegen::ir::{Inst, types};

type Done = Result<(), Error>;

/// Added to the high word of the approximated inverse: more units in the high word's last place than the approximation
/// can be too small by. If the steps start from too small a number, the inverse of the largest f64 below 1 comes out as
/// 1, which is one unit in the last place too small.
const MARGIN: i64 = 4;

impl Printer<'_> {
    /// Returns a predicate that is true if a number is between the edges. `word` holds the number's exponent from bit
    /// `at` on and, if it has one, the sign above.
    fn inside(&mut self, word: Operand, at: u32) -> Reg {
        let above = self.word("sub", ".u32", &[word, i64::from((MIN_EXPONENT << at) as i32).into()]);
        let span = i64::from((EXPONENTS << at) as i32).into();
        self.body.op_to_temp(Class::Pred, "setp.lt", ".u32", &[above.into(), span])
    }

    /// Returns the high word without its sign. Its exponent is one bit further up.
    fn magnitude(&mut self, high: Operand) -> Operand {
        self.word("shl", ".b32", &[high, 1.into()]).into()
    }

    /// Returns a predicate that is true if the number is 0 or -0.
    fn is_nothing(&mut self, low: Operand, magnitude: Operand) -> Reg {
        let all = self.word("or", ".b32", &[low, magnitude]);
        self.body.op_to_temp(Class::Pred, "setp.eq", ".u32", &[all.into(), 0.into()])
    }

    fn word(&mut self, name: &str, suffix: &str, operands: &[Operand]) -> Reg {
        self.body.op_to_temp(Class::B32, name, suffix, operands)
    }

    fn double(&mut self, name: &str, operands: &[Operand]) -> Reg {
        self.body.op_to_temp(Class::F64, name, ".f64", operands)
    }

    /// Returns the number with its high word changed by `change`.
    fn with_high(&mut self, number: Reg, change: impl FnOnce(&mut Self, Operand) -> Reg) -> Reg {
        let [low, high] = self.body.unpack(number.into());
        let high = change(self, high);
        let changed = self.body.temp(Class::F64);
        self.body.pack(changed, low, high.into());
        changed
    }

    /// `a * b + c`
    fn fma(&mut self, a: Reg, b: Reg, c: impl Into<Operand>) -> Reg {
        self.double("fma.rn", &[a.into(), b.into(), c.into()])
    }
}

/// Adds a predicate to those that must hold for this block's results to be right.
fn provide(p: &mut Printer<'_>, holds: Reg) {
    p.block.provided = Some(match p.block.provided {
        Some(before) => p.body.op_to_temp(Class::Pred, "and", ".pred", &[before.into(), holds.into()]),
        None => holds,
    });
}

/// Stops the instance if a result of this block may be wrong.
pub(crate) fn stop_if_wrong(p: &mut Printer<'_>) {
    if let Some(right) = p.block.provided.take() {
        p.body.exit_if(right, When::False);
    }
}

const ONE: Operand = Operand::F64(1.0f64.to_bits());

pub(crate) fn divide(p: &mut Printer<'_>, inst: Inst) -> Done {
    let Form::BranchlessDivision { tests_dividend, tests_divisor } = p.form(inst) else {
        return Err(p.unsupported(inst));
    };
    let (result, [a, b]) = (p.result(inst)?, two(p, inst)?);
    let (a, b) = (p.value(a), p.value(b));
    if tests_dividend {
        // 0 divided by a number is 0. The steps below give 0, too, but perhaps with the wrong sign.
        let [low, high] = p.body.unpack(a);
        let magnitude = p.magnitude(high);
        let (inside, nothing) = (p.inside(magnitude, EXPONENT_BIT + 1), p.is_nothing(low, magnitude));
        let holds = p.body.op_to_temp(Class::Pred, "or", ".pred", &[inside.into(), nothing.into()]);
        provide(p, holds);
    }
    if tests_divisor {
        let [_, high] = p.body.unpack(b);
        let magnitude = p.magnitude(high);
        let holds = p.inside(magnitude, EXPONENT_BIT + 1);
        provide(p, holds);
    }
    let (a, b) = (p.load_operand(a, types::F64), p.load_operand(b, types::F64));
    // 1 / b: first 20 bits are right, then 60, then all.
    let minus = p.double("neg", &[b.into()]);
    let about = p.double("rcp.approx.ftz", &[b.into()]);
    let about = p.with_high(about, |p, high| p.word("add", ".u32", &[high, MARGIN.into()]));
    let error = p.fma(minus, about, ONE);
    let error = p.fma(error, error, error);
    let near = p.fma(about, error, about);
    let error = p.fma(minus, near, ONE);
    let inverse = p.fma(near, error, near);
    // The rest of `a` is exact, so only the last step rounds.
    let quotient = p.double("mul.rn", &[a.into(), inverse.into()]);
    let rest = p.fma(minus, quotient, a);
    if !tests_dividend {
        // The dividend is a constant other than 0, so the quotient is not 0 and has the right sign.
        p.body.op("fma.rn", ".f64", &[result.into(), inverse.into(), rest.into(), quotient.into()]);
        return Ok(());
    }
    let rounded = p.fma(inverse, rest, quotient);
    p.body.op("copysign", ".f64", &[result.into(), quotient.into(), rounded.into()]); // PTX takes the sign first
    Ok(())
}

pub(crate) fn square_root(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let x = p.in_register(x);
    let [low, high] = p.body.unpack(x.into());
    let magnitude = p.magnitude(high);
    // The high word has its sign here, so that a negative number is outside.
    let (inside, nothing) = (p.inside(high, EXPONENT_BIT), p.is_nothing(low, magnitude));
    let holds = p.body.op_to_temp(Class::Pred, "or", ".pred", &[inside.into(), nothing.into()]);
    provide(p, holds);
    // 1 / root: first 20 bits are right, then all but the last few.
    let about = p.double("rsqrt.approx.ftz", &[x.into()]);
    let square = p.double("mul.rn", &[about.into(), about.into()]);
    let minus = p.double("neg", &[square.into()]);
    let error = p.fma(x, minus, ONE);
    let half = Operand::F64(0.5f64.to_bits());
    let by = p.double("fma.rn", &[error.into(), Operand::F64(0.375f64.to_bits()), half]);
    let part = p.double("mul.rn", &[about.into(), error.into()]);
    let inverse = p.fma(by, part, about);
    // The root, and the difference between `x` and the root's square, which is exact.
    let root = p.double("mul.rn", &[x.into(), inverse.into()]);
    let halved = p.with_high(inverse, |p, high| p.word("sub", ".u32", &[high, (1i64 << EXPONENT_BIT).into()]));
    let minus = p.double("neg", &[root.into()]);
    let rest = p.fma(minus, root, x);
    let rounded = p.fma(rest, halved, root);
    p.body.op("selp", ".f64", &[result.into(), x.into(), rounded.into(), nothing.into()]);
    Ok(())
}
