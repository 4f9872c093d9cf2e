//! Stacks for GPU threads.
//!
//! Every stack sits at the top of an address range of its own, [`SLOT`] bytes long and aligned to that, of which only the part in use is
//! mapped: what lies below is the guard. So a thread's [`Context`] is found from any stack pointer by masking it, from compiled
//! code and from Rust alike: no register is reserved for it and no hidden parameter passed.
//!
//! Stacks are kept and used again; only their deeper pages go back to the system.

use super::context::Context;
use super::mapping::{Mapping, commit, discard};
use crate::{Error, Result};
use corosensei::stack::StackPointer;
use std::num::NonZeroUsize;
use std::sync::Mutex;

/// Address space for one stack.
pub(super) const SLOT: usize = 64 << 20;
/// Where a context begins in its slot.
pub(super) const CONTEXT_AT: usize = SLOT - size_of::<Context>().next_multiple_of(64);

/// For the calls into the host that compiled code makes.
const SLACK: usize = 64 << 10;
/// Below the stack, never mapped.
const GUARD: usize = 1 << 20;
/// Stacks deeper than this are given back to the system beyond it when their thread ends.
const KEEP: usize = 256 << 10;
/// Slots reserved at once.
const SLAB: usize = 64;

/// The most stack a thread can have, for `Grid::stack_bytes`.
pub(super) const MAX_STACK: usize = SLOT - GUARD - SLACK - 4096;

/// One stack, owned by the fibre that runs on it.
#[derive(Debug)]
pub(super) struct Stack {
    slot: usize,
    /// Mapped bytes at the slot's top.
    mapped: usize,
    /// Where in the first page it starts: neighbours differ, or their hottest lines would all compete for one cache set.
    colour: usize,
}

impl Stack {
    pub(super) fn context(&self) -> *mut Context {
        (self.slot + CONTEXT_AT) as *mut Context
    }
}

// SAFETY: at least SLACK bytes are mapped between `limit + GUARD` and `base`; below lies never-mapped address space of the
// same slot, at least GUARD bytes. Both ends are multiples of 64.
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> StackPointer {
        NonZeroUsize::new(self.slot + CONTEXT_AT - self.colour).unwrap_or(NonZeroUsize::MAX)
    }
    fn limit(&self) -> StackPointer {
        NonZeroUsize::new(self.slot + SLOT - self.mapped - GUARD).unwrap_or(NonZeroUsize::MIN)
    }
}

/// All stacks of a device.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    free: Vec<Stack>,
    /// Reserved, never unmapped before the device is dropped.
    slabs: Vec<Mapping>,
    /// Slots handed out of the last slab.
    used: usize,
}

impl Stacks {
    /// A stack with room for `bytes` of a kernel's own.
    pub(super) fn take(&self, bytes: usize) -> Result<Stack> {
        if bytes > MAX_STACK {
            let message = format!("{bytes} bytes of stack for each thread: the cpu device has at most {MAX_STACK}");
            return Err(Error::Unavailable(message));
        }
        let needed = (bytes + SLACK + 4096).next_multiple_of(4096);
        let mut stack = self.free_slot()?;
        if stack.mapped < needed {
            // SAFETY: the top `needed` bytes, whole pages, of a slot that only this stack has.
            if let Err(error) = unsafe { commit(stack.slot + SLOT - needed, needed) } {
                self.give_back([stack]);
                return Err(error);
            }
            stack.mapped = needed;
        }
        Ok(stack)
    }

    fn free_slot(&self) -> Result<Stack> {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(stack) = state.free.pop() {
            return Ok(stack);
        }
        if state.slabs.is_empty() || state.used == SLAB {
            state.slabs.push(Mapping::reserve(((SLAB + 1) * SLOT) as u64)?);
            state.used = 0;
        }
        let number = state.slabs.len() * SLAB + state.used;
        let base = state.slabs[state.slabs.len() - 1].address() as usize;
        let slot = base.next_multiple_of(SLOT) + state.used * SLOT;
        state.used += 1;
        Ok(Stack { slot, mapped: 0, colour: number % 16 * 192 })
    }

    pub(super) fn give_back(&self, stacks: impl IntoIterator<Item = Stack>) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        for stack in stacks {
            if stack.mapped > KEEP {
                // SAFETY: whole pages of a stack that nothing runs on.
                unsafe { discard(stack.slot + SLOT - stack.mapped, stack.mapped - KEEP) };
            }
            state.free.push(stack);
        }
    }
}
