//! Rows and answers as bytes. What a guest answers is not trusted: everything is checked that arrow-ipc would panic at.

use super::adapter::MAGIC;
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_ipc::{MetadataVersion, Type};
use arrow_schema::{ArrowError, DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

/// Buffers are aligned to this many bytes: so much as any of arrow-udf's types needs.
const ALIGNMENT: usize = 16;
const IPC_MAGIC: &[u8] = b"ARROW1";
/// Lists and structs within each other, at most.
const DEEPEST: usize = 32;

/// Encodes rows for the function with this number.
pub(super) fn encode(function: u32, rows: &RecordBatch) -> Result<Bytes, ArrowError> {
    let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)?;
    let mut message = vec![0; 8];
    let mut writer = FileWriter::try_new_with_options(&mut message, &rows.schema(), options)?;
    writer.write(rows)?;
    writer.finish()?;
    drop(writer);
    let count = u32::try_from(message.len() - 8)
        .map_err(|_| ArrowError::InvalidArgumentError("a row is larger than 4 GiB".into()))?;
    message[..4].copy_from_slice(&function.to_le_bytes());
    message[4..8].copy_from_slice(&count.to_le_bytes());
    Ok(message.into())
}

/// What a function answered.
#[derive(Debug)]
pub(super) enum Answer {
    Batches(Vec<RecordBatch>),
    /// The function took none of the rows, and said why.
    Refused(String),
}

/// Decodes what an instance has written to stdout.
pub(super) fn decode(stdout: Vec<u8>) -> Result<Answer, ArrowError> {
    let (stdout, mut end) = (Buffer::from_vec(stdout), 0..0);
    let mut rest = &stdout[..];
    let mut word = || -> Option<u32> {
        let (before, word) = rest.split_last_chunk::<4>()?;
        rest = before;
        Some(u32::from_le_bytes(*word))
    };
    let trailer = (word(), word(), word());
    let (Some(magic), Some(status), Some(count)) = trailer else { return Err(cut_short()) };
    if magic != u32::from_le_bytes(MAGIC) {
        return Err(cut_short());
    }
    end.end = rest.len();
    let mut next = || -> Option<Buffer> {
        let (before, count) = stdout[..end.end].split_last_chunk::<4>()?;
        let count = u32::from_le_bytes(*count) as usize;
        end.end = before.len().checked_sub(count)?;
        Some(stdout.slice_with_length(end.end, count))
    };
    if status != 0 {
        let message = next().ok_or_else(cut_short)?;
        return Ok(Answer::Refused(String::from_utf8_lossy(&message).into_owned()));
    }
    let batches = (0..count).map(|_| batch(&next().ok_or_else(cut_short)?)).collect::<Result<_, _>>()?;
    Ok(Answer::Batches(batches))
}

fn cut_short() -> ArrowError {
    invalid("it is cut short")
}

fn invalid(what: &str) -> ArrowError {
    ArrowError::IpcError(format!("the function's answer is no Arrow IPC file: {what}"))
}

/// Reads the one batch of an IPC file.
fn batch(file: &Buffer) -> Result<RecordBatch, ArrowError> {
    let magic = file.len().checked_sub(IPC_MAGIC.len()).filter(|at| &file[*at..] == IPC_MAGIC);
    let (rest, count) = magic.and_then(|at| file[..at].split_last_chunk::<4>()).ok_or_else(|| invalid("no magic"))?;
    let count = u32::from_le_bytes(*count) as usize;
    let footer = rest.len().checked_sub(count).map(|at| &rest[at..]).ok_or_else(cut_short)?;
    let footer = arrow_ipc::root_as_footer(footer).map_err(|error| invalid(&error.to_string()))?;
    if footer.dictionaries().is_some_and(|dictionaries| !dictionaries.is_empty()) {
        return Err(invalid("it has dictionaries"));
    }
    let schema = footer.schema().ok_or_else(|| invalid("no schema"))?;
    let schema = schema_of(schema)?;
    let blocks = footer.recordBatches().filter(|blocks| blocks.len() == 1);
    let block = blocks.ok_or_else(|| invalid("not one batch"))?.get(0);
    let message = slice(file, block.offset(), block.metaDataLength().into()).ok_or_else(cut_short)?;
    let body = block.offset().checked_add(block.metaDataLength().into());
    let body = body.and_then(|at| slice(file, at, block.bodyLength())).ok_or_else(cut_short)?;
    // The message begins with a marker and its length; old versions have only the length.
    let head = if message.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let message = message.get(head..).ok_or_else(cut_short)?;
    let message = arrow_ipc::root_as_message(message).map_err(|error| invalid(&error.to_string()))?;
    let rows = message.header_as_record_batch().ok_or_else(|| invalid("no batch"))?;
    Shape::of(&rows, body.len())?.check(&schema)?;
    arrow_ipc::reader::read_record_batch(&body, rows, schema, &HashMap::new(), None, &message.version())
}

