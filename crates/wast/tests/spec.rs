//! The official WebAssembly suite through the PTX, one test a file and layout: 2.0, and 3.0 without garbage collection.

#[path = "support/suite.rs"]
mod suite;
#[path = "../../compiler/tests/support/mod.rs"]
mod support;

use gpu_run_abi::Layout;
use gpu_run_device::cpu;
use gpu_run_wast::{Inspect, Options, Report, features, run};
use libtest_mimic::{Arguments, Failed, Trial};
use suite::{Folder, folders, own};

/// Lines of files that need a garbage collector, which there is none of yet.
const GARBAGE_COLLECTION: [(&str, &[usize]); 1] = [("bulk-memory::table_init", &[2272, 2286])];

fn main() {
    let args = Arguments::from_args();
    let device = cpu::open();
    let mut trials = Vec::new();
    for Folder { name: folder, wasm, scripts } in folders().into_iter().chain([own()]) {
        let features = features(&format!(";;! wasm = {wasm}")).expect("the suite's versions are known");
        for test in scripts {
            let name = format!("{folder}::{}", test.name().trim_end_matches(".wast"));
            for layout in [Layout::Linear, Layout::Interleaved] {
                let (device, name, raw) = (device.clone(), name.clone(), test.raw());
                let suffix = if layout == Layout::Linear { "linear" } else { "interleaved" };
                trials.push(Trial::test(format!("{name}::{suffix}"), move || {
                    let inspect: Option<Inspect<'_>> = Some(&support::assemble);
                    let options = Options { device, layout, features, max_memory: None, inspect };
                    let Report { failures, unsupported, .. } = run(raw, &options).map_err(Failed::from)?;
                    judge(&name, failures, unsupported)
                }));
            }
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

/// Nothing fails, and nothing is unsupported but what is listed; what is listed must be.
fn judge(name: &str, failures: Problems, unsupported: Problems) -> Result<(), Failed> {
    let listed = GARBAGE_COLLECTION.iter().find(|(file, _)| *file == name).map_or(&[][..], |(_, lines)| lines);
    let (expected, others): (Problems, Problems) = unsupported.into_iter().partition(|(line, _)| listed.contains(line));
    let mut message = String::new();
    for (line, what) in failures.iter().chain(&others).take(20) {
        message += &format!("{name}.wast:{line}: {what}\n");
    }
    if expected.len() != listed.len() {
        message += &format!("{name}.wast: of the lines {listed:?}, which need a garbage collector, some pass now\n");
    }
    if message.is_empty() { Ok(()) } else { Err(message.into()) }
}

/// Lines, and what is wrong there.
type Problems = Vec<(usize, String)>;
