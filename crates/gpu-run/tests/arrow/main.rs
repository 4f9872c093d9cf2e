//! Functions made with arrow-udf return what they return under Wasmtime, in order, whatever groups their rows are in and however others end.

#![cfg(feature = "arrow")]
#![allow(clippy::unwrap_used)] // In a test, that is an assertion.

mod columns;
mod oracle;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::*;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use gpu_run::arrow::{Functions, RowFailure, Signature};
use gpu_run::{Config, Engine, Error, Interrupt, Mapper, Module, Status};
use oracle::Oracle;
use parking_lot::{Mutex, MutexGuard};
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use std::fs::File;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// `scripts/build-arrow` makes it, and `scripts/test` calls that.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = std::env::var_os("GPU_RUN_TEST_ROOT").map(PathBuf::from);
    let root = root.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let file = root.join("tests/arrow/target/wasm32-wasip1/release/arrow_functions.wasm");
    assert!(file.is_file(), "{} is not built: scripts/build-arrow", file.display());
    file
});
static ORACLE: LazyLock<Oracle> = LazyLock::new(|| Oracle::new(&FILE));
/// `cpu`, or what `GPU_RUN_TEST_DEVICE` says, as `scripts/gpu-test` does.
static MODULE: LazyLock<Module> = LazyLock::new(|| {
    let device = std::env::var("GPU_RUN_TEST_DEVICE").unwrap_or_else(|_| "cpu".into());
    Module::from_file(&Engine::new(&Config::new().device(device).no_cache()).unwrap(), &*FILE).unwrap()
});
static FUNCTIONS: LazyLock<Mutex<Functions>> =
    LazyLock::new(|| Mutex::new(Mapper::builder(&MODULE).batch(64).arrow().unwrap()));

/// All functions. A test that holds them has the others wait.
fn functions() -> MutexGuard<'static, Functions> {
    FUNCTIONS.lock()
}

fn with_groups_of(functions: &mut Functions, rows: usize) -> &mut Functions {
    functions.set_group(NonZero::new(rows));
    functions
}

/// The name that a function is exported under: its signature in base64, for symbols.
fn export(signature: &Signature) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789$_";
    let text = signature.to_string();
    let encode = |bytes: &[u8]| {
        let bits = (0..3).fold(0u32, |bits, i| bits << 8 | u32::from(bytes.get(i).copied().unwrap_or(0)));
        let digit = move |i: usize| DIGITS[(bits >> (18 - 6 * i) & 63) as usize] as char;
        (0..=bytes.len()).map(digit).collect::<String>()
    };
    "arrowudf_".to_owned() + &text.as_bytes().chunks(3).map(encode).collect::<String>()
}

fn joined(batches: &[RecordBatch]) -> Option<RecordBatch> {
    Some(concat_batches(batches.first()?.schema_ref(), batches).unwrap())
}

/// Calls a function here and under Wasmtime, in groups of some rows.
fn agrees(
    functions: &mut Functions,
    signature: &Signature,
    rows: &RecordBatch,
    group: usize,
) -> Result<(), TestCaseError> {
    let name = signature.to_string();
    let expected = ORACLE.call(&export(signature), signature.is_table, rows);
    let expected = expected.map_err(|error| TestCaseError::fail(format!("{name} under Wasmtime: {error:?}")))?;
    let functions = with_groups_of(functions, group);
    let found = match signature.is_table {
        true => functions.call_table(&name, rows).unwrap().complete().unwrap(),
        false => Some(functions.call(&name, rows).unwrap().complete().unwrap()),
    };
    keep(signature, rows, found.as_ref());
    prop_assert_eq!(found, joined(&expected), "{} of {:?}", name, rows);
    Ok(())
}

