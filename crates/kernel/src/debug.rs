//! Messages from the device, for tests: `debug!("free pages {} of {}", a, b)`. Without the feature `debug` nothing of them is left.
//!
//! A message is where its text lies in memory, and two numbers: the host, which has the module, puts them together.

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

/// Says something, with up to two numbers, and which thread it was.
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
