//! The host's side of WASI preview 1: the 46 calls of [`gpu_run_abi::hostcall`], answered from a sandbox.
//!
//! A [`Builder`] holds what instances are given and makes a [`Context`] for each. [`Context::call`] performs one call:
//! argument words and input bytes in, output bytes out, exactly as the call's row describes them.
//!
//! - **No call blocks.** A call that cannot be answered yet (a sleep, an empty pipe, a socket with no connection)
//!   returns [`Reply::Again`] and has changed nothing that the guest can see; the caller repeats it with the same
//!   arguments. Regular files are read and written directly.
//! - **No guest reaches outside its directories.** Every path goes through cap-std, which resolves it beneath the
//!   directory it is relative to (`openat2` with `RESOLVE_BENEATH`): `..`, absolute paths, symbolic links and races
//!   between them never lead out.
//! - **No guest changes a directory that it may only read** ([`Access::ReadOnly`]): every call that would change
//!   something returns `rofs` before it reaches the host's file system.
//! - **No guest opens a socket that no rule allows** ([`NetRule`]). Requests for sockets, which preview 1 lacks, come as
//!   [`gpu_run_abi::extension`] describes.
//! - **No guest starts a program that it may not** ([`Programs`]), and a child is given no more than its parent.
//! - **No guest makes the host panic or run out of memory.** Words and lengths are checked, transfers and descriptors
//!   are limited.
//! - **No call of the hot path allocates**: writing to standard output, reading, the clock.
//!
//! Behaviour, errno by errno, is that of Wasmtime's preview 1, except where Wasmtime lacks something: here sockets
//! work, FIFOs and terminals can be read, directory cookies are stable, device and inode numbers are the host's, and
//! error numbers that Wasmtime folds into `io` (`xdev`, `rofs`, `mfile`, …) are distinct.

mod builder;
mod clock;
mod descriptor;
mod directory;
mod embedder;
mod encode;
mod errno;
mod extension;
mod file;
mod net;
mod path;
mod pipe;
mod poll;
mod process;
mod socket;
pub mod stdio;
mod trace;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gpu_run_abi::hostcall::Call;

pub use builder::{Access, Builder, Error, Preopen};
pub use embedder::{FunctionAnswer, FunctionCall, Functions, InstanceFunctions, LaterAnswer, wake};
pub use encode::Out;
pub use errno::Errno;
pub use extension::CallsFetch;
pub use net::NetRule;
pub use process::{Child, Ended, LastWords, OWN_PROGRAM, Order, Programs, Wanted};
pub use stdio::Stdio;
pub use watch::{Awaited, Watch};

use builder::Strings;
use descriptor::{Descriptor, Table};
use embedder::Embedder;
use encode::{Result, Stop, check_input, exactly};
use extension::{Ask, Fetch, is_extension};
use file::Times;
use net::Net;
use process::Process;
use trace::Trace;

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The call is done. If the errno is [`Errno::Success`], `out` holds its output.
    Done(Errno),
    /// The instance exits with this code.
    Exit(u32),
    /// Nothing was done yet. Repeat the same call, with no other call in between: at the moment `at`, and now and then
    /// before that, since the call may also wait for a descriptor. `None`: the call waits only for a descriptor.
    Again { at: Option<Instant> },
    /// The embedder refuses the call: the instance ends.
    Refused,
}

/// What a caller keeps of a call that it repeats.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    since: Instant,
    /// The socket's timeout when the call was first made.
    timeout: Option<Duration>,
    /// The number of the call, if it is one of an embedder's function.
    call: Option<u64>,
}

/// One instance's view of the host: its arguments, its environment and its descriptors.
pub struct Context {
    args: Arc<Strings>,
    env: Arc<Strings>,
    table: Table,
    net: Net,
    process: Process,
    embedder: Embedder,
    /// When a call that is being repeated was first made.
    since: Option<Instant>,
    trace: Option<Trace>,
}

impl Context {
    /// From here on, `print` gets a line for each call that is answered, with `caller` in front.
    pub fn trace(&mut self, caller: String, print: Arc<dyn Fn(&str) + Send + Sync>) {
        self.trace = Some(Trace { caller, print });
    }

