//! A seed, from its module to the verdict; what a failure leaves behind.

use crate::differential::{Compared, compare};
use crate::random::Random;
use crate::{counters, expressions, smith};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Where a seed's module comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generator {
    Smith,
    Expressions,
    Counters,
}

impl Generator {
    pub(crate) const ALL: [Generator; 3] = [Generator::Smith, Generator::Expressions, Generator::Counters];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Generator::Smith => "smith",
            Generator::Expressions => "expressions",
            Generator::Counters => "counters",
        }
    }

    /// A seed's module.
    fn module(self, seed: u64) -> Result<Option<Subject>, String> {
        match self {
            Generator::Smith => {
                let print = |wasm: Vec<u8>| match wasmprinter::print_bytes(&wasm) {
                    Ok(text) => Ok(Subject { theirs: wasm.clone(), ours: wasm, text }),
                    Err(error) => Err(error.to_string()),
                };
                smith::module(seed).map(print).transpose()
            }
            Generator::Expressions => parsed(expressions::module(seed)),
            Generator::Counters => {
                let text = counters::module(seed);
                parsed([text.clone(), text])
            }
        }
    }
}

/// A module, in the version Wasmtime takes and in ours, which is also there as text.
struct Subject {
    ours: Vec<u8>,
    theirs: Vec<u8>,
    text: String,
}

fn parsed([text, theirs]: [String; 2]) -> Result<Option<Subject>, String> {
    let parse = |text: &str| wat::parse_str(text).map_err(|error| format!("the generator is wrong: {error}"));
    Ok(Some(Subject { ours: parse(&text)?, theirs: parse(&theirs)?, text }))
}

/// Compares a seed's module. If the two sides differ, the module is left in `folder`; if the process crashes, too.
pub(crate) fn run(generator: Generator, seed: u64, folder: &Path) -> Result<Compared, String> {
    let Some(Subject { ours, theirs, text }) = generator.module(seed)? else {
        return Ok(Compared { unmade: 1, ..Compared::default() });
    };
    let file = folder.join(format!("{}-{seed}.wat", generator.name()));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&file, &text))
        .map_err(|e| format!("{}: {e}", file.display()))?;
    let compared = caught(&ours, &theirs, !seed)
        .map_err(|difference| format!("{difference}\n  the module: {}", file.display()))?;
    // What passed can be made again from its seed.
    let _ = std::fs::remove_file(&file);
    Ok(compared)
}

/// Compares a module from a file, text or binary, with several choices of arguments.
pub(crate) fn run_file(file: &Path) -> Result<Compared, String> {
    let wasm = wat::parse_file(file).map_err(|error| error.to_string())?;
    let mut total = Compared::default();
    for choice in 0..4 {
        total += caught(&wasm, &wasm, choice)?;
    }
    Ok(total)
}

/// Compares, and takes a panic for a difference.
fn caught(ours: &[u8], theirs: &[u8], arguments: u64) -> Result<Compared, String> {
    let verdict = catch_unwind(AssertUnwindSafe(|| compare(ours, theirs, &mut Random::new(arguments))));
    verdict.unwrap_or_else(|panic| Err(format!("panic: {}", panic_message(&*panic))))
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
