//! Pipes of gpu-run: the host makes them.

use crate::io;
use crate::sys::fd::FileDesc;
use crate::sys::pal::gpu_run;

pub type Pipe = FileDesc;

#[inline]
pub fn pipe() -> io::Result<(Pipe, Pipe)> {
    gpu_run::pipe()
}
