//! Sockets that a guest opens itself: which ones it may open ([`rules`]), and how that is done without blocking.
//!
//! A request that takes a while, to connect or to look up a name, is kept in [`Net`] while the caller repeats its call. It is found
//! again by what was asked: two threads that ask for the same may each get what the other one began.

mod look_up;
mod options;
mod rules;

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gpu_run_abi::extension::{ADDRESS_BYTES, ask};
use gpu_run_abi::hostcall::Call;
use rustix::event::PollFlags;
use rustix::io::Errno as Os;
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrAny, SocketFlags, SocketType, bind, connect, getpeername, getsockname, listen,
    sendto, socket_with, sockopt,
};

use crate::Errno;
use crate::descriptor::{Descriptor, Table};
use crate::encode::{Out, Result, Stop, would_block};
use crate::extension::{Fetch, NetAsk, NetFetch, encode_address, is_extension, put_fetched};
use crate::socket::Socket;
use crate::stdio::is_ready;

use look_up::{LookUp, Resolver};
use rules::{destination, plain};

pub use rules::NetRule;
pub(crate) use rules::Policy;

/// The most sockets that an instance may have opened, so that one guest cannot use up the host's.
const MAX_SOCKETS: usize = 4096;
/// The most replies that an instance may leave unfetched.
const MAX_REPLIES: usize = 1024;
/// The most look-ups of an instance at once, so that one guest's slow names keep nobody else waiting. Others wait for their turn.
const MAX_LOOK_UPS: usize = 4;
/// How many connections may wait for `sock_accept`; the kernel has a limit of its own.
const BACKLOG: i32 = 4096;

/// An instance's way to the network.
pub(crate) struct Net {
    policy: Arc<Policy>,
    open: Ticket,
    pub(crate) parallelism: u32,
    resolver: Arc<Resolver>,
    /// The timeout of the socket that the present call waits for, as it was when the call was first made.
    pub(crate) timeout: Option<Duration>,
    /// Requests that callers repeat until they are done.
    pending: Vec<Pending>,
    /// By number, which is never used again.
    replies: Vec<(u32, Vec<u8>)>,
    next_reply: u32,
}

struct Pending {
    asked: Vec<u8>,
    work: Work,
}

enum Work {
    Connect(OwnedFd, Ticket),
    LookUp(LookUp),
    /// A look-up that waits for its turn.
    LaterLookUp {
        name: String,
        port: u16,
    },
}

/// A place among the sockets that an instance has opened.
pub(crate) struct Ticket(Arc<AtomicUsize>);

