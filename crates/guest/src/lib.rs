//! For programs that know they run on a GPU.
//!
//! gpu-run runs ordinary Rust programs, compiled for `wasm32-wasip1`, on a GPU. Most of them
//! need nothing of this crate. A program that wants to know which of many instances it is, to share results with the others, or
//! to draw a picture with them, finds the functions here. On the device, each is one instruction or a few.
//!
//! ```
//! let (me, all) = (gpu_run_guest::instance(), gpu_run_guest::instances().unwrap_or(1));
//! let sum: u64 = (me..1_000_000).step_by(all as usize).sum();
//! gpu_run_guest::shared::U64::new(0).add(sum);
//! ```
//!
//! ```text
//! gpu-run --instances 4096 app.wasm
//! ```
//!
//! # Without gpu-run
//!
//! The same program runs under any other WASI runtime, and natively: as one instance, with one thread, in a warp with one lane.
//! The crate imports nothing that is not WASI, so there is nothing that a runtime could lack.
//!
//! # What is what
//!
//! - An *instance* is one running copy of the program, with a memory of its own. `gpu-run --instances N` runs N of them,
//!   `gpu-run map` one for each record of an input.
//! - A *thread* is what [`std::thread`] starts. All threads of a program share its memory.
//! - A *warp* is 32 instances or threads that the GPU runs in step, as long as they do the same. Each has a *lane* of it.
//!
//! # The warp
//!
//! [`active`], [`ballot`], [`shuffle`] and the functions in [`reduce`] work among the lanes that *make the same call together*:
//! those which the GPU runs in step at this moment. When lanes take different branches, the GPU runs one branch after the other,
//! and only the lanes of the same branch are together. Lanes that have parted may meet again right behind the branch, or later:
//! that is up to the GPU and to the compiler. So a program must be right for every grouping, even if each lane is alone.
//!
//! On gpu-run's `cpu` device, under other runtimes, and natively, each lane is alone.
//!
//! # Tools that change the program
//!
//! gpu-run finds these functions by the names that they are exported under, `gpu-run:instance` and so on. `cargo` keeps them in
//! every profile. A tool that works on the finished file must not inline them, or all instances believe that they are the only one:
//! so do not use `wasm-opt`, or tell it. Binaryen's `--no-inline` knows functions by their names in the name section, so the
//! program must not be stripped before, and holds for the passes behind it on the command line:
//!
//! ```text
//! wasm-opt --no-inline='*gpu_run_guest*' --no-inline='gpu-run:*' -O3 app.wasm -o smaller.wasm
//! ```
//!
//! Older versions, such as Binaryen 108, do not have the option: do not use them.
//!
//! A program has one version of this crate.

#![warn(missing_docs)]

mod device;
pub mod fast;
mod frame;
mod print;
pub mod reduce;
pub mod shared;

pub use frame::{Frame, time};
#[doc(hidden)]
pub use print::{PRINTS, Place};

/// Returns this instance's number, counted from 0. Under `gpu-run map`, it is the number of the record. The environment variable
/// `GPU_RUN_INSTANCE` says the same, unless `--env` sets it.
///
/// ```
/// let seed = gpu_run_guest::instance() + 1;
/// assert_eq!(seed, 1, "natively, there is one instance");
/// ```
#[must_use]
#[inline]
pub fn instance() -> u64 {
    device::instance()
}

/// Returns how many instances `gpu-run --instances` runs. `None` under `gpu-run map`: it does not know how many records will
/// follow.
///
/// ```
/// // Each instance takes its share.
/// let (me, all) = (gpu_run_guest::instance(), gpu_run_guest::instances().unwrap_or(1));
/// let files = ["a", "b", "c"];
/// let mine: Vec<_> = files.iter().skip(me as usize).step_by(all as usize).collect();
/// assert_eq!(mine, [&"a", &"b", &"c"]);
/// ```
#[must_use]
#[inline]
pub fn instances() -> Option<u64> {
    Some(device::instances()).filter(|count| *count > 0)
}

