use super::*;
use gpu_run_compiler::Calls;

/// Nobody asked for backtraces.
const PLAIN: Wanted = Wanted::NOTHING;

fn trap(code: TrapCode) -> End {
    End::Trapped(Box::new(Trap {
        thread: None,
        code,
        function: Some(3),
        name: Some("app::work".into()),
        offset: 0x1a2,
        source: None,
        calls: Calls::NotNoted,
    }))
}

fn outcomes(ends: impl IntoIterator<Item = End>) -> Vec<Outcome> {
    ends.into_iter().map(|end| Outcome { end, results: Vec::new(), denied: None, threads: None }).collect()
}

#[test]
fn the_summary_counts_exits_and_traps() {
    let mut ends = vec![End::Exited(0); 62];
    ends[1] = End::Returned;
    ends.insert(17, trap(TrapCode::Unreachable));
    ends.push(End::Exited(3));
    let outcomes = outcomes(ends);
    let tally = Tally::new(&outcomes, false);
    assert_eq!(tally.summary(), "64 instances: 62 exited 0, 1 exited 3, 1 trapped (first: instance 17: unreachable)");
    assert_eq!(tally.exit_code(), exit::TRAP, "instance 17 comes before 63");
    let report = tally.report("a.wasm", None, PLAIN, false);
    assert!(report.starts_with("error: a.wasm, instance 17, trapped: unreachable\n  in app::work"), "{report}");
}

#[test]
fn one_instance_that_exits_says_nothing() {
    let outcomes = outcomes([End::Exited(7)]);
    let tally = Tally::new(&outcomes, false);
    assert_eq!(tally.exit_code(), 7);
    assert_eq!(tally.report("a.wasm", None, PLAIN, false), "");
    assert_eq!(tally.report("a.wasm", None, PLAIN, true), "gpu-run: 1 instance: 1 exited 7\n");
}

#[test]
fn one_instance_that_traps_says_where() {
    let outcomes = outcomes([trap(TrapCode::IntegerDivisionByZero)]);
    let tally = Tally::new(&outcomes, true);
    assert_eq!(tally.exit_code(), exit::TRAP);
    let expected = "error: a.wasm trapped: integer divide by zero\n  in app::work (function 3), at offset 0x1a2\n  \
                    note: run with RUST_BACKTRACE=1 to see the functions that led here\n";
    assert_eq!(tally.report("a.wasm", Some(Duration::from_secs(1)), PLAIN, false), expected);
}

#[test]
fn an_interruption_is_a_timeout_only_if_there_was_one() {
    let outcomes = outcomes([trap(TrapCode::Interrupted)]);
    let tally = Tally::new(&outcomes, true);
    assert_eq!(tally.exit_code(), exit::TIMEOUT);
    let text = tally.report("a.wasm", Some(Duration::from_millis(500)), PLAIN, false);
    let expected = "error: a.wasm did not finish within 500 ms\n  in app::work (function 3), at offset 0x1a2\n";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(Tally::new(&outcomes, false).exit_code(), exit::TRAP);
}

#[test]
fn a_failure_stays_one_in_eight_bits() {
    for (code, expected) in [(0, 0), (255, 255), (256, 1), (257, 1), (u32::MAX, 255)] {
        let outcomes = outcomes([End::Exited(code)]);
        assert_eq!(Tally::new(&outcomes, false).exit_code(), expected, "{code}");
    }
}

#[test]
fn stats_are_one_json_object_on_one_line() {
    let outcomes = outcomes([End::Returned, trap(TrapCode::Unreachable)]);
    let device = Properties {
        id: "cpu".into(),
        name: "two \"cores\"".into(),
        target: 90,
        processors: 2,
        memory_bytes: 1,
        overcommits: true,
        workgroup_threads: 1,
        stack_bytes: 1,
        local_bytes: 0,
        resident_threads: 0,
    };
    let run = RunStats { instances: 2, hostcalls: 1, launches: 1, ..RunStats::default() };
    let timings = [("decode", Duration::from_millis(250))];
    let cache = Some(Origin::Hit { saved: Duration::from_millis(1500) });
    let (layout, load) = (Layout::Linear, Duration::ZERO);
    let stats =
        Stats { device: &device, layout, timings: &timings, load, cache, run: &run, shares: &[], processes: None };
    let text = stats.json(&Tally::new(&outcomes, false));
    assert_eq!(text.lines().count(), 1);
    let object: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(object["compile_seconds"]["decode"], 0.25);
    assert_eq!((&object["cache"], &object["cache_saved_seconds"]), (&"hit".into(), &1.5.into()));
    assert!(stats.text().contains("cache    hit, saved 1.50 s"), "{}", stats.text());
    assert_eq!(object["device_name"], "two \"cores\"");
    assert_eq!(object["exits"]["0"], 1);
    assert_eq!(object["trapped"], 1);
    assert!(stats.text().contains("2 instances in 1 launch, 1 host call"), "{}", stats.text());
}
