//! Whether two guest accesses can touch the same byte.

use super::access::{Access, Root};
use super::values;
use cranelift_codegen::ir::{Function, InstructionData, Opcode, Value, ValueDef, types};

/// How many sums are looked through for what one root shares with another.
const MAX_SUMS_IN_ROOT: usize = 8;

/// The bytes from `start` to `end` behind a root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) root: Root,
    start: i64,
    end: i64,
}

impl Span {
    /// Where an access goes. All constant roots are one, at 0.
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
    /// What to add to the first root less the second, and below what the sum then is where the two have a byte in
    /// common. All in 32 bits, which is enough: places that pass their checks do not wrap.
    pub(crate) fn distance(&self) -> (i64, i64) {
        let [one, other] = &self.0;
        (one.start - other.start + one.bytes() - 1, one.bytes() + other.bytes() - 1)
    }
}

/// When a load may be printed before a store.
pub(crate) enum Passing {
    Always,
    Never,
    /// If the two lie apart, which is to be tested.
    Tested,
}

/// Whether a load may be printed before a store, both in order by themselves.
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

/// What a root is made of, and the constant between the two.
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
