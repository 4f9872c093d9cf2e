//! The guest's read-only data: which loads surely read nothing else, and which stores may write it.
//!
//! Compilers put constants into bytes that a guest is expected never to write ([`crate::ReadOnly`]). Every instance
//! still has these bytes in its memory, since the guest is free to write them. In a speculative build, such a store
//! stops the instance, so until then the bytes have their initial values.

use super::access::{Access, Root};
use super::range::{Range, Ranges};
use super::values;
use crate::ReadOnly;
use cranelift_codegen::ir::{InstructionData, Opcode, Value, ValueDef, types};

/// How a load gets its value without reading the instance's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReadOnlyLoad {
    /// The loaded bytes are this number.
    Bits(u64),
    /// It reads the copy that all instances share, at `root + offset`.
    Copy { root: Value, offset: i64 },
}

/// Returns how an access reads read-only data, if it surely reads nothing else and is surely aligned.
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

/// Whether an access is a store that may write read-only data, if its root has the range `root`.
pub(crate) fn may_write(data: &ReadOnly, root: Range, access: &Access) -> bool {
    let (first, end) = reach(root, access);
    access.stores && !data.bytes.is_empty() && first < data.end() as i64 && end > data.at as i64
}

/// Returns the lowest address that an access begins at and the highest that it ends before, if its root has the range
/// `root`.
fn reach(root: Range, access: &Access) -> (i64, i64) {
    let by = access.displacement() as i64;
    (root.low + by, root.high + by + i64::from(access.bytes))
}

/// Returns the `bytes` bytes at a guest address as a number, if they are read-only.
fn bits(data: &ReadOnly, at: u64, bytes: u32) -> Option<u64> {
    let from = usize::try_from(at.checked_sub(data.at)?).ok()?;
    word(data.bytes.get(from..from.checked_add(bytes as usize)?)?)
}

/// Returns up to eight bytes as a little-endian number.
pub(crate) fn word(bytes: &[u8]) -> Option<u64> {
    let mut word = [0; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(word))
}

/// Splits a root into another value and the constant that is added to it. The ranges of both are known, so their sum
/// does not wrap at 32 bits.
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

/// Returns the two parts of a sum with a constant.
fn constant_sum(ranges: Ranges<'_>, value: Value) -> Option<(Value, i64)> {
    let dfg = &ranges.func.dfg;
    let ValueDef::Result(inst, _) = dfg.value_def(value) else { return None };
    let InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } = dfg.insts[inst] else { return None };
    Some((dfg.resolve_aliases(a), values::constant(ranges.func, b)?))
}
