//! Each file in `tests/filetests` holds CLIF and, after it in `;;` comments, the PTX that this crate prints for it.
//!
//! Lines that begin with `;!` are options:
//!
//! - `layout = linear` (the default) or `interleaved`
//! - `checks = exact` (the default) or `speculative`
//! - `memory = slot` (the default) or `local`: where guest memory is
//! - `gang region = BYTES`: the functions are a gang's, whose region has this many bytes
//! - `read-only data`: the 256 bytes at guest address 65536 are read-only, and byte `n` of them is `n`
//! - `optimize`: the functions go through `Context::optimize` first, as in the compiler
//! - `cycle`: the functions call each other in a circle
//! - `module`: the test compares the whole module instead of its functions one by one
//!
//! Functions of namespace 2 are kernels, unless their index is 100 or more. `BLESS=1` rewrites the expectations.
//!
//! NVIDIA's assembler also has to accept every file. The test looks for it in `GPU_RUN_PTXAS` and `PATH`, and is
//! ignored if there is none.

use cranelift_codegen::ir::UserFuncName;
use cranelift_codegen::{Context, control::ControlPlane, settings};
use gpu_run_abi::Layout;
use gpu_run_abi::intrinsic::namespace;
use gpu_run_ptx::{Build, Function, Home, Kind, Memory, Program, ReadOnly, Target, emit, emit_function};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::Command;

type Outcome<T = ()> = Result<T, Failed>;

