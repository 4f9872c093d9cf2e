//! Which columns a function made with arrow-udf takes, and how others become such.

use arrow_array::{Array, ArrayRef};
use arrow_schema::{ArrowError, DataType, Field, Fields, IntervalUnit, TimeUnit};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// How well a column fits a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    Same,
    /// The same values, in another way.
    Like,
    /// Each value must be one that the parameter can have.
    Checked,
}

/// Returns the field of a parameter that is given such a column, by arrow-udf's name for its type, which is also the field's; `None` if it
/// is a struct, but the column is none.
pub(crate) fn parameter(name: &str, given: &DataType) -> Option<Field> {
    if let Some(element) = name.strip_suffix("[]") {
        let given = element_of(given).map_or(&DataType::Null, |element| element.data_type());
        let element = parameter(element, given)?;
        return Some(Field::new(name, DataType::List(Arc::new(element)), true));
    }
    let ty = match name {
        "null" => DataType::Null,
        "boolean" => DataType::Boolean,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" => DataType::Int64,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "float32" => DataType::Float32,
        "float64" => DataType::Float64,
        "date32" => DataType::Date32,
        "time64" => DataType::Time64(TimeUnit::Microsecond),
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "interval" => DataType::Interval(IntervalUnit::MonthDayNano),
        "string" | "decimal" | "json" => DataType::Utf8,
        "largestring" => DataType::LargeUtf8,
        "binary" => DataType::Binary,
        "largebinary" => DataType::LargeBinary,
        // Columns behind those that have a type, and structs, are taken as they are.
        "..." => plain(given),
        _ => match given {
            DataType::Struct(_) => plain(given),
            _ => return None,
        },
    };
    let mut metadata = HashMap::new();
    if matches!(name, "decimal" | "json") {
        metadata.insert("ARROW:extension:name".to_owned(), format!("arrowudf.{name}"));
    }
    Some(Field::new(name, ty, true).with_metadata(metadata))
}

/// Returns the element of a list's type.
fn element_of(ty: &DataType) -> Option<&Field> {
    match ty {
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _) => Some(element),
        _ => None,
    }
}

/// Returns a type without views, dictionaries and offsets of 64 bits.
fn plain(ty: &DataType) -> DataType {
    let field = |field: &Field| Arc::new(field.clone().with_data_type(plain(field.data_type())));
    match ty {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Dictionary(_, values) => plain(values),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|member| field(member)).collect::<Fields>()),
        other => match element_of(other) {
            Some(element) => DataType::List(field(element)),
            None => other.clone(),
        },
    }
}

/// Returns how well a column of this type fits, if it does.
pub(crate) fn fit(from: &DataType, to: &Field) -> Option<Fit> {
    use DataType::*;
    let is_text = matches!(from, Utf8 | LargeUtf8 | Utf8View);
    let is_bytes = matches!(from, Binary | LargeBinary | BinaryView | FixedSizeBinary(_));
    let has_meaning = !to.metadata().is_empty();
    match (from, to.data_type()) {
        (Dictionary(_, values), _) => Some(if fit(values, to)? == Fit::Same { Fit::Like } else { Fit::Checked }),
        (from, List(element)) if let Some(given) = element_of(from) => {
            let fit = fit(given.data_type(), element)?;
            Some(if matches!(from, List(_)) { fit } else { fit.max(Fit::Like) })
        }
        (from, to) if from == to => Some(if has_meaning { Fit::Like } else { Fit::Same }),
        (Null, _) | (Struct(_), Struct(_)) => Some(Fit::Like),
        (Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..), Utf8) if to.name() == "decimal" => {
            Some(Fit::Like)
        }
        (_, Utf8) if is_text && !has_meaning => Some(Fit::Like),
        (_, Utf8 | LargeUtf8) if is_text => Some(Fit::Checked),
        (_, Binary) if is_bytes => Some(Fit::Like),
        (_, LargeBinary) if is_bytes => Some(Fit::Checked),
        (Float16, Float32 | Float64) | (Float32, Float64) => Some(Fit::Checked),
        (from, to) if from.is_integer() && (to.is_integer() || to.is_floating()) => Some(Fit::Checked),
        (Date64, Date32) | (Timestamp(_, None), Timestamp(..)) | (Time32(_) | Time64(_), Time64(_)) => {
            Some(Fit::Checked)
        }
        _ => None,
    }
}

/// Makes a column, which begins with row `first`, what a parameter takes. `place` says in errors which one it is.
pub(crate) fn cast(array: &ArrayRef, to: &Field, place: &str, first: usize) -> PyResult<ArrayRef> {
    let failed = |error: ArrowError| PyTypeError::new_err(format!("{place} is {}: {error}", to.name()));
    let array = match array.data_type() {
        DataType::Dictionary(_, values) => &arrow_cast::cast(array, values).map_err(failed)?,
        _ => array,
    };
    let from = array.data_type();
    if from == to.data_type() {
        return Ok(array.clone());
    }
    let Some(fit) = fit(from, to) else {
        let what = format!("{place} is {}, but the column has the type {from}: cast it", to.name());
        return Err(PyTypeError::new_err(what));
    };
    // What cannot be cast is null then.
    let made = arrow_cast::cast(array, to.data_type()).map_err(failed)?;
    if fit == Fit::Checked {
        let back = arrow_cast::cast(&made, from).map_err(failed)?;
        if back.to_data() != array.to_data() {
            let differs = |row: &usize| array.slice(*row, 1).to_data() != back.slice(*row, 1).to_data();
            let row = first + (0..array.len()).find(differs).unwrap_or_default();
            let what = format!("{place} is {}: the value in row {row} is none", to.name());
            return Err(PyOverflowError::new_err(what));
        }
    }
    Ok(made)
}
