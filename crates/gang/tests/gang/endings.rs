//! How a gang ends, and what cannot begin.

use super::*;
use std::time::Duration;

#[test]
fn a_trap_of_one_thread_ends_the_gang_and_says_whose() {
    let mut gang = gang(wat!("traps"), &GangOptions { groups: 2, ..WIDE });
    for (entry, thread, code) in [
        ("at_barriers", 1500, TrapCode::Unreachable),
        ("at_loops", 37, TrapCode::Unreachable),
        ("at_sleep", 2047, TrapCode::Unreachable),
        ("outside", 99, TrapCode::MemoryOutOfBounds),
    ] {
        let trap = gang.launch(entry).unwrap().wait().unwrap().unwrap_err();
        assert_eq!((trap.thread, trap.trap.code), (thread, code), "{entry}: {trap}");
        gang.recover().unwrap();
    }
    run(&mut gang, "fine");
    assert_eq!(words(&gang, 0, 2048), [1; 2048]);
}

#[test]
fn a_trap_lets_the_workgroup_leave_at_its_barrier() {
    let mut gang = gang(wat!("trap_before_barrier"), &WIDE);
    let trap = gang.launch("run").unwrap().wait().unwrap().unwrap_err();
    assert_eq!((trap.thread, trap.trap.code), (500, TrapCode::Unreachable));
}

#[test]
fn the_host_stops_a_gang() {
    let mut gang = gang(wat!("endless"), &GangOptions { groups: 3, ..WIDE });
    let running = gang.launch("run").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert!(!running.is_done().unwrap());
    gang.stop();
    assert!(running.wait().unwrap().unwrap_err().is_stop());
}

#[test]
fn what_cannot_be_a_gang_is_refused_by_name() {
    let message = |text: &str, options: &GangOptions| {
        let wasm = Arc::new(wat::parse_str(text).unwrap());
        GangProgram::compile(&Compiler::new(Cache::off("a test")), &device(), wasm, options, "t")
            .unwrap_err()
            .to_string()
    };
    let unknown = message(r#"(module (import "gpu" "thrad" (func)) (memory 1))"#, &WIDE);
    assert!(unknown.contains("`gpu.thrad`"), "{unknown}");
    let other = message(r#"(module (import "gpu" "thread" (func (result i64))) (memory 1))"#, &WIDE);
    assert!(other.contains("`gpu.thread`"), "{other}");
    let host =
        message(r#"(module (import "wasi_snapshot_preview1" "sched_yield" (func (result i32))) (memory 1))"#, &WIDE);
    assert!(host.contains("sched_yield"), "{host}");
    assert!(message("(module)", &WIDE).contains("0 memories"));
    assert!(message("(module (memory 2))", &WIDE).contains("131072"));
    let huge = GangOptions { stack_bytes: 1 << 20, groups: 8, ..WIDE };
    assert!(message("(module (memory 1))", &huge).contains("8192 stacks of 1048576"));
    let sizes = [
        GangOptions { image_bytes: u64::MAX - 0xffff, ..WIDE },
        GangOptions { threads: 1025, ..WIDE },
        GangOptions { groups: u32::MAX, ..WIDE },
        GangOptions { bus_bytes: 1 << 40, ..WIDE },
        GangOptions { stack_bytes: 17, ..WIDE },
    ];
    for options in sizes {
        assert!(!message("(module (memory 1))", &options).is_empty());
    }
    let mut gang = gang("(module (memory 1))", &WIDE);
    assert!(gang.launch("tick").unwrap_err().to_string().contains("`tick`"));
}
