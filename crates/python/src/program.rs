//! A program, on a device.

use crate::array::{Array, Kind};
use crate::failure;
use crate::function::Function;
use crate::given::Given;
use crate::outputs::{Outputs, Shape};
use crate::source::Source;
use crate::udf::ArrowFunction;
use crate::work;
use gpu_run::{Config, Engine, Interrupt, Mapper, MapperBuilder, Module};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Where compiled programs are kept: the usual place, nowhere, or a folder.
#[derive(Clone, PartialEq, Eq, Hash, FromPyObject)]
enum Cache {
    Off(bool),
    Folder(PathBuf),
}

/// Engines, by device and cache.
type Engines = HashMap<(String, Option<Cache>), Engine>;

/// The engines of this process: a device is opened once.
static ENGINES: Mutex<Option<Engines>> = Mutex::new(None);

fn engine(device: &str, cache: Option<Cache>) -> Result<Engine, gpu_run::Error> {
    let mut engines = ENGINES.lock();
    let engines = engines.get_or_insert_default();
    let key = (device.to_owned(), cache);
    if let Some(engine) = engines.get(&key) {
        return Ok(engine.clone());
    }
    let config = Config::new().device(device);
    let config = match &key.1 {
        None | Some(Cache::Off(true)) => config,
        Some(Cache::Off(false)) => config.no_cache(),
        Some(Cache::Folder(folder)) => config.cache(folder),
    };
    let engine = Engine::new(&config)?;
    engines.insert(key, engine.clone());
    Ok(engine)
}

/// A mapper that nobody uses now, and what it was made for. It keeps its place on the device.
struct Kept {
    given: Given,
    interrupt: Interrupt,
    mapper: Mapper,
}

type Keeper = Arc<Mutex<Option<Kept>>>;

/// A mapper for one call of `map`, or what one is made of.
pub(crate) struct Idle {
    keeper: Keeper,
    given: Given,
    interrupt: Interrupt,
    mapper: Option<Mapper>,
    builder: MapperBuilder,
}

impl Idle {
    pub(crate) fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Returns the mapper; if there is none yet, that compiles the program.
    pub(crate) fn mapper(&mut self) -> Result<&mut Mapper, gpu_run::Error> {
        let mapper = match self.mapper.take() {
            Some(mapper) => mapper,
            None => self.builder.clone().build()?,
        };
        Ok(self.mapper.insert(mapper))
    }

    /// Keeps the mapper for the next call.
    pub(crate) fn give_back(self) {
        let Self { keeper, given, interrupt, mapper, .. } = self;
        if let Some(mapper) = mapper.filter(|_| !interrupt.is_raised()) {
            *keeper.lock() = Some(Kept { given, interrupt, mapper });
        }
    }
}

/// A program, on a device.
#[pyclass(frozen, module = "gpu_run._native")]
pub(crate) struct Program {
    module: Module,
    /// What the program finds in front of its arguments.
    name: String,
    kept: Keeper,
}

#[pymethods]
impl Program {
    /// `name` is for messages, `argv0` for the program.
    #[new]
    #[pyo3(signature = (wasm, name, argv0, device, cache=None))]
    fn new(
        py: Python<'_>,
        wasm: PyBackedBytes,
        name: String,
        argv0: String,
        device: String,
        cache: Option<Cache>,
    ) -> PyResult<Self> {
        let module = py.detach(|| Module::named(&engine(&device, cache)?, &name, &wasm)).map_err(failure::of)?;
        Ok(Self { module, name: argv0, kept: Keeper::default() })
    }

    #[getter]
    fn device(&self) -> String {
        self.module.engine().device().to_owned()
    }

    /// The names of exported functions and their types.
    #[getter]
    fn functions(&self) -> Vec<(String, String)> {
        self.module.functions().map(|function| (function.name.to_owned(), function.ty.to_string())).collect()
    }

    /// Runs the program; returns its exit code, its outputs, and what happened if it did not just exit.
    #[allow(clippy::type_complexity)]
    fn run<'py>(
        &self,
        py: Python<'py>,
        stdin: PyBackedBytes,
        given: Given,
        threads: Option<u32>,
    ) -> PyResult<(i64, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Option<String>, bool)> {
        let interrupt = Interrupt::new();
        let mut command = given.command(&self.module, &self.name, &interrupt)?.stdin(&*stdin);
        if let Some(threads) = threads {
            command = command.threads(threads);
        }
        let output = work::wait(py, &interrupt, move || command.output())?.map_err(failure::of)?;
        let (code, what) = failure::ending(&output.status);
        let is_late = matches!(output.status, gpu_run::Status::TimedOut);
        Ok((code, PyBytes::new(py, &output.stdout), PyBytes::new(py, &output.stderr), what, is_late))
    }

    /// Runs the program for each record.
    #[allow(clippy::too_many_arguments)]
    fn map(
        &self,
        records: &Bound<'_, PyAny>,
        column: Option<String>,
        given: Given,
        as_text: bool,
        strips_newline: bool,
        returns_errors: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Outputs> {
        let source = Source::of(records, column)?;
        Outputs::new(source, self.idle(given)?, Shape { as_text, strips_newline, returns_errors }, progress)
    }

    /// Runs the program for each record and collects the outputs in an array.
    #[allow(clippy::too_many_arguments)]
    fn map_column(
        &self,
        py: Python<'_>,
        records: &Bound<'_, PyAny>,
        column: Option<String>,
        given: Given,
        kind: &str,
        strips_newline: bool,
        returns_errors: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Array> {
        let kind = Kind::of(kind)?;
        self.map(records, column, given, false, strips_newline, returns_errors, progress)?.collect(py, kind)
    }

    /// An exported function of numbers, to be called for each of many rows. Without types, the module's.
    fn function(
        &self,
        py: Python<'_>,
        name: String,
        params: Option<Vec<String>>,
        results: Option<Vec<String>>,
        given: Given,
    ) -> PyResult<Function> {
        let interrupt = Interrupt::new();
        let builder = given.mapper(&self.module, &self.name, &interrupt)?;
        Function::new(py, &self.module, builder, interrupt, name, params, results)
    }

    /// The signatures of functions made with arrow-udf.
    #[getter]
    fn udfs(&self) -> PyResult<Vec<String>> {
        let signatures = gpu_run::arrow::signatures(&self.module).map_err(failure::of)?;
        Ok(signatures.iter().map(ToString::to_string).collect())
    }

    /// A function made with arrow-udf, by its name or signature; `None` if there is another function of this name, or none at all.
    fn udf(&self, py: Python<'_>, name: String, given: Given) -> PyResult<Option<ArrowFunction>> {
        let interrupt = Interrupt::new();
        let builder = given.mapper(&self.module, &self.name, &interrupt)?;
        ArrowFunction::find(py, &self.module, builder, interrupt, &name)
    }
}

impl Program {
    fn idle(&self, given: Given) -> PyResult<Idle> {
        let keeper = self.kept.clone();
        let kept = self.kept.lock().take_if(|kept| kept.given == given);
        let (interrupt, mapper) = match kept {
            Some(kept) => (kept.interrupt, Some(kept.mapper)),
            None => (Interrupt::new(), None),
        };
        let builder = given.mapper(&self.module, &self.name, &interrupt)?;
        Ok(Idle { keeper, given, interrupt, mapper, builder })
    }
}
