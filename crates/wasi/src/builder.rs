//! What instances are given: arguments, environment, directories, sockets.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::descriptor::{Descriptor, Table};
use crate::directory::Directory;
use crate::embedder::{Embedder, Functions};
use crate::encode::{Out, Result as CallResult};
use crate::net::{Net, NetRule};
use crate::pipe::PipeSpace;
use crate::process::{Process, Programs};
use crate::socket::Socket;
use crate::{Context, Errno, Stdio};

/// Why something cannot be given to an instance.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot open directory {} for the program (as {guest}): {source}", host.display())]
    Preopen { host: PathBuf, guest: String, source: io::Error },
    #[error("cannot give the socket to the program: {source}")]
    Socket { source: io::Error },
    #[error("{what} {text:?} contains a NUL byte, which would end it early for the program")]
    Nul { what: &'static str, text: String },
}

/// What a guest may do in a directory it was given, and in everything it opens below it. If the guest reaches the same
/// files through another preopened directory, that directory's access applies there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    #[default]
    ReadWrite,
    /// Every call that would change something returns `rofs`.
    ReadOnly,
}

impl Access {
    pub(crate) fn check_changes(self) -> CallResult {
        match self {
            Self::ReadWrite => Ok(()),
            Self::ReadOnly => Err(Errno::Rofs.into()),
        }
    }
}

/// A directory of the host that guests are given, under a name of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preopen {
    pub host: PathBuf,
    pub guest: String,
    pub access: Access,
}

/// What instances have in common. One builder makes any number of [`Context`]s; directories and sockets are opened only
/// once, by the builder.
///
/// ```
/// use gpu_run_wasi::{Access, Builder, Stdio};
/// # fn main() -> Result<(), gpu_run_wasi::Error> {
/// let mut builder = Builder::new();
/// builder.arg("app")?.env("LANG", "C")?.preopen_with(".".as_ref(), "/", Access::ReadOnly)?;
/// let first = builder.build(Stdio::null());
/// let second = builder.clone().arg("--again")?.build(Stdio::null());
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Builder {
    args: Arc<Strings>,
    env: Arc<Strings>,
    preopens: Vec<(Arc<Dir>, Arc<str>, Access)>,
    sockets: Vec<Arc<Socket>>,
    number: u64,
    rules: Vec<NetRule>,
    parallelism: Option<u32>,
    programs: Option<Arc<dyn Programs>>,
    functions: Option<Arc<dyn Functions>>,
    /// For the pipes of all contexts together.
    pipes: Arc<PipeSpace>,
}

