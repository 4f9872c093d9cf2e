//! The functions that guests can import from the embedder.

use crate::engine::Engine;
use crate::error::{AnyError, Error, Result};
use crate::function::{Arguments, Caller, HostFunction, IntoFunction, Returned};
use crate::module::Module;
use gpu_run_compiler::{EmbedderFunction, EmbedderFunctions};
use gpu_run_wasi::{FunctionAnswer, FunctionCall, Functions, InstanceFunctions, LaterAnswer};
use parking_lot::Mutex;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The functions that guests can import. `T` is what a [`Store`](crate::Store) holds for its instances.
///
/// A module's imports are matched by their names. Those of WASI are provided anyway.
///
/// ```
/// use gpu_run::{Config, Engine, Linker, Module, Store, Wasi};
/// # let engine = Engine::new(&Config::new().device("cpu").no_cache())?;
/// let module = Module::new(&engine, r#"
///     (module
///         (import "host" "double" (func $double (param i32) (result i32)))
///         (func (export "quadruple") (param i32) (result i32)
///             (call $double (call $double (local.get 0)))))
/// "#)?;
/// let mut linker = Linker::new(&engine);
/// linker.function("host", "double", |x: i32| x * 2)?;
/// let mut store = Store::new(&engine, ());
/// let instance = linker.instantiate(&mut store, &module)?;
/// let quadruple = instance.typed::<i32, i32>(&store, "quadruple")?;
/// assert_eq!(quadruple.call(&mut store, 5)?, 20);
/// # Ok::<(), gpu_run::Error>(())
/// ```
pub struct Linker<T> {
    engine: Engine,
    functions: BTreeMap<(String, String), Arc<HostFunction<T>>>,
}

impl<T> Clone for Linker<T> {
    fn clone(&self) -> Self {
        Self { engine: self.engine.clone(), functions: self.functions.clone() }
    }
}

impl<T: Send + 'static> Linker<T> {
    pub fn new(engine: &Engine) -> Self {
        Self { engine: engine.clone(), functions: BTreeMap::new() }
    }

    /// Provides a function. It must not block: while it runs, no other instance of the launch gets an answer.
    ///
    /// The closure's parameters are numbers, or [`String`] or `Vec<u8>`, for which the guest passes a pointer and a length, at most 1 MiB
    /// in a call; in front of them, if it wants one, a [`Caller`]. It returns nothing, a number, text or bytes
    /// ([`Answer`](crate::Answer)), or a [`Result`] of these.
    pub fn function<P>(&mut self, module: &str, name: &str, function: impl IntoFunction<T, P>) -> Result<&mut Self> {
        self.define(module, name, function, false)
    }

    /// Like [`Linker::function`], for a function that may block: other threads run it.
    pub fn blocking_function<P>(
        &mut self,
        module: &str,
        name: &str,
        function: impl IntoFunction<T, P>,
    ) -> Result<&mut Self> {
        self.define(module, name, function, true)
    }

    fn define<P, F: IntoFunction<T, P>>(
        &mut self,
        module: &str,
        name: &str,
        function: F,
        blocks: bool,
    ) -> Result<&mut Self> {
        let key = (module.to_owned(), name.to_owned());
        if self.functions.contains_key(&key) {
            let (module, name) = key;
            return Err(Error::Define { module, name, why: "is provided already".into() });
        }
        let call = move |caller: Caller<'_, T>, arguments: Arguments<'_>| function.call(caller, arguments);
        let function = HostFunction { parameters: F::parameters(), result: F::result(), call: Box::new(call), blocks };
        self.functions.insert(key, Arc::new(function));
        Ok(self)
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns those of the functions that a module imports, in its order: so other functions do not change what it compiles to.
    pub(crate) fn imported(&self, module: &Module) -> Imported<T> {
        let mut imported = Imported { signatures: Vec::new(), functions: Vec::new() };
        for (from, function) in module.imports() {
            let key = (from.to_owned(), function.name.to_owned());
            let Some(host) = self.functions.get(&key) else { continue };
            let (module, name) = key;
            if imported.signatures.iter().any(|other| other.module == module && other.name == name) {
                continue;
            }
            let (parameters, result) = (host.parameters.clone(), host.result);
            imported.functions.push(host.clone());
            imported.signatures.push(EmbedderFunction { module, name, parameters, result });
        }
        imported
    }
}

