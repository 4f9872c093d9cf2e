//! Sockets of gpu-run: streams and listeners are WASI's, and what WASI preview 1 lacks is asked of the host.

#![forbid(unsafe_op_in_unsafe_fn)]

use crate::fmt;
use crate::io::{self, BorrowedCursor, IoSlice, IoSliceMut};
use crate::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV4, SocketAddrV6, ToSocketAddrs};
use crate::os::wasi::io::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, RawFd};
use crate::sys::fd::FileDesc;
use crate::sys::pal::gpu_run::{self, ask, fetch};
use crate::sys::{AsInner, FromInner, IntoInner};
use crate::time::Duration;

/// Options of sockets, by the host's numbers.
mod option {
    pub const READ_TIMEOUT: u32 = 1;
    pub const WRITE_TIMEOUT: u32 = 2;
    pub const TTL: u32 = 3;
    pub const NODELAY: u32 = 4;
    pub const LINGER: u32 = 5;
    pub const BROADCAST: u32 = 6;
    pub const ONLY_V6: u32 = 7;
    pub const MULTICAST_LOOP_V4: u32 = 8;
    pub const MULTICAST_TTL_V4: u32 = 9;
    pub const MULTICAST_LOOP_V6: u32 = 10;
    pub const ERROR: u32 = 11;
    pub const KEEPALIVE: u32 = 12;
}

const ADDRESS_BYTES: usize = 28;

fn encode(address: &SocketAddr) -> [u8; ADDRESS_BYTES] {
    let mut bytes = [0; ADDRESS_BYTES];
    bytes[2..4].copy_from_slice(&address.port().to_le_bytes());
    match address {
        SocketAddr::V4(v4) => {
            bytes[0] = 4;
            bytes[4..8].copy_from_slice(&v4.ip().octets());
        }
        SocketAddr::V6(v6) => {
            bytes[0] = 6;
            bytes[4..20].copy_from_slice(&v6.ip().octets());
            bytes[20..24].copy_from_slice(&v6.flowinfo().to_le_bytes());
            bytes[24..28].copy_from_slice(&v6.scope_id().to_le_bytes());
        }
    }
    bytes
}

fn decode(bytes: &[u8; ADDRESS_BYTES]) -> io::Result<SocketAddr> {
    let port = u16::from_le_bytes([bytes[2], bytes[3]]);
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let mut ip = [0; 16];
    ip.copy_from_slice(&bytes[4..20]);
    match bytes[0] {
        4 => Ok(SocketAddrV4::new(Ipv4Addr::new(ip[0], ip[1], ip[2], ip[3]), port).into()),
        6 => Ok(SocketAddrV6::new(Ipv6Addr::from(ip), port, word(20), word(24)).into()),
        _ => Err(io::const_error!(io::ErrorKind::InvalidData, "the host sent an address that is none")),
    }
}

pub struct Socket(FileDesc);

impl Socket {
    fn new(fd: u32) -> Socket {
        // SAFETY: the host has just made the descriptor.
        unsafe { Socket::from_raw_fd(fd as RawFd) }
    }

    fn fd(&self) -> u32 {
        self.as_raw_fd() as u32
    }

    fn address(&self, which: u8) -> io::Result<SocketAddr> {
        let mut bytes = [0; ADDRESS_BYTES];
        gpu_run::fetch_about(self.fd(), which, 0, &mut bytes, &mut [])?;
        decode(&bytes)
    }

    fn set(&self, option: u32, value: u64) -> io::Result<()> {
        gpu_run::ask_about(self.fd(), ask::SET_OPTION, option, [&value.to_le_bytes(), &[]]).map(drop)
    }

    fn get(&self, option: u32) -> io::Result<u64> {
        let mut bytes = [0; 8];
        gpu_run::fetch_about(self.fd(), fetch::OPTION, option, &mut bytes, &mut [])?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn is_set(&self, option: u32) -> io::Result<bool> {
        Ok(self.get(option)? != 0)
    }

    fn set_timeout(&self, option: u32, timeout: Option<Duration>) -> io::Result<()> {
        let nanoseconds = match timeout {
            Some(Duration::ZERO) => return Err(io::Error::ZERO_TIMEOUT),
            Some(timeout) => u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX),
            None => 0,
        };
        self.set(option, nanoseconds)
    }

