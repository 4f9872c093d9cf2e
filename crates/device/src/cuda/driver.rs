//! NVIDIA's driver library, found at run time.
//!
//! [`Driver`] is a table: each function that this crate uses is one line with the C signature from `cuda.h`. It becomes
//! a method of the same name, whose errors carry that name and the driver's own words.

#![allow(non_snake_case)] // functions keep their names from `cuda.h`

use crate::{Error, Result};
use libloading::Library;
use std::error::Error as _;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::ptr::null;
use std::sync::OnceLock;

/// Where to look for the library: its name for the loader, and its path on WSL.
const LIBRARY: [&str; 2] = ["libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"];
/// The first driver version that accepts PTX ISA 7.8.
const OLDEST_DRIVER: c_int = 11080;

/// An opaque pointer of the driver: a context, module, function, stream or linker.
pub(super) type Handle = *mut c_void;
/// A device's number in the driver.
pub(super) type Ordinal = c_int;
/// A `CUresult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Code(c_uint);

impl Code {
    pub(super) const SUCCESS: Self = Self(0);
    pub(super) const INVALID_VALUE: Self = Self(1);
    pub(super) const OUT_OF_MEMORY: Self = Self(2);
    const NOT_INITIALIZED: Self = Self(3);
    const NO_DEVICE: Self = Self(100);
    pub(super) const NOT_READY: Self = Self(600);

    /// Whether a kernel or the card faulted. The context is unusable afterwards, and every call returns the same error
    /// again.
    fn is_fault(self) -> bool {
        const ECC_UNCORRECTABLE: c_uint = 214;
        const NVLINK_UNCORRECTABLE: c_uint = 220;
        const CONTAINED: c_uint = 226;
        const ILLEGAL_ADDRESS: c_uint = 700;
        const LAUNCH_TIMEOUT: c_uint = 702;
        const ASSERT: c_uint = 710;
        const HARDWARE_STACK_ERROR: c_uint = 714; // then instruction, alignment, address space, PC
        const LAUNCH_FAILED: c_uint = 719;
        const EXTERNAL_DEVICE: c_uint = 911;
        matches!(
            self.0,
            ECC_UNCORRECTABLE
                | NVLINK_UNCORRECTABLE
                | CONTAINED
                | ILLEGAL_ADDRESS
                | LAUNCH_TIMEOUT
                | ASSERT
                | HARDWARE_STACK_ERROR..=LAUNCH_FAILED | EXTERNAL_DEVICE
        )
    }
}

// Values of `cuda.h`'s enumerations.
pub(super) const MAX_THREADS_PER_BLOCK: c_int = 1;
pub(super) const MULTIPROCESSOR_COUNT: c_int = 16;
pub(super) const MAX_THREADS_PER_MULTIPROCESSOR: c_int = 39;
pub(super) const COMPUTE_CAPABILITY_MAJOR: c_int = 75;
pub(super) const COMPUTE_CAPABILITY_MINOR: c_int = 76;
pub(super) const LIMIT_STACK_SIZE: c_uint = 0;
pub(super) const HOST_PORTABLE: c_uint = 1;
pub(super) const HOST_DEVICEMAP: c_uint = 2;
pub(super) const STREAM_NON_BLOCKING: c_uint = 1;
pub(super) const EVENT_DISABLE_TIMING: c_uint = 2;
pub(super) const FUNCTION_MAX_THREADS_PER_BLOCK: c_int = 0;
pub(super) const FUNCTION_LOCAL_BYTES: c_int = 3;
pub(super) const JIT_MAX_REGISTERS: c_uint = 0;
pub(super) const JIT_ERROR_LOG: c_uint = 5;
pub(super) const JIT_ERROR_LOG_BYTES: c_uint = 6;
pub(super) const JIT_INPUT_PTX: c_uint = 1;

