//! The guest's read-only data: which loads certainly read nothing else, and which stores may write it.
//!
//! Compilers put constants into bytes that a guest is expected never to write ([`crate::ReadOnly`]). Every instance has
//! them in its memory all the same, since a guest may do with them what it likes. In a speculative build a store there
//! stops the instance, so until then the bytes are what they were at the start.

use super::access::{Access, Root};
use super::range::{Range, Ranges};
use super::values;
use crate::ReadOnly;
use cranelift_codegen::ir::{InstructionData, Opcode, Value, ValueDef, types};

/// A load that need not go to the instance's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReadOnlyLoad {
    /// The bytes themselves, as a number.
    Bits(u64),
    /// From the copy that all instances share: `offset` bytes behind the root.
    Copy { root: Value, offset: i64 },
}

/// How an access reads read-only data, if it certainly reads nothing else, and aligned.
pub(crate) fn load(data: &ReadOnly, ranges: Ranges<'_>, access: &Access) -> Option<ReadOnlyLoad> {
    if access.stores || data.bytes.is_empty() || access.bytes > 8 {
        return None;
    }
    let root = match access.root {
        Root::Constant(root) => {
            return bits(data, u64::from(root) + access.displacement(), access.bytes).map(ReadOnlyLoad::Bits);
        }
        Root::Value(root) => root,
    };
    if ranges.func.dfg.value_type(root) != types::I32 {
        return None;
    }
    let range = ranges.of(root)?;
    let known = range.zeros.max(values::trailing_zeros(ranges.func, root));
    let zeros = known.min(access.displacement().trailing_zeros());
    let (first, end) = reach(range, access);
    let is_inside = range.low >= 0 && first >= data.at as i64 && end <= data.end() as i64;
    if !is_inside || 1u64 << zeros.min(3) < u64::from(access.bytes) {
        return None;
    }
    let (root, by) = without_constants(ranges, root);
    Some(ReadOnlyLoad::Copy { root, offset: by + access.displacement() as i64 - data.at as i64 })
}

/// Whether a store with such a root may write read-only data.
pub(crate) fn may_write(data: &ReadOnly, root: Range, access: &Access) -> bool {
    let (first, end) = reach(root, access);
    access.stores && !data.bytes.is_empty() && first < data.end() as i64 && end > data.at as i64
}

/// Where an access with such a root begins at the lowest, and ends at the highest.
fn reach(root: Range, access: &Access) -> (i64, i64) {
    let by = access.displacement() as i64;
    (root.low + by, root.high + by + i64::from(access.bytes))
}

/// So many bytes at a guest address, if they are read-only.
fn bits(data: &ReadOnly, at: u64, bytes: u32) -> Option<u64> {
    let from = usize::try_from(at.checked_sub(data.at)?).ok()?;
    word(data.bytes.get(from..from.checked_add(bytes as usize)?)?)
}

/// Up to eight bytes, as a number.
pub(crate) fn word(bytes: &[u8]) -> Option<u64> {
    let mut word = [0; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(word))
}

/// A value as another and what is added to it. Nothing is lost above 32 bits, since both are known.
fn without_constants(ranges: Ranges<'_>, mut root: Value) -> (Value, i64) {
    let mut by = 0;
    while let Some((rest, constant)) = constant_sum(ranges, root) {
        if !ranges.of(rest).is_some_and(|range| range.low >= 0 && constant >= 0) {
            break;
        }
        (root, by) = (rest, by + constant);
    }
    (root, by)
}

/// The two parts of a sum with a constant.
fn constant_sum(ranges: Ranges<'_>, value: Value) -> Option<(Value, i64)> {
    let dfg = &ranges.func.dfg;
    let ValueDef::Result(inst, _) = dfg.value_def(value) else { return None };
    let InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } = dfg.insts[inst] else { return None };
    Some((dfg.resolve_aliases(a), values::constant(ranges.func, b)?))
}
