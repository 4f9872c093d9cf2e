//! WASI, function by function: the programs of `tests/wasi` by `gpu-run` and by Wasmtime, the same .wasm, must print the same line
//! for each case and leave the same files behind: names, kinds, contents, link targets, permissions, and times where they were set.
//!
//! - `wasi::FUNCTION`: its program.
//! - `wasi::invalid::CASE`, `wasi::pointers::CASE`, `wasi::proc_exit::CODE`: programs that may end before their end, one case each.
//! - `wasi::every_function_has_a_program`: none of the 46 is left out.
//!
//! `tests/wasi/differences.toml` names the lines in which gpu-run is right to differ, and why. A line that differs and is not named
//! fails, and so does one that is named and does not differ. `scripts/build-wasi-programs` builds the programs; a test whose program
//! is not there is reported as ignored, with `CI` set it fails.

#[allow(dead_code)] // shared with the tests of whole programs
#[path = "programs/directory.rs"]
mod directory;
#[allow(dead_code)]
#[path = "programs/manifest.rs"]
mod manifest;
#[allow(dead_code)]
#[path = "programs/observed.rs"]
mod observed;
#[path = "programs/oracle.rs"]
mod oracle;
#[path = "wasi/place.rs"]
mod place;
#[allow(dead_code)]
#[path = "support/tested.rs"]
mod tested;

use gpu_run_abi::hostcall;
use libtest_mimic::{Arguments, Failed, Trial};
use manifest::Input;
use observed::Ending;
use place::Place;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

/// The exit code of `gpu-run` for a trap, as documented.
const TRAPPED: i32 = 134;

/// Cases of `pointers`: see there.
const POINTERS: &[&str] = &[
    "path outside",
    "path around the end",
    "result outside",
    "result misaligned",
    "stat outside",
    "stat misaligned",
    "vectors outside",
    "vectors misaligned",
    "many vectors",
    "vector leads outside",
    "written vector leads outside",
    "count misaligned",
    "random outside",
    "subscriptions outside",
    "subscriptions misaligned",
    "names outside",
    "link outside",
    "bad descriptor and path outside",
    "bad descriptor and result outside",
    "bad descriptor and result misaligned",
    "nothing to write outside",
    "empty path outside",
];

/// Cases of `invalid`: see there.
const INVALID: &[&str] = &[
    "clock",
    "clock minus one",
    "clock of a resolution",
    "advice",
    "whence",
    "signal",
    "fdflags",
    "rights",
    "fstflags",
    "fstflags of a path",
    "lookupflags",
    "lookupflags of times",
    "lookupflags of a link",
    "lookupflags of open",
    "oflags",
    "rights of open",
    "inherited rights of open",
    "fdflags of open",
    "fdflags of accept",
    "riflags",
    "siflags",
    "sdflags",
    "event",
    "clock of an event",
    "flags of an event",
    "a bad descriptor, too",
];

/// Wasmtime takes 126 and more for an error of the program's.
const CODES: &[&str] = &["0", "1", "42", "125"];

#[derive(Deserialize)]
struct Differences {
    difference: Vec<Difference>,
}

/// One line that differs, or several for one reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    #[allow(dead_code)] // for people
    why: String,
    /// Program, and the case if it has several runs, ▶ (Wasmtime's line, gpu-run's line).
    lines: BTreeMap<String, Vec<[String; 2]>>,
}

/// What the tests share.
struct Shared {
    /// By program and case.
    differences: BTreeMap<String, Vec<[String; 2]>>,
    /// Of `gpu-run`: a program with many cases is compiled once.
    cache: TempDir,
}

fn main() {
    let args = Arguments::from_args();
    let cache = tempfile::tempdir().expect("a temporary folder");
    let shared = Arc::new(Shared { differences: differences(), cache });
    let mut trials = vec![Trial::test("wasi::every_function_has_a_program", every_function_has_a_program)];
    for function in functions() {
        match function {
            "proc_exit" => trials.extend(CODES.iter().map(|code| trial(&shared, function, Some(code)))),
            _ => trials.push(trial(&shared, function, None)),
        }
    }
    trials.extend(INVALID.iter().map(|case| trial(&shared, "invalid", Some(case))));
    trials.extend(POINTERS.iter().map(|case| trial(&shared, "pointers", Some(case))));
    let conclusion = libtest_mimic::run(&args, trials);
    drop(shared);
    conclusion.exit();
}

fn functions() -> impl Iterator<Item = &'static str> {
    hostcall::TABLE.iter().filter(|function| function.module == hostcall::WASI).map(|function| function.name)
}

fn here() -> PathBuf {
    tested::root().join("tests/wasi")
}

fn every_function_has_a_program() -> Result<(), Failed> {
    let missing: Vec<_> = functions().filter(|name| !here().join(format!("src/bin/{name}.rs")).is_file()).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("no program in tests/wasi for {missing:?}").into()) }
}

fn differences() -> BTreeMap<String, Vec<[String; 2]>> {
    let file = here().join("differences.toml");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let parsed: Differences = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut all = BTreeMap::<String, Vec<_>>::new();
    for (program, lines) in parsed.difference.into_iter().flat_map(|difference| difference.lines) {
        all.entry(program).or_default().extend(lines);
    }
    all
}

