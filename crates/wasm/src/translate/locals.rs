//! Locals: variables of the frontend, which turns them into values and block parameters; or memory in the function's
//! frame, where there would be too many block parameters ([`crate::locals`]).

use super::Translator;
use crate::callgraph::Survey;
use crate::error::Error;
use crate::types::{FuncType, ValType, words};
use cranelift_codegen::ir::{InstBuilder, StackSlotData, StackSlotKind, Type, Value, types};
use cranelift_frontend::Variable;
use gpu_run_abi::intrinsic::region;
use gpu_run_abi::layout::WORD;
use wasmparser::FunctionBody;

/// Alignment of the frame as a power of two: a vector's 16 bytes.
const FRAME_ALIGN: u8 = 4;
const VECTOR_BYTES: u32 = 1 << FRAME_ALIGN;

#[derive(Clone, Copy)]
pub(super) enum Local {
    Variable(Variable),
    /// In the frame: the frame's address, the offset in it, and the type.
    Frame(Value, i32, Type),
}

impl Translator<'_, '_> {
    /// Declares the locals that are accessed, and returns the bytes that all locals take.
    pub(super) fn declare_locals(
        &mut self,
        ty: &FuncType,
        body: &FunctionBody<'_>,
        survey: &Survey,
    ) -> Result<u64, Error> {
        let mut bytes = WORD * words(&ty.params);
        let mut first = Vec::with_capacity(survey.locals as usize);
        first.extend((1..=ty.params.len()).map(|i| self.code.param(i)).take(survey.locals as usize));
        self.declared(body, |this, count, ty| {
            bytes += WORD * ty.words() * u64::from(count);
            let zero = this.zero(ty);
            let accessed = (survey.locals as usize).saturating_sub(first.len()).min(count as usize);
            first.extend(std::iter::repeat_n(zero, accessed));
        })?;
        let mut in_frame = survey.frame_locals.iter().copied().peekable();
        let frame = in_frame.peek().is_some().then(|| {
            let room = VECTOR_BYTES * survey.frame_locals.len() as u32;
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, room, FRAME_ALIGN);
            let slot = self.code.b.create_sized_stack_slot(data);
            (slot, self.code.ins().stack_addr(types::I64, slot, 0))
        });
        let mut end = 0;
        for (number, value) in (0..).zip(first) {
            let ty = self.code.b.func.dfg.value_type(value);
            let local = match frame.filter(|_| in_frame.next_if_eq(&number).is_some()) {
                Some((_, frame)) => {
                    let at = u32::next_multiple_of(end, ty.bytes());
                    end = at + ty.bytes();
                    Local::Frame(frame, at as i32, ty)
                }
                None => Local::Variable(self.code.b.declare_var(ty)),
            };
            self.locals.push(local);
            self.set_local(number as usize, value);
        }
        if let Some((slot, _)) = frame {
            self.code.b.func.sized_stack_slots[slot].size = end;
        }
        Ok(bytes)
    }

    /// Calls `each` for every declaration of locals: a count and a type.
    fn declared(
        &mut self,
        body: &FunctionBody<'_>,
        mut each: impl FnMut(&mut Self, u32, ValType),
    ) -> Result<(), Error> {
        let mut reader = body.get_locals_reader()?;
        for _ in 0..reader.get_count() {
            let (count, ty) = reader.read()?;
            let ty = ValType::from_wasm(ty).map_err(|feature| self.unsupported(&feature))?;
            each(self, count, ty);
        }
        Ok(())
    }

    /// Gives the locals the values they have when the function begins, with these parameters.
    pub(super) fn reset_locals(&mut self, params: &[Value], body: &FunctionBody<'_>) -> Result<(), Error> {
        for (number, param) in params.iter().enumerate() {
            self.set_local(number, *param);
        }
        let mut next = params.len();
        self.declared(body, |this, count, ty| {
            let zero = this.zero(ty);
            let end = next + count as usize;
            (next..end.min(this.locals.len())).for_each(|number| this.set_local(number, zero));
            next = end;
        })
    }

    pub(super) fn local(&mut self, number: usize) -> Value {
        match self.locals[number] {
            Local::Variable(variable) => self.code.b.use_var(variable),
            Local::Frame(frame, at, ty) => {
                let flags = self.code.trusted(region::FRAME);
                if ty.is_vector() {
                    let words = [0, 4, 8, 12].map(|i| self.code.ins().load(types::I32, flags, frame, at + i));
                    return self.code.join_vector(words);
                }
                self.code.ins().load(ty, flags, frame, at)
            }
        }
    }

    /// Sets a local. A local that is never accessed is not declared, and its value is dropped.
    pub(super) fn set_local(&mut self, number: usize, value: Value) {
        match self.locals.get(number) {
            None => {}
            Some(Local::Variable(variable)) => self.code.b.def_var(*variable, value),
            Some(&Local::Frame(frame, at, ty)) => {
                let flags = self.code.trusted(region::FRAME);
                if !ty.is_vector() {
                    self.code.ins().store(flags, value, frame, at);
                    return;
                }
                for (i, word) in (0..).zip(self.code.split_vector(value)) {
                    self.code.ins().store(flags, word, frame, at + 4 * i);
                }
            }
        }
    }
}
