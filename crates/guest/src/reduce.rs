//! One value of the values of all lanes that make a call together, see [the warp](crate#the-warp).
//!
//! All of these lanes get the same result. If the whole warp is together, it takes five steps, otherwise one for each lane.

use crate::device;

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident = $operation:ident;)*) => {
        $($(#[$doc])*
        #[must_use]
        #[inline]
        pub fn $name(value: u32) -> u32 {
            device::$operation(value)
        })*
    };
}

reductions! {
    /// Returns the sum of all values; it wraps around.
    ///
    /// ```
    /// let left = 3; // what this lane still has to do
    /// if gpu_run_guest::reduce::add(left) == 0 {
    ///     println!("none of the lanes that are here has anything left");
    /// }
    /// ```
    add = reduce_add;
    /// Returns the smallest value.
    ///
    /// ```
    /// assert_eq!(gpu_run_guest::reduce::min(7), 7);
    /// ```
    min = reduce_min;
    /// Returns the largest value.
    ///
    /// ```
    /// assert_eq!(gpu_run_guest::reduce::max(7), 7);
    /// ```
    max = reduce_max;
    /// Returns the bits that are set in all values.
    ///
    /// ```
    /// assert_eq!(gpu_run_guest::reduce::and(0b1100), 0b1100);
    /// ```
    and = reduce_and;
    /// Returns the bits that are set in at least one value.
    ///
    /// ```
    /// assert_eq!(gpu_run_guest::reduce::or(0b1100), 0b1100);
    /// ```
    or = reduce_or;
    /// Returns the bits that are set in an odd number of values.
    ///
    /// ```
    /// assert_eq!(gpu_run_guest::reduce::xor(0b1100), 0b1100);
    /// ```
    xor = reduce_xor;
}