fn trial(shared: &Arc<Shared>, program: &'static str, arg: Option<&'static str>) -> Trial {
    let name = arg.map_or(program.into(), |arg| format!("{program}::{}", arg.replace(' ', "_")));
    let wasm = here().join("target/wasm32-wasip1/release").join(format!("{program}.wasm"));
    if !wasm.is_file() {
        let reason = format!("{} is not built: run scripts/build-wasi-programs", wasm.display());
        let ignored = std::env::var_os("CI").is_none();
        return Trial::test(format!("wasi::{name}"), move || Err(reason.into()))
            .with_kind("not built, scripts/build-wasi-programs")
            .with_ignored_flag(ignored);
    }
    let shared = shared.clone();
    Trial::test(format!("wasi::{name}"), move || {
        let args = arg.map_or_else(|| vec!["one".into(), "".into(), "zwölf elf".into()], |arg| vec![arg.into()]);
        compare(&wasm, args, shared.differences.get(&name).map_or(&[], Vec::as_slice), shared.cache.path())
    })
}

/// What a run did: each line it printed, how it ended, and what it left behind, by name.
struct Ran {
    stdout: Vec<String>,
    rest: BTreeMap<String, String>,
}

fn compare(wasm: &Path, args: Vec<String>, expected: &[[String; 2]], cache: &Path) -> Result<(), Failed> {
    let env = [("A", "1 = 1"), ("EMPTY", ""), ("GPU_RUN_INSTANCE", "0")];
    let env = env.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let input = Input { args, env, stdin: b"first line\nsecond line\n".to_vec() };
    let differing = differing(&by_wasmtime(wasm, &input)?, &by_gpu_run(wasm, &input, cache)?);
    let mut report = String::new();
    for [wasmtime, ours] in differing.iter().filter(|pair| !expected.contains(pair)) {
        _ = writeln!(report, "Wasmtime: {wasmtime}\n gpu-run: {ours}");
    }
    for [wasmtime, ours] in expected.iter().filter(|pair| !differing.contains(pair)) {
        _ = writeln!(report, "named in differences.toml, but not so:\nWasmtime: {wasmtime}\n gpu-run: {ours}");
    }
    if report.is_empty() { Ok(()) } else { Err(report.into()) }
}

/// The lines that differ, in pairs.
fn differing(wasmtime: &Ran, ours: &Ran) -> Vec<[String; 2]> {
    let lines = (0..wasmtime.stdout.len().max(ours.stdout.len())).map(|index| {
        let line = |ran: &Ran| ran.stdout.get(index).cloned().unwrap_or_default();
        [line(wasmtime), line(ours)]
    });
    let names: BTreeSet<&String> = wasmtime.rest.keys().chain(ours.rest.keys()).collect();
    let rest = names.into_iter().map(|name| {
        let line = |ran: &Ran| ran.rest.get(name).map_or_else(String::new, |what| format!("{name}: {what}"));
        [line(wasmtime), line(ours)]
    });
    lines.chain(rest).filter(|[wasmtime, ours]| wasmtime != ours).collect()
}

fn by_wasmtime(wasm: &Path, input: &Input) -> Result<Ran, Failed> {
    let place = Place::new()?;
    let name = wasm.file_name().unwrap_or_default().to_string_lossy();
    let (root, other) = (place.root(), place.other());
    let dirs = [(root.as_path(), "."), (other.as_path(), "other")];
    let observed = oracle::run(wasm, &name, input, &dirs)?.0;
    ran(&place, &observed.stdout, observed.ending)
}

fn by_gpu_run(wasm: &Path, input: &Input, cache: &Path) -> Result<Ran, Failed> {
    let place = Place::new()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-run"));
    command.args(["--device", "cpu", "--timeout", "600s"]);
    command.env("GPU_RUN_CACHE", cache);
    command.arg("--dir").arg(format!("{}::.", place.root().display()));
    command.arg("--dir").arg(format!("{}::other", place.other().display()));
    // It adds GPU_RUN_INSTANCE itself, as the last one.
    for (key, value) in input.env.iter().filter(|(key, _)| *key != "GPU_RUN_INSTANCE") {
        command.arg("--env").arg(format!("{key}={value}"));
    }
    command.arg(wasm).args(&input.args);
    let mut stdin = tempfile::tempfile()?;
    std::io::Write::write_all(&mut stdin, &input.stdin)?;
    std::io::Seek::rewind(&mut stdin)?;
    let output = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).output()?;
    let code = output.status.code().ok_or_else(|| format!("{command:?} ended with {}", output.status))?;
    let ending = if code == TRAPPED { Ending::Trap(String::new()) } else { Ending::Exit(code) };
    ran(&place, &output.stdout, ending)
}

fn ran(place: &Place, stdout: &[u8], ending: Ending) -> Result<Ran, Failed> {
    let stdout = String::from_utf8_lossy(stdout).lines().map(String::from).collect();
    let ending = match ending {
        // In each host's own words.
        Ending::Trap(_) => "trap".into(),
        Ending::Exit(code) => format!("exit code {code}"),
    };
    let mut rest = BTreeMap::from([("end".to_owned(), ending)]);
    rest.extend(place.tree()?.into_iter().map(|(path, what)| (format!("{path:?}"), what)));
    Ok(Ran { stdout, rest })
}
