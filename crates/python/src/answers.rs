//! What functions made with arrow-udf returned, as one column.

use crate::capsule;
use crate::failure;
use crate::fit;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int64Array, StructArray, new_empty_array};
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat;
use gpu_run::arrow::arrow_array::RecordBatch;
use gpu_run::arrow::{RowFailure, Signature};
use pyo3::prelude::*;
use std::sync::Arc;

/// What a function returned for the rows of a batch.
pub(crate) type Answer = (Option<RecordBatch>, Vec<RowFailure>);

/// The answers for all rows.
pub(crate) struct Whole {
    pub(crate) column: ArrayRef,
    /// Each with its row.
    pub(crate) errors: Vec<(usize, PyErr)>,
}

/// Puts the answers for batches together.
pub(crate) fn whole(
    py: Python<'_>,
    signature: &Signature,
    batches: &[RecordBatch],
    answers: Vec<Answer>,
) -> PyResult<Whole> {
    if answers.len() != batches.len() {
        return Err(failure::internal("not as many answers as batches"));
    }
    let (mut parts, mut errors, mut first) = (Vec::new(), Vec::new(), 0);
    for (batch, (answer, failures)) in batches.iter().zip(answers) {
        for failure in failures {
            let row = first + failure.row;
            errors.push((row, failure::of_status(py, row as u64, &failure.status, &[], &failure.stderr)?));
        }
        if let Some(answer) = answer {
            let columns =
                answer.columns().iter().map(|column| capsule::of_udf(column)).collect::<PyResult<Vec<_>>>()?;
            let name = answer.schema_ref().fields().get(1).map_or("", |field| field.name()).to_owned();
            let (part, rows, messages) = match (signature.is_table, &columns[..]) {
                (false, [results, messages @ ..]) => (results.clone(), None, messages.first()),
                (true, [rows, values, messages @ ..]) => {
                    let rows: Int64Array = rows.as_primitive::<Int32Type>().unary(|row| first as i64 + i64::from(row));
                    (table(rows.clone(), &name, values.clone()), Some(rows), messages.first())
                }
                _ => return Err(failure::internal("an answer without columns")),
            };
            // What the function returned as errors.
            if let Some(messages) = messages.and_then(|messages| messages.as_string_opt::<i32>()) {
                for (at, message) in messages.iter().enumerate() {
                    let Some(message) = message else { continue };
                    let row = rows.as_ref().map_or(first + at, |rows| rows.value(at) as usize);
                    let error = failure::error(format!("record {row}: {message}"));
                    error.value(py).setattr("record", row)?;
                    errors.push((row, error));
                }
            }
            parts.push(part);
        }
        first += batch.num_rows();
    }
    let column = match &parts[..] {
        [] => nothing(signature),
        [one] => one.clone(),
        several => {
            let several: Vec<_> = several.iter().map(|part| &**part).collect();
            let failed = |error| {
                failure::error(format!(
                    "the results cannot be one column, call `{}` for fewer rows: {error}",
                    signature.name
                ))
            };
            concat(&several).map_err(failed)?
        }
    };
    Ok(Whole { column, errors })
}

/// Makes a column of the rows that values are for, and the values.
fn table(rows: Int64Array, name: &str, values: ArrayRef) -> ArrayRef {
    let row = Arc::new(Field::new("row", DataType::Int64, false));
    let value = Arc::new(Field::new(name, values.data_type().clone(), true));
    Arc::new(StructArray::from(vec![(row, Arc::new(rows) as ArrayRef), (value, values)]))
}

/// The answer of a table function that has no values for any row.
fn nothing(signature: &Signature) -> ArrayRef {
    let ty =
        fit::parameter(&signature.result, &DataType::Null).map_or(DataType::Null, |field| field.data_type().clone());
    table(Int64Array::from(Vec::<i64>::new()), &signature.name, new_empty_array(&ty))
}
