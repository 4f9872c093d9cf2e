//! Of Rust 1.95: what later versions have in other files.

#![forbid(unsafe_op_in_unsafe_fn)]

#[path = "../../paths/wasi.rs"]
mod paths;

use crate::io;
pub use paths::*;

// Add a few symbols not in upstream `libc` just yet.
pub mod libc {
    pub use libc::*;

    unsafe extern "C" {
        pub fn __wasilibc_get_environ() -> *mut *mut c_char;
    }
}

#[allow(dead_code)]
pub fn page_size() -> usize {
    // SAFETY: it has no pointers.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

pub fn getpid() -> u32 {
    crate::sys::pal::gpu_run::process_id().expect("this host has no processes")
}

#[doc(hidden)]
pub trait IsMinusOne {
    fn is_minus_one(&self) -> bool;
}

macro_rules! impl_is_minus_one {
    ($($t:ident)*) => ($(impl IsMinusOne for $t {
        fn is_minus_one(&self) -> bool {
            *self == -1
        }
    })*)
}

impl_is_minus_one! { i8 i16 i32 i64 isize }

pub fn cvt<T: IsMinusOne>(t: T) -> io::Result<T> {
    if t.is_minus_one() { Err(io::Error::last_os_error()) } else { Ok(t) }
}

pub fn cvt_r<T, F>(mut f: F) -> io::Result<T>
where
    T: IsMinusOne,
    F: FnMut() -> T,
{
    loop {
        match cvt(f()) {
            Err(ref e) if e.is_interrupted() => {}
            other => return other,
        }
    }
}
