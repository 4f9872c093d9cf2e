//! Calls a function made with the crate arrow-udf for a column of text, in batches.
//!
//! `cargo run --release --example arrow -- FUNCTIONS.wasm [ROWS]`
//!
//! The module is a library with `crate-type = ["cdylib"]`, built for wasm32-wasip1; `scripts/build-arrow` builds such a one. It has:
//!
//! ```ignore
//! #[arrow_udf::function("sha256(varchar) -> bytea")]
//! fn sha256(text: &str) -> [u8; 32] {
//!     Sha256::digest(text).into()
//! }
//! ```

use gpu_run::arrow::arrow_array::cast::AsArray;
use gpu_run::arrow::arrow_array::{ArrayRef, RecordBatch, StringArray};
use gpu_run::{Config, Engine, Mapper, Module};
use std::sync::Arc;

/// Rows of a batch.
const BATCH: usize = 8192;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("usage: arrow FUNCTIONS.wasm [ROWS]")?;
    let rows = args.next().map_or(Ok(100_000), |rows| rows.parse())?;
    let engine = Engine::new(&Config::new())?;
    let mut functions = Mapper::builder(&Module::from_file(&engine, file)?).arrow_only(&["sha256"])?;

    let batches = (0..rows).step_by(BATCH).map(|first| {
        let texts: StringArray = (first..rows.min(first + BATCH)).map(|row| Some(format!("row {row}"))).collect();
        RecordBatch::try_from_iter([("text", Arc::new(texts) as ArrayRef)])
            .expect("one column is as long as all others")
    });
    let mut smallest: Option<Vec<u8>> = None;
    for called in functions.map("sha256", batches) {
        // A row that fails is an error here.
        let digests = called?.complete()?;
        let found = digests.column(0).as_binary::<i32>().iter().flatten().min().map(<[u8]>::to_vec);
        smallest = smallest.into_iter().chain(found).min();
    }
    let smallest: String = smallest.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
    println!("the smallest digest of {rows} rows: {smallest}");
    Ok(())
}
