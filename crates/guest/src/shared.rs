//! A buffer that all instances share, for counts, sums and the like.
//!
//! All instances that `gpu-run` runs share one buffer, which is zero at first. It has 64 KiB, or what `--shared-buffer` says. Its
//! values are numbered as in an array of [`U32`] or of [`U64`]; both lie in the same bytes. Under `gpu-run map`, there is a buffer
//! only with `--shared-buffer`, and only records that run at the same time surely share it. Outside gpu-run, the one instance has
//! a buffer of 64 KiB.
//!
//! An operation is atomic, and orders nothing but itself, like `Relaxed` ones of [`std::sync::atomic`]. [`fence`] orders the others.
//!
//! ```
//! use gpu_run_guest::{instances, shared};
//!
//! // Everybody adds to the sum; the last one prints it.
//! let (sum, ended) = (shared::U64::new(0), shared::U32::new(2));
//! sum.add(5);
//! shared::fence();
//! if u64::from(ended.add(1)) + 1 == instances().unwrap_or(1) {
//!     shared::fence();
//!     println!("the sum is {}", sum.load());
//! }
//! # assert_eq!(sum.load(), 5);
//! ```
//!
//! # Instances that begin again
//!
//! gpu-run gives an instance little memory and stack at first. One that needs more is begun again with more, and what it did to
//! the buffer before is done twice. So use the buffer when the instance has the memory it needs: at the end, when results are
//! there, for instance. Instances that wait for each other wait forever, because they need not run at the same time.
//!
//! # Errors
//!
//! A value that is not inside the buffer is a panic.

use crate::device;

/// Returns the bytes of the buffer.
///
/// ```
/// assert!(gpu_run_guest::shared::bytes() >= 1024);
/// ```
#[must_use]
#[inline]
pub fn bytes() -> usize {
    device::shared_bytes() as usize
}

/// Orders this instance's operations before the fence and after it, for all instances of the device.
///
/// ```
/// use gpu_run_guest::shared::{U32, fence};
///
/// // Whoever finds the second value finds the first one, too, after a fence of its own.
/// U32::new(0).store(42);
/// fence();
/// U32::new(1).store(1);
/// ```
#[inline]
pub fn fence() {
    device::fence();
}

