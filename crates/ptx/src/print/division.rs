//! Division and square root of f64 without a branch, for speculative builds.
//!
//! A GPU has neither. Its assembler makes them of an approximation, some multiplications that double the bits that are
//! right, and a call for operands at the edges of what an exponent can be. Such calls are hardly ever taken, but
//! nothing is moved past them, so that what could be computed side by side is computed one after the other. Here are
//! the same multiplications without the call: where an operand is at an edge, the instance stops, and the host reruns
//! it with the exact build.
//!
//! The tests of a block are one predicate, looked at once, before the block is left or calls anyone. What was computed
//! until then may be wrong, and goes nowhere: memory is the instance's, and begins anew with its rerun.

use super::Printer;
use super::body::When;
use super::integer::{one, two};
use super::register::{Class, Operand, Reg};
use crate::Error;
use crate::analysis::division::{EXPONENT_BIT, EXPONENTS, MIN_EXPONENT};
use crate::analysis::legalize::Form;
use cranelift_codegen::ir::{Inst, types};

type Done = Result<(), Error>;

/// What an approximated inverse is made larger by, in units of its high word's last place: more than it can be too
/// small by. From below, the steps end at 1 for the inverse of the number before 1, and that is one too few.
const MARGIN: i64 = 4;

impl Printer<'_> {
    /// Whether a number is between the edges, by a word that has its exponent from bit `at` on and its sign, if any,
    /// above.
    fn inside(&mut self, word: Operand, at: u32) -> Reg {
        let above = self.word("sub", ".u32", &[word, i64::from((MIN_EXPONENT << at) as i32).into()]);
        let span = i64::from((EXPONENTS << at) as i32).into();
        self.body.op_to_temp(Class::Pred, "setp.lt", ".u32", &[above.into(), span])
    }

    /// The high word without its sign, from which the exponent is one bit further up.
    fn magnitude(&mut self, high: Operand) -> Operand {
        self.word("shl", ".b32", &[high, 1.into()]).into()
    }

    /// Whether it is 0 or -0.
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

    /// The number with another high word.
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

/// What this block has computed is right only if this holds.
fn provide(p: &mut Printer<'_>, holds: Reg) {
    p.block.provided = Some(match p.block.provided {
        Some(before) => p.body.op_to_temp(Class::Pred, "and", ".pred", &[before.into(), holds.into()]),
        None => holds,
    });
}

/// Stops the instance if something that this block has computed is wrong.
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
        // Nothing divided by something is nothing, which the steps below say, too, but for the sign.
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
    // 1 / b: 20 bits, 60, all.
    let minus = p.double("neg", &[b.into()]);
    let about = p.double("rcp.approx.ftz", &[b.into()]);
    let about = p.with_high(about, |p, high| p.word("add", ".u32", &[high, MARGIN.into()]));
    let error = p.fma(minus, about, ONE);
    let error = p.fma(error, error, error);
    let near = p.fma(about, error, about);
    let error = p.fma(minus, near, ONE);
    let inverse = p.fma(near, error, near);
    // What is left of `a` is exact, so that the last step rounds once.
    let quotient = p.double("mul.rn", &[a.into(), inverse.into()]);
    let rest = p.fma(minus, quotient, a);
    if !tests_dividend {
        // The dividend is not 0, and neither is the quotient.
        p.body.op("fma.rn", ".f64", &[result.into(), inverse.into(), rest.into(), quotient.into()]);
        return Ok(());
    }
    let rounded = p.fma(inverse, rest, quotient);
    p.body.op("copysign", ".f64", &[result.into(), quotient.into(), rounded.into()]); // PTX has the sign first
    Ok(())
}

pub(crate) fn square_root(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let x = p.in_register(x);
    let [low, high] = p.body.unpack(x.into());
    let magnitude = p.magnitude(high);
    // With its sign, what is below 0 is outside.
    let (inside, nothing) = (p.inside(high, EXPONENT_BIT), p.is_nothing(low, magnitude));
    let holds = p.body.op_to_temp(Class::Pred, "or", ".pred", &[inside.into(), nothing.into()]);
    provide(p, holds);
    // 1 / root: 20 bits, then all but the last few.
    let about = p.double("rsqrt.approx.ftz", &[x.into()]);
    let square = p.double("mul.rn", &[about.into(), about.into()]);
    let minus = p.double("neg", &[square.into()]);
    let error = p.fma(x, minus, ONE);
    let half = Operand::F64(0.5f64.to_bits());
    let by = p.double("fma.rn", &[error.into(), Operand::F64(0.375f64.to_bits()), half]);
    let part = p.double("mul.rn", &[about.into(), error.into()]);
    let inverse = p.fma(by, part, about);
    // The root, and what its square misses, which is exact.
    let root = p.double("mul.rn", &[x.into(), inverse.into()]);
    let halved = p.with_high(inverse, |p, high| p.word("sub", ".u32", &[high, (1i64 << EXPONENT_BIT).into()]));
    let minus = p.double("neg", &[root.into()]);
    let rest = p.fma(minus, root, x);
    let rounded = p.fma(rest, halved, root);
    p.body.op("selp", ".f64", &[result.into(), x.into(), rounded.into(), nothing.into()]);
    Ok(())
}
