//! The machine's phases, against a model of them that is a few lines long, and against themselves on teams of other sizes.

mod support;

use fastrand::Rng;
use gpu_run_kernel::event::{self, *};
use gpu_run_kernel::layout::*;
use support::{Twin, read_ring, size};

fn object(kind: u16, key: u32, a: u32, b: u32) -> Event {
    Event { kind, flags: ANSWER, key, a, b, id: key ^ 0xABCD_0000, wait: 0 }
}

#[test]
fn events_have_their_effect_in_order() {
    let mut twin = Twin::boot();
    let events = [
        (object(CREATE, 7, 100, 0), DONE, None),
        (object(CREATE, 7, 100, 0), EXISTS, None),
        (object(WRITE, 7, 96, 5), DONE, Some(5)),
        (object(READ, 7, 96, 0), DONE, Some(5)),
        (object(READ, 7, 92, 0), DONE, Some(0)),
        (object(READ, 7, 100, 0), OUTSIDE, None),
        (object(READ, 7, 2, 0), OUTSIDE, None),
        (object(DESTROY, 7, 0, 0), DONE, None),
        (object(READ, 7, 0, 0), MISSING, None),
        (object(CREATE, 7, 70_000, 0), DONE, None),
        (object(WRITE, 7, 69_996, 9), DONE, Some(9)),
        (object(CREATE, 8, 0, 0), OUTSIDE, None),
        (object(CREATE, OBJECTS_MAX, 4, 0), OUTSIDE, None),
        (object(99, 1, 4, 0), UNKNOWN, None),
        (object(DESTROY, 9, 0, 0), MISSING, None),
    ];
    for (event, ..) in &events {
        twin.post(*event);
    }
    twin.run_to(1, 1, 32);
    let replies = twin.replies();
    assert_eq!(replies.len(), events.len());
    for (reply, (event, result, value)) in replies.iter().zip(&events) {
        assert_eq!((reply.kind, reply.id, reply.a), (event.kind | REPLY, event.id, *result), "{event:?}");
        assert!(value.is_none_or(|value| value == reply.b), "{event:?}: {reply:?}");
    }
    assert_eq!(twin.word(H_HEAP), 2 * PAGE_BYTES);
    twin.post(object(READ, 7, 69_996, 0));
    twin.post(object(DESTROY, 7, 0, 0));
    twin.run_to(2, 1, 32);
    assert_eq!(twin.replies()[0].b, 9);
    assert_eq!((twin.word(H_HEAP), twin.word(H_OBJECTS)), (0, 0));
}

#[test]
fn pings_are_answered_without_a_tick() {
    let mut twin = Twin::boot();
    for id in 0..20 {
        twin.post(Event { kind: PING, id, a: 77, ..Event::default() });
    }
    twin.run_to(1, 1, 32);
    let pongs = read_ring(&twin.world, PONG_RING, PONG_CAPACITY, &mut 0);
    assert_eq!(pongs.len(), 20);
    assert!(pongs.iter().zip(0..).all(|(pong, id)| pong.id == id && pong.kind == PING | REPLY && pong.a == 77));
    assert!(read_ring(&twin.world, LEDGER, LEDGER_CAPACITY, &mut 0).is_empty());
}

#[test]
fn timers_fire_when_they_are_due_and_again_if_asked() {
    let mut twin = Twin::boot();
    twin.post(Event { kind: CREATE, key: 1, a: 64, ..Event::default() });
    twin.post(Event { kind: READ, key: 1, wait: 3, id: 5, flags: ANSWER, ..Event::default() });
    twin.post(Event { kind: READ, key: 1, wait: 2, id: 6, flags: ANSWER | REPEAT, ..Event::default() });
    twin.run_to(8, 1, 32);
    let fired: Vec<(u32, u32)> = twin.replies().iter().map(|r| (r.id, r.wait)).collect();
    assert_eq!(fired, [(5, 0), (6, 0), (6, 2), (5, 3), (6, 4), (6, 6)]);
    assert_eq!(twin.word(H_TIMERS), 1);
}

#[test]
fn marks_keep_events_for_their_tick() {
    let mut twin = Twin::boot();
    twin.post(object(CREATE, 1, 64, 0));
    twin.post(Event { kind: MARK, a: 4, ..Event::default() });
    twin.post(object(READ, 1, 0, 0));
    twin.run_to(6, 1, 32);
    assert_eq!(twin.replies().iter().map(|reply| reply.wait).collect::<Vec<_>>(), [0, 4]);
    let ledger = read_ring(&twin.world, LEDGER, LEDGER_CAPACITY, &mut 0);
    assert_eq!(ledger.iter().map(|took| (took.a, took.key)).collect::<Vec<_>>(), [(0, 1), (4, 1)]);
}

/// Some of everything, for 12 ticks.
fn script(random: &mut Rng) -> Vec<Event> {
    let mut events = Vec::new();
    for tick in 0..12 {
        events.push(Event { kind: MARK, a: tick, ..Event::default() });
        for _ in 0..random.u32(..60) {
            let key = random.u32(..24);
            let wait = if random.u32(..8) == 0 { 1 + random.u32(..4) } else { 0 };
            let flags = if random.u32(..20) == 0 { REPEAT } else { 0 };
            let (kind, a, b) = match random.u32(..8) {
                0..3 => (CREATE, size(random, 6, 13), 0),
                3..5 => (DESTROY, 0, 0),
                5 => (WRITE, random.u32(..64) * 4, random.u32(..1 << 30)),
                6 => (event::WORK, random.u32(..1000), 1 + random.u32(..3)),
                _ => (READ, 0, 0),
            };
            events.push(Event { kind, flags, key, a, b, id: 0, wait });
        }
    }
    events
}

