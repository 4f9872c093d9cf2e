//! Instances that stay: made once, called any number of times.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::linker::{Failure, Failures, Linker, Shared};
use crate::module::{INITIALIZE, Module};
use crate::value::{Parameters, Results};
use crate::wasi::Wasi;
use gpu_run_abi::TrapCode;
use gpu_run_compiler::{Build, CompileOptions, Entry, FunctionType, Layout, Value};
use gpu_run_run::{End, Outcome};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

static STORES: AtomicU64 = AtomicU64::new(0);

/// Instances, what they are given, and the data that functions of the embedder see when these instances call them.
///
/// ```
/// use gpu_run::{Caller, Config, Engine, Linker, Module, Store, Wasi};
/// # let engine = Engine::new(&Config::new().device("cpu").no_cache())?;
/// let module = Module::new(&engine, r#"
///     (module
///         (import "host" "count" (func $count))
///         (func (export "twice") (call $count) (call $count)))
/// "#)?;
/// let mut linker = Linker::new(&engine);
/// linker.function("host", "count", |mut caller: Caller<'_, u32>| *caller.data_mut() += 1)?;
/// let mut store = Store::new(&engine, 0);
/// let instance = linker.instantiate(&mut store, &module)?;
/// instance.call(&mut store, "twice", &[])?;
/// assert_eq!(*store.data(), 2);
/// # Ok::<(), gpu_run::Error>(())
/// ```
pub struct Store<T> {
    engine: Engine,
    wasi: Wasi,
    max_memory: Option<u64>,
    timeout: Option<Duration>,
    /// `None` only while an instance is called.
    data: Option<T>,
    shared: Arc<Shared<T>>,
    homes: Vec<Home>,
    number: u64,
}

struct Home {
    module: Module,
    instance: gpu_run_run::Instance,
    /// The code that the instance exited with: then it can be called no more.
    exited: Option<u32>,
}

impl<T: Send + 'static> Store<T> {
    pub fn new(engine: &Engine, data: T) -> Self {
        let number = STORES.fetch_add(1, Ordering::Relaxed);
        let (wasi, shared, homes) = (Wasi::new(), Shared::new(None, Failures::default()), Vec::new());
        Self { engine: engine.clone(), wasi, max_memory: None, timeout: None, data: Some(data), shared, homes, number }
    }

    /// Sets what instances made from here on are given.
    pub fn set_wasi(&mut self, wasi: Wasi) {
        self.wasi = wasi;
    }

    /// The most bytes that the memories and tables of an instance made from here on may have together.
    pub fn set_max_memory(&mut self, bytes: u64) {
        self.max_memory = Some(bytes);
    }

    /// How long a call may take. Without this, it may take for ever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn data(&self) -> &T {
        self.data.as_ref().expect("nobody else has it between two calls")
    }

    pub fn data_mut(&mut self) -> &mut T {
        self.data.as_mut().expect("nobody else has it between two calls")
    }

    pub fn into_data(mut self) -> T {
        self.data.take().expect("nobody else has it between two calls")
    }

    fn home(&mut self, instance: &Instance) -> Result<&mut Home> {
        let home = (instance.store == self.number).then(|| self.homes.get_mut(instance.at)).flatten();
        home.ok_or(Error::OtherStore)
    }

    /// Runs something in which functions of the embedder may be called. Returns what it returns, and why such a function has ended the
    /// instance, if one has.
    fn during<R>(&mut self, run: impl FnOnce(&mut Self) -> R) -> (R, Option<Failure>) {
        *self.shared.data.lock() = self.data.take();
        let result = run(self);
        self.data = self.shared.data.lock().take();
        (result, self.shared.failures.lock().remove(&0))
    }
}

impl<T> fmt::Debug for Store<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("instances", &self.homes.len()).finish_non_exhaustive()
    }
}

impl<T: Send + 'static> Linker<T> {
    /// Makes an instance of a module: its memory is filled, and its start function and its `_initialize` run.
    pub fn instantiate(&self, store: &mut Store<T>, module: &Module) -> Result<Instance> {
        if !store.engine.is(self.engine()) || !store.engine.is(module.engine()) {
            return Err(Error::OtherStore);
        }
        let name = module.name();
        if module.has_threads() {
            return Err(Error::Limit(format!("{name} has threads: run it as a `Command`")));
        }
        let imported = self.imported(module);
        let options = CompileOptions {
            embedder: imported.signatures(),
            ..CompileOptions::new(Build::Exact(Layout::Linear), Entry::Exports)
        };
        let program = store.engine.program(name, module.wasm(), &options)?;
        let shared = store.shared.clone();
        let context = store.wasi.context(0, Some(imported.functions(move |_| shared.clone())))?;
        let max_memory = store.max_memory;
        let (made, failure) = store.during(|_| gpu_run_run::Instance::new(program, context, max_memory));
        let made = made.map_err(|error| Error::of_compiler(name, error))?;
        let instance = match (made, failure) {
            (Ok(instance), None) => instance,
            (_, Some(Failure { function, source })) => return Err(Error::Function { function, source }),
            (Err(trap), None) => return Err(Error::Trap(Box::new(trap))),
        };
        store.homes.push(Home { module: module.clone(), instance, exited: None });
        let instance = Instance { store: store.number, at: store.homes.len() - 1 };
        if module.has_initialize() {
            instance.call(store, INITIALIZE, &[])?;
        }
        Ok(instance)
    }
}

