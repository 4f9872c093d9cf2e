//! The memory of texts: pieces of 1, 2, 4, … units (buddies). Two free halves of a piece become one again.

use crate::memory::*;
use gpu_run_kernel::gpu::{load, store};

const LARGEST: u32 = TEXT_ORDERS - 1;

fn free(order: u32) -> u32 {
    TEXT_FREE + order * 4
}

/// The size of the free piece that begins with a unit, plus 1.
fn piece(unit: u32) -> u32 {
    TEXT_PIECES + unit * 4
}

/// The links of a free piece, which are in its own memory: the next one and the one before, plus 1.
fn next(unit: u32) -> u32 {
    TEXT_ARENA + unit * UNIT_BYTES
}
fn previous(unit: u32) -> u32 {
    next(unit) + 4
}

fn link(unit: u32, order: u32) {
    let first = load(free(order));
    store(next(unit), first);
    store(previous(unit), 0);
    if first != 0 {
        store(previous(first - 1), unit + 1);
    }
    store(free(order), unit + 1);
    store(piece(unit), order + 1);
}

fn unlink(unit: u32, order: u32) {
    let (after, before) = (load(next(unit)), load(previous(unit)));
    store(if before == 0 { free(order) } else { next(before - 1) }, after);
    if after != 0 {
        store(previous(after - 1), before);
    }
    store(piece(unit), 0);
}

/// Takes a piece of 2ᵒʳᵈᵉʳ units; returns its first unit, or [`NONE`] if there is no memory left.
pub fn take(order: u32) -> u32 {
    let mut from = order;
    while from < TEXT_ORDERS && load(free(from)) == 0 {
        from += 1;
    }
    let unit = if from < TEXT_ORDERS {
        load(free(from)) - 1
    } else if load(D_TEXT_USED) < TEXT_UNITS {
        load(D_TEXT_USED)
    } else {
        return NONE;
    };
    if from < TEXT_ORDERS {
        unlink(unit, from);
    } else {
        from = LARGEST;
        store(D_TEXT_USED, unit + (1 << LARGEST));
    }
    while from > order {
        from -= 1;
        link(unit + (1 << from), from);
    }
    store(D_TEXT_COUNT, load(D_TEXT_COUNT) + (1 << order));
    unit
}

/// Gives a piece back.
pub fn give(mut unit: u32, mut order: u32) {
    store(D_TEXT_COUNT, load(D_TEXT_COUNT) - (1 << order));
    while order < LARGEST && load(piece(unit ^ 1 << order)) == order + 1 {
        unlink(unit ^ 1 << order, order);
        unit &= !(1 << order);
        order += 1;
    }
    link(unit, order);
}