#[test]
fn state_is_the_same_whatever_the_team() {
    let events = script(&mut Rng::with_seed(42));
    let states: Vec<Vec<u64>> = [(1, 32, 12), (1, 64, 12), (2, 32, 12), (1, 32, 1)]
        .into_iter()
        .map(|(workers, threads, ticks_a_launch)| {
            let mut twin = Twin::boot();
            events.iter().for_each(|event| twin.post(*event));
            for tick in (ticks_a_launch..=12).step_by(ticks_a_launch as usize) {
                twin.run_to(tick, workers, threads);
            }
            twin.world.state()
        })
        .collect();
    for state in &states[1..] {
        let first = state.iter().zip(&states[0]).position(|(a, b)| a != b);
        assert_eq!(first.map(|at| format!("{:#x}", STATE as usize + at * 8)), None, "the first difference");
    }
    assert!(states[0].iter().filter(|word| **word != 0).count() > 10_000, "hardly anything happened");
}

#[test]
fn heap_gives_no_slot_twice_and_leaks_none() {
    let mut twin = Twin::boot();
    let mut random = Rng::with_seed(7);
    let mut sizes = std::collections::BTreeMap::new();
    for tick in 1..=10 {
        for _ in 0..100 {
            let key = random.u32(..400);
            if sizes.remove(&key).is_some() {
                twin.post(object(DESTROY, key, 0, 0));
            } else {
                let size = size(&mut random, 5, 14);
                sizes.insert(key, size);
                twin.post(object(CREATE, key, size, 0));
            }
        }
        twin.run_to(tick, 1, 32);
        assert!(twin.replies().iter().all(|reply| reply.a == event::DONE));
        let mut blocks: Vec<(u32, u32)> = sizes
            .keys()
            .map(|key| (twin.word(OBJECTS + key * OBJECT_BYTES), twin.word(OBJECTS + key * OBJECT_BYTES + 4)))
            .collect();
        blocks.sort();
        assert!(blocks.iter().zip(sizes.values()).all(|((at, _), _)| *at >= ARENA && *at < STATE_END));
        assert!(blocks.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "tick {tick}: blocks overlap");
        let taken: u32 = sizes.values().map(|size| gpu_run_kernel::heap::taken_by(*size)).sum();
        assert_eq!(twin.word(H_HEAP), taken);
    }
    sizes.keys().for_each(|key| twin.post(object(DESTROY, *key, 0, 0)));
    twin.run_to(11, 1, 32);
    assert_eq!(twin.word(H_HEAP), 0);
    assert!((0..PAGES).all(|page| twin.word(PAGE_TABLE + page * PAGE_ENTRY) == 0), "a page was kept");
}

#[test]
fn a_full_heap_refuses_and_goes_on() {
    let mut twin = Twin::boot();
    (0..300).for_each(|key| twin.post(object(CREATE, key, PAGE_BYTES, 0)));
    twin.run_to(1, 1, 32);
    let refused = twin.replies().iter().filter(|reply| reply.a == NO_ROOM).count();
    assert_eq!((refused, twin.word(H_OBJECTS)), (300 - PAGES as usize, PAGES));
    (0..300).for_each(|key| twin.post(object(DESTROY, key, 0, 0)));
    twin.run_to(2, 1, 32);
    assert_eq!((twin.word(H_HEAP), twin.word(H_REFUSED)), (0, 2 * refused as u32));
}

#[test]
fn of_two_creates_that_a_full_heap_refuses_in_one_tick_neither_makes_the_object() {
    let mut twin = Twin::boot();
    (0..PAGES).for_each(|key| twin.post(object(CREATE, key, PAGE_BYTES, 0)));
    twin.run_to(1, 1, 32);
    twin.replies();
    let events = [object(CREATE, PAGES, 64, 0), object(CREATE, PAGES, 64, 0), object(WRITE, PAGES, 0, 7)];
    events.into_iter().for_each(|event| twin.post(event));
    twin.run_to(2, 1, 32);
    let results: Vec<_> = twin.replies().iter().map(|reply| reply.a).collect();
    assert_eq!(results, [NO_ROOM, NO_ROOM, MISSING]);
    assert_eq!(twin.word(H_OBJECTS), PAGES);
}

#[test]
fn a_storm_leaves_nothing_behind() {
    for (groups, threads) in [(1, 32), (2, 64)] {
        let twin = Twin::boot();
        twin.world.set_bus_word(PING_WORD, 60);
        twin.world.set_bus_word(PING_WORD + 8, 1);
        twin.world.launch(groups, threads, || gpu_run_kernel::measure::heap_storm());
        let [wrong, taken, refused, left] = [0, 8, 16, 24].map(|word| twin.world.bus_word(PONG_WORD + word));
        let pages: Vec<(u32, u32)> = (0..PAGES)
            .map(|page| (twin.word(PAGE_TABLE + page * PAGE_ENTRY), twin.word(PAGE_TABLE + page * PAGE_ENTRY + 4)))
            .filter(|page| *page != (0, 0))
            .collect();
        assert_eq!((wrong, refused, left, pages), (0, 0, 0, vec![]));
        assert!(taken > 20 * (groups * threads) as u64, "{taken}");
    }
}
