//! One instance that stays: instantiated once, called as often as one likes. What the official test suite and the fuzzer need.

use crate::batch::{Batch, LaunchBuffers, Run};
use crate::bus::Guests;
use crate::error::Error;
use crate::program::{End, Outcome, Program, Trap};
use crate::value::Value;
use gpu_run_abi::Launch;
use gpu_run_abi::layout::{WORD, field};
use gpu_run_wasi::Context;
use std::sync::Arc;
use std::time::Instant;

pub struct Instance {
    batch: Batch,
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
    /// Instantiates: segments, then the start function. The `Err` of the inner result is the trap that ended it.
    pub fn new(program: Arc<Program>, context: Context, max_memory: Option<u64>) -> Result<Result<Self, Trap>, Error> {
        if let Some(code) = program.compiled().initial.trap {
            return Ok(Err(Trap { code, function: None, name: None, offset: 0, source: None }));
        }
        let batch = program.batch(1, max_memory)?;
        let buffers = LaunchBuffers::new(program.device(), program.compiled(), 1)?;
        buffers.write(&batch.describe(Launch::default()))?;
        let mut this = Self { batch, buffers, program, context: Some(context) };
        if let End::Trapped(trap) = this.launch(Run::fresh(u32::MAX, None))?.end {
            return Ok(Err(*trap));
        }
        Ok(Ok(this))
    }

    /// Calls an exported function.
    pub fn invoke(&mut self, function: &str, args: &[Value], deadline: Option<Instant>) -> Result<Outcome, Error> {
        let (selector, words) = self.program.compiled().arguments(function, args)?;
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
        let (contexts, _) = self.batch.launch(run, Guests::Contexts(vec![context]), &self.buffers)?;
        self.context = contexts.into_iter().next();
        let outcome = self.program.compiled().outcomes(&self.buffers, 1, run.selector)?.pop();
        outcome.ok_or_else(|| Error::Internal("a launch without an ending".into()))
    }

    /// The value of an exported global.
    pub fn global(&self, name: &str) -> Result<Option<Value>, Error> {
        let compiled = self.program.compiled();
        let Some((_, index, ty)) = compiled.globals.iter().find(|(n, ..)| n == name) else { return Ok(None) };
        let at = compiled.slots.globals[*index as usize];
        Ok(Some(Value::from_words(*ty, |i| self.batch.read_word(0, at + WORD * i))?))
    }

    /// All of its memory, as it is now.
    pub fn memory(&self) -> Result<Vec<u8>, Error> {
        self.batch.read_memory(0)
    }
}