    /// Sets how many threads the guest is told it can have at once.
    pub fn with_parallelism(mut self, threads: u32) -> Self {
        self.net.parallelism = threads;
        self
    }

    /// Changes what is in front of the lines, if calls are traced.
    pub fn name_caller(&mut self, name: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.caller = name();
        }
    }

    /// Like [`Context::call`], for one of several callers that share the context. A caller keeps `waiting` from one call to
    /// the next, and begins with `None`.
    pub fn call_of(
        &mut self,
        waiting: &mut Option<Waiting>,
        call: Call,
        words: &[u64],
        input: &[u8],
        out: &mut Out,
    ) -> Reply {
        self.since = waiting.map(|waiting| waiting.since);
        self.net.timeout = waiting.and_then(|waiting| waiting.timeout);
        self.embedder.repeated = waiting.and_then(|waiting| waiting.call);
        let reply = self.call(call, words, input, out);
        *waiting = self.since.take().map(|since| Waiting {
            since,
            timeout: self.net.timeout,
            call: self.embedder.repeated.take(),
        });
        reply
    }

    /// Performs a call. `words` and `input` are as [`gpu_run_abi::hostcall`] describes them. `out` is cleared first.
    pub fn call(&mut self, call: Call, words: &[u64], input: &[u8], out: &mut Out) -> Reply {
        out.clear();
        let is_heard = watch::is_anybody_resting() && self.is_heard_by_others(call, words);
        let result = match self.dispatch(call, words, input, out) {
            // It waits for a socket, perhaps not for ever.
            Err(Stop::Again(None)) => Err(self.net.time_out(&mut self.table, call, words, &mut self.since)),
            // While it waits, another thread has set the socket to nonblocking, which is for later calls.
            Err(Stop::Errno(Errno::Again)) if self.since.is_some() => {
                Err(self.net.time_out(&mut self.table, call, words, &mut self.since))
            }
            other => other,
        };
        let reply = match result {
            Ok(()) => Reply::Done(Errno::Success),
            Err(Stop::Errno(errno)) => Reply::Done(errno),
            Err(Stop::Again(at)) => Reply::Again { at },
            Err(Stop::Exit(code)) => Reply::Exit(code),
            Err(Stop::Refused) => Reply::Refused,
        };
        if !matches!(reply, Reply::Again { .. }) {
            self.since = None;
        }
        if reply != Reply::Done(Errno::Success) {
            out.clear();
        }
        if is_heard && !matches!(reply, Reply::Again { .. }) {
            watch::ring_all();
        }
        if let Some(trace) = &self.trace {
            trace.call(call, words, input, reply, out);
        }
        tracing::trace!(call = call.function().name, ?words, input = input.len(), ?reply, output = out.bytes.len());
        reply
    }

    /// Returns whether others may wait for what this call does: they have the other end of a pipe, or started this guest.
    fn is_heard_by_others(&mut self, call: Call, words: &[u64]) -> bool {
        match (call, words) {
            (Call::proc_exit, _) => true,
            // What is renumbered closes the second one.
            (Call::fd_read | Call::fd_write | Call::fd_close, [fd, ..]) | (Call::fd_renumber, [_, fd]) => {
                matches!(self.table.get(*fd), Ok(Descriptor::Pipe(_)))
            }
            _ => false,
        }
    }

    /// Adds the sockets that a call waits for, one that was answered with [`Reply::Again`].
    pub fn awaited(&mut self, call: Call, words: &[u64], input: &[u8], awaited: &mut Vec<Awaited>) {
        match (call, net::waits_for(call, words)) {
            (Call::poll_oneoff, _) => poll::awaited(&mut self.table, input, awaited),
            (_, Some((fd, reads))) => awaited.extend(self.table.socket(fd).ok().map(|socket| socket.awaited(reads))),
            _ => {}
        }
    }

    fn dispatch(&mut self, call: Call, words: &[u64], input: &[u8], out: &mut Out) -> Result {
        if call != Call::embedder {
            check_input(call, words, input)?;
        }
        let table = &mut self.table;
        match call {
            Call::args_get => {
                let [_, buffer] = exactly(words)?;
                self.args.get(buffer, out);
                Ok(())
            }
            Call::args_sizes_get => self.args.sizes(out),
            Call::environ_get => {
                let [_, buffer] = exactly(words)?;
                self.env.get(buffer, out);
                Ok(())
            }
            Call::environ_sizes_get => self.env.sizes(out),
            Call::clock_res_get => {
                let [id] = exactly(words)?;
                out.put_u64(clock::resolution(id)?);
                Ok(())
            }
            Call::clock_time_get => {
                let [id, _precision] = exactly(words)?;
                out.put_u64(clock::now(id)?);
                Ok(())
            }
            Call::fd_advise => {
                let [fd, offset, length, advice] = exactly(words)?;
                file::advise(table, fd, offset, length, advice)
            }
            Call::fd_allocate => {
                let [fd, _offset, _length] = exactly(words)?;
                file::allocate(table, fd)
            }
            Call::fd_close => {
                let [fd] = exactly(words)?;
                descriptor::close(table, fd)
            }
            Call::fd_datasync => {
                let [fd] = exactly(words)?;
                file::datasync(table, fd)
            }
            Call::fd_fdstat_get => {
                let [fd] = exactly(words)?;
                descriptor::fdstat(table, fd, out)
            }
            Call::fd_fdstat_set_flags => {
                let [fd, flags] = exactly(words)?;
                descriptor::set_flags(table, fd, flags)
            }
            Call::fd_fdstat_set_rights => {
                let [fd, base, inheriting] = exactly(words)?;
                descriptor::set_rights(table, fd, base, inheriting)
            }
            Call::fd_filestat_get => {
                let [fd] = exactly(words)?;
                descriptor::filestat(table, fd, out)
            }
            Call::fd_filestat_set_size => {
                let [fd, size] = exactly(words)?;
                file::set_size(table, fd, size)
            }
            Call::fd_filestat_set_times => {
                let [fd, accessed, modified, flags] = exactly(words)?;
                descriptor::set_times(table, fd, Times::new(accessed, modified, flags)?)
            }
            Call::fd_pread => {
                let [fd, room, offset] = exactly(words)?;
                if is_extension(fd) {
                    return match Fetch::decode(offset)? {
                        Fetch::Process(request) => self.process.fetch(table, room, &request, out),
                        Fetch::Net(request) => self.net.fetch(table, room, &request, out),
                        Fetch::Calls(_) => Err(Errno::Notsup.into()),
                    };
                }
                file::read_at(table, fd, room, offset, out)
            }
            Call::fd_prestat_get => {
                let [fd] = exactly(words)?;
                descriptor::prestat(table, fd, out)
            }
            Call::fd_prestat_dir_name => {
                let [fd, room] = exactly(words)?;
                descriptor::prestat_name(table, fd, room, out)
            }
            Call::fd_pwrite => {
                let [fd, _length, offset] = exactly(words)?;
                if is_extension(fd) {
                    return match Ask::decode(offset, input)? {
                        Ask::Process(request) => self.ask_process(input, request, out),
                        Ask::Net(request) => self.net.ask(table, input, request, &mut self.since, out),
                        Ask::Duplicate { fd } => {
                            let duplicate = table.get(fd)?.share();
                            out.put_u32(table.insert(duplicate)?);
                            Ok(())
                        }
                        Ask::Lock { fd, lock, waits } => file::lock(table, fd, lock, waits, out),
                        Ask::SetPermissions { fd, mode } => file::set_permissions(table, fd, mode, out),
                    };
                }
                file::write_at(table, fd, input, offset, out)
            }
            Call::fd_read => {
                let [fd, room] = exactly(words)?;
                file::read(table, fd, room, out)
            }
            Call::fd_readdir => {
                let [fd, room, cookie] = exactly(words)?;
                directory::read(table, fd, room, cookie, out)
            }
            Call::fd_renumber => {
                let [from, to] = exactly(words)?;
                descriptor::renumber(table, from, to)
            }
            Call::fd_seek => {
                let [fd, offset, whence] = exactly(words)?;
                file::seek(table, fd, offset as i64, whence, out)
            }
            Call::fd_sync => {
                let [fd] = exactly(words)?;
                file::sync(table, fd)
            }
            Call::fd_tell => {
                let [fd] = exactly(words)?;
                file::tell(table, fd, out)
            }
            Call::fd_write => {
                let [fd, _length] = exactly(words)?;
                file::write(table, fd, input, out)
            }
            Call::path_create_directory => {
                let [fd, _length] = exactly(words)?;
                path::create_directory(table, fd, input)
            }
            Call::path_filestat_get => {
                let [fd, flags, _length] = exactly(words)?;
                path::filestat(table, fd, flags, input, out)
            }
            Call::path_filestat_set_times => {
                let [fd, flags, _length, accessed, modified, fstflags] = exactly(words)?;
                path::set_times(table, fd, flags, input, Times::new(accessed, modified, fstflags)?)
            }
            Call::path_link => {
                let [old_fd, flags, length, new_fd, _] = exactly(words)?;
                let (old, new) = path::split(input, length)?;
                path::link(table, (old_fd, old), flags, (new_fd, new))
            }
            Call::path_open => {
                let [fd, dirflags, _length, oflags, base, inheriting, fdflags] = exactly(words)?;
                path::open(table, fd, input, &path::Open { dirflags, oflags, base, inheriting, fdflags }, out)
            }
            Call::path_readlink => {
                let [fd, _length, room] = exactly(words)?;
                path::readlink(table, fd, input, room, out)
            }
            Call::path_remove_directory => {
                let [fd, _length] = exactly(words)?;
                path::remove_directory(table, fd, input)
            }
            Call::path_rename => {
                let [old_fd, length, new_fd, _] = exactly(words)?;
                let (old, new) = path::split(input, length)?;
                path::rename(table, (old_fd, old), (new_fd, new))
            }
            Call::path_symlink => {
                let [length, fd, _] = exactly(words)?;
                let (target, name) = path::split(input, length)?;
                path::symlink(table, target, fd, name)
            }
            Call::path_unlink_file => {
                let [fd, _length] = exactly(words)?;
                path::unlink_file(table, fd, input)
            }
            Call::poll_oneoff => {
                let [_length, room] = exactly(words)?;
                poll::oneoff(table, input, room, &mut self.since, out)
            }
            Call::proc_exit => {
                let [code] = exactly(words)?;
                Err(Stop::Exit(code as u32))
            }
            // A guest has nobody to send a signal to.
            Call::proc_raise => match exactly(words)? {
                [0..=30] => Err(Errno::Notsup.into()),
                [_] => Err(Errno::Inval.into()),
            },
            Call::random_get => {
                let [room] = exactly(words)?;
                random(room, out)
            }
            Call::sched_yield => Ok(()),
            Call::sock_accept => {
                let [fd, flags] = exactly(words)?;
                socket::accept(table, fd, flags, out)
            }
            Call::sock_recv => {
                let [fd, room, flags] = exactly(words)?;
                socket::receive(table, fd, room, flags, out)
            }
            Call::sock_send => {
                let [fd, _length, flags] = exactly(words)?;
                socket::send_call(table, fd, input, flags, out)
            }
            Call::sock_shutdown => {
                let [fd, how] = exactly(words)?;
                socket::shut_down(table, fd, how)
            }
            Call::embedder => self.embedder.call(words, input, &mut self.since, out),
            // The printers of the official test suite: the calls are made, but nothing is printed.
            Call::print
            | Call::print_i32
            | Call::print_i64
            | Call::print_f32
            | Call::print_f64
            | Call::print_i32_f32
            | Call::print_f64_f64 => Ok(()),
        }
    }
}

/// Bytes that one `random_get` may ask for. The device splits larger requests.
pub const MAX_RANDOM_BYTES: u64 = 4 << 20;

/// `random_get`: fills the whole buffer, as there are no short answers. The device splits a large request into pieces;
/// a request far larger than a piece is refused.
fn random(room: u64, out: &mut Out) -> Result {
    if room > MAX_RANDOM_BYTES {
        return Err(Errno::Nomem.into());
    }
    out.bytes.resize(room as usize, 0);
    getrandom::fill(&mut out.bytes).map_err(|_| Errno::Io.into())
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("table", &self.table).finish_non_exhaustive()
    }
}