macro_rules! values {
    ($name:ident, $ty:ty, $size:literal, $what:literal, $load:ident, $store:ident, $add:ident, $min:ident, $max:ident, $and:ident, $or:ident, $xor:ident, $exchange:ident, $compare_exchange:ident) => {
        #[doc = concat!("A ", $what, " of the shared buffer.")]
        ///
        /// ```
        #[doc = concat!("let count = gpu_run_guest::shared::", stringify!($name), "::new(3);")]
        /// assert_eq!(count.add(2), 0);
        /// assert_eq!(count.load(), 2);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            at: u32,
        }

        #[allow(clippy::should_implement_trait)] // `add` changes a value in memory, as an atomic's `fetch_add` does
        impl $name {
            #[doc = concat!("Returns the value number `index`, at byte ", stringify!($size), " · `index` of the buffer.")]
            ///
            /// # Panics
            ///
            /// if the buffer ends before.
            ///
            /// ```
            #[doc = concat!("let last = gpu_run_guest::shared::bytes() / ", stringify!($size), " - 1;")]
            #[doc = concat!("let value = gpu_run_guest::shared::", stringify!($name), "::new(last);")]
            /// ```
            #[must_use]
            #[inline]
            pub fn new(index: usize) -> Self {
                let (bytes, size) = (bytes(), $size);
                assert!(index < bytes / size, "value {index} is not in the shared buffer, which has {bytes} bytes");
                Self { at: (index * size) as u32 }
            }

            /// Returns the value.
            ///
            /// ```
            #[doc = concat!("assert_eq!(gpu_run_guest::shared::", stringify!($name), "::new(0).load(), 0);")]
            /// ```
            #[must_use]
            #[inline]
            pub fn load(self) -> $ty {
                device::$load(self.at)
            }

            /// Sets the value.
            ///
            /// ```
            #[doc = concat!("let value = gpu_run_guest::shared::", stringify!($name), "::new(0);")]
            /// value.store(7);
            /// assert_eq!(value.load(), 7);
            /// ```
            #[inline]
            pub fn store(self, value: $ty) {
                device::$store(self.at, value);
            }

            /// Adds to the value; the sum wraps around. Returns the old value.
            ///
            /// ```
            /// // Everybody gets a number of their own.
            #[doc = concat!("let number = gpu_run_guest::shared::", stringify!($name), "::new(0).add(1);")]
            /// # assert_eq!(number, 0);
            /// ```
            #[inline]
            pub fn add(self, by: $ty) -> $ty {
                device::$add(self.at, by)
            }

            /// Sets the value to the smaller of it and `other`. Returns the old value.
            ///
            /// ```
            #[doc = concat!("let least = gpu_run_guest::shared::", stringify!($name), "::new(0);")]
            /// least.store(9);
            /// assert_eq!(least.min(4), 9);
            /// assert_eq!(least.load(), 4);
            /// ```
            #[inline]
            pub fn min(self, other: $ty) -> $ty {
                device::$min(self.at, other)
            }

            /// Sets the value to the larger of it and `other`. Returns the old value.
            ///
            /// ```
            #[doc = concat!("let most = gpu_run_guest::shared::", stringify!($name), "::new(0);")]
            /// assert_eq!(most.max(4), 0);
            /// assert_eq!(most.load(), 4);
            /// ```
            #[inline]
            pub fn max(self, other: $ty) -> $ty {
                device::$max(self.at, other)
            }

            /// Keeps the bits that are set in `other`, too. Returns the old value.
            ///
            /// ```
            #[doc = concat!("let bits = gpu_run_guest::shared::", stringify!($name), "::new(0);")]
            /// bits.store(0b0110);
            /// assert_eq!(bits.and(0b0011), 0b0110);
            /// assert_eq!(bits.load(), 0b0010);
            /// ```
            #[inline]
            pub fn and(self, other: $ty) -> $ty {
                device::$and(self.at, other)
            }

            /// Sets the bits that are set in `other`. Returns the old value.
            ///
            /// ```
            #[doc = concat!("let bits = gpu_run_guest::shared::", stringify!($name), "::new(0);")]
            /// bits.or(0b0110);
            /// assert_eq!(bits.or(0b0011), 0b0110);
            /// assert_eq!(bits.load(), 0b0111);
            /// ```
            #[inline]
            pub fn or(self, other: $ty) -> $ty {
                device::$or(self.at, other)
            }

            /// Flips the bits that are set in `other`. Returns the old value.
            ///
            /// ```
            #[doc = concat!("let bits = gpu_run_guest::shared::", stringify!($name), "::new(0);")]
            /// bits.xor(0b0110);
            /// assert_eq!(bits.xor(0b0011), 0b0110);
            /// assert_eq!(bits.load(), 0b0101);
            /// ```
            #[inline]
            pub fn xor(self, other: $ty) -> $ty {
                device::$xor(self.at, other)
            }

            /// Sets the value. Returns the old one.
            ///
            /// ```
            #[doc = concat!("let value = gpu_run_guest::shared::", stringify!($name), "::new(0);")]
            /// assert_eq!(value.swap(3), 0);
            /// assert_eq!(value.swap(4), 3);
            /// ```
            #[inline]
            pub fn swap(self, value: $ty) -> $ty {
                device::$exchange(self.at, value)
            }

            /// Sets the value to `new` if it is `current`.
            ///
            /// # Errors
            ///
            /// The value, if it is another one.
            ///
            /// ```
            #[doc = concat!("let value = gpu_run_guest::shared::", stringify!($name), "::new(0);")]
            /// assert_eq!(value.compare_exchange(0, 5), Ok(0));
            /// assert_eq!(value.compare_exchange(0, 6), Err(5));
            /// ```
            #[inline]
            pub fn compare_exchange(self, current: $ty, new: $ty) -> Result<$ty, $ty> {
                let old = device::$compare_exchange(self.at, current, new);
                if old == current { Ok(old) } else { Err(old) }
            }
        }
    };
}

#[rustfmt::skip]
values!(U32, u32, 4, "32-bit value", shared_load_32, shared_store_32, shared_add_32, shared_min_32, shared_max_32,
    shared_and_32, shared_or_32, shared_xor_32, shared_exchange_32, shared_compare_exchange_32);
#[rustfmt::skip]
values!(U64, u64, 8, "64-bit value", shared_load_64, shared_store_64, shared_add_64, shared_min_64, shared_max_64,
    shared_and_64, shared_or_64, shared_xor_64, shared_exchange_64, shared_compare_exchange_64);
