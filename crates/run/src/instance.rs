//! One instance that stays in its slot: instantiated once, then called any number of times. The official test suite and
//! the fuzzer use it.

use crate::allowance::{Bounds, Limits};
use crate::bus::Callers;
use crate::common::{Common, CommonMemory};
use crate::outcome::{self, End, Outcome};
use crate::slots::{LaunchBuffers, Run, Slots};
use gpu_run_abi::Launch;
use gpu_run_abi::launch::answers;
use gpu_run_abi::layout::{WORD, field};
use gpu_run_compiler::Error;
use gpu_run_compiler::{Program, Trap};
use gpu_run_compiler::{Value, ValueType};
use gpu_run_wasi::Context;
use gpu_run_wasm::slot::{Segment, TablePlace};
use std::sync::Arc;
use std::time::Instant;

pub struct Instance {
    batch: Slots,
    buffers: LaunchBuffers,
    program: Arc<Program>,
    context: Option<Context>,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").field("program", &self.program).finish_non_exhaustive()
    }
}

impl Instance {
    /// Instantiates: segments, then the start function. The inner `Err` is the trap that stopped it.
    pub fn new(program: Arc<Program>, context: Context, max_memory: Option<u64>) -> Result<Result<Self, Trap>, Error> {
        let (this, trap) = Self::begin(program, context, max_memory)?;
        Ok(trap.map_or(Ok(this), Err))
    }

    /// Like [`Instance::new`], but also returns the instance if it trapped: the state that a trap leaves behind matters
    /// to the linker.
    pub(crate) fn begin(
        program: Arc<Program>,
        context: Context,
        max_memory: Option<u64>,
    ) -> Result<(Self, Option<Trap>), Error> {
        let batch = slots(&program, max_memory)?;
        let common = Arc::new(CommonMemory::new(&program, Common::default())?);
        let buffers = LaunchBuffers::new(program.device(), program.compiled(), 1, common)?;
        buffers.write(&batch.describe(Launch { answers: answers::CLOCK, ..Launch::default() }))?;
        let stillborn = program.compiled().initial.trap;
        let mut this = Self { batch, buffers, program, context: Some(context) };
        let run = Run { start: stillborn.is_none(), ..Run::fresh(u32::MAX, None) };
        let end = this.launch(run)?.end;
        let trap = match (stillborn, end) {
            (Some(code), _) => Some(Trap::nowhere(code)),
            (None, End::Trapped(trap)) => Some(*trap),
            (None, _) => None,
        };
        Ok((this, trap))
    }

    /// Calls an exported function.
    pub fn invoke(&mut self, function: &str, args: &[Value], deadline: Option<Instant>) -> Result<Outcome, Error> {
        self.invoke_of(0, function, args, deadline)
    }

    /// Calls a function that one of the instance's modules exports.
    pub(crate) fn invoke_of(
        &mut self,
        part: u32,
        function: &str,
        args: &[Value],
        deadline: Option<Instant>,
    ) -> Result<Outcome, Error> {
        let (selector, words) = self.program.compiled().arguments_of(part, function, args)?;
        for (i, word) in words.into_iter().enumerate() {
            self.batch.write_word(0, self.program.compiled().slots.arguments + WORD * i as u64, word)?;
        }
        for at in [field::STATUS, field::TRAP, field::PORT_SEQUENCE] {
            self.batch.write_word(0, at, 0)?;
        }
        self.launch(Run { selector, fresh: false, start: false, deadline })
    }

    fn launch(&mut self, run: Run) -> Result<Outcome, Error> {
        let context = self.context.take().ok_or_else(|| Error::Internal("the instance's last run failed".into()))?;
        let (contexts, _) = self.batch.launch(run, Callers::Contexts(vec![context]), &self.buffers)?;
        self.context = contexts.into_iter().next();
        outcome::first_outcome(self.program.compiled(), &self.buffers, run.selector)
    }

    /// Returns the value of an exported global.
    pub fn global(&self, name: &str) -> Result<Option<Value>, Error> {
        self.global_of(0, name)
    }

