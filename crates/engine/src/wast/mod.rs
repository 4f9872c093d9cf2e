//! Runs scripts of the official test suite: modules, calls, and what is said of their results.
//!
//! ```text
//! modules   every module of the script, compiled and loaded on all cores before the first call
//! judge     values and traps, against what the script says of them
//! ```
//!
//! Each directive is a check of its own: one that fails does not stop the script, and the report says which lines did. A
//! directive that needs what gpu-run does not have yet, or a module that needs it, is counted apart, with what it needs.

mod judge;
mod modules;

use crate::error::Error;
use crate::instance::Instance;
use crate::program::{End, Program};
use crate::value::Value;
use gpu_run_abi::Layout;
use gpu_run_device::Device;
use gpu_run_wasi::{Builder, Stdio};
use gpu_run_wasm::WasmFeatures;
use judge::{argument, compare, same_trap};
use modules::{Loaded, load_all};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wast::parser::{self, ParseBuffer};
use wast::{QuoteWat, Wast, WastDirective, WastExecute, WastInvoke, Wat};

/// How a script is run.
#[derive(Clone)]
pub struct Options<'a> {
    pub device: Arc<dyn Device>,
    pub layout: Layout,
    pub features: WasmFeatures,
    /// Bytes of linear memory an instance may have at most, where memory is really taken; see [`Options::room`].
    pub max_memory: Option<u64>,
    /// Is shown the PTX of every module that is compiled, and may object.
    pub inspect: Option<Inspect<'a>>,
}

/// Looks at PTX text.
pub type Inspect<'a> = &'a (dyn Fn(&str) -> Result<(), String> + Sync);

/// What the suite's memories grow to: 804 pages, and some to spare.
const MEMORY: u64 = 1024 * gpu_run_abi::layout::PAGE;

impl Options<'_> {
    /// What [`Options::max_memory`] should be on a device, and how many scripts it has room for at once: one that
    /// sets memory aside before it is used would give all of it to the first instance that might grow.
    pub fn room(device: &dyn Device, layout: Layout) -> (Option<u64>, usize) {
        let properties = device.properties();
        if properties.overcommits {
            return (None, usize::MAX);
        }
        // A script has its last instance and the next one at the same time, and now and then others that have a name.
        let script = 4 * layout.slots(1) * MEMORY;
        (Some(MEMORY), (properties.memory_bytes / 2 / script).max(1) as usize)
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
    /// Line (from 1) and what it needs that is not there yet.
    pub unsupported: Vec<(usize, String)>,
    /// The line at which the device was lost. It is the last of the failures; nothing after it was run.
    pub lost: Option<usize>,
}

/// Why a directive did not pass.
#[derive(Clone, Debug)]
enum Problem {
    Failed(String),
    /// It needs this.
    Unsupported(String),
    /// The device is gone, and everything on it.
    Lost(String),
}

