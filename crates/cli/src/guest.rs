//! What each instance is given: arguments, environment, folders, standard streams.
//!
//! All instances get the same, except for `GPU_RUN_INSTANCE`, their number from 0. A single instance has it, too, so
//! that a program can rely on it; there, a value that the user set takes precedence.

use crate::args::Variable;
use crate::input::SharedInput;
use anyhow::{Context as _, Result};
use gpu_run_compiler::printable;
use gpu_run_console::failure::{Failure, exit};
use gpu_run_console::output::{Order, Standard, Stream};
use gpu_run_console::spill::Spill;
use gpu_run_run::INSTANCE;
use gpu_run_wasi::stdio::{Output, inherit};
use gpu_run_wasi::{Access, Builder, Context, NetRule, Preopen, Programs, Stdio};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Guest {
    builder: Builder,
    /// The value that the user set for [`INSTANCE`].
    number: Option<OsString>,
}

impl Guest {
    /// Opens what the user asked for, so that mistakes are reported before anything is compiled. The first argument is
    /// the program's name.
    pub(crate) fn new<'a>(
        args: &[OsString],
        env: &[Variable],
        dirs: impl IntoIterator<Item = &'a Preopen>,
    ) -> Result<Self> {
        let refused = |error: gpu_run_wasi::Error| Failure::usage(error.to_string());
        let mut builder = Builder::new();
        builder.args(args.iter().map(|arg| arg.as_bytes())).map_err(refused)?;
        let environment = environment(env);
        let number = environment.iter().find(|(name, _)| *name == INSTANCE).map(|(_, value)| value.clone());
        for (name, value) in environment.iter().filter(|(name, _)| *name != INSTANCE) {
            builder.env(name, value.as_bytes()).map_err(refused)?;
        }
        for dir in dirs {
            check_dir(dir)?;
            builder.preopen_with(&dir.host, &dir.guest, dir.access).map_err(refused)?;
        }
        Ok(Self { builder, number })
    }

    /// Lets the guest open sockets, as these rules allow.
    pub(crate) fn with_net(mut self, rules: &[NetRule]) -> Self {
        for rule in rules {
            self.builder.net(rule.clone());
        }
        self
    }

    /// Lets the guest start processes.
    pub(crate) fn with_programs(mut self, programs: Arc<dyn Programs>) -> Self {
        self.builder.programs(programs);
        self
    }

    fn context(&self, number: &OsStr, stdio: Stdio) -> Result<Context> {
        Ok(self.builder.clone().env(INSTANCE, number.as_bytes())?.build(stdio))
    }

    /// Returns what the instance of every record is given, besides its number.
    pub(crate) fn into_builder(self) -> Builder {
        self.builder
    }

    /// Returns a context with our own standard streams.
    pub(crate) fn alone(&self) -> Result<Context> {
        let stdio = Stdio {
            stdin: Box::new(inherit::stdin()),
            stdout: Box::new(Quiet(inherit::stdout())),
            stderr: Box::new(Quiet(inherit::stderr())),
        };
        self.context(self.number.as_deref().unwrap_or("0".as_ref()), stdio)
    }

    /// Returns a context for each of several instances, and the streams that they share. Up to `max_spill` bytes of
    /// their output may wait on disk.
    pub(crate) fn batch(&self, instances: usize, order: Order, max_spill: u64) -> Result<(Vec<Context>, Streams)> {
        let spill = Spill::new(max_spill);
        let streams = Streams {
            stdout: Stream::new(Quiet(inherit::stdout()), order, instances, spill.clone()),
            stderr: Stream::new(Quiet(inherit::stderr()), order, instances, spill),
        };
        let stdin = SharedInput::new(inherit::stdin());
        let context = |instance| {
            let stdio = Stdio {
                stdin: Box::new(stdin.reader()),
                stdout: Box::new(streams.stdout.writer(instance)),
                stderr: Box::new(streams.stderr.writer(instance)),
            };
            self.context(instance.to_string().as_ref(), stdio)
        };
        let contexts = (0..instances).map(context).collect::<Result<_>>()?;
        Ok((contexts, streams))
    }
}

/// Stdout and stderr of a batch.
#[derive(Debug)]
pub(crate) struct Streams {
    stdout: Stream,
    stderr: Stream,
}

impl Streams {
    /// Writes all output that still waits.
    pub(crate) fn close(&self) -> Result<()> {
        let closed = Standard::stdout().and_then(|stdout| self.stdout.close(stdout));
        let closed = closed.and(Standard::stderr().and_then(|stderr| self.stderr.close(stderr)));
        closed.context("cannot write the instances' output")
    }
}

/// A standard stream of ours. If nobody reads it any more, the process exits; see [`Standard`].
struct Quiet<T>(T);

impl<T: Output> Output for Quiet<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(exit::BROKEN_PIPE.into()),
            result => result,
        }
    }
    fn ready(&mut self) -> bool {
        self.0.ready()
    }
    fn is_terminal(&self) -> bool {
        self.0.is_terminal()
    }
}

/// Returns the variables of `--env`; the last one wins if a name is given twice.
pub(crate) fn environment(variables: &[Variable]) -> Vec<(&str, OsString)> {
    let mut environment: Vec<(&str, OsString)> = Vec::new();
    for Variable { name, value } in variables {
        // As in Wasmtime: a variable that is not in our environment is not passed to the guest.
        let Some(value) = value.clone().map(OsString::from).or_else(|| std::env::var_os(name)) else { continue };
        environment.retain(|(other, _)| other != name);
        environment.push((name, value));
    }
    environment
}

fn check_dir(dir: &Preopen) -> Result<()> {
    let option = if dir.access == Access::ReadOnly { "--dir-ro" } else { "--dir" };
    let host = printable::path(&dir.host);
    match dir.host.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(Failure::usage(format!("{option} {host}: this is a file; a guest can only be given folders"))
            .hint(format!("give the folder that contains it: {option} {}", folder_of(dir)))
            .into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Failure::usage(format!("{option} {host}: no such folder")).into())
        }
        Err(error) => Err(Failure::usage(format!("{option} {host}: {error}")).into()),
    }
}

fn folder_of(dir: &Preopen) -> String {
    match dir.host.parent() {
        Some(parent) if parent.as_os_str().is_empty() => ".".into(),
        Some(parent) => printable::path(parent),
        None => "/".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, value: Option<&str>) -> Variable {
        Variable { name: name.into(), value: value.map(Into::into) }
    }

    #[test]
    fn a_variable_we_do_not_have_is_not_passed_on() {
        let variables = [variable("GPU_RUN_NO_SUCH_VARIABLE", None), variable("A", Some("1")), variable("PATH", None)];
        assert_eq!(environment(&variables), [("A", "1".into()), ("PATH", std::env::var_os("PATH").unwrap())]);
    }

    #[test]
    fn the_last_of_a_variable_given_twice_counts() {
        let variables = [variable("A", Some("1")), variable("A", Some("2"))];
        assert_eq!(environment(&variables), [("A", "2".into())]);
    }

    #[test]
    fn folders_are_checked_before_anything_is_compiled() {
        let preopen = |host: &str| Preopen { host: host.into(), guest: "/".into(), access: Access::ReadWrite };
        assert!(check_dir(&preopen(".")).is_ok());
        let text = check_dir(&preopen("no/such/folder")).unwrap_err().to_string();
        assert!(text.contains("no/such/folder: no such folder"), "{text}");
        let text = check_dir(&preopen("Cargo.toml")).unwrap_err().to_string();
        assert!(text.contains("this is a file") && text.contains("--dir ."), "{text}");
    }
}
