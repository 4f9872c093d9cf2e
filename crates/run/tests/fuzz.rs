//! Differential fuzzing against Wasmtime: random modules must do the same in gpu-run.
//!
//! A fixed number of seeds runs here, more with `scripts/test --all`; `cargo run --release` in `fuzz/` goes on for ever. `GPU_RUN_FUZZ_SEEDS` sets the
//! number, `GPU_RUN_FUZZ_SEED` picks one, and `GPU_RUN_FUZZ_FILE` takes a module from a file instead: one that is being cut
//! down by hand.

#[path = "fuzz/atomics.rs"]
mod atomics;
#[path = "fuzz/case.rs"]
mod case;
#[path = "fuzz/counters.rs"]
mod counters;
#[path = "fuzz/differential.rs"]
mod differential;
#[path = "fuzz/expressions/mod.rs"]
mod expressions;
#[path = "fuzz/random.rs"]
mod random;
#[path = "fuzz/smith.rs"]
mod smith;
#[path = "fuzz/vectors.rs"]
mod vectors;

#[path = "../../compiler/tests/support/mod.rs"]
mod support;

use case::Generator;
use differential::Compared;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;

/// Seeds for a generator: somewhat more than a minute on two cores, or seven times as many if all is wanted. What counters do is simpler
/// than the rest, and an expression's module takes the longest.
fn seeds(generator: Generator) -> u64 {
    let usual = match generator {
        Generator::Smith => 240,
        Generator::Expressions => 120,
        Generator::Counters => 70,
    };
    if std::env::var_os("GPU_RUN_TEST_ALL").is_some() { 7 * usual } else { usual }
}

/// Tests that a generator's seeds are dealt out to: generators differ in how long they take, and no core shall be idle at the end.
const PARTS: u64 = 5;

/// Every module's PTX must assemble, where there is an assembler.
fn judge(ptx: &str) -> Result<(), String> {
    support::assemble(ptx)
}

/// The Wasmtime the tests are built with does not know the threads proposal.
const ATOMICS: bool = false;

fn configure(_: &mut wasmtime::Config) {}

fn main() {
    let args = Arguments::from_args();
    // One seed alone is one test.
    let parts = if std::env::var_os("GPU_RUN_FUZZ_SEED").is_some() { 1 } else { PARTS };
    let trial = |generator: Generator, part| {
        Trial::test(format!("fuzz::{}::{part}", generator.name()), move || run(generator, part, parts))
    };
    let mut trials: Vec<Trial> =
        (0..parts).flat_map(|part| Generator::ALL.map(|generator| trial(generator, part))).collect();
    if let Some(file) = std::env::var_os("GPU_RUN_FUZZ_FILE") {
        trials = vec![Trial::test("fuzz::file", move || Ok(case::run_file(Path::new(&file)).map(|_| ())?))];
    }
    libtest_mimic::run(&args, trials).exit();
}

fn run(generator: Generator, part: u64, parts: u64) -> Result<(), Failed> {
    let number = |name| {
        std::env::var(name).ok().map(|text| text.parse::<u64>().map_err(|e| format!("{name}={text}: {e}"))).transpose()
    };
    let seeds = match number("GPU_RUN_FUZZ_SEED")? {
        Some(seed) => seed..seed + 1,
        None => 0..number("GPU_RUN_FUZZ_SEEDS")?.unwrap_or_else(|| seeds(generator)),
    };
    if part >= seeds.end - seeds.start {
        return Ok(());
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    let mut total = Compared::default();
    let mut failures = Vec::new();
    for seed in seeds.clone().skip(part as usize).step_by(parts as usize) {
        match case::run(generator, seed, &folder) {
            Ok(compared) => total += compared,
            Err(difference) => failures.push(format!(
                "seed {seed}: {difference}\n  again: GPU_RUN_FUZZ_SEED={seed} cargo test -p gpu-run-run --test fuzz -- {}",
                generator.name()
            )),
        }
        if failures.len() == 5 {
            break;
        }
    }
    eprintln!("fuzz::{}: {total:?}", generator.name());
    if !failures.is_empty() {
        return Err(failures.join("\n").into());
    }
    // A generator whose modules do nothing would pass for ever.
    let returned = total.calls - total.traps;
    let thorough = seeds.end - seeds.start == 1 || returned > 2 * total.modules && total.skipped() * 4 < total.modules;
    if thorough { Ok(()) } else { Err(format!("too little was compared: {total:?}").into()) }
}
