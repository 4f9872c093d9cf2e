//! Loading new code into the running machine: on request, the file is read, compiled and loaded on a thread of its own.

use super::{failure, tell};
use crate::args::BootArgs;
use anyhow::Result;
use gpu_run_compiler::Compiler;
use gpu_run_console::units::milliseconds;
use gpu_run_machine::{Kernel, Machine};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

/// Returns the code for the machine to run.
pub(super) fn kernel(kernel: Option<&Path>) -> Result<Kernel> {
    kernel.map_or_else(|| Ok(Kernel::built_in()), |path| Kernel::read(path).map_err(failure))
}

/// Loads new code, one load at a time.
#[derive(Debug)]
pub(super) struct Reloads<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    machine: &'env Machine,
    compiler: &'env Compiler,
    kernel: Option<&'env Path>,
    /// Whether SIGHUP arrived.
    asked: Arc<AtomicBool>,
    /// Ticks at which to load.
    at: VecDeque<u64>,
    under_way: Option<ScopedJoinHandle<'scope, String>>,
}

impl<'scope, 'env> Reloads<'scope, 'env> {
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        machine: &'env Machine,
        compiler: &'env Compiler,
        args: &'env BootArgs,
    ) -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let kernel = args.kernel.as_deref();
        // Without a file there is nothing to reload: then SIGHUP, sent when the terminal closes, ends the process as
        // usual.
        if kernel.is_some() {
            signal_hook::flag::register(signal_hook::consts::SIGHUP, asked.clone())?;
        }
        let mut at = args.reload_at.clone();
        at.sort_unstable();
        Ok(Self { scope, machine, compiler, kernel, asked, at: at.into(), under_way: None })
    }

    /// Reports a load that is done, and starts the next one that is due.
    pub(super) fn step(&mut self) {
        if let Some(done) = self.under_way.take_if(|load| load.is_finished()) {
            tell(&[done.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))]);
        }
        if self.under_way.is_some() {
            return;
        }
        let due = self.at.front().is_some_and(|tick| self.machine.status().tick >= *tick);
        if due {
            self.at.pop_front();
        }
        if self.asked.swap(false, Ordering::Relaxed) || due {
            let (machine, compiler, kernel) = (self.machine, self.compiler, self.kernel);
            self.under_way = Some(self.scope.spawn(move || load(machine, compiler, kernel)));
        }
    }
}

/// Loads new code and returns the message for the user.
fn load(machine: &Machine, compiler: &Compiler, kernel: Option<&Path>) -> String {
    let loaded = self::kernel(kernel).and_then(|kernel| machine.load(compiler, &kernel).map_err(failure));
    match loaded {
        Ok(loaded) => format!(
            "new code runs from tick {} on: prepared in {:.0} ms, paused the machine for {:.2} ms",
            loaded.tick,
            milliseconds(loaded.preparation),
            milliseconds(loaded.gap)
        ),
        Err(error) => format!("cannot load new code, the machine continues with the old code: {error:#}"),
    }
}