impl<T> fmt::Debug for Linker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Linker").field("functions", &self.functions.keys()).finish_non_exhaustive()
    }
}

/// The functions that one module imports.
pub(crate) struct Imported<T> {
    signatures: Vec<EmbedderFunction>,
    functions: Vec<Arc<HostFunction<T>>>,
}

impl<T: Send + 'static> Imported<T> {
    /// For the compiler.
    pub(crate) fn signatures(&self) -> EmbedderFunctions {
        self.signatures.clone().into()
    }

    /// For the instances, each of which gets its data from `data`.
    pub(crate) fn functions(&self, data: impl Fn(u64) -> Arc<Shared<T>> + Send + Sync + 'static) -> Arc<dyn Functions> {
        let names = self.signatures.iter().map(|function| format!("{}.{}", function.module, function.name)).collect();
        Arc::new(Provided { functions: self.functions.clone().into(), names, data: Box::new(data) })
    }
}

/// What the functions that an instance calls share.
pub(crate) struct Shared<T> {
    /// `None` while no call of the instance is under way.
    pub(crate) data: Mutex<Option<T>>,
    pub(crate) failures: Failures,
}

/// Why functions have ended instances, by the instances' numbers.
pub(crate) type Failures = Arc<Mutex<BTreeMap<u64, Failure>>>;

/// Why a function has ended its instance.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) function: String,
    pub(crate) source: AnyError,
}

impl<T> Shared<T> {
    pub(crate) fn new(data: Option<T>, failures: Failures) -> Arc<Self> {
        Arc::new(Self { data: Mutex::new(data), failures })
    }
}

struct Provided<T> {
    functions: Arc<[Arc<HostFunction<T>>]>,
    names: Arc<[String]>,
    data: Box<dyn Fn(u64) -> Arc<Shared<T>> + Send + Sync>,
}

impl<T: Send + 'static> Functions for Provided<T> {
    fn of_instance(&self, number: u64) -> Box<dyn InstanceFunctions> {
        let (functions, names, shared) = (self.functions.clone(), self.names.clone(), (self.data)(number));
        Box::new(OfInstance { functions, names, shared, number })
    }
}

struct OfInstance<T> {
    functions: Arc<[Arc<HostFunction<T>>]>,
    names: Arc<[String]>,
    shared: Arc<Shared<T>>,
    number: u64,
}

impl<T: Send + 'static> InstanceFunctions for OfInstance<T> {
    fn call(&mut self, call: FunctionCall<'_>) -> FunctionAnswer {
        let at = call.function as usize;
        let (Some(function), Some(name)) = (self.functions.get(at), self.names.get(at)) else {
            return FunctionAnswer::Refused;
        };
        let (function, name, shared, number) = (function.clone(), name.clone(), self.shared.clone(), self.number);
        if !function.blocks {
            return answer(&function, name, &shared, number, call.input);
        }
        let (input, done) = (call.input.to_vec(), Arc::new(Mutex::new(None)));
        let later = done.clone();
        let work = blocking::unblock(move || {
            *done.lock() = Some(answer(&function, name, &shared, number, &input));
            gpu_run_wasi::wake();
        });
        work.detach();
        FunctionAnswer::Later(Box::new(Later(later)))
    }
}

/// The answer of a function that another thread runs.
struct Later(Arc<Mutex<Option<FunctionAnswer>>>);

impl LaterAnswer for Later {
    fn poll(&mut self) -> Option<FunctionAnswer> {
        self.0.lock().take()
    }
}

fn answer<T>(
    function: &HostFunction<T>,
    name: String,
    shared: &Shared<T>,
    number: u64,
    input: &[u8],
) -> FunctionAnswer {
    let run = || -> Result<Returned, AnyError> {
        let arguments = Arguments::new(input, function.parameters.len()).ok_or("the call is cut short")?;
        let mut data = shared.data.lock();
        let data = data.as_mut().ok_or("the store is not calling the instance")?;
        catch_unwind(AssertUnwindSafe(|| (function.call)(Caller::new(data, number), arguments)))
            .unwrap_or_else(|panic| Err(format!("it panicked: {}", message(&*panic)).into()))
    };
    match run() {
        Ok(Returned { word, bytes }) => FunctionAnswer::Done { result: word, bytes },
        Err(source) => {
            shared.failures.lock().entry(number).or_insert(Failure { function: name, source });
            FunctionAnswer::Refused
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
