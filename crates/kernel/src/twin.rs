//! The primitives of `gpu.rs` on the host: a fibre for each device thread, all of them on one host thread, and barriers for warps and
//! workgroups. They give the same results as a device; the tests of collective operations and phases run on them.
//!
//! A fibre gives way wherever a device thread may have to wait: at barriers, exchanges and sleeps.

use crate::layout::{BUS_BYTES, MEMORY_BYTES};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::Cell;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Bytes of a fibre's stack.
const STACK_BYTES: usize = 128 << 10;

/// One machine's memory and bus.
pub struct World {
    memory: Vec<AtomicU64>,
    bus: Vec<AtomicU64>,
    began: Instant,
}

struct Group {
    barrier: Barrier,
    warps: Vec<Warp>,
    local: Vec<Cell<u32>>,
}

#[derive(Default)]
struct Warp {
    barrier: Barrier,
    values: [Cell<u32>; 32],
}

/// A barrier of a number of fibres that each of them names.
#[derive(Default)]
struct Barrier {
    arrived: Cell<u32>,
    generation: Cell<u32>,
}

impl Barrier {
    fn wait(&self, fibres: u32) {
        let generation = self.generation.get();
        self.arrived.set(self.arrived.get() + 1);
        if self.arrived.get() == fibres {
            self.arrived.set(0);
            self.generation.set(generation.wrapping_add(1));
        }
        while self.generation.get() == generation {
            give_way();
        }
    }
}

/// What the primitives need to know of the fibre that runs.
struct Thread {
    world: Arc<World>,
    group: Rc<Group>,
    numbers: [u32; 4],
    /// Null for a thread that looks ([`World::look`]): it meets nobody.
    yielder: Cell<*const Yielder<(), ()>>,
}

thread_local!(static THREAD: Cell<*const Thread> = const { Cell::new(ptr::null()) });

impl World {
    pub fn new() -> Arc<Self> {
        Self::with_memory(MEMORY_BYTES)
    }

    /// A world for a kernel with `bytes` of memory.
    pub fn with_memory(bytes: u32) -> Arc<Self> {
        Arc::new(Self { memory: zeroes(bytes), bus: zeroes(BUS_BYTES), began: Instant::now() })
    }

    /// Calls `entry` on `threads` threads in each of `groups` workgroups, and waits for all of them.
    pub fn launch(self: &Arc<Self>, groups: u32, threads: u32, entry: impl Fn()) {
        let entry: &dyn Fn() = &entry;
        // SAFETY: the fibres that call `entry` are locals of this function, which end or are unwound before it returns.
        let entry: &'static dyn Fn() = unsafe { std::mem::transmute(entry) };
        let mut fibres = Vec::new();
        for number in 0..groups {
            let warps = (0..threads / 32).map(|_| Warp::default()).collect();
            let local = (0..8192).map(|_| Cell::new(0)).collect();
            let group = Rc::new(Group { barrier: Barrier::default(), warps, local });
            for thread in 0..threads {
                let numbers = [thread, threads, number, groups];
                let yielder = Cell::new(ptr::null());
                let it = Rc::new(Thread { world: self.clone(), group: group.clone(), numbers, yielder });
                let inside = it.clone();
                let stack = DefaultStack::new(STACK_BYTES).expect("memory for a fibre's stack");
                let fibre = Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
                    inside.yielder.set(yielder);
                    entry();
                });
                fibres.push((it, fibre));
            }
        }
        let before = THREAD.get();
        while !fibres.is_empty() {
            fibres.retain_mut(|(it, fibre)| {
                THREAD.set(Rc::as_ptr(it));
                matches!(fibre.resume(()), CoroutineResult::Yield(()))
            });
        }
        THREAD.set(before);
    }

    /// Calls `with` as the only thread of a launch, so that it can use the primitives on this world's memory.
    pub fn look<T>(self: &Arc<Self>, with: impl FnOnce() -> T) -> T {
        let group = Group { barrier: Barrier::default(), warps: Vec::new(), local: Vec::new() };
        let yielder = Cell::new(ptr::null());
        let it = Thread { world: self.clone(), group: Rc::new(group), numbers: [0, 1, 0, 1], yielder };
        let before = THREAD.replace(&it);
        let result = with();
        THREAD.set(before);
        result
    }

    /// Returns the words of the state, as a checkpoint has them.
    pub fn state(&self) -> Vec<u64> {
        use crate::layout::{STATE, STATE_END};
        self.words(STATE, STATE_END)
    }

    /// Returns the words of the memory from one address to another.
    pub fn words(&self, from: u32, to: u32) -> Vec<u64> {
        self.memory[from as usize / 8..to as usize / 8].iter().map(|word| word.load(Relaxed)).collect()
    }

    /// Replaces the words of the memory from an address on.
    pub fn set_words(&self, from: u32, words: &[u64]) {
        for (to, word) in self.memory[from as usize / 8..].iter().zip(words) {
            to.store(*word, Relaxed);
        }
    }

    pub fn bus_word(&self, at: u32) -> u64 {
        self.bus[at as usize / 8].load(Relaxed)
    }

    pub fn set_bus_word(&self, at: u32, value: u64) {
        self.bus[at as usize / 8].store(value, Relaxed);
    }
}

