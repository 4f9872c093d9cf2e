//! A seed, from its module to the verdict; what a failure leaves behind.

use crate::differential::{Compared, compare};
use crate::random::Random;
use crate::{expressions, smith};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Where a seed's module comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generator {
    Smith,
    Expressions,
}

impl Generator {
    pub(crate) const ALL: [Generator; 2] = [Generator::Smith, Generator::Expressions];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Generator::Smith => "smith",
            Generator::Expressions => "expressions",
        }
    }

    fn module(self, seed: u64) -> Result<Option<Vec<u8>>, String> {
        match self {
            Generator::Smith => Ok(smith::module(seed)),
            Generator::Expressions => {
                let text = expressions::module(seed);
                wat::parse_str(&text).map(Some).map_err(|error| format!("the generator is wrong: {error}"))
            }
        }
    }
}

/// Compares a seed's module. On a difference the module is in `folder`, as text and in binary; on a crash too, which ends the process.
pub(crate) fn run(generator: Generator, seed: u64, folder: &Path) -> Result<Compared, String> {
    let Some(wasm) = generator.module(seed)? else { return Ok(Compared { skipped: 1, ..Compared::default() }) };
    let file = folder.join(format!("{}-{seed}.wasm", generator.name()));
    std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, &wasm)).map_err(|e| format!("{}: {e}", file.display()))?;
    let verdict = catch_unwind(AssertUnwindSafe(|| compare(&wasm, &mut Random::new(!seed))));
    let difference = match verdict {
        Ok(Ok(compared)) => {
            // It is only a seed: what passed is made again in a moment.
            let _ = std::fs::remove_file(&file);
            return Ok(compared);
        }
        Ok(Err(difference)) => difference,
        Err(panic) => format!("panic: {}", panic_message(&*panic)),
    };
    let text = wasmprinter::print_bytes(&wasm).map_err(|error| error.to_string())?;
    let readable = file.with_extension("wat");
    std::fs::write(&readable, text).map_err(|e| format!("{}: {e}", readable.display()))?;
    Err(format!("{difference}\n  the module: {}", readable.display()))
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