macro_rules! driver {
    ($($name:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {
        pub(super) struct Driver {
            $($name: unsafe extern "system" fn($($ty),*) -> Code,)*
            /// Keeps the functions loaded.
            _library: Library,
        }

        impl Driver {
            fn resolve(library: Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: the library's functions have had these signatures under these names for as long as they
                    // exist; the pointers copied from the symbols live no longer than `_library`.
                    $($name: unsafe { *library.get(stringify!($name))? },)*
                    _library: library,
                })
            }

            $(
                /// # Safety
                /// As `cuda.h` requires: pointers are valid for what the call reads and writes through them, handles
                /// came from this driver and are alive, and the context the call works in is current.
                #[allow(clippy::too_many_arguments, dead_code)] // `words` calls two of them without this check
                pub(super) unsafe fn $name(&self, $($arg: $ty),*) -> Result<(), Failure> {
                    // SAFETY: promised by the caller.
                    self.check(stringify!($name), unsafe { (self.$name)($($arg),*) })
                }
            )*
        }
    };
}

driver! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuGetErrorName(code: Code, name: *mut *const c_char);
    cuGetErrorString(code: Code, words: *mut *const c_char);

    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut Ordinal, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, device: Ordinal);
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: Ordinal);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: Ordinal);
    cuDeviceGetPCIBusId(id: *mut c_char, len: c_int, device: Ordinal);

    cuCtxCreate_v2(context: *mut Handle, flags: c_uint, device: Ordinal);
    cuCtxDestroy_v2(context: Handle);
    cuCtxSetCurrent(context: Handle);
    cuCtxSetLimit(limit: c_uint, value: usize);

    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAlloc_v2(address: *mut u64, bytes: usize);
    cuMemFree_v2(address: u64);
    cuMemsetD8Async(address: u64, byte: u8, bytes: usize, stream: Handle);
    cuMemsetD2D32Async(address: u64, pitch: usize, word: u32, width: usize, height: usize, stream: Handle);
    cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: Handle);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: Handle);
    cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle);
    cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostGetDevicePointer_v2(address: *mut u64, pointer: *mut c_void, flags: c_uint);
    cuMemFreeHost(pointer: *mut c_void);

    cuLinkCreate_v2(count: c_uint, options: *mut c_uint, values: *mut *mut c_void, linker: *mut Handle);
    cuLinkAddData_v2(
        linker: Handle, kind: c_uint, data: *mut c_void, bytes: usize, name: *const c_char,
        count: c_uint, options: *mut c_uint, values: *mut *mut c_void,
    );
    cuLinkComplete(linker: Handle, image: *mut *mut c_void, bytes: *mut usize);
    cuLinkDestroy(linker: Handle);

    cuModuleLoadData(module: *mut Handle, image: *const c_void);
    cuModuleUnload(module: Handle);
    cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char);
    cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: Handle);

    cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: Handle, threads: c_int, shared_bytes: usize);

    cuEventCreate(event: *mut Handle, flags: c_uint);
    cuEventDestroy_v2(event: Handle);
    cuEventRecord(event: Handle, stream: Handle);
    cuEventQuery(event: Handle);

    cuStreamCreate(stream: *mut Handle, flags: c_uint);
    cuStreamDestroy_v2(stream: Handle);
    cuStreamQuery(stream: Handle);
    cuStreamSynchronize(stream: Handle);
    cuLaunchKernel(
        function: Handle, blocks_x: c_uint, blocks_y: c_uint, blocks_z: c_uint,
        threads_x: c_uint, threads_y: c_uint, threads_z: c_uint,
        shared_bytes: c_uint, stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    );
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}

/// A driver call that failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: Code,
    call: &'static str,
    /// `CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered`
    words: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.words, self.call)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure.code {
            code if code.is_fault() => Self::Fault(failure.to_string()),
            // A caller that knows how many bytes it wanted uses [`Failure::taking`] instead.
            Code::OUT_OF_MEMORY => Self::OutOfMemory { wanted: 0 },
            _ => Self::Unavailable(format!("the CUDA driver reports an error: {failure}")),
        }
    }
}

