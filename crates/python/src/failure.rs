//! Errors of gpu-run as exceptions. Their classes are in `python/gpu_run/_errors.py`.

use gpu_run::{Error, Output, Status};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyType};
use std::io;
use std::path::Path;

/// The exit code of the command `gpu-run` for a program that trapped, and for one that took too long.
const TRAPPED: i64 = 134;
const TIMED_OUT: i64 = 124;

fn class<'py>(py: Python<'py>, cell: &'static PyOnceLock<Py<PyType>>, name: &str) -> PyResult<Bound<'py, PyType>> {
    cell.import(py, "gpu_run._errors", name).cloned()
}

/// Returns an exception of the class `gpu_run.Error`.
pub(crate) fn error(message: impl Into<String>) -> PyErr {
    static ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let message = message.into();
    Python::attach(|py| match class(py, &ERROR, "Error") {
        Ok(class) => PyErr::from_type(class, message),
        Err(error) => error,
    })
}

pub(crate) fn internal(what: &str) -> PyErr {
    error(format!("internal error: {what}"))
}

/// Returns the exception for an error of the library.
pub(crate) fn of(failure: Error) -> PyErr {
    match failure {
        Error::Io { what, source } => match source.raw_os_error() {
            // Python makes the subclass of the number: FileNotFoundError, PermissionError.
            Some(number) => PyOSError::new_err((number, what)),
            None => error(format!("{what}: {source}")),
        },
        other => error(other.to_string()),
    }
}

/// Makes an error of the system's an exception that names the file: FileNotFoundError, PermissionError, …
pub(crate) fn with_path<T>(result: io::Result<T>, path: &Path) -> PyResult<T> {
    result.map_err(|error| match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or(&text).to_owned();
            PyOSError::new_err((number, text, path.to_path_buf()))
        }
        None => self::error(format!("{}: {error}", path.display())),
    })
}

/// Returns the exit code, as the command `gpu-run` would have it, and what happened if the program did not just exit.
pub(crate) fn ending(status: &Status) -> (i64, Option<String>) {
    match status {
        Status::Exited(code) => (i64::from(*code), None),
        Status::TimedOut => (TIMED_OUT, Some(status.to_string())),
        _ => (TRAPPED, Some(status.to_string())),
    }
}

/// Returns the exception for a record that failed.
pub(crate) fn of_record(py: Python<'_>, record: u64, output: &Output) -> PyResult<PyErr> {
    of_status(py, record, &output.status, &output.stdout, &output.stderr)
}

pub(crate) fn of_status(py: Python<'_>, record: u64, status: &Status, stdout: &[u8], stderr: &[u8]) -> PyResult<PyErr> {
    static FAILED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static LATE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = match status {
        Status::TimedOut => class(py, &LATE, "ProgramTimeout")?,
        _ => class(py, &FAILED, "ProgramError")?,
    };
    let (code, what) = ending(status);
    let what = what.unwrap_or_else(|| status.to_string());
    let exception = class.call1((what, code, PyBytes::new(py, stdout), PyBytes::new(py, stderr), record))?;
    Ok(PyErr::from_value(exception))
}
