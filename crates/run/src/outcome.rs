//! How instances ended, and what a run of them took.

use crate::allowance::{Denied, Limits};
use crate::slots::{Endings, LaunchBuffers};
use gpu_run_abi::launch::Ending;
use gpu_run_abi::{Status, TrapCode, TrapRecord};
use gpu_run_compiler::{Compiled, Error, Trap, Value, ValueType};
use gpu_run_wasm::words;
use std::time::{Duration, Instant};

#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// When the run as a whole is to be ended.
    pub deadline: Option<Instant>,
    /// Bytes that an instance's memories and tables may have together.
    pub max_memory: Option<u64>,
    pub limits: Limits,
}

/// What became of one instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub end: End,
    /// Results of the entry function, if it returned.
    pub results: Vec<Value>,
    /// What it was refused.
    pub denied: Option<Denied>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum End {
    Returned,
    Exited(u32),
    Trapped(Box<Trap>),
}

impl End {
    /// A trap that has no place to name: every instance has one whose module's segments do not fit, for instance.
    pub fn trapped(code: TrapCode) -> Self {
        Self::Trapped(Box::new(Trap { code, function: None, name: None, offset: 0, source: None }))
    }
}

/// What a run did, for `--stats`.
#[derive(Clone, Debug, Default)]
pub struct RunStats {
    pub instances: u64,
    pub launches: u64,
    pub hostcalls: u64,
    /// Instances that ran a second time, with exact checks.
    pub again: u64,
    /// Of these, those that ran on `cpu`: the device has no memory for a stack as deep as theirs.
    pub on_host: u64,
    /// Bytes of device memory set aside for instances.
    pub device_bytes: u64,
    /// On the host, before launches: what instances are given goes to the device.
    pub prepare: Duration,
    /// From launch to end, one launch after the other.
    pub run: Duration,
    /// Of mapped batches: what of a processor the thread had that launches and answers calls, while they ran. On `cpu` it also computes.
    pub service: Duration,
    /// On the host, after launches: how instances ended, and what they wrote.
    pub collect: Duration,
}

impl RunStats {
    /// Counts another run in.
    pub fn add(&mut self, other: &RunStats) {
        self.instances += other.instances;
        self.launches += other.launches;
        self.hostcalls += other.hostcalls;
        self.again += other.again;
        self.on_host += other.on_host;
        self.device_bytes = self.device_bytes.max(other.device_bytes);
        self.prepare += other.prepare;
        self.run += other.run;
        self.service += other.service;
        self.collect += other.collect;
    }
}

/// What became of the instance in slot 0, once its launch has ended.
pub fn first_outcome(compiled: &Compiled, buffers: &LaunchBuffers, selector: u32) -> Result<Outcome, Error> {
    let types = compiled.results(selector);
    outcome(compiled, 0, &buffers.endings(1, words(types) as usize)?, types)
}

/// What became of an instance that returns values of such types.
pub fn outcome(compiled: &Compiled, slot: usize, endings: &Endings<'_>, types: &[ValueType]) -> Result<Outcome, Error> {
    let end = ending(compiled, slot, &endings.get(slot))?;
    let returned = if end == End::Returned { types } else { &[] };
    let mut first = 0;
    let value = |ty: &ValueType| {
        let at = first;
        first += ty.words();
        Value::from_words(*ty, |i| Ok(endings.result(slot, (at + i) as usize)))
    };
    Ok(Outcome { end, results: returned.iter().map(value).collect::<Result<_, Error>>()?, denied: None })
}

/// How an instance ended.
pub fn ending(compiled: &Compiled, slot: usize, ending: &Ending) -> Result<End, Error> {
    if let Some(record) = TrapRecord::unpack(ending.trap) {
        return Ok(End::Trapped(Box::new(compiled.trap(record))));
    }
    match ending.status {
        status if status == Status::Returned as u64 => Ok(End::Returned),
        status if status == Status::Exited as u64 => Ok(End::Exited(ending.exit_code as u32)),
        status if status == Status::Outgrown as u64 => Ok(End::trapped(TrapCode::Inexact)),
        0 if compiled.options.build.is_speculative() => Ok(End::trapped(TrapCode::Inexact)),
        _ => Err(Error::Internal(format!("instance {slot} ended without saying how"))),
    }
}
