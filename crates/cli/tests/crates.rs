//! The test suites of crates from crates.io, unmodified, as programs on `cpu`: `crates::NAME::PROGRAM` is one test program, and passes if all its tests do.
//!
//! `scripts/crate-tests --build` compiles them, with `--quick` those that take seconds; without `--build` it runs all of them, through cargo. Without it, one test is reported as ignored, never as passed; with `CI` set in the
//! environment it fails.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn main() {
    let args = Arguments::from_args();
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/crate-tests");
    let list = tools.join("programs");
    let trials = match std::fs::read_to_string(&list) {
        Ok(text) => text.lines().filter_map(|line| trial(&tools, line)).collect(),
        Err(error) => {
            let message = format!("{}: {error}: run scripts/crate-tests --build --quick", list.display());
            let missing = Trial::test("crates::compiled", move || Err(message.into()));
            let kind = "not built, scripts/crate-tests --build --quick";
            vec![missing.with_kind(kind).with_ignored_flag(std::env::var_os("CI").is_none())]
        }
    };
    libtest_mimic::run(&args, trials).exit();
}

/// Of a line `crate version file`.
fn trial(tools: &Path, line: &str) -> Option<Trial> {
    let mut words = line.splitn(3, ' ');
    let (name, version, wasm) = (words.next()?, words.next()?, PathBuf::from(words.next()?));
    let source = tools.join("src").join(format!("{name}-{version}"));
    // Cargo puts a hash behind the name.
    let program = wasm.file_stem()?.to_string_lossy().into_owned();
    let program = program.rsplit_once('-').map_or(program.as_str(), |(program, _)| program);
    Some(Trial::test(format!("crates::{name}::{program}"), move || passes(&source, &wasm)))
}

fn passes(source: &Path, wasm: &Path) -> Result<(), Failed> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-run"));
    command.args(["--device", "cpu", "--timeout", "900s", "--dir", "."]).arg(wasm).current_dir(source);
    let output = command.env("GPU_RUN_CACHE", "off").stdin(Stdio::null()).output()?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && stdout.contains("test result: ok.") {
        return Ok(());
    }
    Err(format!("{}\n{stdout}{}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}
