//! Puts the answers for groups of rows together, and runs the groups again that failed.

use super::groups::{Choice, Group, Groups, Sent};
use super::signature::Signature;
use super::wire::{self, Answer};
use super::{Again, Functions};
use crate::command::{Output, Status};
use crate::error::{AnyError, Error, Result};
use crate::mapper::Outputs;
use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use std::fmt;
use std::sync::Arc;

/// A group that failed is cut into so many.
const PARTS: usize = 16;

/// What a function returned for a batch.
#[derive(Debug)]
pub struct Called {
    /// A row for each that was given. The first column has the results; a function that can fail has a second one, `error`.
    pub batch: RecordBatch,
    /// The rows for which the function did not return, in order. Their results are null.
    pub failures: Vec<RowFailure>,
}

impl Called {
    /// Returns the results if the function returned for all rows.
    pub fn complete(self) -> Result<RecordBatch, RowFailure> {
        self.failures.into_iter().next().map_or(Ok(self.batch), Err)
    }
}

/// What a table function returned for a batch.
#[derive(Debug)]
pub struct TableCalled {
    /// The first column, `row`, says for which of the given rows, counted from 0; the second has the values. Without any value there are
    /// no columns either: `None`.
    pub batch: Option<RecordBatch>,
    /// The rows for which the function did not return, in order. They have no values.
    pub failures: Vec<RowFailure>,
}

impl TableCalled {
    /// Returns the values if the function returned for all rows.
    pub fn complete(self) -> Result<Option<RecordBatch>, RowFailure> {
        self.failures.into_iter().next().map_or(Ok(self.batch), Err)
    }
}

/// A row for which a function did not return.
#[derive(Debug)]
#[non_exhaustive]
pub struct RowFailure {
    /// The number of the row in its batch, from 0.
    pub row: usize,
    pub status: Status,
    /// What the instance printed on stderr: the message of a panic.
    pub stderr: Vec<u8>,
}

impl fmt::Display for RowFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}: {}", self.row, self.status)?;
        match String::from_utf8_lossy(&self.stderr).trim() {
            "" => Ok(()),
            stderr => write!(f, "; stderr: {stderr}"),
        }
    }
}

impl std::error::Error for RowFailure {}

/// The results of a function for many batches, in their order.
#[derive(Debug)]
pub struct Batches<'m, I>(pub(super) Calls<'m, I>);

/// The results of a table function for many batches, in their order.
#[derive(Debug)]
pub struct TableBatches<'m, I>(pub(super) Calls<'m, I>);

impl<I: Iterator<Item = RecordBatch>> Iterator for Batches<'_, I> {
    type Item = Result<Called>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_with(Calls::scalars)
    }
}

impl<I: Iterator<Item = RecordBatch>> Iterator for TableBatches<'_, I> {
    type Item = Result<TableCalled>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_with(Calls::tables)
    }
}

/// Calls of one function for many batches.
pub(super) struct Calls<'m, I> {
    outputs: Outputs<'m, Groups<I>>,
    sent: Sent,
    signatures: Arc<[Signature]>,
    schemas: &'m mut [Option<SchemaRef>],
    again: &'m mut Again,
    is_over: bool,
}

/// What is known of the groups of one batch.
#[derive(Default)]
struct Answered {
    done: Vec<(Group, Vec<RecordBatch>)>,
    failed: Vec<Failed>,
}

struct Failed {
    group: Group,
    status: Status,
    stderr: Vec<u8>,
}

impl<'m, I: Iterator<Item = RecordBatch>> Calls<'m, I> {
    pub(super) fn new(functions: &'m mut Functions, name: &str, is_table: bool, batches: I, rows: usize) -> Self {
        let Functions { groups, again, signatures, schemas, .. } = functions;
        let (sent, signatures) = (Sent::default(), signatures.clone());
        let choice = Choice { signatures: signatures.clone(), name: name.into(), is_table, last: None };
        let groups_of = Groups { batches, choice, rows, present: None, sent: sent.clone(), is_over: false };
        Self { outputs: groups.map(groups_of), sent, signatures, schemas, again, is_over: false }
    }

    fn next_with<C>(&mut self, put_together: impl Fn(&mut Self, Answered, Group) -> Result<C>) -> Option<Result<C>> {
        if self.is_over {
            return None;
        }
        let called = self.next_answered().and_then(|answered| match answered {
            Some((answered, last)) => put_together(self, answered, last).map(Some),
            None => Ok(None),
        });
        self.is_over = !matches!(called, Ok(Some(_)));
        called.transpose()
    }

