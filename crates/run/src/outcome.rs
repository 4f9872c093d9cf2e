//! How instances ended, and what a run of them cost.

use crate::allowance::{Denied, Limits};
use crate::common::{Common, CommonMemory};
use crate::remains::Examiner;
use crate::seen::{Onlooker, SeenThreads};
use crate::slots::{Endings, LaunchBuffers};
use crate::threads::ThreadStats;
use gpu_run_abi::{Status, TrapCode, TrapRecord};
use gpu_run_compiler::{Compiled, Error, Program, Trap, Value, ValueType};
use gpu_run_wasm::words;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// When the whole run is to be stopped.
    pub deadline: Option<Instant>,
    /// The run is stopped when this becomes true.
    pub interrupt: Option<Arc<AtomicBool>>,
    /// Who looks at the threads of a program with threads while it runs.
    pub onlooker: Option<Arc<dyn Onlooker>>,
    /// Who looks at what trapped instances leave behind.
    pub examiner: Option<Arc<dyn Examiner>>,
    /// Bytes that an instance's memories and tables may have together.
    pub max_memory: Option<u64>,
    /// What the instances have in common; otherwise the usual.
    pub common: Option<Arc<CommonMemory>>,
    pub limits: Limits,
}

impl RunOptions {
    /// Returns the trap that this is, and who looks at what it left behind. Who interrupts a program does not ask what went wrong in it.
    pub(crate) fn examines<'a>(&'a self, end: &'a End) -> Option<(&'a dyn Examiner, &'a Trap)> {
        let End::Trapped(trap) = end else { return None };
        let is_interrupted = self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
        let is_wanted = !(is_interrupted && trap.code == TrapCode::Interrupted);
        Some((self.examiner.as_deref().filter(|_| is_wanted)?, trap))
    }

    pub(crate) fn common_of(&self, program: &Program) -> Result<Arc<CommonMemory>, Error> {
        self.common.clone().map_or_else(|| Ok(Arc::new(CommonMemory::new(program, Common::default())?)), Ok)
    }
}

/// How one instance ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub end: End,
    /// Results of the entry function, if it returned.
    pub results: Vec<Value>,
    /// What the instance was refused.
    pub denied: Option<Denied>,
    /// Where the threads of a program with threads were, if it was stopped.
    pub threads: Option<SeenThreads>,
}

impl Outcome {
    /// For the `main` of a module that is no command: what it returned becomes the exit code.
    pub fn exit_as_main_says(&mut self) {
        if let (End::Returned, [Value::I32(code)]) = (&self.end, &self.results[..]) {
            self.end = End::Exited(*code as u32);
            self.results.clear();
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum End {
    Returned,
    Exited(u32),
    Trapped(Box<Trap>),
}

impl End {
    /// A trap without a place in the code. For instance, if a module's segments do not fit, every instance traps this
    /// way.
    pub fn trapped(code: TrapCode) -> Self {
        Self::Trapped(Box::new(Trap::nowhere(code)))
    }
}

/// What a run did, for `--stats`.
#[derive(Clone, Debug, Default)]
pub struct RunStats {
    pub instances: u64,
    pub launches: u64,
    pub hostcalls: u64,
    /// Reruns, whatever the instance lacked.
    pub reruns: u64,
    /// Instances that ran on `cpu`, because the device has no memory for a stack as deep as theirs.
    pub on_host: u64,
    /// Bytes of device memory that slots took, at most.
    pub device_bytes: u64,
    /// Time on the host before launches: copying stdin, arguments and environment to the device.
    pub prepare: Duration,
    /// Time from the begin to the end of launches, summed over all of them.
    pub run: Duration,
    /// Processor time, during launches, of the thread that launches and answers host calls. On `cpu`, that thread also
    /// runs guests.
    pub service: Duration,
    /// Time on the host after launches: reading how instances ended and what they printed.
    pub collect: Duration,
    /// Set for a program with threads.
    pub threads: Option<ThreadStats>,
}

impl RunStats {
    /// Adds the figures of another run.
    pub fn add(&mut self, other: &RunStats) {
        self.instances += other.instances;
        self.launches += other.launches;
        self.hostcalls += other.hostcalls;
        self.reruns += other.reruns;
        self.on_host += other.on_host;
        self.device_bytes = self.device_bytes.max(other.device_bytes);
        self.prepare += other.prepare;
        self.run += other.run;
        self.service += other.service;
        self.collect += other.collect;
    }
}

/// Returns how the instance in slot 0 ended, once its launch is over.
pub fn first_outcome(compiled: &Compiled, buffers: &LaunchBuffers, selector: u32) -> Result<Outcome, Error> {
    let types = compiled.results(selector);
    outcome(compiled, 0, &buffers.endings(1, words(types) as usize)?, types)
}

/// Returns how the instance in `slot` ended, with its results, which have these types.
pub fn outcome(compiled: &Compiled, slot: usize, endings: &Endings<'_>, types: &[ValueType]) -> Result<Outcome, Error> {
    let end = ending(compiled, slot, endings)?;
    let returned = if end == End::Returned { types } else { &[] };
    let mut first = 0;
    let value = |ty: &ValueType| {
        let at = first;
        first += ty.words();
        Value::from_words(*ty, |i| Ok(endings.result(slot, (at + i) as usize)))
    };
    Ok(Outcome { end, results: returned.iter().map(value).collect::<Result<_, Error>>()?, denied: None, threads: None })
}

/// Returns how an instance ended. An instance that outgrew its allowance, or that a speculative build stopped, gets the
/// trap [`TrapCode::Inexact`]: the caller reruns it.
pub fn ending(compiled: &Compiled, slot: usize, endings: &Endings<'_>) -> Result<End, Error> {
    let ending = endings.get(slot);
    if let Some(record) = TrapRecord::unpack(ending.trap) {
        return Ok(End::Trapped(Box::new(compiled.trap(record, endings.calls(slot)))));
    }
    match ending.status {
        status if status == Status::Returned as u64 => Ok(End::Returned),
        status if status == Status::Exited as u64 => Ok(End::Exited(ending.exit_code as u32)),
        status if status == Status::Outgrown as u64 => Ok(End::trapped(TrapCode::Inexact)),
        0 if compiled.options.build.is_speculative() => Ok(End::trapped(TrapCode::Inexact)),
        _ => Err(Error::Internal(format!("instance {slot} ended without an outcome"))),
    }
}
