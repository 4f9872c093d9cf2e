//! Runs scripts of the official test suite: modules, calls, and what is said of their results.
//!
//! Each directive is a check of its own: one that fails does not stop the script, and the report says which lines did.

use crate::compile::{CompileOptions, Compiled, Entry};
use crate::error::Error;
use crate::instance::Instance;
use crate::program::{End, Program};
use crate::value::Value;
use gpu_run_abi::{Layout, TrapCode};
use gpu_run_device::Device;
use gpu_run_wasi::{Builder, Stdio};
use gpu_run_wasm::WasmFeatures;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wast::core::{NanPattern, WastArgCore, WastRetCore};
use wast::parser::{self, ParseBuffer};
use wast::{QuoteWat, Wast, WastArg, WastDirective, WastExecute, WastInvoke, WastRet, Wat};

/// How a script is run.
#[derive(Clone)]
pub struct Options<'a> {
    pub device: Arc<dyn Device>,
    pub layout: Layout,
    pub features: WasmFeatures,
    /// Is shown the PTX of every module that is compiled, and may object.
    pub inspect: Option<Inspect<'a>>,
}

/// Looks at PTX text.
pub type Inspect<'a> = &'a (dyn Fn(&str) -> Result<(), String> + Sync);

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
}

/// A runaway call is ended after this long.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a script. An `Err` means that it could not be parsed.
pub fn run(script: &str, options: &Options<'_>) -> Result<Report, String> {
    let mut lexer = wast::lexer::Lexer::new(script);
    lexer.allow_confusing_unicode(true);
    let buffer = ParseBuffer::new_with_lexer(lexer).map_err(|e| e.to_string())?;
    let parsed: Wast<'_> = parser::parse(&buffer).map_err(|e| e.to_string())?;
    let mut runner = Runner { options, current: None, named: HashMap::new(), definitions: HashMap::new() };
    let mut report = Report::default();
    for directive in parsed.directives {
        let line = directive.span().linecol_in(script).0 + 1;
        match runner.directive(directive) {
            Ok(()) => report.passed += 1,
            Err(message) => report.failures.push((line, message)),
        }
    }
    Ok(report)
}

struct Runner<'a, 'o> {
    options: &'o Options<'o>,
    /// The instance of the last module; `None` if that failed.
    current: Option<String>,
    named: HashMap<String, Instance>,
    definitions: HashMap<Option<&'a str>, Vec<u8>>,
}

/// The name an instance without one goes by.
const ANONYMOUS: &str = "";

