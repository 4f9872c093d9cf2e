//! What an instance that trapped leaves behind, as long as its slot is not used again.

use crate::watchdog::Held;
use gpu_run_abi::TrapCode;
use gpu_run_compiler::{Compiled, Error, StackFrame, Trap, Value};
use std::fmt;
use std::sync::Arc;

/// Somebody who looks at what trapped instances leave behind.
pub trait Examiner: fmt::Debug + Send + Sync {
    /// Returns what is to be locked from before the remains are collected until they have been looked at: both may take long,
    /// which is no hang.
    fn held(&self) -> Option<Held>;
    /// Looks at what trapped. What it left is there until this returns, unless the device cannot be read any more.
    fn examines(&self, whose: Whose<'_>, remains: Result<&Remains<'_>, &Error>);
}

/// Who left something behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose<'a> {
    /// The instance with this number.
    Instance(usize),
    /// A process that a guest started: its number, and its program.
    Process(u32, &'a str),
}

/// Looks at the remains of a process, and has somebody else look who does not know of processes.
#[derive(Debug)]
pub(crate) struct OfProcess {
    pub(crate) examiner: Arc<dyn Examiner>,
    pub(crate) process: u32,
    pub(crate) program: String,
}

impl Examiner for OfProcess {
    fn held(&self) -> Option<Held> {
        self.examiner.held()
    }

    fn examines(&self, _: Whose<'_>, remains: Result<&Remains<'_>, &Error>) {
        // Nothing went wrong in a process that was stopped.
        if remains.is_ok_and(|remains| remains.trap.code == TrapCode::Interrupted) {
            return;
        }
        self.examiner.examines(Whose::Process(self.process, &self.program), remains);
    }
}

/// Reads so many bytes of a memory, from an address on.
pub(crate) type ReadMemory<'a> = &'a dyn Fn(usize, u64, &mut [u8]) -> Result<(), Error>;

/// What a trapped instance left behind.
pub struct Remains<'a> {
    pub trap: &'a Trap,
    pub(crate) compiled: &'a Compiled,
    /// The thread that trapped is the first.
    pub(crate) threads: Vec<ThreadRemains>,
    /// The length of each memory, in bytes.
    pub(crate) memories: Vec<u64>,
    pub(crate) read: ReadMemory<'a>,
}

/// What a thread left behind.
#[derive(Clone, Debug)]
pub(crate) struct ThreadRemains {
    pub(crate) name: String,
    /// The innermost function first.
    pub(crate) frames: Vec<StackFrame>,
    pub(crate) globals: Vec<Value>,
}

impl fmt::Debug for Remains<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trap, threads, memories, .. } = self;
        f.debug_struct("Remains")
            .field("trap", trap)
            .field("threads", threads)
            .field("memories", memories)
            .finish_non_exhaustive()
    }
}

/// Returns the values of an instance's globals. `word` reads a word of its slot.
pub(crate) fn globals(compiled: &Compiled, word: impl Fn(u64) -> Result<u64, Error>) -> Result<Vec<Value>, Error> {
    let types = compiled.types_of_globals();
    let places = compiled.slots.globals.iter().zip(types);
    places.map(|(at, ty)| Value::from_words(*ty, |i| word(at + gpu_run_abi::layout::WORD * i))).collect()
}