fn slice(file: &Buffer, at: i64, count: i64) -> Option<Buffer> {
    let (at, count) = (usize::try_from(at).ok()?, usize::try_from(count).ok()?);
    (at.checked_add(count)? <= file.len()).then(|| file.slice_with_length(at, count))
}

/// How long the arrays and buffers of a batch say they are.
struct Shape {
    /// Lengths, and counts of nulls.
    nodes: std::vec::IntoIter<(usize, usize)>,
    lengths: std::vec::IntoIter<usize>,
}

impl Shape {
    fn of(rows: &arrow_ipc::RecordBatch<'_>, body: usize) -> Result<Self, ArrowError> {
        if rows.compression().is_some() || rows.variadicBufferCounts().is_some_and(|counts| !counts.is_empty()) {
            return Err(invalid("it is compressed, or has views"));
        }
        // Arrow's offsets have 32 bits, so no array is longer.
        let count = |count: i64| usize::try_from(count).ok().filter(|count| *count <= i32::MAX as usize);
        let node = |node: &arrow_ipc::FieldNode| {
            let (length, nulls) = (count(node.length())?, count(node.null_count())?);
            (nulls <= length).then_some((length, nulls))
        };
        let buffer = |buffer: &arrow_ipc::Buffer| {
            let (at, length) = (usize::try_from(buffer.offset()).ok()?, usize::try_from(buffer.length()).ok()?);
            (at.checked_add(length)? <= body).then_some(length)
        };
        let nodes = rows.nodes().map(|nodes| nodes.iter().map(node).collect::<Option<Vec<_>>>());
        let lengths = rows.buffers().map(|buffers| buffers.iter().map(buffer).collect::<Option<Vec<_>>>());
        match (count(rows.length()), nodes.flatten(), lengths.flatten()) {
            (Some(_), Some(nodes), Some(lengths)) => {
                Ok(Self { nodes: nodes.into_iter(), lengths: lengths.into_iter() })
            }
            _ => Err(invalid("it has impossible lengths")),
        }
    }

    fn check(mut self, schema: &Schema) -> Result<(), ArrowError> {
        let are_whole = schema.fields().iter().try_for_each(|field| self.array(field));
        are_whole.ok_or_else(|| invalid("arrays are missing, or too short"))
    }

    /// Looks at the next array, and those within it.
    fn array(&mut self, field: &Field) -> Option<()> {
        let (length, nulls) = self.nodes.next()?;
        // Of what size the numbers are in the buffer behind that of the nulls, if arrow-data takes it whole; how many buffers follow.
        let (size, more, children) = match field.data_type() {
            DataType::Null => return Some(()),
            DataType::Utf8 | DataType::Binary => (4, 1, Vec::new()),
            DataType::LargeUtf8 | DataType::LargeBinary => (8, 1, Vec::new()),
            DataType::List(element) => (4, 0, vec![element.clone()]),
            DataType::Struct(fields) => (0, 0, fields.iter().cloned().collect()),
            _ => (1, 0, Vec::new()),
        };
        let validity = self.lengths.next()?;
        if nulls > 0 && validity.checked_mul(8)? < length {
            return None;
        }
        if size > 0 && self.lengths.next()? % size != 0 {
            return None;
        }
        (0..more).try_for_each(|_| self.lengths.next().map(drop))?;
        children.iter().try_for_each(|child| self.array(child))
    }
}

