//! The workers, as one: the only way phases use threads.
//!
//! A [`Team`] is all threads of all worker groups. What it offers is called by all of them together and gives the same however many they are:
//! [`Team::for_each`], [`Team::scan`], [`Team::reduce`], [`Team::sort`], and searches in what they leave behind. Each ends with all threads having seen what it
//! did. On the way it counts lanes that had something to do.

use crate::gpu::*;
use crate::layout::*;
use core::cell::Cell;

/// A thread's place among the workers.
pub struct Team {
    /// Its number, and how many there are.
    pub rank: u32,
    pub size: u32,
    groups: u32,
    /// Which of two places sums are left in: whoever comes to the next but one has seen all leave this one.
    turn: Cell<u32>,
    /// Lanes that had something to do, and lanes that there were, of this warp since they were last told.
    active: Cell<u32>,
    slots: Cell<u32>,
}

impl Team {
    /// The workers are all groups but the last.
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

    /// The one who publishes what all have found.
    #[inline(always)]
    pub fn leads(&self) -> bool {
        self.rank == 0
    }

    /// Waits for all. What they wrote before can be read after.
    #[inline(never)]
    pub fn meet(&self) {
        if self.groups == 1 {
            return barrier();
        }
        fence();
        barrier();
        if thread() < WARP {
            self.meet_groups();
        }
        barrier();
        fence();
    }

    /// One warp of each group: the last to arrive lets all go.
    fn meet_groups(&self) {
        let generation = acquire(S_GENERATION);
        // No lane may arrive before all have read the generation.
        if ballot(1) != 0 && lane() == 0 && add(S_ARRIVED, 1) + 1 == self.groups {
            store(S_ARRIVED, 0);
            fence();
            release(S_GENERATION, generation.wrapping_add(1));
        }
        let mut looks = 0;
        while acquire(S_GENERATION) == generation {
            // The others are about to come: only who waits for long sleeps.
            sleep(if looks < 1000 { 0 } else { 500 });
            looks += 1;
        }
        // Lanes look by themselves, and go on together.
        ballot(1);
    }

    #[inline(always)]
    fn count(&self, active: u32) {
        self.active.set(self.active.get() + active);
        self.slots.set(self.slots.get() + WARP);
    }

    /// Tells how many lanes were active in a phase, and forgets it.
    pub fn tell_lanes(&self, phase: u32) {
        if lane() == 0 && self.slots.get() != 0 {
            // The lower halves: these are added up by whoever reads them.
            add(S_STATUS + (STATUS_ACTIVE + phase) * 8, self.active.get());
            add(S_STATUS + (STATUS_SLOTS + phase) * 8, self.slots.get());
        }
        self.active.set(0);
        self.slots.set(0);
    }

    /// Does something for every number below `n`.
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

    /// The same where some take longer: `body` says how many steps it took.
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

    /// What the threads before this one say, added up, and what all say.
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

    /// What all threads say, made one by `op`, for which 0 does nothing.
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

    /// The numbers below `n` this thread has where all get as many.
    fn share(&self, n: u32) -> (u32, u32) {
        let each = n.div_ceil(self.size);
        ((self.rank * each).min(n), (self.rank * each + each).min(n))
    }

    /// Tells for every number below `n` the sum of the values before it, and returns the sum of all.
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

    fn count_share(&self, n: u32) {
        let each = n.div_ceil(self.size);
        if each > 0 {
            let (with, first) = (n.div_ceil(each), self.rank - lane());
            if first < with {
                self.count((with - first).min(WARP));
            }
        }
    }

    /// [`Team::reduce`] over numbers below `n`.
    #[inline(always)]
    pub fn reduce_over(&self, n: u32, value: impl Fn(u32) -> u32, op: impl Fn(u32, u32) -> u32 + Copy) -> u32 {
        let (mut at, mut own) = (self.rank, 0);
        while at < n {
            own = op(own, value(at));
            at += self.size;
        }
        self.reduce(own, op)
    }

    /// Lists the numbers below `n` that are chosen, in order; how many.
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

    /// Sorts `n` words in memory, for which there is room up to the next power of two.
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

/// What the lanes of a warp say, made one.
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

/// Of `n` sums in memory, the last that is not above `value`: in whose share it falls. The first is 0.
#[inline(never)]
pub fn find_share(sums: u32, n: u32, value: u32) -> u32 {
    let (mut low, mut high) = (0, n);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if load(sums + middle * 4) <= value { low = middle } else { high = middle }
    }
    low
}

/// Where the `which`th bit that is set lies.
#[inline(always)]
pub fn find_bit(mut word: u32, which: u32) -> u32 {
    let mut left = which;
    while left > 0 {
        word &= word - 1;
        left -= 1;
    }
    word.trailing_zeros()
}
