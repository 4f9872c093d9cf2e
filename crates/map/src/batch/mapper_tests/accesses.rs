//! Copies, atomics and vectors: the same wherever memory is.

use super::*;

/// The bytes that `mover.wat` moves.
const MOVED: std::ops::Range<u32> = 8192..3 << 16;

/// What `mover.wat` prints.
fn moved(operations: &[[u32; 4]]) -> [u8; 4] {
    let mut memory: Vec<u8> = (0..MOVED.end).map(|at| (at.wrapping_mul(167) ^ at >> 7) as u8).collect();
    for [is_fill, to, from, length] in operations {
        let [to, from, length] = [to, from, length].map(|n| *n as usize);
        match is_fill {
            0 => memory.copy_within(from..from + length, to),
            _ => memory[to..to + length].fill(from as u8),
        }
    }
    let moved = &memory[MOVED.start as usize..];
    moved.iter().fold(0u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619)).to_le_bytes()
}

#[test]
fn copies_and_fills_of_any_length_are_right_wherever_memory_is() {
    // Beside what is random: overlaps both ways of more than a stretch, by less than one, by a byte, and by none.
    let stretch = 64 << 10;
    let first = MOVED.start;
    let mut records: Vec<Vec<[u32; 4]>> = Vec::new();
    for distance in [0, 1, 3, 4, 4096, stretch - 1, stretch, stretch + 1] {
        for length in [stretch - 1, stretch, stretch + 1, 2 * stretch - 3] {
            let length = length.min(MOVED.end - first - distance);
            records.push(vec![[0, first + distance, first, length]]);
            records.push(vec![[0, first, first + distance, length]]);
            records.push(vec![[1, first + distance, distance, length]]);
        }
    }
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..32 {
        let operation = |_| {
            let [to, from] = [(); 2].map(|()| random.u32(MOVED));
            let (is_fill, length) = (u32::from(random.u32(..4) == 0), random.u32(..MOVED.end - to.max(from)));
            [is_fill, to, from, length]
        };
        records.push((0..3).map(operation).collect());
    }
    let jobs = || {
        let bytes = |record: &Vec<[u32; 4]>| record.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        jobs(&records.iter().map(bytes).collect::<Vec<Vec<u8>>>())
    };
    let flat = checked_mapper(wat!("mover"), 128, Build::Speculative(Placement::Linear));
    let exact = [Layout::Linear, Layout::Interleaved].map(|layout| mapper(wat!("mover"), 128, layout));
    for mapper in exact.into_iter().chain([flat, local_mapper(wat!("mover"), 128, 256 << 10)]) {
        let (done, stats) = mapper.run(jobs(), None).unwrap();
        assert_eq!(stats.reruns, 0);
        for (operations, done) in records.iter().zip(done.iter()) {
            assert_eq!(done.stdout, moved(operations), "{operations:?}");
        }
    }
}

#[test]
fn atomic_accesses_do_the_same_wherever_memory_is() {
    let module = wat!("atomics");
    let shared = module.replace("(export \"memory\") 1)", "(export \"memory\") 1 1 shared)");
    let [linear, interleaved] =
        [Layout::Linear, Layout::Interleaved].map(|layout| checked_mapper(&shared, 2, Build::speculative(layout, 0)));
    for mapper in [local_mapper(module, 2, 64 << 10), linear, interleaved] {
        let (done, stats) = run(&mapper, &["", "", ""]);
        assert!(done.iter().all(|done| done.stdout == b"bbcdeFGHbbcdeFGH"), "{done:?}");
        assert_eq!(stats.reruns, 0);
    }
}

#[test]
fn vectors_that_keep_what_is_promised_of_them_do_not_run_again() {
    let inputs = ["", "a", "ab", "abc"];
    let (exact, _) = run(&mapper(wat!("vectors"), 4, Layout::Linear), &inputs);
    assert_eq!(exact[1].stdout[..16], *b"abcdefghijklmnop");
    assert_eq!(exact[1].stdout[33..49], exact[1].stdout[3..19]);
    let [flat, interleaved] = [Layout::Linear, Layout::Interleaved]
        .map(|layout| checked_mapper(wat!("vectors"), 4, Build::speculative(layout, 0)));
    for mapper in [local_mapper(wat!("vectors"), 4, 64 << 10), flat, interleaved] {
        let (done, stats) = run(&mapper, &inputs);
        assert_eq!((&done, stats.reruns), (&exact, 0));
    }
}

#[test]
fn fewer_lanes_of_a_warp_give_the_same() {
    let inputs: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let (exact, _) = run(&mapper(wat!("echo"), 128, Layout::Linear), &inputs);
    for layout in [Layout::Linear, Layout::Interleaved] {
        let extent = Extent { capacity: 64, lanes: Some(8), ..Extent::default() };
        let mapper = Mapper::new(program(wat!("echo"), Build::speculative(layout, 0)), extent, None).unwrap();
        assert_eq!(run(&mapper, &inputs).0, exact);
    }
}
