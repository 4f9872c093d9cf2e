//! Constant expressions: values that are known before a module runs, or where they come from.

use crate::declared::unsupported;
use crate::error::Error;
use wasmparser::{ConstExpr, Operator};

/// A value known before the module runs, or where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constant {
    /// A number's bits.
    Bits(u64),
    /// A v128's bits.
    Vector(u128),
    Null,
    /// A function's index.
    Function(u32),
    /// Another global's value.
    Global(u32),
    /// An expression of more than one instruction, in postfix order.
    Computed(Box<[Step]>),
}

/// One instruction of a constant expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Push(Constant),
    Compute(Arithmetic),
}

/// An operation of constant expressions on the last two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Add32,
    Sub32,
    Mul32,
    Add64,
    Sub64,
    Mul64,
}

impl Arithmetic {
    fn apply(self, a: u64, b: u64) -> u64 {
        let narrow = |value: u32| u64::from(value);
        match self {
            Self::Add32 => narrow((a as u32).wrapping_add(b as u32)),
            Self::Sub32 => narrow((a as u32).wrapping_sub(b as u32)),
            Self::Mul32 => narrow((a as u32).wrapping_mul(b as u32)),
            Self::Add64 => a.wrapping_add(b),
            Self::Sub64 => a.wrapping_sub(b),
            Self::Mul64 => a.wrapping_mul(b),
        }
    }
}

impl Constant {
    /// Returns the value's bits as they lie in a slot: two words for a v128, one for anything else. `function` and
    /// `global` return the bits of a function reference and of a global.
    pub fn bits(&self, function: &dyn Fn(u32) -> u64, global: &dyn Fn(u32) -> u128) -> u128 {
        match self {
            Self::Bits(bits) => (*bits).into(),
            Self::Vector(bits) => *bits,
            Self::Null => 0,
            Self::Function(index) => function(*index).into(),
            Self::Global(index) => global(*index),
            Self::Computed(steps) => {
                let mut stack = Vec::new();
                for step in steps {
                    let word = match step {
                        Step::Push(constant) => constant.bits(function, global) as u64,
                        Step::Compute(what) => {
                            // Validation guarantees two operands.
                            let (b, a) = (stack.pop().unwrap_or(0), stack.pop().unwrap_or(0));
                            what.apply(a, b)
                        }
                    };
                    stack.push(word);
                }
                stack.pop().unwrap_or(0).into()
            }
        }
    }

    /// Calls `with` for every constant in the expression.
    pub(crate) fn each(&self, with: &mut dyn FnMut(&Constant)) {
        match self {
            Self::Computed(steps) => steps.iter().for_each(|step| {
                if let Step::Push(constant) = step {
                    constant.each(with);
                }
            }),
            simple => with(simple),
        }
    }

    /// Returns the same constant with the function and global indices of another index space.
    pub(crate) fn renumbered(&self, functions: &[u32], globals: &[u32]) -> Self {
        match self {
            Self::Function(index) => Self::Function(functions[*index as usize]),
            Self::Global(index) => Self::Global(globals[*index as usize]),
            Self::Computed(steps) => {
                let step = |step: &Step| match step {
                    Step::Push(constant) => Step::Push(constant.renumbered(functions, globals)),
                    compute => compute.clone(),
                };
                Self::Computed(steps.iter().map(step).collect())
            }
            simple => simple.clone(),
        }
    }
}

/// Reads a constant expression.
pub(crate) fn constant(expr: &ConstExpr<'_>) -> Result<Constant, Error> {
    let mut reader = expr.get_operators_reader();
    let mut steps = Vec::new();
    loop {
        let at = reader.original_position();
        steps.push(match reader.read()? {
            Operator::I32Const { value } => Step::Push(Constant::Bits(value as u32 as u64)),
            Operator::I64Const { value } => Step::Push(Constant::Bits(value as u64)),
            Operator::F32Const { value } => Step::Push(Constant::Bits(value.bits().into())),
            Operator::F64Const { value } => Step::Push(Constant::Bits(value.bits())),
            Operator::V128Const { value } => Step::Push(Constant::Vector(u128::from_le_bytes(*value.bytes()))),
            Operator::RefNull { .. } => Step::Push(Constant::Null),
            Operator::RefFunc { function_index } => Step::Push(Constant::Function(function_index)),
            Operator::GlobalGet { global_index } => Step::Push(Constant::Global(global_index)),
            Operator::I32Add => Step::Compute(Arithmetic::Add32),
            Operator::I32Sub => Step::Compute(Arithmetic::Sub32),
            Operator::I32Mul => Step::Compute(Arithmetic::Mul32),
            Operator::I64Add => Step::Compute(Arithmetic::Add64),
            Operator::I64Sub => Step::Compute(Arithmetic::Sub64),
            Operator::I64Mul => Step::Compute(Arithmetic::Mul64),
            Operator::End => break,
            other => {
                let feature = match crate::translate::feature(&other) {
                    "garbage collection" => "garbage collection".to_owned(),
                    _ => format!("constant expression {other:?}"),
                };
                return Err(unsupported(&feature, "an initial value", at));
            }
        });
    }
    Ok(match <[Step; 1]>::try_from(steps) {
        Ok([Step::Push(constant)]) => constant,
        Ok(steps) => Constant::Computed(Box::new(steps)),
        Err(steps) => Constant::Computed(steps.into()),
    })
}
