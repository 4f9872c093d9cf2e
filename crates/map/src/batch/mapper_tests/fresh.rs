//! Every instance finds memory as the module says, whoever had the slot before.

use super::*;

#[test]
fn every_batch_and_every_wave_finds_fresh_instances() {
    for layout in [Layout::Linear, Layout::Interleaved] {
        let mapper = mapper(wat!("echo"), 2, layout);
        for batch in [&["a", "b", "c", "d", "e"][..], &["f"], &[], &["g", "h", "i"]] {
            let (done, stats) = run(&mapper, batch);
            let expected: Vec<_> = batch.iter().map(|text| format!("1{text}").into_bytes()).collect();
            assert_eq!(done.into_iter().map(|d| d.stdout).collect::<Vec<_>>(), expected);
            assert_eq!((stats.instances, stats.launches), (batch.len() as u64, batch.len().div_ceil(2) as u64));
        }
    }
}

/// Instances that had little memory and much follow each other in the same slots, few and many of them.
pub(super) fn finds_nothing_of_others(program: impl Fn(&str, Layout) -> Arc<Program>) {
    for layout in [Layout::Linear, Layout::Interleaved] {
        let mapper =
            Mapper::new(program(wat!("littering"), layout), Extent { capacity: 40, ..Extent::default() }, None);
        let mapper = mapper.unwrap();
        for batch in ["3333333333", "0", "123", "0123012301230123012301230123012301230123", "00000", "3210"] {
            for times in [1, 4] {
                let digits: Vec<_> = batch.repeat(times).into_bytes().into_iter().map(|digit| [digit]).collect();
                let (results, _) = mapper.run(jobs(&digits), None).unwrap();
                let ends: Vec<_> = results.iter().map(|done| done.end.clone()).collect();
                assert_eq!(ends, vec![End::Returned; digits.len()], "{layout:?}: {batch} {times} times");
            }
        }
    }
}

#[test]
fn an_instance_finds_nothing_of_those_that_had_its_slot_before() {
    finds_nothing_of_others(|wat, layout| program(wat, Build::Exact(layout)));
}

#[test]
fn memory_of_a_threads_own_is_fresh_for_every_instance() {
    let mapper = local_mapper(wat!("echo"), 2, 128 << 10);
    for batch in [&["a", "b", "c", "d", "e"][..], &["f"], &["g", "!h", "i"]] {
        let (exact, _) = run(&self::mapper(wat!("echo"), 4, Layout::Linear), batch);
        let (done, stats) = run(&mapper, batch);
        let trapped = batch.iter().filter(|text| text.starts_with('!')).count();
        assert_eq!((done, stats.reruns), (exact, trapped as u64));
    }
}

/// What `soiling.wat` has in its memory at first.
const SEGMENTS: [(usize, &str); 3] = [(4093, "second, and not aligned"), (16, "first"), (60001, "the last")];

#[test]
fn memory_is_as_the_module_says_after_an_instance_has_written_to_all_of_it() {
    let mut memory = vec![0u8; 65536];
    SEGMENTS.iter().for_each(|(at, text)| memory[*at..][..text.len()].copy_from_slice(text.as_bytes()));
    let hash = memory.iter().fold(0u32, |hash, byte| hash.wrapping_mul(31).wrapping_add((*byte).into()));
    for mapper in [local_mapper(wat!("soiling"), 2, 128 << 10), mapper(wat!("soiling"), 2, Layout::Interleaved)] {
        let (done, stats) = run(&mapper, &["a", "b", "c", "d", "e"]);
        assert!(stats.reruns == 0 && done.iter().all(|done| done.stdout == hash.to_le_bytes()), "{done:?}");
    }
}
