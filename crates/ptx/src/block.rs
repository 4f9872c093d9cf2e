//! Prints the blocks of a function one after the other, and passes each instruction to the code that prints it.
//!
//! Guest accesses go to `guest`, all other instructions to the table of `print`. A block with a schedule is usually
//! printed twice, in the better order and, out of line, in CLIF's; a test at run time chooses between the two. So is a run
//! of an exact build, without and with slow paths.

use crate::Error;
use crate::analysis::access::Root;
use crate::analysis::memory_length;
use crate::analysis::overlap::Pair;
use crate::analysis::runs::{Part, Run};
use crate::analysis::schedule::{Schedule, Step};
use crate::guest::{Guest, Tested};
use crate::print::body::{Label, When};
use crate::print::register::{Class, Operand, Reg};
use crate::print::row;
use cranelift_codegen::ir::{Block, Inst};

pub(crate) struct Blocks<'a> {
    pub(crate) guest: Guest<'a>,
    /// Pairs of a byte position in the text and the source offset of the code from there on; `None` if the caller wants
    /// no marks.
    pub(crate) marks: Option<Vec<(usize, u32)>>,
}

impl<'a> Blocks<'a> {
    pub(crate) fn new(guest: Guest<'a>, record: bool) -> Blocks<'a> {
        Blocks { guest, marks: record.then(Vec::new) }
    }

    /// Prints all blocks. Blocks that CLIF marks as cold come last.
    pub(crate) fn print(&mut self) -> Result<(), Error> {
        let (func, analysis) = (self.guest.print.func, self.guest.print.analysis);
        let layout = &func.layout;
        let entry = layout.entry_block();
        let is_cold = |b: &Block| layout.is_cold(*b) && Some(*b) != entry;
        let mut order: Vec<Block> = layout.blocks().filter(|b| !is_cold(b)).collect();
        order.extend(layout.blocks().filter(is_cold));
        for (i, &block) in order.iter().enumerate() {
            if i == 0 {
                self.guest.print.load_kernel_parameters(block);
                self.guest.print.find_hot_words();
                self.guest.prologue()?;
            }
            self.guest.print.body.place(Label::Block(block.as_u32()));
            self.guest.begin_block(block, order.get(i + 1).copied());
            match analysis.schedules.get(&block) {
                Some(schedule) => self.scheduled(schedule)?,
                None => match analysis.runs.get(&block) {
                    Some(parts) => self.parts(parts)?,
                    None => self.instructions(layout.block_insts(block))?,
                },
            }
        }
        Ok(())
    }

    /// Prints instructions up to the first that ends the block; the rest cannot be reached.
    fn instructions(&mut self, insts: impl IntoIterator<Item = Inst>) -> Result<(), Error> {
        let print = &self.guest.print;
        let (func, analysis) = (print.func, print.analysis);
        for inst in insts {
            if analysis.uses.is_dead(func, inst) {
                continue;
            }
            self.mark(inst);
            self.instruction(inst)?;
            if self.guest.print.block.ended {
                break;
            }
        }
        Ok(())
    }

    fn instruction(&mut self, inst: Inst) -> Result<(), Error> {
        let print = &self.guest.print;
        let (program, func) = (print.program, print.func);
        if let Some(access) = print.analysis.accesses.get(inst) {
            return self.guest.access(inst, access);
        }
        let calls = print.symbols.calls(print.function, inst);
        if calls {
            self.guest.begin_call();
        }
        row::print(&mut self.guest.print, inst)?;
        // The memory may have grown.
        let returns = calls && !func.dfg.insts[inst].opcode().is_terminator();
        if returns || memory_length::is_stored_by(program, func, inst) {
            self.guest.read_length()?;
        }
        Ok(())
    }

    /// Records where the text of an instruction begins.
    fn mark(&mut self, inst: Inst) {
        if let Some(marks) = &mut self.marks {
            let offset = self.guest.print.source_offset(inst);
            if marks.last().is_none_or(|&(_, last)| last != offset) {
                marks.push((self.guest.print.body.out.len(), offset));
            }
        }
    }

    /// Prints a block in its better order and, if that order needs a test, a copy in CLIF's order behind the last
    /// block.
    fn scheduled(&mut self, schedule: &Schedule) -> Result<(), Error> {
        self.instructions(schedule.before.iter().copied())?;
        if self.guest.print.block.ended {
            return Ok(());
        }
        let original = self.guest.print.body.local();
        self.branch_if_overlapping(&schedule.pairs, original);
        let state = self.guest.state();
        for &step in &schedule.order {
            match step {
                _ if self.guest.print.block.ended => break,
                Step::Inst(inst) => self.instructions([inst])?,
                Step::Check(inst) => self.guest.check_early(inst),
            }
        }
        if schedule.pairs.is_empty() {
            return Ok(());
        }
        // The copy starts from the state in which the better order started. Its lines get no marks: the tail moves them
        // later.
        self.guest.resume(state);
        let marks = self.marks.take();
        let inline = self.guest.print.body.begin_out_of_line();
        self.guest.print.body.place(original);
        self.instructions(schedule.original.iter().copied())?;
        self.guest.print.body.end_out_of_line(inline);
        self.marks = marks;
        Ok(())
    }

    /// Prints a block some of whose accesses share a test.
    fn parts(&mut self, parts: &[Part]) -> Result<(), Error> {
        for part in parts {
            match part {
                _ if self.guest.print.block.ended => break,
                Part::Inst(inst) => self.instructions([*inst])?,
                Part::Run(run) => self.run(run)?,
            }
        }
        Ok(())
    }

    /// Prints a run twice: for the case that all checks hold and, behind the last block, for the case that one fails.
    fn run(&mut self, run: &Run) -> Result<(), Error> {
        self.instructions(run.first.iter().copied())?;
        let Some(failed) = self.guest.test_all(&run.roots) else { return self.instructions(run.insts.iter().copied()) };
        let (slow, done) = (self.guest.print.body.local(), self.guest.print.body.local());
        self.guest.print.body.branch_if(failed, When::True, slow);
        let state = self.guest.state();
        self.guest.tested = Tested::Passed;
        self.instructions(run.insts.iter().copied())?;
        self.guest.print.body.place(done);
        let after = self.guest.print.block.clone();
        // The copy's lines get no marks: the tail moves them later.
        self.guest.resume(state.clone());
        let marks = self.marks.take();
        let inline = self.guest.print.body.begin_out_of_line();
        self.guest.print.body.place(slow);
        self.guest.tested = Tested::Failed;
        self.instructions(run.insts.iter().copied())?;
        self.guest.tested = Tested::No;
        if !self.guest.print.block.ended {
            self.guest.read_limits()?;
            self.guest.print.body.branch(done);
        }
        self.guest.print.body.end_out_of_line(inline);
        self.marks = marks;
        // What one of the two has computed is not known behind them.
        self.guest.resume(state);
        self.guest.print.block = after;
        Ok(())
    }

    /// Branches to `to` if the two spans of any pair overlap.
    fn branch_if_overlapping(&mut self, pairs: &[Pair], to: Label) {
        let mut any: Option<Reg> = None;
        for pair in pairs {
            let overlaps = self.overlaps(pair);
            any = Some(match any {
                None => overlaps,
                Some(any) => {
                    self.guest.print.body.op_to_temp(Class::Pred, "or", ".pred", &[any.into(), overlaps.into()])
                }
            });
        }
        if let Some(any) = any {
            self.guest.print.body.branch_if(any, When::True, to);
        }
    }

    /// Returns a predicate that is true if the two spans of a pair have a byte in common.
    fn overlaps(&mut self, pair: &Pair) -> Reg {
        let (by, limit) = pair.distance();
        let [mut distance, other] = pair.0.map(|span| match span.root {
            Root::Value(root) => Operand::Reg(self.guest.root_word(root)),
            Root::Constant(_) => Operand::Int(0),
        });
        let body = &mut self.guest.print.body;
        if let Operand::Reg(_) = other {
            distance = body.op_to_temp(Class::B32, "sub", ".u32", &[distance, other]).into();
        }
        if by != 0 {
            let by = Operand::Int(i64::from(by as i32));
            distance = body.op_to_temp(Class::B32, "add", ".u32", &[distance, by]).into();
        }
        body.op_to_temp(Class::Pred, "setp.lt", ".u32", &[distance, limit.into()])
    }
}
