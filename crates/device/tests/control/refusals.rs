//! What ends a launch, and what is refused before it.

use super::*;

#[test]
fn trap_ends_the_launch() {
    let device = strict();
    let module = load(&device, &kernel("trap;"));
    let error = run(&module, "k", grid(3, 2), &[Arg::U64(0)]).unwrap_err();
    assert!(matches!(&error, Error::Fault(message) if message.contains("trap")), "{error}");
}

#[test]
fn what_is_not_in_the_dialect_is_refused_with_its_line() {
    let (line, message, text) = refused(&kernel("mov.b32 %r1, 1;\ntanh.approx.f32 %f1, %f2;"));
    assert_eq!((line, text.as_str()), (9, "tanh.approx.f32 %f1, %f2;"));
    assert!(message.contains("tanh.approx.f32"), "{message}");
    for (statement, expected) in [
        ("mov.b32 %r99, 1;", "%r99"),
        ("add.u32 %r1, %r2;", "3 operands"),
        ("add.u32 %r1, %r2, %f1;", "F32"),
        ("add.u32 %d1, %d2, %d3;", "B64"),
        ("ld.global.u64 %r1, [%d0];", "B32"),
        ("bra $nowhere;", "$nowhere"),
        ("call missing, (%d0);", "missing"),
        ("ld.global.u32 %r1, [missing];", "missing"),
        ("brx.idx %r1, $T9;", "$T9"),
        ("bar.sync 1;", "bar.sync 0"),
        (".local .b8 x[4];", ".align"),
        (".local .align 16 .b8 x[0];", "own memory"),
        ("add.u32 %r1, %r2, 0f3F80;", "hexadecimal"),
        ("mov.u64 %d1, %tid.x;", "32 bits"),
        ("add.u32 %r1, %r2, 99999999999999999999999;", "integer"),
    ] {
        let (line, message, text) = refused(&kernel(statement));
        assert!(message.contains(expected), "{statement}: {message}");
        assert!(line >= 8 && !text.is_empty(), "{statement}: {line} {text:?}");
    }
}

#[test]
fn kernels_are_checked_before_they_run() {
    let device = strict();
    let module = load(&device, &kernel(""));
    assert!(matches!(run(&module, "other", grid(1, 1), &[Arg::U64(0)]), Err(Error::NoKernel(_))));
    assert!(matches!(run(&module, "k", grid(1, 1), &[]), Err(Error::Unavailable(_))));
    assert!(matches!(run(&module, "k", grid(1, 1), &[Arg::U32(0)]), Err(Error::Unavailable(_))));
    assert!(matches!(run(&module, "k", grid(1, 1025), &[Arg::U64(0)]), Err(Error::Unavailable(_))));
    let deep = gpu_run_device::Grid { workgroups: 1, threads: 1, stack_bytes: u32::MAX };
    assert!(matches!(run(&module, "k", deep, &[Arg::U64(0)]), Err(Error::Unavailable(_))));
}