    fn timeout(&self, option: u32) -> io::Result<Option<Duration>> {
        Ok(Some(self.get(option)?).filter(|nanoseconds| *nanoseconds != 0).map(Duration::from_nanos))
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        let errno = self.get(option::ERROR)?;
        Ok((errno != 0).then(|| io::Error::from_raw_os_error(errno as i32)))
    }

    fn duplicate(&self) -> io::Result<Socket> {
        gpu_run::ask_about(self.fd(), ask::DUPLICATE, 0, [&[], &[]]).map(Socket::new)
    }

    fn multicast(&self, joins: bool, group: IpAddr, interface: &[u8]) -> io::Result<()> {
        let group = encode(&SocketAddr::new(group, 0));
        gpu_run::ask_about(self.fd(), ask::MULTICAST, joins.into(), [&group, interface]).map(drop)
    }

    fn debug(&self, name: &str, local: bool, peer: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct(name);
        if local && let Ok(address) = self.address(fetch::LOCAL_ADDRESS) {
            debug.field("addr", &address);
        }
        if peer && let Ok(address) = self.address(fetch::PEER_ADDRESS) {
            debug.field("peer", &address);
        }
        debug.field("fd", &self.as_raw_fd()).finish()
    }
}

impl AsInner<FileDesc> for Socket {
    #[inline]
    fn as_inner(&self) -> &FileDesc {
        &self.0
    }
}

impl IntoInner<FileDesc> for Socket {
    fn into_inner(self) -> FileDesc {
        self.0
    }
}

impl FromInner<FileDesc> for Socket {
    fn from_inner(inner: FileDesc) -> Socket {
        Socket(inner)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Socket {
    #[inline]
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl IntoRawFd for Socket {
    fn into_raw_fd(self) -> RawFd {
        self.0.into_raw_fd()
    }
}

impl FromRawFd for Socket {
    unsafe fn from_raw_fd(raw_fd: RawFd) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self(FromRawFd::from_raw_fd(raw_fd)) }
    }
}

/// Defines a kind of socket and the conversions that all kinds have.
macro_rules! kind {
    ($name:ident) => {
        pub struct $name {
            inner: Socket,
        }

        impl $name {
            #[inline]
            pub fn socket(&self) -> &Socket {
                &self.inner
            }

            pub fn into_socket(self) -> Socket {
                self.inner
            }

            pub fn socket_addr(&self) -> io::Result<SocketAddr> {
                self.inner.address(fetch::LOCAL_ADDRESS)
            }

            pub fn duplicate(&self) -> io::Result<$name> {
                Ok($name { inner: self.inner.duplicate()? })
            }

            pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
                self.inner.set(option::TTL, ttl.into())
            }

            pub fn ttl(&self) -> io::Result<u32> {
                Ok(self.inner.get(option::TTL)? as u32)
            }

            pub fn take_error(&self) -> io::Result<Option<io::Error>> {
                self.inner.take_error()
            }

            pub fn set_nonblocking(&self, yes: bool) -> io::Result<()> {
                gpu_run::set_nonblocking(self.inner.fd(), yes)
            }
        }

        impl AsInner<Socket> for $name {
            #[inline]
            fn as_inner(&self) -> &Socket {
                &self.inner
            }
        }

        impl IntoInner<Socket> for $name {
            fn into_inner(self) -> Socket {
                self.inner
            }
        }

        impl FromInner<Socket> for $name {
            fn from_inner(inner: Socket) -> $name {
                $name { inner }
            }
        }
    };
}

/// Defines the timeouts of the kinds that read and write.
macro_rules! timeouts {
    ($name:ident) => {
        impl $name {
            pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.inner.set_timeout(option::READ_TIMEOUT, timeout)
            }

            pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.inner.set_timeout(option::WRITE_TIMEOUT, timeout)
            }

            pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
                self.inner.timeout(option::READ_TIMEOUT)
            }

            pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
                self.inner.timeout(option::WRITE_TIMEOUT)
            }

            pub fn peer_addr(&self) -> io::Result<SocketAddr> {
                self.inner.address(fetch::PEER_ADDRESS)
            }

            pub fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
                gpu_run::peek(self.inner.fd(), buffer)
            }
        }
    };
}

