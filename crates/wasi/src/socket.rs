//! Sockets: those that an instance was given, those that it opened ([`crate::net`]), and the connections that it accepts on them.
//!
//! Preview 1 cannot create sockets: the [`crate::Builder`] supplies listeners and streams. Every operation is
//! non-blocking.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::PollFlags;
use rustix::io::Errno as Os;
use rustix::net::{
    RecvFlags, SendFlags, Shutdown, SocketAddrAny, SocketFlags, SocketType, accept_with, recv, recvfrom, send,
    shutdown, sockopt,
};

use crate::Errno;
use crate::descriptor::{Descriptor, Table};
use crate::encode::{Filetype, Out, Result, fdflags, flags, would_block};
use crate::extension::duration;
use crate::net::{Policy, Ticket};
use crate::stdio::is_ready;
use crate::watch::Awaited;

const PEEK: u64 = 1;
const WAITALL: u64 = 2;
/// `roflags`: the message was longer than the buffer.
const DATA_TRUNCATED: u16 = 1;
/// The most datagrams of strangers that one call drops. Other instances wait meanwhile.
const MAX_DROPPED: usize = 64;

/// A descriptor of a socket.
pub(crate) struct Socket {
    pub(crate) fd: Arc<OwnedFd>,
    pub(crate) listening: bool,
    pub(crate) datagram: bool,
    /// What all descriptors of the socket in this instance have in common.
    pub(crate) state: Arc<State>,
}

/// What the kernel would keep for a socket if its calls could block.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) nonblocking: AtomicBool,
    /// In nanoseconds; 0: none.
    pub(crate) read_timeout: AtomicU64,
    pub(crate) write_timeout: AtomicU64,
    /// In nanoseconds, plus one; 0: none.
    pub(crate) linger: AtomicU64,
    /// Bytes received for a call that waits for more (`WAITALL`), and not yet given to the guest.
    held: Mutex<Vec<u8>>,
    /// Whose datagrams are received: only those of peers to which the guest may connect. `None`: everybody's.
    only_from: Option<Arc<Policy>>,
    /// The place among the sockets that the instance has opened.
    ticket: Option<Ticket>,
}

impl Socket {
    pub(crate) fn new(fd: Arc<OwnedFd>) -> std::io::Result<Self> {
        Ok(Self {
            listening: sockopt::socket_acceptconn(&fd)?,
            datagram: sockopt::socket_type(&fd)? == SocketType::DGRAM,
            state: Arc::default(),
            fd,
        })
    }

    /// Returns the descriptor of a socket that the instance has opened.
    pub(crate) fn opened(fd: OwnedFd, ticket: Ticket, only_from: Option<Arc<Policy>>) -> std::io::Result<Self> {
        let state = State { ticket: Some(ticket), only_from, ..State::default() };
        Ok(Self { state: Arc::new(state), ..Self::new(Arc::new(fd))? })
    }

    /// Returns another instance's descriptor of the same socket.
    pub(crate) fn share(&self) -> Self {
        Self { fd: self.fd.clone(), state: Arc::default(), ..*self }
    }

    /// Returns another descriptor of the same socket for the same instance.
    pub(crate) fn duplicate(&self) -> Self {
        Self { fd: self.fd.clone(), state: self.state.clone(), ..*self }
    }

    pub(crate) fn filetype(&self) -> Filetype {
        if self.datagram { Filetype::SocketDgram } else { Filetype::SocketStream }
    }

    pub(crate) fn is_nonblocking(&self) -> bool {
        self.state.nonblocking.load(Ordering::Relaxed)
    }

    pub(crate) fn set_nonblocking(&self, on: bool) {
        self.state.nonblocking.store(on, Ordering::Relaxed);
    }

    /// Returns how long a read waits, or a write.
    pub(crate) fn timeout(&self, reads: bool) -> Option<Duration> {
        let State { read_timeout, write_timeout, .. } = &*self.state;
        duration(if reads { read_timeout } else { write_timeout }.load(Ordering::Relaxed))
    }

    pub(crate) fn readable(&self) -> bool {
        if !self.state.held.lock().is_empty() {
            return true;
        }
        if self.state.only_from.is_none() {
            return is_ready(&self.fd, PollFlags::IN);
        }
        // What a stranger sent is no reason to read. An error is.
        !matches!(self.next_datagram(&mut [], RecvFlags::DONTWAIT | RecvFlags::PEEK), Err(Os::AGAIN))
    }

    pub(crate) fn awaited(&self, reads: bool) -> Awaited {
        Awaited { fd: self.fd.clone(), reads }
    }

    pub(crate) fn writable(&self) -> bool {
        is_ready(&self.fd, PollFlags::OUT)
    }

    /// Returns how many bytes can be read now.
    pub(crate) fn available(&self) -> u64 {
        self.state.held.lock().len() as u64 + rustix::io::ioctl_fionread(&self.fd).unwrap_or(0)
    }

