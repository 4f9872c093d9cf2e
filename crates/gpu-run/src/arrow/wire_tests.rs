use super::*;
use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder};
use arrow_array::types::IntervalMonthDayNanoType;
use arrow_array::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// A batch with every kind of column.
fn batch() -> RecordBatch {
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("a"), None]);
    lists.append_null();
    lists.append_value([Some("long enough")]);
    let fields = vec![Field::new("n", DataType::Int64, true), Field::new("s", DataType::Utf8, true)];
    let mut structs = StructBuilder::from_fields(fields, 3);
    for row in 0..3 {
        structs.field_builder::<builder::Int64Builder>(0).unwrap().append_option((row > 0).then_some(row));
        structs.field_builder::<StringBuilder>(1).unwrap().append_value("s");
        structs.append(row != 1);
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(NullArray::new(3)),
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        Arc::new(Int32Array::from(vec![Some(1), None, Some(3)])),
        Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0])),
        Arc::new(Time64MicrosecondArray::from(vec![1, 2, 3])),
        Arc::new(TimestampMicrosecondArray::from(vec![Some(1), None, None])),
        Arc::new(IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNanoType::make_value(1, 2, 3); 3])),
        Arc::new(StringArray::from(vec![Some("one"), None, Some("three")])),
        Arc::new(LargeBinaryArray::from(vec![Some(&b"one"[..]), None, Some(b"three")])),
        Arc::new(lists.finish()),
        Arc::new(structs.finish()),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|column| ("c", column, true))).unwrap()
}

/// What the adapter writes for these answers.
fn stdout(printed: &[u8], status: u32, answers: &[&[u8]]) -> Vec<u8> {
    let mut stdout = printed.to_vec();
    for answer in answers.iter().rev() {
        stdout.extend_from_slice(answer);
        stdout.extend_from_slice(&(answer.len() as u32).to_le_bytes());
    }
    stdout.extend_from_slice(&(answers.len() as u32).to_le_bytes());
    stdout.extend_from_slice(&status.to_le_bytes());
    stdout.extend_from_slice(&MAGIC);
    stdout
}

fn file(batch: &RecordBatch) -> Vec<u8> {
    encode(0, batch).unwrap()[8..].to_vec()
}

#[test]
fn answers_are_read_in_their_order_behind_what_was_printed() {
    let (first, second) = (batch(), batch().slice(1, 2));
    for printed in [&b""[..], b"GRaf", &[0; 100]] {
        let answer = decode(stdout(printed, 0, &[&file(&first), &file(&second)])).unwrap();
        assert!(
            matches!(&answer, Answer::Batches(batches) if batches[..] == [first.clone(), second.clone()]),
            "{answer:?}"
        );
        let answer = decode(stdout(printed, -1_i32 as u32, &[b"no"])).unwrap();
        assert!(matches!(&answer, Answer::Refused(message) if message == "no"), "{answer:?}");
        let none = decode(stdout(printed, 0, &[])).unwrap();
        assert!(matches!(&none, Answer::Batches(batches) if batches.is_empty()));
    }
}

#[test]
fn answers_with_wrong_bytes_are_errors_or_other_answers_but_never_panics() {
    let whole = stdout(b"printed", 0, &[&file(&batch())]);
    let cases = if std::env::var_os("GPU_RUN_TEST_ALL").is_some() { 500_000 } else { 20_000 };
    let config = Config { failure_persistence: None, ..Config::with_cases(cases) };
    let value = prop_oneof![Just(0u8), Just(0xff), Just(0x7f), Just(0x80), 1..32u8, any::<u8>()];
    let changes = prop::collection::vec((0..whole.len(), value), 1..6);
    let mut errors = 0;
    let ran = TestRunner::new(config).run(&(changes, 0..whole.len() * 20), |(changes, cut)| {
        let mut stdout = whole.clone();
        changes.into_iter().for_each(|(at, value)| stdout[at] = value);
        stdout.drain(cut.min(stdout.len())..);
        // Whatever it is, it can be looked at.
        if let Ok(Answer::Batches(batches)) = decode(stdout) {
            let texts: Vec<String> = batches.iter().map(|batch| format!("{batch:?}")).collect();
            prop_assert!(texts.iter().all(|text| text.len() < 1 << 24), "a batch of that size");
        }
        Ok(())
    });
    ran.unwrap();
    for cut in 0..whole.len() {
        errors += usize::from(decode(whole[..cut].to_vec()).is_err());
    }
    assert_eq!(errors, whole.len());
}
