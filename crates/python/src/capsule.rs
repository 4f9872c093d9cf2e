//! Arrow arrays from and to other libraries of this process, by the PyCapsule interface: no value is copied.

#![allow(unsafe_code)] // structures of Arrow's C interface; each block says why it is sound

use crate::failure;
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, ArrayReader, ArrayRef, StructArray, make_array, new_empty_array};
use arrow_buffer::NullBuffer;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_udf_array as udf; // the version that arrow-udf uses
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::CStr;
use std::fmt::Display;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// Arrays of one type, one after the other.
pub(crate) enum Arrays {
    One(Option<ArrayRef>),
    Stream(ArrayStreamReader),
}

impl Arrays {
    /// Takes what an object offers; `None` if it knows nothing of Arrow.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = object.py();
        if let Some(method) = object.getattr_opt(intern!(py, "__arrow_c_stream__"))? {
            return Ok(Some(Self::Stream(stream(&method.call0()?)?)));
        }
        match object.getattr_opt(intern!(py, "__arrow_c_array__"))? {
            Some(method) => {
                let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = method.call0()?.extract()?;
                Ok(Some(Self::One(Some(import(&schema, &array)?))))
            }
            None => Ok(None),
        }
    }

    /// Returns the next array. The producer may compute it, and may need Python for that.
    pub(crate) fn next(&mut self, py: Python<'_>) -> PyResult<Option<ArrayRef>> {
        match self {
            Self::One(array) => Ok(array.take()),
            Self::Stream(reader) => py.detach(|| reader.next()).transpose().map_err(of_arrow),
        }
    }

    /// Returns the arrays that are left; an empty one if there are none.
    pub(crate) fn all(&mut self, py: Python<'_>) -> PyResult<Vec<ArrayRef>> {
        let mut arrays = Vec::new();
        while let Some(array) = self.next(py)? {
            arrays.push(array);
        }
        if let (true, Self::Stream(reader)) = (arrays.is_empty(), self) {
            arrays.push(new_empty_array(reader.field().data_type()));
        }
        Ok(arrays)
    }
}

/// Returns a column of a table. Where a row is null, the column is, too.
pub(crate) fn column(table: &StructArray, column: usize) -> PyResult<ArrayRef> {
    let column = table.column(column);
    let (Some(rows), false) = (table.nulls(), *column.data_type() == DataType::Null) else { return Ok(column.clone()) };
    let nulls = NullBuffer::union(Some(rows), column.nulls());
    Ok(make_array(column.to_data().into_builder().nulls(nulls).build().map_err(of_arrow)?))
}

pub(crate) fn of_arrow(error: impl Display) -> PyErr {
    failure::error(error.to_string())
}

/// Returns what a capsule of this name holds.
fn content<T>(object: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut T> {
    let Ok(capsule) = object.cast::<PyCapsule>() else {
        let what = format!("a capsule with an {} was expected", name.to_string_lossy());
        return Err(PyTypeError::new_err(what));
    };
    Ok(capsule.pointer_checked(Some(name))?.as_ptr().cast())
}

fn stream(capsule: &Bound<'_, PyAny>) -> PyResult<ArrayStreamReader> {
    let stream = content::<FFI_ArrowArrayStream>(capsule, STREAM)?;
    // SAFETY: by the PyCapsule interface, a capsule of this name holds such a structure while it lives, and the caller holds the capsule.
    // What is taken out is marked as released in it, so that the capsule's destructor does nothing.
    unsafe { ArrayStreamReader::from_raw(stream) }.map_err(of_arrow)
}

fn import(schema: &Bound<'_, PyAny>, array: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let schema = content::<FFI_ArrowSchema>(schema, SCHEMA)?;
    let array = content::<FFI_ArrowArray>(array, ARRAY)?;
    // SAFETY: by the PyCapsule interface, capsules of these names hold such structures while they live, and the caller holds both. The
    // array is taken out and marked as released in its capsule; the schema is only read.
    let (array, schema) = unsafe { (FFI_ArrowArray::from_raw(array), &*schema) };
    if array.is_released() {
        return Err(failure::error("the capsule with the array was used before: it can be used once"));
    }
    // SAFETY: as above, both are what the interface says.
    let data = unsafe { arrow_array::ffi::from_ffi(array, schema) };
    Ok(make_array(data.map_err(of_arrow)?))
}

/// Returns capsules with the type and the array, which share the array's buffers.
pub(crate) fn export<'py>(
    py: Python<'py>,
    array: &dyn Array,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let (array, schema) = arrow_array::ffi::to_ffi(&array.to_data()).map_err(of_arrow)?;
    Ok((PyCapsule::new_with_value(py, schema, SCHEMA)?, PyCapsule::new_with_value(py, array, ARRAY)?))
}

pub(crate) fn export_type<'py>(py: Python<'py>, ty: &DataType) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowSchema::try_from(ty).map_err(of_arrow)?, SCHEMA)
}

// Both versions have the structures of Arrow's C interface, whose layout it promises never to change.
const _: () = assert!(size_of::<FFI_ArrowArray>() == size_of::<udf::ffi::FFI_ArrowArray>());
const _: () = assert!(size_of::<FFI_ArrowSchema>() == size_of::<udf::ffi::FFI_ArrowSchema>());

/// Returns the same array, with the same buffers, for arrow-udf.
pub(crate) fn to_udf(array: &dyn Array) -> PyResult<udf::ArrayRef> {
    let (mut array, mut schema) = arrow_array::ffi::to_ffi(&array.to_data()).map_err(of_arrow)?;
    // SAFETY: both are structures of Arrow's C interface, as above, which were just made; `from_raw` takes out what they hold, and marks
    // them as released.
    let data = unsafe {
        let array = udf::ffi::FFI_ArrowArray::from_raw((&raw mut array).cast());
        let schema = udf::ffi::FFI_ArrowSchema::from_raw((&raw mut schema).cast());
        udf::ffi::from_ffi(array, &schema)
    };
    Ok(udf::make_array(data.map_err(of_arrow)?))
}

/// Returns the same array, with the same buffers, from arrow-udf.
pub(crate) fn of_udf(array: &dyn udf::Array) -> PyResult<ArrayRef> {
    let (mut array, mut schema) = udf::ffi::to_ffi(&array.to_data()).map_err(of_arrow)?;
    // SAFETY: as above, the other way round.
    let data = unsafe {
        let array = FFI_ArrowArray::from_raw((&raw mut array).cast());
        let schema = FFI_ArrowSchema::from_raw((&raw mut schema).cast());
        arrow_array::ffi::from_ffi(array, &schema)
    };
    Ok(make_array(data.map_err(of_arrow)?))
}
