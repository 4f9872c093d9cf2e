//! A function of scalars, called for each of many rows.
//!
//! Rows travel in groups, as words: see [`gpu_run_map::Function`]. If an instance with a group fails, each of its rows runs again alone, so that
//! only the row fails that is at fault.

use crate::command::{Output, Status};
use crate::error::{Error, Result};
use crate::mapper::{Mapper, MapperBuilder, Outputs};
use crate::value::{Parameters, ResultWords, Results, RowWords};
use bytes::Bytes;
use gpu_run_compiler::FunctionType;
use gpu_run_map::{ALONE, Function, MAX_GROUP};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

const WORD: usize = 8;

/// Calls an exported function for each of many rows; [`MapperBuilder::function`] makes one.
pub struct FunctionMapper<P, R> {
    groups: Mapper,
    /// From the first group on that fails.
    alone: Option<Mapper>,
    builder: MapperBuilder,
    function: Function,
    types: PhantomData<fn(P) -> R>,
}

/// The parameters or the results of a row of a function whose types are known only at run time: a word for each, as
/// [`Scalar::to_word`](crate::Scalar::to_word) makes it. A row with too few words has zeros, one with too many loses the last ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(SmallVec<[u64; 4]>);

impl Deref for Words {
    type Target = [u64];
    fn deref(&self) -> &[u64] {
        &self.0
    }
}

impl FromIterator<u64> for Words {
    fn from_iter<I: IntoIterator<Item = u64>>(words: I) -> Self {
        Self(words.into_iter().collect())
    }
}

impl<const N: usize> From<[u64; N]> for Words {
    fn from(words: [u64; N]) -> Self {
        words.into_iter().collect()
    }
}

impl RowWords for Words {
    fn put_words(self, bytes: &mut Vec<u8>) {
        self.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    }
}

impl ResultWords for Words {
    fn of_words(words: &[[u8; WORD]]) -> Option<Self> {
        Some(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }
}

impl<P: Parameters, R: Results> FunctionMapper<P, R> {
    pub(crate) fn new(builder: MapperBuilder, name: &str) -> Result<Self> {
        let function = find(&builder, name)?;
        let wanted = FunctionType { params: P::types(), results: R::types() };
        if *function.ty() != wanted {
            let (function, expected) = (name.into(), function.ty().to_string());
            return Err(Error::Signature { function, expected, found: wanted.to_string() });
        }
        Self::of_function(builder, function)
    }
}

impl FunctionMapper<Words, Words> {
    pub(crate) fn of_words(builder: MapperBuilder, name: &str) -> Result<Self> {
        let function = find(&builder, name)?;
        Self::of_function(builder, function)
    }
}

fn find(builder: &MapperBuilder, name: &str) -> Result<Function> {
    let module = &builder.module;
    Function::find(module.interface(), name).map_err(|error| Error::of_function(module.name(), error))
}

impl<P: RowWords, R: ResultWords> FunctionMapper<P, R> {
    fn of_function(builder: MapperBuilder, function: Function) -> Result<Self> {
        let groups = builder.clone().adapted(Some(function.adapter().clone()))?;
        Ok(Self { groups, alone: None, builder, function, types: PhantomData })
    }

    /// Calls the function for each row, and returns its results in the rows' order. The inner `Err` says how a row failed; the outer is a
    /// failure of the device or of gpu-run, and the last item.
    pub fn map<I: IntoIterator<Item = P>>(&mut self, rows: I) -> Rows<'_, I::IntoIter, P, R> {
        let Self { groups, alone, builder, function, .. } = self;
        let sent = Sent::default();
        let row_bytes = function.argument_bytes();
        let outputs = groups.map(Groups { rows: rows.into_iter(), row_bytes, sent: sent.clone() });
        Rows { outputs, sent, alone, builder, function, ready: VecDeque::new(), is_over: false, types: PhantomData }
    }
}

impl<P, R> fmt::Debug for FunctionMapper<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionMapper").field("groups", &self.groups).finish_non_exhaustive()
    }
}

/// Puts rows into groups, and keeps those whose results have not come.
struct Groups<I> {
    rows: I,
    row_bytes: usize,
    sent: Sent,
}

type Sent = Arc<Mutex<VecDeque<Bytes>>>;

impl<P: RowWords, I: Iterator<Item = P>> Iterator for Groups<I> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut group = Vec::new();
        for row in self.rows.by_ref().take(MAX_GROUP) {
            let before = group.len();
            row.put_words(&mut group);
            // A row has a word even if the function has no parameters.
            group.resize(before + self.row_bytes, 0);
        }
        let group = Bytes::from(group);
        (!group.is_empty()).then(|| {
            self.sent.lock().push_back(group.clone());
            group
        })
    }
}

/// The results of a function's rows, in their order.
pub struct Rows<'m, I, P, R> {
    outputs: Outputs<'m, Groups<I>>,
    sent: Sent,
    alone: &'m mut Option<Mapper>,
    builder: &'m MapperBuilder,
    function: &'m Function,
    ready: VecDeque<Result<R, Status>>,
    /// After an error.
    is_over: bool,
    types: PhantomData<fn(P)>,
}

impl<I: Iterator<Item = P>, P: RowWords, R: ResultWords> Rows<'_, I, P, R> {
    /// Takes the results of the next group. Returns whether there was one.
    fn take_group(&mut self) -> Result<bool> {
        let Some(output) = self.outputs.next().transpose()? else { return Ok(false) };
        let group = self.sent.lock().pop_front().unwrap_or_default();
        let rows = group.len() / self.function.argument_bytes();
        match results::<R>(&output, rows, self.function) {
            Some(results) => self.ready.extend(results.into_iter().map(Ok)),
            None if rows == 1 => self.ready.push_back(Err(failed(output.status))),
            None => self.run_alone(group)?,
        }
        Ok(true)
    }

    fn run_alone(&mut self, mut group: Bytes) -> Result<()> {
        let mapper = match &mut self.alone {
            Some(mapper) => mapper,
            none => none.insert(self.builder.clone().batch(ALONE).adapted(Some(self.function.adapter().clone()))?),
        };
        let mut rows = Vec::new();
        while !group.is_empty() {
            rows.push(group.split_to(self.function.argument_bytes()));
        }
        for output in mapper.map(rows) {
            let output = output?;
            let result = results::<R>(&output, 1, self.function).and_then(|mut results| results.pop());
            self.ready.push_back(result.ok_or_else(|| failed(output.status)));
        }
        Ok(())
    }
}

/// Returns the results of a group, if it did not fail.
fn results<R: ResultWords>(output: &Output, rows: usize, function: &Function) -> Option<Vec<R>> {
    let (printed, words) = function.results(&output.stdout, rows).filter(|_| output.status.success())?;
    let of_row = function.ty().results.len();
    (0..rows).filter(|_| printed.is_empty()).map(|row| R::of_words(&words[row * of_row..][..of_row])).collect()
}

/// Returns how a row failed that has no results.
fn failed(status: Status) -> Status {
    match status {
        Status::Exited(0) => {
            let function = "stdout".to_owned();
            Status::Failed { function, source: "the function printed, where its results go".into() }
        }
        status => status,
    }
}

impl<I: Iterator<Item = P>, P: RowWords, R: ResultWords> Iterator for Rows<'_, I, P, R> {
    type Item = Result<Result<R, Status>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(result) = self.ready.pop_front() {
                return Some(Ok(result));
            }
            if self.is_over {
                return None;
            }
            match self.take_group() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl<I, P, R> fmt::Debug for Rows<'_, I, P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("outputs", &self.outputs).finish_non_exhaustive()
    }
}
