//! The heap: pages of 64 KiB, each holding slots of one size class, 64 B to 64 KiB, or part of an allocation of several pages.
//!
//! A warp reads a page's bitmap, 32 words, with one load. [`allocate`] and [`free`] serve all requests of a phase at once: one scan
//! ranks the requests, another the vacant slots, and request *r* gets slot *r*; so the addresses do not depend on the threads. [`take`]
//! and [`give_back`] serve each thread as it comes, without locks: fast, but the addresses vary, and no phase calls [`take`].

use crate::gpu::*;
use crate::layout::*;
use crate::team::{Team, find_bit, find_share};

/// Returns the size class of an allocation; [`CLASSES`] if the allocation needs several pages.
#[inline(always)]
pub fn class_of(bytes: u32) -> u32 {
    let slots = bytes.max(SMALLEST).next_power_of_two();
    (slots.trailing_zeros() - SMALLEST.trailing_zeros()).min(CLASSES)
}

#[inline(always)]
pub fn class_bytes(class: u32) -> u32 {
    SMALLEST << class
}

/// Returns the number of slots of this size class in a page.
#[inline(always)]
fn slots(class: u32) -> u32 {
    PAGE_BYTES / class_bytes(class)
}

/// Returns how many bytes of the heap an allocation uses.
pub fn taken_by(bytes: u32) -> u32 {
    let class = class_of(bytes);
    if class < CLASSES { class_bytes(class) } else { bytes.div_ceil(PAGE_BYTES) * PAGE_BYTES }
}

#[inline(always)]
fn holds(page: u32) -> u32 {
    PAGE_TABLE + page * PAGE_ENTRY + PAGE_HOLDS
}
#[inline(always)]
fn vacant(page: u32) -> u32 {
    PAGE_TABLE + page * PAGE_ENTRY + PAGE_VACANT
}
#[inline(always)]
fn bits(page: u32, word: u32) -> u32 {
    BITMAPS + page * BITMAP_BYTES + word * 4
}
#[inline(always)]
fn address(page: u32, class: u32, slot: u32) -> u32 {
    ARENA + page * PAGE_BYTES + slot * class_bytes(class)
}

/// Returns a mask of the bits of a bitmap word that stand for slots.
#[inline(always)]
fn slots_of_word(class: u32) -> u32 {
    if slots(class) >= 32 { u32::MAX } else { (1 << slots(class)) - 1 }
}

/// Serves the `n` requests of a phase: sizes in bytes at [`X_WANT`] (0: no request), addresses to [`X_GOT`] (0: no space).
pub fn allocate(team: &Team, n: u32) {
    let want = |i: u32| load(X_WANT + i * 4);
    let classes = team.reduce_over(n, |i| if want(i) == 0 { 0 } else { 1 << class_of(want(i)) }, |a, b| a | b);
    let mut class = 0;
    while class < CLASSES {
        if classes >> class & 1 == 1 {
            allocate_slots(team, n, class);
        }
        class += 1;
    }
    if classes >> CLASSES & 1 == 1 {
        allocate_pages(team, n);
    }
}

#[inline(never)]
fn allocate_slots(team: &Team, n: u32, class: u32) {
    let wants = |i: u32| load(X_WANT + i * 4) != 0 && class_of(load(X_WANT + i * 4)) == class;
    let wanted = team.compact(n, wants, |i, rank| store(X_RANK + i * 4, rank));
    let mut there = count_vacant(team, class);
    if wanted > there {
        let more = (wanted - there).div_ceil(slots(class));
        let fresh = |page: u32| load(holds(page)) == 0;
        team.compact(PAGES, fresh, |page, rank| {
            if rank < more {
                prepare(page, class);
                store(holds(page), 1 + class);
            }
        });
        there = count_vacant(team, class);
        if there < wanted && team.leads() {
            crate::debug!("no room for {} of {} bytes", wanted - there, class_bytes(class));
        }
    }
    team.for_each(n, |i| {
        if wants(i) {
            let rank = load(X_RANK + i * 4);
            store(X_GOT + i * 4, if rank < there { find_slot(class, rank) } else { 0 });
        }
    });
    team.for_each(n, |i| {
        if wants(i) && load(X_GOT + i * 4) != 0 {
            let at = load(X_GOT + i * 4) - ARENA;
            let slot = at % PAGE_BYTES / class_bytes(class);
            or(bits(at / PAGE_BYTES, slot / 32), 1 << (slot % 32));
            add(vacant(at / PAGE_BYTES), u32::MAX);
        }
    });
    if team.leads() {
        store(H_HEAP, load(H_HEAP) + wanted.min(there) * class_bytes(class));
    }
    team.meet();
}