const LINKING: &str = "linking between instances";

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
        use gpu_run_wasm::Error::{UnknownImport, Unsupported};
        match error {
            Error::Module(Unsupported { feature, .. }) => Self::Unsupported(feature),
            Error::Module(UnknownImport { module, .. }) if module != "spectest" => Self::Unsupported(LINKING.into()),
            error if error.is_device_lost() => Self::Lost(error.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// A runaway call is ended after this long.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a script. An `Err` means that it could not be parsed.
pub fn run(script: &str, options: &Options<'_>) -> Result<Report, String> {
    let mut lexer = wast::lexer::Lexer::new(script);
    lexer.allow_confusing_unicode(true);
    let buffer = ParseBuffer::new_with_lexer(lexer).map_err(|e| e.to_string())?;
    let mut parsed: Wast<'_> = parser::parse(&buffer).map_err(|e| e.to_string())?;
    let modules = load_all(&mut parsed.directives, options);
    let mut runner = Runner::new(options);
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
    /// The name of the last module's instance, or why there is none.
    current: Result<String, Problem>,
    named: HashMap<String, Result<Instance, Problem>>,
    definitions: HashMap<Option<&'a str>, Result<Arc<Program>, Problem>>,
    /// What modules can import, and which instance's it is.
    registered: HashMap<String, String>,
    /// Instances that a module which could not be linked to them may have changed.
    missed: HashSet<String>,
}

/// The name an instance without one goes by.
const ANONYMOUS: &str = "";

impl<'a, 'o> Runner<'a, 'o> {
    fn new(options: &'o Options<'o>) -> Self {
        Self {
            options,
            current: Err("there is no module before it".into()),
            named: HashMap::new(),
            definitions: HashMap::new(),
            registered: HashMap::new(),
            missed: HashSet::new(),
        }
    }

    /// `loaded` is the directive's module, if it has one to run.
    fn directive(&mut self, directive: WastDirective<'a>, loaded: Option<Loaded>) -> Result<(), Problem> {
        match directive {
            WastDirective::Module(module) => {
                let name = module.name().map_or(ANONYMOUS, |id| id.name());
                let program = self.program(loaded);
                self.instantiate(name, program)
            }
            WastDirective::ModuleDefinition(module) => {
                let program = self.program(loaded);
                let problem = program.as_ref().err().cloned();
                self.definitions.insert(module.name().map(|id| id.name()), program);
                problem.map_or(Ok(()), Err)
            }
            WastDirective::ModuleInstance { instance, module, .. } => {
                let definition = self.definitions.get(&module.map(|id| id.name())).cloned();
                let program = definition.ok_or("no such module definition")?;
                self.instantiate(instance.map_or(ANONYMOUS, |id| id.name()), program)
            }
            WastDirective::AssertMalformed { module, message, .. }
            | WastDirective::AssertInvalid { module, message, .. } => self.refused(module, message),
            WastDirective::AssertUnlinkable { module, .. } => self.unlinkable(module),
            WastDirective::Register { name, module, .. } => {
                let instance = module.map_or_else(|| self.current.clone(), |id| Ok(id.name().to_owned()))?;
                self.registered.insert(name.to_owned(), instance);
                Err(Problem::Unsupported(LINKING.into()))
            }
            WastDirective::Invoke(call) => self.invoke(&call).map(|_| ()),
            WastDirective::AssertReturn { exec, results, .. } => {
                let place = self.place(&exec);
                let (end, values) = self.execute(exec, loaded)?;
                let verdict = match end {
                    End::Returned => compare(&values, &results),
                    other => Err(format!("expected results, got {other:?}")),
                };
                self.verdict(place, verdict)
            }
            WastDirective::AssertTrap { exec, message, .. } => {
                let place = self.place(&exec);
                let end = self.execute(exec, loaded)?.0;
                self.verdict(place, trapped(end, message))
            }
            WastDirective::AssertExhaustion { call, message, .. } => {
                let place = self.instance_name(&call);
                let end = self.invoke(&call)?.0;
                self.verdict(place, trapped(end, message))
            }
            other => Err(Problem::Unsupported(format!("the directive {}", kind(&other)))),
        }
    }

    /// The instance an assertion is about, if it is about one that stays.
    fn place(&self, exec: &WastExecute<'_>) -> Option<String> {
        match exec {
            WastExecute::Invoke(call) => self.instance_name(call),
            WastExecute::Get { module, .. } => self.name(module.map(|id| id.name())),
            WastExecute::Wat(_) => None,
        }
    }

    fn instance_name(&self, call: &WastInvoke<'_>) -> Option<String> {
        self.name(call.module.map(|id| id.name()))
    }

    fn name(&self, name: Option<&str>) -> Option<String> {
        name.or(self.current.as_deref().ok()).map(str::to_owned)
    }

    /// What is wrong with an instance that a module should have changed, had it been linked, is for want of that.
    fn verdict(&self, instance: Option<String>, verdict: Result<(), String>) -> Result<(), Problem> {
        let missed = instance.is_some_and(|name| self.missed.contains(&name));
        verdict.map_err(|message| if missed { Problem::Unsupported(LINKING.into()) } else { Problem::Failed(message) })
    }

    fn program(&mut self, loaded: Option<Loaded>) -> Result<Arc<Program>, Problem> {
        let loaded = loaded.ok_or("the script's modules were not loaded")?;
        if matches!(&loaded.program, Err(Problem::Unsupported(what)) if what == LINKING) {
            let exporters = loaded.imports.iter().filter_map(|module| self.registered.get(module));
            self.missed.extend(exporters.cloned());
        }
        loaded.program
    }

    fn instance(&self, program: Arc<Program>) -> Result<Result<Instance, crate::Trap>, Problem> {
        Ok(Instance::new(program, Builder::new().build(Stdio::null()), self.options.max_memory)?)
    }

    fn instantiate(&mut self, name: &str, program: Result<Arc<Program>, Problem>) -> Result<(), Problem> {
        let trapped = |trap| Problem::Failed(format!("instantiation trapped: {trap}"));
        let instance = program.and_then(|program| self.instance(program)?.map_err(trapped));
        let problem = instance.as_ref().err().cloned();
        self.named.insert(name.to_owned(), instance);
        self.missed.remove(name);
        self.current = problem.clone().map_or(Ok(name.to_owned()), Err);
        problem.map_or(Ok(()), Err)
    }

    /// A module that must not be accepted. The words are not compared: they are the reference interpreter's.
    fn refused(&mut self, mut module: QuoteWat<'a>, message: &str) -> Result<(), Problem> {
        let Ok(bytes) = module.encode() else { return Ok(()) };
        match gpu_run_wasm::decode(&bytes, self.options.features) {
            Err(gpu_run_wasm::Error::Invalid { .. }) => Ok(()),
            Err(other) => match Problem::from(Error::from(other)) {
                Problem::Failed(other) => Err(format!("expected `{message}`, got: {other}").into()),
                problem => Err(problem),
            },
            Ok(_) => Err(format!("expected `{message}`, but the module was accepted").into()),
        }
    }

    fn unlinkable(&mut self, mut module: Wat<'a>) -> Result<(), Problem> {
        let bytes = module.encode().map_err(|e| e.to_string())?;
        match gpu_run_wasm::decode(&bytes, self.options.features) {
            Err(gpu_run_wasm::Error::UnknownImport { .. } | gpu_run_wasm::Error::ImportType { .. }) => Ok(()),
            Err(other) => match Problem::from(Error::from(other)) {
                Problem::Failed(other) => Err(format!("expected a failure to link, got: {other}").into()),
                problem => Err(problem),
            },
            Ok(_) => Err("expected a failure to link, but the module was accepted".into()),
        }
    }

    fn execute(&mut self, exec: WastExecute<'a>, loaded: Option<Loaded>) -> Result<(End, Vec<Value>), Problem> {
        match exec {
            WastExecute::Invoke(call) => self.invoke(&call),
            WastExecute::Get { module, global, .. } => {
                let instance = self.target(module.map(|id| id.name()))?;
                let value = instance.global(global)?.ok_or_else(|| format!("no exported global `{global}`"))?;
                Ok((End::Returned, vec![value]))
            }
            WastExecute::Wat(_) => {
                let program = self.program(loaded)?;
                Ok((
                    self.instance(program)?.map_or_else(|trap| End::Trapped(Box::new(trap)), |_| End::Returned),
                    Vec::new(),
                ))
            }
        }
    }

    fn target(&mut self, name: Option<&str>) -> Result<&mut Instance, Problem> {
        let name = match (name, &self.current) {
            (Some(name), _) => name,
            (None, Ok(name)) => name,
            (None, Err(problem)) => return Err(follows(problem)),
        };
        match self.named.get_mut(name) {
            Some(instance) => instance.as_mut().map_err(|problem| follows(problem)),
            None => Err(format!("no module `{name}`").into()),
        }
    }

    fn invoke(&mut self, call: &WastInvoke<'_>) -> Result<(End, Vec<Value>), Problem> {
        let args = call.args.iter().map(argument).collect::<Result<Vec<_>, _>>()?;
        let instance = self.target(call.module.map(|id| id.name()))?;
        let outcome = instance.invoke(call.name, &args, Some(Instant::now() + LIMIT))?;
        Ok((outcome.end, outcome.results))
    }
}

/// What becomes of a directive whose module has a problem.
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
