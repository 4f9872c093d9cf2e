//! What the programs share: a report, line by line, and the few calls each needs before its own.
//!
//! A program is called with the folders [`ROOT`] and [`OTHER`], both prepared as `crates/cli/tests/wasi/place.rs` says, and prints one line for each case:
//! `case: ok VALUE` or `case: ERRNO`. The same .wasm must print the same under gpu-run and under Wasmtime, and leave the same files
//! behind. What may differ between two hosts (inode numbers, the present time) is compared inside the program, and what came of
//! it printed.
#![allow(clippy::missing_safety_doc)] // every function here is as unsafe as the system call it makes: not at all, on valid pointers

use std::fmt::Debug;
pub use wasi::wasi_snapshot_preview1 as raw;
pub use wasi::*;

/// The folder `.`.
pub const ROOT: Fd = 3;
/// A second folder, `other`.
pub const OTHER: Fd = 4;
/// A number that nothing has.
pub const NONE: Fd = 77;
pub const READ: Rights = RIGHTS_FD_READ | RIGHTS_FD_SEEK | RIGHTS_FD_TELL;
pub const WRITE: Rights = RIGHTS_FD_WRITE | RIGHTS_FD_SEEK | RIGHTS_FD_TELL;
pub const BOTH: Rights = READ | WRITE;
pub const FOLLOW: Lookupflags = LOOKUPFLAGS_SYMLINK_FOLLOW;
/// A moment in 2001, in nanoseconds, and one a day later: what is set to them is compared on disk, too.
pub const THEN: Timestamp = 1_000_000_000_123_456_789;
pub const LATER: Timestamp = THEN + 86_400_000_000_000;

/// One line: what a case gave.
pub fn report<T: Debug>(case: &str, result: Result<T, Errno>) {
    match result {
        Ok(value) => println!("{case}: ok {value:?}"),
        Err(errno) => println!("{case}: {}", errno.name().to_lowercase()),
    }
}

/// What a raw call returned.
pub fn code(returned: i32) -> Result<(), Errno> {
    match returned as u16 {
        0 => Ok(()),
        // SAFETY: `Errno` is a transparent `u16`, and every host's errno is below 77.
        number => Err(unsafe { std::mem::transmute::<u16, Errno>(number) }),
    }
}

/// Opens below [`ROOT`], following symbolic links.
pub unsafe fn open(path: &str, oflags: Oflags, rights: Rights, fdflags: Fdflags) -> Result<Fd, Errno> {
    path_open(ROOT, FOLLOW, path, oflags, rights, rights, fdflags)
}

/// A new file with this content, at its beginning.
pub unsafe fn file(path: &str, content: &str) -> Fd {
    let fd = open(path, OFLAGS_CREAT | OFLAGS_TRUNC, BOTH, 0).expect(path);
    write(fd, content).expect(path);
    fd_seek(fd, 0, WHENCE_SET).expect(path);
    fd
}

/// A new file with this content, closed.
pub unsafe fn make(path: &str, content: &str) {
    fd_close(file(path, content)).expect(path);
}

pub unsafe fn directory(path: &str) -> Fd {
    open(path, OFLAGS_DIRECTORY, RIGHTS_FD_READDIR, 0).expect(path)
}

pub fn iovec(buffer: &mut [u8]) -> Iovec {
    Iovec { buf: buffer.as_mut_ptr(), buf_len: buffer.len() }
}

pub fn ciovec(bytes: &[u8]) -> Ciovec {
    Ciovec { buf: bytes.as_ptr(), buf_len: bytes.len() }
}

pub unsafe fn write(fd: Fd, text: &str) -> Result<usize, Errno> {
    fd_write(fd, &[ciovec(text.as_bytes())])
}

pub unsafe fn pwrite(fd: Fd, text: &str, offset: u64) -> Result<usize, Errno> {
    fd_pwrite(fd, &[ciovec(text.as_bytes())], offset)
}

pub unsafe fn read(fd: Fd, room: usize) -> Result<String, Errno> {
    let mut buffer = vec![0; room];
    let count = fd_read(fd, &[iovec(&mut buffer)])?;
    Ok(text(&buffer[..count]))
}