kind!(TcpStream);
timeouts!(TcpStream);

impl TcpStream {
    pub fn connect<A: ToSocketAddrs>(address: A) -> io::Result<TcpStream> {
        super::each_addr(address, |address| Self::connect_within(address, 0))
    }

    pub fn connect_timeout(address: &SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        if timeout.is_zero() {
            return Err(io::Error::ZERO_TIMEOUT);
        }
        Self::connect_within(address, u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX))
    }

    fn connect_within(address: &SocketAddr, nanoseconds: u64) -> io::Result<TcpStream> {
        let fd = gpu_run::ask(ask::TCP_CONNECT, [&encode(address), &nanoseconds.to_le_bytes()])?;
        Ok(TcpStream { inner: Socket::new(fd) })
    }

    pub fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(buf)])
    }

    pub fn read_buf(&self, buf: BorrowedCursor<'_>) -> io::Result<()> {
        self.inner.as_inner().read_buf(buf)
    }

    pub fn read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.inner.as_inner().read_vectored(bufs)
    }

    pub fn is_read_vectored(&self) -> bool {
        true
    }

    pub fn write(&self, buf: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buf)])
    }

    pub fn write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.inner.as_inner().write_vectored(bufs)
    }

    pub fn is_write_vectored(&self) -> bool {
        true
    }

    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        gpu_run::shutdown(
            self.inner.fd(),
            match how {
                Shutdown::Read => 1,
                Shutdown::Write => 2,
                Shutdown::Both => 3,
            },
        )
    }

    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        let nanoseconds = |linger: Duration| u64::try_from(linger.as_nanos()).unwrap_or(u64::MAX - 1).saturating_add(1);
        self.inner.set(option::LINGER, linger.map_or(0, nanoseconds))
    }

    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.inner.get(option::LINGER)?.checked_sub(1).map(Duration::from_nanos))
    }

    pub fn set_keepalive(&self, yes: bool) -> io::Result<()> {
        self.inner.set(option::KEEPALIVE, yes.into())
    }

    pub fn keepalive(&self) -> io::Result<bool> {
        self.inner.is_set(option::KEEPALIVE)
    }

    pub fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        self.inner.set(option::NODELAY, yes.into())
    }

    pub fn nodelay(&self) -> io::Result<bool> {
        self.inner.is_set(option::NODELAY)
    }
}

impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.debug("TcpStream", true, true, f)
    }
}

kind!(TcpListener);

impl TcpListener {
    pub fn bind<A: ToSocketAddrs>(address: A) -> io::Result<TcpListener> {
        super::each_addr(address, |address| {
            let fd = gpu_run::ask(ask::TCP_LISTEN, [&encode(address), &[]])?;
            Ok(TcpListener { inner: Socket::new(fd) })
        })
    }

    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let inner = Socket::new(gpu_run::accept(self.inner.fd())?);
        // A listener that another host has opened for the program has connections without addresses.
        let unknown = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let peer = inner.address(fetch::PEER_ADDRESS).unwrap_or(unknown);
        Ok((TcpStream { inner }, peer))
    }

    pub fn set_only_v6(&self, yes: bool) -> io::Result<()> {
        self.inner.set(option::ONLY_V6, yes.into())
    }

    pub fn only_v6(&self) -> io::Result<bool> {
        self.inner.is_set(option::ONLY_V6)
    }
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.debug("TcpListener", true, false, f)
    }
}

kind!(UdpSocket);
timeouts!(UdpSocket);

impl UdpSocket {
    pub fn bind<A: ToSocketAddrs>(address: A) -> io::Result<UdpSocket> {
        super::each_addr(address, |address| {
            let fd = gpu_run::ask(ask::UDP_BIND, [&encode(address), &[]])?;
            Ok(UdpSocket { inner: Socket::new(fd) })
        })
    }

    fn receive(&self, buffer: &mut [u8], stays: bool) -> io::Result<(usize, SocketAddr)> {
        let mut address = [0; ADDRESS_BYTES];
        let count =
            gpu_run::fetch_about(self.inner.fd(), fetch::RECEIVE_FROM, stays.into(), &mut address, buffer)?;
        Ok((count.saturating_sub(ADDRESS_BYTES), decode(&address)?))
    }