    /// Takes the answers for the next batch, with its last group.
    fn next_answered(&mut self) -> Result<Option<(Answered, Group)>> {
        let mut answered = Answered::default();
        loop {
            let output = self.outputs.next().transpose()?;
            let sent = self.sent.lock().pop_front();
            let (output, group) = match (output, sent.transpose()?) {
                (Some(output), Some(group)) => (output, group),
                (None, None) => return Ok(None),
                _ => return Err(Error::Internal("not as many outputs as groups".into())),
            };
            let last = group.is_last.then(|| group.clone());
            self.take(&mut answered, group, output)?;
            if let Some(last) = last {
                self.run_again(&mut answered)?;
                return Ok(Some((answered, last)));
            }
        }
    }

    fn take(&self, answered: &mut Answered, group: Group, output: Output) -> Result<()> {
        let Output { status, stdout, stderr } = output;
        let answer = match status.success() {
            true => wire::decode(stdout)
                .and_then(|answer| fitting(&group, self.signatures[group.function].is_table, answer)),
            // Smaller groups would be interrupted, too.
            false if matches!(status, Status::Interrupted) => return Err(Error::Interrupted),
            false => {
                answered.failed.push(Failed { group, status, stderr });
                return Ok(());
            }
        };
        match answer {
            Ok(Answer::Batches(batches)) => answered.done.push((group, batches)),
            Ok(Answer::Refused(message)) => return Err(self.error(group.function, message.into())),
            Err(error) => {
                let status =
                    Status::Failed { function: self.signatures[group.function].to_string(), source: error.into() };
                answered.failed.push(Failed { group, status, stderr });
            }
        }
        Ok(())
    }

    /// Runs the groups again that failed, in smaller ones, until each row that fails is alone.
    fn run_again(&mut self, answered: &mut Answered) -> Result<()> {
        loop {
            let (alone, failed) =
                std::mem::take(&mut answered.failed).into_iter().partition(|failed| failed.group.rows <= 1);
            answered.failed = alone;
            let failed: Vec<Failed> = failed;
            if failed.is_empty() {
                return Ok(());
            }
            let groups: Vec<Group> = failed.iter().flat_map(|failed| failed.group.cut(PARTS)).collect();
            for (group, output) in groups.iter().zip(self.run(&groups)?) {
                self.take(answered, group.clone(), output)?;
            }
        }
    }

    fn run(&mut self, groups: &[Group]) -> Result<Vec<Output>> {
        let encoded =
            groups.iter().map(|group| group.encode().map_err(|error| self.error(group.function, error.into())));
        let encoded: Vec<_> = encoded.collect::<Result<_>>()?;
        let outputs: Vec<Output> = self.again.mapper()?.map(encoded).collect::<Result<_>>()?;
        match outputs.len() == groups.len() {
            true => Ok(outputs),
            false => Err(Error::Internal("not as many outputs as groups".into())),
        }
    }

    fn scalars(&mut self, answered: Answered, last: Group) -> Result<Called> {
        let Answered { mut done, failed } = answered;
        let failures = self.failures(failed)?;
        let of_answer = done.first().and_then(|(_, batches)| batches.first()).map(RecordBatch::schema);
        let schema = match of_answer.or_else(|| self.schemas[last.function].clone()) {
            Some(schema) => schema,
            None => self.ask_for_schema(&last)?,
        };
        self.schemas[last.function] = Some(schema.clone());
        let schema = if failures.is_empty() { schema } else { nullable(&schema) };
        for failure in &failures {
            let nulls = null_row(&schema).map_err(|error| self.error(last.function, error.into()))?;
            done.push((Group { first: failure.row, rows: 1, ..last.clone() }, vec![nulls]));
        }
        let batch = self.joined(&schema, done, last.function)?;
        Ok(Called { batch, failures })
    }

    fn tables(&mut self, answered: Answered, last: Group) -> Result<TableCalled> {
        let Answered { done, failed } = answered;
        let failures = self.failures(failed)?;
        let schema = done.iter().flat_map(|(_, batches)| batches).next().map(RecordBatch::schema);
        let batch = schema.map(|schema| self.joined(&schema, done, last.function)).transpose()?;
        Ok(TableCalled { batch, failures })
    }