fn schema_of(schema: arrow_ipc::Schema<'_>) -> Result<SchemaRef, ArrowError> {
    if schema.endianness() != arrow_ipc::Endianness::Little {
        return Err(invalid("its numbers are big-endian"));
    }
    let fields = schema.fields().ok_or_else(|| invalid("no columns"))?;
    let fields: Vec<Field> = fields.iter().map(|field| field_of(field, 0)).collect::<Result<_, _>>()?;
    Ok(Arc::new(Schema::new(fields)))
}

/// arrow-ipc's own conversion panics at types that it does not know. These are those that arrow-udf has.
fn field_of(field: arrow_ipc::Field<'_>, depth: usize) -> Result<Field, ArrowError> {
    use arrow_ipc::{DateUnit, IntervalUnit as Interval, Precision, TimeUnit as Unit};
    let children = || -> Result<Vec<Field>, ArrowError> {
        if depth >= DEEPEST {
            return Err(invalid("types are too deep"));
        }
        let children = field.children().into_iter().flatten();
        children.map(|child| field_of(child, depth + 1)).collect()
    };
    let integer = |bits, is_signed| match (bits, is_signed) {
        (8, true) => Some(DataType::Int8),
        (16, true) => Some(DataType::Int16),
        (32, true) => Some(DataType::Int32),
        (64, true) => Some(DataType::Int64),
        (8, false) => Some(DataType::UInt8),
        (16, false) => Some(DataType::UInt16),
        (32, false) => Some(DataType::UInt32),
        (64, false) => Some(DataType::UInt64),
        _ => None,
    };
    let data_type = match field.type_type() {
        _ if field.dictionary().is_some() => None,
        Type::Null => Some(DataType::Null),
        Type::Bool => Some(DataType::Boolean),
        Type::Int => field.type_as_int().and_then(|int| integer(int.bitWidth(), int.is_signed())),
        Type::FloatingPoint => match field.type_as_floating_point().map(|float| float.precision()) {
            Some(Precision::SINGLE) => Some(DataType::Float32),
            Some(Precision::DOUBLE) => Some(DataType::Float64),
            _ => None,
        },
        Type::Date => {
            let date = field.type_as_date().filter(|date| date.unit() == DateUnit::DAY);
            date.map(|_| DataType::Date32)
        }
        Type::Time => {
            let time = field.type_as_time().filter(|time| (time.bitWidth(), time.unit()) == (64, Unit::MICROSECOND));
            time.map(|_| DataType::Time64(TimeUnit::Microsecond))
        }
        Type::Timestamp => {
            let timestamp = field.type_as_timestamp().filter(|timestamp| timestamp.unit() == Unit::MICROSECOND);
            let zone = |timestamp: arrow_ipc::Timestamp<'_>| timestamp.timezone().map(Into::into);
            timestamp.map(|timestamp| DataType::Timestamp(TimeUnit::Microsecond, zone(timestamp)))
        }
        Type::Interval => {
            let interval = field.type_as_interval().filter(|interval| interval.unit() == Interval::MONTH_DAY_NANO);
            interval.map(|_| DataType::Interval(IntervalUnit::MonthDayNano))
        }
        Type::Utf8 => Some(DataType::Utf8),
        Type::Binary => Some(DataType::Binary),
        Type::LargeUtf8 => Some(DataType::LargeUtf8),
        Type::LargeBinary => Some(DataType::LargeBinary),
        Type::List => match <[Field; 1]>::try_from(children()?) {
            Ok([element]) => Some(DataType::List(Arc::new(element))),
            Err(_) => None,
        },
        Type::Struct_ => Some(DataType::Struct(children()?.into())),
        _ => None,
    };
    let name = field.name().unwrap_or_default();
    let data_type =
        data_type.ok_or_else(|| invalid(&format!("the column `{name}` has a type that arrow-udf has not")))?;
    let entries = field.custom_metadata().into_iter().flatten();
    let metadata = entries.filter_map(|entry| Some((entry.key()?.to_owned(), entry.value()?.to_owned())));
    Ok(Field::new(name, data_type, field.nullable()).with_metadata(metadata.collect()))
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