/// Keeps a call for arrow-udf's own runtime, with `GPU_RUN_TEST_KEEP`: see `scripts/arrow-runtime`.
fn keep(signature: &Signature, rows: &RecordBatch, found: Option<&RecordBatch>) {
    static KEPT: AtomicU64 = AtomicU64::new(0);
    let Some(folder) = std::env::var_os("GPU_RUN_TEST_KEEP") else { return };
    let at = Path::new(&folder).join(KEPT.fetch_add(1, Ordering::Relaxed).to_string());
    let write = |extension: &str, batch: &RecordBatch| {
        let mut writer =
            FileWriter::try_new(File::create(at.with_extension(extension)).unwrap(), &batch.schema()).unwrap();
        writer.write(batch).unwrap();
        writer.finish().unwrap();
    };
    write("in", rows);
    found.inspect(|found| write("out", found));
    let kind = if signature.is_table { "table " } else { "" };
    std::fs::write(at.with_extension("call"), format!("{kind}{}", signature.name)).unwrap();
}

/// Names of functions that end badly for some rows.
const BAD: [&str; 8] = ["oom", "picky", "picky_error", "picky_range", "leave", "spin", "fill", "chatty"];

#[test]
fn every_function_returns_what_it_returns_under_wasmtime() {
    let signatures: Vec<Signature> = functions().signatures().cloned().collect();
    assert!(signatures.len() > 50, "{signatures:?}");
    let cases = if std::env::var_os("GPU_RUN_TEST_ALL").is_some() { 100 } else { 6 };
    for signature in signatures {
        if BAD.contains(&&signature.name[..]) {
            continue;
        }
        let most = if signature.name == "range" { 40 } else { 150 };
        let mut types = signature.parameters.clone();
        if signature.name == "score" {
            types.fill("moderate float64".into());
        }
        let strategy = (columns::batch(&types, most), 1..200usize);
        let mut runner = TestRunner::new(Cases { failure_persistence: None, ..Cases::with_cases(cases) });
        let ran = runner.run(&strategy, |(rows, group)| agrees(&mut functions(), &signature, &rows, group));
        ran.unwrap_or_else(|error| panic!("{signature}: {error}"));
    }
}

fn int32(values: impl IntoIterator<Item = Option<i32>>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([(
        "x",
        Arc::new(values.into_iter().collect::<Int32Array>()) as ArrayRef,
        true,
    )])
    .unwrap()
}

fn rows_of(failures: &[RowFailure]) -> Vec<usize> {
    failures.iter().map(|failure| failure.row).collect()
}

#[test]
fn the_edges_of_numbers_are_kept() {
    let edges = [i32::MIN, i32::MIN + 1, -1, 0, 1, 7, i32::MAX];
    let (a, b): (Vec<i32>, Vec<i32>) = edges.iter().flat_map(|a| edges.iter().map(move |b| (*a, *b))).unzip();
    let column = |values: Vec<i32>| Arc::new(Int32Array::from(values)) as ArrayRef;
    let rows = RecordBatch::try_from_iter([("a", column(a)), ("b", column(b))]).unwrap();
    for name in ["div(int32,int32)->int32", "add_or(int32,int32)->int32", "gcd(int32,int32)->int32"] {
        let signature = functions().signatures().find(|signature| signature.to_string() == name).unwrap().clone();
        agrees(&mut functions(), &signature, &rows, 5).unwrap();
    }
}

