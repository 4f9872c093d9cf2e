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

    /// A seed's module, in binary and as text.
    fn module(self, seed: u64) -> Result<Option<(Vec<u8>, String)>, String> {
        match self {
            Generator::Smith => {
                let print =
                    |wasm: Vec<u8>| wasmprinter::print_bytes(&wasm).map(|text| (wasm, text)).map_err(|e| e.to_string());
                smith::module(seed).map(print).transpose()
            }
            Generator::Expressions => parsed(expressions::module(seed)),
            Generator::Counters => parsed(counters::module(seed)),
        }
    }
}

fn parsed(text: String) -> Result<Option<(Vec<u8>, String)>, String> {
    let wasm = wat::parse_str(&text).map_err(|error| format!("the generator is wrong: {error}"))?;
    Ok(Some((wasm, text)))
}

/// Compares a seed's module. If the two sides differ, the module is left in `folder`; if the process crashes, too.
pub(crate) fn run(generator: Generator, seed: u64, folder: &Path) -> Result<Compared, String> {
    let Some((wasm, text)) = generator.module(seed)? else { return Ok(Compared { skipped: 1, ..Compared::default() }) };
    let file = folder.join(format!("{}-{seed}.wat", generator.name()));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&file, &text))
        .map_err(|e| format!("{}: {e}", file.display()))?;
    let compared =
        caught(&wasm, !seed).map_err(|difference| format!("{difference}\n  the module: {}", file.display()))?;
    // What passed can be made again from its seed.
    let _ = std::fs::remove_file(&file);
    Ok(compared)
}

/// Compares a module from a file, text or binary, with several choices of arguments.
pub(crate) fn run_file(file: &Path) -> Result<Compared, String> {
    let wasm = wat::parse_file(file).map_err(|error| error.to_string())?;
    let mut total = Compared::default();
    for choice in 0..4 {
        total += caught(&wasm, choice)?;
    }
    Ok(total)
}

/// Compares, and takes a panic for a difference.
fn caught(wasm: &[u8], arguments: u64) -> Result<Compared, String> {
    let verdict = catch_unwind(AssertUnwindSafe(|| compare(wasm, &mut Random::new(arguments))));
    verdict.unwrap_or_else(|panic| Err(format!("panic: {}", panic_message(&*panic))))
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
