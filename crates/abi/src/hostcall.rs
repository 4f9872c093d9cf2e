//! The host calls, one row each.
//!
//! A row says what a function's parameters mean: which are plain values, which point at bytes to send, and which at
//! memory for bytes to receive. Device-side stubs, host-side decoding and tracing all follow from the row. To add a
//! call, add a row here and an arm in `crates/wasi`.
//!
//! On the bus, a call's *argument words* are one word per [`Move`] that has one, in the row's order. Its *input* is the
//! bytes of all input moves, concatenated; its *output* likewise. Output is written to the guest only if the call
//! returned errno 0.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValType {
    I32,
    I64,
    F32,
    F64,
}

/// What one parameter, or a pointer with its length, means. Fields are indices of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// A plain value. Word: the value, zero-extended; a float's bits.
    Value(u8),
    /// `len * size` bytes at `ptr` are input. Word: the number of bytes.
    Input { ptr: u8, len: u8, size: u32 },
    /// The bytes that the `count` (pointer, length) pairs at `iovs` point at are input. Word: the total number of
    /// bytes.
    Gather { iovs: u8, count: u8 },
    /// Up to `len * size` bytes of output go to `ptr`. Word: the number of bytes.
    Output { ptr: u8, len: u8, size: u32 },
    /// Output fills the memory of the `count` (pointer, length) pairs at `iovs`, one after the other. Word: the total
    /// number of bytes.
    Scatter { iovs: u8, count: u8 },
    /// Exactly `bytes` bytes of output go to `ptr`, a multiple of `align`. No word. Results come before all other
    /// output.
    Result { ptr: u8, bytes: u32, align: u32 },
    /// Output whose length the host decides goes to `ptr`, a multiple of `align`. Word: `ptr`. If a call has two
    /// answers, [`crate::bus::Reply::result`] is the length of the first.
    Answer { ptr: u8, align: u32 },
}

impl Move {
    /// Returns whether the move has an argument word.
    pub const fn has_word(self) -> bool {
        !matches!(self, Move::Result { .. })
    }

    /// Returns the parameter that is a pointer, and the alignment that it must have. A call with a misaligned pointer
    /// traps.
    pub const fn alignment(self) -> Option<(u8, u32)> {
        match self {
            Move::Value(_) => None,
            // Bytes, or structs that begin with a u64: subscriptions, events.
            Move::Input { ptr, size, .. } | Move::Output { ptr, size, .. } => {
                Some((ptr, if size == 1 { 1 } else { 8 }))
            }
            Move::Gather { iovs, .. } | Move::Scatter { iovs, .. } => Some((iovs, 4)),
            Move::Result { ptr, align, .. } | Move::Answer { ptr, align } => Some((ptr, align)),
        }
    }
}

/// One row of the table: a host function.
#[derive(Clone, Copy, Debug)]
pub struct HostFunction {
    pub module: &'static str,
    pub name: &'static str,
    pub params: &'static [(&'static str, ValType)],
    /// Whether the function returns an errno (an i32). `proc_exit` and the test suite's printers return nothing.
    pub returns_errno: bool,
    pub moves: &'static [Move],
}

macro_rules! calls {
    ($($module:literal { $($name:ident ($($param:ident : $type:ident),*) $(-> $errno:ident)? { $($move:ident ($($at:tt),*)),* })* })*) => {
        /// The calls' numbers on the bus: positions in [`TABLE`].
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Call { $($($name),*),* }

        impl Call {
            pub const ALL: &[Call] = &[$($(Call::$name),*),*];
            pub fn from_number(number: u32) -> Option<Call> {
                Call::ALL.get(number as usize).copied()
            }
            pub fn function(self) -> &'static HostFunction {
                &TABLE[self as usize]
            }
            /// Returns the call that an import names. [`Call::embedder`] has no name that a guest could import.
            pub fn find(module: &str, name: &str) -> Option<Call> {
                let named = |c: &Call| c.function().module == module && c.function().name == name;
                Call::ALL.iter().copied().find(|c| *c != Call::embedder && named(c))
            }
        }

        pub const TABLE: &[HostFunction] = &[$($({
            #[allow(non_camel_case_types, dead_code)]
            enum P { $($param),* }
            HostFunction {
                module: $module,
                name: stringify!($name),
                params: &[$((stringify!($param), ValType::$type)),*],
                returns_errno: calls!(@errno $($errno)?),
                moves: &[$(calls!(@move $move $($at),*)),*],
            }
        }),*),*];
    };
    (@errno Errno) => { true };
    (@errno) => { false };
    (@move Value $a:ident) => { Move::Value(P::$a as u8) };
    (@move Input $a:ident, $b:ident) => { Move::Input { ptr: P::$a as u8, len: P::$b as u8, size: 1 } };
    (@move Input $a:ident, $b:ident, $s:literal) => { Move::Input { ptr: P::$a as u8, len: P::$b as u8, size: $s } };
    (@move Output $a:ident, $b:ident) => { Move::Output { ptr: P::$a as u8, len: P::$b as u8, size: 1 } };
    (@move Output $a:ident, $b:ident, $s:literal) => { Move::Output { ptr: P::$a as u8, len: P::$b as u8, size: $s } };
    (@move Gather $a:ident, $b:ident) => { Move::Gather { iovs: P::$a as u8, count: P::$b as u8 } };
    (@move Scatter $a:ident, $b:ident) => { Move::Scatter { iovs: P::$a as u8, count: P::$b as u8 } };
    (@move Result $a:ident, $s:literal) => { Move::Result { ptr: P::$a as u8, bytes: $s, align: if $s < 8 { $s } else { 8 } } };
    (@move Result $a:ident, $s:literal, $t:literal) => { Move::Result { ptr: P::$a as u8, bytes: $s, align: $t } };
    (@move Answer $a:ident, $t:literal) => { Move::Answer { ptr: P::$a as u8, align: $t } };
}

