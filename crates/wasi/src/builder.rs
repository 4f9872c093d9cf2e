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
use crate::encode::{Out, Result as CallResult};
use crate::socket::Socket;
use crate::{Context, Errno, Stdio};

/// What cannot be given to an instance.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot open directory {} for the program (as {guest}): {source}", host.display())]
    Preopen { host: PathBuf, guest: String, source: io::Error },
    #[error("cannot give the socket to the program: {source}")]
    Socket { source: io::Error },
    #[error("{what} {text:?} contains a NUL byte, which would end it early for the program")]
    Nul { what: &'static str, text: String },
}

/// What a guest may do in a directory it is given, by that directory and all it opens below: what else it was given, under whatever name, has its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    #[default]
    ReadWrite,
    /// What would change anything is `rofs`.
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

/// A folder of the host that guests are given, under a name of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preopen {
    pub host: PathBuf,
    pub guest: String,
    pub access: Access,
}

/// What instances have in common. One builder makes any number of them; directories and sockets are opened once, here.
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
}

impl Builder {
    pub fn new() -> Self {
        Self::default()
    }

    /// One more argument. The first is the program's name.
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

    /// One more environment variable.
    pub fn env(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<&mut Self, Error> {
        Arc::make_mut(&mut self.env).push("environment variable", &[key.as_ref(), b"=", value.as_ref()])?;
        Ok(self)
    }

    /// Opens a directory of the host, which the guest sees under another name. It reaches what is beneath it and nothing
    /// else.
    pub fn preopen(&mut self, host: &Path, guest: &str) -> Result<&mut Self, Error> {
        self.preopen_with(host, guest, Access::ReadWrite)
    }

    /// The same, with what it may do there.
    pub fn preopen_with(&mut self, host: &Path, guest: &str, access: Access) -> Result<&mut Self, Error> {
        let dir = Dir::open_ambient_dir(host, ambient_authority()).map_err(|source| Error::Preopen {
            host: host.into(),
            guest: guest.into(),
            source,
        })?;
        self.preopens.push((Arc::new(dir), guest.into(), access));
        Ok(self)
    }

    /// Gives the guest a listener or a connected socket, TCP or Unix, on a descriptor after those of the directories.
    pub fn preopen_socket(&mut self, socket: impl Into<OwnedFd>) -> Result<&mut Self, Error> {
        let socket = waitless(socket.into()).map_err(|source| Error::Socket { source })?;
        self.sockets.push(Arc::new(socket));
        Ok(self)
    }

    /// The arguments as the guest gets them: where each starts, and all of them, each ended by a NUL.
    pub fn arg_strings(&self) -> (&[u32], &[u8]) {
        (&self.args.starts, &self.args.buffer)
    }

    /// The environment likewise.
    pub fn env_strings(&self) -> (&[u32], &[u8]) {
        (&self.env.starts, &self.env.buffer)
    }

    /// An instance's view of the host.
    pub fn build(&self, stdio: Stdio) -> Context {
        let mut table = Table::with_capacity(3 + self.preopens.len() + self.sockets.len());
        let stdio =
            [Descriptor::Input(stdio.stdin), Descriptor::Output(stdio.stdout), Descriptor::Output(stdio.stderr)];
        let preopens = self.preopens.iter();
        let preopens = preopens.map(|(dir, name, access)| Directory::new(dir.clone(), Some(name.clone()), *access));
        let sockets = self.sockets.iter().map(|socket| socket.share());
        let given = preopens.map(Descriptor::Directory).chain(sockets.map(Descriptor::Socket));
        for descriptor in stdio.into_iter().chain(given) {
            // A full table is one that holds all the guest can have: the rest it could not use either.
            if table.insert(descriptor).is_err() {
                break;
            }
        }
        Context { args: self.args.clone(), env: self.env.clone(), table, since: None }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.preopens.iter().map(|(_, name, access)| (name, access)).collect();
        f.debug_struct("Builder")
            .field("preopens", &names)
            .field("sockets", &self.sockets.len())
            .finish_non_exhaustive()
    }
}

/// `accept` has no flag that says "do not wait": the listener itself must be so.
fn waitless(fd: OwnedFd) -> io::Result<Socket> {
    fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
    Socket::new(Arc::new(fd))
}

/// Strings as the guest gets them: each ended by a NUL, one after the other.
#[derive(Clone, Default)]
pub(crate) struct Strings {
    buffer: Vec<u8>,
    starts: Vec<u32>,
}

impl Strings {
    fn push(&mut self, what: &'static str, parts: &[&[u8]]) -> Result<(), Error> {
        if parts.iter().any(|part| part.contains(&0)) {
            return Err(Error::Nul { what, text: String::from_utf8_lossy(&parts.concat()).into_owned() });
        }
        // Beyond 4 GiB they fit no guest; `sizes` says so.
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

    /// `args_get`, `environ_get`: pointers into where the buffer will be, then the buffer.
    pub(crate) fn get(&self, at: u64, out: &mut Out) {
        for start in &self.starts {
            out.put_u32((at as u32).wrapping_add(*start));
        }
        out.split = out.bytes.len() as u32;
        out.put(&self.buffer);
    }
}
