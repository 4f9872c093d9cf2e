//! What a guest is given: arguments, environment, folders, sockets, standard streams.

use crate::error::{Error, Result};
use gpu_run_wasi::stdio::{Buffer, Bytes, Input, Null, Output, inherit};
use gpu_run_wasi::{Builder, Context, Functions, Preopen, Stdio};
use parking_lot::Mutex;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

pub use gpu_run_wasi::{Access, NetRule};

/// What a guest is given. Without more, that is nothing: no arguments, no environment, no folders, no network, an empty input, and
/// outputs that drop everything.
///
/// ```
/// use gpu_run::{Access, Wasi};
/// let wasi = Wasi::new().arg("app").arg("--fast").env("LANG", "C").dir(".", "/", Access::ReadOnly)?.inherit_stdio();
/// # Ok::<(), gpu_run::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Wasi {
    /// All but the arguments.
    builder: Builder,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(String, OsString)>,
    pub(crate) folders: Vec<Preopen>,
    stdin: Source,
    stdout: Sink,
    stderr: Sink,
    /// The first mistake in what was given.
    mistake: Option<String>,
}

#[derive(Clone, Default)]
enum Source {
    #[default]
    Null,
    Inherit,
    Bytes(Bytes),
}

#[derive(Clone, Default)]
enum Sink {
    #[default]
    Null,
    Inherit,
    Buffer(OutputBuffer),
    Writer(SharedWriter),
}

/// Where outputs of guests are written.
#[derive(Clone)]
struct SharedWriter(Arc<Mutex<dyn Write + Send>>);

impl Output for SharedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write_all(bytes).map(|()| bytes.len())
    }
}

/// What a guest has written to one of its outputs. Clones share the bytes.
#[derive(Clone, Debug, Default)]
pub struct OutputBuffer(Buffer);

impl OutputBuffer {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns and removes what was written since the last call.
    pub fn take(&self) -> Vec<u8> {
        self.0.take()
    }
}

impl Wasi {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an argument. The first is the program's name.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub fn args<A: AsRef<OsStr>>(self, args: impl IntoIterator<Item = A>) -> Self {
        args.into_iter().fold(self, |this, arg| this.arg(arg))
    }

    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let (name, value) = (name.as_ref(), value.as_ref());
        let added = self.builder.env(name.as_bytes(), value.as_bytes()).map(drop);
        self.env.push((name.to_string_lossy().into_owned(), value.to_owned()));
        self.noted(added)
    }

    /// Gives the guest all variables of this process.
    pub fn inherit_env(self) -> Self {
        std::env::vars_os().fold(self, |this, (name, value)| this.env(name, value))
    }

    /// Gives the guest a folder, which it sees as `guest`.
    pub fn dir(mut self, host: impl AsRef<Path>, guest: &str, access: Access) -> Result<Self> {
        let host = host.as_ref();
        match self.builder.preopen_with(host, guest, access) {
            Ok(_) => {
                self.folders.push(Preopen { host: host.to_owned(), guest: guest.to_owned(), access });
                Ok(self)
            }
            Err(gpu_run_wasi::Error::Preopen { source, .. }) => {
                Err(Error::Io { what: format!("cannot open the folder {}", host.display()), source })
            }
            Err(other) => Err(Error::Given(other.to_string())),
        }
    }

    /// Lets the guest open sockets, as far as this rule and others allow.
    pub fn net(mut self, rule: NetRule) -> Self {
        self.builder.net(rule);
        self
    }

    /// Sets what the guest reads as its standard input.
    pub fn stdin(mut self, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.stdin = Source::Bytes(bytes.into().into());
        self
    }

    pub fn stdout(mut self, buffer: &OutputBuffer) -> Self {
        self.stdout = Sink::Buffer(buffer.clone());
        self
    }

    pub fn stderr(mut self, buffer: &OutputBuffer) -> Self {
        self.stderr = Sink::Buffer(buffer.clone());
        self
    }

    /// Has the guest's standard output written there, while the guest runs. Other instances wait until it is written.
    pub fn stdout_to(mut self, writer: impl Write + Send + 'static) -> Self {
        self.stdout = Sink::Writer(SharedWriter(Arc::new(Mutex::new(writer))));
        self
    }

    /// Has the guest's standard error written there, while the guest runs. Other instances wait until it is written.
    pub fn stderr_to(mut self, writer: impl Write + Send + 'static) -> Self {
        self.stderr = Sink::Writer(SharedWriter(Arc::new(Mutex::new(writer))));
        self
    }

    /// Gives the guest the standard streams of this process.
    pub fn inherit_stdio(mut self) -> Self {
        (self.stdin, self.stdout, self.stderr) = (Source::Inherit, Sink::Inherit, Sink::Inherit);
        self
    }

    fn noted(mut self, added: Result<(), gpu_run_wasi::Error>) -> Self {
        if let Err(error) = added {
            self.mistake.get_or_insert(error.to_string());
        }
        self
    }

    /// Returns the builder of contexts, for guests that may call these functions.
    pub(crate) fn builder(&self, functions: Option<Arc<dyn Functions>>) -> Result<Builder> {
        self.builder_with(usize::MAX, functions)
    }

    /// Returns the builder of contexts that have only so many of the arguments.
    pub(crate) fn builder_with(&self, args: usize, functions: Option<Arc<dyn Functions>>) -> Result<Builder> {
        if let Some(mistake) = &self.mistake {
            return Err(Error::Given(mistake.clone()));
        }
        let mut builder = self.builder.clone();
        let args = self.args.iter().take(args).map(|arg| arg.as_bytes());
        builder.args(args).map_err(|error| Error::Given(error.to_string()))?;
        functions.map(|functions| builder.functions(functions));
        Ok(builder)
    }

    /// Returns the context of the instance with this number.
    pub(crate) fn context(&self, number: u64, functions: Option<Arc<dyn Functions>>) -> Result<Context> {
        Ok(self.builder(functions)?.number(number).build(self.stdio()))
    }

    pub(crate) fn has_streams(&self) -> bool {
        !matches!((&self.stdin, &self.stdout, &self.stderr), (Source::Null, Sink::Null, Sink::Null))
    }

    fn stdio(&self) -> Stdio {
        let stdin: Box<dyn Input> = match &self.stdin {
            Source::Null => Box::new(Null),
            Source::Inherit => Box::new(inherit::stdin()),
            Source::Bytes(bytes) => Box::new(bytes.clone()),
        };
        Stdio { stdin, stdout: output(&self.stdout, inherit::stdout), stderr: output(&self.stderr, inherit::stderr) }
    }
}

fn output<O: Output + 'static>(sink: &Sink, own: fn() -> O) -> Box<dyn Output> {
    match sink {
        Sink::Null => Box::new(Null),
        Sink::Inherit => Box::new(own()),
        Sink::Writer(writer) => Box::new(writer.clone()),
        Sink::Buffer(OutputBuffer(buffer)) => Box::new(buffer.clone()),
    }
}

impl fmt::Debug for Wasi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wasi").field("given", &self.builder).finish_non_exhaustive()
    }
}
