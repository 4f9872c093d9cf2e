//! WASI's error numbers, and how the host's errors map to them.

use std::io;

use rustix::io::Errno as Os;

macro_rules! errnos {
    ($($name:ident),* $(,)?) => {
        /// A WASI errno, numbered as the guest sees it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Errno { $($name),* }
    };
}

errnos! {
    Success, TooBig, Acces, Addrinuse, Addrnotavail, Afnosupport, Again, Already, Badf, Badmsg, Busy, Canceled, Child,
    Connaborted, Connrefused, Connreset, Deadlk, Destaddrreq, Dom, Dquot, Exist, Fault, Fbig, Hostunreach, Idrm, Ilseq,
    Inprogress, Intr, Inval, Io, Isconn, Isdir, Loop, Mfile, Mlink, Msgsize, Multihop, Nametoolong, Netdown, Netreset,
    Netunreach, Nfile, Nobufs, Nodev, Noent, Noexec, Nolck, Nolink, Nomem, Nomsg, Noprotoopt, Nospc, Nosys, Notconn,
    Notdir, Notempty, Notrecoverable, Notsock, Notsup, Notty, Nxio, Overflow, Ownerdead, Perm, Pipe, Proto,
    Protonosupport, Prototype, Range, Rofs, Spipe, Srch, Stale, Timedout, Txtbsy, Xdev, Notcapable,
}

const _: () = assert!(Errno::Notcapable as u16 == 76 && Errno::Badf as u16 == 8 && Errno::Inval as u16 == 28);

impl Errno {
    /// Returns the errno as it is sent on the bus.
    pub const fn number(self) -> u32 {
        self as u32
    }
}

impl From<Os> for Errno {
    fn from(error: Os) -> Self {
        match error {
            Os::TOOBIG => Self::TooBig,
            Os::ACCESS => Self::Acces,
            Os::ADDRINUSE => Self::Addrinuse,
            Os::ADDRNOTAVAIL => Self::Addrnotavail,
            Os::AFNOSUPPORT => Self::Afnosupport,
            Os::AGAIN => Self::Again,
            Os::ALREADY => Self::Already,
            Os::BADF => Self::Badf,
            Os::BUSY => Self::Busy,
            Os::CANCELED => Self::Canceled,
            Os::CONNABORTED => Self::Connaborted,
            Os::CONNREFUSED => Self::Connrefused,
            Os::CONNRESET => Self::Connreset,
            Os::DEADLK => Self::Deadlk,
            Os::DESTADDRREQ => Self::Destaddrreq,
            Os::DQUOT => Self::Dquot,
            Os::EXIST => Self::Exist,
            Os::FBIG => Self::Fbig,
            Os::HOSTUNREACH => Self::Hostunreach,
            Os::ILSEQ => Self::Ilseq,
            Os::INPROGRESS => Self::Inprogress,
            Os::INTR => Self::Intr,
            Os::INVAL => Self::Inval,
            Os::ISCONN => Self::Isconn,
            Os::ISDIR => Self::Isdir,
            Os::LOOP => Self::Loop,
            Os::MFILE => Self::Mfile,
            Os::MLINK => Self::Mlink,
            Os::MSGSIZE => Self::Msgsize,
            Os::NAMETOOLONG => Self::Nametoolong,
            Os::NETDOWN => Self::Netdown,
            Os::NETRESET => Self::Netreset,
            Os::NETUNREACH => Self::Netunreach,
            Os::NFILE => Self::Nfile,
            Os::NOBUFS => Self::Nobufs,
            Os::NODEV => Self::Nodev,
            Os::NOENT => Self::Noent,
            Os::NOLCK => Self::Nolck,
            Os::NOMEM => Self::Nomem,
            Os::NOPROTOOPT => Self::Noprotoopt,
            Os::NOSPC => Self::Nospc,
            Os::NOSYS => Self::Nosys,
            Os::NOTCONN => Self::Notconn,
            Os::NOTDIR => Self::Notdir,
            Os::NOTEMPTY => Self::Notempty,
            Os::NOTSOCK => Self::Notsock,
            Os::OPNOTSUPP => Self::Notsup,
            Os::NOTTY => Self::Notty,
            Os::NXIO => Self::Nxio,
            Os::OVERFLOW => Self::Overflow,
            Os::PERM => Self::Perm,
            Os::PIPE => Self::Pipe,
            Os::ROFS => Self::Rofs,
            Os::SPIPE => Self::Spipe,
            Os::STALE => Self::Stale,
            Os::TIMEDOUT => Self::Timedout,
            Os::TXTBSY => Self::Txtbsy,
            Os::XDEV => Self::Xdev,
            _ => Self::Io,
        }
    }
}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Self {
        if let Some(os) = Os::from_io_error(&error) {
            return os.into();
        }
        // Errors that a library made, without an errno of the operating system.
        match error.kind() {
            io::ErrorKind::NotFound => Self::Noent,
            io::ErrorKind::PermissionDenied => Self::Perm,
            io::ErrorKind::AlreadyExists => Self::Exist,
            io::ErrorKind::InvalidInput => Self::Inval,
            io::ErrorKind::BrokenPipe => Self::Pipe,
            io::ErrorKind::WouldBlock => Self::Again,
            _ => Self::Io,
        }
    }
}
