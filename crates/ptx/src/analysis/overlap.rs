//! Whether two guest accesses can touch the same byte.

use super::access::{Access, Root};
use super::values;
use cranelift_codegen::ir::{Function, InstructionData, Opcode, Value, ValueDef, types};

/// How many sums [`stem`] looks through to find the value that two roots have in common.
const MAX_SUMS_IN_ROOT: usize = 8;

/// The bytes from `root + start` up to, but not including, `root + end`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) root: Root,
    start: i64,
    end: i64,
}

impl Span {
    /// Returns the bytes of an access. All constant roots become one root, the constant 0.
    pub(crate) fn of(access: &Access) -> Span {
        let (root, at) = match access.root {
            Root::Constant(root) => (Root::Constant(0), i64::from(root)),
            root => (root, 0),
        };
        let start = at + access.displacement() as i64;
        Span { root, start, end: start + i64::from(access.bytes) }
    }

    pub(crate) fn join(&mut self, other: Span) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
    }

    pub(crate) fn bytes(&self) -> i64 {
        self.end - self.start
    }
}

/// Two spans that must have no byte in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair(pub(crate) [Span; 2]);

impl Pair {
    /// Returns `(by, limit)`: the spans have a byte in common exactly if `first root - second root + by` is below
    /// `limit`, unsigned. 32 bits are enough for this: addresses that pass their checks do not wrap.
    pub(crate) fn distance(&self) -> (i64, i64) {
        let [one, other] = &self.0;
        (one.start - other.start + one.bytes() - 1, one.bytes() + other.bytes() - 1)
    }
}

/// Whether a load may be printed before a store.
pub(crate) enum Passing {
    Always,
    Never,
    /// If the two do not overlap, which a test at run time has to find out.
    Tested,
}

/// Decides whether a load may be printed before a store, provided that both pass their checks.
pub(crate) fn passing(func: &Function, load: &Span, store: &Span) -> Passing {
    let stem = |span: &Span| match span.root {
        Root::Value(root) => {
            let (stem, by) = stem(func, root);
            (Some(stem), by)
        }
        Root::Constant(_) => (None, 0),
    };
    let ((one, above), (other, below)) = (stem(load), stem(store));
    if one != other {
        return Passing::Tested;
    }
    let (by, limit) = Pair([*load, *store]).distance();
    let distance = above.wrapping_sub(below).wrapping_add(by as u32);
    if i64::from(distance) < limit { Passing::Never } else { Passing::Always }
}

/// Splits a root into another value and the constant that is added to it.
fn stem(func: &Function, root: Value) -> (Value, u32) {
    let dfg = &func.dfg;
    let (mut stem, mut by) = (root, 0u32);
    for _ in 0..MAX_SUMS_IN_ROOT {
        let ValueDef::Result(inst, _) = dfg.value_def(stem) else { break };
        let InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } = dfg.insts[inst] else { break };
        let (rest, constant) = match (values::constant(func, a), values::constant(func, b)) {
            (_, Some(constant)) => (a, constant),
            (Some(constant), _) => (b, constant),
            _ => break,
        };
        if dfg.value_type(rest) != types::I32 {
            break;
        }
        (stem, by) = (dfg.resolve_aliases(rest), by.wrapping_add(constant as u32));
    }
    (stem, by)
}
