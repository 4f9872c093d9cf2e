//! A storm of allocations and frees: every thread allocates, writes, checks and frees at random.
//!
//! The ping words of the bus hold the number of rounds and a seed. The pong words get the results: how often a block did
//! not hold what its owner wrote, how many allocations were served and how many were refused, and the sum of
//! [`PAGE_HOLDS`] over all pages after everything is freed, which is 0 if nothing leaked.

use crate::gpu::*;
use crate::heap;
use crate::layout::*;
use crate::team::Team;
use crate::work::mix;

/// The maximum number of blocks that a thread holds.
const HELD: usize = 4;

pub fn storm() {
    let (rounds, seed) = (bus_load(PING_WORD) as u32, bus_load(PING_WORD + 8) as u32);
    let team = Team::new(groups());
    let mut held = [0u32; HELD];
    let mut random = mix(seed ^ team.rank.wrapping_mul(0x9E37_79B9));
    let (mut wrong, mut taken, mut refused) = (0, 0, 0);
    let mut round = 0;
    while round < rounds {
        random = mix(random.wrapping_add(0x6D2B_79F5));
        let which = random as usize % HELD;
        let wants = held[which] == 0;
        if !wants {
            wrong += !is_intact(held[which], team.rank) as u32;
            heap::give_back(held[which]);
            held[which] = 0;
        }
        // Small blocks more often: each size class half as often as the one before it, but the last two equally often.
        let class = (random >> 8).leading_zeros().saturating_sub(8).min(5);
        let got = heap::take(wants, class);
        if wants && got != 0 {
            held[which] = got;
            mark(got, team.rank);
            taken += 1;
        } else if wants {
            refused += 1;
        }
        round += 1;
    }
    let mut which = 0;
    while which < HELD {
        if held[which] != 0 {
            wrong += !is_intact(held[which], team.rank) as u32;
            heap::give_back(held[which]);
        }
        which += 1;
    }
    team.meet();
    heap::collect(&team);
    report(PONG_WORD, &team, wrong);
    report(PONG_WORD + 8, &team, taken);
    report(PONG_WORD + 16, &team, refused);
    let left = team.reduce_over(PAGES, |page| load(PAGE_TABLE + page * PAGE_ENTRY + PAGE_HOLDS), u32::wrapping_add);
    report(PONG_WORD + 24, &team, if team.leads() { left } else { 0 });
}

/// Writes the sum of all threads' values to a word of the bus.
fn report(at: u32, team: &Team, value: u32) {
    let all = team.reduce(value, u32::wrapping_add);
    if team.leads() {
        bus_put(at, all as u64);
    }
}

/// Writes the owner to the first and the last word of the block's first 64 bytes: the smallest slot has no more.
fn mark(at: u32, owner: u32) {
    store(at, owner ^ at);
    store(at + SMALLEST - 4, !(owner ^ at));
}

fn is_intact(at: u32, owner: u32) -> bool {
    load(at) == owner ^ at && load(at + SMALLEST - 4) == !(owner ^ at)
}