/// Makes all slots of a page vacant.
fn prepare(page: u32, class: u32) {
    let mut word = 0;
    while word < slots(class).div_ceil(32) {
        store(bits(page, word), 0);
        word += 1;
    }
    store(vacant(page), slots(class));
}

/// Returns the number of vacant slots of a size class; writes to [`X_PAGES`] how many are in the pages before each page.
fn count_vacant(team: &Team, class: u32) -> u32 {
    let vacant_in = |page: u32| if load(holds(page)) == 1 + class { load(vacant(page)) } else { 0 };
    team.scan(PAGES, vacant_in, |page, before| store(X_PAGES + page * 4, before))
}

/// Returns the address of the `rank`th vacant slot of a size class, after [`count_vacant`].
#[inline(never)]
fn find_slot(class: u32, rank: u32) -> u32 {
    let page = find_share(X_PAGES, PAGES, rank);
    let mut left = rank - load(X_PAGES + page * 4);
    let mut word = 0;
    loop {
        let free = !load(bits(page, word)) & slots_of_word(class);
        if left < free.count_ones() || word == 31 {
            return address(page, class, word * 32 + find_bit(free, left));
        }
        left -= free.count_ones();
        word += 1;
    }
}

/// Serves the requests for several pages, one after the other: for each, all threads search for the first free range.
#[inline(never)]
fn allocate_pages(team: &Team, n: u32) {
    let wants = |i: u32| class_of(load(X_WANT + i * 4)) == CLASSES;
    let count = team.compact(n, wants, |i, rank| store(X_LIST + rank * 4, i));
    let mut which = 0;
    while which < count {
        let i = load(X_LIST + which * 4);
        let pages = load(X_WANT + i * 4).div_ceil(PAGE_BYTES);
        // A free range from page p on counts as PAGES - p, so the maximum is the first range.
        let last = PAGES + 1 - pages.min(PAGES);
        let place = team.reduce_over(last, |from| if is_free(from, pages) { PAGES - from } else { 0 }, u32::max);
        if place != 0 {
            let from = PAGES - place;
            team.for_each(pages, |at| {
                store(holds(from + at), if at == 0 { RUN } else { RUN_ON });
                store(vacant(from + at), if at == 0 { pages } else { 0 });
            });
        }
        if team.leads() {
            store(X_GOT + i * 4, if place == 0 { 0 } else { ARENA + (PAGES - place) * PAGE_BYTES });
            store(H_HEAP, load(H_HEAP) + if place == 0 { 0 } else { pages * PAGE_BYTES });
        }
        team.meet();
        which += 1;
    }
}

fn is_free(from: u32, pages: u32) -> bool {
    let mut at = 0;
    while at < pages && load(holds(from + at)) == 0 {
        at += 1;
    }
    at == pages
}

/// Frees the allocations of a phase at the `n` addresses in [`X_FREE`] (0: none). Each address must be in use.
pub fn free(team: &Team, n: u32) {
    let any = team.reduce_over(n, |i| load(X_FREE + i * 4), |a, b| a | b);
    if any == 0 {
        return;
    }
    team.for_each(n, |i| {
        let at = load(X_FREE + i * 4);
        if at != 0 {
            free_one(at);
        }
    });
    collect(team);
}

/// Marks each page that has no slot in use as holding nothing.
pub fn collect(team: &Team) {
    team.for_each(PAGES, |page| {
        let held = load(holds(page));
        if (1..=CLASSES).contains(&held) && load(vacant(page)) == slots(held - 1) {
            store(holds(page), 0);
            store(vacant(page), 0);
        }
    });
}

