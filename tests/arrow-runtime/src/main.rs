//! `arrow-runtime --speed MODULE DEVICE ROWS` measures both: see `speed.rs`.
//!
//! `arrow-runtime MODULE FOLDER`: calls the functions of a module for the batches that gpu-run's test kept in the folder, and compares.
//!
//! `N.call` is the function's name, behind `table ` if it is a table function; `N.in` its rows and `N.out` what gpu-run returned, as Arrow
//! IPC files. There is no `N.out` if that was no value at all.

mod speed;

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use arrow_select::concat::concat_batches;
use arrow_udf_runtime::wasm::Runtime;
use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    if let [_, option, module, device, rows] = &args[..]
        && option == "--speed"
    {
        return speed::measure(module, device, rows.parse()?);
    }
    let [_, module, folder] = &args[..] else {
        return Err("usage: arrow-runtime MODULE FOLDER, or arrow-runtime --speed MODULE DEVICE ROWS".into());
    };
    let runtime = Runtime::new(&fs::read(module)?).map_err(|error| format!("{error:?}"))?;
    let (mut alike, mut other) = (0, 0);
    for entry in fs::read_dir(folder)? {
        let call = entry?.path();
        if call.extension().is_none_or(|extension| extension != "call") {
            continue;
        }
        let name = fs::read_to_string(&call)?;
        let (rows, found) = (batch(&call.with_extension("in"))?, call.with_extension("out"));
        // Without values, nobody knows the function's type.
        if !found.exists() {
            continue;
        }
        let found = batch(&found)?;
        let expected = returned(&runtime, &name, &rows, &found).map_err(|error| format!("{name}: {error}"))?;
        match expected == found {
            true => alike += 1,
            false => {
                println!("{name}: of {rows:?}\narrow-udf-runtime returns {expected:?}\ngpu-run returns {found:?}");
                other += 1;
            }
        }
    }
    println!("{alike} passed, {other} failed");
    if alike > 0 && other == 0 { Ok(()) } else { Err("gpu-run returns something else".into()) }
}

fn batch(path: &Path) -> Result<RecordBatch, Box<dyn Error>> {
    Ok(FileReader::try_new(File::open(path)?, None)?.next().ok_or("no batch")??)
}

fn returned(
    runtime: &Runtime,
    name: &str,
    rows: &RecordBatch,
    found: &RecordBatch,
) -> Result<RecordBatch, Box<dyn Error>> {
    let parameters: Vec<_> = rows.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    let readable = |error| format!("{error:?}");
    match name.strip_prefix("table ") {
        None => {
            let function =
                runtime.find_function(name, parameters, found.schema().field(0).clone()).map_err(readable)?;
            Ok(runtime.call(&function, rows).map_err(|error| format!("{error:?}"))?)
        }
        Some(name) => {
            let result = found.schema().field(1).clone();
            let function = runtime.find_table_function(name, parameters, result).map_err(readable)?;
            let batches = runtime.call_table_function(&function, rows).map_err(|error| format!("{error:?}"))?;
            let batches = batches.collect::<Result<Vec<_>, _>>().map_err(|error| format!("{error:?}"))?;
            Ok(concat_batches(&found.schema(), &batches)?)
        }
    }
}
