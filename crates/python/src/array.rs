//! Columns of results, as other libraries take them: Arrow arrays that share their buffers.

use crate::capsule;
use crate::failure;
use crate::to_python::{self, type_name};
use arrow_array::{Array as _, ArrayRef, GenericBinaryArray, GenericStringArray, OffsetSizeTrait};
use arrow_buffer::{Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use std::sync::Arc;

/// The type of a column of outputs.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Binary,
    String,
    LargeBinary,
    LargeString,
}

impl Kind {
    pub(crate) fn of(name: &str) -> PyResult<Self> {
        match name {
            "binary" => Ok(Self::Binary),
            "string" => Ok(Self::String),
            "large_binary" => Ok(Self::LargeBinary),
            "large_string" => Ok(Self::LargeString),
            _ => {
                let what = format!("`{name}` is no type of outputs: binary, string, large_binary or large_string");
                Err(PyValueError::new_err(what))
            }
        }
    }

    fn is_text(self) -> bool {
        matches!(self, Self::String | Self::LargeString)
    }

    fn is_large(self) -> bool {
        matches!(self, Self::LargeBinary | Self::LargeString)
    }

    pub(crate) fn builder(self) -> Builder {
        Builder { kind: self, bytes: Vec::new(), ends: vec![0], valid: NullBufferBuilder::new(0) }
    }
}

/// A column that grows.
pub(crate) struct Builder {
    kind: Kind,
    bytes: Vec<u8>,
    ends: Vec<i64>,
    valid: NullBufferBuilder,
}

impl Builder {
    /// Returns whether the value is one of the column's type.
    pub(crate) fn put(&mut self, value: &[u8]) -> PyResult<bool> {
        if self.kind.is_text() && std::str::from_utf8(value).is_err() {
            return Ok(false);
        }
        let end = self.bytes.len() + value.len();
        if !self.kind.is_large() && i32::try_from(end).is_err() {
            return Err(failure::error(
                "the outputs have more than 2 GiB together: ask for the type large_binary or large_string",
            ));
        }
        self.bytes.extend_from_slice(value);
        self.ends.push(end as i64);
        self.valid.append_non_null();
        Ok(true)
    }

    pub(crate) fn put_null(&mut self) {
        self.ends.push(self.bytes.len() as i64);
        self.valid.append_null();
    }

    pub(crate) fn finish(mut self) -> ArrayRef {
        let (values, nulls) = (Buffer::from(self.bytes), self.valid.finish());
        match self.kind {
            Kind::Binary => Arc::new(GenericBinaryArray::new(offsets::<i32>(&self.ends), values, nulls)),
            Kind::LargeBinary => Arc::new(GenericBinaryArray::new(offsets::<i64>(&self.ends), values, nulls)),
            Kind::String => Arc::new(GenericStringArray::new(offsets::<i32>(&self.ends), values, nulls)),
            Kind::LargeString => Arc::new(GenericStringArray::new(offsets::<i64>(&self.ends), values, nulls)),
        }
    }
}

fn offsets<O: OffsetSizeTrait>(ends: &[i64]) -> OffsetBuffer<O> {
    OffsetBuffer::new(ends.iter().map(|end| O::usize_as(*end as usize)).collect::<ScalarBuffer<O>>())
}

/// A column of results. Whatever takes Arrow's arrays takes it: `pyarrow.array`, `polars.Series`, DuckDB, pandas.
#[pyclass(frozen, module = "gpu_run")]
pub(crate) struct Array {
    array: ArrayRef,
    errors: Vec<Py<PyAny>>,
}

impl Array {
    pub(crate) fn new(array: ArrayRef, errors: Vec<Py<PyAny>>) -> Self {
        Self { array, errors }
    }
}

#[pymethods]
impl Array {
    /// Arrow's name for the type of the values.
    #[getter]
    fn r#type(&self) -> String {
        type_name(self.array.data_type())
    }

    #[getter]
    fn null_count(&self) -> usize {
        self.array.null_count()
    }

    /// The errors of records that failed, in order, each with the number of its record.
    #[getter]
    fn errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.errors)
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }

    fn __repr__(&self) -> String {
        format!("<gpu_run.Array of {} values, {}>", self.array.len(), self.r#type())
    }

    /// The values as Python's.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        to_python::values(py, &self.array)
    }

    /// The same array as one of pyarrow's, which must be installed.
    fn to_pyarrow<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("pyarrow")?.call_method1("array", (this,))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // By the interface, a request is no demand.
        let _ = requested_schema;
        capsule::export(py, &self.array)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::export_type(py, self.array.data_type())
    }
}
