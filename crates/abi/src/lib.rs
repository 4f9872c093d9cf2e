//! Everything that host and device agree on, written once.
//!
//! Every structure that crosses from one side to the other is described here and nowhere else:
//!
//! - [`layout`]: how an instance lies in device memory
//! - [`build`]: the ways to compile a program
//! - [`launch`]: what a launch gives its instances
//! - [`gang`]: what the threads of a gang share
//! - [`guest`]: what a program asks of the device it runs on
//! - [`trap`]: why an instance stopped
//! - [`bus`]: how an instance calls the host, with [`tagged`] words that show whether they have arrived
//! - [`hostcall`]: which host calls exist, and [`extension`], what they can ask beyond WASI
//! - [`intrinsic`]: which operations of the device a compiled function may name
//!
//! The compiler takes its offsets from these structs; the host uses them as views of shared memory. Nothing here
//! allocates, does I/O or depends on a device.

pub mod build;
pub mod bus;
pub mod extension;
pub mod gang;
pub mod guest;
pub mod hostcall;
pub mod intrinsic;
pub mod launch;
pub mod layout;
pub mod tagged;
pub mod threads;
pub mod trap;

pub use build::{Build, GangSizes, Placement};
pub use launch::Launch;
pub use layout::{Header, Layout};
pub use trap::{Status, TrapCode, TrapRecord};
