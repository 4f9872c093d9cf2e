//! Clocks: the host's own, in nanoseconds.
//!
//! The monotonic clock is the host's and not one per instance, so that instances can compare their readings. The two
//! CPU-time clocks do not exist (`badf`, as in Wasmtime): the host's CPU time says nothing about a program on a device.

use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

use crate::Errno;
use crate::encode::{Result, nanoseconds};

pub(crate) const REALTIME: u64 = 0;
pub(crate) const MONOTONIC: u64 = 1;
const PROCESS_CPUTIME: u64 = 2;
const THREAD_CPUTIME: u64 = 3;

/// `clock_time_get`
pub(crate) fn now(id: u64) -> Result<u64> {
    Ok(in_nanoseconds(clock_gettime(clock(id)?)))
}

/// `clock_res_get`
pub(crate) fn resolution(id: u64) -> Result<u64> {
    Ok(in_nanoseconds(clock_getres(clock(id)?)).max(1))
}

fn clock(id: u64) -> Result<ClockId> {
    match id {
        REALTIME => Ok(ClockId::Realtime),
        MONOTONIC => Ok(ClockId::Monotonic),
        PROCESS_CPUTIME | THREAD_CPUTIME => Err(Errno::Badf.into()),
        _ => Err(Errno::Inval.into()),
    }
}

fn in_nanoseconds(time: Timespec) -> u64 {
    nanoseconds(time.tv_sec, time.tv_nsec)
}
