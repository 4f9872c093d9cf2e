//! Finds out which processes hold a GPU's memory, from NVIDIA's management library where that is installed.
//!
//! The library is asked only when memory is short. If it does not answer (no library, or a container that hides other
//! processes), the result is empty.

use crate::Holder;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

const LIBRARY: [&str; 2] = ["libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"];
/// Maximum number of processes to ask for.
const MAX_PROCESSES: usize = 256;
/// The library's value if it does not know how much a process holds.
const UNKNOWN: u64 = u64::MAX;

type Device = *mut c_void;
type Init = unsafe extern "C" fn() -> c_int;
type ByBus = unsafe extern "C" fn(*const c_char, *mut Device) -> c_int;
type Running = unsafe extern "C" fn(Device, *mut c_uint, *mut Process) -> c_int;

/// `nvmlProcessInfo_t`, as versions 2 and 3 of the call fill it in.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Process {
    pid: c_uint,
    bytes: u64,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

const _: () = assert!(size_of::<Process>() == 24);

/// Returns the processes with memory on the GPU at this PCI bus id, those that hold most first.
pub(super) fn holders(bus: &CStr) -> Vec<Holder> {
    let Some(library) = LIBRARY.iter().find_map(|name| {
        // SAFETY: when it is loaded, NVIDIA's library only initialises itself.
        unsafe { Library::new(*name) }.ok()
    }) else {
        return Vec::new();
    };
    let mut found = processes(&library, bus).unwrap_or_default();
    found.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
    found
}

fn processes(library: &Library, bus: &CStr) -> Option<Vec<Holder>> {
    // SAFETY: the library's functions have these signatures under these names; the symbols live no longer than the library.
    let (init, shutdown, by_bus, running) = unsafe {
        (
            *library.get::<Init>("nvmlInit_v2").ok()?,
            *library.get::<Init>("nvmlShutdown").ok()?,
            *library.get::<ByBus>("nvmlDeviceGetHandleByPciBusId_v2").ok()?,
            *library.get::<Running>("nvmlDeviceGetComputeRunningProcesses_v3").ok()?,
        )
    };
    // SAFETY: takes nothing; a successful start is followed by `shutdown` below.
    if unsafe { init() } != 0 {
        return None;
    }
    let mut device = null_mut();
    let mut all = [Process::default(); MAX_PROCESSES];
    let mut count = MAX_PROCESSES as c_uint;
    // SAFETY: `bus` is a string; one handle is written, then at most `count` entries and their number.
    let answered =
        unsafe { by_bus(bus.as_ptr(), &mut device) == 0 && running(device, &mut count, all.as_mut_ptr()) == 0 };
    // SAFETY: takes nothing; the library was started above.
    unsafe { shutdown() };
    let holder = |process: &Process| Holder {
        pid: process.pid,
        name: name(process.pid),
        bytes: (process.bytes != UNKNOWN).then_some(process.bytes),
    };
    answered.then(|| all.iter().take(count as usize).map(holder).collect())
}

fn name(pid: c_uint) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|name| name.trim_end().to_owned())
}