impl Builder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an argument. The first is the program's name.
    pub fn arg(&mut self, arg: impl AsRef<[u8]>) -> Result<&mut Self, Error> {
        Arc::make_mut(&mut self.args).push("argument", &[arg.as_ref()])?;
        Ok(self)
    }

    pub fn args<A: AsRef<[u8]>>(&mut self, args: impl IntoIterator<Item = A>) -> Result<&mut Self, Error> {
        for arg in args {
            self.arg(arg)?;
        }
        Ok(self)
    }

    /// Sets the number of the instance, for an embedder's functions.
    pub fn number(&mut self, number: u64) -> &mut Self {
        self.number = number;
        self
    }

    /// Adds an environment variable.
    pub fn env(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<&mut Self, Error> {
        Arc::make_mut(&mut self.env).push("environment variable", &[key.as_ref(), b"=", value.as_ref()])?;
        Ok(self)
    }

    /// Opens a directory of the host, which the guest sees under another name. The guest reaches what is beneath that
    /// directory and nothing else.
    pub fn preopen(&mut self, host: &Path, guest: &str) -> Result<&mut Self, Error> {
        self.preopen_with(host, guest, Access::ReadWrite)
    }

    /// Like [`Builder::preopen`], with the given access.
    pub fn preopen_with(&mut self, host: &Path, guest: &str, access: Access) -> Result<&mut Self, Error> {
        let dir = Dir::open_ambient_dir(host, ambient_authority()).map_err(|source| Error::Preopen {
            host: host.into(),
            guest: guest.into(),
            source,
        })?;
        self.preopens.push((Arc::new(dir), guest.into(), access));
        Ok(self)
    }

    /// Gives the guest a listener or a connected socket, TCP or Unix. Sockets get the descriptors after those of the
    /// directories.
    pub fn preopen_socket(&mut self, socket: impl Into<OwnedFd>) -> Result<&mut Self, Error> {
        let socket = waitless(socket.into()).map_err(|source| Error::Socket { source })?;
        self.sockets.push(Arc::new(socket));
        Ok(self)
    }

    /// Lets the guest open sockets of its own, as far as this rule and others allow. Without a rule, it can open none.
    pub fn net(&mut self, rule: NetRule) -> &mut Self {
        self.rules.push(rule);
        self
    }

    /// Sets how many threads the guest is told it can have at once. Without this, it is told 1.
    pub fn parallelism(&mut self, threads: u32) -> &mut Self {
        self.parallelism = Some(threads);
        self
    }

    /// Lets the guest start processes.
    pub fn programs(&mut self, programs: Arc<dyn Programs>) -> &mut Self {
        self.programs = Some(programs);
        self
    }

    /// Lets the guest call an embedder's functions.
    pub fn functions(&mut self, functions: Arc<dyn Functions>) -> &mut Self {
        self.functions = Some(functions);
        self
    }

    /// Returns the arguments as the guest gets them: the offset of each, and all of them in one buffer, each terminated
    /// by a NUL.
    pub fn arg_strings(&self) -> (&[u32], &[u8]) {
        (&self.args.starts, &self.args.buffer)
    }

    /// Returns the environment in the same form.
    pub fn env_strings(&self) -> (&[u32], &[u8]) {
        (&self.env.starts, &self.env.buffer)
    }

    /// Makes an instance's view of the host.
    pub fn build(&self, stdio: Stdio) -> Context {
        let mut table = Table::with_capacity(3 + self.preopens.len() + self.sockets.len());
        let stdio =
            [Descriptor::input(stdio.stdin), Descriptor::output(stdio.stdout), Descriptor::output(stdio.stderr)];
        let preopens = self.preopens.iter();
        let preopens = preopens.map(|(dir, name, access)| Directory::new(dir.clone(), Some(name.clone()), *access));
        let sockets = self.sockets.iter().map(|socket| socket.share());
        let given = preopens.map(Descriptor::Directory).chain(sockets.map(Descriptor::Socket));
        for descriptor in stdio.into_iter().chain(given) {
            // The table is full, so the guest cannot have any of the remaining descriptors.
            if table.insert(descriptor).is_err() {
                break;
            }
        }
        let net = Net::new(&self.rules, self.parallelism.unwrap_or(1));
        let process = Process::new(self.programs.clone(), self.pipes.clone());
        let embedder = Embedder::new(self.functions.clone(), self.number);
        let (args, env) = (self.args.clone(), self.env.clone());
        Context { args, env, table, net, process, embedder, since: None, trace: None }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.preopens.iter().map(|(_, name, access)| (name, access)).collect();
        f.debug_struct("Builder")
            .field("preopens", &names)
            .field("sockets", &self.sockets.len())
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

/// Makes a socket non-blocking. `accept` has no flag for that, so the listener itself must be non-blocking.
fn waitless(fd: OwnedFd) -> io::Result<Socket> {
    fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
    Socket::new(Arc::new(fd))
}

/// Strings as the guest gets them: one after the other, each terminated by a NUL.
#[derive(Clone, Default)]
pub(crate) struct Strings {
    buffer: Vec<u8>,
    starts: Vec<u32>,
}

impl Strings {
    /// Returns these strings; an error if one contains a NUL.
    pub(crate) fn of(texts: &[&[u8]]) -> Result<Self, Error> {
        let mut strings = Self::default();
        texts.iter().try_for_each(|text| strings.push("argument", &[text]))?;
        Ok(strings)
    }

    fn push(&mut self, what: &'static str, parts: &[&[u8]]) -> Result<(), Error> {
        if parts.iter().any(|part| part.contains(&0)) {
            return Err(Error::Nul { what, text: String::from_utf8_lossy(&parts.concat()).into_owned() });
        }
        // Beyond 4 GiB the strings fit no guest; then `sizes` returns an error.
        self.starts.push(self.buffer.len() as u32);
        for part in parts {
            self.buffer.extend_from_slice(part);
        }
        self.buffer.push(0);
        Ok(())
    }

    /// `args_sizes_get`, `environ_sizes_get`
    pub(crate) fn sizes(&self, out: &mut Out) -> CallResult {
        out.put_u32(self.starts.len() as u32);
        out.put_u32(u32::try_from(self.buffer.len()).map_err(|_| Errno::Overflow)?);
        Ok(())
    }

    /// `args_get`, `environ_get`: a pointer to each string, with the buffer at guest address `at`; then the buffer.
    pub(crate) fn get(&self, at: u64, out: &mut Out) {
        for start in &self.starts {
            out.put_u32((at as u32).wrapping_add(*start));
        }
        out.split = out.bytes.len() as u32;
        out.put(&self.buffer);
    }
}
