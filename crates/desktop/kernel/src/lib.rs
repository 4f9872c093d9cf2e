//! The desktop: a windowing system that lives in the GPU, as a kernel of the resident machine.
//!
//! A tick is a frame: `state = f(state, events)`, and the frame buffer follows from the state. The machine's own supervisor, rings and
//! collective operations (`gpu-run-kernel`) do what they do for the machine; the phases are the desktop's.
//!
//! ```text
//! input ─▶ hit test ─▶ dispatch ─▶ layout ─▶ order ─▶ geometry ─▶ raster ─▶ frame end
//! ```

#![cfg_attr(target_arch = "wasm32", no_std)]

pub mod animation;
pub mod area;
pub mod bar;
pub mod canvas;
pub mod caret;
pub mod dispatch;
pub mod draw;
pub mod event;
pub mod field;
pub mod flex;
mod flex_items;
pub mod font;
pub mod frame;
pub mod frame_end;
pub mod geometry;
pub mod glyphs;
pub mod hit_test;
pub mod icons;
pub mod input;
pub mod item;
pub mod keyboard;
pub mod layout;
pub mod lines;
pub mod list;
pub mod lists;
pub mod math;
pub mod memory;
pub mod menu;
pub mod order;
pub mod overlay;
pub mod paint;
pub mod plot;
pub mod raster;
pub mod rows;
pub mod runs;
pub mod scroll;
pub mod shapes;
pub mod tabs;
pub mod text;
pub mod text_heap;
pub mod theme;
pub mod tooltip;
pub mod touch;
pub mod tree;
pub mod window;

use gpu_run_kernel::gpu;
/// The machine's memory ends here, and the desktop's begins.
pub(crate) use gpu_run_kernel::layout::MEMORY_BYTES as MACHINE_BYTES;

/// What this kernel was built with. The host reads it before it loads the kernel: the machine's versions, then what is the desktop's own.
#[cfg(target_arch = "wasm32")]
#[used]
#[unsafe(link_section = "gpu-run-machine")]
static BUILT_WITH: [u32; 7] = [
    gpu_run_kernel::layout::VERSION,
    gpu_run_kernel::layout::INTERFACE,
    memory::MAGIC,
    memory::VERSION,
    memory::ROOM,
    memory::ROOM_END,
    memory::DESKTOP_BYTES,
];

/// Initializes an empty state. The memory must be zero.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn boot() {
    gpu_run_kernel::tick::boot();
    if gpu::group() == 0 && gpu::thread() == 0 {
        frame::boot();
    }
}

/// Runs frames until the host asks the launch to leave, or until its limit of time or of ticks is reached.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn run() {
    let workers = gpu::groups() - 1;
    if gpu::group() < workers {
        gpu_run_kernel::tick::work(workers, frame::tick);
    } else if gpu::thread() < gpu::WARP {
        gpu_run_kernel::supervisor::supervise();
    }
}
