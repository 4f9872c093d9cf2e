//! What a speculative build stops runs again with an exact one, and gives the same.

use super::*;

#[test]
fn what_a_speculative_build_stops_runs_again_with_an_exact_one() {
    let inputs = ["", "a", "ab", "abc", "abcd", "!", "abcde"];
    let (exact, _) = run(&mapper(wat!("careless"), 8, Layout::Interleaved), &inputs);
    let fast = checked_mapper(wat!("careless"), 8, Build::Speculative(Placement::Interleaved));
    // Most do, so that the next ones begin there.
    for again in [5, 0] {
        let (done, stats) = run(&fast, &inputs);
        assert_eq!(done, exact);
        assert_eq!((stats.reruns, stats.instances), (again, 7));
    }
    let few = ["", "a", "abcd", "abcdefgh", "abcdefghijkl"];
    let (exact_few, _) = run(&mapper(wat!("careless"), 8, Layout::Interleaved), &few);
    let fast = checked_mapper(wat!("careless"), 8, Build::Speculative(Placement::Interleaved));
    for _ in 0..2 {
        let (done, stats) = run(&fast, &few);
        assert_eq!(done, exact_few);
        assert_eq!(stats.reruns, 1);
    }
    assert_eq!(exact[0].stdout, b"abcd\0abcd\0\0\0\0\0\0xy\0\0\0");
    assert!(matches!(&exact[5].end, End::Trapped(trap) if trap.code == TrapCode::MemoryOutOfBounds));
}

#[test]
fn constants_that_are_written_after_all_have_their_new_values() {
    let inputs = ["", "s", "b", "f", "rXYZ", "a", "n"];
    let (exact, _) = run(&mapper(wat!("constants"), 8, Layout::Interleaved), &inputs);
    let printed: Vec<_> = exact.iter().map(|done| String::from_utf8_lossy(&done.stdout).into_owned()).collect();
    let plain = "0123456789abcdef3";
    let written = ["012!456789abcdef!", "!123456789abcdef3", "0123456789abc!!!3", "0XYZ456789abcdefZ"];
    assert_eq!(printed, [&[plain][..], &written, &[plain, plain]].concat());
    let slots = checked_mapper(wat!("constants"), 8, Build::Speculative(Placement::Interleaved));
    for fast in [slots, local_mapper(wat!("constants"), 8, 256 << 10)] {
        let (done, stats) = run(&fast, &inputs);
        assert_eq!(done, exact);
        assert_eq!((stats.reruns, stats.instances), (4, 7));
    }
}

#[test]
fn a_stack_deeper_than_what_has_a_place_runs_again() {
    let inputs = ["1", "2", "3", "4", "8", "9", "2x", "9x"];
    let (exact, _) = run(&mapper(wat!("deep"), 8, Layout::Interleaved), &inputs);
    assert_eq!(exact[0].stdout, b"\0\0\0\0y\0\0\0");
    assert_eq!(exact[7].stdout, b"\0\0\0\0xxx\0");
    let fast = checked_mapper(wat!("deep"), 8, Build::Speculative(Placement::Interleaved));
    for _ in 0..2 {
        let (done, stats) = run(&fast, &inputs);
        assert_eq!(done, exact);
        // 256 KiB of stack have a place; the fourth writes its first byte, and prints from before it.
        assert_eq!(stats.reruns, 4);
    }
}

#[test]
fn an_atomic_store_below_the_stack_that_has_a_place_runs_again() {
    // It prints the data instead of what is around the store, so that nothing but the store looks there.
    let around = "(i32.sub (local.get $at) (i32.const 4))";
    let deep = wat!("deep").replace("17)", "17 17 shared)").replace("i32.store8", "i32.atomic.store8");
    let deep = deep.replace(around, "(i32.const 1048588)");
    let inputs = ["1", "2", "3", "4", "8", "9"];
    let (exact, _) = run(&mapper(&deep, 8, Layout::Linear), &inputs);
    assert_eq!(exact[5].stdout, b"data\x01\0\0\0");
    for layout in [Layout::Linear, Layout::Interleaved] {
        let (done, stats) = run(&checked_mapper(&deep, 8, Build::speculative(layout, 0)), &inputs);
        assert_eq!((&done, stats.reruns), (&exact, 2), "{layout:?}");
    }
}

