//! The primitives of `gpu.rs` on the host: one host thread for each device thread, and barriers for warps and workgroups.
//! They are slow and give the same results; the tests of the kernel's collective operations and phases run on them.

use crate::layout::{BUS_BYTES, MEMORY_BYTES};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// One machine's memory and bus.
pub struct World {
    memory: Vec<AtomicU64>,
    bus: Vec<AtomicU64>,
    began: Instant,
}

struct Group {
    barrier: Barrier,
    warps: Vec<Warp>,
    local: Vec<AtomicU32>,
}

struct Warp {
    barrier: Barrier,
    values: [AtomicU32; 32],
}

#[derive(Clone)]
struct Thread {
    world: Arc<World>,
    group: Arc<Group>,
    numbers: [u32; 4],
}

thread_local!(static THREAD: RefCell<Option<Thread>> = const { RefCell::new(None) });

impl World {
    pub fn new() -> Arc<Self> {
        let words = |bytes: u32| (0..bytes / 8).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { memory: words(MEMORY_BYTES), bus: words(BUS_BYTES), began: Instant::now() })
    }

    /// Calls `entry` on `threads` threads in each of `groups` workgroups, and waits for all of them.
    pub fn launch(self: &Arc<Self>, groups: u32, threads: u32, entry: impl Fn() + Sync) {
        std::thread::scope(|scope| {
            for number in 0..groups {
                let warp = || Warp { barrier: Barrier::new(32), values: std::array::from_fn(|_| AtomicU32::new(0)) };
                let group = Arc::new(Group {
                    barrier: Barrier::new(threads as usize),
                    warps: (0..threads / 32).map(|_| warp()).collect(),
                    local: (0..8192).map(|_| AtomicU32::new(0)).collect(),
                });
                for thread in 0..threads {
                    let numbers = [thread, threads, number, groups];
                    let it = Thread { world: self.clone(), group: group.clone(), numbers };
                    let entry = &entry;
                    scope.spawn(move || {
                        THREAD.set(Some(it));
                        entry();
                    });
                }
            }
        });
    }

    /// Calls `with` as the only thread of a launch, so that it can use the primitives on this world's memory.
    pub fn look<T>(self: &Arc<Self>, with: impl FnOnce() -> T) -> T {
        let group = Group { barrier: Barrier::new(1), warps: Vec::new(), local: Vec::new() };
        let it = Thread { world: self.clone(), group: Arc::new(group), numbers: [0, 1, 0, 1] };
        let before = THREAD.replace(Some(it));
        let result = with();
        THREAD.set(before);
        result
    }

    /// Returns the words of the state, as a checkpoint has them.
    pub fn state(&self) -> Vec<u64> {
        use crate::layout::{STATE, STATE_END};
        (STATE / 8..STATE_END / 8).map(|at| self.memory[at as usize].load(SeqCst)).collect()
    }

    pub fn bus_word(&self, at: u32) -> u64 {
        self.bus[at as usize / 8].load(SeqCst)
    }

    pub fn set_bus_word(&self, at: u32, value: u64) {
        self.bus[at as usize / 8].store(value, SeqCst);
    }
}

fn with<T>(f: impl FnOnce(&Thread) -> T) -> T {
    let it = THREAD.with_borrow(|thread| thread.clone()).expect("a thread of a launch");
    f(&it)
}

fn number(which: usize) -> u32 {
    with(|it| it.numbers[which])
}

pub fn thread() -> u32 {
    number(0)
}
pub fn threads() -> u32 {
    number(1)
}
pub fn group() -> u32 {
    number(2)
}
pub fn groups() -> u32 {
    number(3)
}
pub fn lane() -> u32 {
    thread() % 32
}
pub fn barrier() {
    with(|it| {
        it.group.barrier.wait();
    });
}

/// Gives every lane of the warp the values of all lanes.
fn exchange(value: u32) -> [u32; 32] {
    with(|it| {
        let warp = &it.group.warps[it.numbers[0] as usize / 32];
        warp.values[it.numbers[0] as usize % 32].store(value, SeqCst);
        warp.barrier.wait();
        let all = std::array::from_fn(|lane| warp.values[lane].load(SeqCst));
        warp.barrier.wait();
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
    std::thread::sleep(Duration::from_nanos(nanoseconds as u64));
}
pub fn fence() {}
pub fn fence_system() {}
pub fn local_load(offset: u32) -> u32 {
    with(|it| it.group.local[offset as usize / 4].load(SeqCst))
}
pub fn local_store(offset: u32, value: u32) {
    with(|it| it.group.local[offset as usize / 4].store(value, SeqCst));
}
pub fn bus_load(offset: u32) -> u64 {
    with(|it| it.world.bus_word(offset))
}
pub fn bus_put(offset: u32, value: u64) {
    with(|it| it.world.set_bus_word(offset, value));
}

/// Changes a word of memory atomically, and returns the old value.
fn update(at: u32, change: impl Fn(u32) -> u32) -> u32 {
    assert!(at.is_multiple_of(4), "{at:#x} is not aligned");
    let shift = at % 8 * 8;
    with(|it| {
        let word = &it.world.memory[at as usize / 8];
        let changed = |old: u64| {
            let new = change((old >> shift) as u32);
            Some(old & !(0xFFFF_FFFF << shift) | (new as u64) << shift)
        };
        let old = word.fetch_update(SeqCst, SeqCst, changed).unwrap_or_else(|old| old);
        (old >> shift) as u32
    })
}

pub fn load(at: u32) -> u32 {
    assert!(at.is_multiple_of(4), "{at:#x} is not aligned");
    with(|it| (it.world.memory[at as usize / 8].load(SeqCst) >> (at % 8 * 8)) as u32)
}
pub fn store(at: u32, value: u32) {
    update(at, |_| value);
}
pub fn load64(at: u32) -> u64 {
    assert!(at.is_multiple_of(8), "{at:#x} is not aligned");
    with(|it| it.world.memory[at as usize / 8].load(SeqCst))
}
pub fn store64(at: u32, value: u64) {
    assert!(at.is_multiple_of(8), "{at:#x} is not aligned");
    with(|it| it.world.memory[at as usize / 8].store(value, SeqCst));
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
