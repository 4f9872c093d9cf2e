//! What a program asks beyond WASI, as [`gpu_run_abi::extension`] describes it: requests are decoded here, and shown in
//! traces. [`crate::net`] and [`crate::process`] answer them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::time::Duration;

use gpu_run_abi::extension::{ADDRESS_BYTES, DESCRIPTOR, NO_STREAM, ask, fetch, lock, option};
use gpu_run_abi::hostcall::Call;

use crate::Errno;
use crate::encode::{Out, Result, Stop};

/// The longest name of a host that is looked up.
const MAX_NAME: usize = 255;

/// Returns whether this is the descriptor of requests.
pub(crate) fn is_extension(fd: u64) -> bool {
    fd == u64::from(DESCRIPTOR)
}

/// A request that `fd_pwrite` sends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ask<'a> {
    Net(NetAsk<'a>),
    Process(ProcessAsk<'a>),
    Duplicate { fd: u64 },
    Lock { fd: u64, lock: Lock, waits: bool },
    SetPermissions { fd: u64, mode: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    None,
    Shared,
    Exclusive,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NetAsk<'a> {
    TcpConnect { address: SocketAddr, timeout: Option<Duration> },
    TcpListen(SocketAddr),
    UdpBind(SocketAddr),
    UdpConnect { fd: u64, address: SocketAddr },
    UdpSendTo { fd: u64, address: SocketAddr, bytes: &'a [u8] },
    SetOption { fd: u64, option: SocketOption, value: u64 },
    LookUp { name: &'a str, port: u16 },
    Multicast { fd: u64, joins: bool, group: Group },
    Parallelism,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProcessAsk<'a> {
    Start(StartRequest<'a>),
    Kill { id: u32 },
    Id,
}

/// What a child shall be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StartRequest<'a> {
    /// The descriptor of the program's file; 0: the program has a name.
    pub(crate) file: u64,
    pub(crate) streams: [Option<u32>; 3],
    pub(crate) program: &'a str,
    pub(crate) folder: &'a str,
    pub(crate) args: Vec<&'a [u8]>,
    pub(crate) env: Vec<&'a [u8]>,
}

/// A request that `fd_pread` sends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fetch {
    Net(NetFetch),
    Process(ProcessFetch),
    Calls(CallsFetch),
}

/// What a program asks about the calls that it has noted. Who runs it answers that: no [`crate::Context`] knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallsFetch {
    /// The places of the calls.
    Calls,
    /// The functions at a place.
    Functions { at: u32 },
}

impl CallsFetch {
    /// Returns what a call asks, if it is such a request, and how many bytes there is room for.
    pub fn of(call: Call, words: &[u64]) -> Option<(Self, u64)> {
        match (call, words) {
            (Call::fd_pread, [fd, room, offset]) if is_extension(*fd) => match Fetch::decode(*offset) {
                Ok(Fetch::Calls(request)) => Some((request, *room)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Puts the answer.
    pub fn put(bytes: &[u8], room: u64, out: &mut Out) {
        out.clear();
        put_fetched(out, room, bytes);
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NetFetch {
    LocalAddress { fd: u64 },
    PeerAddress { fd: u64 },
    Option { fd: u64, option: SocketOption },
    ReceiveFrom { fd: u64, peeks: bool },
    Reply { number: u32 },
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProcessFetch {
    Pipe,
    End { id: u32, waits: bool },
    CurrentDir,
    Executable,
}

/// A multicast group, and the interface on which a socket is to be its member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    V4 { group: Ipv4Addr, interface: Ipv4Addr },
    V6 { group: Ipv6Addr, interface: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketOption {
    ReadTimeout,
    WriteTimeout,
    Ttl,
    Nodelay,
    Linger,
    Broadcast,
    OnlyV6,
    MulticastLoopV4,
    MulticastTtlV4,
    MulticastLoopV6,
    Error,
    Keepalive,
}

impl SocketOption {
    fn decode(number: u32) -> Result<Self> {
        Ok(match number {
            option::READ_TIMEOUT => Self::ReadTimeout,
            option::WRITE_TIMEOUT => Self::WriteTimeout,
            option::TTL => Self::Ttl,
            option::NODELAY => Self::Nodelay,
            option::LINGER => Self::Linger,
            option::BROADCAST => Self::Broadcast,
            option::ONLY_V6 => Self::OnlyV6,
            option::MULTICAST_LOOP_V4 => Self::MulticastLoopV4,
            option::MULTICAST_TTL_V4 => Self::MulticastTtlV4,
            option::MULTICAST_LOOP_V6 => Self::MulticastLoopV6,
            option::ERROR => Self::Error,
            option::KEEPALIVE => Self::Keepalive,
            _ => return Err(Errno::Noprotoopt.into()),
        })
    }

    /// Returns whether the value is a time in nanoseconds.
    fn is_time(self) -> bool {
        matches!(self, Self::ReadTimeout | Self::WriteTimeout)
    }
}

impl Lock {
    fn decode(argument: u32) -> Result<Self> {
        match argument & !lock::NO_WAIT {
            lock::NONE => Ok(Self::None),
            lock::SHARED => Ok(Self::Shared),
            lock::EXCLUSIVE => Ok(Self::Exclusive),
            _ => Err(Errno::Inval.into()),
        }
    }
}

impl<'a> Ask<'a> {
    /// An unknown operation is `nosys`, a request of the wrong form `inval`.
    pub(crate) fn decode(offset: u64, input: &'a [u8]) -> Result<Self> {
        let (operation, argument, fd) = parts(offset);
        let takes_argument = matches!(operation, ask::SET_OPTION | ask::MULTICAST | ask::LOCK | ask::SET_PERMISSIONS);
        let mut bytes = Bytes(input);
        let request = match operation {
            ask::TCP_CONNECT => {
                Self::Net(NetAsk::TcpConnect { address: bytes.address()?, timeout: duration(bytes.number()?) })
            }
            ask::TCP_LISTEN => Self::Net(NetAsk::TcpListen(bytes.address()?)),
            ask::UDP_BIND => Self::Net(NetAsk::UdpBind(bytes.address()?)),
            ask::UDP_CONNECT => Self::Net(NetAsk::UdpConnect { fd, address: bytes.address()? }),
            ask::UDP_SEND_TO => Self::Net(NetAsk::UdpSendTo { fd, address: bytes.address()?, bytes: bytes.rest() }),
            ask::SET_OPTION => {
                Self::Net(NetAsk::SetOption { fd, option: SocketOption::decode(argument)?, value: bytes.number()? })
            }
            ask::LOOK_UP => {
                Self::Net(NetAsk::LookUp { port: u16::from_le_bytes(bytes.take()?), name: name(bytes.rest())? })
            }
            ask::MULTICAST => Self::Net(NetAsk::Multicast { fd, joins: is_set(argument)?, group: bytes.group()? }),
            ask::PARALLELISM => Self::Net(NetAsk::Parallelism),
            ask::DUPLICATE => Self::Duplicate { fd },
            ask::LOCK => Self::Lock { fd, lock: Lock::decode(argument)?, waits: argument & lock::NO_WAIT == 0 },
            ask::SET_PERMISSIONS if argument <= 0o777 => Self::SetPermissions { fd, mode: argument },
            ask::SET_PERMISSIONS => return Err(Errno::Inval.into()),
            ask::PROCESS_START => Self::Process(ProcessAsk::Start(bytes.start(fd)?)),
            ask::PROCESS_KILL => Self::Process(ProcessAsk::Kill { id: fd as u32 }),
            ask::PROCESS_ID => Self::Process(ProcessAsk::Id),
            _ => return Err(Errno::Nosys.into()),
        };
        if bytes.0.is_empty() && (argument == 0 || takes_argument) { Ok(request) } else { Err(Errno::Inval.into()) }
    }
}

impl Fetch {
    /// As [`Ask::decode`].
    pub(crate) fn decode(offset: u64) -> Result<Self> {
        let (operation, argument, fd) = parts(offset);
        let request = match operation {
            fetch::LOCAL_ADDRESS => Self::Net(NetFetch::LocalAddress { fd }),
            fetch::PEER_ADDRESS => Self::Net(NetFetch::PeerAddress { fd }),
            fetch::OPTION => Self::Net(NetFetch::Option { fd, option: SocketOption::decode(argument)? }),
            fetch::RECEIVE_FROM => Self::Net(NetFetch::ReceiveFrom { fd, peeks: is_set(argument)? }),
            fetch::REPLY => Self::Net(NetFetch::Reply { number: fd as u32 }),
            fetch::PIPE => Self::Process(ProcessFetch::Pipe),
            fetch::PROCESS_END => Self::Process(ProcessFetch::End { id: fd as u32, waits: !is_set(argument)? }),
            fetch::CURRENT_DIR => Self::Process(ProcessFetch::CurrentDir),
            fetch::EXECUTABLE => Self::Process(ProcessFetch::Executable),
            fetch::CALLS => Self::Calls(CallsFetch::Calls),
            fetch::FUNCTIONS => Self::Calls(CallsFetch::Functions { at: fd as u32 }),
            _ => return Err(Errno::Nosys.into()),
        };
        let takes_argument = matches!(operation, fetch::OPTION | fetch::RECEIVE_FROM | fetch::PROCESS_END);
        if argument == 0 || takes_argument { Ok(request) } else { Err(Errno::Inval.into()) }
    }
}

/// Operation, argument, descriptor.
fn parts(offset: u64) -> (u8, u32, u64) {
    (offset as u8, (offset >> 8) as u32 & 0xff_ffff, offset >> 32)
}

fn is_set(argument: u32) -> Result<bool> {
    match argument {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Errno::Inval.into()),
    }
}

/// Returns a time in nanoseconds, of which 0 means none.
pub(crate) fn duration(nanoseconds: u64) -> Option<Duration> {
    (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds))
}

fn name(bytes: &[u8]) -> Result<&str> {
    let name = std::str::from_utf8(bytes).map_err(|_| Errno::Ilseq)?;
    let is_name = (1..=MAX_NAME).contains(&name.len()) && !name.contains('\0');
    if is_name { Ok(name) } else { Err(Errno::Inval.into()) }
}

/// What is left of a request.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Errno::Inval)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn number(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn address(&mut self) -> Result<SocketAddr> {
        let family = u16::from_le_bytes(self.take()?);
        let port = u16::from_le_bytes(self.take()?);
        let ip: [u8; 16] = self.take()?;
        let (flow, scope) = (u32::from_le_bytes(self.take()?), u32::from_le_bytes(self.take()?));
        match family {
            4 => Ok(SocketAddrV4::new(Ipv4Addr::new(ip[0], ip[1], ip[2], ip[3]), port).into()),
            6 => Ok(SocketAddrV6::new(ip.into(), port, flow, scope).into()),
            _ => Err(Errno::Afnosupport.into()),
        }
    }

    fn word(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    /// A length, and that many bytes.
    fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.word()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Errno::Inval)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Errno::Ilseq.into())
    }

    /// A number, and that many texts.
    fn list(&mut self) -> Result<Vec<&'a [u8]>> {
        let count = self.word()?;
        // The number is the guest's: memory is taken as the texts are found.
        (0..count).map(|_| self.bytes()).collect()
    }

    fn start(&mut self, file: u64) -> Result<StartRequest<'a>> {
        let mut stream = || Ok::<_, Stop>(Some(self.word()?).filter(|fd| *fd != NO_STREAM));
        Ok(StartRequest {
            file,
            streams: [stream()?, stream()?, stream()?],
            program: self.text()?,
            folder: self.text()?,
            args: self.list()?,
            env: self.list()?,
        })
    }

    fn group(&mut self) -> Result<Group> {
        match self.address()?.ip() {
            IpAddr::V4(group) => Ok(Group::V4 { group, interface: self.take::<4>()?.into() }),
            IpAddr::V6(group) => Ok(Group::V6 { group, interface: u32::from_le_bytes(self.take()?) }),
        }
    }
}

impl Group {
    /// Returns the address at which a socket with this port hears the group.
    pub(crate) fn at(self, port: u16) -> SocketAddr {
        match self {
            Self::V4 { group, .. } => SocketAddrV4::new(group, port).into(),
            Self::V6 { group, interface } => SocketAddrV6::new(group, port, 0, interface).into(),
        }
    }
}

/// Returns an address as the guest gets it.
pub(crate) fn encode_address(address: SocketAddr) -> [u8; ADDRESS_BYTES] {
    let mut bytes = [0; ADDRESS_BYTES];
    bytes[0] = if address.is_ipv4() { 4 } else { 6 };
    bytes[2..4].copy_from_slice(&address.port().to_le_bytes());
    match address {
        SocketAddr::V4(v4) => bytes[4..8].copy_from_slice(&v4.ip().octets()),
        SocketAddr::V6(v6) => {
            bytes[4..20].copy_from_slice(&v6.ip().octets());
            bytes[20..24].copy_from_slice(&v6.flowinfo().to_le_bytes());
            bytes[24..28].copy_from_slice(&v6.scope_id().to_le_bytes());
        }
    }
    bytes
}

/// Puts the output of `fd_pread`: as many of the bytes as there is room for, and how many these are.
pub(crate) fn put_fetched(out: &mut Out, room: u64, bytes: &[u8]) {
    let count = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
    out.put_u32(count as u32);
    out.put(&bytes[..count]);
}

/// As `--trace wasi` shows it: `tcp_connect(127.0.0.1:80, 1.5s)`.
impl fmt::Display for Ask<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net(request) => request.fmt(f),
            Self::Process(request) => request.fmt(f),
            Self::Duplicate { fd } => write!(f, "duplicate({fd})"),
            Self::Lock { fd, lock, waits } => {
                let how = if *waits { "" } else { ", without waiting" };
                write!(f, "lock({fd}, {}{how})", format!("{lock:?}").to_lowercase())
            }
            Self::SetPermissions { fd, mode } => write!(f, "set_permissions({fd}, {mode:o})"),
        }
    }
}