#[test]
fn only_the_row_fails_that_panics() {
    let values = || (0..1000).map(|x| (x % 11 != 0).then_some(x));
    let unlucky = |x: &i32| x % 100 == 13 && x % 11 != 0;
    let expected: Vec<usize> = (0..1000).filter(unlucky).map(|x| x as usize).collect();
    let result = |x: Option<i32>| x.filter(|x| !unlucky(x) && x % 7 != 0);
    for group in [1, 3, 64, 5000] {
        let mut functions = functions();
        let functions = with_groups_of(&mut functions, group);
        let called = functions.call("picky", &int32(values())).unwrap();
        assert_eq!(rows_of(&called.failures), expected, "groups of {group}");
        assert_eq!(*called.batch.column(0).as_primitive::<Int32Type>(), values().map(result).collect::<Int32Array>());
        let failure = called.complete().unwrap_err();
        assert!(failure.to_string().starts_with("row 13: trapped: "), "{failure}");
        assert!(failure.to_string().contains("13 is unlucky"), "{failure}");

        let called = functions.call("picky_error", &int32(values())).unwrap();
        assert_eq!(rows_of(&called.failures), expected);
        let errors = called.batch.column_by_name("error").unwrap().as_string::<i32>();
        for (x, error) in values().zip(errors) {
            let of_seven = x.filter(|x| !unlucky(x) && x % 7 == 0);
            assert_eq!(error.map(str::to_owned), of_seven.map(|x| format!("{x} is a multiple of 7")));
        }
    }
}

#[test]
fn a_batch_of_which_every_row_fails_still_has_its_columns() {
    let mut functions = functions();
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let rows = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
    let called = functions.call("oom", &rows).unwrap();
    assert_eq!((rows_of(&called.failures), called.batch.num_rows()), (vec![0, 1, 2], 3));
    assert_eq!(called.batch.schema().field(0).data_type(), &DataType::Int32);
    assert_eq!(called.batch.column(0).null_count(), 3);
    assert!(called.failures[1].to_string().contains("capacity overflow"), "{}", called.failures[1]);
    let called = functions.call("picky_error", &int32([Some(13), Some(113)])).unwrap();
    assert_eq!(called.batch.num_columns(), 2);
}

#[test]
fn every_bad_end_is_its_own() {
    let mut all = functions();
    let functions = with_groups_of(&mut all, 10);
    let called = functions.call("leave", &int32([Some(1), Some(1007), None, Some(1000)])).unwrap();
    assert_eq!(rows_of(&called.failures), [1, 3]);
    // Even exit code 0 is no result.
    assert!(matches!(called.failures[0].status, Status::Exited(239)), "{}", called.failures[0]);
    assert!(!called.failures[1].status.success(), "{}", called.failures[1]);
    assert_eq!(
        called.batch.column(0).as_primitive::<Int32Type>().iter().collect::<Vec<_>>(),
        [Some(1), None, None, None]
    );
    drop(all);

    // One group at a time: the limit is for all groups of a launch.
    let builder = Mapper::builder(&MODULE).batch(1);
    let interrupt = Interrupt::new();
    let slow = builder.clone().timeout(Duration::from_secs(2)).interrupt(&interrupt);
    let mut slow = slow.arrow_only(&["spin"]).unwrap();
    // Parts of the program are compiled when they are called first, which a busy machine does not do in time.
    let is_warm = |_: &i32| slow.call("spin", &int32([None])).is_ok_and(|called| called.failures.is_empty());
    assert!((0..30).find(is_warm).is_some());
    let called = slow.call("spin", &int32([Some(1), Some(13), None, Some(2)])).unwrap();
    assert_eq!(rows_of(&called.failures), [1]);
    assert!(matches!(called.failures[0].status, Status::TimedOut), "{}", called.failures[0]);
    // No row is looked for that is at fault.
    interrupt.raise();
    let ended = slow.call("spin", &int32([Some(13), Some(13)]));
    assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");

    let mut small = builder.max_memory(8 << 20).arrow_only(&["fill"]).unwrap();
    let called = small.call("fill", &int32([Some(1), Some(64 << 20), Some(100_000), None])).unwrap();
    assert_eq!(rows_of(&called.failures), [1], "{:?}", called.failures);
    let lengths: Vec<_> =
        called.batch.column(0).as_binary::<i32>().iter().map(|bytes| bytes.map(<[u8]>::len)).collect();
    assert_eq!(lengths, [Some(1), None, Some(100_000), None]);
}

