//! What gpu-run answers beyond WASI preview 1. The crate `gpu-run-abi` describes it, in its module `extension`: questions are
//! reads and writes of a descriptor that no host gives out, so that a program needs no import that other hosts lack.

#![forbid(unsafe_op_in_unsafe_fn)]

pub mod files;

use crate::ffi::{CString, c_char, c_int};
use crate::fs::TryLockError;
use crate::io;
use crate::num::NonZero;
use crate::os::fd::{FromRawFd, RawFd};
use crate::sync::{Once, ReentrantLock, ReentrantLockGuard};
use crate::sys::fd::FileDesc;

const DESCRIPTOR: u32 = 0x6770_7501;
const BADF: i32 = 8;
/// In a request for a process: no stream.
pub const NO_STREAM: u32 = u32::MAX;

pub mod ask {
    pub const TCP_CONNECT: u8 = 1;
    pub const TCP_LISTEN: u8 = 2;
    pub const UDP_BIND: u8 = 3;
    pub const UDP_CONNECT: u8 = 4;
    pub const UDP_SEND_TO: u8 = 5;
    pub const SET_OPTION: u8 = 6;
    pub const LOOK_UP: u8 = 7;
    pub const DUPLICATE: u8 = 8;
    pub const MULTICAST: u8 = 9;
    pub const PARALLELISM: u8 = 10;
    pub const PROCESS_START: u8 = 11;
    pub const PROCESS_KILL: u8 = 12;
    pub const PROCESS_ID: u8 = 13;
    pub const LOCK: u8 = 14;
    pub const SET_PERMISSIONS: u8 = 15;
}

pub mod fetch {
    pub const LOCAL_ADDRESS: u8 = 1;
    pub const PEER_ADDRESS: u8 = 2;
    pub const OPTION: u8 = 3;
    pub const RECEIVE_FROM: u8 = 4;
    pub const REPLY: u8 = 5;
    pub const PIPE: u8 = 6;
    pub const PROCESS_END: u8 = 7;
    pub const CURRENT_DIR: u8 = 8;
    pub const EXECUTABLE: u8 = 9;
    pub const CALLS: u8 = 10;
    pub const FUNCTIONS: u8 = 11;
}

pub mod lock {
    pub const NONE: u32 = 0;
    pub const SHARED: u32 = 1;
    pub const EXCLUSIVE: u32 = 2;
    pub const NO_WAIT: u32 = 4;
}

#[repr(C)]
struct Input {
    at: *const u8,
    bytes: usize,
}

#[repr(C)]
struct Output {
    at: *mut u8,
    bytes: usize,
}

// LLVM's code throws with this tag and leaves it to the C library to define it, which wasi-libc does not. For wasm32-unknown-unknown,
// std's own crate `unwind` does. As a test, std is linked with another std.
#[cfg(all(panic = "unwind", not(target_os = "unknown"), not(test)))]
crate::arch::global_asm!(".globl __cpp_exception", ".tagtype __cpp_exception i32", "__cpp_exception:");

/// What `fd_fdstat_get` writes.
#[repr(C, align(8))]
struct Status {
    filetype: u8,
    flags: u16,
    rights: [u64; 2],
}

const NONBLOCK: u16 = 4;

// The same imports as wasi-libc's. The crate that std takes them from has another name in other versions of Rust.
#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    fn fd_pwrite(fd: u32, from: *const Input, count: usize, offset: u64, result: *mut u32) -> i32;
    fn fd_pread(fd: u32, to: *const Output, count: usize, offset: u64, result: *mut u32) -> i32;
    fn fd_filestat_get(fd: u32, found: *mut files::Filestat) -> i32;
    fn path_filestat_get(
        folder: u32,
        flags: u32,
        path: *const c_char,
        bytes: usize,
        found: *mut files::Filestat,
    ) -> i32;
    fn fd_fdstat_get(fd: u32, status: *mut Status) -> i32;
    fn fd_fdstat_set_flags(fd: u32, flags: u32) -> i32;
    fn sock_accept(fd: u32, flags: u32, accepted: *mut u32) -> i32;
    fn sock_recv(fd: u32, to: *const Output, count: usize, flags: u32, bytes: *mut u32, found: *mut u16) -> i32;
    fn sock_shutdown(fd: u32, how: u32) -> i32;
}

