//! A *gang*: all threads of a launch share one instance's memory, and each has globals, tables and a stack of its own.
//!
//! ```text
//!             ┌ a multiple of the region's size, which is a power of two
//!             ▼
//! region      Record │ slot of thread 0 │ slot of thread 1 │ … │ hot words, those of all threads side by side
//! memory      image, `image_bytes` long │ stack of thread 0 │ stack of thread 1 │ … │ guard
//! ```
//!
//! Nothing in it changes its size while it is there, so all places and lengths are constants of the compiled code: the memory begins where the region ends, and
//! both are found from the instance pointer (a thread's slot) by its upper bits. The image is the gang's whole state: slots and stacks are made anew by each launch.
//!
//! [`DeviceCall`] is what a gang's module imports from [`MODULE`]: operations of the device, an instruction or two each.

use crate::intrinsic::Type;
use core::mem::offset_of;

/// What a region begins with: what all threads have in common.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Record {
    /// The first [`crate::TrapRecord`], packed: 0 while no thread trapped.
    pub trap: u64,
    /// The slot of the thread it is from: a device address.
    pub trapped: u64,
    /// Device address of the bus: memory that host and device both see.
    pub bus: u64,
    /// Nothing else is in the stop word's cache line: who looks at it must not find what was there when another word was read.
    reserved: [u64; 13],
    /// The stop word: not 0 means "end now". Set by the host, and by a thread that traps.
    pub stop: u64,
}

/// Bytes set aside for it at least: the place of a slot.
pub const RECORD_BYTES: u64 = 256;

const _: () = assert!(size_of::<Record>() as u64 <= RECORD_BYTES && offset::STOP == 128);

impl Record {
    pub fn new(bus: u64) -> Self {
        Self { bus, ..Self::default() }
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
}

/// Bytes of memory that the threads of a workgroup share, and no other thread sees.
pub const WORKGROUP_BYTES: u64 = 32 << 10;

/// The module that the device's operations are imported from.
pub const MODULE: &str = "gpu";

macro_rules! device_calls {
    ($($(#[$doc:meta])* $name:ident ($($param:ident : $ty:ident),*) $(-> $result:ident)? ;)*) => {
        /// An operation of the device that a gang's module imports by this name.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DeviceCall { $($(#[$doc])* $name),* }

        impl DeviceCall {
            pub const ALL: &[DeviceCall] = &[$(DeviceCall::$name),*];

            pub const fn name(self) -> &'static str {
                match self { $(DeviceCall::$name => stringify!($name)),* }
            }
            /// Parameter and result types.
            pub const fn signature(self) -> (&'static [Type], &'static [Type]) {
                match self { $(DeviceCall::$name => (&[$(Type::$ty),*], &[$(Type::$result)?])),* }
            }
            /// What a module means by an import.
            pub fn find(module: &str, name: &str) -> Option<DeviceCall> {
                Self::ALL.iter().copied().find(|call| module == MODULE && call.name() == name)
            }
        }
    };
}

device_calls! {
    /// The thread's number in its workgroup.
    thread() -> I32;
    /// Threads in a workgroup.
    threads() -> I32;
    /// The workgroup's number in the grid.
    group() -> I32;
    groups() -> I32;
    /// The thread's number in its warp of 32.
    lane() -> I32;
    /// The multiprocessor it runs on.
    processor() -> I32;
    /// Waits for all threads of the workgroup that have not ended; what they wrote before is seen after. Ends the thread if another one trapped.
    barrier();
    /// Which lanes of the warp have a value that is not 0. All 32 take part, as in the shuffles.
    ballot(value: I32) -> I32;
    /// The value of that lane.
    shuffle(value: I32, lane: I32) -> I32;
    /// The value of the lane `delta` below, or the lane's own where there is none.
    shuffle_up(value: I32, delta: I32) -> I32;
    /// The value of the lane whose number differs in these bits.
    shuffle_xor(value: I32, mask: I32) -> I32;
    /// Nanoseconds, from an unspecified start, the same on the whole device.
    clock() -> I64;
    /// Cycles of the multiprocessor.
    cycles() -> I64;
    /// Gives others the floor for about that long. Ends the thread if it is to stop: a loop that waits for another thread or for the host has to sleep in it.
    sleep(nanoseconds: I32);
    /// Orders what comes before and after for the whole device, in both directions.
    fence();
    /// The same for the host, too.
    fence_system();
    /// A word of the workgroup's own memory, at a multiple of 4 below [`WORKGROUP_BYTES`]; anything else is a trap.
    local_load(offset: I32) -> I32;
    local_store(offset: I32, value: I32);
    /// Adds at once, and gives what was there.
    local_add(offset: I32, value: I32) -> I32;
    /// A word of the bus, at a multiple of 8 inside it, as it is now. Orders nothing: [`DeviceCall::fence_system`] does.
    bus_load(offset: I32) -> I64;
    /// Stores a word of the bus after everything the thread did before.
    bus_store(offset: I32, value: I64);
    /// The same, and orders nothing.
    bus_put(offset: I32, value: I64);
    /// 16 bytes of the bus, at a multiple of 16, in one access: to the guest's memory at `to`, a multiple of 8.
    bus_load2(offset: I32, to: I32);
    /// 16 bytes of the bus in one access: a message and its number arrive together.
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