#[test]
fn tables_number_the_rows_of_the_whole_batch() {
    let mut functions = functions();
    let ends = || (0..300).map(|x| (x % 5 != 0).then_some(x % 17));
    let expected = |end: fn(i32) -> bool| {
        let rows = (0..).zip(ends()).filter_map(|(row, end)| Some((row, end?)));
        let rows = rows.filter(move |(_, x)| end(*x)).flat_map(|(row, end)| (0..end).map(move |i| (row, i)));
        rows.unzip::<i32, i32, Vec<_>, Vec<_>>()
    };
    for group in [1, 7, 300] {
        let functions = with_groups_of(&mut functions, group);
        let table = functions.call_table("range", &int32(ends())).unwrap().complete().unwrap().unwrap();
        let column = |at: usize| table.column(at).as_primitive::<Int32Type>().values().to_vec();
        assert_eq!((column(0), column(1)), expected(|_| true), "groups of {group}");
        // It panics at the fourteenth number: such rows have none at all.
        let called = functions.call_table("picky_range", &int32(ends())).unwrap();
        let failing: Vec<usize> =
            ends().enumerate().filter(|(_, x)| x.is_some_and(|x| x > 13)).map(|(row, _)| row).collect();
        assert_eq!(rows_of(&called.failures), failing);
        let table = called.batch.unwrap();
        let column = |at: usize| table.column(at).as_primitive::<Int32Type>().values().to_vec();
        assert_eq!((column(0), column(1)), expected(|x| x <= 13));
    }
    // More than a thousand values: arrow-udf returns them in several batches.
    let table =
        functions.call_table("range", &int32([Some(5000), None, Some(3)])).unwrap().complete().unwrap().unwrap();
    assert_eq!(
        table.column(1).as_primitive::<Int32Type>().values().to_vec(),
        (0..5000).chain(0..3).collect::<Vec<_>>()
    );
    assert_eq!(functions.call_table("range", &int32([None, Some(0)])).unwrap().complete().unwrap(), None);
}

#[test]
fn what_a_function_prints_does_not_matter() {
    let rows = int32((0..100).map(|x| (x % 3 != 0).then_some(x)));
    let called = functions().call("chatty", &rows).unwrap().complete().unwrap();
    assert_eq!(called.column(0), rows.column(0));
}

#[test]
fn a_stream_of_batches_comes_back_in_order() {
    let mut functions = functions();
    let batches = |sizes: &'static [i32]| {
        let firsts = sizes.iter().scan(0, |next, size| Some((std::mem::replace(next, *next + size), size)));
        firsts.map(|(first, size)| int32((first..first + size).map(Some)))
    };
    let sizes = &[1, 0, 3, 1000, 0, 64, 65, 63, 2000, 1, 1];
    let functions = with_groups_of(&mut functions, 16);
    let called: Vec<_> = functions.map("picky", batches(sizes)).map(Result::unwrap).collect();
    assert_eq!(called.len(), sizes.len());
    for (rows, called) in batches(sizes).zip(&called) {
        assert_eq!(called.batch.num_rows(), rows.num_rows());
        let given = rows.column(0).as_primitive::<Int32Type>();
        let failing = given.values().iter().enumerate().filter(|(_, x)| **x % 100 == 13).map(|(row, _)| row);
        assert_eq!(rows_of(&called.failures), failing.collect::<Vec<_>>());
        let kept = |x: &i32| (x % 100 != 13 && x % 7 != 0).then_some(*x);
        let expected: Int32Array = given.values().iter().map(kept).collect();
        assert_eq!(*called.batch.column(0).as_primitive::<Int32Type>(), expected);
    }
    let tables: Vec<_> = functions.map_table("range", [int32([Some(2)]), int32([]), int32([None, Some(1)])]).collect();
    let rows = |at: usize| {
        tables[at]
            .as_ref()
            .unwrap()
            .batch
            .as_ref()
            .map(|table| table.column(0).as_primitive::<Int32Type>().values().to_vec())
    };
    assert_eq!((rows(0), rows(1), rows(2)), (Some(vec![0, 0]), None, Some(vec![1])));

    // A batch that cannot be given to the function ends the stream, after the results of those before it.
    let text = RecordBatch::try_from_iter([("s", Arc::new(StringArray::from(vec!["a"])) as ArrayRef)]).unwrap();
    let mut mixed = functions.map("picky", [int32([Some(1)]), text, int32([Some(2)])]);
    assert_eq!(mixed.next().unwrap().unwrap().batch.num_rows(), 1);
    assert!(matches!(mixed.next(), Some(Err(Error::Arrow { .. }))));
    assert!(mixed.next().is_none());
}

