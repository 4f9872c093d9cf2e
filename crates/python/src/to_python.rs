//! The values of columns as Python's, and the names of their types as pyarrow has them.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType,
    Time64MicrosecondType, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use pyo3::{IntoPyObjectExt, intern};

/// The day 1970-01-01, as Python counts days.
const FIRST_DAY: i32 = 719_163;

/// Returns an array's values as Python's.
pub(crate) fn values<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for row in 0..array.len() {
        list.append(value(py, array, row)?)?;
    }
    Ok(list)
}

fn value<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    macro_rules! number {
        ($type:ty) => {
            array.as_primitive::<$type>().value(row).into_bound_py_any(py)
        };
    }
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match array.data_type() {
        DataType::Null => Ok(py.None().into_bound(py)),
        DataType::Utf8 => array.as_string::<i32>().value(row).into_bound_py_any(py),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into_bound_py_any(py),
        DataType::Binary => Ok(PyBytes::new(py, array.as_binary::<i32>().value(row)).into_any()),
        DataType::LargeBinary => Ok(PyBytes::new(py, array.as_binary::<i64>().value(row)).into_any()),
        DataType::Boolean => array.as_boolean().value(row).into_bound_py_any(py),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Date32 => {
            let day = i64::from(array.as_primitive::<Date32Type>().value(row)) + i64::from(FIRST_DAY);
            py.import("datetime")?.getattr(intern!(py, "date"))?.call_method1(intern!(py, "fromordinal"), (day,))
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            let time = since_1970(py, array.as_primitive::<Time64MicrosecondType>().value(row))?;
            time.call_method0(intern!(py, "time"))
        }
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            since_1970(py, array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let interval = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            (interval.months, interval.days, interval.nanoseconds).into_bound_py_any(py)
        }
        DataType::List(_) => Ok(values(py, &array.as_list::<i32>().value(row))?.into_any()),
        DataType::Struct(fields) => {
            let members = PyDict::new(py);
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                members.set_item(field.name(), value(py, column, row)?)?;
            }
            Ok(members.into_any())
        }
        other => Err(PyTypeError::new_err(format!("values of the type {other}"))),
    }
}

fn since_1970(py: Python<'_>, microseconds: i64) -> PyResult<Bound<'_, PyAny>> {
    let module = py.import("datetime")?;
    let first = module.getattr(intern!(py, "datetime"))?.call1((1970, 1, 1))?;
    first.add(module.getattr(intern!(py, "timedelta"))?.call1((0, 0, microseconds))?)
}

pub(crate) fn type_name(ty: &DataType) -> String {
    match ty {
        DataType::Utf8 => "string".into(),
        DataType::LargeUtf8 => "large_string".into(),
        DataType::Boolean => "bool".into(),
        DataType::Float32 => "float".into(),
        DataType::Float64 => "double".into(),
        DataType::LargeBinary => "large_binary".into(),
        DataType::Date32 => "date32[day]".into(),
        DataType::Time64(TimeUnit::Microsecond) => "time64[us]".into(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp[us]".into(),
        DataType::Interval(IntervalUnit::MonthDayNano) => "month_day_nano_interval".into(),
        DataType::List(field) => format!("list<{}: {}>", field.name(), type_name(field.data_type())),
        DataType::Struct(fields) => {
            let members = fields.iter().map(|field| format!("{}: {}", field.name(), type_name(field.data_type())));
            format!("struct<{}>", members.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string().to_lowercase(),
    }
}
