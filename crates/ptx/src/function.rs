//! One function: registers for its values, its blocks in order, the edges between them.
//!
//! First comes a pass over the CLIF that gives every value its operand (a register, or a constant that is folded into the
//! instructions that use it) and counts uses. Then every instruction is a row of [`crate::print::table`]. A value that only
//! others' operands contain (an address's sum, an extended condition) has no use left and is not printed.

use crate::analysis::moves::{Source, Step};
use crate::analysis::range::Shape;
use crate::guest::Roots;
use crate::guest::exact::Exact;
use crate::guest::slow_path::Cold;
use crate::guest::speculative::Plan;
use crate::print::body::{Body, Label};
use crate::print::call::Prototypes;
use crate::print::operand::sign_extend;
use crate::print::register::{Class, Operand, Reg, unsigned};
use crate::print::table;
use crate::print::trap::Traps;
use crate::print::vector::Vectors;
use crate::symbols::Symbols;
use crate::{Error, Function, Kind};
use cranelift_codegen::ir::{self, AliasRegion, Block, Inst, InstructionData, Opcode, Type, Value, types};
use cranelift_entity::SecondaryMap;
use gpu_run_abi::intrinsic::region;
use smallvec::SmallVec;

/// What a function's emission gives.
#[derive(Debug)]
pub(crate) struct Emitted {
    pub(crate) text: String,
    pub(crate) cold: Cold,
    /// Whether it reads what [`crate::Fixed::define`] prints.
    pub(crate) reads_fixed: bool,
    /// Byte positions in `text` from which lines belong to a source offset.
    pub(crate) marks: Vec<(usize, u32)>,
}

/// What is known in the block that is being printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Here {
    pub(crate) roots: Roots,
    /// Values that a `trapz` has looked at.
    pub(crate) nonzero: SmallVec<[Value; 8]>,
    /// What was computed is right if this holds: see [`crate::print::division`].
    pub(crate) provided: Option<Reg>,
    /// The rest cannot be reached.
    pub(crate) ended: bool,
}

pub(crate) struct Emitter<'a> {
    pub(crate) symbols: &'a Symbols<'a>,
    pub(crate) function: &'a Function,
    pub(crate) func: &'a ir::Function,
    pub(crate) body: Body,
    /// Paths that are seldom taken, placed behind the last block.
    tail: String,
    /// Room for what is written out of line, to be used again.
    aside: String,
    pub(crate) values: SecondaryMap<Value, Operand>,
    pub(crate) vectors: Vectors,
    uses: SecondaryMap<Value, u32>,
    pub(crate) traps: Traps,
    pub(crate) prototypes: Prototypes,
    pub(crate) cold: Cold,
    /// The alias region of the guest's memory.
    pub(crate) guest_region: Option<AliasRegion>,
    /// Where guest byte 0 is, or would be, in a function that asks.
    pub(crate) memory: Option<Reg>,
    pub(crate) here: Here,
    pub(crate) exact: Exact,
    pub(crate) plan: Plan,
    pub(crate) shape: Option<Shape>,
    pub(crate) reads_fixed: bool,
    /// The block printed after this one.
    pub(crate) next: Option<Block>,
    /// Buffers of [`crate::print::control`]'s moves, kept from one edge to the next.
    pub(crate) sources: Vec<Source>,
    pub(crate) steps: Vec<Step>,
    pub(crate) marks: Option<Vec<(usize, u32)>>,
}

/// Prints one function. `record` asks for [`Emitted::marks`].
pub(crate) fn emit(symbols: &Symbols<'_>, function: &Function, record: bool) -> Result<Emitted, Error> {
    let func = &function.clif;
    let mut emitter = Emitter {
        symbols,
        function,
        func,
        body: Body::default(),
        tail: String::new(),
        aside: String::new(),
        values: SecondaryMap::with_default(Operand::Int(0)),
        vectors: Vectors::default(),
        uses: SecondaryMap::new(),
        traps: Traps::default(),
        prototypes: Prototypes::default(),
        cold: Cold::default(),
        guest_region: func.dfg.alias_regions.get(region::GUEST),
        memory: None,
        here: Here::default(),
        exact: Exact::default(),
        plan: Plan::default(),
        shape: None,
        reads_fixed: false,
        next: None,
        sources: Vec::new(),
        steps: Vec::new(),
        marks: record.then(Vec::new),
    };
    emitter.body.out.reserve(func.dfg.num_insts() * 40);
    emitter.assign()?;
    emitter.blocks()?;
    emitter.finish()
}