fn main() {
    let arguments = Arguments::from_args();
    let mut files: Vec<PathBuf> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/filetests"))
        .expect("the folder of file tests")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "clif"))
        .collect();
    files.sort();
    let assembler = ptxas();
    let mut trials = Vec::new();
    for path in files {
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let file = path.clone();
        trials.push(Trial::test(format!("text::{name}"), move || compare(&file)));
        let tool = assembler.clone();
        let is_missing = tool.is_none();
        trials.push(
            Trial::test(format!("ptxas::{name}"), move || assemble(&path, &tool.unwrap_or_default()))
                .with_ignored_flag(is_missing),
        );
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn ptxas() -> Option<PathBuf> {
    let named = std::env::var_os("GPU_RUN_PTXAS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    named.or_else(|| std::env::split_paths(&path).map(|folder| folder.join("ptxas")).find(|file| file.is_file()))
}

struct Case {
    input: String,
    expected: String,
    program: Program,
    is_module: bool,
}

/// The options in a file's `;!` lines.
struct Options {
    layout: Layout,
    is_speculative: bool,
    is_local: bool,
    gang_region: Option<u64>,
    has_read_only_data: bool,
    optimizes: bool,
    is_cycle: bool,
    is_module: bool,
}

impl Options {
    fn read(input: &str) -> Outcome<Options> {
        let mut options = Options {
            layout: Layout::Linear,
            is_speculative: false,
            is_local: false,
            gang_region: None,
            has_read_only_data: false,
            optimizes: false,
            is_cycle: false,
            is_module: false,
        };
        for line in input.lines().filter_map(|line| line.strip_prefix(";!")) {
            match line.trim().split_once(" = ").unwrap_or((line.trim(), "")) {
                ("layout", "linear") => options.layout = Layout::Linear,
                ("layout", "interleaved") => options.layout = Layout::Interleaved,
                ("checks", "exact") => options.is_speculative = false,
                ("checks", "speculative") => options.is_speculative = true,
                ("memory", "slot") => options.is_local = false,
                ("memory", "local") => options.is_local = true,
                ("gang region", bytes) => {
                    options.gang_region = Some(bytes.parse().map_err(|e| format!("{bytes}: {e}"))?);
                }
                ("read-only data", "") => options.has_read_only_data = true,
                ("optimize", "") => options.optimizes = true,
                ("cycle", "") => options.is_cycle = true,
                ("module", "") => options.is_module = true,
                _ => return Err(format!("unknown option `{}`", line.trim()).into()),
            }
        }
        Ok(options)
    }

    fn build(&self) -> Build {
        let home = if self.is_local { Home::Local } else { Home::Slots(self.layout) };
        match self.gang_region {
            Some(region) => Build::Gang { region, relaxed: false },
            None if self.is_speculative => Build::Speculative { home, read_only: self.read_only_data() },
            None => Build::Exact(self.layout),
        }
    }

    fn read_only_data(&self) -> ReadOnly {
        match self.has_read_only_data {
            true => ReadOnly { at: 65536, bytes: (0..=255).collect() },
            false => ReadOnly::default(),
        }
    }
}

fn read(path: &Path) -> Outcome<Case> {
    let text = std::fs::read_to_string(path)?;
    let cut = text.lines().position(|l| l.starts_with(";;")).unwrap_or(text.lines().count());
    let input: String = text.lines().take(cut).flat_map(|l| [l, "\n"]).collect();
    let expected: String = text.lines().skip(cut).flat_map(|l| [l, "\n"]).collect();
    let options = Options::read(&input)?;
    let isa = cranelift_native::builder()?.finish(settings::Flags::new(settings::builder()))?;
    let mut functions = Vec::new();
    for clif in cranelift_reader::parse_functions(&input).map_err(|e| format!("{e}"))? {
        cranelift_codegen::verify_function(&clif, isa.as_ref()).map_err(|e| format!("{}: {e}", clif.name))?;
        let mut context = Context::for_function(clif);
        if options.optimizes {
            context.optimize(isa.as_ref(), &mut ControlPlane::default())?;
        }
        let UserFuncName::User(name) = context.func.name.clone() else { return Err("name functions u0:n".into()) };
        let is_kernel = name.namespace == namespace::RUNTIME && name.index < 100;
        functions.push(Function {
            symbol: format!("{}{}", ["f", "", "r"][name.namespace as usize], name.index),
            trap_id: name.index,
            cycle: options.is_cycle.then_some(0),
            clif: context.func,
            kind: if is_kernel { Kind::Kernel } else { Kind::Device },
            comment: String::new(),
        });
    }
    let function_table = functions
        .iter()
        .filter_map(|f| f.clif.name.get_user())
        .filter(|name| name.namespace == namespace::WASM)
        .flat_map(|name| [Some(name.index), None])
        .collect();
    let program = Program {
        functions,
        function_table,
        memory: Memory { at: 1024, least: 1 << 20, low: 0 },
        build: options.build(),
    };
    Ok(Case { input, expected, program, is_module: options.is_module })
}

fn compare(path: &Path) -> Outcome {
    let case = read(path)?;
    let mut actual = String::new();
    if case.is_module {
        actual.push_str(&emit(&case.program, &Target::for_sm(75))?);
    } else {
        for position in 0..case.program.functions.len() {
            actual.push_str(&emit_function(&case.program, position)?.text);
        }
    }
    let actual: String =
        actual.lines().flat_map(|l| if l.is_empty() { [";;", "", "\n"] } else { [";; ", l, "\n"] }).collect();
    if std::env::var_os("BLESS").is_some() {
        return Ok(std::fs::write(path, format!("{}{actual}", case.input))?);
    }
    if actual != case.expected {
        let line = actual.lines().zip(case.expected.lines()).position(|(a, b)| a != b).unwrap_or_default();
        let at = |text: &str| text.lines().skip(line.saturating_sub(3)).take(7).collect::<Vec<_>>().join("\n");
        return Err(format!(
            "{}: the text differs; BLESS=1 rewrites it\nexpected:\n{}\nmade:\n{}",
            path.display(),
            at(&case.expected),
            at(&actual)
        )
        .into());
    }
    Ok(())
}

/// Assembles the whole module, with a kernel that makes every function reachable.
fn assemble(path: &Path, ptxas: &Path) -> Outcome {
    let mut case = read(path)?;
    let anchor = "function u2:99(i64) { gv0 = symbol u3:0\nblock0(v0: i64): v1 = symbol_value.i64 gv0\nreturn }";
    let anchor = cranelift_reader::parse_functions(anchor).map_err(|e| format!("{e}"))?.remove(0);
    case.program.functions.push(Function {
        symbol: "anchor".to_string(),
        trap_id: 0,
        cycle: None,
        clif: anchor,
        kind: Kind::Kernel,
        comment: String::new(),
    });
    let ptx = emit(&case.program, &Target::for_sm(75))?;
    for function in &case.program.functions {
        let is_device_code = function.clif.name.get_user().is_some_and(|n| n.namespace == namespace::WASM);
        if is_device_code && !ptx.contains(&format!(" {} (", function.symbol)) {
            return Err(format!("{} is missing from the module", function.symbol).into());
        }
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let (source, object) = (folder.join(format!("{stem}.ptx")), folder.join(format!("{stem}.o")));
    std::fs::write(&source, ptx)?;
    let output = Command::new(ptxas).args(["-c", "-arch=sm_75", "-o"]).arg(&object).arg(&source).output()?;
    if !output.status.success() {
        return Err(format!("{}\n{}", source.display(), String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(())
}