/// One of a store's instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instance {
    store: u64,
    at: usize,
}

impl Instance {
    /// Calls an exported function.
    pub fn call<T: Send + 'static>(
        &self,
        store: &mut Store<T>,
        function: &str,
        arguments: &[Value],
    ) -> Result<Vec<Value>> {
        let timeout = store.timeout;
        let home = store.home(self)?;
        if let Some(code) = home.exited {
            return Err(Error::Exit(code));
        }
        let (name, found) = (home.module.name().to_owned(), home.module.function(function));
        let Some(found) = found else {
            return Err(Error::MissingExport(format!("{name} exports no function `{function}`")));
        };
        if !arguments.iter().map(|value| value.ty()).eq(found.ty.params.iter().copied()) {
            let params = arguments.iter().map(|value| value.ty()).collect();
            let found = FunctionType { params, results: found.ty.results.clone() };
            return Err(signature(&home.module, function, &found));
        }
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let (outcome, failure) = store.during(|store| {
            let home = store.home(self)?;
            home.instance.invoke(function, arguments, deadline).map_err(|error| Error::of_compiler(&name, error))
        });
        let Outcome { end, results, .. } = outcome?;
        match (end, failure) {
            (_, Some(Failure { function, source })) => Err(Error::Function { function, source }),
            (End::Returned, None) => Ok(results),
            (End::Exited(code), None) => {
                store.home(self)?.exited = Some(code);
                Err(Error::Exit(code))
            }
            (End::Trapped(trap), None) => Err(match timeout.filter(|_| trap.code == TrapCode::Interrupted) {
                Some(timeout) => Error::Timeout(timeout),
                None => Error::Trap(trap),
            }),
        }
    }

    /// Returns an exported function with these parameters and results.
    pub fn typed<P: Parameters, R: Results>(
        &self,
        store: &Store<impl Send + 'static>,
        function: &str,
    ) -> Result<TypedFunction<P, R>> {
        let home = (self.store == store.number).then(|| store.homes.get(self.at)).flatten();
        let module = &home.ok_or(Error::OtherStore)?.module;
        let wanted = FunctionType { params: P::types(), results: R::types() };
        match module.function(function) {
            Some(found) if *found.ty == wanted => {
                Ok(TypedFunction { instance: *self, name: function.into(), types: PhantomData })
            }
            Some(_) => Err(signature(module, function, &wanted)),
            None => Err(Error::MissingExport(format!("{} exports no function `{function}`", module.name()))),
        }
    }

    /// Returns the value of an exported global.
    pub fn global<T: Send + 'static>(&self, store: &mut Store<T>, name: &str) -> Result<Option<Value>> {
        let home = store.home(self)?;
        home.instance.global(name).map_err(|error| Error::of_compiler(home.module.name(), error))
    }

    /// Reads bytes of the instance's memory.
    pub fn read<T: Send + 'static>(&self, store: &mut Store<T>, at: u64, bytes: &mut [u8]) -> Result<()> {
        let home = store.home(self)?;
        let read = home.instance.read(0, at, bytes).map_err(|error| Error::of_compiler(home.module.name(), error))?;
        read.then_some(()).ok_or(Error::OutOfBounds { at, count: bytes.len() })
    }

    /// Writes bytes of the instance's memory.
    pub fn write<T: Send + 'static>(&self, store: &mut Store<T>, at: u64, bytes: &[u8]) -> Result<()> {
        let home = store.home(self)?;
        let written =
            home.instance.write(0, at, bytes).map_err(|error| Error::of_compiler(home.module.name(), error))?;
        written.then_some(()).ok_or(Error::OutOfBounds { at, count: bytes.len() })
    }
}

fn signature(module: &Module, function: &str, found: &FunctionType) -> Error {
    let expected = module.function(function).map_or_else(String::new, |function| function.ty.to_string());
    Error::Signature { function: function.into(), expected, found: found.to_string() }
}

/// An exported function with known parameters and results.
pub struct TypedFunction<P, R> {
    instance: Instance,
    name: Box<str>,
    types: PhantomData<fn(P) -> R>,
}

impl<P: Parameters, R: Results> TypedFunction<P, R> {
    pub fn call<T: Send + 'static>(&self, store: &mut Store<T>, parameters: P) -> Result<R> {
        let results = self.instance.call(store, &self.name, &parameters.values())?;
        R::of_values(&results).ok_or_else(|| Error::Internal("results of another type than the function's".into()))
    }
}

impl<P, R> fmt::Debug for TypedFunction<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedFunction").field("name", &self.name).finish_non_exhaustive()
    }
}
