//! What a program can ask of the host beyond WASI preview 1: sockets, processes, and how many threads there can be.
//!
//! A module that imports a function which its host lacks does not start, even if it never calls it. So these questions need no
//! new import: they are reads and writes of a descriptor that no host ever gives out, and a host that does not know them answers
//! `badf`. The offset of the read or write says what is asked:
//!
//! ```text
//! bits  0..8    the operation
//! bits  8..32   its argument, 0 if it has none
//! bits 32..64   the descriptor it is about, 0 if there is none
//! ```
//!
//! `fd_pwrite` sends a request, and the number of written bytes is its result; [`ask`] has these operations. `fd_pread` fetches
//! bytes; [`fetch`] has these. Numbers are little-endian. A request that does not have its form is `inval`, an unknown operation
//! `nosys`, and what the user does not allow `acces`.
//!
//! Descriptors of sockets are those of WASI: `fd_read`, `sock_shutdown`, `poll_oneoff` and the others take them.

/// The descriptor.
pub const DESCRIPTOR: u32 = 0x6770_7501;

/// Operations of `fd_pwrite`. Unless a line says otherwise, the result is 0.
pub mod ask {
    /// An address, and a timeout in nanoseconds (u64, 0: none). The result is a new descriptor, a stream; `timedout` if the time
    /// is over first.
    pub const TCP_CONNECT: u8 = 1;
    /// An address. The result is a new descriptor, a listener; `sock_accept` takes connections from it.
    pub const TCP_LISTEN: u8 = 2;
    /// An address. The result is a new descriptor, a datagram socket.
    pub const UDP_BIND: u8 = 3;
    /// An address that a datagram socket sends to and receives from.
    pub const UDP_CONNECT: u8 = 4;
    /// An address, and the bytes to send there. The result is their number.
    pub const UDP_SEND_TO: u8 = 5;
    /// The argument is one of [`super::option`]; its value (u64).
    pub const SET_OPTION: u8 = 6;
    /// A port (u16) and the name of a host. The result is the number of a reply, a list of at most 64 addresses; `noent` if the
    /// name has none.
    pub const LOOK_UP: u8 = 7;
    /// The result is another descriptor of the same socket, pipe, file or standard stream. As on Linux, they share position, options
    /// and flags.
    pub const DUPLICATE: u8 = 8;
    /// The argument is 1 to join a group, 0 to leave it. The group's address, and the interface's: four bytes of IPv4, or an index
    /// (u32).
    pub const MULTICAST: u8 = 9;
    /// The result is how many threads a program can have at once.
    pub const PARALLELISM: u8 = 10;
    /// Starts a process. The descriptor is the program's file, open for reading; 0: the program has the name that the request
    /// says. The result is the process's number. `noent` if there is no program of that name, `noexec` if the file is none,
    /// `again` if there are too many processes, `toobig` if arguments and environment are too long.
    ///
    /// The request: three descriptors (u32), which become the child's standard streams, [`super::NO_STREAM`] for one that is always
    /// empty and takes everything; the program's name; the folder the child begins in, empty: the parent's; how many arguments
    /// (u32), and each, the first one is the program's name as the child sees it; how many variables (u32), and each as
    /// `NAME=VALUE`. Each text is its length (u32) and its bytes.
    pub const PROCESS_START: u8 = 11;
    /// The descriptor is the number of a child. Ends it, unless it has ended.
    pub const PROCESS_KILL: u8 = 12;
    /// The result is this process's number.
    pub const PROCESS_ID: u8 = 13;
    /// The argument is one of [`super::lock`]. Locks the file, or takes the lock back. As on Linux, all descriptors of an open file have
    /// one lock. Waits until others have taken theirs back, with [`super::lock::NO_WAIT`] it is `again`.
    pub const LOCK: u8 = 14;
    /// The argument is the new permissions of a file or folder, as on Unix: at most 0o777. Those it has are in its `filestat`, bytes 18
    /// and 19, which are padding in WASI.
    pub const SET_PERMISSIONS: u8 = 15;
}