#[test]
fn a_speculative_build_gives_what_an_exact_one_gives() {
    let (exact, _) = run(&mapper(wat!("echo"), 4, Layout::Interleaved), &["a", "!b", "c"]);
    let fast = checked_mapper(wat!("echo"), 4, Build::Speculative(Placement::Interleaved));
    let (done, stats) = run(&fast, &["a", "!b", "c"]);
    // What may trap ends without a word, and the exact build finds out why.
    assert_eq!((done, stats.reruns), (exact, 1));
}

#[test]
fn what_an_instance_did_outside_happens_once_though_it_runs_twice() {
    for build in [Build::Exact(Layout::Interleaved), Build::Speculative(Placement::Interleaved)] {
        let folder = tempfile::tempdir().unwrap();
        let mapper = checked_mapper(wat!("logging"), 4, build);
        let mut context = Builder::new();
        context.preopen(folder.path(), "/").unwrap();
        let context = Arc::new(context);
        let job = |number, text: &str| Job {
            context: context.clone(),
            number,
            stdin: Bytes::copy_from_slice(text.as_bytes()),
        };
        let (results, stats) = mapper.run(vec![job(7, "a"), job(8, "!bc"), job(9, "")], None).unwrap();
        let done: Vec<Owned> = results.iter().map(Owned::from).collect();
        assert_eq!((&done[0].end, &done[2].end), (&End::Returned, &End::Returned), "{build:?}");
        assert!(matches!(&done[1].end, End::Trapped(trap) if trap.code == TrapCode::Unreachable), "{:?}", done[1].end);
        for done in &done {
            assert_eq!((&done.stdout[..], &done.stderr[..]), (&b"second"[..], &b"first second"[..]), "{build:?}");
        }
        assert_eq!(stats.reruns, if build.is_speculative() { 2 } else { 0 });
        let log = std::fs::read(folder.path().join("log")).unwrap();
        let count = |word: &[u8]| log.windows(word.len()).filter(|part| *part == word).count();
        assert_eq!((count(b"first "), count(b"second "), log.len()), (3, 3, 3 * (6 + 8 + 7)), "{build:?}");
    }
}

#[test]
fn what_a_speculative_build_stops_has_no_more_time_than_the_rest() {
    let endless = r#"(module (memory (export "memory") 1) (func (export "_start") (loop $l (br $l))))"#;
    let mapper = checked_mapper(endless, 2, Build::Speculative(Placement::Interleaved));
    let timeout = Duration::from_secs(2);
    let (results, stats) = mapper.run(jobs(&["", ""]), Some(timeout)).unwrap();
    for done in results.iter() {
        assert!(matches!(done.end, End::Trapped(trap) if trap.code == TrapCode::Interrupted), "{:?}", done.end);
    }
    // An eighth of it once more, and not all.
    assert!(stats.run < timeout * 2, "{:?}", stats.run);
}

#[test]
fn every_launch_is_watched_those_that_run_again_too() {
    let counts = Arc::new(AtomicUsize::new(0));
    let counted = counts.clone();
    let watch: Watch = Arc::new(move || Box::new(counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed)));
    let program = program(wat!("careless"), Build::Speculative(Placement::Interleaved));
    let mapper = Mapper::new(program, Extent { capacity: 2, ..Extent::default() }, Some(watch)).unwrap();
    let (_, stats) = run(&mapper, &["", "abcd", "", "a"]);
    assert_eq!((counts.load(std::sync::atomic::Ordering::Relaxed) as u64, stats.reruns > 0), (stats.launches, true));
}
