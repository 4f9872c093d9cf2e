//! Functions of Arrow columns: modules made with the crate [`arrow-udf`](https://docs.rs/arrow-udf), unchanged.
//!
//! A function such as this, in a library with `crate-type = ["cdylib"]`, built with `cargo build --release --target wasm32-wasip1`, is
//! called for whole [`RecordBatch`]es:
//!
//! ```ignore
//! #[arrow_udf::function("gcd(int, int) -> int")]
//! fn gcd(mut a: i32, mut b: i32) -> i32 {
//!     while b != 0 {
//!         (a, b) = (b, a % b);
//!     }
//!     a
//! }
//! ```
//!
//! ```no_run
//! use gpu_run::arrow::arrow_array::{ArrayRef, Int32Array, RecordBatch};
//! use gpu_run::{Config, Engine, Mapper, Module};
//! # use std::sync::Arc;
//!
//! let engine = Engine::new(&Config::new())?;
//! let module = Module::from_file(&engine, "functions.wasm")?;
//! let mut functions = Mapper::builder(&module).arrow()?;
//! let column = |values: Vec<Option<i32>>| Arc::new(Int32Array::from(values)) as ArrayRef;
//! let rows = RecordBatch::try_from_iter([
//!     ("a", column(vec![Some(15), Some(5), None])),
//!     ("b", column(vec![Some(25), Some(0), Some(1)])),
//! ])?;
//! let called = functions.call("gcd", &rows)?;
//! assert_eq!(called.batch.column(0), &column(vec![Some(5), Some(5), None]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Groups
//!
//! A batch is cut into groups of rows. Each is the work of one instance, which is set up once and calls the function once, for the whole
//! group: so instances share nothing, and a function must not rely on what it kept from other rows. Results are in the rows' order,
//! whatever the groups were.
//!
//! # Rows that fail
//!
//! A function that returns an error for a row has a second column, `error`, as arrow-udf defines it. If it panics, traps, exits, takes too
//! long, or needs more memory than it may have, its group fails. Then the rows of that group run again in smaller groups, until only the
//! rows fail that are at fault: they are in [`Called::failures`], their results are null, and all other rows have theirs.
//! A time limit is for all groups of a launch, as for a mapper's records: rows that run beside one that takes too long may fail with it.
//! [`Called::complete`] makes an error of the first of them, as other runtimes do. If a table function fails for a row, the row has no
//! values.

mod adapter;
mod call;
mod groups;
mod signature;
mod wire;

use crate::error::{Error, Result};
use crate::mapper::{Mapper, MapperBuilder};
use crate::module::Module;
pub use arrow_array;
use arrow_array::RecordBatch;
pub use arrow_schema;
use arrow_schema::SchemaRef;
use call::Calls;
pub use call::{Batches, Called, RowFailure, TableBatches, TableCalled};
use gpu_run_compiler::Adapter;
use groups::Sizes;
pub use signature::Signature;
use std::fmt;
use std::num::NonZero;
use std::sync::Arc;

/// Groups that run again at once, when groups have failed.
const AGAIN: u32 = 256;

impl MapperBuilder {
    /// Like [`MapperBuilder::build`], for a module made with arrow-udf: its functions are called for columns of rows. See
    /// [`arrow`](crate::arrow). [`MapperBuilder::batch`] says how many groups of rows run at once.
    pub fn arrow(self) -> Result<Functions> {
        Functions::new(self, |_| true)
    }

    /// Like [`MapperBuilder::arrow`], for some of the module's functions, by their names or signatures: what only others use is not
    /// compiled.
    pub fn arrow_only(self, names: &[&str]) -> Result<Functions> {
        let functions = Functions::exports(&self)?;
        if let Some(missing) = names.iter().find(|name| !functions.iter().any(|(found, _)| found.is_called(name))) {
            return Err(Error::MissingExport(missing_text(self.module.name(), missing, &functions)));
        }
        Functions::new(self, |signature| names.iter().any(|name| signature.is_called(name)))
    }
}

/// Returns the functions that a module made with arrow-udf has: of another module, none, or why they cannot be called.
pub fn signatures(module: &Module) -> Result<Vec<Signature>> {
    match module.export_names().any(|name| name.starts_with(signature::VERSION_EXPORT)) {
        true => Ok(signature::exports(module)?.into_iter().map(|(signature, _)| signature).collect()),
        false => Ok(Vec::new()),
    }
}

fn missing_text(module: &str, name: &str, functions: &[(Signature, String)]) -> String {
    let all: Vec<_> = functions.iter().map(|(signature, _)| signature.to_string()).collect();
    format!("{module} has no function `{name}`; it has {}", all.join(", "))
}

