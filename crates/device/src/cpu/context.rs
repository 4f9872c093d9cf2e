//! A GPU thread's own data, and the functions that compiled code calls.
//!
//! The functions here run on a thread's own stack and find its [`Context`] by masking the stack pointer. Functions that
//! make the thread wait write the reason into the context and suspend the fibre; the scheduler reads the reason there.

use super::ast::{Shuffle, Vote};
use super::stack::context_of;
use corosensei::Yielder;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A thread's data, at the top of its stack; compiled code reads the first fields.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct Context {
    pub(super) thread: u32,
    pub(super) threads: u32,
    pub(super) workgroup: u32,
    pub(super) workgroups: u32,
    /// Address of the workgroup's shared memory.
    pub(super) shared: u64,
    /// Set by the fibre when it starts.
    pub(super) yielder: *const Yielder<(), Pause>,
    /// Valid while the fibre is suspended with [`Pause::Warp`].
    pub(super) warp: WarpRequest,
    /// The scheduler's answer to `warp`.
    pub(super) answer: u64,
    /// The PTX line of the barrier, warp operation or fault that suspended the fibre; with [`Pause::Late`], the number
    /// of the function to compile.
    pub(super) line: u32,
    /// About where the stack pointer was when the fibre was suspended.
    pub(super) resting: usize,
    /// Valid while the fibre is suspended with [`Pause::Await`].
    pub(super) awaited: Awaited,
    /// How many fences the thread has come to, see [`turn`].
    pub(super) fences: u32,
}

/// What a thread waits for in `await_word`: that the word at `address` is not `value` any more, that the word at `end` is
/// not 0, or that the time is over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Awaited {
    pub(super) address: u64,
    pub(super) value: u64,
    pub(super) end: u64,
    pub(super) nanoseconds: u64,
}

/// Why a fibre suspends itself.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pause {
    /// For this many nanoseconds.
    Sleep(u32),
    Barrier,
    Warp,
    Exit,
    Fault(Fault),
    /// The thread called a function that is not compiled yet; the context's `line` is its number.
    Late,
    /// Until what the context's `awaited` says.
    Await,
    /// For a moment, so that the thread that awaits a change of the word at this address can be woken.
    Wake(u64),
}

#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum Fault {
    Trap = 0,
    Misaligned = 1,
    BadIndex = 2,
}

/// An operation that the threads of a warp do together.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(super) struct WarpRequest {
    /// The lanes that take part.
    pub(super) mask: u32,
    pub(super) operation: WarpOperation,
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) c: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum WarpOperation {
    Barrier,
    Shuffle(Shuffle),
    Vote(Vote),
}

impl WarpOperation {
    const ALL: [Self; 9] = [
        Self::Barrier,
        Self::Shuffle(Shuffle::Index),
        Self::Shuffle(Shuffle::Up),
        Self::Shuffle(Shuffle::Down),
        Self::Shuffle(Shuffle::Butterfly),
        Self::Vote(Vote::Any),
        Self::Vote(Vote::All),
        Self::Vote(Vote::Uniform),
        Self::Vote(Vote::Ballot),
    ];

    /// The number that compiled code uses for it.
    pub(super) fn number(self) -> u32 {
        Self::ALL.iter().position(|o| *o == self).unwrap_or_default() as u32
    }
}

/// The context of the thread this runs on.
///
/// Only valid on a fibre's stack; every caller is called from compiled code, which runs nowhere else.
#[inline(always)]
fn current() -> *mut Context {
    let here = 0u8;
    context_of(&raw const here as usize) as *mut Context
}

/// Suspends the fibre until the scheduler resumes it.
#[inline(always)]
fn pause(context: *mut Context, why: Pause) {
    let here = 0u8;
    // SAFETY: `current` on a fibre; nobody else reads a running thread's context.
    unsafe { (*context).resting = &raw const here as usize };
    // SAFETY: the fibre set `yielder` before it entered compiled code, and it lives as long as the fibre.
    unsafe { (*(*context).yielder).suspend(why) }
}

pub(super) extern "C" fn exit() {
    pause(current(), Pause::Exit); // the scheduler never resumes it
}

pub(super) extern "C" fn fault(kind: u32, line: u32) {
    let context = current();
    // SAFETY: `current` on a fibre; nobody else reads a running thread's context.
    unsafe { (*context).line = line };
    let kind = match kind {
        0 => Fault::Trap,
        1 => Fault::Misaligned,
        _ => Fault::BadIndex,
    };
    pause(context, Pause::Fault(kind)); // the scheduler never resumes it
}

/// Returns when the function is compiled. This thread's stack may be too small for a compiler, so the scheduler
/// compiles the function on its own stack.
pub(super) extern "C" fn late(function: u32) {
    let context = current();
    // SAFETY: as in `fault`.
    unsafe { (*context).line = function };
    pause(context, Pause::Late);
}

pub(super) extern "C" fn sleep(nanoseconds: u32) {
    pause(current(), Pause::Sleep(nanoseconds));
}

/// `await_word`
pub(super) extern "C" fn await_word(address: u64, value: u64, end: u64, nanoseconds: u64, _nap: u32) {
    let context = current();
    // SAFETY: as in `fault`.
    unsafe { (*context).awaited = Awaited { address, value, end, nanoseconds } };
    pause(context, Pause::Await);
}

/// `wake_word`
pub(super) extern "C" fn wake_word(address: u64) {
    pause(current(), Pause::Wake(address));
}

/// `look_word`
pub(super) extern "C" fn look_word(address: u64) -> u32 {
    pause(current(), Pause::Sleep(0));
    // SAFETY: compiled code gave the address, of a word that it could read itself.
    unsafe { AtomicU32::from_ptr(address as *mut u32) }.load(Ordering::Relaxed)
}

/// A fence of a program with threads. Now and then, all other threads run first: a thread that always gave way at the end of
/// the same loop might always hold the same lock there.
pub(super) extern "C" fn turn() {
    let context = current();
    // SAFETY: as in `fault`.
    let fences = unsafe { &mut (*context).fences };
    *fences = fences.wrapping_add(1);
    // One in 64 on average, at irregular distances.
    if fences.wrapping_mul(0x9e37_79b1) < 1 << 26 {
        pause(context, Pause::Sleep(0));
    }
}

pub(super) extern "C" fn barrier(line: u32) {
    let context = current();
    // SAFETY: as in `fault`.
    unsafe { (*context).line = line };
    pause(context, Pause::Barrier);
}

/// Takes part in a warp operation. The low half of the result is the value, bit 32 the predicate.
pub(super) extern "C" fn warp(operation: u32, line: u32, mask: u32, a: u32, b: u32, c: u32) -> u64 {
    let context = current();
    let operation = WarpOperation::ALL[operation as usize % WarpOperation::ALL.len()];
    // SAFETY: as in `fault`.
    unsafe {
        (*context).line = line;
        (*context).warp = WarpRequest { mask, operation, a, b, c };
    }
    pause(context, Pause::Warp);
    // SAFETY: as in `fault`; the scheduler wrote it before it resumed the fibre.
    unsafe { (*context).answer }
}

/// `%globaltimer`
pub(super) extern "C" fn timer() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32).as_nanos() as u64
}

/// `%clock64`
pub(super) extern "C" fn clock() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    timer()
}
