//! A device that others have left little of, or whose memory comes and goes: every record gives what it gives alone.

use super::rule::{alone, cases, records, run_with};
use super::*;
use gpu_run_device::scarce::Scarce;
use proptest::prelude::*;
use std::sync::atomic::Ordering;

/// Threads that a stack is set aside for.
const RESIDENT: u64 = 1024;
const MIB: u64 = 1 << 20;

/// The worker on a device with so much memory, built in one of the ways.
fn on(device: &Arc<Scarce>, build: usize) -> Arc<Program> {
    let build = [
        Build::Exact(Layout::Linear),
        Build::Exact(Layout::Interleaved),
        Build::Speculative(Placement::Interleaved),
        Build::speculative(Layout::Interleaved, 192 << 10),
    ][build];
    Arc::new(Program::load(device.clone(), Arc::new(compiled(wat!("worker"), build))).unwrap())
}

/// A device that clears slots, as a GPU does, and `cpu` does not.
#[test]
fn an_instance_finds_nothing_of_those_that_had_its_slot_before() {
    let device = Scarce::new(1024 * MIB, RESIDENT, 32 << 10);
    super::fresh::finds_nothing_of_others(|wat, layout| {
        Arc::new(Program::load(device.clone(), Arc::new(compiled(wat, Build::Exact(layout)))).unwrap())
    });
}

fn deep(depth: u8) -> Vec<u8> {
    vec![b'r', depth]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases().min(100), ..ProptestConfig::default() })]

    #[test]
    fn a_device_with_little_memory_gives_what_each_record_gives_alone(
        records in records(),
        memory in 64u64..256,
        stack in 256u32..1024,
        capacity in 1usize..50,
        batches in 1usize..4,
        build in 0usize..4,
    ) {
        let expected = alone(&records);
        let device = Scarce::new(memory * MIB, RESIDENT, stack << 10);
        let extent = Extent { capacity, ..Extent::default() };
        let (seen, _) = run_with(&on(&device, build), extent, &records, batches);
        prop_assert_eq!(seen, expected);
    }
}

#[test]
fn stacks_that_need_the_memory_of_slots_are_given_it() {
    // 40 MiB for slots at first, of 64: and then stacks that take up to 48.
    let device = Scarce::new(64 * MIB, RESIDENT, 48 << 10);
    let records: Vec<_> = (0..64).map(|i| if i % 2 == 0 { deep(255) } else { vec![b'g', 8] }).collect();
    for build in 0..4 {
        let (seen, again) = run_with(&on(&device, build), Extent { capacity: 64, ..Extent::default() }, &records, 1);
        assert_eq!(seen, alone(&records));
        assert!(again > 0);
    }
}

#[test]
fn a_stack_that_the_device_has_no_memory_for_is_the_hosts() {
    let device = Scarce::new(64 * MIB, 4 * RESIDENT, 1 << 20);
    let records = [deep(255), deep(1), vec![b'a', 3, b'r', 255, b'a', 2]];
    for build in 0..4 {
        let (seen, _) = run_with(&on(&device, build), Extent { capacity: 3, ..Extent::default() }, &records, 1);
        assert_eq!(seen, alone(&records));
        assert_eq!(seen.1, 5, "what it did before it ran again it does not do again");
    }
}

#[test]
fn what_ran_on_the_host_teaches_nothing_about_stacks_on_the_device() {
    let device = Scarce::new(64 * MIB, 4 * RESIDENT, 1 << 20);
    let mapper = Mapper::new(on(&device, 0), Extent { capacity: 8, ..Extent::default() }, None).unwrap();
    for _ in 0..2 {
        let (_, stats) = mapper.run(super::tests::jobs(&vec![deep(255); 8]), None).unwrap();
        assert_eq!(stats.on_host, 8);
    }
    assert_eq!(mapper.tuning(), None);
}

#[test]
fn a_neighbour_that_takes_memory_in_between_costs_no_record() {
    let device = Scarce::new(256 * MIB, RESIDENT, 32 << 10);
    let mapper = Mapper::new(on(&device, 0), Extent { capacity: 64, ..Extent::default() }, None).unwrap();
    let run = |held: u64| {
        device.hold(held * MIB, false);
        let (results, stats) = mapper.run(super::tests::jobs(&vec![vec![b'g', 16]; 64]), None).unwrap();
        assert!(results.iter().all(|done| *done.end == End::Returned));
        stats.launches
    };
    let before = run(0);
    assert!(run(240) > before, "with little memory, fewer run at once");
}

#[test]
fn when_a_neighbour_leaves_the_rest_of_a_batch_has_its_memory() {
    let launches = |leaves: bool| {
        let device = Scarce::new(256 * MIB, RESIDENT, 32 << 10);
        device.hold(240 * MIB, false);
        let (neighbour, begun) = (device.clone(), AtomicUsize::new(0));
        let watch: Watch = Arc::new(move || {
            if begun.fetch_add(1, Ordering::Relaxed) == 2 && leaves {
                neighbour.hold(0, false);
                std::thread::sleep(Duration::from_millis(1100));
            }
            Box::new(())
        });
        let extent = Extent { capacity: 64, ..Extent::default() };
        let mapper = Mapper::new(on(&device, 0), extent, Some(watch)).unwrap();
        let (results, stats) = mapper.run(super::tests::jobs(&vec![vec![b'g', 16]; 64]), None).unwrap();
        assert!(results.iter().all(|done| *done.end == End::Returned));
        stats.launches
    };
    let (stays, leaves) = (launches(false), launches(true));
    assert!(leaves < stays, "{leaves} launches, {stays} while it stays");
}

#[test]
fn who_finds_no_memory_waits_for_others_of_ours() {
    let device = Scarce::new(64 * MIB, RESIDENT, 8 << 10);
    let program = on(&device, 0);
    device.hold(64 * MIB, true);
    let leaves = device.clone();
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        leaves.hold(0, false);
    });
    let (seen, _) = run_with(&program, Extent { capacity: 4, ..Extent::default() }, &[deep(1), deep(2)], 1);
    other.join().unwrap();
    assert_eq!(seen, alone(&[deep(1), deep(2)]));
}

#[test]
fn an_instance_that_does_not_fit_is_told_with_what_it_takes_and_what_is_free() {
    let device = Scarce::new(8 * MIB, 16 * RESIDENT, 8 << 10);
    let mapper = Mapper::new(on(&device, 0), Extent { capacity: 4, ..Extent::default() }, None).unwrap();
    let error = mapper.run(super::tests::jobs(&[deep(1)]), None).unwrap_err().to_string();
    assert!(error.starts_with("one instance does not fit on scarce: it takes about"), "{error}");
}
