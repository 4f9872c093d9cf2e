//! The desktop, from the host's side: a windowing system that lives in the GPU.
//!
//! The desktop is a kernel of the resident machine (`crates/desktop/kernel`), whose tick is a frame. This crate boots it, posts events
//! to it, and reads its frame buffer. A [`Script`] says what happens in which frame; with it, the desktop runs without a display, and
//! the same script gives the same pixels on every device.

#![cfg_attr(test, allow(clippy::unwrap_used))] // In a test, `unwrap` is an assertion.

pub mod apps;
mod desktop;
pub mod live;
mod overlays;
mod perform;
mod picture;
mod records;
mod script;

/// The events of the desktop: the same source file as the kernel's.
#[path = "../kernel/src/event.rs"]
pub mod event;
/// The layout of the desktop's memory: the same source file as the kernel's.
#[path = "../kernel/src/memory/map.rs"]
pub mod map;

pub use desktop::{Desktop, Error, Options, Result};
pub use live::{Handle, Owners};
pub use overlays::Overlay;
pub use picture::Picture;
pub use records::text;
pub use script::{Script, ScriptError};

/// The machine's memory ends here, and the desktop's begins.
pub(crate) use gpu_run_machine::layout::MEMORY_BYTES as MACHINE_BYTES;

/// The kernel of desktops, prebuilt and kept in the repository.
pub const KERNEL: &[u8] = include_bytes!("../kernel.wasm");

/// The program of the apps that come with the desktop, prebuilt and kept in the repository, and their names.
pub const APPS: &[u8] = include_bytes!("../apps.wasm");
pub const APP_NAMES: [&str; 7] = ["Terminal", "Files", "Editor", "Monitor", "Settings", "Mandelbrot", "Life"];
