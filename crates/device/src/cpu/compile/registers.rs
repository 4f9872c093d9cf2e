//! What the registers of a function hold.
//!
//! Normally a register is a variable of `cranelift-frontend`, which finds out which value arrives where. For each
//! variable it keeps a table with an entry for each block; in an interpreter's loop, with tens of thousands of both,
//! the tables take gigabytes. So in such a function, a register that is assigned in only one place, as nearly all are,
//! is simply the value assigned there.
//!
//! Whether such a register is assigned before it is read, on every path, is checked afterwards
//! ([`Registers::out_of_order`]). Most are. The others (such as an address that is read again only where an earlier
//! test succeeded) are moved to the frame, and the function is translated once more. Registers that are assigned in
//! [`MANY`] places also live in the frame, and so do all that are assigned twice if they are too many for tables. As a
//! variable, a register that is not surely assigned would carry its old value through every case of the interpreter's
//! switch to a block with hundreds of predecessors. CPython's loop had 600,000 moves for such registers, and took a
//! minute to compile.

use super::clif_type;
use crate::cpu::ast::{Action, Body, CallResult, Callee, Function, Opcode, Operand, Register, Returns, Type};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{self, Block, InstBuilder, StackSlot, StackSlotData, StackSlotKind, Value, types};
use cranelift_frontend::{FunctionBuilder, Variable};

/// Table entries up to which a function's registers are simply variables.
const MAX_TABLE_ENTRIES: usize = 1 << 22;
/// Assigned more than once: a variable.
const SEVERAL: u8 = 2;
/// Assigned so often that it lives in the frame.
const MANY: u8 = 3;
/// The most table entries that can be afforded in a large function.
const ALL_TABLES: usize = 1 << 27;
/// Alignment of the registers' part of the frame, as a power of two: eight bytes.
const FRAME_ALIGN: u8 = 3;

/// In how many places each register is assigned; some count as [`SEVERAL`] for other reasons.
pub(super) struct Assignments(Vec<u8>);

pub(super) struct Registers {
    held: Vec<Held>,
    /// Holds the registers that live in the frame. As on a GPU, a register that was never assigned has any value.
    frame: Option<StackSlot>,
    /// For each read in another block than the assignment: the block of the assignment, if there was one, the block of
    /// the read, and the register.
    journeys: Vec<(Option<Block>, Block, Register)>,
    /// Registers that were assigned more often than was counted.
    miscounted: Vec<Register>,
}

#[derive(Clone, Copy)]
enum Held {
    Variable(Variable),
    /// To be assigned once, and not assigned yet.
    Nothing,
    Value(Value, Block),
    /// At this offset in the registers' part of the frame.
    Frame(i32),
}

impl Registers {
    pub(super) fn new(body: &Body<'_>, assignments: &Assignments, b: &mut FunctionBuilder<'_>) -> Self {
        let mut bytes = 0u32;
        let held = body.registers.iter().zip(&assignments.0).map(|(ty, count)| match *count {
            MANY.. => {
                let size = clif_type(*ty).bytes();
                let at = bytes.next_multiple_of(size);
                bytes = at + size;
                Held::Frame(at as i32)
            }
            SEVERAL.. => Held::Variable(b.declare_var(clif_type(*ty))),
            _ => Held::Nothing,
        });
        let held = held.collect();
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, FRAME_ALIGN);
        let frame = (bytes > 0).then(|| b.create_sized_stack_slot(data));
        Self { held, frame, journeys: Vec::new(), miscounted: Vec::new() }
    }

    pub(super) fn read(&mut self, register: Register, ty: Type, b: &mut FunctionBuilder<'_>) -> Value {
        let (value, from) = match (self.held[register.0 as usize], self.frame) {
            (Held::Variable(variable), _) => return b.use_var(variable),
            (Held::Frame(at), Some(frame)) => return b.ins().stack_load(types::I64, clif_type(ty), frame, at),
            (Held::Value(value, from), _) => (value, Some(from)),
            _ => (zero(ty, b), None),
        };
        if let Some(to) = b.current_block().filter(|to| from != Some(*to)) {
            self.journeys.push((from, to, register));
        }
        value
    }

    pub(super) fn assign(&mut self, register: Register, value: Value, b: &mut FunctionBuilder<'_>) {
        match (&mut self.held[register.0 as usize], b.current_block()) {
            (Held::Variable(variable), _) => b.def_var(*variable, value),
            (Held::Frame(at), _) => {
                if let Some(frame) = self.frame {
                    b.ins().stack_store(types::I64, value, frame, *at);
                }
            }
            (held @ Held::Nothing, Some(block)) => *held = Held::Value(value, block),
            _ => self.miscounted.push(register),
        }
    }

    /// Returns the registers that are not, on every path, assigned before they are read.
    pub(super) fn out_of_order(self, function: &ir::Function) -> Vec<Register> {
        let mut found = self.miscounted;
        if !self.journeys.is_empty() {
            let graph = ControlFlowGraph::with_function(function);
            let tree = DominatorTree::with_function(function, &graph);
            let wrong = |from: Option<Block>, to| {
                tree.is_reachable(to) && !from.is_some_and(|from| tree.block_dominates(from, to))
            };
            found
                .extend(self.journeys.iter().filter(|(from, to, _)| wrong(*from, *to)).map(|(.., register)| *register));
        }
        found
    }
}