impl Ticket {
    /// Takes another place, if one is left.
    pub(crate) fn another(&self) -> Result<Self> {
        let take = |open: usize| (open <= MAX_SOCKETS).then_some(open + 1);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(Self(self.0.clone())),
            Err(_) => Err(Errno::Mfile.into()),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Net {
    pub(crate) fn new(rules: &[NetRule], parallelism: u32) -> Self {
        Self {
            policy: Arc::new(Policy::new(rules.into())),
            // The first ticket is no socket's.
            open: Ticket(Arc::new(AtomicUsize::new(1))),
            parallelism,
            resolver: Resolver::of_the_host(),
            timeout: None,
            pending: Vec::new(),
            replies: Vec::new(),
            next_reply: 1,
        }
    }

    /// Returns the way to the network of a process that this one starts: the same rules, and sockets that count for both.
    pub(crate) fn of_child(&self) -> Result<Self> {
        Ok(Self {
            policy: self.policy.clone(),
            open: self.open.another()?,
            parallelism: self.parallelism,
            resolver: self.resolver.clone(),
            timeout: None,
            pending: Vec::new(),
            replies: Vec::new(),
            next_reply: 1,
        })
    }

    /// `fd_pwrite` of the extension's descriptor. `since` is when this call was first made.
    pub(crate) fn ask(
        &mut self,
        table: &mut Table,
        input: &[u8],
        request: NetAsk<'_>,
        since: &mut Option<Instant>,
        out: &mut Out,
    ) -> Result {
        let result = match request {
            NetAsk::TcpConnect { address, timeout } => self.tcp_connect(table, (input, address, timeout), since)?,
            NetAsk::TcpListen(address) => self.tcp_listen(table, address)?,
            NetAsk::UdpBind(address) => self.udp_bind(table, address)?,
            NetAsk::UdpConnect { fd, address } => {
                let address = self.allowed_destination(address)?;
                connect(&datagram(table, fd)?.fd, &address)?;
                0
            }
            NetAsk::UdpSendTo { fd, address, bytes } => {
                let address = self.allowed_destination(address)?;
                let socket = datagram(table, fd)?;
                match sendto(&socket.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL, &address) {
                    Err(Os::AGAIN) => return Err(would_block(socket.is_nonblocking())),
                    other => other? as u32,
                }
            }
            NetAsk::SetOption { fd, option, value } => {
                options::set(table.socket(fd)?, option, value)?;
                0
            }
            NetAsk::LookUp { name, port } => self.look_up((input, name, port), since)?,
            NetAsk::Multicast { fd, joins, group } => {
                let socket = datagram(table, fd)?;
                // What a group hears comes to the socket's port.
                let port = ip_address(getsockname(&socket.fd)?)?.port();
                self.check_listen(plain(group.at(port)))?;
                options::set_member(socket, group, joins)?;
                0
            }
            NetAsk::Parallelism => self.parallelism,
        };
        out.put_u32(result);
        Ok(())
    }

    /// `fd_pread` of the extension's descriptor.
    pub(crate) fn fetch(&mut self, table: &mut Table, room: u64, request: &NetFetch, out: &mut Out) -> Result {
        match *request {
            NetFetch::LocalAddress { fd } => {
                let address = ip_address(getsockname(&table.socket(fd)?.fd)?)?;
                put_fetched(out, room, &encode_address(address));
            }
            NetFetch::PeerAddress { fd } => {
                let address = ip_address(getpeername(&table.socket(fd)?.fd)?.ok_or(Errno::Notconn)?)?;
                put_fetched(out, room, &encode_address(address));
            }
            NetFetch::Option { fd, option } => {
                put_fetched(out, room, &options::get(table.socket(fd)?, option)?.to_le_bytes());
            }
            NetFetch::ReceiveFrom { fd, peeks } => {
                let socket = datagram(table, fd)?;
                return out.fill(4, room, |buffer| {
                    let (address, data) = buffer.split_first_chunk_mut::<ADDRESS_BYTES>().ok_or(Errno::Inval)?;
                    let (filled, _, sender) = socket.receive_from(data, peeks)?;
                    *address = encode_address(ip_address(sender.ok_or(Errno::Afnosupport)?)?);
                    Ok(ADDRESS_BYTES + filled)
                });
            }
            NetFetch::Reply { number } => {
                let at = self.replies.iter().position(|(own, _)| *own == number).ok_or(Errno::Noent)?;
                put_fetched(out, room, &self.replies.swap_remove(at).1);
            }
        }
        Ok(())
    }

    /// Returns a destination as it is given to the kernel, or `acces`.
    fn allowed_destination(&self, address: SocketAddr) -> Result<SocketAddr> {
        let address = destination(address);
        if self.policy.may_connect(address) {
            return Ok(address);
        }
        tracing::info!("denied: connect to {address}{}", allowed_by(&format!("connect={address}")));
        Err(Errno::Acces.into())
    }

    /// Returns `acces` if the guest may not listen there.
    fn check_listen(&self, address: SocketAddr) -> Result {
        if self.policy.may_listen(address) {
            return Ok(());
        }
        tracing::info!("denied: listen at {address}{}", allowed_by(&format!("listen={address}")));
        Err(Errno::Acces.into())
    }

    fn tcp_connect(
        &mut self,
        table: &mut Table,
        (asked, address, timeout): (&[u8], SocketAddr, Option<Duration>),
        since: &mut Option<Instant>,
    ) -> Result<u32> {
        let address = self.allowed_destination(address)?;
        table.check_room()?;
        let is_mine = |own: &Pending| own.asked == asked && matches!(own.work, Work::Connect(..));
        let mut mine = self.pending.iter().enumerate().filter(|(_, pending)| is_mine(pending));
        // Of several that ask for the same, the first one to look gets the connection that is ready.
        let is_done = |work: &Work| matches!(work, Work::Connect(fd, _) if is_ready(fd, PollFlags::OUT));
        let at = match since {
            Some(_) => mine.clone().find(|(_, own)| is_done(&own.work)).or_else(|| mine.next()).map(|(at, _)| at),
            None => None,
        };
        let now = Instant::now();
        let deadline = timeout.and_then(|timeout| since.unwrap_or(now).checked_add(timeout));
        if let Some(at) = at {
            if is_done(&self.pending[at].work) {
                let Work::Connect(fd, ticket) = self.pending.remove(at).work else {
                    return Err(Errno::Io.into());
                };
                sockopt::socket_error(&fd)??;
                return table.insert(Descriptor::Socket(Socket::opened(fd, ticket, None)?));
            }
            if deadline.is_some_and(|deadline| deadline <= now) {
                self.pending.remove(at);
                return Err(Errno::Timedout.into());
            }
            return Err(Stop::Again(deadline));
        }
        let ticket = self.open.another()?;
        let fd = new_socket(address, SocketType::STREAM)?;
        match connect(&fd, &address) {
            Ok(()) => table.insert(Descriptor::Socket(Socket::opened(fd, ticket, None)?)),
            Err(Os::INPROGRESS | Os::INTR) => {
                *since = Some(now);
                self.pending.push(Pending { asked: asked.into(), work: Work::Connect(fd, ticket) });
                Err(Stop::Again(deadline))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn tcp_listen(&mut self, table: &mut Table, address: SocketAddr) -> Result<u32> {
        let address = plain(address);
        self.check_listen(address)?;
        table.check_room()?;
        let ticket = self.open.another()?;
        let fd = new_socket(address, SocketType::STREAM)?;
        // As std does, so that a program can be started again at once.
        sockopt::set_socket_reuseaddr(&fd, true)?;
        bind(&fd, &address)?;
        listen(&fd, BACKLOG)?;
        table.insert(Descriptor::Socket(Socket::opened(fd, ticket, None)?))
    }

    fn udp_bind(&mut self, table: &mut Table, address: SocketAddr) -> Result<u32> {
        let address = plain(address);
        let only_from = if self.policy.may_listen(address) {
            None
        } else if is_clients(address) && self.policy.may_connect_somewhere() {
            Some(self.policy.clone())
        } else {
            return self.check_listen(address).map(|()| 0);
        };
        table.check_room()?;
        let ticket = self.open.another()?;
        let fd = new_socket(address, SocketType::DGRAM)?;
        bind(&fd, &address)?;
        table.insert(Descriptor::Socket(Socket::opened(fd, ticket, only_from)?))
    }

    /// Returns the number of a reply with the addresses of a name.
    fn look_up(&mut self, (asked, name, port): (&[u8], &str, u16), since: &mut Option<Instant>) -> Result<u32> {
        if let Ok(ip) = name.parse::<IpAddr>() {
            return self.reply(&[SocketAddr::new(ip, port)]);
        }
        let Some(name) = self.policy.name_to_look_up(name) else {
            tracing::info!("denied: look up {name:?}{}", allowed_by(&format!("connect={name}:{port}")));
            return Err(Errno::Acces.into());
        };
        let is_mine = |pending: &Pending| pending.asked == asked && !matches!(pending.work, Work::Connect(..));
        let at = since.and_then(|_| self.pending.iter().position(is_mine));
        since.get_or_insert_with(Instant::now);
        let at = at.unwrap_or_else(|| {
            self.pending.push(Pending { asked: asked.into(), work: Work::LaterLookUp { name: name.clone(), port } });
            self.pending.len() - 1
        });
        let found = self.begin_look_ups().and_then(|()| match &self.pending[at].work {
            Work::LookUp(work) => work.poll(),
            _ => Ok(None),
        });
        if matches!(found, Ok(None)) {
            return Err(Stop::Again(None));
        }
        // The others keep their order.
        self.pending.remove(at);
        let found = found?.unwrap_or_default();
        self.policy.take_found(&name, &found);
        self.reply(&found)
    }

    /// Begins as many look-ups as an instance may have, in the order in which they were asked for.
    fn begin_look_ups(&mut self) -> Result {
        let mut begun = self.pending.iter().filter(|pending| matches!(pending.work, Work::LookUp(_))).count();
        for Pending { work, .. } in &mut self.pending {
            if let Work::LaterLookUp { name, port } = work
                && begun < MAX_LOOK_UPS
            {
                *work = Work::LookUp(self.resolver.start(name, *port)?);
                begun += 1;
            }
        }
        Ok(())
    }

    fn reply(&mut self, addresses: &[SocketAddr]) -> Result<u32> {
        if self.replies.len() >= MAX_REPLIES {
            return Err(Errno::Nobufs.into());
        }
        let number = self.next_reply;
        self.next_reply = number.wrapping_add(1);
        self.replies.push((number, addresses.iter().flat_map(|address| encode_address(*address)).collect()));
        Ok(number)
    }

    /// Returns how a call stops that waits for a descriptor: to be repeated, or with `again` if it is a socket's and has waited for
    /// as long as the guest wanted when it made the call, as on Linux.
    pub(crate) fn time_out(
        &mut self,
        table: &mut Table,
        call: Call,
        words: &[u64],
        since: &mut Option<Instant>,
    ) -> Stop {
        let Some((fd, reads)) = waits_for(call, words) else { return Stop::Again(None) };
        let now = Instant::now();
        let since = *since.get_or_insert_with(|| {
            self.timeout = table.socket(fd).ok().and_then(|socket| socket.timeout(reads));
            now
        });
        match self.timeout.and_then(|timeout| since.checked_add(timeout)) {
            Some(at) if at <= now => Errno::Again.into(),
            at => Stop::Again(at),
        }
    }
}

/// Returns what is printed of a rule that would have allowed something, if it is one.
fn allowed_by(rule: &str) -> String {
    match rule.parse::<NetRule>() {
        Ok(rule) => format!("; --net {rule} would allow it"),
        Err(_) => String::new(),
    }
}

/// Returns the descriptor that a call waits for, and whether to read from it.
pub(crate) fn waits_for(call: Call, words: &[u64]) -> Option<(u64, bool)> {
    match (call, words) {
        (Call::fd_read | Call::sock_recv | Call::sock_accept, [fd, ..]) => Some((*fd, true)),
        (Call::fd_write | Call::sock_send, [fd, ..]) => Some((*fd, false)),
        (Call::fd_pread, [fd, _, offset]) if is_extension(*fd) => match Fetch::decode(*offset) {
            Ok(Fetch::Net(NetFetch::ReceiveFrom { fd, .. })) => Some((fd, true)),
            _ => None,
        },
        (Call::fd_pwrite, [fd, _, offset]) if is_extension(*fd) && *offset as u8 == ask::UDP_SEND_TO => {
            Some((*offset >> 32, false))
        }
        _ => None,
    }
}

/// Returns whether this is what a client binds its socket to: any address, any port.
fn is_clients(address: SocketAddr) -> bool {
    address.port() == 0 && address.ip().to_canonical().is_unspecified()
}

fn new_socket(address: SocketAddr, kind: SocketType) -> Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    Ok(socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?)
}

fn datagram(table: &mut Table, fd: u64) -> Result<&mut Socket> {
    let socket = table.socket(fd)?;
    if socket.datagram { Ok(socket) } else { Err(Errno::Notsup.into()) }
}

/// Returns the address of a socket; a given socket may have another family.
fn ip_address(address: SocketAddrAny) -> Result<SocketAddr> {
    address.try_into().map_err(|_| Errno::Afnosupport.into())
}
