//! The resident machine: a kernel that is launched once, owns its state, and exchanges events with the host only
//! through memory.
//!
//! All threads of all workgroups but the last are *workers*. They run ticks, each of which computes
//! `state = f(state, events)` in phases that are built from the collective operations in [`team`]. The first warp of the
//! last workgroup is the *supervisor* ([`supervisor`]): it watches the bus and the clock, and starts each tick. A launch
//! calls its entry function on every thread.
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

/// The versions that this kernel was built with. The host reads them before it loads the kernel ([`layout::SECTION`]).
#[cfg(all(target_arch = "wasm32", feature = "machine"))]
#[used]
#[unsafe(link_section = "gpu-run-machine")]
static BUILT_WITH: [u32; 2] = [layout::VERSION, layout::INTERFACE];

#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// Initializes an empty state. The memory must be zero.
#[cfg_attr(all(target_arch = "wasm32", feature = "machine"), unsafe(no_mangle))]
pub extern "C" fn boot() {
    tick::boot();
}

/// Runs ticks until the host asks the launch to leave, or until its limit of time or of ticks is reached.
#[cfg_attr(all(target_arch = "wasm32", feature = "machine"), unsafe(no_mangle))]
pub extern "C" fn run() {
    let workers = gpu::groups() - 1;
    if gpu::group() < workers {
        tick::work(workers, tick::tick);
    } else if gpu::thread() < gpu::WARP {
        supervisor::supervise();
    }
}
