//! Each file in `tests/filetests` is a module in the text format, followed by `;;` comments with what the compiler
//! makes of its functions.
//!
//! Lines that begin with `;;!` are options:
//!
//! ```text
//! ;;! build = "exact-interleaved"     one of BUILDS; exact-linear by default
//! ;;! check = "clif ptx"              what to compare; both by default
//! ;;! function = "f"                  only functions whose name contains this
//! ;;! backtrace = "on"                functions note their calls; off by default
//! ```
//!
//! With `BLESS=1` the expectations are rewritten. NVIDIA's assembler, found through `GPU_RUN_PTXAS` or `PATH`,
//! assembles every module; if there is none, those tests are ignored.

mod support;

use gpu_run_abi::{Build, GangSizes, Layout, Placement};
use gpu_run_compiler::{CompileOptions, Compiled, Entry, Explained, explain};
use libtest_mimic::{Arguments, Failed, Trial};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const GANG: GangSizes =
    GangSizes { threads: 64, groups: 1, image_bytes: 1 << 20, stack_bytes: 4096, bus_bytes: 1 << 16 };

const BUILDS: [(&str, Build); 7] = [
    ("exact-linear", Build::Exact(Layout::Linear)),
    ("exact-interleaved", Build::Exact(Layout::Interleaved)),
    ("speculative-linear", Build::Speculative(Placement::Linear)),
    ("speculative-interleaved", Build::Speculative(Placement::Interleaved)),
    ("speculative-local", Build::Speculative(Placement::Local { bytes: 256 << 10 })),
    ("gang", Build::Gang { sizes: GANG, relaxed: false }),
    ("threads", Build::Threads),
];

fn main() {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of file tests")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    let is_judged = support::ptxas().is_some();
    let mut trials = Vec::new();
    for file in files {
        let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let path = file.clone();
        trials.push(Trial::test(format!("text::{name}"), move || compare(&path)));
        trials.push(Trial::test(format!("ptxas::{name}"), move || assemble(&file)).with_ignored_flag(!is_judged));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

struct Case {
    /// The file up to its expectations.
    input: String,
    expected: String,
    wasm: Vec<u8>,
    options: CompileOptions,
    checks_clif: bool,
    checks_ptx: bool,
    function: Option<String>,
}

fn read(path: &Path) -> Result<Case, Failed> {
    let text = std::fs::read_to_string(path)?;
    // Expectations are the comments behind the module.
    let end = text.lines().rev().skip_while(|line| line.starts_with(";;")).map(|line| line.len() + 1).sum::<usize>();
    let (input, expected) = text.split_at(end.min(text.len()));
    let mut case = Case {
        input: input.into(),
        expected: expected.into(),
        wasm: wat::parse_str(input)?,
        options: CompileOptions::new(BUILDS[0].1, Entry::Exports),
        checks_clif: true,
        checks_ptx: true,
        function: None,
    };
    for option in input.lines().filter_map(|line| line.strip_prefix(";;!")) {
        let (name, value) = option.split_once('=').ok_or_else(|| format!("`{option}` is no `name = \"value\"`"))?;
        let value = value.trim().trim_matches('"');
        match name.trim() {
            "build" => {
                let build = BUILDS.iter().find(|(name, _)| *name == value);
                case.options.build = build.ok_or_else(|| format!("there is no build `{value}`"))?.1;
            }
            "check" => (case.checks_clif, case.checks_ptx) = (value.contains("clif"), value.contains("ptx")),
            "function" => case.function = Some(value.into()),
            "backtrace" => case.options.backtrace = value == "on",
            other => return Err(format!("there is no option `{other}`").into()),
        }
    }
    Ok(case)
}

fn compare(path: &Path) -> Result<(), Failed> {
    let case = read(path)?;
    let functions = explain(&case.wasm, &case.options, case.function.as_deref())?;
    if functions.is_empty() {
        return Err("no function is shown".into());
    }
    let made: String = functions.iter().map(|function| show(&case, function)).collect();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, case.input + &made)?;
        return Ok(());
    }
    let first_difference = || {
        let pairs = made.lines().zip(case.expected.lines()).enumerate();
        let differs = pairs.into_iter().find(|(_, (made, expected))| made != expected);
        differs.map_or("one is longer".into(), |(at, (made, expected))| {
            format!("line {at} of the expectations\n  has  {expected}\n  made {made}")
        })
    };
    match made == case.expected {
        true => Ok(()),
        false => Err(format!("{}; BLESS=1 rewrites the file", first_difference()).into()),
    }
}

fn show(case: &Case, function: &Explained) -> String {
    let mut text = String::new();
    for (is_shown, name, body) in [(case.checks_clif, "CLIF", &function.clif), (case.checks_ptx, "PTX", &function.ptx)]
    {
        if is_shown {
            let _ = writeln!(text, ";; {} as {name}:", function.name);
            for line in body.lines() {
                let _ = writeln!(text, "{}", format!(";;   {line}").trim_end());
            }
        }
    }
    text
}

fn assemble(path: &Path) -> Result<(), Failed> {
    let case = read(path)?;
    Ok(support::assemble(Compiled::new(&case.wasm, &case.options)?.ptx())?)
}
