//! How records end: by a trap, at a limit, at the deadline; and the clock they see.

use super::*;

#[test]
fn a_trap_ends_one_record_and_keeps_what_it_wrote() {
    let (done, _) = run(&mapper(wat!("echo"), 4, Layout::Linear), &["a", "!b", "c"]);
    assert_eq!((&done[0].end, &done[2].end), (&End::Returned, &End::Returned));
    assert!(matches!(&done[1].end, End::Trapped(trap) if trap.code == TrapCode::Unreachable));
    assert_eq!(done[1].stdout, b"1!b");
}

#[test]
fn output_without_end_ends_when_one_has_printed_all_that_one_may() {
    let program = program(wat!("endless_stdout"), Build::Exact(Layout::Linear));
    let limits = Limits { output_bytes: 100_000, ..Limits::default() };
    let mapper = Mapper::new(program, Extent { capacity: 4, limits, ..Extent::default() }, None).unwrap();
    for _ in 0..2 {
        let (done, _) = run(&mapper, &["", "", "", ""]);
        let all = SHARE + 100_000;
        for Owned { stdout, denied, .. } in done {
            assert_eq!((stdout.len(), denied), (all / 1000 * 1000, Some(Denied::Output(all as u64))));
        }
    }
}

#[test]
fn the_deadline_ends_a_batch_and_the_next_one_runs() {
    let mapper = mapper(wat!("endless_stderr"), 2, Layout::Linear);
    for _ in 0..2 {
        let (done, _) = mapper.run(jobs(&["", ""]), Some(Duration::from_millis(50))).unwrap();
        assert!(done.iter().all(|d| matches!(&d.end, End::Trapped(trap) if trap.code == TrapCode::Interrupted)));
    }
}

#[test]
fn a_module_whose_segments_do_not_fit_traps_in_every_record() {
    let wat = r#"(module (memory 1) (data (i32.const 65536) "x") (func (export "_start")))"#;
    let (done, stats) = run(&mapper(wat, 4, Layout::Linear), &["a", "b"]);
    assert_eq!((done.len(), stats.launches), (2, 0));
    assert!(done.iter().all(|d| matches!(&d.end, End::Trapped(_))));
}

#[test]
fn the_devices_clock_is_the_hosts() {
    let host = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32).as_nanos() as u64
    };
    for build in [Build::Exact(Layout::Linear), Build::Speculative(Placement::Interleaved)] {
        let mapper = checked_mapper(wat!("clock"), 3, build);
        for _ in 0..3 {
            let before = host();
            let (done, stats) = run(&mapper, &["", "", ""]);
            let after = host();
            for done in done {
                let time = u64::from_le_bytes(done.stdout.try_into().unwrap());
                assert!((before..=after).contains(&time), "{before} {time} {after}");
            }
            assert_eq!(stats.hostcalls, 0, "the device knows");
        }
    }
}
