//! A GPU thread as a fibre: compiled code on a stack of its own, which can be suspended and resumed.

use super::context::{Awaited, Context, Pause, WarpOperation, WarpRequest};
use super::stack::Stack;
use corosensei::{Coroutine, CoroutineResult};

/// A kernel's code; takes the address of its parameters.
pub(super) type Entry = extern "C" fn(*const u8);

/// A thread's numbers: its own, its workgroup's, and the sizes of both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) thread: u32,
    pub(super) threads: u32,
    pub(super) workgroup: u32,
    pub(super) workgroups: u32,
    pub(super) shared: u64,
}

pub(super) struct Fiber {
    /// `None` once the stack was taken.
    coroutine: Option<Coroutine<(), Pause, (), Stack>>,
    context: *mut Context,
}

impl Fiber {
    /// # Safety
    /// `entry` is a kernel of a program that outlives the fibre, and takes the parameters at `parameters`.
    pub(super) unsafe fn new(stack: Stack, identity: Identity, entry: Entry, parameters: *const u8) -> Self {
        let context = stack.context();
        let Identity { thread, threads, workgroup, workgroups, shared } = identity;
        let warp = WarpRequest { mask: 0, operation: WarpOperation::Barrier, a: 0, b: 0, c: 0 };
        let yielder = std::ptr::null();
        // SAFETY: a stack's context is mapped, aligned memory above its base, and nobody else has this stack.
        unsafe {
            context.write(Context {
                thread,
                threads,
                workgroup,
                workgroups,
                shared,
                yielder,
                warp,
                answer: 0,
                line: 0,
                resting: 0,
                awaited: Awaited::default(),
                fences: 0,
            })
        };
        let coroutine = Coroutine::with_stack(stack, move |yielder, ()| {
            // SAFETY: as above; this runs on that stack.
            unsafe { (*context).yielder = yielder };
            entry(parameters);
        });
        Self { coroutine: Some(coroutine), context }
    }

    /// Runs the thread until it waits for something; returns `None` when the kernel has returned.
    #[inline]
    pub(super) fn resume(&mut self) -> Option<Pause> {
        match self.coroutine.as_mut()?.resume(()) {
            CoroutineResult::Yield(pause) => Some(pause),
            CoroutineResult::Return(()) => None,
        }
    }

    /// Prefetches what [`Fiber::approach`] reads.
    #[inline]
    pub(super) fn announce(&self) {
        fetch(self.context as usize);
    }

    /// Prefetches the top of the stack of a thread that is resumed soon: with many threads, their stacks are not in the
    /// cache.
    #[inline]
    pub(super) fn approach(&self) {
        // SAFETY: the fibre is suspended (`&self`), so nobody writes its context.
        let resting = unsafe { (*self.context).resting };
        for line in [0, 64, 128, 192] {
            fetch(resting.wrapping_sub(64) + line);
        }
    }

    pub(super) fn thread(&self) -> u32 {
        // SAFETY: the fibre is suspended (`&self`), so nobody writes its context.
        unsafe { (*self.context).thread }
    }

    pub(super) fn workgroup(&self) -> u32 {
        // SAFETY: as above.
        unsafe { (*self.context).workgroup }
    }

    pub(super) fn line(&self) -> u32 {
        // SAFETY: the fibre is suspended (`&self`), so nobody writes its context.
        unsafe { (*self.context).line }
    }

    pub(super) fn awaited(&self) -> Awaited {
        // SAFETY: as above.
        unsafe { (*self.context).awaited }
    }

    pub(super) fn warp_request(&self) -> WarpRequest {
        // SAFETY: as above.
        unsafe { (*self.context).warp }
    }

    pub(super) fn answer(&mut self, answer: u64) {
        // SAFETY: as above, and `&mut self`.
        unsafe { (*self.context).answer = answer };
    }

    /// Stops the thread where it is, and takes its stack.
    pub(super) fn into_stack(mut self) -> Option<Stack> {
        abandon(self.coroutine.take()?)
    }
}

/// Asks the processor to fetch a cache line. Any address is allowed.
#[inline]
fn fetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address as *const i8);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

fn abandon(mut coroutine: Coroutine<(), Pause, (), Stack>) -> Option<Stack> {
    // SAFETY: a suspended fibre's stack holds the frames of compiled code and of one of `context`'s functions; none of
    // them owns anything that would have to be dropped.
    unsafe { coroutine.force_reset() };
    Some(coroutine.into_stack())
}

impl Drop for Fiber {
    fn drop(&mut self) {
        // Compiled code cannot be unwound, which dropping the coroutine would otherwise try.
        self.coroutine.take().and_then(abandon);
    }
}
