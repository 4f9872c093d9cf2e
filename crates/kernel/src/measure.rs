//! Entries for measurements and tests of the heap. They run without a machine beside them, and a kernel that is one does not have them (the feature `measure`).

mod storm;

use crate::gpu::*;
use crate::layout::*;

/// Allocations and frees from all threads at once.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn heap_storm() {
    storm::storm();
}

/// One thread answers one word with another, until it is told to end: what there is between host and device, and nothing else.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn ping_pong() {
    if group() != 0 || thread() != 0 {
        return;
    }
    let mut last = 0;
    loop {
        let word = bus_load(PING_WORD);
        if word == u64::MAX {
            return;
        }
        if word != last {
            bus_put(PONG_WORD, word);
            last = word;
        } else if bus_load(CONTROL + C_SLEEP * 8) != 0 {
            sleep(bus_load(CONTROL + C_SLEEP * 8) as u32);
        }
    }
}
