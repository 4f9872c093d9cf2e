//! Runs scripts of the official test suite: modules, calls, and assertions about their results.
//!
//! ```text
//! modules   compiles and loads every module of the script on all cores, before the first call
//! spectest  the memories and tables that scripts can import
//! judge     compares values and traps with the script's assertions
//! ```
//!
//! Each directive is one check: a failure does not stop the script, and the report lists the lines that failed. A
//! directive that needs, itself or through its module, a feature that gpu-run does not support yet is counted
//! separately, with the name of that feature.

mod judge;
mod modules;
mod spectest;

use gpu_run_abi::{Layout, TrapCode};
use gpu_run_compiler::Compiled;
use gpu_run_compiler::Error;
use gpu_run_compiler::Trap;
use gpu_run_compiler::Value;
use gpu_run_device::Device;
use gpu_run_run::End;
use gpu_run_run::allowance::resident_stacks;
use gpu_run_run::{InstanceId, Linker, Settings};
use gpu_run_wasm::WasmFeatures;
use judge::{argument, compare, same_trap};
use modules::{Loaded, compile_options, imports, load_all};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wast::parser::{self, ParseBuffer};
use wast::{QuoteWat, Wast, WastDirective, WastExecute, WastInvoke, Wat};

/// How to run a script.
#[derive(Clone)]
pub struct Options<'a> {
    pub device: Arc<dyn Device>,
    pub layout: Layout,
    pub features: WasmFeatures,
    /// The most bytes of linear memory per instance, on a device that reserves memory in advance; see [`Capacity`].
    pub max_memory: Option<u64>,
    /// Is called with the PTX of every compiled module; an error fails the directive.
    pub inspect: Option<Inspect<'a>>,
}

/// A check of PTX text.
pub type Inspect<'a> = &'a (dyn Fn(&str) -> Result<(), String> + Sync);

/// Enough for the suite's memories, which grow to 804 pages.
const MEMORY: u64 = 1024 * gpu_run_abi::layout::PAGE;

/// What a device has room for.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// The value for [`Options::max_memory`]. Without it, a device that reserves memory in advance would give all of it
    /// to the first instance that may grow.
    pub max_memory: Option<u64>,
    /// How many scripts can run at once; 0 if not even one fits.
    pub scripts: usize,
}

