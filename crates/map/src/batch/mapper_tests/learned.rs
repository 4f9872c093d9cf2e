//! What records were found to need, the next launches and batches begin with.

use super::rule::{alone, builds, grows, run_with};
use super::*;

#[test]
fn launches_that_follow_in_the_same_batch_begin_with_what_many_records_needed() {
    let limits = Limits { device_bytes: Some(64 << 20), ..Limits::default() };
    let program = program(wat!("worker"), Build::Exact(Layout::Linear));
    let records = vec![grows(63); 256];
    let (seen, again) = run_with(&program, Extent { capacity: 32, limits, ..Extent::default() }, &records, 1);
    assert_eq!(seen, alone(&records));
    assert!((1..256).contains(&again), "{again}");
}

#[test]
fn batches_that_follow_begin_with_what_many_records_needed() {
    let limits = Limits { device_bytes: Some(64 << 20), ..Limits::default() };
    let program = program(wat!("worker"), Build::Speculative(Placement::Interleaved));
    let mapper = Mapper::new(program.clone(), Extent { capacity: 32, limits, ..Extent::default() }, None).unwrap();
    let jobs = || super::jobs(&vec![grows(63); 32]);
    let again: Vec<u64> = (0..3).map(|_| mapper.run(jobs(), None).unwrap().1.reruns).collect();
    assert!(again[0] >= 32 && again[1..] == [0, 0], "{again:?}");
    let learned = mapper.tuning().unwrap().learned;
    assert_eq!(learned.unwrap().memory, 64 << 16);
    // So does who is told.
    let extent = Extent { capacity: 32, limits, learned, ..Extent::default() };
    let told = Mapper::new(program, extent, None).unwrap();
    assert_eq!(told.run(jobs(), None).unwrap().1.reruns, 0);
}

#[test]
fn batches_that_follow_have_room_for_what_many_records_printed() {
    for program in builds() {
        // The pool is enough for three of them.
        let limits =
            Limits { output_bytes: 600 << 10, outbox_bytes: 0, annex_bytes: Some(16 << 20), ..Limits::default() };
        let extent = Extent { capacity: 32, limits, ..Extent::default() };
        let mapper = Mapper::new(program.clone(), extent, None).unwrap();
        let jobs = || super::jobs(&vec![vec![b'p', 200]; 32]);
        let runs: Vec<_> = (0..3).map(|_| mapper.run(jobs(), None).unwrap()).collect();
        assert!(runs.iter().all(|(done, _)| done.iter().all(|done| done.stdout.len() == (200 << 10) + 4)));
        let again: Vec<u64> = runs.iter().map(|(_, stats)| stats.reruns).collect();
        assert!(again[0] >= 29 && again[1..] == [0, 0], "{again:?}");
        assert_eq!(runs[2].1.hostcalls, 0, "all of it was in annexes");
        let learned = mapper.tuning().unwrap().learned.unwrap();
        assert!((200 << 10..300 << 10).contains(&learned.output), "{learned:?}");
        assert_eq!((learned.memory, learned.stack), (0, 0), "what they had is not what they needed");
        let told = Mapper::new(program.clone(), Extent { learned: Some(learned), ..extent }, None).unwrap();
        let (_, stats) = told.run(jobs(), None).unwrap();
        assert_eq!((stats.reruns, stats.hostcalls), (0, 0));
    }
}

#[test]
fn what_one_batch_lacked_denies_the_next_one_nothing() {
    // Neither annexes nor room for answers: the first batch ends with records that run alone.
    let limits = Limits {
        device_bytes: Some(20 << 20),
        output_bytes: 300 << 10,
        outbox_bytes: 0,
        annex_bytes: Some(0),
        answer_bytes: 0,
        ..Limits::default()
    };
    let extent = Extent { capacity: 10, limits, ..Extent::default() };
    let first = [vec![b'p', 32], vec![b'a', 1], vec![b'a', 1, b'g', 47], vec![b'p', 56]];
    let records = first.into_iter().chain(vec![grows(48); 4]).collect::<Vec<_>>();
    for program in builds() {
        assert_eq!(run_with(program, extent, &records, 2).0, alone(&records));
    }
}

#[test]
fn one_greedy_record_does_not_make_the_others_fewer() {
    let limits = Limits { device_bytes: Some(256 << 20), ..Limits::default() };
    let program = program(wat!("worker"), Build::Speculative(Placement::Interleaved));
    let mapper = Mapper::new(program, Extent { capacity: 64, limits, ..Extent::default() }, None).unwrap();
    let mut records = vec![grows(1); 64];
    records[20] = grows(250);
    for _ in 0..2 {
        let (_, stats) = mapper.run(jobs(&records), None).unwrap();
        assert!(stats.reruns <= 4 && stats.reruns > 0, "{}", stats.reruns);
    }
    assert!(mapper.tuning().is_none());
}
