//! Functions that an embedder, a program that uses gpu-run as a library, provides for guests.

use crate::encode::{Out, Result, Stop, exactly};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// The functions of an embedder.
pub trait Functions: Send + Sync {
    /// Returns what the instance of this number calls. It is dropped with the instance.
    fn of_instance(&self, number: u64) -> Box<dyn InstanceFunctions>;
}

/// The functions of an embedder, as one instance calls them.
pub trait InstanceFunctions: Send {
    /// Calls a function. May not block.
    fn call(&mut self, call: FunctionCall<'_>) -> FunctionAnswer;
}

/// A call of an embedder's function; [`gpu_run_abi::hostcall`] says what its input is.
#[derive(Clone, Copy, Debug)]
pub struct FunctionCall<'a> {
    pub function: u32,
    pub input: &'a [u8],
    /// The most bytes that the answer may have.
    pub room: usize,
}

/// What became of a call.
pub enum FunctionAnswer {
    Done {
        result: u64,
        bytes: Vec<u8>,
    },
    /// The answer takes time.
    Later(Box<dyn LaterAnswer>),
    /// The instance ends.
    Refused,
}

/// An answer that takes time. When it is there, [`wake`] tells those who wait.
pub trait LaterAnswer: Send {
    /// Returns the answer, if it is there.
    fn poll(&mut self) -> Option<FunctionAnswer>;
}

/// Tells all who wait that an answer is there.
pub fn wake() {
    crate::watch::ring_all();
}

impl fmt::Debug for FunctionAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done { .. } => "Done",
            Self::Later(_) => "Later",
            Self::Refused => "Refused",
        })
    }
}

/// A guest's access to an embedder's functions.
#[derive(Default)]
pub(crate) struct Embedder {
    functions: Option<Arc<dyn Functions>>,
    number: u64,
    /// From the first call on.
    own: Option<Box<dyn InstanceFunctions>>,
    /// Calls whose answers take time. Several threads may have made such calls.
    later: HashMap<u64, Box<dyn LaterAnswer>>,
    calls: u64,
    /// The number of the call that is being repeated.
    pub(crate) repeated: Option<u64>,
}

impl Embedder {
    pub(crate) fn new(functions: Option<Arc<dyn Functions>>, number: u64) -> Self {
        Self { functions, number, ..Self::default() }
    }

    pub(crate) fn of_child(&self) -> Self {
        Self::new(self.functions.clone(), self.number)
    }

    pub(crate) fn call(&mut self, words: &[u64], input: &[u8], since: &mut Option<Instant>, out: &mut Out) -> Result {
        let [function, room] = exactly(words)?;
        let room = room as usize;
        let functions = self.functions.as_ref().ok_or(Stop::Refused)?;
        let repeated = self.repeated.take().and_then(|call| Some((call, self.later.remove(&call)?)));
        let (call, answer) = match repeated {
            None => {
                self.calls += 1;
                let own = self.own.get_or_insert_with(|| functions.of_instance(self.number));
                (self.calls, own.call(FunctionCall { function: function as u32, input, room }))
            }
            Some((call, mut later)) => {
                let answer = later.poll();
                (call, answer.unwrap_or(FunctionAnswer::Later(later)))
            }
        };
        match answer {
            FunctionAnswer::Done { result, bytes } => {
                out.put_u64(result);
                out.put(&bytes[..bytes.len().min(room)]);
                Ok(())
            }
            FunctionAnswer::Later(later) => {
                self.later.insert(call, later);
                self.repeated = Some(call);
                since.get_or_insert_with(Instant::now);
                Err(Stop::Again(None))
            }
            FunctionAnswer::Refused => Err(Stop::Refused),
        }
    }
}
