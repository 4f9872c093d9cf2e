//! The folder that a process works in, and the paths that the environment names: as on Unix.

#![forbid(unsafe_op_in_unsafe_fn)]

use crate::ffi::{CStr, OsStr, OsString};
use crate::os::wasi::prelude::*;
use crate::path::{self, PathBuf};
use crate::sys::helpers::run_path_with_cstr;
use crate::sys::pal::gpu_run::{self, fetch};
use crate::{env, fmt, fs, io, slice};

// The crate libc that Rust 1.95 uses does not have these.
mod c {
    use crate::ffi::{c_char, c_int};
    unsafe extern "C" {
        pub fn getcwd(buffer: *mut c_char, size: usize) -> *mut c_char;
        pub fn chdir(folder: *const c_char) -> c_int;
    }
}

pub fn getcwd() -> io::Result<PathBuf> {
    let _paths = gpu_run::use_paths();
    let mut buffer = vec![0_u8; 512];
    loop {
        // SAFETY: it writes into the buffer.
        if !unsafe { c::getcwd(buffer.as_mut_ptr().cast(), buffer.len()) }.is_null() {
            let folder = CStr::from_bytes_until_nul(&buffer).unwrap_or_default();
            return Ok(PathBuf::from(OsStr::from_bytes(folder.to_bytes())));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ERANGE) {
            return Err(error);
        }
        buffer.resize(2 * buffer.len(), 0);
    }
}

pub fn chdir(folder: &path::Path) -> io::Result<()> {
    // wasi-libc keeps the path as it is given, and `getcwd` would return it so.
    let real = fs::canonicalize(folder)?;
    // SAFETY: it reads a path with its zero.
    let result = run_path_with_cstr(&real, &|folder| Ok(unsafe { c::chdir(folder.as_ptr()) }))?;
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub struct SplitPaths<'a>(slice::Split<'a, u8, fn(&u8) -> bool>);

pub fn split_paths(unparsed: &OsStr) -> SplitPaths<'_> {
    fn is_separator(byte: &u8) -> bool {
        *byte == b':'
    }
    SplitPaths(unparsed.as_bytes().split(is_separator))
}

impl<'a> Iterator for SplitPaths<'a> {
    type Item = PathBuf;
    fn next(&mut self) -> Option<PathBuf> {
        self.0.next().map(|path| PathBuf::from(OsStr::from_bytes(path)))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

#[derive(Debug)]
pub struct JoinPathsError;

pub fn join_paths<I, T>(paths: I) -> Result<OsString, JoinPathsError>
where
    I: Iterator<Item = T>,
    T: AsRef<OsStr>,
{
    let mut joined = Vec::new();
    for (i, path) in paths.enumerate() {
        let path = path.as_ref().as_bytes();
        if i > 0 {
            joined.push(b':');
        }
        if path.contains(&b':') {
            return Err(JoinPathsError);
        }
        joined.extend_from_slice(path);
    }
    Ok(OsString::from_vec(joined))
}

impl fmt::Display for JoinPathsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("path segment contains separator `:`")
    }
}

impl crate::error::Error for JoinPathsError {}

pub fn current_exe() -> io::Result<PathBuf> {
    gpu_run::path(fetch::EXECUTABLE).map(|path| PathBuf::from(OsString::from_vec(path)))
}

pub fn temp_dir() -> PathBuf {
    env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

pub fn home_dir() -> Option<PathBuf> {
    env::var_os("HOME").map(PathBuf::from)
}
