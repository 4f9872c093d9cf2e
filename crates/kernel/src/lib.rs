//! The resident machine: a kernel that is launched once, owns its state, and is talked to through memory.
//!
//! All threads of all groups but the last are *workers*: they do ticks, each of them `state = f(state, events)`, in phases made of the helpers in
//! [`team`]. One warp of the last group is the *supervisor* ([`supervisor`]): it watches the bus and the clock, and says when the next tick begins. Every entry is run by
//! every thread.
//!
//! ```text
//! host ─▶ ring ─▶ supervisor ─▶ staged ─▶ input ─▶ objects ─▶ timers ─▶ work ─▶ frame end ─▶ ring ─▶ host
//! ```

#![cfg_attr(target_arch = "wasm32", no_std)]

pub mod debug;
pub mod event;
#[cfg(feature = "faults")]
mod faults;
pub mod frame;
pub mod gpu;
pub mod heap;
pub mod input;
pub mod layout;
#[cfg(any(feature = "measure", not(target_arch = "wasm32")))]
pub mod measure;
pub mod objects;
pub mod supervisor;
#[path = "../../abi/src/tagged.rs"]
pub mod tagged;
pub mod team;
pub mod tick;
pub mod timers;
pub mod work;

#[cfg(not(target_arch = "wasm32"))]
pub mod twin;

/// What this was built with, for whoever is to load it ([`layout::SECTION`]).
#[cfg(target_arch = "wasm32")]
#[used]
#[unsafe(link_section = "gpu-run-machine")]
static BUILT_WITH: [u32; 2] = [layout::VERSION, layout::INTERFACE];

#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// Makes a state with nothing in it; memory is zeroed.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn boot() {
    tick::boot();
}

/// Ticks, until the host or the time says otherwise.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn run() {
    let workers = gpu::groups() - 1;
    if gpu::group() < workers {
        tick::work(workers);
    } else if gpu::thread() < gpu::WARP {
        supervisor::supervise();
    }
}
