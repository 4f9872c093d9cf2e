//! Differential fuzzing against Wasmtime, until something differs.
//!
//! `cargo run --release [SEED]`: seeds count up from SEED, or from the clock. The first module the two sides disagree on is
//! left in `artifacts/`; after a crash, what was being run lies there too. `cargo run --release FILE` compares that module only.

#[path = "../../crates/engine/tests/fuzz/atomics.rs"]
mod atomics;
#[path = "../../crates/engine/tests/fuzz/case.rs"]
mod case;
#[path = "../../crates/engine/tests/fuzz/counters.rs"]
mod counters;
#[path = "../../crates/engine/tests/fuzz/differential.rs"]
mod differential;
#[path = "../../crates/engine/tests/fuzz/expressions.rs"]
mod expressions;
#[path = "../../crates/engine/tests/fuzz/random.rs"]
mod random;
#[path = "../../crates/engine/tests/fuzz/smith.rs"]
mod smith;
#[path = "../../crates/engine/tests/fuzz/vectors.rs"]
mod vectors;

use case::Generator;
use differential::Compared;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// NVIDIA's assembler judges in the tests: it would take most of the time here.
fn judge(_: &str) -> Result<(), String> {
    Ok(())
}

fn main() -> ExitCode {
    let first = match std::env::args().nth(1) {
        None => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_micros() as u64),
        Some(arg) => match arg.parse() {
            Ok(seed) => seed,
            Err(_) => return one_file(Path::new(&arg)),
        },
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts");
    let next = AtomicU64::new(first);
    let stop = AtomicBool::new(false);
    let total = Mutex::new(Compared::default());
    let began = Instant::now();
    println!("seeds from {first}");
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    for generator in Generator::ALL {
                        match case::run(generator, seed, &folder) {
                            Ok(compared) => *total.lock().expect("no thread panics with it") += compared,
                            Err(difference) => {
                                stop.store(true, Ordering::Relaxed);
                                println!("{}, seed {seed}: {difference}", generator.name());
                            }
                        }
                    }
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_secs(1));
                let total = *total.lock().expect("no thread panics with it");
                let rate = total.modules as f64 / began.elapsed().as_secs_f64();
                println!(
                    "{} modules, {rate:.1}/s; {} calls, {} of them trapped; {} modules skipped",
                    total.modules, total.calls, total.traps, total.skipped
                );
            }
        });
    });
    ExitCode::FAILURE
}

fn one_file(file: &Path) -> ExitCode {
    match case::run_file(file) {
        Ok(compared) => {
            println!("no difference in {} calls", compared.calls);
            ExitCode::SUCCESS
        }
        Err(difference) => {
            println!("{difference}");
            ExitCode::FAILURE
        }
    }
}
