//! A `libcuda.so.1` that knows how to say what it is, and nothing else: the command line's test `devices` compiles it and puts it
//! in the real one's place. `FAKE_VERSION`, `FAKE_GPUS` and `FAKE_SM` say what it pretends to be; `FAKE_SM=90,61` are two cards.
//!
//! What is unsafe here is writing to where a caller points; `cuda.h` says that the pointer is to one value, or to a name's room.
#![allow(non_snake_case)]

use std::ffi::{c_char, c_int, c_uint, c_void};

fn number(variable: &str) -> c_int {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// # Safety
/// `to` points to one `int`.
unsafe fn put(to: *mut c_int, value: c_int) -> c_uint {
    // SAFETY: the caller's.
    unsafe { to.write(value) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(_: c_uint) -> c_uint {
    0
}
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_uint {
    // SAFETY: as `cuda.h` says.
    unsafe { put(version, number("FAKE_VERSION")) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_uint {
    // SAFETY: as `cuda.h` says.
    unsafe { put(count, number("FAKE_GPUS")) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_uint {
    // SAFETY: as `cuda.h` says.
    unsafe { put(device, ordinal) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, _: c_int, _: c_int) -> c_uint {
    // SAFETY: as `cuda.h` says; there is room for 256 bytes.
    unsafe { name.copy_from(c"Test card".as_ptr(), 10) };
    0
}
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> c_uint {
    let all = std::env::var("FAKE_SM").unwrap_or_default();
    let of = |text: Option<&str>| text.and_then(|text| text.parse().ok());
    // The last one stands for all cards behind it.
    let sm: c_int = of(all.split(',').nth(device as usize)).or_else(|| of(all.split(',').next_back())).unwrap_or(0);
    // SAFETY: as `cuda.h` says.
    unsafe {
        put(
            value,
            match attribute {
                75 => sm / 10,
                76 => sm % 10,
                _ => 1024,
            },
        )
    }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, _: c_int) -> c_uint {
    // SAFETY: as `cuda.h` says.
    unsafe { bytes.write(8 << 30) };
    0
}
#[unsafe(no_mangle)]
extern "C" fn cuGetErrorName(_: c_uint, _: *mut *const c_char) -> c_uint {
    1
}
#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(_: c_uint, _: *mut *const c_char) -> c_uint {
    1
}

/// Everything else fails.
macro_rules! absent {
    ($($name:ident)*) => { $(#[unsafe(no_mangle)] extern "C" fn $name(_: *mut c_void) -> c_uint { 999 })* };
}

absent! {
    cuCtxCreate_v2 cuCtxDestroy_v2 cuCtxSetCurrent cuCtxSetLimit
    cuDeviceGetPCIBusId cuMemGetInfo_v2 cuMemAlloc_v2 cuMemFree_v2 cuMemsetD8Async cuMemsetD2D32Async cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2
    cuMemHostAlloc cuMemHostGetDevicePointer_v2 cuMemFreeHost
    cuLinkCreate_v2 cuLinkAddData_v2 cuLinkComplete cuLinkDestroy
    cuModuleLoadData cuModuleUnload cuModuleGetFunction cuFuncGetAttribute
    cuOccupancyMaxActiveBlocksPerMultiprocessor cuEventCreate cuEventDestroy_v2 cuEventRecord cuEventQuery
    cuStreamCreate cuStreamDestroy_v2 cuStreamQuery cuStreamSynchronize cuLaunchKernel
}
