//! `gpu-run`: runs ordinary programs, compiled to WebAssembly, on a GPU.
//!
//! The command line is [`args`]; each command is a module of its own. Messages go to stderr; stdout is for guests'
//! bytes and for the results of commands.

#![cfg_attr(test, allow(clippy::unwrap_used))] // In a test, `unwrap` is an assertion.

mod apps;
mod args;
mod backtrace;
mod bench;
mod cache;
mod compile;
mod core_dump;
mod desktop;
mod devices;
mod explain;
mod guest;
mod input;
mod machine;
mod map;
mod picture;
mod process_figures;
mod processes;
mod program;
mod program_cache;
mod program_status;
mod published;
mod report;
mod run;
mod rust;
mod source;
mod stopped_threads;
mod surface;
mod threads;
mod wast;

use anyhow::Result;
use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use gpu_run_compiler::printable;
use gpu_run_console::{failure, output, terminal};
use std::io::{self, Write};
use std::process::ExitCode;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

/// Stack of the threads that compile, if the usual one is another.
const STACK_BYTES: usize = 8 << 20;

fn main() -> ExitCode {
    gpu_run_bench::processes::be_a_child_if_asked();
    // Users set this for the threads of their programs, to less than the compiler needs.
    if std::env::var_os("RUST_MIN_STACK").is_some() {
        let _ = rayon::ThreadPoolBuilder::new().stack_size(STACK_BYTES).build_global();
    }
    let result = dispatch(Cli::try_parse().unwrap_or_else(|refusal| refuse(&refusal)));
    ExitCode::from(result.unwrap_or_else(|error| {
        terminal::say(&format!("error: {error:#}\n"));
        failure::exit_code(&error)
    }))
}

/// Prints clap's refusal of the command line and exits. clap prints in colour, but does not escape what the user typed:
/// so a text that needs escaping is printed without colour instead.
fn refuse(refusal: &clap::Error) -> ! {
    let text = refusal.to_string();
    if printable::message(&text) == text {
        refusal.exit();
    }
    terminal::say(&text);
    std::process::exit(refusal.exit_code());
}

fn dispatch(cli: Cli) -> Result<u8> {
    match cli.command {
        None => {
            start_tracing(cli.run.launch.codegen.verbose);
            run::run(&cli.run)
        }
        Some(Command::Run(args)) => {
            start_tracing(args.launch.codegen.verbose);
            run::run(&args)
        }
        Some(Command::Map(args)) => {
            start_tracing(args.launch.codegen.verbose);
            map::map(&args)
        }
        Some(Command::Merge(args)) => {
            start_tracing(0);
            map::merge(&args)
        }
        Some(Command::Tune(args)) => {
            let args: args::MapArgs = args.into();
            start_tracing(args.launch.codegen.verbose);
            map::tune(&args)
        }
        Some(Command::Build(args)) => {
            start_tracing(0);
            rust::front::run("build", &args)
        }
        Some(Command::Test(args)) => {
            start_tracing(0);
            rust::front::run("test", &args)
        }
        Some(Command::Compile(args)) => {
            start_tracing(args.codegen.verbose);
            compile::compile(&args)
        }
        Some(Command::Explain(args)) => {
            start_tracing(args.codegen.verbose);
            explain::explain(&args)
        }
        Some(Command::Bench(args)) => {
            start_tracing(args.launch.codegen.verbose);
            bench::bench(&args)
        }
        Some(Command::Boot(args)) => {
            start_tracing(args.verbose);
            machine::boot(&args)
        }
        Some(Command::Desktop(args)) => {
            start_tracing(args.verbose);
            desktop::desktop(&args)
        }
        Some(Command::Top(args)) => machine::top(&args),
        Some(Command::Cache(args)) => {
            start_tracing(args.verbose());
            cache::cache(&args)
        }
        Some(Command::Wast(args)) => {
            start_tracing(args.verbose);
            wast::wast(&args)
        }
        Some(Command::Devices) => devices::list(),
        Some(Command::Completion { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "gpu-run", &mut script);
            output::Standard::stdout()?.write_all(&script)?;
            Ok(0)
        }
    }
}

/// `-v` shows what is done, `-vv` how, `-vvv` everything. `GPU_RUN_LOG` sets levels per crate, as in
/// `gpu_run_wasi=trace`.
fn start_tracing(verbose: u8) {
    let level = [Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE][usize::from(verbose).min(3)];
    let asked = std::env::var("GPU_RUN_LOG").ok().and_then(|filter| filter.parse::<Targets>().ok());
    // The names of all our crates begin with this.
    let filter = asked.unwrap_or_else(|| Targets::new().with_target("gpu_run", level));
    // No colours: the escaping writer would print their control characters as escapes, too.
    let stderr = || terminal::Escaping(io::stderr());
    let lines = tracing_subscriber::fmt::layer().with_writer(stderr).with_ansi(false).without_time();
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
}