/// The functions of a module made with arrow-udf. [`MapperBuilder::arrow`] makes one.
pub struct Functions {
    groups: Mapper,
    again: Again,
    signatures: Arc<[Signature]>,
    /// The columns of the results of those that have been called.
    schemas: Vec<Option<SchemaRef>>,
    sizes: Sizes,
}

/// Runs groups again, if others have failed.
struct Again {
    mapper: Option<Mapper>,
    builder: MapperBuilder,
    adapter: Adapter,
}

impl Again {
    fn mapper(&mut self) -> Result<&mut Mapper> {
        match &mut self.mapper {
            Some(mapper) => Ok(mapper),
            none => {
                let builder = self.builder.clone().batch(self.builder.batch.unwrap_or(AGAIN).min(AGAIN));
                Ok(none.insert(builder.adapted(Some(self.adapter.clone()))?))
            }
        }
    }
}

impl Functions {
    fn exports(builder: &MapperBuilder) -> Result<Vec<(Signature, String)>> {
        let functions = signature::exports(&builder.module)?;
        match functions.is_empty() {
            true => Err(Error::MissingExport(format!("{} exports no functions of arrow-udf", builder.module.name()))),
            false => Ok(functions),
        }
    }

    fn new(builder: MapperBuilder, is_wanted: impl Fn(&Signature) -> bool) -> Result<Self> {
        let functions: Vec<_> = Self::exports(&builder)?.into_iter().filter(|(found, _)| is_wanted(found)).collect();
        let exports = functions.iter().map(|(signature, export)| (&export[..], signature.is_table));
        let adapter = adapter::adapter(&builder.module, exports)?;
        let groups = builder.clone().adapted(Some(adapter.clone()))?;
        let sizes = Sizes::usual(groups.is_gpu(), groups.batch());
        let (schemas, again) = (vec![None; functions.len()], Again { mapper: None, builder, adapter });
        let signatures = functions.into_iter().map(|(signature, _)| signature).collect();
        Ok(Self { groups, again, signatures, schemas, sizes })
    }

    /// Sets how many rows one instance takes at most. Without this, it depends on the device, and on how many rows a batch has.
    pub fn set_group(&mut self, rows: Option<NonZero<usize>>) {
        let usual = || Sizes::usual(self.groups.is_gpu(), self.groups.batch());
        self.sizes = rows.map_or_else(usual, Sizes::fixed);
    }

    pub fn signatures(&self) -> impl Iterator<Item = &Signature> {
        self.signatures.iter()
    }

    /// Calls a function for all rows of a batch, and returns as many.
    ///
    /// `name` is the function's name, such as `gcd`, or, if other functions of this name take the same columns, its signature, such as
    /// `gcd(int32,int32)->int32`.
    pub fn call(&mut self, name: &str, rows: &RecordBatch) -> Result<Called> {
        let group = self.sizes.of_batch(rows.num_rows());
        let called = Batches(Calls::new(self, name, false, [rows.clone()].into_iter(), group)).next();
        called.unwrap_or_else(|| Err(Error::Internal("a batch without results".into())))
    }

    /// Calls a function for the rows of each batch, and returns the results in the batches' order.
    ///
    /// Groups of several batches run at once: so many small batches take no longer than a large one. Batches are taken before the results
    /// of earlier ones were returned, as by [`Mapper::map`]. An `Err` is a failure of the device or of gpu-run, or says why a batch cannot
    /// be given to this function; it is the last item.
    pub fn map<I: IntoIterator<Item = RecordBatch>>(&mut self, name: &str, batches: I) -> Batches<'_, I::IntoIter> {
        let group = self.sizes.of_stream();
        Batches(Calls::new(self, name, false, batches.into_iter(), group))
    }

    /// Calls a table function for all rows of a batch, and returns any number of rows: the first column says for which of the given rows,
    /// counted from 0.
    pub fn call_table(&mut self, name: &str, rows: &RecordBatch) -> Result<TableCalled> {
        let group = self.sizes.of_batch(rows.num_rows());
        let called = TableBatches(Calls::new(self, name, true, [rows.clone()].into_iter(), group)).next();
        called.unwrap_or_else(|| Err(Error::Internal("a batch without results".into())))
    }

    /// Calls a table function for the rows of each batch: see [`Functions::map`].
    pub fn map_table<I>(&mut self, name: &str, batches: I) -> TableBatches<'_, I::IntoIter>
    where
        I: IntoIterator<Item = RecordBatch>,
    {
        let group = self.sizes.of_stream();
        TableBatches(Calls::new(self, name, true, batches.into_iter(), group))
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.signatures().map(Signature::to_string)).finish()
    }
}