    pub fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive(buffer, false)
    }

    pub fn peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive(buffer, true)
    }

    pub fn send_to(&self, bytes: &[u8], to: &SocketAddr) -> io::Result<usize> {
        Ok(gpu_run::ask_about(self.inner.fd(), ask::UDP_SEND_TO, 0, [&encode(to), bytes])? as usize)
    }

    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.as_inner().read(buffer)
    }

    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.as_inner().write(bytes)
    }

    pub fn connect<A: ToSocketAddrs>(&self, address: A) -> io::Result<()> {
        super::each_addr(address, |address| {
            gpu_run::ask_about(self.inner.fd(), ask::UDP_CONNECT, 0, [&encode(address), &[]]).map(drop)
        })
    }

    pub fn set_broadcast(&self, yes: bool) -> io::Result<()> {
        self.inner.set(option::BROADCAST, yes.into())
    }

    pub fn broadcast(&self) -> io::Result<bool> {
        self.inner.is_set(option::BROADCAST)
    }

    pub fn set_multicast_loop_v4(&self, yes: bool) -> io::Result<()> {
        self.inner.set(option::MULTICAST_LOOP_V4, yes.into())
    }

    pub fn multicast_loop_v4(&self) -> io::Result<bool> {
        self.inner.is_set(option::MULTICAST_LOOP_V4)
    }

    pub fn set_multicast_ttl_v4(&self, ttl: u32) -> io::Result<()> {
        self.inner.set(option::MULTICAST_TTL_V4, ttl.into())
    }

    pub fn multicast_ttl_v4(&self) -> io::Result<u32> {
        Ok(self.inner.get(option::MULTICAST_TTL_V4)? as u32)
    }

    pub fn set_multicast_loop_v6(&self, yes: bool) -> io::Result<()> {
        self.inner.set(option::MULTICAST_LOOP_V6, yes.into())
    }

    pub fn multicast_loop_v6(&self) -> io::Result<bool> {
        self.inner.is_set(option::MULTICAST_LOOP_V6)
    }

    pub fn join_multicast_v4(&self, group: &Ipv4Addr, interface: &Ipv4Addr) -> io::Result<()> {
        self.inner.multicast(true, (*group).into(), &interface.octets())
    }

    pub fn leave_multicast_v4(&self, group: &Ipv4Addr, interface: &Ipv4Addr) -> io::Result<()> {
        self.inner.multicast(false, (*group).into(), &interface.octets())
    }

    pub fn join_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.inner.multicast(true, (*group).into(), &interface.to_le_bytes())
    }

    pub fn leave_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.inner.multicast(false, (*group).into(), &interface.to_le_bytes())
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.debug("UdpSocket", true, false, f)
    }
}

/// The addresses that a host has, by its name.
pub struct LookupHost(crate::vec::IntoIter<SocketAddr>);

impl Iterator for LookupHost {
    type Item = SocketAddr;

    fn next(&mut self) -> Option<SocketAddr> {
        self.0.next()
    }
}

/// No file is missing: the name has no address.
fn not_found(error: io::Error) -> io::Error {
    const NOENT: i32 = 44;
    match error.raw_os_error() {
        Some(NOENT) => io::const_error!(
            io::ErrorKind::Uncategorized,
            "failed to lookup address information: the host found no address for this name",
        ),
        _ => error,
    }
}

pub fn lookup_host(host: &str, port: u16) -> io::Result<LookupHost> {
    /// More addresses than any host has.
    const MOST: usize = 64;
    let reply = gpu_run::ask(ask::LOOK_UP, [&port.to_le_bytes(), host.as_bytes()]).map_err(not_found)?;
    let mut bytes = [0; MOST * ADDRESS_BYTES];
    let count = gpu_run::fetch_about(reply, fetch::REPLY, 0, &mut bytes, &mut [])?;
    let (addresses, _) = bytes[..count.min(MOST * ADDRESS_BYTES)].as_chunks();
    let addresses: io::Result<Vec<_>> = addresses.iter().map(decode).collect();
    Ok(LookupHost(addresses?.into_iter()))
}