impl fmt::Display for ProcessAsk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(request) => {
                let args: Vec<_> = request.args.iter().map(|arg| crate::trace::data(arg)).collect();
                write!(f, "process_start({}, [{}])", crate::trace::data(request.program.as_bytes()), args.join(", "))
            }
            Self::Kill { id } => write!(f, "process_kill({id})"),
            Self::Id => write!(f, "process_id()"),
        }
    }
}

impl fmt::Display for NetAsk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TcpConnect { address, timeout: Some(timeout) } => write!(f, "tcp_connect({address}, {timeout:?})"),
            Self::TcpConnect { address, timeout: None } => write!(f, "tcp_connect({address})"),
            Self::TcpListen(address) => write!(f, "tcp_listen({address})"),
            Self::UdpBind(address) => write!(f, "udp_bind({address})"),
            Self::UdpConnect { fd, address } => write!(f, "udp_connect({fd}, {address})"),
            Self::UdpSendTo { fd, address, bytes } => {
                write!(f, "udp_send_to({fd}, {address}, {})", crate::trace::data(bytes))
            }
            Self::SetOption { fd, option, value } if option.is_time() => {
                write!(f, "set_option({fd}, {option}, {:?})", Duration::from_nanos(*value))
            }
            Self::SetOption { fd, option, value } => write!(f, "set_option({fd}, {option}, {value})"),
            Self::LookUp { name, port } => write!(f, "look_up({}, {port})", crate::trace::data(name.as_bytes())),
            Self::Multicast { fd, joins, group } => {
                let name = if *joins { "multicast_join" } else { "multicast_leave" };
                match group {
                    Group::V4 { group, interface } => write!(f, "{name}({fd}, {group}, {interface})"),
                    Group::V6 { group, interface } => write!(f, "{name}({fd}, {group}, {interface})"),
                }
            }
            Self::Parallelism => write!(f, "parallelism()"),
        }
    }
}

