//! Sockets: those that an instance was given, and the connections that it accepts on them.
//!
//! Preview 1 cannot create sockets: the [`crate::Builder`] supplies listeners and streams. Every operation is
//! non-blocking.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::PollFlags;
use rustix::io::Errno as Os;
use rustix::net::{
    RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, accept_with, recv, send, shutdown, sockopt,
};

use crate::Errno;
use crate::descriptor::{Descriptor, Table};
use crate::encode::{Filetype, Out, Result, fdflags, flags, would_block};
use crate::stdio::is_ready;

const PEEK: u64 = 1;
const WAITALL: u64 = 2;
/// `roflags`: the message was longer than the buffer.
const DATA_TRUNCATED: u16 = 1;

pub(crate) struct Socket {
    fd: Arc<OwnedFd>,
    pub(crate) listening: bool,
    pub(crate) nonblocking: bool,
    datagram: bool,
    /// Bytes received for a call that waits for more (`WAITALL`), and not yet given to the guest.
    held: Vec<u8>,
}

impl Socket {
    pub(crate) fn new(fd: Arc<OwnedFd>) -> std::io::Result<Self> {
        Ok(Self {
            listening: sockopt::socket_acceptconn(&fd)?,
            datagram: sockopt::socket_type(&fd)? == SocketType::DGRAM,
            nonblocking: false,
            held: Vec::new(),
            fd,
        })
    }

    /// Returns another instance's descriptor of the same socket.
    pub(crate) fn share(&self) -> Self {
        Self { fd: self.fd.clone(), held: Vec::new(), ..*self }
    }

    pub(crate) fn filetype(&self) -> Filetype {
        if self.datagram { Filetype::SocketDgram } else { Filetype::SocketStream }
    }

    pub(crate) fn readable(&self) -> bool {
        !self.held.is_empty() || is_ready(&self.fd, PollFlags::IN)
    }

    pub(crate) fn writable(&self) -> bool {
        is_ready(&self.fd, PollFlags::OUT)
    }

    /// Returns how many bytes can be read now.
    pub(crate) fn available(&self) -> u64 {
        self.held.len() as u64 + rustix::io::ioctl_fionread(&self.fd).unwrap_or(0)
    }

    /// Receives into the buffer. Returns how many bytes, and the `roflags`.
    pub(crate) fn receive(&mut self, buffer: &mut [u8], word: u64) -> Result<(usize, u16)> {
        if word & WAITALL != 0 && !self.datagram && !self.nonblocking {
            self.hold(buffer.len())?;
        }
        if !self.held.is_empty() {
            let count = self.held.len().min(buffer.len());
            buffer[..count].copy_from_slice(&self.held[..count]);
            if word & PEEK == 0 {
                self.held.drain(..count);
            }
            return Ok((count, 0));
        }
        let mut how = RecvFlags::DONTWAIT;
        how.set(RecvFlags::PEEK, word & PEEK != 0);
        // On a datagram socket, this flag makes `recv` return the message's full length. On a stream, it would discard
        // bytes.
        how.set(RecvFlags::TRUNC, self.datagram);
        let (filled, whole) = self.received(buffer, how)?;
        Ok((filled, if whole > filled { DATA_TRUNCATED } else { 0 }))
    }

    fn received(&self, buffer: &mut [u8], how: RecvFlags) -> Result<(usize, usize)> {
        match recv(&self.fd, buffer, how) {
            Err(Os::AGAIN) => Err(would_block(self.nonblocking)),
            other => {
                let (filled, whole) = other?;
                Ok((filled, whole))
            }
        }
    }

    /// Receives until `held` has `wanted` bytes, or all that come before the connection's end.
    fn hold(&mut self, wanted: usize) -> Result {
        while self.held.len() < wanted {
            let start = self.held.len();
            self.held.resize(wanted, 0);
            let mut rest = std::mem::take(&mut self.held);
            let result = self.received(&mut rest[start..], RecvFlags::DONTWAIT);
            rest.truncate(start + result.as_ref().map_or(0, |(filled, _)| *filled));
            self.held = rest;
            if result?.0 == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Sends as many bytes as the socket takes without blocking.
pub(crate) fn send_bytes(socket: &Socket, bytes: &[u8]) -> Result<usize> {
    match send(&socket.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Err(Os::AGAIN) => Err(would_block(socket.nonblocking)),
        other => Ok(other?),
    }
}

/// `sock_accept`
pub(crate) fn accept(table: &mut Table, fd: u64, word: u64, out: &mut Out) -> Result {
    let word = flags(word, fdflags::ALL)?;
    table.check_room()?;
    let listener = table.socket(fd)?;
    let accepted = match accept_with(&listener.fd, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        Err(Os::AGAIN) => return Err(would_block(listener.nonblocking)),
        other => other?,
    };
    let mut socket = Socket::new(Arc::new(accepted))?;
    socket.nonblocking = word & fdflags::NONBLOCK != 0;
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
