//! What host and device agree on, written once.
//!
//! Everything that crosses from one side to the other is described here and nowhere else: how an instance
//! lies in device memory ([`layout`]) and how it is compiled ([`build`]), what a launch gives its instances ([`launch`]), what threads share that share an instance ([`gang`]), why it stopped ([`trap`]), how it asks the host for something ([`bus`]),
//! which calls there are to ask for ([`hostcall`]), and which operations of the device a compiled
//! function may name ([`intrinsic`]). The compiler takes its offsets from these structs, the host its views.
//!
//! Nothing here allocates, does I/O or depends on a device.

pub mod build;
pub mod bus;
pub mod gang;
pub mod hostcall;
pub mod intrinsic;
pub mod launch;
pub mod layout;
pub mod tagged;
pub mod trap;

pub use build::{Build, GangSizes, Placement};
pub use launch::Launch;
pub use layout::{Header, Layout};
pub use trap::{Status, TrapCode, TrapRecord};