impl Assignments {
    /// Counts the assignments of each register. In a small function all registers are variables, without counting.
    pub(super) fn of(function: &Function<'_>, body: &Body<'_>) -> Self {
        let large = body.registers.len().saturating_mul(body.labels.len()) > MAX_TABLE_ENTRIES;
        if !large {
            return Self(vec![SEVERAL; body.registers.len()]);
        }
        let mut counts = count(function, body);
        let variables = counts.iter().filter(|count| **count == SEVERAL).count();
        if variables.saturating_mul(body.labels.len()) > ALL_TABLES {
            counts.iter_mut().filter(|count| **count == SEVERAL).for_each(|count| *count = MANY);
        }
        Self(counts)
    }

    /// Moves these registers to the frame.
    pub(super) fn unsure(&mut self, registers: &[Register]) {
        for register in registers {
            self.0[register.0 as usize] = MANY;
        }
    }
}

/// Counts assignments. These count as several: an assignment that a guard may skip, and a register that is read further
/// up than it is assigned, since a value must exist before it is used. What is missed here is found later.
fn count(function: &Function<'_>, body: &Body<'_>) -> Vec<u8> {
    let mut counts = Counts(vec![0; body.registers.len()]);
    counts.0[..function.signature.parameters.len()].fill(u8::from(!function.entry));
    for statement in &body.statements {
        let by = if let Some(guard) = statement.guard {
            counts.read(guard.predicate);
            SEVERAL
        } else {
            1
        };
        match &statement.action {
            Action::Do { opcode, first, count } => {
                let operands = &body.operands[*first as usize..][..*count as usize];
                let (to, from) = operands.split_at(results(*opcode).min(operands.len()));
                from.iter().for_each(|operand| counts.read_operand(*operand));
                for operand in to {
                    if let Operand::Register(register) = operand {
                        counts.assign(*register, by);
                    }
                }
            }
            Action::Call(call) => {
                let call = &body.calls[*call as usize];
                let arguments = &body.operands[call.arguments.start as usize..call.arguments.end as usize];
                arguments.iter().for_each(|operand| counts.read_operand(*operand));
                if let Callee::Indirect(register, _) = call.callee {
                    counts.read(register);
                }
                if let CallResult::Register(register) = call.result {
                    counts.assign(register, by);
                }
            }
            Action::BranchTable { index, .. } => counts.read(*index),
            _ => {}
        }
    }
    // The result is read at the end, even if nothing was assigned to it.
    if let Returns::Register(_) = function.signature.result {
        let count = &mut counts.0[function.signature.parameters.len()];
        *count = SEVERAL.max(*count);
    }
    counts.0
}

struct Counts(Vec<u8>);

impl Counts {
    fn assign(&mut self, register: Register, by: u8) {
        let count = &mut self.0[register.0 as usize];
        *count = count.saturating_add(by);
    }

    fn read(&mut self, register: Register) {
        let count = &mut self.0[register.0 as usize];
        if *count == 0 {
            *count = SEVERAL;
        }
    }

    fn read_operand(&mut self, operand: Operand<'_>) {
        if let Operand::Register(register) | Operand::Not(register) | Operand::Address(register, _) = operand {
            self.read(register);
        }
    }
}

/// How many of an instruction's first operands are its results.
fn results(opcode: Opcode) -> usize {
    match opcode {
        Opcode::Store(..)
        | Opcode::StoreParam(_)
        | Opcode::Fence { .. }
        | Opcode::Barrier
        | Opcode::WarpBarrier
        | Opcode::Sleep
        | Opcode::Return
        | Opcode::Exit
        | Opcode::Trap
        | Opcode::Branch
        | Opcode::BranchTable
        | Opcode::Call => 0,
        Opcode::Unpack | Opcode::Shuffle(_) => 2,
        _ => 1,
    }
}

fn zero(ty: Type, b: &mut FunctionBuilder<'_>) -> Value {
    match clif_type(ty) {
        types::F32 => b.ins().f32const(0.0),
        types::F64 => b.ins().f64const(0.0),
        ty => b.ins().iconst(ty, 0),
    }
}
