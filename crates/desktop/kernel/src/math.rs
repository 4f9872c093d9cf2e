//! Arithmetic that `core` has no functions for. Only additions, multiplications and conversions, which are the same on every device.

/// The largest whole number that is not above `value`.
#[inline(always)]
pub fn floor(value: f32) -> i32 {
    let whole = value as i32;
    if whole as f32 > value { whole - 1 } else { whole }
}
#[inline(always)]
pub fn ceil(value: f32) -> i32 {
    -floor(-value)
}
/// The nearest whole number; halves go up.
#[inline(always)]
pub fn round(value: f32) -> i32 {
    floor(value + 0.5)
}

/// The smaller of two numbers. `f32::min` also has to care about NaN, which costs a call on `cpu`.
#[inline(always)]
pub fn least(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}
/// The larger of two numbers.
#[inline(always)]
pub fn most(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

#[inline(always)]
pub fn sqrt(value: f32) -> f32 {
    if value <= 0.0 {
        return 0.0;
    }
    let mut inverse = f32::from_bits(0x5F37_59DF - (value.to_bits() >> 1));
    let half = 0.5 * value;
    inverse *= 1.5 - half * inverse * inverse;
    inverse *= 1.5 - half * inverse * inverse;
    inverse *= 1.5 - half * inverse * inverse;
    value * inverse
}

/// From 0 to 1 with a soft start and end.
#[inline(always)]
pub fn ease(t: f32) -> f32 {
    t * t * (3.0 - 2.0 * t)
}