fn result(errno: i32) -> io::Result<()> {
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

fn offset(operation: u8, argument: u32, fd: u32) -> u64 {
    u64::from(operation) | u64::from(argument) << 8 | u64::from(fd) << 32
}

/// Sends a request about a descriptor; returns its result.
pub fn ask_about(fd: u32, operation: u8, argument: u32, request: [&[u8]; 2]) -> io::Result<u32> {
    let from = request.map(|part| Input { at: part.as_ptr(), bytes: part.len() });
    let mut answer = 0;
    // SAFETY: the host reads the two parts, and writes the answer.
    result(unsafe {
        fd_pwrite(DESCRIPTOR, from.as_ptr(), from.len(), offset(operation, argument, fd), &mut answer)
    })?;
    Ok(answer)
}

/// Sends a request about no descriptor. Other hosts say that there is no such descriptor: they do not support this.
pub fn ask(operation: u8, request: [&[u8]; 2]) -> io::Result<u32> {
    ask_about(0, operation, 0, request).map_err(unsupported)
}

fn unsupported(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(BADF) { io::Error::UNSUPPORTED_PLATFORM } else { error }
}

/// Fetches bytes, first into one buffer and then into the other; returns how many there are.
pub fn fetch_about(fd: u32, operation: u8, argument: u32, first: &mut [u8], then: &mut [u8]) -> io::Result<usize> {
    let to = [first, then].map(|part| Output { at: part.as_mut_ptr(), bytes: part.len() });
    let mut count = 0;
    // SAFETY: the host writes into the two buffers, and the count.
    result(unsafe { fd_pread(DESCRIPTOR, to.as_ptr(), to.len(), offset(operation, argument, fd), &mut count) })?;
    Ok(count as usize)
}

/// Fetches bytes about no descriptor, as [`ask`].
pub fn fetch(operation: u8, first: &mut [u8], then: &mut [u8]) -> io::Result<usize> {
    fetch_about(0, operation, 0, first, then).map_err(unsupported)
}

pub fn accept(fd: u32) -> io::Result<u32> {
    let mut accepted = 0;
    // SAFETY: the host writes the descriptor.
    result(unsafe { sock_accept(fd, 0, &mut accepted) })?;
    Ok(accepted)
}

pub fn peek(fd: u32, buffer: &mut [u8]) -> io::Result<usize> {
    const PEEK: u32 = 1;
    let to = Output { at: buffer.as_mut_ptr(), bytes: buffer.len() };
    let (mut bytes, mut found) = (0, 0);
    // SAFETY: the host writes into the buffer, and the two numbers.
    result(unsafe { sock_recv(fd, &to, 1, PEEK, &mut bytes, &mut found) })?;
    Ok(bytes as usize)
}

/// `how`: 1 to read no more, 2 to write no more, 3 for both.
pub fn shutdown(fd: u32, how: u32) -> io::Result<()> {
    // SAFETY: it has no pointers.
    result(unsafe { sock_shutdown(fd, how) })
}

pub fn set_nonblocking(fd: u32, yes: bool) -> io::Result<()> {
    let mut status = Status { filetype: 0, flags: 0, rights: [0; 2] };
    // SAFETY: the host writes the status.
    result(unsafe { fd_fdstat_get(fd, &mut status) })?;
    let flags = if yes { status.flags | NONBLOCK } else { status.flags & !NONBLOCK };
    // SAFETY: it has no pointers.
    result(unsafe { fd_fdstat_set_flags(fd, flags.into()) })
}

/// Returns how many threads the program can have at once, where the host says so.
pub fn parallelism() -> Option<NonZero<usize>> {
    NonZero::new(ask(ask::PARALLELISM, [&[], &[]]).ok()? as usize)
}

/// Starts a process from a program's file, or, without one, by the name in the request. Returns its number.
pub fn start(file: u32, request: &[u8]) -> io::Result<u32> {
    ask_about(file, ask::PROCESS_START, 0, [request, &[]])
}

pub fn process_id() -> io::Result<u32> {
    ask(ask::PROCESS_ID, [&[], &[]])
}

/// Returns the end of a new pipe that is read, and the one that is written.
pub fn pipe() -> io::Result<(FileDesc, FileDesc)> {
    let (mut reader, mut writer) = ([0; 4], [0; 4]);
    fetch(fetch::PIPE, &mut reader, &mut writer)?;
    // SAFETY: the host has just made the descriptors.
    let owned = |fd| unsafe { FileDesc::from_raw_fd(u32::from_le_bytes(fd) as RawFd) };
    Ok((owned(reader), owned(writer)))
}

pub fn duplicate(fd: RawFd) -> io::Result<RawFd> {
    ask_of_file(fd, ask::DUPLICATE, 0).map(|fd| fd as RawFd)
}

/// Locks a file, or takes the lock back: see [`lock`].
pub fn lock(fd: RawFd, how: u32) -> io::Result<()> {
    ask_of_file(fd, ask::LOCK, how).map(drop)
}

pub fn try_lock(fd: RawFd, how: u32) -> Result<(), TryLockError> {
    lock(fd, how | lock::NO_WAIT).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => TryLockError::WouldBlock,
        _ => TryLockError::Error(error),
    })
}

