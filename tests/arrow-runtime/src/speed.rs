//! How fast functions of columns are: gpu-run on a device beside arrow-udf's own runtime on all cores, over the same batches, one after
//! the other. What they return is compared, outside the time.

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_udf_runtime::wasm::Runtime;
use gpu_run::{Config, Engine, Mapper, Module};
use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Rows of a batch.
const BATCH: usize = 1 << 16;
/// How often each side calls a function for all rows.
const ROUNDS: usize = 3;

/// A function's name, and its columns from one row up to another.
type Case = (&'static str, fn(usize, usize) -> RecordBatch);

const CASES: [Case; 5] = [
    ("sha256(varchar)->bytea", |from, to| strings(from, to, 40)),
    ("sha256_of_a_page", |from, to| strings(from, to, 1000)),
    ("parse_date(varchar)->date", dates),
    ("score(float64,float64)->float64", numbers),
    ("mandelbrot", numbers),
];

/// Functions that are called by another name than that of the case.
fn called(case: &str) -> &str {
    match case {
        "sha256_of_a_page" => "sha256(varchar)->bytea",
        "mandelbrot" => "steps(float64,float64)->int",
        other => other,
    }
}

pub(crate) fn measure(module: &str, device: &str, rows: usize) -> Result<(), Box<dyn Error>> {
    let engine = Engine::new(&Config::new().device(device))?;
    let module_text = std::fs::read(module)?;
    let runtime = Runtime::new(&module_text).map_err(|error| format!("{error:?}"))?;
    let module = Module::from_file(&engine, module)?;
    let cores = thread::available_parallelism()?.get();
    println!(
        "{rows} rows in batches of {BATCH}; {device} beside arrow-udf-runtime on {cores} cores; the best of {ROUNDS} rounds"
    );
    for (case, batch) in CASES {
        let name = called(case);
        let rows = if case == "sha256_of_a_page" { rows / 10 } else { rows };
        let batches: Vec<_> = (0..rows).step_by(BATCH).map(|from| batch(from, (from + BATCH).min(rows))).collect();
        let began = Instant::now();
        let mut functions = Mapper::builder(&module).arrow_only(&[name])?;
        let first = functions.call(name, &batches[0])?.complete()?;
        let started = began.elapsed();
        let mut ours = (Duration::MAX, Vec::new());
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let results = functions.map(name, batches.iter().cloned()).map(|called| Ok(called?.complete()?));
            let results = results.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
            ours = (ours.0.min(began.elapsed()), results);
        }
        let plain = name.split('(').next().unwrap_or(name);
        let parameters = batches[0].schema().fields().iter().map(|field| field.as_ref().clone()).collect();
        let function = runtime.find_function(plain, parameters, first.schema().field(0).clone());
        let function = function.map_err(|error| format!("{error:?}"))?;
        let mut theirs = Duration::MAX;
        for _ in 0..ROUNDS {
            let (next, returned) = (AtomicUsize::new(0), Mutex::new(vec![None; batches.len()]));
            let began = Instant::now();
            thread::scope(|scope| {
                for _ in 0..cores {
                    scope.spawn(|| {
                        while let Some((at, batch)) =
                            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, batches.get(at)?)))
                        {
                            let result = runtime.call(&function, batch).map_err(|error| format!("{error:?}"));
                            returned.lock().unwrap()[at] = Some(result);
                        }
                    });
                }
            });
            theirs = theirs.min(began.elapsed());
            for (theirs, ours) in returned.into_inner().unwrap().into_iter().zip(&ours.1) {
                if theirs.ok_or("a batch is missing")?? != *ours {
                    return Err(format!("{case}: not the same results").into());
                }
            }
        }
        println!(
            "{case:34} {rows:>9} rows: {:>9.1} ms, arrow-udf-runtime {:>9.1} ms, {:.2} times; first batch after {:.1} s",
            ours.0.as_secs_f64() * 1e3,
            theirs.as_secs_f64() * 1e3,
            theirs.as_secs_f64() / ours.0.as_secs_f64(),
            started.as_secs_f64(),
        );
    }
    Ok(())
}

/// A number that looks random, for each row.
fn mixed(row: usize) -> u64 {
    let mixed = (row as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ mixed >> 32
}

fn batch_of<const N: usize>(columns: [(&str, ArrayRef); N]) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

fn strings(from: usize, to: usize, length: usize) -> RecordBatch {
    let text = |row: usize| {
        let mut text = String::with_capacity(length + 16);
        while text.len() < length {
            let _ = write!(text, "{:016x}", mixed(row * 100 + text.len()));
        }
        text
    };
    batch_of([("text", Arc::new(StringArray::from_iter_values((from..to).map(text))))])
}

fn dates(from: usize, to: usize) -> RecordBatch {
    let text = |row| {
        let mixed = mixed(row);
        format!("{:04}-{:02}-{:02}", 1900 + mixed % 200, 1 + (mixed >> 8) % 12, 1 + (mixed >> 16) % 28)
    };
    batch_of([("text", Arc::new(StringArray::from_iter_values((from..to).map(text))))])
}

fn numbers(from: usize, to: usize) -> RecordBatch {
    let share = |row: usize, shift: u32| (mixed(row) >> shift & 0xFFFF) as f64 / 65536.0;
    let of = |shift, scale: f64, first: f64| {
        let values = (from..to).map(|row| first + scale * share(row, shift));
        Arc::new(Float64Array::from_iter_values(values)) as ArrayRef
    };
    batch_of([("x", of(0, 3.0, -2.0)), ("y", of(24, 2.0, -1.0))])
}
