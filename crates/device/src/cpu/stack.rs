//! Stacks for GPU threads.
//!
//! Every stack sits at the top of an address range of its own, its *slot*, [`SLOT`] bytes long and aligned to that.
//! Only the part in use is mapped; the part below is the guard. So a thread's [`Context`] is found from any stack
//! pointer, both by compiled code and by Rust: no register is reserved for it and no hidden parameter passed.
//!
//! How far below the slot's top context and stack begin depends on the slot's number (its *colour*). If it were the
//! same everywhere, the hottest pages of all threads would compete for one set of the TLB, and their hottest lines for
//! one set of the cache: a switch between 32 threads took five times as long.
//!
//! Stacks are kept and reused; only their deeper pages go back to the system.

use super::context::Context;
use super::mapping::{Mapping, commit, discard};
use crate::{Error, Result};
use corosensei::stack::StackPointer;
use std::num::NonZeroUsize;
use std::sync::Mutex;

/// Bytes of address space for one stack.
pub(super) const SLOT: usize = 64 << 20;
/// log2 of [`SLOT`].
pub(super) const SLOT_BITS: u32 = SLOT.trailing_zeros();
/// Offset of a context of colour 0 in its slot.
pub(super) const CONTEXT_AT: usize = SLOT - size_of::<Context>().next_multiple_of(64);
/// A slot's number modulo this is its colour.
pub(super) const COLOURS: usize = 256;
/// Each colour begins a page and a cache line below the one before.
pub(super) const COLOUR_STEP: usize = 4096 + 64;

/// Returns the address of the context that belongs to a stack, given any address in the slot. Compiled code does the
/// same (`compile::threads`).
#[inline(always)]
pub(super) fn context_of(address: usize) -> usize {
    let colour = (address >> SLOT_BITS) % COLOURS;
    (address & !(SLOT - 1)) + CONTEXT_AT - colour * COLOUR_STEP
}

/// Bytes for the host functions that compiled code calls.
const SLACK: usize = 64 << 10;
/// Bytes of the largest frame of one function. Every stack has this much beyond what a kernel asks for, because a
/// function touches all of its frame before it can check whether the stack suffices. Pages that nobody touches cost no
/// memory.
pub(super) const FRAME: usize = 8 << 20;
/// Bytes below the stack that are never mapped.
const GUARD: usize = 1 << 20;
/// Bytes of a stack that stay when its thread finishes; deeper pages go back to the system.
const KEEP: usize = 256 << 10;
/// Slots reserved at once.
const SLAB: usize = 64;

/// Bytes above the stack of the last colour: address space, not memory.
const COLOURED: usize = (COLOURS * COLOUR_STEP).next_multiple_of(4096) + 4096;
/// The largest stack a thread can have, in bytes, for `Grid::stack_bytes`.
pub(super) const MAX_STACK: usize = SLOT - GUARD - FRAME - SLACK - COLOURED - 4096;

/// One stack, owned by the fibre that runs on it.
#[derive(Debug)]
pub(super) struct Stack {
    slot: usize,
    /// Bytes mapped at the top of the slot.
    mapped: usize,
}

impl Stack {
    pub(super) fn context(&self) -> *mut Context {
        context_of(self.slot) as *mut Context
    }
}

// SAFETY: at least SLACK bytes are mapped between `limit + GUARD` and `base`; below them lie at least GUARD bytes of
// the same slot that are never mapped. Both ends are multiples of 64.
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> StackPointer {
        NonZeroUsize::new(context_of(self.slot)).unwrap_or(NonZeroUsize::MAX)
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
    /// Reserved, and not unmapped before the device is dropped.
    slabs: Vec<Mapping>,
    /// Slots handed out from the last slab.
    used: usize,
}

impl Stacks {
    /// Returns a stack with `bytes` bytes for the kernel's own use.
    pub(super) fn take(&self, bytes: usize) -> Result<Stack> {
        if bytes > MAX_STACK {
            let message = format!("{bytes} bytes of stack for each thread: the cpu device has at most {MAX_STACK}");
            return Err(Error::Unavailable(message));
        }
        let needed = (bytes + FRAME + SLACK + COLOURED).next_multiple_of(4096);
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
        let base = state.slabs[state.slabs.len() - 1].address() as usize;
        let slot = base.next_multiple_of(SLOT) + state.used * SLOT;
        state.used += 1;
        Ok(Stack { slot, mapped: 0 })
    }

    pub(super) fn give_back(&self, stacks: impl IntoIterator<Item = Stack>) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        for stack in stacks {
            let lowest = stack.slot + SLOT - stack.mapped;
            let kept = context_of(stack.slot) / 4096 * 4096 - KEEP;
            if lowest < kept {
                // SAFETY: whole pages of a stack that nothing runs on.
                unsafe { discard(lowest, kept - lowest) };
            }
            state.free.push(stack);
        }
    }
}
