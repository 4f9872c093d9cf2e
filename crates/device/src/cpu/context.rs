//! What a GPU thread knows about itself, and what compiled code calls.
//!
//! The functions here run on a thread's own stack and find its [`Context`] by masking the stack pointer. Those that make the thread
//! wait write what they wait for into the context and suspend the fibre; the scheduler reads it there.

use super::ast::{Shuffle, Vote};
use super::stack::context_of;
use corosensei::Yielder;
use std::time::Duration;

/// At the top of every stack; compiled code reads the first fields.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct Context {
    pub(super) thread: u32,
    pub(super) threads: u32,
    pub(super) block: u32,
    pub(super) blocks: u32,
    /// Address of the block's shared memory.
    pub(super) shared: u64,
    /// Set by the fibre when it starts.
    pub(super) yielder: *const Yielder<(), Pause>,
    /// Valid while the fibre is suspended with [`Pause::Warp`].
    pub(super) warp: WarpRequest,
    /// What the scheduler answers to it.
    pub(super) answer: u64,
    /// The PTX line of the barrier or fault that suspended the fibre; the function that is to be compiled, with [`Pause::Late`].
    pub(super) line: u32,
    /// About where on its stack it was suspended.
    pub(super) resting: usize,
}

/// Why a fibre gives up the floor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pause {
    /// Nanoseconds.
    Sleep(u32),
    Barrier,
    Warp,
    Exit,
    Fault(Fault),
    /// A function was called that is not compiled yet: its number is the context's line.
    Late,
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
    /// Who takes part.
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

    /// How compiled code names it.
    pub(super) fn number(self) -> u32 {
        Self::ALL.iter().position(|o| *o == self).unwrap_or_default() as u32
    }
}

/// The context of the thread this runs on.
///
/// Only on a fibre's stack; every caller is called from compiled code, which runs nowhere else.
#[inline(always)]
fn current() -> *mut Context {
    let here = 0u8;
    context_of(&raw const here as usize) as *mut Context
}

/// Gives up the floor until the scheduler resumes the fibre.
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

/// Comes back when the function is compiled. On this thread's stack there may be no room for a compiler: the scheduler has it compiled on its own.
pub(super) extern "C" fn late(function: u32) {
    let context = current();
    // SAFETY: as in `fault`.
    unsafe { (*context).line = function };
    pause(context, Pause::Late);
}

pub(super) extern "C" fn sleep(nanoseconds: u32) {
    pause(current(), Pause::Sleep(nanoseconds));
}

pub(super) extern "C" fn barrier(line: u32) {
    let context = current();
    // SAFETY: as in `fault`.
    unsafe { (*context).line = line };
    pause(context, Pause::Barrier);
}

/// The low half of the answer is the value, bit 32 the predicate.
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
