//! Cuts batches into groups of rows, and chooses the function that is called for them.

use super::signature::{Signature, type_name};
use super::wire;
use crate::error::{Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

/// A group has half as many rows if its bytes are more.
const MOST_BYTES: usize = 1 << 20;

/// How many rows a group has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// How many groups a batch is cut into, if groups do not become too small or too large.
    wanted: usize,
    least: usize,
    most: usize,
}

impl Sizes {
    /// On a GPU, many small groups; on `cpu`, some for each core. To begin an instance and to read what columns there are takes as long
    /// as many rows.
    pub(super) fn usual(is_gpu: bool, instances: usize) -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        match is_gpu {
            true => Self { wanted: instances, least: 8, most: 64 },
            false => Self { wanted: 4 * cores, least: 64, most: 4096 },
        }
    }

    pub(super) fn fixed(rows: NonZero<usize>) -> Self {
        Self { wanted: 1, least: rows.get(), most: rows.get() }
    }

    pub(super) fn of_batch(self, rows: usize) -> usize {
        rows.div_ceil(self.wanted).clamp(self.least, self.most)
    }

    /// For batches of which it is not known how many there are.
    pub(super) fn of_stream(self) -> usize {
        self.most
    }
}

/// Some rows of a batch.
#[derive(Clone)]
pub(super) struct Group {
    /// The number of the function.
    pub(super) function: usize,
    pub(super) batch: RecordBatch,
    pub(super) first: usize,
    pub(super) rows: usize,
    /// Whether the batch ends with it.
    pub(super) is_last: bool,
}

impl Group {
    pub(super) fn encode(&self) -> Result<Bytes, arrow_schema::ArrowError> {
        wire::encode(self.function as u32, &self.batch.slice(self.first, self.rows))
    }

    /// Cuts the group into so many, or as many as it has rows.
    pub(super) fn cut(&self, parts: usize) -> impl Iterator<Item = Self> {
        let (rows, end) = (self.rows.div_ceil(parts).max(1), self.first + self.rows);
        (self.first..end).step_by(rows).map(move |first| {
            let is_last = false;
            Self { first, rows: rows.min(end - first), is_last, ..self.clone() }
        })
    }
}

/// The groups whose results have not come, or why there are no more.
pub(super) type Sent = Arc<Mutex<VecDeque<Result<Group>>>>;

/// The groups of batches, encoded.
pub(super) struct Groups<I> {
    pub(super) batches: I,
    pub(super) choice: Choice,
    /// Rows of a group.
    pub(super) rows: usize,
    /// What is left of the present batch.
    pub(super) present: Option<Group>,
    pub(super) sent: Sent,
    pub(super) is_over: bool,
}

impl<I: Iterator<Item = RecordBatch>> Groups<I> {
    fn next_group(&mut self) -> Result<Option<Bytes>> {
        let mut left = match self.present.take() {
            Some(left) => left,
            None => {
                let Some(batch) = self.batches.next() else { return Ok(None) };
                let (function, rows) = (self.choice.of(batch.schema_ref())?, batch.num_rows());
                Group { function, batch, first: 0, rows, is_last: true }
            }
        };
        loop {
            let rows = left.rows.min(self.rows);
            let group = Group { rows, is_last: rows == left.rows, ..left.clone() };
            let bytes = group.encode().map_err(|source| self.choice.error(group.function, source.into()))?;
            if bytes.len() > MOST_BYTES && rows > 1 {
                self.rows = rows / 2;
                continue;
            }
            self.sent.lock().push_back(Ok(group));
            left.first += rows;
            left.rows -= rows;
            self.present = (left.rows > 0).then_some(left);
            return Ok(Some(bytes));
        }
    }
}

impl<I: Iterator<Item = RecordBatch>> Iterator for Groups<I> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let group = self.next_group().unwrap_or_else(|error| {
            self.sent.lock().push_back(Err(error));
            None
        });
        self.is_over = group.is_none();
        group
    }
}

/// Chooses the function of a name for the columns it is given.
pub(super) struct Choice {
    pub(super) signatures: Arc<[Signature]>,
    pub(super) name: String,
    pub(super) is_table: bool,
    pub(super) last: Option<(SchemaRef, usize)>,
}

impl Choice {
    fn of(&mut self, schema: &SchemaRef) -> Result<usize> {
        match &self.last {
            Some((last, function)) if last == schema => Ok(*function),
            _ => {
                let function = self.find(schema)?;
                self.last = Some((schema.clone(), function));
                Ok(function)
            }
        }
    }

    fn find(&self, schema: &Schema) -> Result<usize> {
        let Self { signatures, name, is_table, .. } = self;
        let list = |functions: &[usize]| {
            let functions: Vec<_> = functions.iter().map(|function| format!("`{}`", signatures[*function])).collect();
            functions.join(", ")
        };
        let named: Vec<usize> =
            (0..signatures.len()).filter(|function| signatures[*function].is_called(name)).collect();
        let of_kind: Vec<usize> = named.iter().copied().filter(|at| signatures[*at].is_table == *is_table).collect();
        if of_kind.is_empty() {
            let what = match (&named[..], is_table) {
                ([], _) => {
                    format!("there is no such function; there is {}", list(&Vec::from_iter(0..signatures.len())))
                }
                (named, true) => format!("it is no table function: call {} without `table`", list(named)),
                (named, false) => format!("it is a table function: {}", list(named)),
            };
            return Err(Error::Arrow { function: name.clone(), source: what.into() });
        }
        let taking = |loosely| {
            let takes = |function: &usize| signatures[*function].takes(schema, loosely);
            of_kind.iter().copied().filter(takes).collect::<Vec<usize>>()
        };
        let exactly = taking(false);
        let taking = if exactly.is_empty() { taking(true) } else { exactly };
        let what = match taking[..] {
            [function] => return Ok(function),
            [] => {
                let columns: Vec<_> = schema.fields().iter().map(|field| type_name(field)).collect();
                format!("no function of this name takes ({}); there is {}", columns.join(","), list(&of_kind))
            }
            _ => format!("several functions take these columns; name one by its signature: {}", list(&taking)),
        };
        Err(Error::Arrow { function: name.clone(), source: what.into() })
    }

    fn error(&self, function: usize, source: crate::error::AnyError) -> Error {
        Error::Arrow { function: self.signatures[function].to_string(), source }
    }
}
