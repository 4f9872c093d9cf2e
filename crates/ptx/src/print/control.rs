//! Control flow: jumps, branches, branch tables, and the moves on the edges between blocks.

use super::Printer;
use super::body::{Label, When};
use super::register::{Class, Operand, Reg, plain};
use super::text::push_unsigned;
use crate::Error;
use crate::analysis::branch_table::{self, Test};
use crate::analysis::moves::{self, Source, Step};
use cranelift_codegen::ir::{self, Block, BlockCall, Inst, InstructionData, Value, ValueDef};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Buffers for the moves on an edge, reused from one edge to the next.
#[derive(Debug, Default)]
pub(crate) struct EdgeBuffers {
    sources: Vec<Source>,
    steps: Vec<Step>,
}

impl Printer<'_> {
    /// Prints `bra`, or nothing if the block is printed next anyway.
    fn go_to(&mut self, block: Block) {
        if self.block.next != Some(block) {
            self.body.branch(Label::Block(block.as_u32()));
        }
    }

    fn target(&self, edge: &BlockCall) -> Block {
        edge.block(&self.func.dfg.value_lists)
    }

    /// Whether the edge assigns any parameter.
    fn has_moves(&self, edge: &BlockCall) -> bool {
        let dfg = &self.func.dfg;
        let params = dfg.block_params(self.target(edge));
        edge.args(&dfg.value_lists)
            .zip(params)
            .any(|(arg, &param)| arg.as_value().map(|v| dfg.resolve_aliases(v)) != Some(param))
    }

    /// Assigns the target's parameters, with the effect of doing so all at once.
    fn moves(&mut self, edge: &BlockCall) {
        if !self.operands.vectors.is_empty() {
            return self.moves_of_registers(edge);
        }
        let dfg = &self.func.dfg;
        let target = self.target(edge);
        let args: SmallVec<[Value; 16]> =
            edge.args(&dfg.value_lists).filter_map(|a| a.as_value()).map(|v| dfg.resolve_aliases(v)).collect();
        let params = dfg.block_params(target);
        let mut sources = std::mem::take(&mut self.edges.sources);
        let mut steps = std::mem::take(&mut self.edges.steps);
        sources.clear();
        sources.extend(args.iter().enumerate().map(|(i, &arg)| match dfg.value_def(arg) {
            ValueDef::Param(block, j) if block == target && j == i => Source::Itself,
            ValueDef::Param(block, j) if block == target => Source::Parameter(j),
            _ => Source::Other,
        }));
        moves::sequence(&sources, &mut steps);
        let mut aside = Operand::Int(0);
        for step in &steps {
            match *step {
                Step::Move(i) => self.assign_parameter(params[i], self.operands.scalars[args[i]]),
                Step::Save(i) => {
                    let ty = self.ty(params[i]);
                    let class = Class::of(ty).unwrap_or(Class::B32);
                    aside = self.body.op_to_temp(class, "mov", plain(ty), &[self.operands.scalars[params[i]]]).into();
                }
                Step::Restore(i) => self.assign_parameter(params[i], aside),
            }
        }
        self.edges.sources = sources;
        self.edges.steps = steps;
    }

    /// Assigns the target's parameters in a function with vectors. Other values may be names of a vector's words, so
    /// this function compares registers instead of values.
    fn moves_of_registers(&mut self, edge: &BlockCall) {
        let dfg = &self.func.dfg;
        let args = edge.args(&dfg.value_lists).filter_map(|a| a.as_value());
        let (mut params, mut operands): (Vec<(Reg, &str)>, Vec<Operand>) = (Vec::new(), Vec::new());
        for (&param, arg) in dfg.block_params(self.target(edge)).iter().zip(args) {
            if self.ty(param).is_vector() {
                let registers = self.lanes(param).into_iter().filter_map(Operand::register);
                params.extend(registers.map(|register| (register, ".b32")));
                operands.extend(self.lanes(arg));
            } else if let Some(register) = self.register(param) {
                params.push((register, plain(self.ty(param))));
                operands.push(self.value(arg));
            }
        }
        let places: HashMap<Reg, usize> = params.iter().enumerate().map(|(i, (register, _))| (*register, i)).collect();
        let source = |(i, operand): (usize, &Operand)| match operand.register().and_then(|r| places.get(&r)) {
            Some(&place) if place == i => Source::Itself,
            Some(&place) => Source::Parameter(place),
            None => Source::Other,
        };
        let sources: Vec<Source> = operands.iter().enumerate().map(source).collect();
        let mut steps = Vec::new();
        moves::sequence(&sources, &mut steps);
        let mut aside = Operand::Int(0);
        for step in steps {
            match step {
                Step::Move(i) => self.assign_register(params[i].0, params[i].1, operands[i]),
                Step::Save(i) => {
                    let (register, suffix) = params[i];
                    aside = self.body.op_to_temp(register.class, "mov", suffix, &[register.into()]).into();
                }
                Step::Restore(i) => self.assign_register(params[i].0, params[i].1, aside),
            }
        }
    }

    fn assign_parameter(&mut self, param: Value, value: Operand) {
        if let Some(register) = self.operands.scalars[param].register() {
            self.assign_register(register, plain(self.ty(param)), value);
        }
    }

    fn assign_register(&mut self, to: Reg, suffix: &str, value: Operand) {
        match value {
            Operand::Reg(predicate) if predicate.class == Class::Pred => {
                self.body.op("selp", ".b32", &[to.into(), 1.into(), 0.into(), value]);
            }
            _ => self.body.op("mov", suffix, &[to.into(), value]),
        }
    }

    /// Prints the moves of an edge, and the branch to its target.
    fn follow(&mut self, edge: &BlockCall) {
        self.moves(edge);
        self.go_to(self.target(edge));
    }

    /// Prints a two-way branch. If both edges have moves, one of them becomes a small block of its own. If only one
    /// has, its moves stand behind the conditional branch to the other target.
    fn branch(&mut self, condition: Value, [yes, no]: [BlockCall; 2]) {
        let predicate = self.condition(condition);
        let label = |p: &Self, edge: &BlockCall| Label::Block(p.target(edge).as_u32());
        let (yes_label, no_label) = (label(self, &yes), label(self, &no));
        match (self.has_moves(&yes), self.has_moves(&no)) {
            (false, false) if yes_label == no_label => self.go_to(self.target(&yes)),
            (false, false) if self.block.next == Some(self.target(&yes)) => {
                self.body.branch_if(predicate, When::False, no_label)
            }
            (false, _) => {
                self.body.branch_if(predicate, When::True, yes_label);
                self.follow(&no);
            }
            (true, false) => {
                self.body.branch_if(predicate, When::False, no_label);
                self.follow(&yes);
            }
            (true, true) => {
                let (when, far, near) = if self.block.next == Some(self.target(&no)) {
                    (When::False, no, yes)
                } else {
                    (When::True, yes, no)
                };
                let edge = self.body.local();
                self.body.branch_if(predicate, when, edge);
                self.moves(&near);
                self.body.branch(label(self, &near));
                self.body.place(edge);
                self.follow(&far);
            }
        }
    }

    fn branch_table(&mut self, index: Value, table: ir::JumpTable) {
        let func = self.func;
        let table = &func.dfg.jump_tables[table];
        let (entries, default) = (table.as_slice(), table.default_block());
        if entries.is_empty() {
            return self.follow(&default);
        }
        let index = self.in_register(index);
        let mut edges = Edges::default();
        let labels: Vec<Label> = entries.iter().map(|entry| self.edge_label(entry, &mut edges)).collect();
        let default_label = self.edge_label(&default, &mut edges);
        if let Some(tests) = branch_table::tests(&labels, default_label) {
            for (label, test) in tests {
                let predicate = self.is_case(index, test);
                self.body.branch_if(predicate, When::True, label);
            }
            match (default_label, edges.0.is_empty()) {
                (Label::Block(_), true) => self.go_to(self.target(&default)),
                _ => self.body.branch(default_label),
            }
        } else {
            let count = entries.len() as i64;
            let predicate = self.body.op_to_temp(Class::Pred, "setp.ge", ".u32", &[index.into(), count.into()]);
            self.body.branch_if(predicate, When::True, default_label);
            self.indexed_branch(index, &labels);
        }
        for (label, edge) in edges.0 {
            self.body.place(label);
            self.moves(&edge);
            self.body.branch(Label::Block(self.target(&edge).as_u32()));
        }
    }

    /// Returns a predicate that is true if the index passes the test.
    fn is_case(&mut self, index: Reg, test: Test) -> Reg {
        let body = &mut self.body;
        match test {
            Test::Is(number) => body.op_to_temp(Class::Pred, "setp.eq", ".u32", &[index.into(), number.into()]),
            Test::Below(end) => body.op_to_temp(Class::Pred, "setp.lt", ".u32", &[index.into(), end.into()]),
            Test::From(first, count) => {
                let distance = body.op_to_temp(Class::B32, "sub", ".u32", &[index.into(), first.into()]);
                body.op_to_temp(Class::Pred, "setp.lt", ".u32", &[distance.into(), count.into()])
            }
            // A shift by 32 or more gives 0, so an index beyond the table is in no set.
            Test::In(set) => {
                let set = body.op_to_temp(Class::B32, "mov", ".b32", &[i64::from(set as i32).into()]);
                let shifted = body.op_to_temp(Class::B32, "shr", ".u32", &[set.into(), index.into()]);
                let bit = body.op_to_temp(Class::B32, "and", ".b32", &[shifted.into(), 1.into()]);
                body.op_to_temp(Class::Pred, "setp.ne", ".u32", &[bit.into(), 0.into()])
            }
        }
    }

    fn indexed_branch(&mut self, index: Reg, labels: &[Label]) {
        let Label::Local(number) = self.body.local() else { return };
        let name = |out: &mut String| {
            out.push_str("$T");
            push_unsigned(out, u64::from(number));
        };
        name(&mut self.body.out);
        self.body.out.push_str(": .branchtargets ");
        for (i, &label) in labels.iter().enumerate() {
            if i > 0 {
                self.body.out.push_str(", ");
            }
            self.body.push_label(label);
        }
        self.body.end();
        self.body.begin("brx.idx", "");
        self.body.operand(index);
        self.body.out.push_str(", ");
        name(&mut self.body.out);
        self.body.end();
    }

    /// Returns the label to branch to for an edge: that of the target block, or of a small block with the edge's moves.
    /// Equal edges share such a block.
    fn edge_label(&mut self, edge: &BlockCall, edges: &mut Edges) -> Label {
        if !self.has_moves(edge) {
            return Label::Block(self.target(edge).as_u32());
        }
        let lists = &self.func.dfg.value_lists;
        let same =
            |other: &BlockCall| other.block(lists) == edge.block(lists) && other.args(lists).eq(edge.args(lists));
        if let Some((label, _)) = edges.0.iter().find(|(_, other)| same(other)) {
            return *label;
        }
        let label = self.body.local();
        edges.0.push((label, *edge));
        label
    }
}

