//! The hardware's approximations of a few functions, for `f32`.
//!
//! They take an instruction or two; those of [`f32`] are exact to the last bit or nearly, and many times slower on a GPU. Use
//! these for pictures and estimates. How far they are off is NVIDIA's to say: the PTX manual has it for `sin.approx.f32` and the
//! like. gpu-run's `cpu` device, other runtimes, and native programs compute in f64 and round to the nearest f32 instead, so results
//! differ from device to device. [`exp`] and [`log`] are made of [`exp2`] and [`log2`] and a multiplication on every device, and
//! so are off a little more: see there.

use crate::device;
use std::f32::consts::{LN_2, LOG2_E};

/// Returns about the sine of `x`, in radians. The farther `x` is from 0, the less it
/// means: bring it between −π and π first.
///
/// ```
/// assert!((gpu_run_guest::fast::sin(1.0) - 1.0f32.sin()).abs() < 1e-5);
/// ```
#[must_use]
#[inline]
pub fn sin(x: f32) -> f32 {
    device::sin(x)
}

/// Returns about the cosine of `x`, in radians; see [`sin`].
///
/// ```
/// assert!((gpu_run_guest::fast::cos(1.0) - 1.0f32.cos()).abs() < 1e-5);
/// ```
#[must_use]
#[inline]
pub fn cos(x: f32) -> f32 {
    device::cos(x)
}

/// Returns about e to the power of `x`: 2 to the power of `x` · log₂ e. Where [`exp2`] is exact, the relative error is at most
/// (1.3 · |`x`| + 1) · 2⁻²⁴, for `x` = 10 less than a millionth.
///
/// ```
/// assert!((gpu_run_guest::fast::exp(1.0) - std::f32::consts::E).abs() < 1e-5);
/// ```
#[must_use]
#[inline]
pub fn exp(x: f32) -> f32 {
    exp2(x * LOG2_E)
}

/// Returns about 2 to the power of `x`.
///
/// ```
/// assert!((gpu_run_guest::fast::exp2(0.5) - std::f32::consts::SQRT_2).abs() < 1e-5);
/// ```
#[must_use]
#[inline]
pub fn exp2(x: f32) -> f32 {
    device::exp2(x)
}

/// Returns about the natural logarithm of `x`: log₂ `x` · ln 2. Where [`log2`] is exact, the relative error is at most 2.1 · 2⁻²⁴.
///
/// ```
/// assert!((gpu_run_guest::fast::log(10.0) - std::f32::consts::LN_10).abs() < 1e-5);
/// ```
#[must_use]
#[inline]
pub fn log(x: f32) -> f32 {
    log2(x) * LN_2
}

/// Returns about the logarithm of `x` to the base 2.
///
/// ```
/// assert!((gpu_run_guest::fast::log2(8.0) - 3.0).abs() < 1e-5);
/// ```
#[must_use]
#[inline]
pub fn log2(x: f32) -> f32 {
    device::log2(x)
}

/// Returns about 1 / √`x`.
///
/// ```
/// // The direction of a vector.
/// let (x, y) = (3.0f32, 4.0f32);
/// let scale = gpu_run_guest::fast::rsqrt(x * x + y * y);
/// assert!((x * scale - 0.6).abs() < 1e-5 && (y * scale - 0.8).abs() < 1e-5);
/// ```
#[must_use]
#[inline]
pub fn rsqrt(x: f32) -> f32 {
    device::rsqrt(x)
}
