//! Messages from the device, for tests: `debug!("free pages {} of {}", a, b)`. Without the feature `debug`, the macro
//! expands to nothing.
//!
//! A message consists of the address and length of its text in the module's memory, and of two numbers. The host has the
//! module, and formats the text.

#[cfg(feature = "debug")]
#[inline(never)]
pub fn say(text: &'static str, a: u32, b: u32) {
    use crate::event::Event;
    use crate::gpu::*;
    use crate::layout::*;
    let index = add(S_DEBUG_HEAD, 1);
    let message = Event {
        kind: thread() as u16,
        flags: group() as u16,
        key: text.as_ptr() as usize as u32,
        a,
        b,
        id: text.len() as u32,
        wait: index,
    };
    crate::frame::send(DEBUG_RING, DEBUG_CAPACITY, index, &message);
}

/// Sends a message with up to two numbers, and with the numbers of the thread and its workgroup.
#[macro_export]
macro_rules! debug {
    ($text:literal) => {
        $crate::debug!($text, 0, 0)
    };
    ($text:literal, $a:expr) => {
        $crate::debug!($text, $a, 0)
    };
    ($text:literal, $a:expr, $b:expr) => {
        #[cfg(feature = "debug")]
        $crate::debug::say($text, $a, $b);
    };
}