#[test]
fn a_large_batch_is_many_groups() {
    let mut functions = functions();
    functions.set_group(None);
    let texts: StringArray = (0..50_000).map(|i| (i % 10 != 3).then(|| format!("row {i}"))).collect();
    let rows = RecordBatch::try_from_iter([("s", Arc::new(texts) as ArrayRef)]).unwrap();
    let signature = functions.signatures().find(|signature| signature.name == "sha256").unwrap().clone();
    let found = functions.call("sha256", &rows).unwrap().complete().unwrap();
    assert_eq!(Some(found), joined(&ORACLE.call(&export(&signature), false, &rows).unwrap()));
    // Rows of a megabyte.
    let texts: StringArray = (0..9).map(|i| Some("x".repeat(i << 18))).collect();
    let rows = RecordBatch::try_from_iter([("s", Arc::new(texts) as ArrayRef)]).unwrap();
    let lengths = functions.call("length", &rows).unwrap().complete().unwrap();
    assert_eq!(
        lengths.column(0).as_primitive::<Int32Type>().values().to_vec(),
        (0..9).map(|i| i << 18).collect::<Vec<_>>()
    );
}

#[test]
fn names_that_fit_nothing_or_too_much_are_explained() {
    let mut functions = functions();
    let mut error = |name: &str, rows: &RecordBatch| functions.call(name, rows).unwrap_err().to_string();
    let number = int32([Some(1)]);
    assert!(
        error("no_such", &number)
            .starts_with("`no_such`: there is no such function; there is `add_or(int32,int32)->int32`, ")
    );
    assert_eq!(
        error("as_text", &number),
        "`as_text`: several functions take these columns; name one by its signature: `as_text(int32)->largestring`, `as_text(int32)->string`"
    );
    assert_eq!(
        error("gcd", &number),
        "`gcd`: no function of this name takes (int32); there is `gcd(int32,int32)->int32`"
    );
    assert_eq!(error("range", &number), "`range`: it is a table function: `range(int32)->>int32`");
    assert_eq!(
        functions.call("as_text(int32) -> largestring", &number).unwrap().batch.column(0).as_string::<i64>().value(0),
        "1"
    );
    let not = functions.call_table("gcd", &number).unwrap_err().to_string();
    assert!(not.contains("no table function"), "{not}");
    // Text is taken for a decimal only if no function takes it as text.
    let text = |value: &str| {
        RecordBatch::try_from_iter([("s", Arc::new(StringArray::from(vec![value])) as ArrayRef)]).unwrap()
    };
    assert_eq!(functions.call("same", &text("1.50")).unwrap().batch.column(0).as_string::<i32>().value(0), "1.50");
    let two =
        RecordBatch::try_from_iter([("a", text("1.5").column(0).clone()), ("b", text("2").column(0).clone())]).unwrap();
    assert_eq!(functions.call("total", &two).unwrap().batch.column(0).as_string::<i32>().value(0), "3.5");
    // That is no decimal; arrow-udf panics.
    let none =
        RecordBatch::try_from_iter([("a", text("one").column(0).clone()), ("b", text("2").column(0).clone())]).unwrap();
    assert_eq!(rows_of(&functions.call("total", &none).unwrap().failures), [0]);
    let wide = RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    assert_eq!(functions.call("same", &wide).unwrap().batch.column(0).as_primitive::<Int64Type>().value(0), 1);
    let half = Field::new("x", DataType::Float16, true);
    let half = RecordBatch::new_empty(Arc::new(Schema::new(vec![half])));
    assert!(functions.call("same", &half).unwrap_err().to_string().contains("takes (Float16); there is "));
}

