//! Accesses to guest memory, and the parts of their addresses.
//!
//! An address is a *root* plus constants. Most roots serve several accesses, so a fact about a root holds for all of
//! them.

use super::values;
use crate::Program;
use cranelift_codegen::ir::{AliasRegion, Function, Inst, InstructionData, Opcode, Value, ValueDef, types};
use cranelift_entity::SecondaryMap;
use gpu_run_abi::intrinsic::region;
use gpu_run_abi::layout::GUARD;

/// The variable part of an access's address, or the whole address if it is constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Constant(u32),
    /// An i32, or an i64 that is a zero-extended i32.
    Value(Value),
}

/// A load or store by a guest address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Access {
    pub(crate) root: Root,
    /// A constant that the guest adds to the root, in 32 bits.
    pub(crate) folded: u32,
    /// The offset in the instruction, in bytes.
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
    pub(crate) stores: bool,
    /// The module says that the access is aligned.
    pub(crate) promises_alignment: bool,
    /// The code makes the access as if it were aligned; a check catches a misaligned address.
    pub(crate) expects_alignment: bool,
}

impl Access {
    /// Returns the distance from the root to the first byte.
    pub(crate) fn displacement(&self) -> u64 {
        u64::from(self.folded) + u64::from(self.offset)
    }

    /// Returns the distance from the root to the byte after the last.
    pub(crate) fn end(&self) -> u64 {
        self.displacement() + u64::from(self.bytes)
    }

    /// Whether the access may be misaligned and no check catches that.
    pub(crate) fn is_doubtful(&self) -> bool {
        !self.expects_alignment && self.bytes > 1
    }

    /// Returns the value that the address needs in a register.
    pub(crate) fn root_value(&self) -> Option<Value> {
        match self.root {
            Root::Constant(_) => None,
            Root::Value(value) => Some(value),
        }
    }
}

/// All guest accesses of a function.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    by_inst: SecondaryMap<Inst, Option<Access>>,
    any: bool,
}

impl Accesses {
    pub(crate) fn find(program: &Program, func: &Function) -> Accesses {
        let mut accesses = Accesses::default();
        let Some(guest) = func.dfg.alias_regions.get(region::GUEST) else { return accesses };
        accesses.by_inst.resize(func.dfg.num_insts());
        for inst in func.layout.blocks().flat_map(|block| func.layout.block_insts(block)) {
            let access = access(program, func, guest, inst);
            accesses.any |= access.is_some();
            accesses.by_inst[inst] = access;
        }
        accesses
    }

    /// Returns the guest access that an instruction makes, if any.
    pub(crate) fn get(&self, inst: Inst) -> Option<&Access> {
        self.by_inst[inst].as_ref()
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.any
    }
}

fn access(program: &Program, func: &Function, guest: AliasRegion, inst: Inst) -> Option<Access> {
    let (opcode, at, flags, offset) = match func.dfg.insts[inst] {
        InstructionData::Load { opcode, arg, flags, offset } => (opcode, arg, flags, offset),
        InstructionData::Store { opcode, args: [_, at], flags, offset } => (opcode, at, flags, offset),
        _ => return None,
    };
    let flags = func.dfg.mem_flags[flags];
    if flags.alias_region() != Some(guest) {
        return None;
    }
    let bytes = match opcode {
        Opcode::Uload8 | Opcode::Sload8 | Opcode::Istore8 => 1,
        Opcode::Uload16 | Opcode::Sload16 | Opcode::Istore16 => 2,
        Opcode::Uload32 | Opcode::Sload32 | Opcode::Istore32 => 4,
        Opcode::Store => func.dfg.value_type(func.dfg.inst_args(inst)[0]).bytes(),
        _ => func.dfg.ctrl_typevar(inst).bytes(),
    };
    // Offsets are unsigned. The front end keeps them below 2^31.
    let offset = i32::from(offset) as u32;
    let stores = opcode.can_store();
    // The slow path of an exact build stores misaligned values byte by byte. A speculative build has no slow path.
    let has_slow_path = !program.is_speculative();
    let promises_alignment = flags.aligned() || bytes == 1;
    let expects_alignment = flags.aligned() || (has_slow_path && stores);
    let (root, folded) = root(program, func, at, u64::from(offset) + u64::from(bytes));
    Some(Access { root, folded, offset, bytes, stores, promises_alignment, expects_alignment })
}

/// Splits an address into its root and the constant between the two. Constants are taken off the root only while
/// constant and `reach` together stay within [`GUARD`] bytes.
fn root(program: &Program, func: &Function, at: Value, reach: u64) -> (Root, u32) {
    let dfg = &func.dfg;
    let def = |value| match dfg.value_def(value) {
        ValueDef::Result(inst, _) => Some(dfg.insts[inst]),
        _ => None,
    };
    let constant = |value| values::constant(func, value);
    let at = dfg.resolve_aliases(at);
    if let Some(constant) = constant(at) {
        return (Root::Constant(constant as u32), 0);
    }
    let mut root = match def(at) {
        Some(InstructionData::Unary { opcode: Opcode::Uextend, arg }) if dfg.value_type(arg) == types::I32 => {
            dfg.resolve_aliases(arg)
        }
        _ => return (Root::Value(at), 0),
    };
    let mut folded = 0u32;
    // A sum may wrap around to a valid address although its root fails the check. A gang has no slow path for that, so
    // it checks the sum.
    let folds = !program.is_gang();
    while let Some(InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] }) = def(root) {
        let split = [(a, constant(b)), (b, constant(a))];
        let Some((base, by)) = split.into_iter().find_map(|(v, c)| Some((v, c?))) else { break };
        let fits = folds && by >= 0 && u64::from(folded) + by as u64 + reach <= GUARD;
        if !fits {
            break;
        }
        folded += by as u32;
        root = dfg.resolve_aliases(base);
    }
    match constant(root) {
        Some(constant) => (Root::Constant((constant as u32).wrapping_add(folded)), 0),
        None => (Root::Value(root), folded),
    }
}
