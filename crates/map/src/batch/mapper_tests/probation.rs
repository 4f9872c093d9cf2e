//! A part of a batch tries another build, where launches take long.

use super::*;

/// Any launch is reason enough to try another build.
fn eager(program: Arc<Program>, capacity: usize) -> Mapper {
    let slow = Slow { took: Duration::ZERO, instances: 0 };
    Mapper::trying(program, Extent { capacity, ..Extent::default() }, None, Some(slow)).unwrap()
}

/// Runs a batch of so many, checks what each wrote, and says how many launches it took.
fn run(mapper: &Mapper, count: usize) -> u64 {
    let inputs: Vec<String> = (0..count).map(|i| format!("record {i}")).collect();
    let (results, stats) = mapper.run(jobs(&inputs), None).unwrap();
    let written: Vec<_> = results.iter().map(|done| String::from_utf8_lossy(done.stdout).into_owned()).collect();
    assert_eq!(written, inputs);
    assert_eq!(stats.instances, count as u64);
    stats.launches
}

#[test]
fn a_part_of_the_next_batch_runs_in_another_build_and_all_results_are_in_order() {
    for (local_bytes, memory) in [(0, MemoryKind::Interleaved), (128 << 10, MemoryKind::Local)] {
        let mapper = eager(program(wat!("cat"), Build::speculative(Layout::Interleaved, local_bytes)), 16);
        assert_eq!((run(&mapper, 16), mapper.tuning()), (1, None));
        assert_eq!(run(&mapper, 16), 2, "12 here, 4 there");
        let trials = mapper.tuning().unwrap().trials;
        let [here, there] = &trials[..] else { panic!("{trials:?}") };
        assert_eq!((here.variant.memory, here.variant.batch), (memory, 16));
        assert_eq!(there.variant, Variant::apart(16));
        assert!(here.per_second > 0.0 && there.per_second > 0.0, "{trials:?}");
        assert_eq!(run(&mapper, 16), 1, "tried once");
    }
}

#[test]
fn of_a_batch_with_more_than_there_is_room_for_a_part_of_one_launch_is_tried() {
    let mapper = eager(program(wat!("cat"), Build::Speculative(Placement::Interleaved)), 8);
    run(&mapper, 8);
    assert_eq!(run(&mapper, 20), 4, "8, 8 and 2 here, 2 there");
}

#[test]
fn two_batches_under_way_are_no_obstacle() {
    let mapper = eager(program(wat!("cat"), Build::Speculative(Placement::Interleaved)), 8);
    run(&mapper, 8);
    let begin = || mapper.begin(jobs(&["a"; 8]), None).unwrap();
    let mut pending = begin();
    for _ in 0..4 {
        let next = begin();
        assert_eq!(pending.finish().unwrap().0.len(), 8);
        pending = next;
    }
    drop(pending);
    assert!(mapper.tuning().is_some());
    mapper.settle();
}

#[test]
fn the_faster_build_has_all_that_follow() {
    let mapper = eager(program(wat!("cat"), Build::Speculative(Placement::Interleaved)), 8);
    let plan = mapper.inner.stages.as_ref().unwrap().apart(mapper.inner.plan.lock().unwrap());
    *mapper.inner.plan.lock() = Some(plan);
    run(&mapper, 20);
    let there = mapper.inner.begin(8).unwrap().unwrap();
    assert_eq!(there.program.compiled().layout(), Layout::Linear);
}

#[test]
fn what_cannot_be_built_is_not_tried_and_its_part_runs_here() {
    let mut compiled = compiled(wat!("cat"), Build::Speculative(Placement::Interleaved));
    compiled.wasm = Arc::new(b"not wasm".to_vec());
    let mapper = eager(loaded(compiled), 16);
    run(&mapper, 16);
    assert_eq!((run(&mapper, 16), mapper.tuning()), (2, None));
    assert_eq!(run(&mapper, 16), 1);
}

#[test]
fn nothing_is_tried_where_nobody_wants_it_or_the_build_is_no_guess() {
    let mappers = [
        eager(program(wat!("cat"), Build::Speculative(Placement::Linear)), 8),
        Mapper::new(
            program(wat!("cat"), Build::Speculative(Placement::Interleaved)),
            Extent { capacity: 8, ..Extent::default() },
            None,
        )
        .unwrap(),
    ];
    for mapper in mappers {
        for _ in 0..3 {
            assert_eq!(run(&mapper, 8), 1);
        }
        assert_eq!(mapper.tuning(), None);
    }
}
