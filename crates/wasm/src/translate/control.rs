//! Blocks and branches.

use super::Translator;
use super::pace::Pace;
use crate::code::block_args;
use crate::error::Error;
use crate::types::{FuncType, ValType};
use crate::work::FIRST;
use cranelift_codegen::ir::{Block, BlockCall, InstBuilder, JumpTableData, Value, types};
use cranelift_frontend::Variable;
use gpu_run_abi::TrapCode;
use gpu_run_abi::intrinsic::Intrinsic;
use wasmparser::{BlockType, BrTable, Catch, Operator};

/// An open structured block.
#[derive(Debug)]
pub(super) struct Frame {
    kind: Kind,
    /// The CLIF block that takes this block's results.
    end: Block,
    /// Where a branch to this frame goes, and with how many values.
    target: Block,
    target_values: usize,
    /// Number of operands below the block's own.
    height: usize,
    results: usize,
    /// Whether the current position in this frame is unreachable.
    unreachable: bool,
    /// Whether any branch leads to `end`.
    end_reached: bool,
    /// How much work may have been done when `end` is reached.
    arrived: Pace,
    /// Number of open blocks inside unreachable code: they are counted, not translated.
    skipped: usize,
}

#[derive(Debug)]
enum Kind {
    Function,
    Block,
    Loop,
    /// With the block for `else`, and the operands and pace that it starts with.
    If {
        otherwise: Block,
        params: Vec<Value>,
        pace: Pace,
    },
    Else,
    /// With its catch clauses, and the block that exceptions from inside jump to, once there is one.
    Try {
        catches: Vec<Catch>,
        landing: Option<Block>,
    },
}

impl Translator<'_, '_> {
    pub(super) fn push_function_frame(&mut self, ty: &FuncType) {
        let end = self.block(&ty.results);
        self.push_frame(Kind::Function, end, end, ty.results.len(), ty.results.len(), 0);
    }

    fn push_frame(
        &mut self,
        kind: Kind,
        end: Block,
        target: Block,
        target_values: usize,
        results: usize,
        params: usize,
    ) {
        let height = self.stack.len() - params;
        self.frames.push(Frame {
            kind,
            end,
            target,
            target_values,
            height,
            results,
            unreachable: false,
            end_reached: false,
            arrived: self.pace.begin(),
            skipped: 0,
        });
    }

    /// Creates a block with parameters of these types.
    fn block(&mut self, types: &[ValType]) -> Block {
        let block = self.code.b.create_block();
        for ty in types {
            self.code.b.append_block_param(block, ty.clif());
        }
        block
    }

    fn block_type(&self, ty: BlockType) -> Result<FuncType, Error> {
        Ok(match ty {
            BlockType::Empty => FuncType::default(),
            BlockType::Type(ty) => FuncType {
                params: Vec::new(),
                results: vec![ValType::from_wasm(ty).map_err(|f| self.unsupported(&f))?],
            },
            BlockType::FuncType(index) => self.env.module.types[(self.part.types + index) as usize].clone(),
        })
    }

    fn frame(&mut self, depth: u32) -> &mut Frame {
        let last = self.frames.len() - 1;
        &mut self.frames[last - depth as usize]
    }

    pub(super) fn unreachable(&self) -> bool {
        self.frames.last().is_some_and(|f| f.unreachable)
    }