/// The module name of WASI preview 1.
pub const WASI: &str = "wasi_snapshot_preview1";

calls! {
    "wasi_snapshot_preview1" {
        args_get(argv: I32, argv_buf: I32) -> Errno { Answer(argv, 4), Answer(argv_buf, 1) }
        args_sizes_get(argc: I32, argv_buf_size: I32) -> Errno { Result(argc, 4), Result(argv_buf_size, 4) }
        environ_get(environ: I32, environ_buf: I32) -> Errno { Answer(environ, 4), Answer(environ_buf, 1) }
        environ_sizes_get(count: I32, buf_size: I32) -> Errno { Result(count, 4), Result(buf_size, 4) }
        clock_res_get(id: I32, resolution: I32) -> Errno { Value(id), Result(resolution, 8) }
        clock_time_get(id: I32, precision: I64, time: I32) -> Errno { Value(id), Value(precision), Result(time, 8) }
        fd_advise(fd: I32, offset: I64, len: I64, advice: I32) -> Errno { Value(fd), Value(offset), Value(len), Value(advice) }
        fd_allocate(fd: I32, offset: I64, len: I64) -> Errno { Value(fd), Value(offset), Value(len) }
        fd_close(fd: I32) -> Errno { Value(fd) }
        fd_datasync(fd: I32) -> Errno { Value(fd) }
        fd_fdstat_get(fd: I32, stat: I32) -> Errno { Value(fd), Result(stat, 24) }
        fd_fdstat_set_flags(fd: I32, flags: I32) -> Errno { Value(fd), Value(flags) }
        fd_fdstat_set_rights(fd: I32, base: I64, inheriting: I64) -> Errno { Value(fd), Value(base), Value(inheriting) }
        fd_filestat_get(fd: I32, stat: I32) -> Errno { Value(fd), Result(stat, 64) }
        fd_filestat_set_size(fd: I32, size: I64) -> Errno { Value(fd), Value(size) }
        fd_filestat_set_times(fd: I32, atim: I64, mtim: I64, flags: I32) -> Errno { Value(fd), Value(atim), Value(mtim), Value(flags) }
        fd_pread(fd: I32, iovs: I32, iovs_len: I32, offset: I64, nread: I32) -> Errno { Value(fd), Result(nread, 4), Scatter(iovs, iovs_len), Value(offset) }
        fd_prestat_get(fd: I32, prestat: I32) -> Errno { Value(fd), Result(prestat, 8, 4) }
        fd_prestat_dir_name(fd: I32, path: I32, path_len: I32) -> Errno { Value(fd), Output(path, path_len) }
        fd_pwrite(fd: I32, iovs: I32, iovs_len: I32, offset: I64, nwritten: I32) -> Errno { Value(fd), Gather(iovs, iovs_len), Value(offset), Result(nwritten, 4) }
        fd_read(fd: I32, iovs: I32, iovs_len: I32, nread: I32) -> Errno { Value(fd), Result(nread, 4), Scatter(iovs, iovs_len) }
        fd_readdir(fd: I32, buf: I32, buf_len: I32, cookie: I64, used: I32) -> Errno { Value(fd), Result(used, 4), Output(buf, buf_len), Value(cookie) }
        fd_renumber(fd: I32, to: I32) -> Errno { Value(fd), Value(to) }
        fd_seek(fd: I32, offset: I64, whence: I32, position: I32) -> Errno { Value(fd), Value(offset), Value(whence), Result(position, 8) }
        fd_sync(fd: I32) -> Errno { Value(fd) }
        fd_tell(fd: I32, position: I32) -> Errno { Value(fd), Result(position, 8) }
        fd_write(fd: I32, iovs: I32, iovs_len: I32, nwritten: I32) -> Errno { Value(fd), Gather(iovs, iovs_len), Result(nwritten, 4) }
        path_create_directory(fd: I32, path: I32, path_len: I32) -> Errno { Value(fd), Input(path, path_len) }
        path_filestat_get(fd: I32, flags: I32, path: I32, path_len: I32, stat: I32) -> Errno { Value(fd), Value(flags), Input(path, path_len), Result(stat, 64) }
        path_filestat_set_times(fd: I32, flags: I32, path: I32, path_len: I32, atim: I64, mtim: I64, fst_flags: I32) -> Errno
            { Value(fd), Value(flags), Input(path, path_len), Value(atim), Value(mtim), Value(fst_flags) }
        path_link(old_fd: I32, old_flags: I32, old_path: I32, old_path_len: I32, new_fd: I32, new_path: I32, new_path_len: I32) -> Errno
            { Value(old_fd), Value(old_flags), Input(old_path, old_path_len), Value(new_fd), Input(new_path, new_path_len) }
        path_open(fd: I32, dirflags: I32, path: I32, path_len: I32, oflags: I32, base: I64, inheriting: I64, fdflags: I32, opened: I32) -> Errno
            { Value(fd), Value(dirflags), Input(path, path_len), Value(oflags), Value(base), Value(inheriting), Value(fdflags), Result(opened, 4) }
        path_readlink(fd: I32, path: I32, path_len: I32, buf: I32, buf_len: I32, used: I32) -> Errno { Value(fd), Input(path, path_len), Result(used, 4), Output(buf, buf_len) }
        path_remove_directory(fd: I32, path: I32, path_len: I32) -> Errno { Value(fd), Input(path, path_len) }
        path_rename(fd: I32, old_path: I32, old_path_len: I32, new_fd: I32, new_path: I32, new_path_len: I32) -> Errno
            { Value(fd), Input(old_path, old_path_len), Value(new_fd), Input(new_path, new_path_len) }
        path_symlink(old_path: I32, old_path_len: I32, fd: I32, new_path: I32, new_path_len: I32) -> Errno { Input(old_path, old_path_len), Value(fd), Input(new_path, new_path_len) }
        path_unlink_file(fd: I32, path: I32, path_len: I32) -> Errno { Value(fd), Input(path, path_len) }
        poll_oneoff(subscriptions: I32, events: I32, count: I32, stored: I32) -> Errno { Input(subscriptions, count, 48), Result(stored, 4), Output(events, count, 32) }
        proc_exit(code: I32) { Value(code) }
        proc_raise(signal: I32) -> Errno { Value(signal) }
        random_get(buf: I32, buf_len: I32) -> Errno { Output(buf, buf_len) }
        sched_yield() -> Errno { }
        sock_accept(fd: I32, flags: I32, accepted: I32) -> Errno { Value(fd), Value(flags), Result(accepted, 4) }
        sock_recv(fd: I32, iovs: I32, iovs_len: I32, flags: I32, received: I32, out_flags: I32) -> Errno
            { Value(fd), Result(received, 4), Result(out_flags, 2), Scatter(iovs, iovs_len), Value(flags) }
        sock_send(fd: I32, iovs: I32, iovs_len: I32, flags: I32, sent: I32) -> Errno { Value(fd), Gather(iovs, iovs_len), Value(flags), Result(sent, 4) }
        sock_shutdown(fd: I32, how: I32) -> Errno { Value(fd), Value(how) }
    }
    // All functions of an embedder, a program that uses gpu-run as a library. Input: a word for each parameter (of bytes: how many), then
    // the bytes that are sent, one parameter's after the other. The result is 0 for a function that has none. Output: the bytes that are
    // received, at most `room`. Stubs and host know the functions by their numbers.
    "embedder" {
        embedder(function: I32, room: I32, result: I32) -> Errno { Value(function), Value(room), Result(result, 8) }
    }
    // Imports of the official test suite's modules. These calls reach the host, but print nothing.
    "spectest" {
        print() { }
        print_i32(a: I32) { Value(a) }
        print_i64(a: I64) { Value(a) }
        print_f32(a: F32) { Value(a) }
        print_f64(a: F64) { Value(a) }
        print_i32_f32(a: I32, b: F32) { Value(a), Value(b) }
        print_f64_f64(a: F64, b: F64) { Value(a), Value(b) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_fits_a_request() {
        assert_eq!(TABLE.iter().filter(|f| f.module == WASI).count(), 46);
        for f in TABLE {
            let words = f.moves.iter().filter(|m| m.has_word()).count();
            assert!(words <= crate::bus::ARGS, "{} has {words} words", f.name);
        }
    }

    #[test]
    fn calls_are_found_by_their_import_names() {
        assert_eq!(Call::find(WASI, "fd_write"), Some(Call::fd_write));
        assert_eq!(Call::find("env", "fd_write"), None);
        assert_eq!(Call::find("embedder", "embedder"), None);
    }
}
