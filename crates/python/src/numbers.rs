//! Columns of numbers, as the words of a function's parameters and results.

use arrow_array::builder::BooleanBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use gpu_run::ValueType;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

/// What a number of a function is to its user: WebAssembly's integers have no sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    I32,
    U32,
    /// Either, as whoever calls has it.
    Any32,
    I64,
    U64,
    Any64,
    F32,
    F64,
    Bool,
}

impl Number {
    /// Reads a name; `ty` is what the function has there.
    pub(crate) fn named(name: &str, ty: ValueType) -> PyResult<Self> {
        let number = match name {
            "i32" | "int32" => Self::I32,
            "u32" | "uint32" => Self::U32,
            "i64" | "int64" => Self::I64,
            "u64" | "uint64" => Self::U64,
            "f32" | "float32" => Self::F32,
            "f64" | "float64" => Self::F64,
            "bool" => Self::Bool,
            _ => {
                let what = format!("`{name}` is no type of a number: i32, u32, i64, u64, f32, f64 or bool");
                return Err(PyValueError::new_err(what));
            }
        };
        match number.ty() == ty {
            true => Ok(number),
            false => Err(PyTypeError::new_err(format!("`{name}` is not what the function has there: {ty}"))),
        }
    }

    pub(crate) fn usual(ty: ValueType) -> Self {
        match ty {
            ValueType::I64 => Self::Any64,
            ValueType::F32 => Self::F32,
            ValueType::F64 => Self::F64,
            _ => Self::Any32,
        }
    }

    fn ty(self) -> ValueType {
        match self {
            Self::I32 | Self::U32 | Self::Any32 | Self::Bool => ValueType::I32,
            Self::I64 | Self::U64 | Self::Any64 => ValueType::I64,
            Self::F32 => ValueType::F32,
            Self::F64 => ValueType::F64,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::I32 | Self::Any32 => "i32",
            Self::U32 => "u32",
            Self::I64 | Self::Any64 => "i64",
            Self::U64 => "u64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Bool => "bool",
        }
    }

    /// Returns the word of an integer, if it is one of these numbers.
    fn word_of(self, value: i128) -> Option<u64> {
        let range = match self {
            Self::I32 => i128::from(i32::MIN)..=i128::from(i32::MAX),
            Self::U32 => 0..=i128::from(u32::MAX),
            Self::Any32 => i128::from(i32::MIN)..=i128::from(u32::MAX),
            Self::I64 => i128::from(i64::MIN)..=i128::from(i64::MAX),
            Self::U64 => 0..=i128::from(u64::MAX),
            Self::Any64 => i128::from(i64::MIN)..=i128::from(u64::MAX),
            Self::Bool => 0..=1,
            Self::F32 => return (value as f32 as i128 == value).then(|| u64::from((value as f32).to_bits())),
            Self::F64 => return (value as f64 as i128 == value).then(|| (value as f64).to_bits()),
        };
        let bits = if self.ty() == ValueType::I32 { u64::from(value as u32) } else { value as u64 };
        range.contains(&value).then_some(bits)
    }

    /// Returns the column of such results.
    pub(crate) fn column(self, words: Vec<u64>, nulls: Option<NullBuffer>) -> ArrayRef {
        match self {
            Self::I32 | Self::Any32 => made::<Int32Type>(words, nulls, |word| word as i32),
            Self::U32 => made::<UInt32Type>(words, nulls, |word| word as u32),
            Self::I64 | Self::Any64 => made::<Int64Type>(words, nulls, |word| word as i64),
            Self::U64 => made::<UInt64Type>(words, nulls, |word| word),
            Self::F32 => made::<Float32Type>(words, nulls, |word| f32::from_bits(word as u32)),
            Self::F64 => made::<Float64Type>(words, nulls, f64::from_bits),
            Self::Bool => {
                let mut column = BooleanBuilder::with_capacity(words.len());
                for (row, word) in words.into_iter().enumerate() {
                    let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                    column.append_option((!is_null).then_some(word != 0));
                }
                Arc::new(column.finish())
            }
        }
    }
}

