//! Random columns of every type that arrow-udf has.

use arrow_array::builder::{Int32Builder, ListBuilder, StringBuilder};
use arrow_array::types::IntervalMonthDayNanoType;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::sync::Arc;

type Column = (Field, ArrayRef);

/// A batch with columns of these types, and at most this many rows. Sometimes it is a part of a larger one.
pub(crate) fn batch(types: &[String], most: usize) -> BoxedStrategy<RecordBatch> {
    let types = types.to_vec();
    let columns = move |rows: usize| types.iter().map(|ty| column(ty, rows)).collect::<Vec<_>>();
    (0..=most)
        .prop_flat_map(move |rows| (columns(rows), Just(rows), 0..=rows, 0..=rows))
        .prop_map(|(columns, rows, a, b)| {
            let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options).unwrap();
            match a % 2 {
                0 => batch.slice(a.min(b), a.max(b) - a.min(b)),
                _ => batch,
            }
        })
        .boxed()
}

fn text() -> BoxedStrategy<String> {
    prop_oneof![
        Just(String::new()),
        "[a-zäß€=, ]{0,12}",
        "[0-9x]{1,5}",
        "[a-z]{1,3}=[a-z]{0,3}(,[a-z]=[a-z])?",
        "(19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]",
        any::<String>(),
    ]
    .boxed()
}

fn json() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        any::<i32>().prop_map(|x| x.to_string()),
        vec(any::<i16>(), 0..5).prop_map(|items| format!("{items:?}")),
        "[a-c]{1,2}".prop_map(|name| format!("{{\"{name}\": [1, {{\"b\": \"ä\"}}], \"b\": null}}")),
    ]
}

macro_rules! primitive {
    ($array:ty, $rows:expr, $values:expr) => {
        nullable($rows, $values).prop_map(|values| Arc::new(<$array>::from(values)) as ArrayRef).boxed()
    };
}

/// Values, some of them null; sometimes there are no nulls, sometimes nothing else.
fn nullable<T: std::fmt::Debug + Clone + 'static>(
    rows: usize,
    values: impl Strategy<Value = T> + Clone + 'static,
) -> impl Strategy<Value = Vec<Option<T>>> {
    prop_oneof![
        4 => vec(option::of(values.clone()), rows),
        2 => vec(values.prop_map(Some), rows),
        1 => Just(vec![None; rows]),
    ]
}

fn texts<A: From<Vec<Option<String>>> + Array + 'static>(
    rows: usize,
    texts: impl Strategy<Value = String> + Clone + 'static,
) -> BoxedStrategy<ArrayRef> {
    nullable(rows, texts).prop_map(|texts| Arc::new(A::from(texts)) as ArrayRef).boxed()
}

fn column(ty: &str, rows: usize) -> BoxedStrategy<Column> {
    let small = || prop_oneof![-20..40i32, Just(0)];
    let bytes = || vec(any::<u8>(), 0..20);
    let array: BoxedStrategy<ArrayRef> = match ty {
        "boolean" => primitive!(BooleanArray, rows, any::<bool>()),
        "int8" => primitive!(Int8Array, rows, any::<i8>()),
        "int16" => primitive!(Int16Array, rows, any::<i16>()),
        "int32" => primitive!(Int32Array, rows, small()),
        "any int32" => primitive!(Int32Array, rows, any::<i32>()),
        "int64" => primitive!(Int64Array, rows, any::<i64>()),
        "uint8" => primitive!(UInt8Array, rows, any::<u8>()),
        "uint16" => primitive!(UInt16Array, rows, any::<u16>()),
        "uint32" => primitive!(UInt32Array, rows, any::<u32>()),
        "uint64" => primitive!(UInt64Array, rows, any::<u64>()),
        "float32" => primitive!(Float32Array, rows, any::<f32>()),
        "float64" => primitive!(Float64Array, rows, any::<f64>()),
        // Without infinities on the way: WebAssembly leaves open which NaN the sine of one is.
        "moderate float64" => primitive!(Float64Array, rows, -1e9..1e9f64),
        "date32" => primitive!(Date32Array, rows, -100_000..100_000i32),
        "time64" => primitive!(Time64MicrosecondArray, rows, 0..86_400_000_000i64),
        "timestamp" => primitive!(TimestampMicrosecondArray, rows, -1_i64 << 50..1 << 50),
        "interval" => {
            let interval = (any::<i32>(), any::<i32>(), any::<i64>());
            let interval = interval.prop_map(|(m, d, n)| IntervalMonthDayNanoType::make_value(m, d, n));
            primitive!(IntervalMonthDayNanoArray, rows, interval)
        }
        "decimal" => texts::<StringArray>(rows, "-?[0-9]{1,12}(\\.[0-9]{1,8})?"),
        "json" => texts::<StringArray>(rows, json().boxed()),
        "string" => texts::<StringArray>(rows, text()),
        "largestring" => texts::<LargeStringArray>(rows, text()),
        "binary" => nullable(rows, bytes())
            .prop_map(|values| Arc::new(values.into_iter().collect::<BinaryArray>()) as ArrayRef)
            .boxed(),
        "largebinary" => nullable(rows, bytes())
            .prop_map(|values| Arc::new(values.into_iter().collect::<LargeBinaryArray>()) as ArrayRef)
            .boxed(),
        "int32[]" => nullable(rows, vec(any::<i32>(), 0..9)).prop_map(lists).boxed(),
        "string[]" => nullable(rows, vec(option::of(text()), 0..5)).prop_map(text_lists).boxed(),
        other => panic!("no columns of type {other}"),
    };
    let ty = ty.to_owned();
    array.prop_map(move |array| (field(&ty, array.data_type()), array)).boxed()
}

pub(crate) fn field(ty: &str, data_type: &DataType) -> Field {
    let field = Field::new("x", data_type.clone(), true);
    match ty {
        "decimal" | "json" => {
            field.with_metadata([("ARROW:extension:name".to_owned(), format!("arrowudf.{ty}"))].into())
        }
        _ => field,
    }
}

fn lists(rows: Vec<Option<Vec<i32>>>) -> ArrayRef {
    let mut lists = ListBuilder::new(Int32Builder::new());
    for row in rows {
        lists.append_option(row.map(|row| row.into_iter().map(Some)));
    }
    Arc::new(lists.finish())
}

fn text_lists(rows: Vec<Option<Vec<Option<String>>>>) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in rows {
        lists.append_option(row);
    }
    Arc::new(lists.finish())
}