    /// Returns the failures of single rows, in order.
    fn failures(&self, failed: Vec<Failed>) -> Result<Vec<RowFailure>> {
        let failure = |Failed { group, status, stderr }: Failed| {
            let failure = RowFailure { row: group.first, status, stderr };
            match group.rows {
                0 => Err(self.error(group.function, format!("it fails for no rows at all: {failure}").into())),
                _ => Ok(failure),
            }
        };
        let mut failures = failed.into_iter().map(failure).collect::<Result<Vec<_>>>()?;
        failures.sort_by_key(|failure| failure.row);
        Ok(failures)
    }

    /// Calls a function for no rows, to see what columns it returns.
    fn ask_for_schema(&mut self, last: &Group) -> Result<SchemaRef> {
        let none = Group { first: 0, rows: 0, ..last.clone() };
        let mut answered = Answered::default();
        for output in self.run(std::slice::from_ref(&none))? {
            self.take(&mut answered, none.clone(), output)?;
        }
        let Answered { done, failed } = answered;
        self.failures(failed)?;
        let batch = done.first().and_then(|(_, batches)| batches.first());
        batch.map(RecordBatch::schema).ok_or_else(|| Error::Internal("no answer for no rows".into()))
    }

    fn joined(
        &self,
        schema: &SchemaRef,
        mut parts: Vec<(Group, Vec<RecordBatch>)>,
        function: usize,
    ) -> Result<RecordBatch> {
        parts.sort_by_key(|(group, _)| group.first);
        let mut batches: Vec<RecordBatch> = parts.into_iter().flat_map(|(_, batches)| batches).collect();
        let alike = |batch: &RecordBatch| {
            let fields = batch.schema_ref().fields().iter().map(|field| (field.name(), field.data_type()));
            fields.eq(schema.fields().iter().map(|field| (field.name(), field.data_type())))
        };
        if !batches.iter().all(alike) {
            return Err(self.error(function, "it returned other columns for some rows than for others".into()));
        }
        if let [_] = batches[..] {
            return batches.pop().ok_or_else(|| Error::Internal("no batch".into()));
        }
        concat_batches(schema, &batches).map_err(|error| match error {
            ArrowError::OffsetOverflowError(_) => {
                self.error(function, "its results for this batch are larger than 2 GiB: give it smaller batches".into())
            }
            error => self.error(function, error.into()),
        })
    }

    fn error(&self, function: usize, source: AnyError) -> Error {
        Error::Arrow { function: self.signatures[function].to_string(), source }
    }
}

/// Checks that an answer is one for this group, and numbers the rows of a table as those of the whole batch.
fn fitting(group: &Group, is_table: bool, answer: Answer) -> Result<Answer, ArrowError> {
    let Answer::Batches(batches) = answer else { return Ok(answer) };
    if !is_table {
        return match &batches[..] {
            [batch] if batch.num_rows() == group.rows => Ok(Answer::Batches(batches)),
            [batch] => Err(wrong(format!("it returned {} results for {} rows", batch.num_rows(), group.rows))),
            _ => Err(wrong("it returned several batches".into())),
        };
    }
    let numbered = batches.into_iter().map(|batch| {
        let rows = batch.columns().first().and_then(|rows| rows.as_any().downcast_ref::<Int32Array>());
        let Some(rows) = rows else { return Err(wrong("its first column has no numbers of rows".into())) };
        let first = i32::try_from(group.first).map_err(|_| wrong("too many rows".into()))?;
        if rows.null_count() > 0 || rows.values().iter().any(|row| *row < 0 || *row as usize >= group.rows) {
            return Err(wrong("it returned values for rows that there are not".into()));
        }
        let rows = rows.values().iter().map(|row| first.checked_add(*row)).collect::<Option<Vec<i32>>>();
        let Some(rows) = rows else { return Err(wrong("too many rows".into())) };
        let mut columns = batch.columns().to_vec();
        columns[0] = Arc::new(Int32Array::from(rows)) as ArrayRef;
        RecordBatch::try_new(batch.schema(), columns)
    });
    Ok(Answer::Batches(numbered.collect::<Result<_, _>>()?))
}

fn wrong(what: String) -> ArrowError {
    ArrowError::InvalidArgumentError(what)
}

fn nullable(schema: &Schema) -> SchemaRef {
    let fields: Vec<_> = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn null_row(schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = schema.fields().iter().map(|field| new_null_array(field.data_type(), 1)).collect();
    RecordBatch::try_new_with_options(schema.clone(), columns, &RecordBatchOptions::new().with_row_count(Some(1)))
}

impl<I> fmt::Debug for Calls<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").field("outputs", &self.outputs).finish_non_exhaustive()
    }
}
