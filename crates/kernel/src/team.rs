//! The collective operations of the workers: phases use threads only through them.
//!
//! A [`Team`] is all threads of all workgroups of workers. All threads call its operations together ([`Team::for_each`], [`Team::scan`],
//! [`Team::reduce`], [`Team::sort`]), and the results are the same for any number of threads. When an operation returns, all threads see
//! its effects. The operations also count the lanes that had work.

use crate::gpu::*;
use crate::layout::*;
use core::cell::Cell;

/// A thread's place among the workers.
pub struct Team {
    /// The thread's number, and the number of threads.
    pub rank: u32,
    pub size: u32,
    groups: u32,
    /// Which of two copies of the sums comes next: a thread in the next scan but one knows that all threads have left this one.
    turn: Cell<u32>,
    /// The lanes of this warp that had work, and all its lanes, summed up since the last [`Team::tell_lanes`].
    active: Cell<u32>,
    slots: Cell<u32>,
}

impl Team {
    /// Returns this thread's view of the team that the first `groups` workgroups form.
    pub fn new(groups: u32) -> Self {
        let (active, slots) = (Cell::new(0), Cell::new(0));
        Self {
            rank: group() * threads() + thread(),
            size: groups * threads(),
            groups,
            turn: Cell::new(0),
            active,
            slots,
        }
    }

    /// Returns whether this thread is the leader, which stores the results that all threads have computed.
    #[inline(always)]
    pub fn leads(&self) -> bool {
        self.rank == 0
    }

    /// Waits for all threads of the team. What any thread wrote before is visible to all threads afterwards.
    #[inline(never)]
    pub fn meet(&self) {
        if self.groups == 1 {
            return barrier();
        }
        // What the workgroup's threads wrote is visible to the first warp after the barrier, and to everybody after that warp's fence; in
        // the same way its second fence is one for all of them.
        barrier();
        if thread() < WARP {
            fence();
            self.meet_groups();
            fence();
        }
        barrier();
    }

    /// The barrier of the workgroups, called by one warp of each: the last workgroup to arrive releases all.
    fn meet_groups(&self) {
        let generation = acquire(S_GENERATION);
        // The ballot: lane 0 must not arrive before all lanes have read the generation.
        if ballot(1) != 0 && lane() == 0 && add(S_ARRIVED, 1) + 1 == self.groups {
            store(S_ARRIVED, 0);
            fence();
            release(S_GENERATION, generation.wrapping_add(1));
        }
        let mut looks = 0;
        while acquire(S_GENERATION) == generation {
            looks += 1;
            // The other workgroups usually arrive soon: sleep only after 8000 looks. Until then, only every eighth look gives way to others.
            if looks % 8 == 0 {
                sleep(if looks < 8000 { 0 } else { 500 });
            }
        }
        // Each lane polled by itself; the ballot brings the lanes together again.
        ballot(1);
    }

    #[inline(always)]
    fn count(&self, active: u32) {
        self.active.set(self.active.get() + active);
        self.slots.set(self.slots.get() + WARP);
    }

    /// Adds this warp's counts of lanes to those of a phase, and resets them.
    pub fn tell_lanes(&self, phase: u32) {
        if lane() == 0 && self.slots.get() != 0 {
            // Only the lower halves of the 64-bit words, which wrap around: the host adds up the differences.
            add(S_STATUS + (STATUS_ACTIVE + phase) * 8, self.active.get());
            add(S_STATUS + (STATUS_SLOTS + phase) * 8, self.slots.get());
        }
        self.active.set(0);
        self.slots.set(0);
    }

    /// Calls `body` once for every number below `n`.
    #[inline(always)]
    pub fn for_each(&self, n: u32, mut body: impl FnMut(u32)) {
        let mut base = 0;
        while base < n {
            let first = base + self.rank - lane();
            if first < n {
                self.count((n - first).min(WARP));
            }
            if base + self.rank < n {
                body(base + self.rank);
            }
            base += self.size;
        }
        self.meet();
    }

    /// [`Team::for_each`] for a `body` that returns how many steps it took: lanes with work are counted for each step.
    #[inline(always)]
    pub fn for_each_walk(&self, n: u32, mut body: impl FnMut(u32) -> u32) {
        let mut base = 0;
        while base < n {
            let first = base + self.rank - lane();
            if first < n {
                let steps = if base + self.rank < n { body(base + self.rank) } else { 0 };
                let longest = warp_fold(steps, u32::max);
                self.active.set(self.active.get() + warp_fold(steps, u32::wrapping_add));
                self.slots.set(self.slots.get() + WARP * longest);
            }
            base += self.size;
        }
        self.meet();
    }

    /// Returns the sum of the values of all threads before this one, and the sum of all values.
    #[inline(never)]
    pub fn prefix(&self, value: u32) -> (u32, u32) {
        let place = self.next_place();
        let mut inclusive = value;
        let mut delta = 1;
        while delta < WARP {
            let other = shuffle_up(inclusive, delta);
            inclusive += if lane() >= delta { other } else { 0 };
            delta *= 2;
        }
        let (warp, warps) = (thread() / WARP, threads() / WARP);
        if lane() == WARP - 1 {
            local_store(place * 128 + warp * 4, inclusive);
        }
        barrier();
        let of_warp = if lane() < warps { local_load(place * 128 + lane() * 4) } else { 0 };
        let mut before = warp_fold(if lane() < warp { of_warp } else { 0 }, u32::wrapping_add);
        let mut total = warp_fold(of_warp, u32::wrapping_add);
        if self.groups > 1 {
            let sums = X_SUMS + place * GROUPS_MAX * 4;
            if thread() == 0 {
                store(sums + group() * 4, total);
            }
            self.meet();
            total = 0;
            let mut base = 0;
            while base < self.groups {
                let of_group = if base + lane() < self.groups { load(sums + (base + lane()) * 4) } else { 0 };
                before += warp_fold(if base + lane() < group() { of_group } else { 0 }, u32::wrapping_add);
                total += warp_fold(of_group, u32::wrapping_add);
                base += WARP;
            }
        }
        (before + inclusive - value, total)
    }