impl<'a> Runner<'a, '_> {
    fn directive(&mut self, directive: WastDirective<'a>) -> Result<(), String> {
        match directive {
            WastDirective::Module(mut module) => {
                self.current = None;
                let name = module.name().map_or(ANONYMOUS, |id| id.name());
                let bytes = module.encode().map_err(|e| e.to_string())?;
                self.instantiate(name, &bytes)
            }
            WastDirective::ModuleDefinition(mut module) => {
                let name = module.name().map(|id| id.name());
                let bytes = module.encode().map_err(|e| e.to_string())?;
                self.compile(&bytes)?;
                self.definitions.insert(name, bytes);
                Ok(())
            }
            WastDirective::ModuleInstance { instance, module, .. } => {
                let bytes =
                    self.definitions.get(&module.map(|id| id.name())).cloned().ok_or("no such module definition")?;
                self.instantiate(instance.map_or(ANONYMOUS, |id| id.name()), &bytes)
            }
            WastDirective::AssertMalformed { module, message, .. }
            | WastDirective::AssertInvalid { module, message, .. } => self.refused(module, message),
            WastDirective::AssertUnlinkable { module, .. } => self.unlinkable(module),
            WastDirective::Register { .. } => Err("linking between instances".into()),
            WastDirective::Invoke(call) => self.invoke(&call).map(|_| ()),
            WastDirective::AssertReturn { exec, results, .. } => {
                let (end, values) = self.execute(exec)?;
                match end {
                    End::Returned => compare(&values, &results),
                    other => Err(format!("expected results, got {other:?}")),
                }
            }
            WastDirective::AssertTrap { exec, message, .. } => match self.execute(exec)?.0 {
                End::Trapped(trap) => same_trap(trap.code, message),
                other => Err(format!("expected the trap `{message}`, got {other:?}")),
            },
            WastDirective::AssertExhaustion { call, message, .. } => match self.invoke(&call)?.0 {
                End::Trapped(trap) => same_trap(trap.code, message),
                other => Err(format!("expected the trap `{message}`, got {other:?}")),
            },
            other => Err(format!("this directive is not supported: {}", kind(&other))),
        }
    }

    fn compile(&self, bytes: &[u8]) -> Result<Program, String> {
        let options = CompileOptions { layout: self.options.layout, sm: 75, entry: Entry::Exports };
        let compiled = Compiled::with_features(bytes, &options, self.options.features).map_err(|e| e.to_string())?;
        if let Some(inspect) = self.options.inspect {
            inspect(compiled.ptx())?;
        }
        Program::load(self.options.device.clone(), Arc::new(compiled)).map_err(|e| e.to_string())
    }

    fn instance(&self, bytes: &[u8]) -> Result<Result<Instance, crate::Trap>, String> {
        let program = Arc::new(self.compile(bytes)?);
        Instance::new(program, Builder::new().build(Stdio::null()), None).map_err(|e| e.to_string())
    }

    fn instantiate(&mut self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let instance = self.instance(bytes)?.map_err(|trap| format!("instantiation trapped: {trap}"))?;
        self.named.insert(name.to_owned(), instance);
        self.current = Some(name.to_owned());
        Ok(())
    }

    /// A module that must not be accepted. The words are not compared: they are the reference interpreter's.
    fn refused(&mut self, mut module: QuoteWat<'a>, message: &str) -> Result<(), String> {
        let Ok(bytes) = module.encode() else { return Ok(()) };
        match gpu_run_wasm::decode(&bytes, self.options.features) {
            Err(gpu_run_wasm::Error::Invalid { .. }) => Ok(()),
            Err(other) => Err(format!("expected `{message}`, got: {other}")),
            Ok(_) => Err(format!("expected `{message}`, but the module was accepted")),
        }
    }

    fn unlinkable(&mut self, mut module: Wat<'a>) -> Result<(), String> {
        let bytes = module.encode().map_err(|e| e.to_string())?;
        match gpu_run_wasm::decode(&bytes, self.options.features) {
            Err(gpu_run_wasm::Error::UnknownImport { .. } | gpu_run_wasm::Error::ImportType { .. }) => Ok(()),
            Err(other) => Err(format!("expected a failure to link, got: {other}")),
            Ok(_) => Err("expected a failure to link, but the module was accepted".into()),
        }
    }

    fn execute(&mut self, exec: WastExecute<'a>) -> Result<(End, Vec<Value>), String> {
        match exec {
            WastExecute::Invoke(call) => self.invoke(&call),
            WastExecute::Get { module, global, .. } => {
                let instance = self.target(module.map(|id| id.name()))?;
                let value = instance
                    .global(global)
                    .map_err(|e| e.to_string())?
                    .ok_or_else(|| format!("no exported global `{global}`"))?;
                Ok((End::Returned, vec![value]))
            }
            WastExecute::Wat(mut module) => {
                let bytes = module.encode().map_err(|e| e.to_string())?;
                Ok((self.instance(&bytes)?.map_or_else(End::Trapped, |_| End::Returned), Vec::new()))
            }
        }
    }

    fn target(&mut self, name: Option<&str>) -> Result<&mut Instance, String> {
        let name = name.or(self.current.as_deref()).ok_or("the module before it did not load")?;
        self.named.get_mut(name).ok_or_else(|| format!("no module `{name}`"))
    }

    fn invoke(&mut self, call: &WastInvoke<'_>) -> Result<(End, Vec<Value>), String> {
        let args = call.args.iter().map(argument).collect::<Result<Vec<_>, _>>()?;
        let instance = self.target(call.module.map(|id| id.name()))?;
        let outcome =
            instance.invoke(call.name, &args, Some(Instant::now() + LIMIT)).map_err(|e: Error| e.to_string())?;
        Ok((outcome.end, outcome.results))
    }
}

