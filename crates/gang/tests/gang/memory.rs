//! The memory that all share, and what each thread has for itself.

use super::*;

#[test]
fn every_thread_has_its_own_stack_and_globals() {
    let mut gang = gang(wat!("stacks"), &GangOptions { groups: 2, ..WIDE });
    // Twice: a launch begins with globals as they were at first.
    for _ in 0..2 {
        run(&mut gang, "stack");
        assert_eq!(words(&gang, 0, 2048), (0..2048).collect::<Vec<_>>());
        assert_eq!(words(&gang, 16384, 2048), (0..2048).map(|t| t + 5).collect::<Vec<_>>());
        let tops: Vec<u32> = (0..2048).map(|t| (1 << 16) + (t + 1) * 1024 - 16).collect();
        assert_eq!(words(&gang, 32768, 2048), tops);
    }
    assert_eq!(gang.read_image().unwrap().len(), 1 << 16, "stacks are no part of the image");
}

#[test]
fn a_memory_is_as_large_as_the_image_and_never_grows() {
    let mut gang = gang(wat!("sizes"), &GangOptions { threads: 1, image_bytes: 4 << 16, ..WIDE });
    run(&mut gang, "run");
    assert_eq!(words(&gang, 0, 3), [4, u32::MAX, 4]);
    run(&mut gang, "bulk");
    let image = gang.read_image().unwrap();
    assert_eq!((image[1000..1100].to_vec(), image[3001..3051].to_vec()), (vec![7; 100], vec![7; 50]));
    assert_eq!(image.len(), 4 << 16);
}

#[test]
fn accesses_are_checked_to_the_guard_and_misaligned_ones_work_where_nothing_is_promised() {
    let mut gang = gang(wat!("accesses"), &GangOptions { threads: 1, ..WIDE });
    run(&mut gang, "unaligned");
    assert_eq!(words(&gang, 0, 4), [0x0605_0403, 0x1211, 8, 0x0605_0403]);
    run(&mut gang, "wrapped");
    assert_eq!(words(&gang, 16, 1), [77]);
    for (entry, code) in [
        ("broken_promise", TrapCode::MemoryOutOfBounds),
        ("beyond", TrapCode::MemoryOutOfBounds),
        ("far", TrapCode::MemoryOutOfBounds),
        ("bulk", TrapCode::MemoryOutOfBounds),
        ("atomic", TrapCode::MemoryOutOfBounds),
        ("skew", TrapCode::UnalignedAtomic),
    ] {
        let trap = gang.launch(entry).unwrap().wait().unwrap().unwrap_err();
        assert_eq!(trap.trap.code, code, "{entry}: {trap}");
        gang.recover().unwrap();
    }
}
