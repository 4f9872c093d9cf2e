//! Failures that are reported to the user, and the exit codes that go with them.
//!
//! The message of a [`Failure`] says what failed and where, and its hint says what to do. All other errors are plain
//! `anyhow` errors with exit code 1.

use gpu_run_compiler::Error as CompilerError;
use std::fmt;

/// The exit codes of gpu-run itself; every other exit code is the guest's.
pub mod exit {
    /// A failure that neither the guest nor the user caused.
    pub const FAILURE: u8 = 1;
    /// Wrong usage, or a file that cannot be run; `clap` uses the same code.
    pub const USAGE: u8 = 2;
    /// The machine stood in the way, and the same command may succeed later or elsewhere: `EX_TEMPFAIL` of `sysexits.h`.
    pub const RETRY: u8 = 75;
    /// `--timeout` stopped the guest; `timeout(1)` uses the same code.
    pub const TIMEOUT: u8 = 124;
    /// A trap: 128 + SIGABRT, as for a native program that aborts, and as in Wasmtime.
    pub const TRAP: u8 = 134;
    /// Nobody reads our output: 128 + SIGPIPE.
    pub const BROKEN_PIPE: u8 = 141;
}

#[derive(Debug, thiserror::Error)]
pub struct Failure {
    message: String,
    hint: Option<String>,
    exit: u8,
    /// Whether the device or the machine caused it, so that the same command may succeed later or elsewhere.
    is_of_machine: bool,
}

impl Failure {
    /// The user asked for something impossible: exit code 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: exit::USAGE, is_of_machine: false }
    }

    /// The request was right, but could not be carried out: exit code 1.
    pub fn environment(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: exit::FAILURE, is_of_machine: false }
    }

    /// The device or the machine stood in the way: exit code 1, or [`exit::RETRY`] for commands that are
    /// [`retried`].
    pub fn machine(message: impl Into<String>) -> Self {
        Self { is_of_machine: true, ..Self::environment(message) }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the failure for an error of the compiler on `file`.
    pub fn compiler(file: &str, error: CompilerError) -> Self {
        match error {
            CompilerError::Module(what) => Self::usage(format!("{file} cannot be compiled: {what}")),
            CompilerError::Usage(what) | CompilerError::Limit(what) => Self::usage(format!("{file}: {what}")),
            CompilerError::MissingExport { ref wanted, ref exported } => {
                let failure = Self::usage(format!("{file}: {error}"));
                let has_others = wanted == "_start" && !exported.is_empty();
                if has_others { failure.hint("call one of them with --invoke NAME") } else { failure }
            }
            CompilerError::Late(_) | CompilerError::CompileTimeout(_) => {
                Self::usage(format!("{file}: {error}")).hint("allow more time with --compile-timeout")
            }
            CompilerError::Device(what) => Self::machine(format!("{file}: {what}")),
            CompilerError::Internal(what) => Self::environment(format!("{file}: internal error: {what}"))
                .hint("this is a bug in gpu-run: please report it together with the file"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {}", hint.replace('\n', "\n        ")),
            None => Ok(()),
        }
    }
}

/// Returns an error of a command that whoever started it may start again: its exit code says whether that is worth it.
pub fn retried(mut error: anyhow::Error) -> anyhow::Error {
    if let Some(failure) = error.downcast_mut::<Failure>().filter(|failure| failure.is_of_machine) {
        failure.exit = exit::RETRY;
    }
    error
}

/// Returns the process's exit code for an error.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    error.downcast_ref::<Failure>().map_or(exit::FAILURE, |failure| failure.exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_stands_on_lines_of_its_own() {
        let failure = Failure::usage("a.wasm is empty").hint("build it\nagain");
        assert_eq!(failure.to_string(), "a.wasm is empty\n  hint: build it\n        again");
    }

    #[test]
    fn exit_code_survives_context_added_on_the_way() {
        let error = anyhow::Error::from(Failure::usage("x")).context("while reading y");
        assert_eq!(exit_code(&error), exit::USAGE);
        assert_eq!(exit_code(&anyhow::anyhow!("x")), exit::FAILURE);
    }

    #[test]
    fn only_what_the_machine_caused_is_worth_retrying() {
        let code = |failure: Failure| exit_code(&retried(anyhow::Error::from(failure).context("while reading y")));
        assert_eq!(code(Failure::usage("x")), exit::USAGE);
        assert_eq!(code(Failure::environment("x")), exit::FAILURE);
        assert_eq!(code(Failure::machine("x")), exit::RETRY);
        assert_eq!(exit_code(&Failure::machine("x").into()), exit::FAILURE, "of other commands");
    }
}