    /// Combines the values of all threads with `op`, for which 0 must be neutral.
    #[inline(always)]
    pub fn reduce(&self, value: u32, op: impl Fn(u32, u32) -> u32 + Copy) -> u32 {
        let place = self.next_place();
        let of_warp = warp_fold(value, op);
        let (warp, warps) = (thread() / WARP, threads() / WARP);
        if lane() == 0 {
            local_store(place * 128 + warp * 4, of_warp);
        }
        barrier();
        let mut all = warp_fold(if lane() < warps { local_load(place * 128 + lane() * 4) } else { 0 }, op);
        if self.groups > 1 {
            let sums = X_SUMS + place * GROUPS_MAX * 4;
            if thread() == 0 {
                store(sums + group() * 4, all);
            }
            self.meet();
            let (mut base, mut total) = (0, 0);
            while base < self.groups {
                let of_group = if base + lane() < self.groups { load(sums + (base + lane()) * 4) } else { 0 };
                total = op(total, warp_fold(of_group, op));
                base += WARP;
            }
            all = total;
        }
        all
    }

    fn next_place(&self) -> u32 {
        let place = self.turn.get();
        self.turn.set(place ^ 1);
        place
    }

    /// Returns the range of numbers below `n` that this thread handles if `n` is divided evenly into contiguous ranges.
    fn share(&self, n: u32) -> (u32, u32) {
        let each = n.div_ceil(self.size);
        ((self.rank * each).min(n), (self.rank * each + each).min(n))
    }

    /// Calls `put` for every number below `n` with the sum of the values before it, and returns the sum of all values.
    #[inline(always)]
    pub fn scan(&self, n: u32, value: impl Fn(u32) -> u32, mut put: impl FnMut(u32, u32)) -> u32 {
        let (from, to) = self.share(n);
        self.count_share(n);
        let mut sum = 0;
        let mut i = from;
        while i < to {
            sum += value(i);
            i += 1;
        }
        let (mut before, total) = self.prefix(sum);
        i = from;
        while i < to {
            let own = value(i);
            put(i, before);
            before += own;
            i += 1;
        }
        self.meet();
        total
    }

    /// Counts the lanes of this warp whose [`Team::share`] is not empty.
    fn count_share(&self, n: u32) {
        let each = n.div_ceil(self.size);
        if each > 0 {
            let (with, first) = (n.div_ceil(each), self.rank - lane());
            if first < with {
                self.count((with - first).min(WARP));
            }
        }
    }

    /// Combines the values of all numbers below `n` with `op` ([`Team::reduce`]).
    #[inline(always)]
    pub fn reduce_over(&self, n: u32, value: impl Fn(u32) -> u32, op: impl Fn(u32, u32) -> u32 + Copy) -> u32 {
        let (mut at, mut own) = (self.rank, 0);
        while at < n {
            own = op(own, value(at));
            at += self.size;
        }
        self.reduce(own, op)
    }

    /// Calls `put` for each chosen number below `n` with its rank among the chosen numbers, and returns how many there are.
    #[inline(always)]
    pub fn compact(&self, n: u32, chosen: impl Fn(u32) -> bool, mut put: impl FnMut(u32, u32)) -> u32 {
        self.scan(
            n,
            |i| chosen(i) as u32,
            |i, before| {
                if chosen(i) {
                    put(i, before);
                }
            },
        )
    }

    /// Sorts the `n` words at address `at`, by bitonic sort. The memory must have space for the next power of two of words.
    #[inline(never)]
    pub fn sort(&self, at: u32, n: u32) {
        let all = n.next_power_of_two();
        self.for_each(all - n, |i| store(at + (n + i) * 4, u32::MAX));
        let mut run = 2;
        while run <= all {
            let mut apart = run / 2;
            while apart > 0 {
                self.for_each(all / 2, |pair| {
                    let low = 2 * pair - (pair & (apart - 1));
                    let (left, right) = (at + low * 4, at + (low + apart) * 4);
                    let (a, b) = (load(left), load(right));
                    if (a > b) == (low & run == 0) {
                        store(left, b);
                        store(right, a);
                    }
                });
                apart /= 2;
            }
            run *= 2;
        }
    }
}

/// Combines the values of all lanes of a warp with `op`.
#[inline(always)]
pub fn warp_fold(value: u32, op: impl Fn(u32, u32) -> u32) -> u32 {
    let mut all = value;
    let mut mask = 1;
    while mask < WARP {
        all = op(all, shuffle_xor(all, mask));
        mask *= 2;
    }
    all
}

/// Returns the index of the last of the `n` ascending sums at address `sums` that is not above `value`: the share that
/// `value` falls into. The first sum is 0.
#[inline(never)]
pub fn find_share(sums: u32, n: u32, value: u32) -> u32 {
    let (mut low, mut high) = (0, n);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if load(sums + middle * 4) <= value { low = middle } else { high = middle }
    }
    low
}

/// Returns the position of the `which`th set bit; the first has `which` = 0.
#[inline(always)]
pub fn find_bit(mut word: u32, which: u32) -> u32 {
    let mut left = which;
    while left > 0 {
        word &= word - 1;
        left -= 1;
    }
    word.trailing_zeros()
}