type Done = Result<(), Error>;

/// `jump`, and `brif` whose condition always holds.
pub(crate) fn jump(p: &mut Printer<'_>, inst: Inst) -> Done {
    let edge = match p.func.dfg.insts[inst] {
        InstructionData::Jump { destination, .. } | InstructionData::Brif { blocks: [destination, _], .. } => {
            destination
        }
        _ => return Err(p.unsupported(inst)),
    };
    p.follow(&edge);
    Ok(())
}

/// `brif` whose condition never holds.
pub(crate) fn jump_else(p: &mut Printer<'_>, inst: Inst) -> Done {
    let InstructionData::Brif { blocks: [_, no], .. } = p.func.dfg.insts[inst] else { return Err(p.unsupported(inst)) };
    p.follow(&no);
    Ok(())
}

pub(crate) fn branch(p: &mut Printer<'_>, inst: Inst) -> Done {
    let InstructionData::Brif { arg, blocks, .. } = p.func.dfg.insts[inst] else { return Err(p.unsupported(inst)) };
    p.branch(arg, blocks);
    Ok(())
}

pub(crate) fn branch_table(p: &mut Printer<'_>, inst: Inst) -> Done {
    let InstructionData::BranchTable { arg, table, .. } = p.func.dfg.insts[inst] else {
        return Err(p.unsupported(inst));
    };
    p.branch_table(arg, table);
    Ok(())
}

/// Edges of a branch table that need a small block for their moves.
#[derive(Default)]
struct Edges(Vec<(Label, BlockCall)>);