    /// Skips an operator that is never reached: only its nesting matters.
    pub(super) fn skip(&mut self, op: &Operator<'_>) -> Result<(), Error> {
        let frame = self.frame(0);
        match op {
            Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } | Operator::TryTable { .. } => {
                frame.skipped += 1;
            }
            Operator::End if frame.skipped > 0 => frame.skipped -= 1,
            Operator::Else if frame.skipped > 0 => {}
            Operator::End => self.end(),
            Operator::Else => self.otherwise(),
            // Blocks of unsupported proposals would make the count wrong.
            Operator::Try { .. } => return Err(self.unsupported("exception handling")),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn control(&mut self, op: &Operator<'_>) -> Result<bool, Error> {
        match op {
            Operator::Unreachable => {
                self.code.trap(TrapCode::Unreachable);
                self.dead();
            }
            Operator::Block { blockty } => {
                let ty = self.block_type(*blockty)?;
                let end = self.block(&ty.results);
                self.push_frame(Kind::Block, end, end, ty.results.len(), ty.results.len(), ty.params.len());
            }
            Operator::Loop { blockty } => {
                let ty = self.block_type(*blockty)?;
                self.open_loop(&ty);
            }
            Operator::If { blockty } => {
                let ty = self.block_type(*blockty)?;
                self.open_if(&ty);
            }
            Operator::Else => self.otherwise(),
            Operator::End => self.end(),
            Operator::Br { relative_depth } => {
                self.branch(*relative_depth);
                self.dead();
            }
            Operator::BrIf { relative_depth } => self.branch_if(*relative_depth),
            Operator::BrTable { targets } => self.branch_table(targets)?,
            Operator::Return => {
                let function = self.frames.len() as u32 - 1;
                self.branch(function);
                self.dead();
            }
            Operator::BrOnNull { relative_depth } => self.branch_on_null(*relative_depth),
            Operator::BrOnNonNull { relative_depth } => self.branch_on_non_null(*relative_depth),
            Operator::TryTable { try_table } => {
                let ty = self.block_type(try_table.ty)?;
                let end = self.block(&ty.results);
                if !try_table.catches.is_empty() {
                    self.catching.push(self.frames.len());
                }
                let kind = Kind::Try { catches: try_table.catches.clone(), landing: None };
                self.push_frame(kind, end, end, ty.results.len(), ty.results.len(), ty.params.len());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Marks the code from here to the frame's end as unreachable.
    pub(super) fn dead(&mut self) {
        let frame = self.frame(0);
        frame.unreachable = true;
        let height = frame.height;
        self.stack.truncate(height);
    }

    fn open_loop(&mut self, ty: &FuncType) {
        let (head, end) = (self.block(&ty.params), self.block(&ty.results));
        let ticks = self.ticks();
        let args = self.pop_many(ty.params.len());
        // Behind an atomic operation, the function may hold a lock that other lanes wait for.
        if self.code.is_shared && self.loops == 0 && !self.synchronises {
            self.code.intrinsic(Intrinsic::StepMeet, &[]);
        }
        self.code.ins().jump(head, &block_args(&args));
        self.code.b.switch_to_block(head);
        let params = self.code.b.block_params(head).to_vec();
        self.stack.extend(params);
        self.push_frame(Kind::Loop, end, head, ty.params.len(), ty.results.len(), ty.params.len());
        self.loops += 1;
        self.pace.enter_loop();
        self.tick(ticks);
    }

    /// Returns the variable with the iterations until the next check of the stop word; the first call, before the first
    /// loop, declares it.
    pub(super) fn ticks(&mut self) -> Variable {
        if let Some(ticks) = self.ticks {
            return ticks;
        }
        let full = self.code.i32(FIRST);
        let ticks = self.code.variable(types::I32, full);
        self.ticks = Some(ticks);
        ticks
    }

    /// Counts an iteration of a loop.
    pub(super) fn tick(&mut self, ticks: Variable) {
        let (left, stop) = (self.code.b.use_var(ticks), self.code.stop_address());
        let left = self.code.intrinsic(Intrinsic::Tick, &[left, stop]).expect("it has a result");
        self.code.b.def_var(ticks, left);
    }

    fn open_if(&mut self, ty: &FuncType) {
        let condition = self.pop();
        let (then, otherwise, end) = (self.code.b.create_block(), self.code.b.create_block(), self.block(&ty.results));
        self.code.ins().brif(condition, then, &[], otherwise, &[]);
        let params = self.stack[self.stack.len() - ty.params.len()..].to_vec();
        let kind = Kind::If { otherwise, params, pace: self.pace };
        self.push_frame(kind, end, end, ty.results.len(), ty.results.len(), ty.params.len());
        self.code.open(then);
    }

    fn otherwise(&mut self) {
        self.leave();
        let frame = self.frame(0);
        if let Kind::If { otherwise, params, pace } = std::mem::replace(&mut frame.kind, Kind::Else) {
            frame.unreachable = false;
            let height = frame.height;
            self.stack.truncate(height);
            self.stack.extend(params);
            self.pace = pace;
            self.code.open(otherwise);
        }
    }

    /// Falls through to the frame's end, if the current position is reachable.
    fn leave(&mut self) {
        let pace = self.pace;
        let frame = self.frame(0);
        if frame.unreachable {
            return;
        }
        frame.end_reached = true;
        frame.arrived.meet(pace);
        let (end, results) = (frame.end, frame.results);
        let values = self.pop_many(results);
        self.code.ins().jump(end, &block_args(&values));
    }

    fn end(&mut self) {
        self.leave();
        let mut frame = self.frames.pop().expect("validated: `end` closes a frame");
        self.catching.pop_if(|depth| *depth == self.frames.len());
        self.stack.truncate(frame.height);
        match frame.kind {
            // Without `else`, the parameters are the results.
            Kind::If { otherwise, params, pace } => {
                self.code.open(otherwise);
                self.code.ins().jump(frame.end, &block_args(&params));
                frame.end_reached = true;
                frame.arrived.meet(pace);
            }
            Kind::Loop => {
                self.code.b.seal_block(frame.target);
                self.loops -= 1;
            }
            Kind::Try { catches, landing: Some(landing) } => {
                self.pace = frame.arrived.unknown();
                self.catch(&catches, landing);
            }
            Kind::Try { .. } | Kind::Function | Kind::Block | Kind::Else => {}
        }
        self.pace = frame.arrived;
        self.code.open(frame.end);
        let results = self.code.b.block_params(frame.end).to_vec();
        if self.frames.is_empty() {
            self.code.ins().return_(&results);
        } else if frame.end_reached {
            self.stack.extend(results);
        } else {
            // Unreachable, but a CLIF block must have a terminator.
            self.code.trap(TrapCode::Unreachable);
            self.dead();
        }
    }

    fn branch(&mut self, depth: u32) {
        let (target, count) = self.aim(depth);
        let values = self.pop_many(count);
        self.code.ins().jump(target, &block_args(&values));
    }

    /// Returns a branch's target and how many values the branch passes.
    pub(super) fn aim(&mut self, depth: u32) -> (Block, usize) {
        let pace = self.pace;
        let frame = self.frame(depth);
        if !matches!(frame.kind, Kind::Loop) {
            frame.end_reached = true;
            frame.arrived.meet(pace);
        }
        (frame.target, frame.target_values)
    }

    fn branch_if(&mut self, depth: u32) {
        let condition = self.pop();
        let (target, count) = self.aim(depth);
        let values = block_args(&self.stack[self.stack.len() - count..]);
        let next = self.code.b.create_block();
        self.code.ins().brif(condition, target, &values, next, &[]);
        self.code.open(next);
    }

    fn branch_on_null(&mut self, depth: u32) {
        let reference = self.pop();
        let (target, count) = self.aim(depth);
        let values = block_args(&self.stack[self.stack.len() - count..]);
        let next = self.code.b.create_block();
        self.code.ins().brif(reference, next, &[], target, &values);
        self.code.open(next);
        self.push(reference);
    }

    fn branch_on_non_null(&mut self, depth: u32) {
        let reference = self.peek();
        let (target, count) = self.aim(depth);
        let values = block_args(&self.stack[self.stack.len() - count..]);
        let next = self.code.b.create_block();
        self.code.ins().brif(reference, target, &values, next, &[]);
        self.code.open(next);
        self.pop();
    }

    /// Returns where an exception thrown here goes: to the innermost block with a catch clause, or out of the function.
    pub(super) fn landing(&mut self) -> Block {
        let innermost = self.catching.last().map(|depth| &mut self.frames[*depth].kind);
        if let Some(Kind::Try { landing, .. }) = innermost {
            return *landing.get_or_insert_with(|| self.code.b.create_block());
        }
        *self.unwind.get_or_insert_with(|| self.code.b.create_block())
    }

    fn branch_table(&mut self, targets: &BrTable<'_>) -> Result<(), Error> {
        let index = self.pop();
        let count = self.aim(targets.default()).1;
        let values = block_args(&self.pop_many(count));
        let call = |this: &mut Self, depth| {
            let (target, _) = this.aim(depth);
            BlockCall::new(target, values.iter().copied(), &mut this.code.b.func.dfg.value_lists)
        };
        let default = call(self, targets.default());
        let table = targets.targets().map(|depth| Ok(call(self, depth?))).collect::<Result<Vec<_>, Error>>()?;
        let table = self.code.b.create_jump_table(JumpTableData::new(default, &table));
        self.code.ins().br_table(index, table);
        self.dead();
        Ok(())
    }
}