fn argument(arg: &WastArg<'_>) -> Result<Value, String> {
    let WastArg::Core(arg) = arg else { return Err("component values".into()) };
    Ok(match arg {
        WastArgCore::I32(v) => Value::I32(*v),
        WastArgCore::I64(v) => Value::I64(*v),
        WastArgCore::F32(v) => Value::F32(v.bits),
        WastArgCore::F64(v) => Value::F64(v.bits),
        WastArgCore::RefExtern(n) => Value::ExternRef(Some(*n)),
        WastArgCore::RefNull(heap) if is_extern(heap) => Value::ExternRef(None),
        WastArgCore::RefNull(_) => Value::FuncRef(None),
        other => return Err(format!("argument {other:?} is not supported")),
    })
}

fn is_extern(heap: &wast::core::HeapType<'_>) -> bool {
    matches!(heap, wast::core::HeapType::Abstract { ty: wast::core::AbstractHeapType::Extern, .. })
}

fn compare(values: &[Value], expected: &[WastRet<'_>]) -> Result<(), String> {
    let fits = |(value, expected): (&Value, &WastRet<'_>)| matches!(expected, WastRet::Core(core) if matches_core(*value, core));
    match values.len() == expected.len() && values.iter().zip(expected).all(fits) {
        true => Ok(()),
        false => Err(format!("expected {expected:?}, got {values:?}")),
    }
}

fn matches_core(value: Value, expected: &WastRetCore<'_>) -> bool {
    match (value, expected) {
        (Value::I32(v), WastRetCore::I32(e)) => v == *e,
        (Value::I64(v), WastRetCore::I64(e)) => v == *e,
        (Value::F32(v), WastRetCore::F32(e)) => match e {
            NanPattern::CanonicalNan => v & 0x7fff_ffff == 0x7fc0_0000,
            NanPattern::ArithmeticNan => v & 0x7fc0_0000 == 0x7fc0_0000,
            NanPattern::Value(e) => v == e.bits,
        },
        (Value::F64(v), WastRetCore::F64(e)) => match e {
            NanPattern::CanonicalNan => v & 0x7fff_ffff_ffff_ffff == 0x7ff8_0000_0000_0000,
            NanPattern::ArithmeticNan => v & 0x7ff8_0000_0000_0000 == 0x7ff8_0000_0000_0000,
            NanPattern::Value(e) => v == e.bits,
        },
        (Value::FuncRef(None) | Value::ExternRef(None), WastRetCore::RefNull(_)) => true,
        (Value::ExternRef(Some(v)), WastRetCore::RefExtern(e)) => e.is_none_or(|e| v == e),
        (Value::FuncRef(Some(_)), WastRetCore::RefFunc(None)) => true,
        (value, WastRetCore::Either(all)) => all.iter().any(|one| matches_core(value, one)),
        _ => false,
    }
}

/// The suite's words for a trap begin with ours, or ours with theirs ("uninitialized element 7").
fn same_trap(code: TrapCode, message: &str) -> Result<(), String> {
    let ours = code.message();
    match message.starts_with(ours) || ours.starts_with(message) {
        true => Ok(()),
        false => Err(format!("expected the trap `{message}`, got `{ours}`")),
    }
}

fn kind(directive: &WastDirective<'_>) -> String {
    let text = format!("{directive:?}");
    text.chars().take_while(|c| c.is_alphanumeric()).collect()
}