/// Returns the number of the thread that calls this: 0 for the first thread of a program, and in a program without threads.
/// Two threads that run at the same time have different numbers below [`threads`]; a thread may get the number of one that has
/// ended. Outside gpu-run, it is always 0.
///
/// ```
/// println!("thread {} of {}", gpu_run_guest::thread(), gpu_run_guest::threads());
/// ```
#[must_use]
#[inline]
pub fn thread() -> u32 {
    device::thread()
}

/// Returns how many threads the program can have at once, itself included: what `--threads` says. 1 in a program without
/// threads, and outside gpu-run.
///
/// ```
/// let workers = gpu_run_guest::threads() - 1;
/// assert_eq!(workers, 0);
/// ```
#[must_use]
#[inline]
pub fn threads() -> u32 {
    device::threads()
}

/// Returns the number of this lane in its warp, below 32.
///
/// ```
/// assert!(gpu_run_guest::lane() < 32);
/// ```
#[must_use]
#[inline]
pub fn lane() -> u32 {
    device::lane()
}

/// Returns how many lanes make this call together, see [the warp](crate#the-warp). At least 1.
///
/// ```
/// let together = gpu_run_guest::lanes();
/// assert!((1..=32).contains(&together));
/// ```
#[must_use]
#[inline]
pub fn lanes() -> u32 {
    active().count_ones()
}

/// Returns which lanes make this call together, see [the warp](crate#the-warp): bit `n` is set for lane `n`. The bit of the
/// caller's own [`lane`] is always set.
///
/// ```
/// // One lane does what is to be done once for all that are here.
/// let together = gpu_run_guest::active();
/// if gpu_run_guest::lane() == together.trailing_zeros() {
///     gpu_run_guest::shared::U32::new(0).add(together.count_ones());
/// }
/// ```
#[must_use]
#[inline]
pub fn active() -> u32 {
    device::active()
}

/// Returns which of the lanes that make this call together pass `true`, see [the warp](crate#the-warp): bit `n` is set for
/// lane `n`.
///
/// ```
/// // One atomic operation for all lanes that have found something, instead of one for each.
/// let found = true;
/// let lanes = gpu_run_guest::ballot(found);
/// if gpu_run_guest::lane() == lanes.trailing_zeros() {
///     gpu_run_guest::shared::U32::new(0).add(lanes.count_ones());
/// }
/// assert_eq!(gpu_run_guest::shared::U32::new(0).load(), 1, "natively, there is one lane");
/// ```
#[must_use]
#[inline]
pub fn ballot(vote: bool) -> u32 {
    device::ballot(vote.into())
}

/// Returns the `value` that another lane passes, if it makes this call together with this one, see [the warp](crate#the-warp).
/// Otherwise, and if there is no such lane, returns the lane's own `value`.
///
/// ```
/// // The value of the lane to the left.
/// let value = 1.5f32;
/// let left = gpu_run_guest::shuffle(value.to_bits(), gpu_run_guest::lane().wrapping_sub(1));
/// assert_eq!(f32::from_bits(left), 1.5, "there is none");
/// ```
#[must_use]
#[inline]
pub fn shuffle(value: u32, lane: u32) -> u32 {
    device::shuffle(value, lane)
}

/// Returns the device's time, in nanoseconds from some moment in the past. It is the same for all instances on a device; a GPU's
/// timer may advance in steps of a microsecond or so. [`std::time::Instant`] works, too, and has the host's scale.
///
/// ```
/// let began = gpu_run_guest::device_time();
/// let sum: u64 = (0..1000).sum();
/// let took = gpu_run_guest::device_time() - began;
/// println!("{sum} took {took} ns");
/// ```
#[must_use]
#[inline]
pub fn device_time() -> u64 {
    device::device_time()
}