    /// Receives into the buffer. Returns how many bytes, and the `roflags`.
    pub(crate) fn receive(&mut self, buffer: &mut [u8], word: u64) -> Result<(usize, u16)> {
        // As on Linux: nothing can be read of a connection at once. Of datagrams, that takes the next one.
        if buffer.is_empty() && !self.datagram && !self.listening {
            return Ok((0, 0));
        }
        let mut held = self.state.held.lock();
        if word & WAITALL != 0 && !self.datagram && !self.is_nonblocking() {
            self.hold(&mut held, buffer.len())?;
        }
        if !held.is_empty() {
            let count = held.len().min(buffer.len());
            buffer[..count].copy_from_slice(&held[..count]);
            if word & PEEK == 0 {
                held.drain(..count);
            }
            return Ok((count, 0));
        }
        if self.datagram {
            let (filled, whole, _) = self.receive_from(buffer, word & PEEK != 0)?;
            return Ok((filled, if whole > filled { DATA_TRUNCATED } else { 0 }));
        }
        let mut how = RecvFlags::DONTWAIT;
        how.set(RecvFlags::PEEK, word & PEEK != 0);
        Ok((self.received(buffer, how)?, 0))
    }

    /// Receives a datagram. Returns how many bytes of it are in the buffer, how long it was, and its sender.
    pub(crate) fn receive_from(&self, buffer: &mut [u8], peeks: bool) -> Result<(usize, usize, Option<SocketAddrAny>)> {
        // On a stream, `TRUNC` would discard bytes.
        let mut how = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        how.set(RecvFlags::PEEK, peeks);
        match self.next_datagram(buffer, how) {
            Err(Os::AGAIN) => Err(would_block(self.is_nonblocking())),
            other => Ok(other?),
        }
    }

    /// Receives the next datagram of somebody whom the guest may hear, and drops those of others.
    fn next_datagram(
        &self,
        buffer: &mut [u8],
        how: RecvFlags,
    ) -> rustix::io::Result<(usize, usize, Option<SocketAddrAny>)> {
        for _ in 0..MAX_DROPPED {
            let (filled, whole, sender) = recvfrom(&self.fd, &mut *buffer, how)?;
            let address = sender.clone().and_then(|sender| SocketAddr::try_from(sender).ok());
            match (&self.state.only_from, address) {
                (None, _) => return Ok((filled, whole, sender)),
                (Some(policy), Some(address)) if policy.may_connect(address) => return Ok((filled, whole, sender)),
                _ if how.contains(RecvFlags::PEEK) => _ = recv(&self.fd, &mut [0; 0], RecvFlags::DONTWAIT)?,
                _ => {}
            }
        }
        Err(Os::AGAIN)
    }

    fn received(&self, buffer: &mut [u8], how: RecvFlags) -> Result<usize> {
        match recv(&self.fd, buffer, how) {
            Err(Os::AGAIN) => Err(would_block(self.is_nonblocking())),
            other => Ok(other?.0),
        }
    }

    /// Receives until `held` has `wanted` bytes, or all that come before the connection's end.
    fn hold(&self, held: &mut Vec<u8>, wanted: usize) -> Result {
        while held.len() < wanted {
            let start = held.len();
            held.resize(wanted, 0);
            let result = self.received(&mut held[start..], RecvFlags::DONTWAIT);
            held.truncate(start + result.as_ref().map_or(0, |filled| *filled));
            if result? == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Sends as many bytes as the socket takes without blocking.
pub(crate) fn send_bytes(socket: &Socket, bytes: &[u8]) -> Result<usize> {
    match send(&socket.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Err(Os::AGAIN) => Err(would_block(socket.is_nonblocking())),
        other => Ok(other?),
    }
}

/// `sock_accept`
pub(crate) fn accept(table: &mut Table, fd: u64, word: u64, out: &mut Out) -> Result {
    let word = flags(word, fdflags::ALL)?;
    table.check_room()?;
    let listener = table.socket(fd)?;
    // A connection to a listener that the instance has opened counts as opened, too.
    let ticket = listener.state.ticket.as_ref().map(Ticket::another).transpose()?;
    let accepted = match accept_with(&listener.fd, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        Err(Os::AGAIN) => return Err(would_block(listener.is_nonblocking())),
        other => other?,
    };
    let socket = match ticket {
        Some(ticket) => Socket::opened(accepted, ticket, None),
        None => Socket::new(Arc::new(accepted)),
    }?;
    socket.set_nonblocking(word & fdflags::NONBLOCK != 0);
    out.put_u32(table.insert(Descriptor::Socket(socket))?);
    Ok(())
}

/// `sock_recv`
pub(crate) fn receive(table: &mut Table, fd: u64, room: u64, word: u64, out: &mut Out) -> Result {
    let word = flags(word, PEEK | WAITALL)?;
    let socket = table.socket(fd)?;
    let mut roflags = 0;
    out.fill(6, room, |buffer| {
        let (count, flags) = socket.receive(buffer, word)?;
        roflags = flags;
        Ok(count)
    })?;
    out.bytes[4..6].copy_from_slice(&roflags.to_le_bytes());
    Ok(())
}

/// `sock_send`
pub(crate) fn send_call(table: &mut Table, fd: u64, bytes: &[u8], word: u64, out: &mut Out) -> Result {
    flags(word, 0)?;
    let count = send_bytes(table.socket(fd)?, bytes)?;
    out.put_u32(count as u32);
    Ok(())
}

/// `sock_shutdown`
pub(crate) fn shut_down(table: &mut Table, fd: u64, word: u64) -> Result {
    let word = flags(word, 3)?;
    let socket = table.socket(fd)?;
    let how = match word {
        1 => Shutdown::Read,
        2 => Shutdown::Write,
        3 => Shutdown::Both,
        _ => return Err(Errno::Inval.into()),
    };
    Ok(shutdown(&socket.fd, how)?)
}
