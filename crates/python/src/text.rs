//! Arrow columns of text or bytes: records are parts of their buffers.

use crate::capsule::Arrays;
use crate::failure;
use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, ByteViewType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::types::{BinaryViewType, StringViewType};
use arrow_array::{Array, ArrayRef, GenericByteArray, GenericByteViewArray, StructArray};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer};
use arrow_schema::DataType;
use bytes::Bytes;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A view holds so many bytes of text itself; of longer ones, it says where they are.
const INLINE: u32 = 12;

/// A buffer of Arrow's, as something that [`Bytes`] can be parts of.
struct Shared(Buffer);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn shared(buffer: &Buffer) -> Bytes {
    Bytes::from_owner(Shared(buffer.clone()))
}

/// The records of a column.
pub(crate) struct Column {
    arrays: Arrays,
    /// The column of a table.
    name: Option<String>,
    /// What is left of the present array.
    part: Option<Part>,
}

/// An array, and the index of its next record.
struct Part {
    values: Values,
    nulls: Option<NullBuffer>,
    next: usize,
    length: usize,
}

enum Values {
    /// The bytes, and where each record ends in them; the first number is where the first one begins.
    Offsets(Bytes, Offsets),
    Views(ArrayRef, Vec<Bytes>),
    Fixed(Bytes, usize),
}

enum Offsets {
    Small(arrow_buffer::OffsetBuffer<i32>),
    Large(arrow_buffer::OffsetBuffer<i64>),
}

impl Column {
    pub(crate) fn new(arrays: Arrays, name: Option<String>) -> Self {
        Self { arrays, name, part: None }
    }

    /// Takes up to `most` records; `None` stands for null. Returns fewer only at the end.
    pub(crate) fn take(&mut self, py: Python<'_>, most: usize, mut take: impl FnMut(Option<Bytes>)) -> PyResult<usize> {
        let mut taken = 0;
        while taken < most {
            let part = match &mut self.part {
                Some(part) if part.next < part.length => part,
                _ => match self.arrays.next(py)? {
                    Some(array) => self.part.insert(Part::new(&array, self.name.as_deref())?),
                    None => break,
                },
            };
            let count = (part.length - part.next).min(most - taken);
            (0..count).for_each(|_| take(part.take_next()));
            taken += count;
        }
        Ok(taken)
    }
}

impl Part {
    fn new(array: &ArrayRef, name: Option<&str>) -> PyResult<Self> {
        let (array, parents) = match array.as_struct_opt() {
            Some(table) => (column(table, name)?, table.nulls().cloned()),
            None => (array.clone(), None),
        };
        let values = match array.data_type() {
            DataType::Utf8 => offsets(array.as_bytes::<Utf8Type>(), Offsets::Small),
            DataType::Binary => offsets(array.as_bytes::<BinaryType>(), Offsets::Small),
            DataType::LargeUtf8 => offsets(array.as_bytes::<LargeUtf8Type>(), Offsets::Large),
            DataType::LargeBinary => offsets(array.as_bytes::<LargeBinaryType>(), Offsets::Large),
            DataType::Utf8View => views(&array, array.as_byte_view::<StringViewType>()),
            DataType::BinaryView => views(&array, array.as_byte_view::<BinaryViewType>()),
            DataType::FixedSizeBinary(width) => {
                Values::Fixed(shared(array.as_fixed_size_binary().values()), width.as_usize())
            }
            DataType::Null => Values::Fixed(Bytes::new(), 0),
            other => {
                let what =
                    format!("records are text or bytes, but the column has the type {other}: cast it to a string");
                return Err(PyTypeError::new_err(what));
            }
        };
        let nulls = NullBuffer::union(array.logical_nulls().as_ref(), parents.as_ref());
        Ok(Self { values, nulls, next: 0, length: array.len() })
    }

    fn take_next(&mut self) -> Option<Bytes> {
        let at = self.next;
        self.next += 1;
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)) {
            return None;
        }
        Some(match &self.values {
            Values::Offsets(bytes, Offsets::Small(ends)) => bytes.slice(ends[at].as_usize()..ends[at + 1].as_usize()),
            Values::Offsets(bytes, Offsets::Large(ends)) => bytes.slice(ends[at].as_usize()..ends[at + 1].as_usize()),
            Values::Fixed(bytes, width) => bytes.slice(at * width..(at + 1) * width),
            Values::Views(array, buffers) => match array.data_type() {
                DataType::Utf8View => view(array.as_byte_view::<StringViewType>(), buffers, at),
                _ => view(array.as_byte_view::<BinaryViewType>(), buffers, at),
            },
        })
    }
}

/// Returns a table's column of this name, or its only one.
fn column(table: &StructArray, name: Option<&str>) -> PyResult<ArrayRef> {
    let names = || table.column_names().iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match (name, table.columns()) {
        (Some(name), _) => table
            .column_by_name(name)
            .cloned()
            .ok_or_else(|| PyValueError::new_err(format!("the table has no column `{name}`; it has {}", names()))),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(PyValueError::new_err(format!("which column? column= names one of {}", names()))),
    }
}

fn offsets<T: ByteArrayType>(
    array: &GenericByteArray<T>,
    of: impl Fn(arrow_buffer::OffsetBuffer<T::Offset>) -> Offsets,
) -> Values {
    Values::Offsets(shared(array.values()), of(array.offsets().clone()))
}

fn views<T: ByteViewType + ?Sized>(array: &ArrayRef, views: &GenericByteViewArray<T>) -> Values {
    Values::Views(array.clone(), views.data_buffers().iter().map(shared).collect())
}

/// Returns the value of a view: its length, then the text itself, or four bytes of it, a buffer's index, and the place in the buffer.
fn view<T: ByteViewType + ?Sized>(array: &GenericByteViewArray<T>, buffers: &[Bytes], at: usize) -> Bytes {
    let view = array.views()[at].to_le_bytes();
    let word = |at: usize| u32::from_le_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]]);
    let length = word(0);
    if length <= INLINE {
        return Bytes::copy_from_slice(&view[4..4 + length as usize]);
    }
    let (buffer, start) = (word(8) as usize, word(12) as usize);
    buffers[buffer].slice(start..start + length as usize)
}

/// Returns what a record is, if it is text or bytes.
pub(crate) fn bytes_of<T>(item: &Bound<'_, PyAny>, record: u64, take: impl FnOnce(&[u8]) -> T) -> PyResult<Option<T>> {
    use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};
    if let Ok(bytes) = item.cast::<PyBytes>() {
        return Ok(Some(take(bytes.as_bytes())));
    }
    if let Ok(text) = item.cast::<PyString>() {
        return Ok(Some(take(text.to_str()?.as_bytes())));
    }
    if item.is_none() {
        return Ok(None);
    }
    if let Ok(bytes) = item.cast::<PyByteArray>() {
        return Ok(Some(take(&bytes.to_vec())));
    }
    if item.cast::<PyMemoryView>().is_ok() {
        let bytes = item.call_method0("tobytes")?;
        return Ok(Some(take(bytes.cast::<PyBytes>()?.as_bytes())));
    }
    let what = item.get_type().name()?;
    Err(PyTypeError::new_err(format!("record {record} has the type {what}: records are bytes, str or None")))
}

/// Says which record's output is no text.
pub(crate) fn no_text(record: u64) -> PyErr {
    failure::error(format!("the output of record {record} is not UTF-8: ask for bytes"))
}
