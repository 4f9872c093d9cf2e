//! Columns of Python's values.

use crate::fit::Fit;
use crate::text::bytes_of;
use arrow_array::builder::{BinaryBuilder, GenericByteBuilder, LargeBinaryBuilder, LargeStringBuilder, StringBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, ByteArrayType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BooleanArray, NullArray, PrimitiveArray};
use arrow_schema::{DataType, Field};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyMemoryView, PyString};
use std::sync::Arc;

/// Makes a column of such values; its field has the name of their type, as errors have it. `place` says which parameter it is for.
pub(crate) fn array(values: &[Bound<'_, PyAny>], to: &Field, place: &str) -> PyResult<ArrayRef> {
    macro_rules! numbers {
        ($type:ty) => {
            primitive::<$type>(values, to, place)
        };
    }
    match to.data_type() {
        DataType::Null => match values.iter().position(|value| !value.is_none()) {
            Some(row) => Err(wrong(&values[row], to, place, row)),
            None => Ok(Arc::new(NullArray::new(values.len()))),
        },
        DataType::Boolean => {
            let value = |(row, value): (usize, &Bound<'_, PyAny>)| of(value, to, place, row);
            Ok(Arc::new(values.iter().enumerate().map(value).collect::<PyResult<BooleanArray>>()?))
        }
        DataType::Int8 => numbers!(Int8Type),
        DataType::Int16 => numbers!(Int16Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::UInt8 => numbers!(UInt8Type),
        DataType::UInt16 => numbers!(UInt16Type),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt64 => numbers!(UInt64Type),
        DataType::Float32 => numbers!(Float32Type),
        DataType::Float64 => numbers!(Float64Type),
        DataType::Utf8 => texts(StringBuilder::new(), values, to, place),
        DataType::LargeUtf8 => texts(LargeStringBuilder::new(), values, to, place),
        DataType::Binary => bytes(BinaryBuilder::new(), values, to, place),
        DataType::LargeBinary => bytes(LargeBinaryBuilder::new(), values, to, place),
        _ => {
            let name = to.name();
            let what = format!("{place} is {name}: pass a column of Arrow's, such as that of pyarrow.array");
            Err(PyTypeError::new_err(what))
        }
    }
}

/// Returns how well a column of such values fits; the first that is not `None` speaks for all.
pub(crate) fn fit(values: &[Bound<'_, PyAny>], to: &Field) -> Option<Fit> {
    let Some(value) = values.iter().find(|value| !value.is_none()) else { return Some(Fit::Same) };
    let ty = to.data_type();
    let has_meaning = !to.metadata().is_empty();
    if value.is_instance_of::<PyBool>() {
        (*ty == DataType::Boolean).then_some(Fit::Same)
    } else if value.is_instance_of::<PyString>() {
        match ty {
            DataType::Utf8 if !has_meaning => Some(Fit::Same),
            DataType::Utf8 | DataType::LargeUtf8 => Some(Fit::Checked),
            _ => None,
        }
    } else if value.extract::<i128>().is_ok() {
        match ty {
            _ if ty.is_integer() => Some(Fit::Like),
            DataType::Utf8 if to.name() == "decimal" => Some(Fit::Checked),
            _ => ty.is_floating().then_some(Fit::Checked),
        }
    } else if value.extract::<f64>().is_ok() {
        match ty {
            DataType::Utf8 if to.name() == "decimal" => Some(Fit::Like),
            _ => ty.is_floating().then_some(Fit::Like),
        }
    } else if value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.is_instance_of::<PyMemoryView>()
    {
        match ty {
            DataType::Binary => Some(Fit::Like),
            DataType::LargeBinary => Some(Fit::Checked),
            _ => None,
        }
    } else {
        None
    }
}

fn wrong(value: &Bound<'_, PyAny>, to: &Field, place: &str, row: usize) -> PyErr {
    let ty = value.get_type();
    PyTypeError::new_err(format!("{place} is {}, but the value in row {row} is of the type {ty}", to.name()))
}

fn of<'py, T>(value: &Bound<'py, PyAny>, to: &Field, place: &str, row: usize) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    if value.is_none() {
        return Ok(None);
    }
    value.extract::<T>().map(Some).map_err(|error| match error.is_instance_of::<PyOverflowError>(value.py()) {
        true => PyOverflowError::new_err(format!("{place} is {}: {value} in row {row} is none", to.name())),
        false => wrong(value, to, place, row),
    })
}

fn primitive<'py, T>(values: &[Bound<'py, PyAny>], to: &Field, place: &str) -> PyResult<ArrayRef>
where
    T: ArrowPrimitiveType,
    T::Native: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    let value = |(row, value)| of::<T::Native>(value, to, place, row);
    Ok(Arc::new(values.iter().enumerate().map(value).collect::<PyResult<PrimitiveArray<T>>>()?))
}

fn texts<T: ByteArrayType<Native = str>>(
    mut builder: GenericByteBuilder<T>,
    values: &[Bound<'_, PyAny>],
    to: &Field,
    place: &str,
) -> PyResult<ArrayRef> {
    for (row, value) in values.iter().enumerate() {
        if value.is_none() {
            builder.append_null();
            continue;
        }
        let text = match value.cast::<PyString>() {
            Ok(text) => text.clone(),
            // Numbers, and those of the module decimal.
            Err(_) if to.name() == "decimal" && value.extract::<f64>().is_ok() => value.str()?,
            Err(_) => return Err(wrong(value, to, place, row)),
        };
        builder.append_value(text.to_str()?);
    }
    Ok(Arc::new(builder.finish()))
}

fn bytes<T: ByteArrayType<Native = [u8]>>(
    mut builder: GenericByteBuilder<T>,
    values: &[Bound<'_, PyAny>],
    to: &Field,
    place: &str,
) -> PyResult<ArrayRef> {
    for (row, value) in values.iter().enumerate() {
        match bytes_of(value, row as u64, |bytes| builder.append_value(bytes)) {
            Ok(Some(())) if !value.is_instance_of::<PyString>() => {}
            Ok(None) => builder.append_null(),
            _ => return Err(wrong(value, to, place, row)),
        }
    }
    Ok(Arc::new(builder.finish()))
}
