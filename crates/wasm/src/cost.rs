//! Estimates how much memory compiling a module takes, before anything is compiled.
//!
//! A small module can be expensive: a two-byte instruction can pass a thousand values on, a three-byte declaration
//! makes 50,000 locals. A module that would take too much memory is refused, and the error names the function that
//! causes it.

use crate::error::Error;
use wasmparser::{BlockType, CompositeInnerType, FrameKind, FuncValidator, Operator, WasmModuleResources};

/// The most memory that compiling a module may take, in bytes: an estimate, not an exact count.
const MAX_BYTES: u64 = 8 << 30;

/// Estimated bytes of memory for each part of a module.
const BYTES_OF_OPERATOR: u64 = 256;
const BYTES_OF_VALUE: u64 = 128;
const BYTES_OF_TARGET: u64 = 64;
const BYTES_OF_LOCAL: u64 = 64;
const BYTES_OF_FUNCTION: u64 = 2 << 10;

/// Counts of what a function consists of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    operators: u64,
    /// Values that calls, branches and blocks pass on.
    values: u64,
    /// Entries in the function's branch tables.
    targets: u64,
    locals: u64,
}

impl Cost {
    /// Counts an operator that is about to be validated.
    pub(crate) fn operator<T: WasmModuleResources>(&mut self, op: &Operator<'_>, checker: &FuncValidator<T>) {
        self.operators += 1;
        let arity = |ty: Option<u32>| -> [u64; 2] {
            let ty = ty.and_then(|ty| checker.resources().sub_type_at(ty));
            match ty.map(|ty| &ty.composite_type.inner) {
                Some(CompositeInnerType::Func(ty)) => [ty.params().len() as u64, ty.results().len() as u64],
                _ => [0, 0],
            }
        };
        let of_block = |ty: BlockType| match ty {
            BlockType::Empty => [0, 0],
            BlockType::Type(_) => [0, 1],
            BlockType::FuncType(ty) => arity(Some(ty)),
        };
        let of_label = |depth: u32| match checker.get_control_frame(depth as usize) {
            Some(frame) if frame.kind == FrameKind::Loop => of_block(frame.block_type)[0],
            Some(frame) => of_block(frame.block_type)[1],
            None => 0,
        };
        let sum = |[params, results]: [u64; 2]| params + results;
        self.values += match op {
            Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
                sum(arity(checker.resources().type_index_of_function(*function_index)))
            }
            Operator::CallIndirect { type_index, .. }
            | Operator::CallRef { type_index }
            | Operator::ReturnCallIndirect { type_index, .. }
            | Operator::ReturnCallRef { type_index } => sum(arity(Some(*type_index))),
            Operator::Block { blockty } | Operator::Loop { blockty } | Operator::If { blockty } => {
                sum(of_block(*blockty))
            }
            Operator::Br { relative_depth }
            | Operator::BrIf { relative_depth }
            | Operator::BrOnNull { relative_depth }
            | Operator::BrOnNonNull { relative_depth } => of_label(*relative_depth),
            Operator::BrTable { targets } => {
                self.targets += u64::from(targets.len());
                of_label(targets.default()) * (u64::from(targets.len()) + 1)
            }
            _ => 0,
        };
    }

    pub(crate) fn with_locals(self, locals: u32) -> Self {
        Self { locals: locals.into(), ..self }
    }

    fn bytes(&self) -> u64 {
        let Self { operators, values, targets, locals } = self;
        BYTES_OF_FUNCTION
            + BYTES_OF_OPERATOR * operators
            + BYTES_OF_VALUE * values
            + BYTES_OF_TARGET * targets
            + BYTES_OF_LOCAL * locals
    }

    /// Returns an error if the function is too large to compile, even alone.
    pub(crate) fn check(&self, function: u32) -> Result<(), Error> {
        if self.bytes() <= MAX_BYTES {
            return Ok(());
        }
        let what = format!("function {function} has {}", self.largest());
        Err(refused(&what, self.bytes()))
    }

    /// Describes the part of the function that takes the most memory.
    fn largest(&self) -> String {
        let Self { operators, values, targets, locals } = *self;
        let parts = [
            (BYTES_OF_OPERATOR * operators, operators, "operators"),
            (BYTES_OF_VALUE * values, values, "values passed by its calls, branches and blocks"),
            (BYTES_OF_TARGET * targets, targets, "targets in branch tables"),
            (BYTES_OF_LOCAL * locals, locals, "locals"),
        ];
        let (_, count, what) = parts.into_iter().max().unwrap_or_default();
        format!("{count} {what}")
    }
}

/// Returns an error if the functions together are too large to compile. `first` is the index of the first of them.
pub(crate) fn check<'a>(costs: impl Iterator<Item = &'a Cost> + Clone, first: u32) -> Result<(), Error> {
    let bytes = costs.clone().map(Cost::bytes).fold(0, u64::saturating_add);
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let count = costs.clone().count();
    let largest = (first..).zip(costs).max_by_key(|(_, cost)| cost.bytes());
    let example = largest
        .map_or_else(String::new, |(function, cost)| format!(", function {function} of them {}", cost.largest()));
    Err(refused(&format!("it has {count} functions{example}"), bytes))
}

fn refused(what: &str, bytes: u64) -> Error {
    let gib = |bytes: u64| bytes.div_ceil(1 << 30);
    Error::Limit(format!(
        "{what}: compiling it would take about {} GiB of memory; the limit is {} GiB",
        gib(bytes),
        gib(MAX_BYTES)
    ))
}
