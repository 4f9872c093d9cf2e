//! Ending what runs from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends what runs, from another thread. Clones are the same interrupt.
///
/// ```
/// use gpu_run::{Command, Config, Engine, Interrupt, Module, Status};
/// # let engine = Engine::new(&Config::new().device("cpu").no_cache())?;
/// let module = Module::new(&engine, r#"(module (func (export "_start") (loop $for_ever (br $for_ever))))"#)?;
/// let interrupt = Interrupt::new();
/// let command = Command::new(&module).interrupt(&interrupt);
/// std::thread::spawn(move || interrupt.raise());
/// assert!(matches!(command.output()?.status, Status::Interrupted));
/// # Ok::<(), gpu_run::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interrupt(pub(crate) Arc<AtomicBool>);

impl Interrupt {
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the instances that run, and those that would begin from now on: their status is
    /// [`Status::Interrupted`](crate::Status::Interrupted). What is being compiled is compiled nevertheless.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
