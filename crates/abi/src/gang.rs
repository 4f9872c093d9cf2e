//! A *gang*: all threads of a launch share one instance's memory, and each thread has globals, tables and a stack of
//! its own.
//!
//! ```text
//!             ┌ a multiple of the region's size, which is a power of two
//!             ▼
//! region      Record │ slot of thread 0 │ slot of thread 1 │ … │ hot words, those of all threads side by side
//! memory      image, `image_bytes` long │ stack of thread 0 │ stack of thread 1 │ … │ guard
//! ```
//!
//! Nothing in a gang changes its size, so all offsets and lengths are constants of the compiled code: the memory begins
//! where the region ends, and the upper bits of the instance pointer (a thread's slot) lead to both. The image is the
//! gang's whole state: each launch makes slots and stacks anew.
//!
//! [`DeviceCall`] lists what a gang's module imports from [`MODULE`]: operations of the device, an instruction or two
//! each.

use crate::intrinsic::Type;
use core::mem::offset_of;

/// The head of a region: what all threads have in common.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Record {
    /// The first [`crate::TrapRecord`], packed: 0 while no thread trapped.
    pub trap: u64,
    /// Device address of the slot of the thread that wrote `trap`.
    pub trapped: u64,
    /// Device address of the bus: memory that host and device both see.
    pub bus: u64,
    /// Device address of host-visible memory that gets a copy of `trap` and `trapped`, so that the host need not copy
    /// them from the device.
    pub report: u64,
    /// Keeps the stop word alone in its cache line: a thread that polls it must not find a stale line that was loaded
    /// for another word.
    reserved: [u64; 12],
    /// The stop word: not 0 means "stop now". Set by the host, and by a thread that traps.
    pub stop: u64,
}

/// The least bytes set aside for the record, which takes the place of one slot.
pub const RECORD_BYTES: u64 = 256;

const _: () = assert!(size_of::<Record>() as u64 <= RECORD_BYTES && offset::STOP == 128);

impl Record {
    pub fn new(bus: u64, report: u64) -> Self {
        Self { bus, report, ..Self::default() }
    }

    pub fn bytes(&self) -> &[u8] {
        bytemuck::bytes_of(self)
    }
}

pub mod offset {
    use super::*;
    pub const TRAP: u64 = offset_of!(Record, trap) as u64;
    pub const TRAPPED: u64 = offset_of!(Record, trapped) as u64;
    pub const STOP: u64 = offset_of!(Record, stop) as u64;
    pub const BUS: u64 = offset_of!(Record, bus) as u64;
    pub const REPORT: u64 = offset_of!(Record, report) as u64;
}

/// Bytes of the memory that only the threads of one workgroup share.
pub const WORKGROUP_BYTES: u64 = 32 << 10;

/// The module name that the device's operations are imported from.
pub const MODULE: &str = "gpu";

macro_rules! device_calls {
    ($($(#[$doc:meta])* $name:ident ($($param:ident : $ty:ident),*) $(-> $result:ident)? ;)*) => {
        /// An operation of the device, which a gang's module imports by the variant's name.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DeviceCall { $($(#[$doc])* $name),* }

        impl DeviceCall {
            pub const ALL: &[DeviceCall] = &[$(DeviceCall::$name),*];

            pub const fn name(self) -> &'static str {
                match self { $(DeviceCall::$name => stringify!($name)),* }
            }
            /// Returns the parameter and result types.
            pub const fn signature(self) -> (&'static [Type], &'static [Type]) {
                match self { $(DeviceCall::$name => (&[$(Type::$ty),*], &[$(Type::$result)?])),* }
            }
            /// Returns the operation that an import names.
            pub fn find(module: &str, name: &str) -> Option<DeviceCall> {
                Self::ALL.iter().copied().find(|call| module == MODULE && call.name() == name)
            }
        }
    };
}

device_calls! {
    /// Returns the thread's number in its workgroup.
    thread() -> I32;
    /// Returns the number of threads in a workgroup.
    threads() -> I32;
    /// Returns the workgroup's number in the grid.
    group() -> I32;
    /// Returns the number of workgroups.
    groups() -> I32;
    /// Returns the thread's number in its warp of 32.
    lane() -> I32;
    /// Returns the multiprocessor that the thread runs on.
    processor() -> I32;
    /// Waits for all threads of the workgroup that have not exited; what they wrote before the barrier is visible after
    /// it. Stops the thread if another one trapped.
    barrier();
    /// Returns which lanes of the warp have a value other than 0. All 32 lanes take part, as in the shuffles.
    ballot(value: I32) -> I32;
    /// Returns that lane's value.
    shuffle(value: I32, lane: I32) -> I32;
    /// Returns the value of the lane `delta` below, or the lane's own where there is no such lane.
    shuffle_up(value: I32, delta: I32) -> I32;
    /// Returns the value of the lane whose number differs in the bits of `mask`.
    shuffle_xor(value: I32, mask: I32) -> I32;
    /// Returns nanoseconds from an unspecified start, the same on the whole device.
    clock() -> I64;
    /// Returns the multiprocessor's cycle counter.
    cycles() -> I64;
    /// Sleeps about that long, so that other threads can run. Stops the thread if the stop word is set: a loop that
    /// waits for another thread or for the host must call this.
    sleep(nanoseconds: I32);
    /// Orders accesses before and after it for the whole device, in both directions.
    fence();
    /// Like [`DeviceCall::fence`], and for the host as well.
    fence_system();
    /// Returns a word of the workgroup's own memory, at a multiple of 4 below [`WORKGROUP_BYTES`]; any other offset
    /// traps.
    local_load(offset: I32) -> I32;
    local_store(offset: I32, value: I32);
    /// Adds atomically, and returns the old value.
    local_add(offset: I32, value: I32) -> I32;
    /// Returns the current value of a word of the bus, at a multiple of 8 inside the bus. Orders nothing:
    /// [`DeviceCall::fence_system`] does.
    bus_load(offset: I32) -> I64;
    /// Stores a word of the bus after everything that the thread did before.
    bus_store(offset: I32, value: I64);
    /// Like [`DeviceCall::bus_store`], but orders nothing.
    bus_put(offset: I32, value: I64);
    /// Loads 16 bytes of the bus, at a multiple of 16, in one access, and stores them in guest memory at `to`, a
    /// multiple of 8.
    bus_load2(offset: I32, to: I32);
    /// Stores 16 bytes of the bus in one access: a message and its number arrive together.
    bus_put2(offset: I32, first: I64, second: I64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_by_their_import_names() {
        assert_eq!(DeviceCall::find("gpu", "shuffle_xor"), Some(DeviceCall::shuffle_xor));
        assert_eq!(DeviceCall::find("env", "thread"), None);
        assert_eq!(DeviceCall::find("gpu", "thrad"), None);
    }
}
