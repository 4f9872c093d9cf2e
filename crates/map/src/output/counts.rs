//! How the records' instances ended.

use gpu_run_abi::TrapCode;
use gpu_run_run::End;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub instances: u64,
    /// By exit code; returning counts as exiting with 0.
    pub exits: BTreeMap<u32, u64>,
    pub trapped: u64,
    pub timed_out: u64,
}

impl Counts {
    /// Counts an instance. `has_deadline`: without a deadline, an interruption is a trap like any other.
    pub(crate) fn add(&mut self, end: &End, has_deadline: bool) {
        self.instances += 1;
        match end {
            End::Returned => *self.exits.entry(0).or_default() += 1,
            End::Exited(code) => *self.exits.entry(*code).or_default() += 1,
            End::Trapped(trap) if has_deadline && trap.code == TrapCode::Interrupted => self.timed_out += 1,
            End::Trapped(_) => self.trapped += 1,
        }
    }
}