impl Failure {
    /// Converts the failure of a call that takes `wanted` bytes of device memory.
    pub(super) fn taking(self, wanted: u64) -> Error {
        match self.code {
            Code::OUT_OF_MEMORY => Error::OutOfMemory { wanted },
            _ => self.into(),
        }
    }
}

impl Driver {
    /// Returns this machine's driver, initialised.
    pub(super) fn get() -> Result<&'static Self> {
        static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
        DRIVER.get_or_init(Self::open).as_ref().map_err(|message| Error::Unavailable(message.clone()))
    }

    /// Whether the library can be loaded, even if it does not work.
    pub(super) fn is_installed() -> bool {
        library().is_ok()
    }

    fn open() -> Result<Self, String> {
        let driver = Self::resolve(library()?).map_err(|e| format!("the NVIDIA driver is too old for gpu-run: {e}"))?;
        let mut version = 0;
        // SAFETY: writes one `int`.
        unsafe { driver.cuDriverGetVersion(&mut version) }
            .map_err(|e| format!("the NVIDIA driver does not answer: {e}"))?;
        if version < OLDEST_DRIVER {
            let (major, minor) = (version / 1000, version % 1000 / 10);
            return Err(format!(
                "the NVIDIA driver is too old: it supports CUDA {major}.{minor}, but gpu-run needs 11.8 or newer (driver 520)"
            ));
        }
        // SAFETY: takes no pointer; a second initialisation does nothing.
        match unsafe { driver.cuInit(0) } {
            // Without a device the driver is usable: `count` returns 0.
            Err(failure) if failure.code != Code::NO_DEVICE => {
                Err(format!("cannot start the NVIDIA driver: {failure}"))
            }
            _ => Ok(driver),
        }
    }

    /// Returns the number of devices.
    pub(super) fn count(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: writes one `int`.
        match unsafe { self.cuDeviceGetCount(&mut count) } {
            Ok(()) => Ok(count.max(0) as usize),
            // If `cuInit` found no device, the driver counts as not initialised.
            Err(failure) if matches!(failure.code, Code::NO_DEVICE | Code::NOT_INITIALIZED) => Ok(0),
            Err(failure) => Err(failure.into()),
        }
    }

    fn check(&self, call: &'static str, code: Code) -> Result<(), Failure> {
        match code {
            Code::SUCCESS => Ok(()),
            _ => Err(Failure { code, call, words: self.words(code) }),
        }
    }

    fn words(&self, code: Code) -> String {
        if code == Code::NOT_READY {
            return String::new(); // polling produces this code very often, and nobody reads its text
        }
        let (mut name, mut words) = (null(), null());
        // SAFETY: each writes one pointer and needs no context. An unknown code leaves the pointers null.
        unsafe {
            (self.cuGetErrorName)(code, &mut name);
            (self.cuGetErrorString)(code, &mut words);
        }
        // SAFETY: the driver's pointers are null or strings that live as long as the driver.
        match unsafe { (text(name), text(words)) } {
            (Some(name), Some(words)) => format!("{name}: {words}"),
            (Some(name), None) => name,
            _ => format!("error {}", code.0),
        }
    }
}

fn library() -> Result<Library, String> {
    let mut reason = String::new();
    for name in LIBRARY {
        // SAFETY: when it is loaded, NVIDIA's library only initialises itself.
        match unsafe { Library::new(name) } {
            Ok(library) => return Ok(library),
            Err(error) if reason.is_empty() => reason = error.source().map_or(error.to_string(), ToString::to_string),
            Err(_) => {}
        }
    }
    Err(format!("no NVIDIA driver is installed: {reason}"))
}

/// # Safety
/// `string` is null or ends with a zero byte.
unsafe fn text(string: *const c_char) -> Option<String> {
    if string.is_null() {
        return None;
    }
    // SAFETY: promised by the caller.
    Some(unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned())
}