/// Memory that the system clears when it is first touched: most of a large world never is.
fn zeroes(bytes: u32) -> Vec<AtomicU64> {
    let mut words = std::mem::ManuallyDrop::new(vec![0u64; bytes as usize / 8]);
    // SAFETY: `AtomicU64` has the size, the alignment and the values of `u64`, and nobody else has this vector.
    unsafe { Vec::from_raw_parts(words.as_mut_ptr().cast(), words.len(), words.capacity()) }
}

#[inline(always)]
fn with<T>(f: impl FnOnce(&Thread) -> T) -> T {
    let it = THREAD.get();
    assert!(!it.is_null(), "not in a launch");
    // SAFETY: whoever sets `THREAD` keeps the thread until `THREAD` is set again.
    f(unsafe { &*it })
}

/// Lets the other fibres run.
fn give_way() {
    with(|it| {
        let yielder = it.yielder.get();
        assert!(!yielder.is_null(), "a thread alone has nobody to wait for");
        // SAFETY: corosensei keeps a fibre's yielder until the fibre ends, and this is that fibre.
        unsafe { (*yielder).suspend(()) };
    });
}

pub fn thread() -> u32 {
    with(|it| it.numbers[0])
}
pub fn threads() -> u32 {
    with(|it| it.numbers[1])
}
pub fn group() -> u32 {
    with(|it| it.numbers[2])
}
pub fn groups() -> u32 {
    with(|it| it.numbers[3])
}
pub fn lane() -> u32 {
    thread() % 32
}
pub fn barrier() {
    with(|it| it.group.barrier.wait(it.numbers[1]));
}

/// Gives every lane of the warp the values of all lanes.
fn exchange(value: u32) -> [u32; 32] {
    with(|it| {
        let warp = &it.group.warps[it.numbers[0] as usize / 32];
        warp.values[it.numbers[0] as usize % 32].set(value);
        warp.barrier.wait(32);
        let all = std::array::from_fn(|lane| warp.values[lane].get());
        warp.barrier.wait(32);
        all
    })
}

pub fn ballot(whether: u32) -> u32 {
    exchange(whether).iter().enumerate().map(|(lane, value)| ((*value != 0) as u32) << lane).sum()
}
pub fn shuffle(value: u32, lane: u32) -> u32 {
    exchange(value)[lane as usize % 32]
}
pub fn shuffle_up(value: u32, delta: u32) -> u32 {
    let all = exchange(value);
    lane().checked_sub(delta).map_or(value, |from| all[from as usize])
}
pub fn shuffle_xor(value: u32, mask: u32) -> u32 {
    exchange(value)[(lane() ^ mask) as usize % 32]
}
pub fn clock() -> u64 {
    with(|it| it.world.began.elapsed().as_nanos() as u64)
}
pub fn sleep(nanoseconds: u32) {
    let until = Instant::now() + Duration::from_nanos(nanoseconds as u64);
    give_way();
    while Instant::now() < until {
        give_way();
    }
}
pub fn fence() {}
pub fn fence_system() {}
pub fn local_load(offset: u32) -> u32 {
    with(|it| it.group.local[offset as usize / 4].get())
}
pub fn local_store(offset: u32, value: u32) {
    with(|it| it.group.local[offset as usize / 4].set(value));
}
pub fn bus_load(offset: u32) -> u64 {
    with(|it| it.world.bus_word(offset))
}
pub fn bus_put(offset: u32, value: u64) {
    with(|it| it.world.set_bus_word(offset, value));
}

/// Changes a word of memory, and returns the old value. No other fibre runs meanwhile.
#[inline(always)]
fn update(at: u32, change: impl Fn(u32) -> u32) -> u32 {
    assert!(at.is_multiple_of(4), "{at:#x} is not aligned");
    let shift = at % 8 * 8;
    with(|it| {
        let word = &it.world.memory[at as usize / 8];
        let whole = word.load(Relaxed);
        let old = (whole >> shift) as u32;
        word.store(whole & !(0xFFFF_FFFF << shift) | (change(old) as u64) << shift, Relaxed);
        old
    })
}

#[inline(always)]
pub fn load(at: u32) -> u32 {
    assert!(at.is_multiple_of(4), "{at:#x} is not aligned");
    with(|it| (it.world.memory[at as usize / 8].load(Relaxed) >> (at % 8 * 8)) as u32)
}
#[inline(always)]
pub fn load_all<const N: usize>(at: u32) -> [u32; N] {
    assert!(at.is_multiple_of(8), "{at:#x} is not aligned");
    std::array::from_fn(|i| load(at + 4 * i as u32))
}
#[inline(always)]
pub fn store(at: u32, value: u32) {
    update(at, |_| value);
}
pub fn load64(at: u32) -> u64 {
    assert!(at.is_multiple_of(8), "{at:#x} is not aligned");
    with(|it| it.world.memory[at as usize / 8].load(Relaxed))
}
pub fn store64(at: u32, value: u64) {
    assert!(at.is_multiple_of(8), "{at:#x} is not aligned");
    with(|it| it.world.memory[at as usize / 8].store(value, Relaxed));
}
pub fn acquire(at: u32) -> u32 {
    load(at)
}
pub fn release(at: u32, value: u32) {
    store(at, value);
}
pub fn add(at: u32, value: u32) -> u32 {
    update(at, |old| old.wrapping_add(value))
}
pub fn or(at: u32, value: u32) -> u32 {
    update(at, |old| old | value)
}
pub fn and(at: u32, value: u32) -> u32 {
    update(at, |old| old & value)
}
pub fn swap_if(at: u32, from: u32, to: u32) -> bool {
    update(at, |old| if old == from { to } else { old }) == from
}