#[test]
fn modules_that_speak_otherwise_are_refused() {
    let refusal = |text: &str| {
        let module = Module::new(MODULE.engine(), text).unwrap();
        Mapper::builder(&module).arrow().unwrap_err().to_string()
    };
    assert!(refusal("(module)").contains("not made with arrow-udf"));
    let global = |name: &str| format!(r#"(global (export "{name}") i32 (i32.const 0))"#);
    let (version, gcd) = (global("ARROWUDF_VERSION_3_0"), "Z2NkKGludDMyLGludDMyKS0$aW50MzI");
    assert!(refusal(&format!("(module {})", global("ARROWUDF_VERSION_2_0"))).contains("protocol is 2.0"));
    assert!(refusal(&format!("(module {version})")).contains("exports no functions"));
    let function = |name: &str, ty: &str| {
        format!(r#"(memory (export "memory") 1) (func (export "arrowudf_{name}") {ty} unreachable)"#)
    };
    assert!(refusal(&format!("(module {version} {})", function("Z2-k", ""))).contains("names no signature"));
    let found = refusal(&format!("(module {version} {})", function(gcd, "")));
    assert!(found.contains("has type () -> ()"), "{found}");
    let ty = "(param i32 i32 i32) (result i32)";
    let found = refusal(&format!("(module {version} {})", function(gcd, ty)));
    assert!(found.contains("exports no function `alloc`"), "{found}");
    let missing = Mapper::builder(&MODULE).arrow_only(&["gcd", "no_such"]).unwrap_err();
    assert!(
        matches!(&missing, Error::MissingExport(text) if text.contains("no function `no_such`; it has add_or(")),
        "{missing}"
    );
}

/// A module whose one function, `gcd`, answers what its text says: nothing that it returns can be trusted.
#[test]
fn answers_that_are_none_fail_and_do_no_harm() {
    let answer = |status: i32, at: i32, count: i32| {
        let text = format!(
            r#"(module
                (memory (export "memory") 2)
                (global (export "ARROWUDF_VERSION_3_0") i32 (i32.const 0))
                (global $next (mut i32) (i32.const 1024))
                (data (i32.const 100) "no such thing")
                (func (export "alloc") (param i32 i32) (result i32)
                    (global.get $next)
                    (global.set $next (i32.and (i32.add (global.get $next) (i32.add (local.get 0) (i32.const 15))) (i32.const -16))))
                (func (export "arrowudf_Z2NkKGludDMyLGludDMyKS0$aW50MzI") (param i32 i32 i32) (result i32)
                    (i32.store (local.get 2) (i32.const {at}))
                    (i32.store offset=4 (local.get 2) (i32.const {count}))
                    (i32.const {status})))"#
        );
        let module = Module::new(MODULE.engine(), text).unwrap();
        let column = || Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef;
        let rows = RecordBatch::try_from_iter([("a", column()), ("b", column())]).unwrap();
        Mapper::builder(&module).batch(4).arrow().unwrap().call("gcd", &rows).unwrap_err().to_string()
    };
    assert_eq!(answer(-1, 100, 13), "`gcd(int32,int32)->int32`: no such thing");
    for (at, count) in [(0, 0), (100, 13), (0, 60_000), (0, -1), (-1, 1), (200_000, 10)] {
        let error = answer(0, at, count);
        assert!(error.contains("fails for no rows at all"), "{count} bytes at {at}: {error}");
    }
}
