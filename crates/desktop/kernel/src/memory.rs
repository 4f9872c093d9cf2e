//! The desktop's memory: its layout ([`map`]), and access to the fields of widgets.

mod map;

pub use map::*;

use gpu_run_kernel::gpu::{and, load, or, store};

#[inline(always)]
pub fn get(field: u32, widget: u32) -> u32 {
    load(field + widget * 4)
}
#[inline(always)]
pub fn set(field: u32, widget: u32, value: u32) {
    store(field + widget * 4, value);
}
#[inline(always)]
pub fn getf(field: u32, widget: u32) -> f32 {
    f32::from_bits(get(field, widget))
}
#[inline(always)]
pub fn setf(field: u32, widget: u32, value: f32) {
    set(field, widget, value.to_bits());
}
#[inline(always)]
pub fn has(widget: u32, flag: u32) -> bool {
    get(W_FLAGS, widget) & flag != 0
}
/// Sets bits of `W_FLAGS`. Several lanes may do so at the same time.
#[inline(always)]
pub fn mark(widget: u32, flags: u32) {
    if get(W_FLAGS, widget) & flags != flags {
        or(W_FLAGS + widget * 4, flags);
    }
}
#[inline(always)]
pub fn unmark(widget: u32, flags: u32) {
    if get(W_FLAGS, widget) & flags != 0 {
        and(W_FLAGS + widget * 4, !flags);
    }
}