/// What another host does not support, it says of the descriptor.
fn ask_of_file(fd: RawFd, operation: u8, argument: u32) -> io::Result<u32> {
    match ask_about(fd as u32, operation, argument, [&[], &[]]) {
        Err(error) if error.raw_os_error() == Some(BADF) => process_id().and(Err(error)),
        answer => answer,
    }
}

/// Fetches a path; nothing if the host has none.
pub fn path(operation: u8) -> io::Result<Vec<u8>> {
    let mut path = vec![0; 4096];
    let length = fetch(operation, &mut path, &mut [])?;
    path.truncate(length);
    Ok(path)
}

/// Returns the places of the calls that led here, the innermost first; none if they are not noted.
pub fn calls() -> Vec<u32> {
    // As many as a host keeps.
    let mut bytes = [0; 4 * 64];
    let count = fetch(fetch::CALLS, &mut bytes, &mut []).unwrap_or(0);
    bytes[..count].as_chunks().0.iter().map(|place| u32::from_le_bytes(*place)).collect()
}

/// A function at a place of a call. What is not known is empty or 0.
pub struct PlacedFunction {
    pub name: Vec<u8>,
    pub file: Vec<u8>,
    pub line: u32,
    pub column: u32,
}

/// Returns the functions at a place, the one that was inlined in all others first.
pub fn functions_at(place: u32) -> Vec<PlacedFunction> {
    let mut bytes = vec![0; 16 << 10];
    let count = fetch_about(place, fetch::FUNCTIONS, 0, &mut bytes, &mut []).unwrap_or(0);
    let mut rest = &bytes[..count];
    let mut functions = Vec::new();
    // Of very many, the last ones may be cut.
    while let Some(function) = function(&mut rest) {
        functions.push(function);
    }
    functions
}

fn function(rest: &mut &[u8]) -> Option<PlacedFunction> {
    fn number(rest: &mut &[u8]) -> Option<u32> {
        let (number, after) = rest.split_first_chunk()?;
        *rest = after;
        Some(u32::from_le_bytes(*number))
    }
    fn text(rest: &mut &[u8]) -> Option<Vec<u8>> {
        let length = number(rest)? as usize;
        let (text, after) = rest.split_at_checked(length)?;
        *rest = after;
        Some(text.to_vec())
    }
    Some(PlacedFunction { name: text(rest)?, file: text(rest)?, line: number(rest)?, column: number(rest)? })
}

/// While the guard lives, this thread may call wasi-libc's functions that take or return paths: wasi-libc puts paths together in
/// one buffer for all threads.
pub fn use_paths() -> ReentrantLockGuard<'static, ()> {
    static PATHS: ReentrantLock<()> = ReentrantLock::new(());
    let guard = PATHS.lock();
    enter_start_folder();
    guard
}

/// Goes to the folder that this process was started in, the first time that it is called: before the first path is used. At the
/// start of the program it would be a question to the host for each one, even if it uses no paths.
fn enter_start_folder() {
    static ENTERED: Once = Once::new();
    unsafe extern "C" {
        fn chdir(folder: *const c_char) -> c_int;
    }
    ENTERED.call_once(|| {
        if let Ok(folder) = path(fetch::CURRENT_DIR)
            && !folder.is_empty()
            && let Ok(folder) = CString::new(folder)
        {
            // A folder that is gone by now is left as it is. SAFETY: it is a path with its zero.
            unsafe { chdir(folder.as_ptr()) };
        }
    });
}