/// Operations of `fd_pread`.
pub mod fetch {
    /// The socket's own address.
    pub const LOCAL_ADDRESS: u8 = 1;
    /// The address at the other end.
    pub const PEER_ADDRESS: u8 = 2;
    /// The argument is one of [`super::option`]; its value (u64).
    pub const OPTION: u8 = 3;
    /// The address of a sender, and the datagram. The argument is 1 to leave it in the queue.
    pub const RECEIVE_FROM: u8 = 4;
    /// A reply, by the number that a request returned, in place of a descriptor. It can be fetched once; what there is no room for
    /// is lost.
    pub const REPLY: u8 = 5;
    /// Makes a pipe: the descriptor that reads from it, and the one that writes to it (u32 each).
    pub const PIPE: u8 = 6;
    /// The number of a child in place of a descriptor. Waits until it ends; with the argument 1, does not wait, and nothing is
    /// fetched from a child that runs. How it ended, one of [`super::ended`] (u32), and a code (u32). This can be fetched once;
    /// then there is no such child (`child`).
    pub const PROCESS_END: u8 = 7;
    /// The folder that this process begins in; nothing: the root, as every program.
    pub const CURRENT_DIR: u8 = 8;
    /// A name of this program, by which [`super::ask::PROCESS_START`] starts it again.
    pub const EXECUTABLE: u8 = 9;
    /// The calls that led here, the innermost first: the place of each in the module's file (u32). Those of std's `Backtrace` itself are
    /// left out. `notsup` if the program does not note its calls.
    pub const CALLS: u8 = 10;
    /// A place in the module's file, in place of a descriptor. The functions there, one after the other: each was inlined in the one that
    /// follows. Of each its name and its source's file, as a length (u32) and bytes; then the line and the column (u32 each). What is not
    /// known is empty or 0. `notsup` as above.
    pub const FUNCTIONS: u8 = 11;
}

/// In a request for a process: no stream.
pub const NO_STREAM: u32 = u32::MAX;

/// How a process ended.
pub mod ended {
    /// The code is the exit code.
    pub const EXITED: u32 = 0;
    /// The code is that of the trap, see [`crate::TrapCode`].
    pub const TRAPPED: u32 = 1;
    /// By its parent, or with the program that it belongs to.
    pub const KILLED: u32 = 2;
}

/// Locks of files.
pub mod lock {
    pub const NONE: u32 = 0;
    pub const SHARED: u32 = 1;
    pub const EXCLUSIVE: u32 = 2;
    /// Added to one of the others.
    pub const NO_WAIT: u32 = 4;
}

/// Options of sockets.
pub mod option {
    /// How long reading and writing wait, in nanoseconds; 0: without end. Then they fail with `again`.
    pub const READ_TIMEOUT: u32 = 1;
    pub const WRITE_TIMEOUT: u32 = 2;
    pub const TTL: u32 = 3;
    pub const NODELAY: u32 = 4;
    /// In nanoseconds, plus one; 0: none.
    pub const LINGER: u32 = 5;
    pub const BROADCAST: u32 = 6;
    pub const ONLY_V6: u32 = 7;
    pub const MULTICAST_LOOP_V4: u32 = 8;
    pub const MULTICAST_TTL_V4: u32 = 9;
    pub const MULTICAST_LOOP_V6: u32 = 10;
    /// The WASI errno of what went wrong since this was last asked, 0 if nothing did. Can only be fetched.
    pub const ERROR: u32 = 11;
    pub const KEEPALIVE: u32 = 12;
}

/// An address: the family (u16, 4 or 6), the port (u16), 16 bytes of which IPv4 uses the first four, the flow (u32) and the scope
/// (u32).
pub const ADDRESS_BYTES: usize = 28;

/// Returns the offset that asks for an operation.
pub const fn offset(operation: u8, argument: u32, descriptor: u32) -> u64 {
    operation as u64 | (argument as u64) << 8 | (descriptor as u64) << 32
}
