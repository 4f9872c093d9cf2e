//! The operations that gpu-run puts in place of these functions.
//!
//! Each is an ordinary function, exported by a name that gpu-run knows (`abi/src/guest.rs` of gpu-run has the list), with a body
//! that is right where there is one instance. So a program needs nothing that another WASI runtime lacks. The compiler must not
//! look into the bodies, which are not what happens on a device: it may neither copy them into callers, nor conclude anything
//! from their results, nor take two of them for one. So each result passes through a volatile read, at a place of its own. Nor
//! may callers leave out what a body does not use: the device does use it.

#![allow(unsafe_code)] // names of exports, and a volatile read

use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU64, fence as memory_fence};
use std::time::Instant;

/// A place for each function.
static PLACES: [u64; PLACE_COUNT] = [0; PLACE_COUNT];

/// Returns 0, but the compiler does not know.
#[inline(always)]
fn hidden_zero(place: Place) -> u64 {
    // SAFETY: a reference is valid for reads.
    unsafe { std::ptr::read_volatile(&PLACES[place as usize]) }
}

/// A value that has passed through a volatile read.
trait Hidden {
    fn hidden(self, place: Place) -> Self;
}

macro_rules! hidden {
    ($($ty:ty: $value:ident, $zero:ident => $hidden:expr;)*) => {
        $(impl Hidden for $ty {
            #[inline(always)]
            fn hidden(self, place: Place) -> Self {
                let ($value, $zero) = (self, hidden_zero(place));
                $hidden
            }
        })*
    };
}

hidden! {
    u32: value, zero => value ^ zero as u32;
    u64: value, zero => value ^ zero;
    f32: value, zero => f32::from_bits(value.to_bits() ^ zero as u32);
    f64: value, zero => f64::from_bits(value.to_bits() ^ zero);
    (): value, zero => if zero == 0 { value };
}

macro_rules! operations {
    ($($name:ident($($param:ident: $ty:ty),*) $(-> $result:ty)? = $body:expr;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy)]
        enum Place { $($name),* }

        const PLACE_COUNT: usize = [$(Place::$name),*].len();

        $(
            // SAFETY: no other symbol has such a name.
            #[cfg_attr(target_family = "wasm", unsafe(export_name = concat!("gpu-run:", stringify!($name))))]
            #[inline(never)]
            #[allow(unused_variables)] // bodies need not use their parameters
            pub(crate) extern "C" fn $name($($param: $ty),*) $(-> $result)? {
                // Otherwise LLVM drops arguments that the body does not use, where it sees all callers.
                $(let $param = black_box($param);)*
                Hidden::hidden($body, Place::$name)
            }
        )*
    };
}

operations! {
    instance() -> u64 = 0;
    instances() -> u64 = 1;
    thread() -> u32 = 0;
    threads() -> u32 = 1;
    lane() -> u32 = 0;
    active() -> u32 = 1;
    device_time() -> u64 = since_start();
    ballot(value: u32) -> u32 = u32::from(value != 0);
    shuffle(value: u32, lane: u32) -> u32 = value;
    reduce_add(value: u32) -> u32 = value;
    reduce_min(value: u32) -> u32 = value;
    reduce_max(value: u32) -> u32 = value;
    reduce_and(value: u32) -> u32 = value;
    reduce_or(value: u32) -> u32 = value;
    reduce_xor(value: u32) -> u32 = value;
    sin(x: f32) -> f32 = f64::from(x).sin() as f32;
    cos(x: f32) -> f32 = f64::from(x).cos() as f32;
    exp2(x: f32) -> f32 = f64::from(x).exp2() as f32;
    log2(x: f32) -> f32 = f64::from(x).log2() as f32;
    rsqrt(x: f32) -> f32 = f64::from(x).sqrt().recip() as f32;
    shared_bytes() -> u32 = SHARED_BYTES as u32;
    shared_load_32(at: u32) -> u32 = change(at, |now| now);
    shared_store_32(at: u32, value: u32) = _ = change(at, |_| value);
    shared_add_32(at: u32, value: u32) -> u32 = change(at, |now| now.wrapping_add(value));
    shared_min_32(at: u32, value: u32) -> u32 = change(at, |now| now.min(value));
    shared_max_32(at: u32, value: u32) -> u32 = change(at, |now| now.max(value));
    shared_and_32(at: u32, value: u32) -> u32 = change(at, |now| now & value);
    shared_or_32(at: u32, value: u32) -> u32 = change(at, |now| now | value);
    shared_xor_32(at: u32, value: u32) -> u32 = change(at, |now| now ^ value);
    shared_exchange_32(at: u32, value: u32) -> u32 = change(at, |_| value);
    shared_compare_exchange_32(at: u32, expected: u32, new: u32) -> u32 =
        change(at, |now| if now == expected { new } else { now });
    shared_load_64(at: u32) -> u64 = long(at).load(Relaxed);
    shared_store_64(at: u32, value: u64) = long(at).store(value, Relaxed);
    shared_add_64(at: u32, value: u64) -> u64 = long(at).fetch_add(value, Relaxed);
    shared_min_64(at: u32, value: u64) -> u64 = long(at).fetch_min(value, Relaxed);
    shared_max_64(at: u32, value: u64) -> u64 = long(at).fetch_max(value, Relaxed);
    shared_and_64(at: u32, value: u64) -> u64 = long(at).fetch_and(value, Relaxed);
    shared_or_64(at: u32, value: u64) -> u64 = long(at).fetch_or(value, Relaxed);
    shared_xor_64(at: u32, value: u64) -> u64 = long(at).fetch_xor(value, Relaxed);
    shared_exchange_64(at: u32, value: u64) -> u64 = long(at).swap(value, Relaxed);
    shared_compare_exchange_64(at: u32, expected: u64, new: u64) -> u64 =
        either(long(at).compare_exchange(expected, new, Relaxed, Relaxed));
    fence() = memory_fence(SeqCst);
    picture(width: u32, height: u32) -> u32 = 0;
    picture_size() -> u64 = 0;
    pixel(index: u32, rgb: u32) = ();
    time() -> f64 = 0.0;
}

fn since_start() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Bytes of the shared buffer where there is one instance.
const SHARED_BYTES: usize = 64 << 10;

static SHARED: [AtomicU64; SHARED_BYTES / 8] = [const { AtomicU64::new(0) }; SHARED_BYTES / 8];

/// Panics unless a value of `size` bytes is there. Returns the number of the 8 bytes that hold it.
fn place(at: u32, size: usize) -> usize {
    let at = at as usize;
    assert!(at.is_multiple_of(size) && at < SHARED_BYTES, "no {size} bytes of the shared buffer begin at byte {at}");
    at / 8
}

fn long(at: u32) -> &'static AtomicU64 {
    &SHARED[place(at, 8)]
}

/// Changes four of eight bytes. Returns what they were.
fn change(at: u32, change: impl Fn(u32) -> u32) -> u32 {
    let (long, shift) = (&SHARED[place(at, 4)], at % 8 * 8);
    let half = |both: u64| (both >> shift) as u32;
    let changed = |both: u64| both & !(u64::from(u32::MAX) << shift) | u64::from(change(half(both))) << shift;
    let mut both = long.load(Relaxed);
    while let Err(now) = long.compare_exchange_weak(both, changed(both), Relaxed, Relaxed) {
        both = now;
    }
    half(both)
}

fn either<T>(result: Result<T, T>) -> T {
    result.unwrap_or_else(|found| found)
}