fn made<T: ArrowPrimitiveType>(words: Vec<u64>, nulls: Option<NullBuffer>, of: impl Fn(u64) -> T::Native) -> ArrayRef {
    let values: ScalarBuffer<T::Native> = words.into_iter().map(of).collect();
    Arc::new(PrimitiveArray::<T>::new(values, nulls))
}

/// A column of parameters.
pub(crate) struct Words {
    pub(crate) words: Vec<u64>,
    pub(crate) nulls: Option<NullBuffer>,
}

/// Reads the words of an array of Arrow's; `place` says in errors which parameter it is for.
pub(crate) fn of_array(array: &ArrayRef, number: Number, place: &str) -> PyResult<Words> {
    let words = match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean().values();
            integers(values.iter().map(i128::from), number, array)
        }
        DataType::Int8 => of_integers::<Int8Type>(array, number),
        DataType::Int16 => of_integers::<Int16Type>(array, number),
        DataType::Int32 => of_integers::<Int32Type>(array, number),
        DataType::Int64 => of_integers::<Int64Type>(array, number),
        DataType::UInt8 => of_integers::<UInt8Type>(array, number),
        DataType::UInt16 => of_integers::<UInt16Type>(array, number),
        DataType::UInt32 => of_integers::<UInt32Type>(array, number),
        DataType::UInt64 => of_integers::<UInt64Type>(array, number),
        DataType::Float32 if matches!(number, Number::F32 | Number::F64) => {
            let values = array.as_primitive::<Float32Type>().values();
            let is_single = number == Number::F32;
            let word = |value: &f32| if is_single { u64::from(value.to_bits()) } else { f64::from(*value).to_bits() };
            Ok(values.iter().map(word).collect())
        }
        DataType::Float64 if number == Number::F64 => {
            Ok(array.as_primitive::<Float64Type>().values().iter().map(|value| value.to_bits()).collect())
        }
        other => {
            let what = format!("{place} is {}, but the column has the type {other}: cast it", number.name());
            return Err(PyTypeError::new_err(what));
        }
    };
    let too_large =
        |row| PyOverflowError::new_err(format!("{place} is {}: the value in row {row} is none", number.name()));
    Ok(Words { words: words.map_err(too_large)?, nulls: array.nulls().cloned() })
}

fn of_integers<T: ArrowPrimitiveType>(array: &ArrayRef, number: Number) -> Result<Vec<u64>, usize>
where
    i128: From<T::Native>,
{
    integers(array.as_primitive::<T>().values().iter().map(|value| i128::from(*value)), number, array)
}

/// Returns the words, or the row whose value is no such number.
fn integers(values: impl Iterator<Item = i128>, number: Number, array: &ArrayRef) -> Result<Vec<u64>, usize> {
    let word = |(row, value)| match number.word_of(value) {
        Some(word) => Ok(word),
        None if array.is_null(row) => Ok(0),
        None => Err(row),
    };
    values.enumerate().map(word).collect()
}

/// Reads one of Python's numbers; `None` is null.
pub(crate) fn of_object(value: &Bound<'_, PyAny>, number: Number, place: &str, row: usize) -> PyResult<Option<u64>> {
    if value.is_none() {
        return Ok(None);
    }
    let wrong = |_| {
        let ty = value.get_type();
        PyTypeError::new_err(format!("{place} is {}, but the value in row {row} is of the type {ty}", number.name()))
    };
    if let (Number::F32 | Number::F64, Ok(float)) = (number, value.extract::<f64>()) {
        return Ok(Some(if number == Number::F32 { u64::from((float as f32).to_bits()) } else { float.to_bits() }));
    }
    let integer = value.extract::<i128>().map_err(wrong)?;
    let too_large =
        || PyOverflowError::new_err(format!("{place} is {}: {integer} in row {row} is none", number.name()));
    number.word_of(integer).map(Some).ok_or_else(too_large)
}