fn free_one(at: u32) {
    let page = (at - ARENA) / PAGE_BYTES;
    let held = load(holds(page));
    if held == RUN {
        let pages = load(vacant(page));
        let mut each = 0;
        while each < pages {
            store(holds(page + each), 0);
            store(vacant(page + each), 0);
            each += 1;
        }
        add(H_HEAP, (pages * PAGE_BYTES).wrapping_neg());
    } else if (1..=CLASSES).contains(&held) {
        give_back(at);
        add(H_HEAP, class_bytes(held - 1).wrapping_neg());
    }
}

/// Gives each lane that wants one the address of a slot, or 0. All lanes of a warp call it together; no warp waits for another.
#[inline(never)]
pub fn take(wants: bool, class: u32) -> u32 {
    let mut got = 0;
    let mut pending = wants;
    loop {
        let asking = ballot(pending as u32);
        if asking == 0 {
            return got;
        }
        // All lanes that want the same size class as the first pending lane are served together.
        let wanted = shuffle(class, asking.trailing_zeros());
        let mine = pending && class == wanted;
        let served = ballot(mine as u32);
        let rank = (served & ((1 << lane()) - 1)).count_ones();
        match find_page(wanted) {
            Some(page) => {
                let words = slots(wanted).div_ceil(32);
                if mine {
                    got = claim(page, wanted, (rank + thread() / WARP) % words);
                    pending = got == 0;
                }
            }
            // No page of this class has a vacant slot, and no page is empty.
            None if mine => pending = false,
            None => {}
        }
    }
}

/// Returns a page of this class with a vacant slot, or turns an empty page into one. The warp looks at 32 pages at a time.
fn find_page(class: u32) -> Option<u32> {
    loop {
        let (mut base, mut fresh) = (0, None);
        while base < PAGES {
            // Warps begin at different pages, so that they do not all claim slots of the same page.
            let page = (base + thread() / WARP * WARP + group() * WARP + lane()) % PAGES;
            let held = acquire(holds(page));
            let room = ballot((held == 1 + class && acquire(vacant(page)) != 0) as u32);
            if room != 0 {
                return Some(shuffle(page, room.trailing_zeros()));
            }
            let empty = ballot((held == 0) as u32);
            if fresh.is_none() && empty != 0 {
                fresh = Some(shuffle(page, empty.trailing_zeros()));
            }
            base += WARP;
        }
        let page = fresh?;
        let mut won = 0;
        if lane() == 0 && swap_if(holds(page), 0, CLAIMED) {
            won = 1;
        }
        if shuffle(won, 0) == 1 {
            store(bits(page, lane()), 0);
            fence();
            if ballot(1) != 0 && lane() == 0 {
                release(vacant(page), slots(class));
                release(holds(page), 1 + class);
            }
            // No lane takes a slot before lane 0 has stored the number of vacant slots.
            ballot(1);
            return Some(page);
        }
    }
}

/// Takes a vacant slot of a page and returns its address, 0 if there is none. The search begins at the bitmap word `from`.
fn claim(page: u32, class: u32, from: u32) -> u32 {
    let words = slots(class).div_ceil(32);
    let mut tried = 0;
    while tried < words {
        let word = (from + tried) % words;
        loop {
            let free = !acquire(bits(page, word)) & slots_of_word(class);
            if free == 0 {
                break;
            }
            // Lanes begin at different bits, so that they do not all try to take the same slot.
            let turned = free.rotate_right(lane());
            let bit = (turned.trailing_zeros() + lane()) % 32;
            if or(bits(page, word), 1 << bit) & (1 << bit) == 0 {
                add(vacant(page), u32::MAX);
                return address(page, class, word * 32 + bit);
            }
        }
        tried += 1;
    }
    0
}

/// Frees a slot.
#[inline(never)]
pub fn give_back(at: u32) {
    let page = (at - ARENA) / PAGE_BYTES;
    let class = acquire(holds(page)) - 1;
    let slot = (at - ARENA) % PAGE_BYTES / class_bytes(class);
    let bit = 1 << (slot % 32);
    if and(bits(page, slot / 32), !bit) & bit != 0 {
        add(vacant(page), 1);
    }
}
