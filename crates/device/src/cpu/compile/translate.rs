//! Translates one PTX function to CLIF: control flow, registers, and the dispatch of instructions.
//!
//! A register is a value, or a variable of `cranelift-frontend`, which turns it into SSA form (`registers`). A label is
//! a CLIF block. A block is sealed as soon as the last branch to it is emitted, so that a block with one predecessor
//! gets no phi. A predicate is the `i8` that its comparison returned: Cranelift fuses the comparison with an
//! instruction that uses it directly.

use super::host::Host;
use super::registers::{Assignments, Registers};
use super::{Unit, clif_type};
use crate::cpu::ast::{Action, Body, Function, Guard, Label, Opcode, Operand, Register, Returns, Statement, Type};
use crate::cpu::context::Fault;
use crate::{Error, Result};
use cranelift_codegen::ir::{
    self, Block, BlockCall, FuncRef, GlobalValue, InstBuilder, JumpTableData, MemFlagsData, StackSlot, StackSlotData,
    StackSlotKind, TrapCode, Value, ValueDef, types,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use std::collections::HashMap;

/// Alignment of `.local` arrays, as a power of two: 16 bytes.
const LOCAL_ALIGN: u8 = 4;
/// Follows a call that does not return.
const UNREACHABLE: TrapCode = TrapCode::unwrap_user(1);

pub(super) fn translate(
    unit: &Unit<'_>,
    function: &Function<'_>,
    body: &Body<'_>,
    clif: &mut ir::Function,
    scratch: &mut FunctionBuilderContext,
) -> Result<()> {
    let mut assignments = Assignments::of(function, body);
    loop {
        let registers = with_registers(unit, function, body, &assignments, clif, scratch)?;
        let late = registers.out_of_order(clif);
        if late.is_empty() {
            return Ok(());
        }
        // Each time, at least one more register lives in the frame, so this terminates.
        assignments.unsure(&late);
        let signature = clif.signature.clone();
        clif.clear();
        clif.signature = signature;
    }
}

fn with_registers(
    unit: &Unit<'_>,
    function: &Function<'_>,
    body: &Body<'_>,
    assignments: &Assignments,
    clif: &mut ir::Function,
    scratch: &mut FunctionBuilderContext,
) -> Result<Registers> {
    let mut b = FunctionBuilder::new(clif, scratch);
    let mut t = Translator {
        unit,
        function,
        body,
        registers: Registers::new(body, assignments, &mut b),
        b,
        blocks: Vec::new(),
        incoming: body.labels.iter().map(|l| l.uses).collect(),
        placed: vec![false; body.labels.len()],
        live: true,
        line: function.line,
        param_pointer: None,
        params: Vec::new(),
        open: Vec::new(),
        slots: HashMap::new(),
        locals: Vec::new(),
        callees: HashMap::new(),
        hosts: HashMap::new(),
        data: HashMap::new(),
        is_fenced: false,
    };
    t.begin();
    // An atomic operation of x86-64 is a fence by itself.
    for (at, statement) in body.statements.iter().enumerate() {
        t.line = statement.line;
        t.is_fenced = cfg!(target_arch = "x86_64") && body.statements.get(at + 1).is_some_and(is_atomic);
        t.statement(statement)?;
    }
    if t.live {
        t.give_back();
    }
    t.b.seal_all_blocks();
    t.b.finalize(unit.isa.frontend_config());
    Ok(t.registers)
}

pub(super) struct Translator<'u, 'f> {
    pub(super) unit: &'u Unit<'u>,
    pub(super) function: &'u Function<'u>,
    pub(super) body: &'u Body<'u>,
    registers: Registers,
    pub(super) b: FunctionBuilder<'f>,
    blocks: Vec<Block>,
    /// Number of branches to each label that are still to come.
    incoming: Vec<u32>,
    placed: Vec<bool>,
    /// Whether the current block can still be extended. What follows a jump, up to the next label, cannot be reached.
    pub(super) live: bool,
    pub(super) line: u32,
    /// Points to a kernel's parameters, or to the memory for a function's result.
    pub(super) param_pointer: Option<Value>,
    /// The `.param`s of the open scopes, innermost last.
    pub(super) params: Vec<(&'u str, u32, StackSlot)>,
    /// Length of `params` when each open scope began.
    open: Vec<usize>,
    /// Stack slots by depth and size; consecutive scopes share them.
    pub(super) slots: HashMap<(usize, u32), StackSlot>,
    /// `.local` arrays, in order.
    pub(super) locals: Vec<StackSlot>,
    pub(super) callees: HashMap<u32, FuncRef>,
    pub(super) hosts: HashMap<Host, FuncRef>,
    /// By offset in the module's data.
    pub(super) data: HashMap<u32, GlobalValue>,
    /// Whether the next instruction is a fence, too.
    is_fenced: bool,
}

/// Whether a statement is an atomic read-modify-write that is always executed.
fn is_atomic(statement: &Statement<'_>) -> bool {
    let is_atomic = |opcode: &Opcode| matches!(opcode, Opcode::Atomic(..) | Opcode::CompareExchange(_));
    statement.guard.is_none() && matches!(&statement.action, Action::Do { opcode, .. } if is_atomic(opcode))
}

impl<'u> Translator<'u, '_> {
    fn begin(&mut self) {
        for local in &self.body.locals {
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, local.bytes, LOCAL_ALIGN);
            self.locals.push(self.b.create_sized_stack_slot(data));
        }
        let entry = self.b.create_block();
        self.blocks = self.body.labels.iter().map(|_| self.b.create_block()).collect();
        self.b.append_block_params_for_function_params(entry);
        self.b.switch_to_block(entry);
        self.b.seal_block(entry);
        let mut values = self.b.block_params(entry).to_vec().into_iter();
        let result = self.function.signature.result;
        let cold = super::is_cold(self.function.name) && result != Returns::Nothing;
        if self.function.entry || cold || matches!(result, Returns::Cells(_)) {
            self.param_pointer = values.next();
        }
        for (register, value) in values.enumerate() {
            self.registers.assign(Register(register as u32), value, &mut self.b);
        }
    }

    fn statement(&mut self, statement: &'u Statement<'u>) -> Result<()> {
        match &statement.action {
            Action::Label(label) => self.place(*label),
            Action::Open => self.open.push(self.params.len()),
            Action::Close => self.params.truncate(self.open.pop().unwrap_or_default()),
            Action::Param { name, bytes } => self.declare_param(name, *bytes),
            _ if !self.live => self.skip(statement),
            Action::Branch(label) => self.branch(*label, statement.guard)?,
            Action::Do { opcode: Opcode::Mov(ty), first, .. } if statement.guard.is_some() => {
                let operands = &self.body.operands[*first as usize..];
                self.guarded_mov(*ty, operands[0], operands[1], statement.guard)?;
            }
            action => self.guarded(statement.guard, |t| t.action(action))?,
        }
        Ok(())
    }

    fn action(&mut self, action: &'u Action<'u>) -> Result<()> {
        match action {
            Action::Do { opcode, first, count } => {
                let operands = &self.body.operands[*first as usize..][..*count as usize];
                self.instruction(*opcode, operands)
            }
            Action::Call(n) => self.call(&self.body.calls[*n as usize]),
            Action::BranchTable { index, table } => self.branch_table(*index, *table),
            _ => Ok(()), // labels, scopes and branches are handled in `statement`
        }
    }

    /// The instruction table.
    fn instruction(&mut self, opcode: Opcode, o: &'u [Operand<'u>]) -> Result<()> {
        match opcode {
            Opcode::Mov(ty) => {
                let value = self.moved(ty, o[0], o[1])?;
                self.set(o[0], value)
            }
            Opcode::Pack => self.pack(o),
            Opcode::Unpack => self.unpack(o),
            Opcode::Binary(op, ty) => self.binary(op, ty, o),
            Opcode::Unary(op, ty) => self.unary(op, ty, o),
            Opcode::MulWide => self.multiply_wide(o, None),
            Opcode::MadWide => self.multiply_wide(o, Some(o[3])),
            Opcode::MadLow(ty) => self.multiply_add(ty, o),
            Opcode::Fma(ty) => self.fused_multiply_add(ty, o),
            Opcode::Funnel { left, wrap } => self.funnel(left, wrap, o),
            Opcode::BitField(ty) => self.bit_field(ty, o),
            Opcode::Permute => self.permute(o),
            Opcode::Convert { to, from, round } => self.convert(to, from, round, o),
            Opcode::Compare(condition, ty) => self.compare(condition, ty, o),
            Opcode::Select(ty) => self.select(ty, o),
            Opcode::Load(order, ty) => self.load(order, ty, o),
            Opcode::Store(order, ty) => self.store(order, ty, o),
            Opcode::LoadPair => self.load_pair(o),
            Opcode::StorePair => self.store_pair(o),
            Opcode::LoadParam(ty) => self.load_param(ty, o),
            Opcode::StoreParam(ty) => self.store_param(ty, o),
            Opcode::Atomic(op, ty) => self.atomic(op, ty, o),
            Opcode::CompareExchange(ty) => self.compare_exchange(ty, o),
            Opcode::Fence { local } => {
                // The threads of a workgroup take turns on one core, so they see memory accesses in order anyway.
                if !local {
                    if self.unit.has_threads() {
                        self.host(Host::Turn, &[], None);
                    }
                    if !self.is_fenced {
                        self.b.ins().fence();
                    }
                }
                Ok(())
            }
            Opcode::Barrier => self.barrier(o),
            Opcode::WarpBarrier => self.warp_barrier(o),
            Opcode::Shuffle(mode) => self.shuffle(mode, o),
            Opcode::Vote(mode) => self.vote(mode, o),
            Opcode::ActiveMask => self.active_mask(o),
            Opcode::Sleep => self.sleep(o),
            Opcode::StackSave => self.stack_save(o),
            Opcode::Return => {
                self.give_back();
                Ok(())
            }
            Opcode::Exit => {
                self.exit();
                Ok(())
            }
            Opcode::Trap => {
                self.fault(Fault::Trap);
                Ok(())
            }
            Opcode::Branch | Opcode::BranchTable | Opcode::Call => Ok(()), // these are `Action`s of their own
        }
    }

    // Control flow.

    fn place(&mut self, label: Label) {
        let block = self.blocks[label.0 as usize];
        if self.live {
            self.b.ins().jump(block, &[]);
        }
        self.b.switch_to_block(block);
        self.live = true;
        self.placed[label.0 as usize] = true;
        self.seal_if_complete(label);
    }

    fn seal_if_complete(&mut self, label: Label) {
        if self.placed[label.0 as usize] && self.incoming[label.0 as usize] == 0 {
            self.b.seal_block(self.blocks[label.0 as usize]);
        }
    }

    /// Counts one of the branches to `label`, which was emitted or never will be.
    fn arrived(&mut self, label: Label) {
        let left = &mut self.incoming[label.0 as usize];
        *left = left.saturating_sub(1);
        self.seal_if_complete(label);
    }

    /// Skips a statement that cannot be reached.
    fn skip(&mut self, statement: &Statement<'_>) {
        match statement.action {
            Action::Branch(label) => self.arrived(label),
            Action::BranchTable { table, .. } => {
                for label in &self.body.tables[table as usize] {
                    self.arrived(*label);
                }
            }
            _ => {}
        }
    }

    fn branch(&mut self, label: Label, guard: Option<Guard>) -> Result<()> {
        let target = self.blocks[label.0 as usize];
        match guard {
            None => {
                self.b.ins().jump(target, &[]);
                self.live = false;
            }
            Some(guard) => {
                let next = self.b.create_block();
                self.branch_if(guard, target, next)?;
                self.b.switch_to_block(next);
                self.b.seal_block(next);
            }
        }
        self.arrived(label);
        Ok(())
    }

    fn branch_if(&mut self, guard: Guard, then: Block, otherwise: Block) -> Result<()> {
        let predicate = self.read(Operand::Register(guard.predicate), Type::Pred)?;
        let (then, otherwise) = if guard.negated { (otherwise, then) } else { (then, otherwise) };
        self.b.ins().brif(predicate, then, &[], otherwise, &[]);
        Ok(())
    }

    fn branch_table(&mut self, index: Register, table: u32) -> Result<()> {
        let index = self.read(Operand::Register(index), Type::U32)?;
        let labels = &self.body.tables[table as usize];
        let outside = self.b.create_block();
        self.b.set_cold_block(outside);
        let pool = &mut self.b.func.dfg.value_lists;
        let targets: Vec<BlockCall> =
            labels.iter().map(|l| BlockCall::new(self.blocks[l.0 as usize], [], pool)).collect();
        let outside_call = BlockCall::new(outside, [], pool);
        let table = self.b.create_jump_table(JumpTableData::new(outside_call, &targets));
        self.b.ins().br_table(index, table);
        for label in labels {
            self.arrived(*label);
        }
        self.b.switch_to_block(outside);
        self.b.seal_block(outside);
        self.fault(Fault::BadIndex);
        Ok(())
    }

    /// Emits code that runs only if the guard holds.
    fn guarded(&mut self, guard: Option<Guard>, emit: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let Some(guard) = guard else { return emit(self) };
        let (inner, next) = (self.b.create_block(), self.b.create_block());
        self.branch_if(guard, inner, next)?;
        self.b.switch_to_block(inner);
        self.b.seal_block(inner);
        emit(self)?;
        if self.live {
            self.b.ins().jump(next, &[]);
        }
        self.b.switch_to_block(next);
        self.b.seal_block(next);
        self.live = true;
        Ok(())
    }

    /// Emits `@p mov` as a select, without a branch.
    fn guarded_mov(&mut self, ty: Type, to: Operand<'u>, from: Operand<'u>, guard: Option<Guard>) -> Result<()> {
        let Some(guard) = guard else { return Ok(()) };
        let predicate = self.read(Operand::Register(guard.predicate), Type::Pred)?;
        let new = self.moved(ty, to, from)?;
        let Operand::Register(register) = to else { return Err(self.error("a `mov` goes to a register")) };
        let old = self.held_by(register);
        let (then, otherwise) = if guard.negated { (old, new) } else { (new, old) };
        let value = self.b.ins().select(predicate, then, otherwise);
        self.set(to, value)
    }

    /// Emits `ret`.
    fn give_back(&mut self) {
        match self.function.signature.result {
            Returns::Register(_) => {
                let value = self.held_by(Register(self.function.signature.parameters.len() as u32));
                if let Some(room) = self.param_pointer {
                    // A cold function returns its result through memory and changes no register.
                    self.b.ins().store(MemFlagsData::trusted(), value, room, 0);
                    self.b.ins().return_(&[]);
                } else {
                    self.b.ins().return_(&[value]);
                }
            }
            _ => {
                self.b.ins().return_(&[]);
            }
        }
        self.live = false;
    }

    /// Ends the block after a call that does not return.
    pub(super) fn unreachable(&mut self) {
        let block = self.b.current_block().filter(|b| self.b.func.layout.entry_block() != Some(*b));
        if let Some(block) = block {
            self.b.set_cold_block(block);
        }
        self.b.ins().trap(UNREACHABLE);
        self.live = false;
    }

    // Registers and operands.

    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        self.unit.error(self.line, message)
    }

    pub(super) fn type_of(&self, register: Register) -> Type {
        self.body.registers[register.0 as usize]
    }

    pub(super) fn held_by(&mut self, register: Register) -> Value {
        let ty = self.type_of(register);
        self.registers.read(register, ty, &mut self.b)
    }

    /// Reads an operand for an instruction of type `ty`.
    pub(super) fn read(&mut self, operand: Operand<'_>, ty: Type) -> Result<Value> {
        let wanted = clif_type(ty);
        match operand {
            Operand::Register(register) => {
                if !agrees(self.type_of(register), ty) {
                    return Err(self.mismatch(register, ty));
                }
                let value = self.held_by(register);
                Ok(self.bits_as(value, wanted))
            }
            Operand::Int(n) if ty == Type::Pred => Ok(self.b.ins().iconst(types::I8, (n != 0) as i64)),
            Operand::Int(n) if !ty.is_float() => Ok(self.int(wanted, n)),
            Operand::F32(bits) if ty == Type::F32 => Ok(self.b.ins().f32const(ir::immediates::Ieee32::with_bits(bits))),
            Operand::F64(bits) if ty == Type::F64 => Ok(self.b.ins().f64const(ir::immediates::Ieee64::with_bits(bits))),
            Operand::F32(bits) if ty == Type::B32 => Ok(self.int(wanted, bits as i64)),
            Operand::F64(bits) if ty == Type::B64 => Ok(self.int(wanted, bits as i64)),
            _ => Err(self.error(format!("{operand:?} is not an operand of this instruction"))),
        }
    }

    /// Reads a register's low bits, for an instruction of a narrower type than the register.
    pub(super) fn read_low(&mut self, operand: Operand<'_>, ty: Type) -> Result<Value> {
        if let Operand::Register(register) = operand
            && self.type_of(register) == Type::B64
            && ty.bytes() < 8
        {
            let value = self.held_by(register);
            return Ok(self.b.ins().ireduce(types::I32, value));
        }
        self.read(operand, if ty.is_narrow() { Type::U32 } else { ty })
    }

    /// Assigns the result of an instruction of type `ty`.
    pub(super) fn write(&mut self, operand: Operand<'_>, ty: Type, value: Value) -> Result<()> {
        if let Operand::Register(register) = operand
            && !agrees(self.type_of(register), ty)
        {
            return Err(self.mismatch(register, ty));
        }
        self.set(operand, value)
    }

    /// Assigns a value of the register's size.
    pub(super) fn set(&mut self, operand: Operand<'_>, value: Value) -> Result<()> {
        let Operand::Register(register) = operand else {
            return Err(self.error("the result of an instruction goes to a register"));
        };
        let value = self.bits_as(value, clif_type(self.type_of(register)));
        self.registers.assign(register, value, &mut self.b);
        Ok(())
    }

    fn mismatch(&self, register: Register, ty: Type) -> Error {
        let has = self.type_of(register);
        self.error(format!("a register of type {has:?} is not an operand of an instruction of type {ty:?}"))
    }

    /// Reinterprets a value's bits as another type of the same size.
    pub(super) fn bits_as(&mut self, value: Value, ty: types::Type) -> Value {
        if self.b.func.dfg.value_type(value) == ty {
            return value;
        }
        self.b.ins().bitcast(ty, MemFlagsData::new(), value)
    }

    pub(super) fn int(&mut self, ty: types::Type, n: i64) -> Value {
        let n = match ty.bits() {
            8 => n as u8 as i64,
            16 => n as u16 as i64,
            32 => n as u32 as i64,
            _ => n,
        };
        self.b.ins().iconst(ty, n)
    }

    /// Returns the value, if it is a constant.
    pub(super) fn constant(&self, value: Value) -> Option<u64> {
        let dfg = &self.b.func.dfg;
        match dfg.value_def(dfg.resolve_aliases(value)) {
            ValueDef::Result(inst, 0) => match dfg.insts[inst] {
                ir::InstructionData::UnaryImm { opcode: ir::Opcode::Iconst, imm } => Some(imm.bits() as u64),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns an upper bound of a value that is the result of a mask.
    pub(super) fn mask_of(&self, value: Value) -> Option<u64> {
        let dfg = &self.b.func.dfg;
        match dfg.value_def(dfg.resolve_aliases(value)) {
            ValueDef::Result(inst, 0) => match dfg.insts[inst] {
                ir::InstructionData::Binary { opcode: ir::Opcode::Band, args } => {
                    self.constant(args[1]).or_else(|| self.constant(args[0]))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// Whether a register may be an operand of an instruction of type `ty`: it has the same size, and is not a float where
/// an integer is needed or the other way round.
pub(super) fn agrees(register: Type, ty: Type) -> bool {
    if register == Type::Pred || ty == Type::Pred {
        return register == ty;
    }
    register.bytes() == ty.bytes() && (register.is_bits() || ty.is_bits() || register.is_float() == ty.is_float())
}
