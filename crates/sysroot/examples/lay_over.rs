//! `lay_over FOLDER`: lays gpu-run's overlay over a copy of std's sources, `library/std`. scripts/std-tests compiles the tests in it.

fn main() -> gpu_run_sysroot::Result<()> {
    let std = std::env::args_os().nth(1).unwrap_or_else(|| "std".into());
    gpu_run_sysroot::lay_over(std.as_ref(), &gpu_run_sysroot::Rust::find()?.version)
}
