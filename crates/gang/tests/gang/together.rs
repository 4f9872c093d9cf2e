//! Threads that meet: at barriers, in votes, at atomics.

use super::*;

#[test]
fn threads_see_what_others_wrote_before_a_barrier() {
    let mut gang = gang(wat!("exchange"), &WIDE);
    run(&mut gang, "exchange");
    let expected: Vec<u32> = (0..1024).map(|t| ((t + 7) & 1023) + 4).collect();
    assert_eq!(words(&gang, 8192, 1024), expected);
}

#[test]
fn lanes_vote_and_shuffle() {
    let mut gang = gang(wat!("lanes"), &WIDE);
    let votes: u32 = (0..32).filter(|l| l & 5 != 0).map(|l| 1 << l).sum();
    type Expected<'a> = (&'a str, &'a dyn Fn(u32) -> u32);
    let cases: [Expected<'_>; 4] = [
        ("ballot", &|_| votes),
        ("index", &|t| (t & !31) + (((t & 31) * 3) & 31)),
        ("up", &|t| if t & 31 < 3 { t } else { t - 3 }),
        ("xor", &|t| t ^ 9),
    ];
    for (entry, expected) in cases {
        run(&mut gang, entry);
        assert_eq!(words(&gang, 0, 1024), (0..1024).map(expected).collect::<Vec<_>>(), "{entry}");
    }
}

#[test]
fn atomics_count_every_thread_of_every_group() {
    for relaxed in [false, true] {
        let options = GangOptions { groups: 3, relaxed, ..WIDE };
        let mut gang = gang(wat!("counting"), &options);
        run(&mut gang, "count");
        let counted = words(&gang, 16, 8);
        let threads = 3 * 1024;
        let xor = (0..threads).fold(0, |a, b| a ^ b);
        assert_eq!(counted[0], 9 * threads);
        assert_eq!(counted[2..4], [27 * threads, 0]);
        assert_eq!(counted[4], ((9 * threads) & 0xff) << 8, "a byte within its word");
        assert_eq!(counted[6], xor);
    }
}

#[test]
fn a_lock_is_held_by_one_thread_at_a_time() {
    let mut gang = gang(wat!("counting"), &GangOptions { threads: 64, groups: 5, relaxed: true, ..WIDE });
    run(&mut gang, "lock");
    assert_eq!(words(&gang, 4, 1), [64 * 5 * 2]);
}

#[test]
fn a_grid_barrier_of_atomics_lets_all_groups_through() {
    // More groups than the host has cores.
    let mut gang = gang(wat!("grid_barrier"), &GangOptions { threads: 256, groups: 12, relaxed: true, ..WIDE });
    run(&mut gang, "run");
    assert_eq!(words(&gang, 32768, 3072), [20; 3072]);
}

#[test]
fn workgroups_have_memory_of_their_own() {
    let mut gang = gang(wat!("workgroup_memory"), &GangOptions { groups: 3, ..WIDE });
    run(&mut gang, "run");
    assert_eq!(words(&gang, 0, 3072), (0..3072).map(|t| (t ^ 1) + 2048).collect::<Vec<_>>());
    run(&mut gang, "table");
    assert_eq!(words(&gang, 0, 3072), (0..3072).map(|t| t ^ 1).collect::<Vec<_>>());
}

#[test]
fn what_is_outside_the_workgroups_memory_traps() {
    for entry in ["outside", "beyond", "between"] {
        let mut gang = gang(wat!("workgroup_memory"), &GangOptions { groups: 3, ..WIDE });
        let trap = gang.launch(entry).unwrap().wait().unwrap().unwrap_err();
        assert_eq!(trap.trap.code, TrapCode::MemoryOutOfBounds, "{entry}");
    }
}