impl Capacity {
    pub fn new(device: &dyn Device, layout: Layout) -> Result<Self, Error> {
        let properties = device.properties();
        if properties.overcommits {
            return Ok(Self { max_memory: None, scripts: usize::MAX });
        }
        let free = device.free_bytes()?.saturating_sub(resident_stacks(properties.resident_threads));
        let instance = layout.slots(1) * MEMORY;
        // A script holds its last instance and the next one at the same time, and sometimes named instances as well.
        let (least, usual) = (2 * instance, 4 * instance);
        let scripts = if free < least { 0 } else { (free / 2 / usual).max(1) as usize };
        Ok(Self { max_memory: Some(MEMORY), scripts })
    }
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("device", &self.device).field("layout", &self.layout).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
pub struct Report {
    pub passed: usize,
    /// Line (from 1) and what went wrong.
    pub failures: Vec<(usize, String)>,
    /// Line (from 1) and the unsupported feature.
    pub unsupported: Vec<(usize, String)>,
    /// The line at which the device was lost. Its failure is the last one; nothing after it was run.
    pub lost: Option<usize>,
}

/// Why a directive did not pass.
#[derive(Clone, Debug)]
enum Problem {
    Failed(String),
    /// A feature that gpu-run does not support.
    Unsupported(String),
    /// The device is lost, with everything on it.
    Lost(String),
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

impl From<&str> for Problem {
    fn from(message: &str) -> Self {
        Self::Failed(message.to_owned())
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Module(gpu_run_wasm::Error::Unsupported { feature, .. }) => Self::Unsupported(feature),
            error if error.is_device_lost() => Self::Lost(error.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// A call that runs longer than this is stopped.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns the WebAssembly features that a script may use: those of WebAssembly 3.0, unless a line of the script says
/// otherwise, as in `;;! wasm = 2.0` or `;;! wasm = 3.0 -multi-memory +threads`.
pub fn features(script: &str) -> Result<WasmFeatures, String> {
    let Some(line) = script.lines().find_map(|line| line.strip_prefix(";;! wasm =")) else {
        return Ok(WasmFeatures::WASM3);
    };
    let unknown = |word: &str| format!("`;;! wasm ={line}`: `{word}` is not a version or feature of WebAssembly");
    let mut features = WasmFeatures::WASM3;
    for word in line.split_whitespace() {
        let named =
            |name: &str| WasmFeatures::from_name(&name.to_uppercase().replace('-', "_")).ok_or_else(|| unknown(word));
        match (word, word.split_at_checked(1)) {
            ("1.0", _) => features = WasmFeatures::WASM1,
            ("2.0", _) => features = WasmFeatures::WASM2,
            ("3.0", _) => features = WasmFeatures::WASM3,
            (_, Some(("+", name))) => features |= named(name)?,
            (_, Some(("-", name))) => features = features.difference(named(name)?),
            _ => return Err(unknown(word)),
        }
    }
    Ok(features)
}

/// Runs a script. `Err` means that the script could not be parsed.
pub fn run(script: &str, options: &Options<'_>) -> Result<Report, String> {
    let mut lexer = wast::lexer::Lexer::new(script);
    lexer.allow_confusing_unicode(true);
    let buffer = ParseBuffer::new_with_lexer(lexer).map_err(|e| e.to_string())?;
    let mut parsed: Wast<'_> = parser::parse(&buffer).map_err(|e| e.to_string())?;
    let (device, compile) = (options.device.clone(), compile_options(options));
    let settings = Settings { device, compile, features: options.features, max_memory: options.max_memory };
    let modules = load_all(&mut parsed.directives, options, &settings);
    let mut runner = Runner::new(options, settings);
    let mut report = Report::default();
    for (directive, module) in parsed.directives.into_iter().zip(modules) {
        let line = directive.span().linecol_in(script).0 + 1;
        match runner.directive(directive, module) {
            Ok(()) => report.passed += 1,
            Err(Problem::Failed(message)) => report.failures.push((line, message)),
            Err(Problem::Unsupported(what)) => report.unsupported.push((line, what)),
            Err(Problem::Lost(message)) => {
                report.failures.push((line, message));
                report.lost = Some(line);
                break;
            }
        }
    }
    Ok(report)
}

struct Runner<'a, 'o> {
    options: &'o Options<'o>,
    linker: Linker,
    /// The last module's instance, or why there is none.
    current: Result<InstanceId, Problem>,
    named: HashMap<String, Result<InstanceId, Problem>>,
    definitions: HashMap<Option<&'a str>, Result<Loaded, Problem>>,
}

impl<'a, 'o> Runner<'a, 'o> {
    fn new(options: &'o Options<'o>, settings: Settings) -> Self {
        Self {
            options,
            linker: Linker::new(settings),
            current: Err("there is no module before it".into()),
            named: HashMap::new(),
            definitions: HashMap::new(),
        }
    }

    /// Runs a directive. `loaded` is its module, if it has one to run.
    fn directive(&mut self, directive: WastDirective<'a>, loaded: Option<Loaded>) -> Result<(), Problem> {
        match directive {
            WastDirective::Module(module) => {
                let instance = loaded.ok_or_else(|| NOT_LOADED.into()).and_then(|module| self.instance(module));
                self.remember(module.name().map(|id| id.name()), instance)
            }
            WastDirective::ModuleDefinition(module) => {
                let definition = loaded.ok_or_else(|| NOT_LOADED.into()).and_then(|loaded| self.valid(loaded));
                let problem = definition.as_ref().err().cloned();
                self.definitions.insert(module.name().map(|id| id.name()), definition.clone());
                self.definitions.insert(None, definition);
                problem.map_or(Ok(()), Err)
            }
            WastDirective::ModuleInstance { instance, module, .. } => {
                let definition = self.definitions.get(&module.map(|id| id.name())).cloned();
                let made = definition.ok_or("no such module definition")?.and_then(|module| self.instance(module));
                self.remember(instance.map(|id| id.name()), made)
            }
            WastDirective::AssertMalformed { module, message, .. }
            | WastDirective::AssertInvalid { module, message, .. } => self.refused(module, message),
            WastDirective::AssertInvalidCustom { module, message, .. }
            | WastDirective::AssertMalformedCustom { module, message, .. } => refused_custom(module, message),
            WastDirective::AssertUnlinkable { module, message, .. } => self.unlinkable(module, message),
            WastDirective::Register { name, module, .. } => {
                let instance = self.target(module.map(|id| id.name()))?;
                self.linker.register(name, instance);
                Ok(())
            }
            WastDirective::Invoke(call) => self.invoke(&call).map(|_| ()),
            WastDirective::AssertReturn { exec, results, .. } => match self.execute(exec, loaded)? {
                (End::Returned, values) => Ok(compare(&values, &results)?),
                (other, _) => Err(format!("expected results, got {other:?}").into()),
            },
            WastDirective::AssertTrap { exec, message, .. } => {
                let (end, _) = self.execute(exec, loaded)?;
                Ok(trapped(end, message)?)
            }
            WastDirective::AssertException { exec, .. } => {
                let (end, _) = self.execute(exec, loaded)?;
                Ok(trapped(end, TrapCode::UncaughtException.message())?)
            }
            WastDirective::AssertExhaustion { call, message, .. } => {
                let (end, _) = self.invoke(&call)?;
                Ok(trapped(end, message)?)
            }
            other => Err(Problem::Unsupported(format!("the directive {}", kind(&other)))),
        }
    }

    /// Checks a module definition. Whether its instances fit on the device is checked only when one is made.
    fn valid(&self, mut module: Loaded) -> Result<Loaded, Problem> {
        let decoded = gpu_run_wasm::decode_unlinked(&module.wasm, self.options.features);
        if let (Err(error), program) = (decoded, &module.program) {
            let problem = program.as_ref().and_then(|program| program.as_ref().err().cloned());
            return Err(problem.unwrap_or_else(|| Error::from(error).into()));
        }
        module.program = module.program.filter(Result::is_ok);
        Ok(module)
    }

    /// Makes an instance of a module; a trap is a failure.
    fn instance(&mut self, module: Loaded) -> Result<InstanceId, Problem> {
        self.instantiate(module)?.map_err(|trap| Problem::Failed(format!("instantiation trapped: {trap}")))
    }

    fn instantiate(&mut self, module: Loaded) -> Result<Result<InstanceId, Trap>, Problem> {
        let Loaded { wasm, program } = module;
        let prepared = program.transpose()?;
        spectest::provide(&mut self.linker, &imports(&wasm))?;
        let inspect = |compiled: &Compiled| self.options.inspect.map_or(Ok(()), |inspect| inspect(compiled.ptx()));
        Ok(self.linker.instantiate_prepared(wasm, prepared.as_deref(), inspect)?)
    }

    fn remember(&mut self, name: Option<&str>, instance: Result<InstanceId, Problem>) -> Result<(), Problem> {
        if let Some(name) = name {
            self.named.insert(name.to_owned(), instance.clone());
        }
        self.current = instance.clone();
        instance.map(|_| ())
    }

    /// Checks that a module is refused. The messages are not compared: the script's are those of the reference
    /// interpreter.
    fn refused(&mut self, mut module: QuoteWat<'a>, message: &str) -> Result<(), Problem> {
        let Ok(bytes) = module.encode() else { return Ok(()) };
        match gpu_run_wasm::decode_unlinked(&bytes, self.options.features) {
            Err(gpu_run_wasm::Error::Invalid { .. }) => Ok(()),
            Err(other) => match Problem::from(Error::from(other)) {
                Problem::Failed(other) => Err(format!("expected `{message}`, got: {other}").into()),
                problem => Err(problem),
            },
            Ok(_) => Err(format!("expected `{message}`, but the module was accepted").into()),
        }
    }

    /// Checks that a module cannot be linked, for the reason given: an unknown import or an incompatible type.
    fn unlinkable(&mut self, mut module: Wat<'a>, message: &str) -> Result<(), Problem> {
        let bytes = module.encode().map_err(|e| e.to_string())?;
        spectest::provide(&mut self.linker, &imports(&bytes))?;
        let Err(error) = self.linker.check(Arc::new(bytes)) else {
            return Err(format!("expected `{message}`, but the module was linked").into());
        };
        let reason = match &error {
            Error::Module(gpu_run_wasm::Error::UnknownImport { .. }) => "unknown import",
            Error::Module(gpu_run_wasm::Error::ImportType { .. }) => "incompatible import type",
            _ => "",
        };
        match Problem::from(error) {
            Problem::Failed(_) if reason.starts_with(message) => Ok(()),
            Problem::Failed(other) => Err(format!("expected `{message}`, got: {other}").into()),
            problem => Err(problem),
        }
    }

    fn execute(&mut self, exec: WastExecute<'a>, loaded: Option<Loaded>) -> Result<(End, Vec<Value>), Problem> {
        match exec {
            WastExecute::Invoke(call) => self.invoke(&call),
            WastExecute::Get { module, global, .. } => {
                let instance = self.target(module.map(|id| id.name()))?;
                let value = self.linker.global(instance, global)?;
                Ok((End::Returned, vec![value.ok_or_else(|| format!("no exported global `{global}`"))?]))
            }
            WastExecute::Wat(_) => {
                let made = self.instantiate(loaded.ok_or(NOT_LOADED)?)?;
                Ok((made.map_or_else(|trap| End::Trapped(Box::new(trap)), |_| End::Returned), Vec::new()))
            }
        }
    }

    fn target(&self, name: Option<&str>) -> Result<InstanceId, Problem> {
        let instance = match name {
            None => &self.current,
            Some(name) => self.named.get(name).ok_or_else(|| format!("no module `{name}`"))?,
        };
        instance.as_ref().copied().map_err(follows)
    }

    fn invoke(&mut self, call: &WastInvoke<'_>) -> Result<(End, Vec<Value>), Problem> {
        let args = call.args.iter().map(argument).collect::<Result<Vec<_>, _>>()?;
        let instance = self.target(call.module.map(|id| id.name()))?;
        let outcome = self.linker.invoke(instance, call.name, &args, Some(Instant::now() + LIMIT))?;
        Ok((outcome.end, outcome.results))
    }
}

const NOT_LOADED: &str = "the script's modules were not loaded";

/// Checks that a module with a malformed custom section is refused. The text parser finds such errors.
fn refused_custom(mut module: QuoteWat<'_>, message: &str) -> Result<(), Problem> {
    match module.encode() {
        Err(_) => Ok(()),
        Ok(_) => Err(format!("expected `{message}`, but the module was accepted").into()),
    }
}

/// Returns the problem of a directive whose module has one.
fn follows(problem: &Problem) -> Problem {
    match problem {
        Problem::Failed(_) => "the module before it did not load".into(),
        other => other.clone(),
    }
}

fn trapped(end: End, message: &str) -> Result<(), String> {
    match end {
        End::Trapped(trap) => same_trap(trap.code, message),
        other => Err(format!("expected the trap `{message}`, got {other:?}")),
    }
}

fn kind(directive: &WastDirective<'_>) -> String {
    let text = format!("{directive:?}");
    text.chars().take_while(|c| c.is_alphanumeric()).collect()
}