impl Fetch {
    /// Returns the request as a trace shows it, with what was fetched.
    pub(crate) fn show(&self, fetched: &[u8]) -> String {
        match self {
            Self::Net(request) => request.show(fetched),
            Self::Process(request) => request.show(fetched),
            Self::Calls(CallsFetch::Calls) => "calls()".to_owned(),
            Self::Calls(CallsFetch::Functions { at }) => format!("functions({at:#x})"),
        }
    }
}

impl ProcessFetch {
    fn show(&self, fetched: &[u8]) -> String {
        let mut bytes = Bytes(fetched);
        let mut words = || format!("{}, {}", bytes.word().unwrap_or(0), bytes.word().unwrap_or(0));
        match self {
            Self::Pipe => format!("pipe([{}])", words()),
            Self::End { id, .. } if fetched.is_empty() => format!("process_end({id})"),
            Self::End { id, .. } => format!("process_end({id}, [{}])", words()),
            Self::CurrentDir => format!("current_dir({})", crate::trace::data(fetched)),
            Self::Executable => format!("executable({})", crate::trace::data(fetched)),
        }
    }
}

impl NetFetch {
    fn show(&self, fetched: &[u8]) -> String {
        let address = |bytes: &[u8]| Bytes(bytes).address().map_or_else(|_| "?".into(), |address| address.to_string());
        let addresses = || {
            let all: Vec<_> = fetched.chunks(ADDRESS_BYTES).map(address).collect();
            all.join(", ")
        };
        let behind = |text: String| if fetched.is_empty() { String::new() } else { format!(", {text}") };
        match self {
            Self::LocalAddress { fd } => format!("local_address({fd}{})", behind(address(fetched))),
            Self::PeerAddress { fd } => format!("peer_address({fd}{})", behind(address(fetched))),
            Self::Option { fd, option } => {
                let value = Bytes(fetched).number().unwrap_or(0);
                let value =
                    if option.is_time() { format!("{:?}", Duration::from_nanos(value)) } else { value.to_string() };
                format!("option({fd}, {option}{})", behind(value))
            }
            Self::ReceiveFrom { fd, peeks } => {
                let name = if *peeks { "peek_from" } else { "receive_from" };
                let data = crate::trace::data(fetched.get(ADDRESS_BYTES..).unwrap_or_default());
                format!("{name}({fd}{})", behind(format!("{}, {data}", address(fetched))))
            }
            Self::Reply { number } => format!("reply({number}{})", behind(format!("[{}]", addresses()))),
        }
    }
}

impl fmt::Display for SocketOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadTimeout => "read_timeout",
            Self::WriteTimeout => "write_timeout",
            Self::Ttl => "ttl",
            Self::Nodelay => "nodelay",
            Self::Linger => "linger",
            Self::Broadcast => "broadcast",
            Self::OnlyV6 => "only_v6",
            Self::MulticastLoopV4 => "multicast_loop_v4",
            Self::MulticastTtlV4 => "multicast_ttl_v4",
            Self::MulticastLoopV6 => "multicast_loop_v6",
            Self::Error => "error",
            Self::Keepalive => "keepalive",
        })
    }
}
