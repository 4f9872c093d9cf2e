//! What a program asks of the device it runs on, through the crate `gpu-run-guest`.
//!
//! A module that imported these functions would not start under another WASI runtime. So it has each of them itself, with a
//! body that is right where there is one instance, and exports it by the name of [`EXPORT`] and a [`GuestCall`]. gpu-run
//! takes an exported function of that name and of exactly that type for the operation of the device. An operation reaches
//! nothing but the thread's own numbers and the memory that [`crate::Launch`] names.

use crate::intrinsic::Type;

/// The exports' names begin with this.
pub const EXPORT: &str = "gpu-run:";

/// Bytes of a picture before its first pixel: its width and height (u32 each).
pub const PICTURE_HEAD: u64 = 8;
/// Bytes of a pixel: red, green and blue are the third, second and first byte of a u32.
pub const PIXEL: u64 = 4;

/// Answers of [`GuestCall::picture`].
pub mod picture {
    /// Nobody wants a picture.
    pub const UNWANTED: u32 = 0;
    pub const WANTED: u32 = 1;
    /// It has no pixels, more than there is memory for, or more than [`MAX_SIDE`] in a row or column.
    pub const TOO_LARGE: u32 = 2;
    /// One of another size was begun before: [`super::GuestCall::picture_size`].
    pub const ANOTHER: u32 = 3;

    /// The most pixels in a row or column, a power of two: packing a picture takes time for each row, too.
    pub const MAX_SIDE: u32 = 1 << 16;
}

macro_rules! guest_calls {
    ($($(#[$doc:meta])* $name:ident ($($param:ident : $ty:ident),*) $(-> $result:ident)? ;)*) => {
        /// An operation of the device, which a module exports by the variant's name.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum GuestCall { $($(#[$doc])* $name),* }

        impl GuestCall {
            pub const ALL: &[GuestCall] = &[$(GuestCall::$name),*];

            pub const fn name(self) -> &'static str {
                match self { $(GuestCall::$name => stringify!($name)),* }
            }
            /// Returns the parameter and result types.
            pub const fn signature(self) -> (&'static [Type], &'static [Type]) {
                match self { $(GuestCall::$name => (&[$(Type::$ty),*], &[$(Type::$result)?])),* }
            }
            /// Returns the operation that an export names.
            pub fn find(export: &str) -> Option<GuestCall> {
                let name = export.strip_prefix(EXPORT)?;
                Self::ALL.iter().copied().find(|call| call.name() == name)
            }
        }
    };
}

guest_calls! {
    /// Returns the instance's number: what `GPU_RUN_INSTANCE` says unless `--env` sets it.
    instance() -> I64;
    /// Returns how many instances the program was started as; 0 if that is not known, as for records of a stream.
    instances() -> I64;
    /// Returns the thread's number in its program: 0 for the first.
    thread() -> I32;
    /// Returns how many threads the program can have at once.
    threads() -> I32;
    /// Returns the thread's number in its warp.
    lane() -> I32;
    /// Returns which lanes of the warp make this call together: a bit for each.
    active() -> I32;
    /// Returns nanoseconds from an unspecified start, the same on the whole device.
    device_time() -> I64;
    /// Returns which of the lanes that make this call together have a value other than 0.
    ballot(value: I32) -> I32;
    /// Returns the value of another lane that makes this call together with this one, else the thread's own.
    shuffle(value: I32, lane: I32) -> I32;
    /// Return the sum, and so on, of the values of all lanes that make this call together.
    reduce_add(value: I32) -> I32;
    reduce_min(value: I32) -> I32;
    reduce_max(value: I32) -> I32;
    reduce_and(value: I32) -> I32;
    reduce_or(value: I32) -> I32;
    reduce_xor(value: I32) -> I32;
    /// The hardware's approximations.
    sin(x: F32) -> F32;
    cos(x: F32) -> F32;
    exp2(x: F32) -> F32;
    log2(x: F32) -> F32;
    rsqrt(x: F32) -> F32;
    /// Returns the bytes of the buffer that all instances share.
    shared_bytes() -> I32;
    /// Atomic operations on it, at a multiple of the value's size inside it; another offset traps.
    shared_load_32(at: I32) -> I32;
    shared_store_32(at: I32, value: I32);
    shared_add_32(at: I32, value: I32) -> I32;
    shared_min_32(at: I32, value: I32) -> I32;
    shared_max_32(at: I32, value: I32) -> I32;
    shared_and_32(at: I32, value: I32) -> I32;
    shared_or_32(at: I32, value: I32) -> I32;
    shared_xor_32(at: I32, value: I32) -> I32;
    shared_exchange_32(at: I32, value: I32) -> I32;
    shared_compare_exchange_32(at: I32, expected: I32, new: I32) -> I32;
    shared_load_64(at: I32) -> I64;
    shared_store_64(at: I32, value: I64);
    shared_add_64(at: I32, value: I64) -> I64;
    shared_min_64(at: I32, value: I64) -> I64;
    shared_max_64(at: I32, value: I64) -> I64;
    shared_and_64(at: I32, value: I64) -> I64;
    shared_or_64(at: I32, value: I64) -> I64;
    shared_xor_64(at: I32, value: I64) -> I64;
    shared_exchange_64(at: I32, value: I64) -> I64;
    shared_compare_exchange_64(at: I32, expected: I64, new: I64) -> I64;
    /// Orders accesses before and after it for the whole device, in both directions.
    fence();
    /// Says how large the picture is that `--png` writes. Returns one of [`picture`].
    picture(width: I32, height: I32) -> I32;
    /// Returns how large the picture is that was begun: its width, and its height in the upper half.
    picture_size() -> I64;
    /// Stores a pixel, counted from the upper left corner, row by row. One that does not exist is not stored.
    pixel(index: I32, rgb: I32);
    /// Returns the seconds that `--time` names.
    time() -> F64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_by_their_export_names() {
        assert_eq!(GuestCall::find("gpu-run:ballot"), Some(GuestCall::ballot));
        assert_eq!(GuestCall::find("ballot"), None);
        assert_eq!(GuestCall::find("gpu-run:ballots"), None);
    }
}