pub unsafe fn pread(fd: Fd, room: usize, offset: u64) -> Result<String, Errno> {
    let mut buffer = vec![0; room];
    let count = fd_pread(fd, &[iovec(&mut buffer)], offset)?;
    Ok(text(&buffer[..count]))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What of a `filestat` two hosts must agree on.
#[derive(Debug)]
#[allow(dead_code)] // printed
pub struct Stat {
    kind: &'static str,
    links: u64,
    size: u64,
}

pub fn stat(stat: Filestat) -> Stat {
    // How large a directory is, and how many links it has, is the file system's own affair.
    let counts = stat.filetype != FILETYPE_DIRECTORY;
    Stat {
        kind: stat.filetype.name(),
        links: if counts { stat.nlink } else { 0 },
        size: if counts { stat.size } else { 0 },
    }
}

/// The times of a file: those this program set, and whether the others are about now.
pub fn times(stat: Filestat) -> [String; 2] {
    let now = unsafe { clock_time_get(CLOCKID_REALTIME, 1) }.expect("a clock");
    let time = |time: u64| match time {
        THEN => "then".into(),
        LATER => "later".into(),
        _ if time.abs_diff(now) < 600_000_000_000 => "now".into(),
        other => other.to_string(),
    };
    [time(stat.atim), time(stat.mtim)]
}

/// The names below an open directory, sorted: hosts list them in an order of their own.
pub unsafe fn names(fd: Fd) -> Result<Vec<String>, Errno> {
    let mut names: Vec<String> = entries(fd, 4096, 0)?.into_iter().map(|entry| entry.name).collect();
    names.sort();
    Ok(names)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub next: u64,
    pub inode: u64,
    pub kind: &'static str,
    pub name: String,
}

/// All entries from a cookie on, read through a buffer of this size again and again.
pub unsafe fn entries(fd: Fd, room: usize, mut cookie: u64) -> Result<Vec<Entry>, Errno> {
    let mut all = Vec::new();
    loop {
        let mut buffer = vec![0u8; room];
        let used = fd_readdir(fd, buffer.as_mut_ptr(), room, cookie)?;
        let whole = parse(&buffer[..used]);
        // A buffer that is not full holds the end.
        let done = used < room;
        if let Some(last) = whole.last() {
            cookie = last.next;
        } else if !done {
            panic!("an entry does not fit into {room} bytes");
        }
        all.extend(whole);
        if done {
            return Ok(all);
        }
    }
}

/// The entries that are whole in a buffer of `fd_readdir`.
pub fn parse(mut bytes: &[u8]) -> Vec<Entry> {
    let mut all = Vec::new();
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
    while bytes.len() >= 24 {
        let length = u32::from_le_bytes(bytes[16..20].try_into().expect("four")) as usize;
        let Some(name) = bytes.get(24..24 + length) else { break };
        // SAFETY: `Filetype` is a transparent `u8`, of which every host uses the eight that have names.
        let kind = unsafe { std::mem::transmute::<u8, Filetype>(bytes[20]) }.name();
        all.push(Entry { next: word(bytes, 0), inode: word(bytes, 8), kind, name: text(name) });
        bytes = &bytes[24 + length..];
    }
    all
}

/// Descriptors of each kind that are not a regular file, by name.
pub unsafe fn others() -> Vec<(&'static str, Fd)> {
    vec![
        ("stdin", 0),
        ("stdout", 1),
        ("preopen", ROOT),
        ("directory", directory("given/dir")),
        ("none", NONE),
        ("minus-one", u32::MAX),
    ]
}

/// Reports what a call gives on descriptors of all those kinds.
pub unsafe fn on_others<T: Debug>(call: impl Fn(Fd) -> Result<T, Errno>) {
    for (name, fd) in others() {
        report(&format!("on {name}"), call(fd));
    }
}

/// Paths that lead nowhere, or out, with the name of the case.
pub const BAD_PATHS: &[(&str, &str)] = &[
    ("missing", "given/missing"),
    ("below a file", "given/file/below"),
    ("below nothing", "given/missing/below"),
    ("empty", ""),
    ("parent", ".."),
    ("out and in", "given/../../outside"),
    ("absolute", "/etc/passwd"),
    ("dangling", "given/dangling"),
    ("loop", "given/loop"),
    ("absolute link", "given/absolute"),
    ("escaping link", "given/escape"),
    ("through an escaping link", "given/up/outside"),
    ("nul", "given/fi\0le"),
];

/// Reports what a call gives for each of those, for a name that is too long, and for one that is not UTF-8.
pub unsafe fn on_bad_paths<T: Debug>(call: impl Fn(&str) -> Result<T, Errno>) {
    for (name, path) in BAD_PATHS {
        report(name, call(path));
    }
    report("long name", call(&"n".repeat(300)));
    report("long path", call(&"d/".repeat(3000)));
    report("not utf-8", call(not_utf8()));
}

/// Bytes that are no text. They go to the host as they are, and nothing here looks at them.
pub unsafe fn not_utf8() -> &'static str {
    std::str::from_utf8_unchecked(std::hint::black_box(&[b'g', 0xff, 0xfe]))
}
