//! The kernels that were written by hand to compare the machine with.

#[path = "../../machine/tests/kernel/ptxas.rs"]
mod ptxas;

use gpu_run_bench::machine::BASELINES;
use libtest_mimic::{Arguments, Failed, Trial};
use ptxas::{PTXAS, TARGETS, assemble};

fn main() {
    let args = Arguments::from_args();
    let is_missing = std::env::var_os(PTXAS).is_none();
    if is_missing {
        eprintln!("baselines::ptxas_takes_them is ignored: {PTXAS} does not say where ptxas is");
    }
    let trial = Trial::test("baselines::ptxas_takes_them", ptxas_takes_them).with_ignored_flag(is_missing);
    libtest_mimic::run(&args, vec![trial]).exit();
}

fn ptxas_takes_them() -> Result<(), Failed> {
    for (name, ptx) in BASELINES {
        for target in TARGETS {
            assemble(name, ptx, target)?;
        }
    }
    Ok(())
}