impl Emitter<'_> {
    /// Gives every value its operand and counts uses.
    fn assign(&mut self) -> Result<(), Error> {
        let func = self.func;
        self.values.resize(func.dfg.num_values());
        self.uses.resize(func.dfg.num_values());
        for block in func.layout.blocks() {
            let is_entry = func.layout.entry_block() == Some(block);
            let mut arguments = 0;
            let mut register = |body: &mut Body, class| match self.function.kind {
                Kind::Device if is_entry => {
                    arguments += 1;
                    Reg { class: Class::Argument, index: arguments - 1 }
                }
                _ => body.temp(class),
            };
            for &param in func.dfg.block_params(block) {
                if func.dfg.value_type(param).is_vector() {
                    self.vectors.assign(param, [(); 4].map(|()| register(&mut self.body, Class::B32)));
                    continue;
                }
                let class = self.class(param)?;
                self.values[param] = register(&mut self.body, class).into();
            }
            for inst in func.layout.block_insts(block) {
                self.assign_results(inst)?;
                self.count_uses(inst);
            }
        }
        self.name_lanes()
    }

    fn class(&self, value: Value) -> Result<Class, Error> {
        let ty = self.func.dfg.value_type(value);
        Class::of(ty).ok_or_else(|| Error::Type { function: self.function.symbol.clone(), value, ty })
    }

    fn assign_results(&mut self, inst: Inst) -> Result<(), Error> {
        let func = self.func;
        for &result in func.dfg.inst_results(inst) {
            let ty = func.dfg.value_type(result);
            if ty.is_vector() {
                self.assign_vector(inst, result)?;
                continue;
            }
            let class = Class::of(ty).ok_or_else(|| self.unsupported(inst))?;
            self.values[result] = match func.dfg.insts[inst] {
                InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => sign_extend(imm.bits(), ty).into(),
                InstructionData::UnaryIeee32 { imm, .. } => Operand::F32(imm.bits()),
                InstructionData::UnaryIeee64 { imm, .. } => Operand::F64(imm.bits()),
                _ if self.is_predicate(inst, ty) => self.body.temp(Class::Pred).into(),
                _ => self.body.temp(class).into(),
            };
        }
        Ok(())
    }

    /// Whether an instruction's result lives in a predicate: comparisons, and logic on them. Operands that come later in
    /// the layout count as numbers; that is right too, only longer.
    fn is_predicate(&self, inst: Inst, ty: Type) -> bool {
        let is_predicate = |v: Value| matches!(self.value(v), Operand::Reg(Reg { class: Class::Pred, .. }));
        match self.func.dfg.insts[inst] {
            InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } => true,
            InstructionData::Binary { opcode: Opcode::Band | Opcode::Bor | Opcode::Bxor, args: [a, b] }
                if ty == types::I8 && is_predicate(a) && is_predicate(b) =>
            {
                true
            }
            InstructionData::Binary { opcode: Opcode::Bxor, args: [a, b] } if ty == types::I8 => {
                is_predicate(a) && self.constant(b) == Some(1)
            }
            _ => false,
        }
    }

    fn count_uses(&mut self, inst: Inst) {
        let func = self.func;
        for value in func.dfg.inst_values(inst) {
            self.uses[func.dfg.resolve_aliases(value)] += 1;
        }
        // What an operand is folded from is used in its place.
        let data = &func.dfg.insts[inst];
        if let Some(access) = self.guest_access(inst) {
            let at = match *data {
                InstructionData::Load { arg, .. } => arg,
                InstructionData::Store { args: [_, at], .. } => at,
                _ => return,
            };
            self.uses[func.dfg.resolve_aliases(at)] -= 1;
            if let Some(root) = self.guest_root(&access) {
                self.uses[root] += 1;
            }
            return;
        }
        let (value, instead) = match *data {
            InstructionData::Load { arg, offset, .. } => (arg, self.address(arg, offset.into()).0),
            InstructionData::Store { args: [_, at], offset, .. } => (at, self.address(at, offset.into()).0),
            InstructionData::AtomicRmw { args: [at, _], .. }
            | InstructionData::AtomicCas { args: [at, _, _], .. }
            | InstructionData::StoreNoOffset { args: [_, at], .. }
            | InstructionData::LoadNoOffset { opcode: Opcode::AtomicLoad, arg: at, .. } => (at, self.address(at, 0).0),
            InstructionData::Brif { arg, .. }
            | InstructionData::CondTrap { arg, .. }
            | InstructionData::Ternary {
                opcode: Opcode::Select | Opcode::SelectSpectreGuard, args: [arg, _, _], ..
            } => (arg, self.condition(arg)),
            _ => return,
        };
        self.uses[func.dfg.resolve_aliases(value)] -= 1;
        self.uses[instead] += 1;
    }

    fn blocks(&mut self) -> Result<(), Error> {
        let layout = &self.func.layout;
        let entry = layout.entry_block();
        let is_cold = |b: &Block| layout.is_cold(*b) && Some(*b) != entry;
        let mut order: Vec<Block> = layout.blocks().filter(|b| !is_cold(b)).collect();
        order.extend(layout.blocks().filter(is_cold));
        for (i, &block) in order.iter().enumerate() {
            self.next = order.get(i + 1).copied();
            if i == 0 {
                self.load_kernel_parameters(block);
                self.find_shape();
                self.guest_prologue()?;
            }
            self.body.place(Label::Block(block.as_u32()));
            self.here = Here::default();
            self.guest_block(block);
            match self.ahead(block) {
                Some(ahead) => self.print_ahead(&ahead)?,
                None => self.print(layout.block_insts(block))?,
            }
        }
        Ok(())
    }

    /// Prints instructions, as far as they can be reached.
    pub(crate) fn print(&mut self, insts: impl IntoIterator<Item = Inst>) -> Result<(), Error> {
        for inst in insts {
            if self.is_dead(inst) {
                continue;
            }
            self.mark(inst);
            table::emit(self, inst)?;
            if self.here.ended {
                break;
            }
        }
        Ok(())
    }

    fn load_kernel_parameters(&mut self, entry: Block) {
        if self.function.kind == Kind::Device {
            return;
        }
        for (i, &param) in self.func.dfg.block_params(entry).iter().enumerate() {
            let ty = self.func.dfg.value_type(param);
            self.body.begin("ld.param", unsigned(ty));
            self.body.operand(self.values[param]);
            self.body.out.push_str(", [p");
            crate::print::text::push_unsigned(&mut self.body.out, i as u64);
            self.body.out.push(']');
            self.body.end();
        }
    }

    /// Whether nothing would miss the instruction.
    fn is_dead(&self, inst: Inst) -> bool {
        let opcode = self.func.dfg.insts[inst].opcode();
        let has_effect = opcode.is_terminator()
            || opcode.is_call()
            || opcode.can_load()
            || opcode.can_store()
            || opcode.can_trap()
            || opcode.other_side_effects();
        !has_effect && self.func.dfg.inst_results(inst).iter().all(|&r| self.uses[r] == 0)
    }

    fn mark(&mut self, inst: Inst) {
        if let Some(marks) = &mut self.marks {
            let at = self.func.srcloc(inst);
            let offset = if at.is_default() { 0 } else { at.bits() };
            if marks.last().is_none_or(|&(_, last)| last != offset) {
                marks.push((self.body.out.len(), offset));
            }
        }
    }

    /// Puts the parts together: PTX wants the registers declared before the body that uses them.
    fn finish(mut self) -> Result<Emitted, Error> {
        self.body.out.push_str(&self.tail);
        let end = self.body.out.len();
        self.trap_blocks()?;
        let mut text = String::with_capacity(self.body.out.len() + 512);
        crate::push_comment(&mut text, &self.function.comment);
        crate::print::call::push_header(&mut text, self.function)?;
        text.push_str("\n{\n");
        for (slot, data) in self.func.sized_stack_slots.iter() {
            text.push_str(crate::print::text::INDENT);
            text.push_str(".local .align 16 .b8 own");
            crate::print::text::push_unsigned(&mut text, slot.as_u32().into());
            text.push('[');
            crate::print::text::push_unsigned(&mut text, data.size.into());
            text.push_str("];\n");
        }
        self.body.regs.declare(&mut text);
        self.prototypes.declare(&mut text, self.function, &self.func.dfg.signatures)?;
        let mut marks = self.marks.take().unwrap_or_default();
        marks.push((end, 0));
        marks.iter_mut().for_each(|(at, _)| *at += text.len());
        text.push_str(&self.body.out);
        text.push_str("}\n");
        Ok(Emitted { text, cold: self.cold, reads_fixed: self.reads_fixed, marks })
    }

    pub(crate) fn unsupported(&self, inst: Inst) -> Error {
        let dfg = &self.func.dfg;
        Error::Unsupported {
            function: self.function.symbol.clone(),
            opcode: dfg.insts[inst].opcode(),
            ty: dfg.ctrl_typevar(inst),
            instruction: dfg.display_inst(inst).to_string(),
        }
    }

    /// What `write` writes goes behind the last block. It may in turn write something that does.
    pub(crate) fn out_of_line<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> T {
        let aside = std::mem::take(&mut self.aside);
        let inline = std::mem::replace(&mut self.body.out, aside);
        let result = write(self);
        self.aside = std::mem::replace(&mut self.body.out, inline);
        self.tail.push_str(&self.aside);
        self.aside.clear();
        result
    }
}
