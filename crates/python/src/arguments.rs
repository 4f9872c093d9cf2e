//! What a function is called with: columns of Arrow's, Python's iterables, and values that are the same in each row.

use crate::capsule::{self, Arrays};
use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyString, PyTuple};

pub(crate) enum Argument<'py> {
    /// One array at least, all of one type.
    Column(Vec<ArrayRef>),
    Iterable(Bound<'py, PyAny>),
    Constant(Bound<'py, PyAny>),
}

/// Reads the arguments of a call. A table stands for its columns; `takes_struct` says whether the function has a parameter that is a struct.
pub(crate) fn arguments<'py>(
    py: Python<'py>,
    args: &Bound<'py, PyTuple>,
    takes_struct: bool,
) -> PyResult<Vec<Argument<'py>>> {
    let mut arguments = Vec::new();
    for arg in args {
        if arg.is_instance_of::<PyInt>()
            || arg.is_instance_of::<PyFloat>()
            || arg.is_instance_of::<PyString>()
            || arg.is_instance_of::<PyBytes>()
        {
            arguments.push(Argument::Constant(arg));
            continue;
        }
        let Some(mut arrays) = Arrays::of(&arg)? else {
            arguments.push(Argument::Iterable(arg));
            continue;
        };
        let arrays = arrays.all(py)?;
        match &arrays[..] {
            [first, ..] if !takes_struct && let Some(table) = first.as_struct_opt() => {
                let columns = table.num_columns();
                if args.len() > 1 && columns != 1 {
                    let what =
                        format!("a table of {columns} columns cannot be one of several arguments: pass the columns");
                    return Err(PyTypeError::new_err(what));
                }
                for column in 0..columns {
                    let of_table = |table: &ArrayRef| capsule::column(table.as_struct(), column);
                    arguments.push(Argument::Column(arrays.iter().map(of_table).collect::<PyResult<_>>()?));
                }
            }
            _ => arguments.push(Argument::Column(arrays)),
        }
    }
    Ok(arguments)
}

/// Returns how many rows there are, if columns have these lengths; `None` stands for a value that is the same in each row.
pub(crate) fn rows(function: &str, lengths: &[Option<usize>]) -> PyResult<usize> {
    let mut columns = lengths.iter().enumerate().filter_map(|(i, length)| Some((i, (*length)?)));
    let Some((first, rows)) = columns.next() else {
        return match lengths {
            [] => Err(PyTypeError::new_err(format!("`{function}` has no parameters: there are no rows"))),
            _ => Ok(1),
        };
    };
    match columns.find(|(_, length)| *length != rows) {
        Some((i, other)) => {
            let what = format!("column {first} has {rows} rows, but column {i} has {other}");
            Err(PyValueError::new_err(what))
        }
        None => Ok(rows),
    }
}