    /// Returns the value of a global that one of the instance's modules exports.
    pub(crate) fn global_of(&self, part: u32, name: &str) -> Result<Option<Value>, Error> {
        let compiled = self.program.compiled();
        let Some(global) = compiled.globals.iter().find(|g| g.part == part && g.name == name) else { return Ok(None) };
        let at = compiled.slots.globals[global.index as usize];
        Ok(Some(Value::from_words(global.ty, |i| self.batch.read_word(0, at + WORD * i))?))
    }

    /// Reads a part of a memory. Returns `false` if it is beyond the memory's end.
    pub fn read(&self, index: usize, at: u64, bytes: &mut [u8]) -> Result<bool, Error> {
        let is_there = self.is_there(index, at, bytes.len())?;
        if is_there {
            self.batch.read_memory_part(0, index, at, bytes)?;
        }
        Ok(is_there)
    }

    /// Writes a part of a memory of an instance whose slot is linear. Returns `false` if it is beyond the memory's end, or before all of
    /// the program's data.
    pub fn write(&mut self, index: usize, at: u64, bytes: &[u8]) -> Result<bool, Error> {
        Ok(self.is_there(index, at, bytes.len())? && self.batch.write_memory_part(0, index, at, bytes)?)
    }

    fn is_there(&self, index: usize, at: u64, count: usize) -> Result<bool, Error> {
        let length = self.batch.memory_length(0, index)?;
        Ok(at.checked_add(count as u64).is_some_and(|end| end <= length))
    }

    /// Returns the present content of a memory.
    pub fn memory(&self, index: usize) -> Result<Vec<u8>, Error> {
        self.batch.read_memory(0, index)
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the whole state of the instance.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, Error> {
        let slots = &self.program.compiled().slots;
        let word = |at: &u64| self.batch.read_word(0, *at);
        let global = |(at, ty): (&u64, &ValueType)| {
            let words = self.batch.read_words(0, *at, ty.words() as usize)?;
            Ok::<_, Error>(words.iter().rev().fold(0, |all, word| all << 64 | u128::from(*word)))
        };
        let table = |place: &TablePlace| {
            let length = self.batch.read_word(0, place.length)?.min(place.capacity);
            self.batch.read_words(0, place.at, length as usize)
        };
        let left = |segment: &Segment| self.batch.read_word(0, segment.cell);
        Ok(Snapshot {
            globals: slots
                .globals
                .iter()
                .zip(self.program.compiled().types_of_globals())
                .map(global)
                .collect::<Result<_, _>>()?,
            tables: slots.tables.iter().map(table).collect::<Result<_, _>>()?,
            memories: (0..self.program.compiled().memories.len()).map(|i| self.memory(i)).collect::<Result<_, _>>()?,
            data: slots.data.iter().map(left).collect::<Result<_, _>>()?,
            elements: slots.elements.iter().map(left).collect::<Result<_, _>>()?,
            exceptions: match slots.exception.count {
                0 => 0,
                at => word(&at)?,
            },
        })
    }
}

/// Makes a slot for an instance that stays: it cannot be rerun with more, and others may stay beside it.
fn slots(program: &Program, max_memory: Option<u64>) -> Result<Slots, Error> {
    let (device, compiled) = (program.device(), program.compiled());
    let bounds = Bounds::new(device, compiled, max_memory, &Limits::default())?;
    let allowance = bounds.resident(compiled, device.free_bytes()?);
    let mut batch = Slots::new(program, 1, bounds.sizes(compiled, allowance, true)?, allowance.stack)?;
    batch.lower_stack_if_need_be();
    Ok(batch)
}

/// The state of an instance, by the indices of its program.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) globals: Vec<u128>,
    pub(crate) tables: Vec<Vec<u64>>,
    pub(crate) memories: Vec<Vec<u8>>,
    /// How much is left of each segment: its length, or 0 once it was dropped.
    pub(crate) data: Vec<u64>,
    pub(crate) elements: Vec<u64>,
    /// How many exceptions were given a number.
    pub(crate) exceptions: u64,
}
