//! Turns a record into the job of an instance.

use crate::function::arguments::Calls;
use crate::input::Flaw;
use crate::input::reader::{Batch, Record};
use crate::options::Options;
use gpu_run_run::Job;
use gpu_run_wasi::Builder;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// The placeholder for the record in a guest's arguments.
const RECORD: &[u8] = b"{}";

#[derive(Clone)]
pub(crate) struct Jobs {
    /// What all instances get.
    common: Builder,
    /// The guest's arguments after its name, if they contain `{}`; otherwise they are in `common`.
    args: Vec<OsString>,
    /// The context of all instances, if their arguments do not differ.
    alike: Option<Arc<Builder>>,
    /// Set if a function is called for each record.
    calls: Option<Arc<Calls>>,
    /// Records that are not run: they did not end, and only the end of their process stopped them.
    given_up: Vec<u64>,
}

/// Returns whether the arguments contain `{}`, so that they differ from record to record.
pub fn differ(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg.as_bytes().windows(RECORD.len()).any(|w| w == RECORD))
}

impl Jobs {
    /// `args` are the guest's arguments. `common` has them already, unless they differ.
    pub(crate) fn new(common: Builder, args: &[OsString]) -> Self {
        let args = if differ(args) { args.to_vec() } else { Vec::new() };
        Self { common, args, alike: None, calls: None, given_up: Vec::new() }
    }

    pub(crate) fn of_options(options: &Options) -> Self {
        let Options { context, args, function, split, .. } = options;
        match function {
            // The arguments are the function's, not the guest's.
            Some(function) => {
                let calls = Calls::new(function.clone(), *split, args);
                Self { calls: Some(Arc::new(calls)), ..Self::new(context.clone(), &[]) }
            }
            None => Self::new(context.clone(), args),
        }
    }

    /// Returns how a function is called, if one is.
    pub(crate) fn calls(&self) -> Option<&Arc<Calls>> {
        self.calls.as_ref()
    }

    /// Sets the records that are not to be run.
    pub(crate) fn give_up(&mut self, records: &[u64]) {
        self.given_up = records.to_vec();
    }

    /// Returns the job of a record that has no flaw, or why it cannot be run nevertheless.
    pub(crate) fn of(&mut self, number: u64, record: &Record) -> Result<Job, Flaw> {
        if self.given_up.contains(&number) {
            return Err(Flaw::DidNotEnd);
        }
        let context = self.context(record)?;
        let stdin = match &self.calls {
            Some(calls) => calls.words(record.content(), record.header())?,
            None => record.stdin.clone(),
        };
        Ok(Job { context, number, stdin })
    }

    /// Returns the jobs of those records of a batch that can be run, for a measurement.
    pub(crate) fn of_batch(&mut self, batch: &Batch) -> Vec<Job> {
        let numbered = (batch.first..).zip(&batch.records).filter(|(_, record)| record.flaw.is_none());
        numbered.filter_map(|(number, record)| self.of(number, record).ok()).collect()
    }

    fn context(&mut self, record: &Record) -> Result<Arc<Builder>, Flaw> {
        if let Some(context) = &self.alike {
            return Ok(context.clone());
        }
        let mut builder = self.common.clone();
        let args = self.args.iter().map(|arg| replace(arg.as_bytes(), record.text()));
        builder.args(args).map_err(Flaw::NoArgument)?;
        let context = Arc::new(builder);
        if self.args.is_empty() {
            self.alike = Some(context.clone());
        }
        Ok(context)
    }
}

/// Returns `arg` with every `{}` replaced.
pub(super) fn replace(arg: &[u8], record: &[u8]) -> Vec<u8> {
    let (mut rest, mut replaced) = (arg, Vec::with_capacity(arg.len() + record.len()));
    while let Some(at) = rest.windows(RECORD.len()).position(|w| w == RECORD) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(record);
        rest = &rest[at + RECORD.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}
