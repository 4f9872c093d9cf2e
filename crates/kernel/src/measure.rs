//! Entries for measurements and for tests of the heap. They run without a machine; only a kernel built with the feature
//! `measure` has them.

mod storm;

use crate::gpu::*;
use crate::layout::*;

/// Allocates and frees on all threads at once.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn heap_storm() {
    storm::storm();
}

/// One thread copies each new ping word to the pong word, until the ping word is all ones. This measures the way between
/// host and device, and nothing else.
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
